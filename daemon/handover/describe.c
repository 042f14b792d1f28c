/* describe.c - see describe.h. */
#include "daemon/handover/describe.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/barrier/conversion.h"
#include "daemon/file/access_time.h"
#include "daemon/file/inherited.h"
#include "daemon/file/inode_path.h"
#include "daemon/handover/sharing.h"
#include "daemon/handover/state.h"
#include "daemon/op/fs_parts.h"

/* ---- telling --------------------------------------------------------------------------------- */

struct telling {
	struct wire_out out;
	uint64_t ninodes, nhandles;
	uint32_t most; /* handles of one inode */
	struct handle_state *handles;
	struct sharing_state sharing;
	size_t sharing_bytes; /* 0: the mount does not share */
	uint64_t busy;        /* an inode that can't be described; 0: none */
};

static void count_inode(struct inode *inode, void *arg)
{
	struct telling *t = arg;
	uint32_t n;

	if (!inodes_is_to_be_described(inode))
		return;
	n = inodes_describe_handles(inode, NULL, 0);
	t->ninodes++;
	t->nhandles += n;
	t->most = n > t->most ? n : t->most;
}

static void tell_inode(struct inode *inode, void *arg)
{
	struct telling *t = arg;
	struct inode_state state;

	if (!inodes_is_to_be_described(inode))
		return;
	if (inodes_describe(inode, &state))
		t->busy = inode->ino;
	state.nhandles = inodes_describe_handles(inode, t->handles, t->most);
	state_put_inode(&t->out, &state);
	for (uint32_t i = 0; i < state.nhandles; i++)
		state_put_handle(&t->out, &t->handles[i]);
}

void describe_options(struct fs *fs, struct mount_state *state)
{
	state->features = fs->features;
	state->cache = (uint8_t)fs->options.cache;
	state->access = (uint8_t)atomic_load(&fs->access->mode);
	state->nodiratime = atomic_load(&fs->access->nodiratime);
	state->revived = fs->revived;
}

static int refuse_busy(struct fs *fs, uint64_t ino, char *why, size_t whylen)
{
	struct inode *inode = inode_find(fs, ino);
	char path[PATH_TEXT_BYTES] = "?";

	if (inode) {
		path_describe(inode, path, sizeof(path));
		inode_put(inode);
	}
	snprintf(why, whylen,
		"inode %llu, %.512s, keeps what the server did not take, or is in use: close it, "
		"or try again",
		(unsigned long long)ino, path);
	return -EBUSY;
}

static void count_all(struct fs *fs, struct telling *t)
{
	inode_each(fs, count_inode, t);
	if (!fs_may_share(fs))
		return;
	t->busy = sharing_count(fs, &t->sharing);
	t->sharing_bytes = sharing_state_bytes(&t->sharing);
}

/* Room for all. */
static int make_room(struct telling *t, uint8_t **data, size_t *len)
{
	*len = state_bytes(t->ninodes, t->nhandles) + t->sharing_bytes;
	*data = malloc(*len);
	t->handles = calloc(t->most + 1, sizeof(*t->handles));
	if (*data && t->handles) {
		wire_out_init(&t->out, *data, *len);
		return 0;
	}
	free(steal_ptr(data));
	free(steal_ptr(&t->handles));
	return -ENOMEM;
}

static int tell_all(struct fs *fs, struct telling *t, const struct mount_state *state)
{
	int err = 0;

	state_put(&t->out, state);
	inode_each(fs, tell_inode, t);
	if (fs_may_share(fs))
		err = sharing_describe(fs, &t->out, &t->sharing);
	assert(err || t->busy || (!t->out.overflow && !wire_out_room(&t->out)));
	return err;
}

static bool has_calls(const struct fs *fs, const struct io_thread *threads)
{
	for (unsigned i = 0; i < fs->options.session.io_threads; i++)
		if (!remote_has_no_calls(&threads[i]))
			return true;
	return false;
}

/* The numbers of inodes and handles stay while the mount stands. */
int describe_mount(struct fs *fs, struct io_thread *threads, uint8_t **data, size_t *len,
	int *owner_fd, char *why, size_t whylen)
{
	struct mount_state state = {0};
	struct telling t = {0};
	int err;

	count_all(fs, &t);
	if (t.busy)
		return refuse_busy(fs, t.busy, why, whylen);
	if (has_calls(fs, threads)) {
		snprintf(why, whylen, "a message to the server has begun meanwhile: try again");
		return -EBUSY;
	}
	err = make_room(&t, data, len);
	if (!err) {
		*owner_fd = session_describe(fs->session, threads, &state.session);
		describe_options(fs, &state);
		state.ninodes = t.ninodes;
		state.nhandles = t.nhandles;
		state.sharing_bytes = t.sharing_bytes;
		state.told = conversion_told(fs);
		err = tell_all(fs, &t, &state);
	}
	free(t.handles);
	if (!err && !t.busy)
		return 0;
	free(steal_ptr(data));
	if (!err)
		return refuse_busy(fs, t.busy, why, whylen);
	snprintf(why, whylen, "out of memory");
	return err;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* All numbers are known before the first handle gets its place. */
static int name_handles(struct fs *fs, struct wire_in r, const struct mount_state *state)
{
	struct inode_state inode;
	struct handle_state handle;
	uint64_t left = state->nhandles;
	int err = inherited_new((size_t)state->nhandles, &fs->inherited);

	for (uint64_t i = 0; !err && i < state->ninodes; i++) {
		err = state_get_inode(&r, &inode);
		if (!err && inode.nhandles > left)
			err = -EPROTO;
		left -= err ? 0 : inode.nhandles;
		for (uint32_t h = 0; !err && h < inode.nhandles; h++) {
			err = state_get_handle(&r, &handle);
			if (!err)
				err = handle.number ? inherited_name(fs->inherited, handle.number)
						    : -EPROTO;
		}
	}
	return err ? err : left ? -EPROTO : 0;
}

static int adopt_one(struct fs *fs, struct wire_in *r, struct handle_state *handles)
{
	struct inode_state inode;
	int err = state_get_inode(r, &inode);

	for (uint32_t h = 0; !err && h < inode.nhandles; h++)
		err = state_get_handle(r, &handles[h]);
	return err ? err : inodes_adopt(fs, &inode, handles);
}

static int adopt_inodes(struct fs *fs, struct wire_in *r, const struct mount_state *state)
{
	struct handle_state *handles = calloc(state->nhandles + 1, sizeof(*handles));
	int err = handles ? 0 : -ENOMEM;

	for (uint64_t i = 0; !err && i < state->ninodes; i++)
		err = adopt_one(fs, r, handles);
	free(handles);
	if (!err && !fs->root)
		err = -EPROTO;
	return err;
}

static bool is_read_only(const struct fs *fs)
{
	return fs->options.session.read_only;
}

int describe_adopt_options(struct fs *fs, const struct mount_state *state, char *why, size_t whylen)
{
	if (state->cache != (uint8_t)fs->options.cache) {
		snprintf(why, whylen,
			"'cache' is not as the mount has it: change it back, or unmount and mount "
			"again");
		return -EINVAL;
	}
	if (state->session.read_only != is_read_only(fs)) {
		snprintf(why, whylen, "the mount has been remounted meanwhile");
		return -EAGAIN;
	}
	fs->features = state->features;
	atomic_store(&fs->access->mode, (enum access_mode)state->access);
	atomic_store(&fs->access->nodiratime, state->nodiratime);
	fs->revived = state->revived;
	return 0;
}

static int adopt(struct fs *fs, struct io_thread *threads, struct wire_in *r, int *owner_fd,
	char *why, size_t whylen)
{
	struct mount_state state;
	int err = state_get(r, &state);

	if (!err)
		err = describe_adopt_options(fs, &state, why, whylen);
	if (!err)
		err = session_adopt(fs->session, threads, &state.session, *owner_fd, why, whylen);
	if (err)
		return err;
	steal_fd(owner_fd);
	atomic_store(&fs->sharing, state.session.sharing);
	atomic_store(&fs->has_shared, fs_may_share(fs));
	conversion_adopt(fs, state.told);
	if (fs_may_share(fs) != (state.sharing_bytes > 0))
		return -EPROTO;
	err = name_handles(fs, *r, &state);
	if (!err)
		err = adopt_inodes(fs, r, &state);
	if (!err && fs_may_share(fs))
		err = sharing_adopt(fs, threads, r);
	return err;
}

int describe_adopt(struct fs *fs, struct io_thread *threads, const uint8_t *data, size_t len,
	int owner_fd, char *why, size_t whylen)
{
	autoclose int owner = owner_fd;
	struct wire_in r;
	int err;

	*why = '\0';
	wire_in_init(&r, data, len);
	err = adopt(fs, threads, &r, &owner, why, whylen);
	if (err && !*why)
		snprintf(why, whylen, "the description of the mount can't be used: %s",
			err == -EPROTONOSUPPORT ? "it is of another version of rmemfs"
						: errno_text(err));
	return err;
}
