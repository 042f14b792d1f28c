#include "daemon/fuse/decode.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common/rpc/rpc.h"
#include "common/base/util.h"
#include "daemon/fuse/statx.h"

static_assert(PAYLOAD_HEAD_BYTES == sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in),
	"a WRITE's payload must land on a page");

/* The rest of a message's body. */
struct cursor {
	const uint8_t *at;
	size_t left;
};

/* The next n bytes, or NULL. */
static const void *take(struct cursor *c, size_t n)
{
	const uint8_t *at = c->at;

	if (n > c->left)
		return NULL;
	c->at += n;
	c->left -= n;
	return at;
}

static int decode_finish(const struct cursor *c)
{
	return c->left == 0 ? 0 : -EIO;
}

/* A NUL-terminated string of 1 .. max bytes. */
static int take_string(struct cursor *c, size_t max, const char **out)
{
	const uint8_t *nul = c->left ? memchr(c->at, '\0', c->left) : NULL;
	size_t len;

	if (!nul)
		return -EIO;
	len = (size_t)(nul - c->at);
	if (len == 0)
		return -EINVAL;
	if (len > max)
		return -ENAMETOOLONG;
	*out = (const char *)take(c, len + 1);
	return 0;
}

static int take_name(struct cursor *c, const char **out)
{
	int err = take_string(c, NAME_BYTES_MAX, out);

	if (err)
		return err;
	return strchr(*out, '/') ? -EINVAL : 0;
}

static int last_name(struct cursor *c, const char **out)
{
	int err = take_name(c, out);

	return err ? err : decode_finish(c);
}

/* An extended attribute's name; if it is longer than a file's name, xattr(7) has -ERANGE. */
static int take_xattr_name(struct cursor *c, const char **out)
{
	int err = take_string(c, NAME_BYTES_MAX, out);

	return err == -ENAMETOOLONG ? -ERANGE : err;
}

static int last_xattr_name(struct cursor *c, const char **out)
{
	int err = take_xattr_name(c, out);

	return err ? err : decode_finish(c);
}

/* A struct that is the whole body. */
#define whole(c, type) ((const type *)((c)->left == sizeof(type) ? take(c, sizeof(type)) : NULL))
/* A struct that more follows. */
#define start(c, type) ((const type *)take(c, sizeof(type)))

static void set_fh(struct request *req, uint64_t fh)
{
	req->args.fh = fh;
	req->args.has_fh = true;
}

/* ---- one function for each shape of body ----------------------------------------------------- */

static int decode_empty(struct request *req, struct cursor *c)
{
	return decode_finish(c);
}

static int decode_name(struct request *req, struct cursor *c)
{
	return last_name(c, &req->args.name);
}

static int decode_getattr(struct request *req, struct cursor *c)
{
	const struct fuse_getattr_in *in = whole(c, struct fuse_getattr_in);

	if (!in)
		return -EIO;
	if (in->getattr_flags & FUSE_GETATTR_FH)
		set_fh(req, in->fh);
	return 0;
}

static int decode_statx(struct request *req, struct cursor *c)
{
	const struct fuse_statx_in *in = whole(c, struct fuse_statx_in);

	if (!in)
		return -EIO;
	if (in->getattr_flags & FUSE_GETATTR_FH)
		set_fh(req, in->fh);
	return 0;
}

/* Nanoseconds since the epoch; a second out of their range becomes the nearest within. */
static int64_t decode_time(uint64_t sec, uint32_t nsec)
{
	int64_t s = (int64_t)sec, ns;

	if (__builtin_mul_overflow(s, INT64_C(1000000000), &ns) ||
		__builtin_add_overflow(ns, (int64_t)nsec, &ns))
		return s < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

static uint32_t decode_valid(uint32_t fattr)
{
	static const struct {
		uint32_t fattr, set;
	} map[] = {
		{FATTR_MODE, SET_MODE},
		{FATTR_UID, SET_UID},
		{FATTR_GID, SET_GID},
		{FATTR_SIZE, SET_SIZE},
		{FATTR_ATIME, SET_ATIME},
		{FATTR_MTIME, SET_MTIME},
		{FATTR_ATIME_NOW, SET_ATIME_NOW},
		{FATTR_MTIME_NOW, SET_MTIME_NOW},
		{FATTR_CTIME, SET_CTIME},
	};
	uint32_t valid = 0;

	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (fattr & map[i].fattr)
			valid |= map[i].set;
	/* For "now" the kernel sets both bits; one of them is enough. */
	if (valid & SET_ATIME_NOW)
		valid &= ~(uint32_t)SET_ATIME;
	if (valid & SET_MTIME_NOW)
		valid &= ~(uint32_t)SET_MTIME;
	return valid;
}

static int decode_setattr(struct request *req, struct cursor *c)
{
	const struct fuse_setattr_in *in = whole(c, struct fuse_setattr_in);
	struct request_args *args = &req->args;

	if (!in)
		return -EIO;
	if ((in->valid & FATTR_SIZE) && in->size > INT64_MAX)
		return -EFBIG;
	args->set.valid = decode_valid(in->valid);
	args->set.mode = in->mode;
	args->set.uid = in->uid;
	args->set.gid = in->gid;
	args->set.size = in->size;
	args->set.atime = decode_time(in->atime, in->atimensec);
	args->set.mtime = decode_time(in->mtime, in->mtimensec);
	args->set.ctime = decode_time(in->ctime, in->ctimensec);
	args->kill_priv = in->valid & FATTR_KILL_SUIDGID;
	if (in->valid & FATTR_FH)
		set_fh(req, in->fh);
	return 0;
}

static int decode_symlink(struct request *req, struct cursor *c)
{
	int err = take_name(c, &req->args.name);

	if (err)
		return err;
	err = take_string(c, SYMLINK_BYTES_MAX, &req->args.name2);
	return err ? err : decode_finish(c);
}

static int decode_mknod(struct request *req, struct cursor *c)
{
	const struct fuse_mknod_in *in = start(c, struct fuse_mknod_in);

	if (!in)
		return -EIO;
	req->args.mode = in->mode;
	req->args.umask = in->umask;
	req->args.rdev = in->rdev;
	return last_name(c, &req->args.name);
}

static int decode_mkdir(struct request *req, struct cursor *c)
{
	const struct fuse_mkdir_in *in = start(c, struct fuse_mkdir_in);

	if (!in)
		return -EIO;
	req->args.mode = in->mode;
	req->args.umask = in->umask;
	return last_name(c, &req->args.name);
}

static int decode_two_names(struct request *req, struct cursor *c)
{
	int err = take_name(c, &req->args.name);

	return err ? err : last_name(c, &req->args.name2);
}

static int decode_rename(struct request *req, struct cursor *c)
{
	const struct fuse_rename_in *in = start(c, struct fuse_rename_in);

	if (!in)
		return -EIO;
	req->args.node2 = in->newdir;
	return decode_two_names(req, c);
}

static int decode_rename2(struct request *req, struct cursor *c)
{
	const struct fuse_rename2_in *in = start(c, struct fuse_rename2_in);
	int err;

	if (!in)
		return -EIO;
	req->args.node2 = in->newdir;
	req->args.flags = in->flags;
	err = decode_two_names(req, c);
	if (err)
		return err;
	return rpc_rename_flags_ok(in->flags) ? 0 : -EINVAL;
}

static int decode_link(struct request *req, struct cursor *c)
{
	const struct fuse_link_in *in = start(c, struct fuse_link_in);

	if (!in)
		return -EIO;
	req->args.node2 = in->oldnodeid;
	return last_name(c, &req->args.name);
}

static int decode_open(struct request *req, struct cursor *c)
{
	const struct fuse_open_in *in = whole(c, struct fuse_open_in);

	if (!in)
		return -EIO;
	req->args.flags = in->flags;
	req->args.kill_priv = in->open_flags & FUSE_OPEN_KILL_SUIDGID;
	return 0;
}

static int decode_create(struct request *req, struct cursor *c)
{
	const struct fuse_create_in *in = start(c, struct fuse_create_in);

	if (!in)
		return -EIO;
	req->args.flags = in->flags;
	req->args.mode = in->mode;
	req->args.umask = in->umask;
	req->args.kill_priv = in->open_flags & FUSE_OPEN_KILL_SUIDGID;
	return last_name(c, &req->args.name);
}

/* The message has a name, but the file gets none. */
static int decode_tmpfile(struct request *req, struct cursor *c)
{
	const struct fuse_create_in *in = start(c, struct fuse_create_in);
	const char *name;
	int err;

	if (!in)
		return -EIO;
	req->args.flags = in->flags;
	req->args.mode = in->mode;
	req->args.umask = in->umask;
	err = take_string(c, NAME_BYTES_MAX, &name);
	return err ? err : decode_finish(c);
}

/* The range fits in a data buffer, and in an off_t. */
static int check_range(uint64_t offset, uint32_t size)
{
	if (size > IO_BYTES_MAX)
		return -EINVAL;
	return range_within(offset, size, INT64_MAX) ? 0 : -EFBIG;
}

/* Direct I/O names a lock owner. */
static bool reads_for_cache(const struct fuse_read_in *in)
{
	return !(in->read_flags & FUSE_READ_LOCKOWNER);
}

static bool writes_from_cache(const struct fuse_write_in *in)
{
	return in->write_flags & FUSE_WRITE_CACHE;
}

static int decode_read(struct request *req, struct cursor *c)
{
	const struct fuse_read_in *in = whole(c, struct fuse_read_in);

	if (!in)
		return -EIO;
	set_fh(req, in->fh);
	req->args.offset = in->offset;
	req->args.size = in->size;
	req->args.flags = in->flags;
	req->args.lock_owner = in->lock_owner;
	req->args.cached = reads_for_cache(in);
	return check_range(in->offset, in->size);
}

/* A longer buffer is no error: we choose how much of it is filled. */
static int decode_readdir(struct request *req, struct cursor *c)
{
	const struct fuse_read_in *in = whole(c, struct fuse_read_in);

	if (!in)
		return -EIO;
	set_fh(req, in->fh);
	req->args.flags = in->flags;
	req->args.offset = in->offset;
	req->args.size = (uint32_t)min_u64(in->size, IO_BYTES_MAX);
	return 0;
}

static int decode_readdirplus(struct request *req, struct cursor *c)
{
	req->args.plus = true;
	return decode_readdir(req, c);
}

static int decode_write(struct request *req, struct cursor *c)
{
	const struct fuse_write_in *in = start(c, struct fuse_write_in);

	if (!in || in->size != c->left)
		return -EIO;
	set_fh(req, in->fh);
	req->args.offset = in->offset;
	req->args.size = in->size;
	req->args.flags = in->flags;
	req->args.lock_owner = in->lock_owner;
	req->args.cached = writes_from_cache(in);
	req->args.kill_priv = in->write_flags & FUSE_WRITE_KILL_SUIDGID;
	return check_range(in->offset, in->size);
}

static int decode_release(struct request *req, struct cursor *c)
{
	const struct fuse_release_in *in = whole(c, struct fuse_release_in);

	if (!in)
		return -EIO;
	set_fh(req, in->fh);
	req->args.flags = in->flags;
	return 0;
}

static int decode_fsync(struct request *req, struct cursor *c)
{
	const struct fuse_fsync_in *in = whole(c, struct fuse_fsync_in);

	if (!in)
		return -EIO;
	set_fh(req, in->fh);
	req->args.datasync = in->fsync_flags & FUSE_FSYNC_FDATASYNC;
	return 0;
}

static int decode_flush(struct request *req, struct cursor *c)
{
	const struct fuse_flush_in *in = whole(c, struct fuse_flush_in);

	if (!in)
		return -EIO;
	set_fh(req, in->fh);
	req->args.lock_owner = in->lock_owner;
	return 0;
}

static int decode_lock_type(uint32_t type, uint8_t *out)
{
	switch (type) {
	case F_RDLCK:
		*out = LOCK_SHARED;
		return 0;
	case F_WRLCK:
		*out = LOCK_EXCLUSIVE;
		return 0;
	case F_UNLCK:
		*out = LOCK_FREE;
		return 0;
	default:
		return -EINVAL;
	}
}

static int decode_lk(struct request *req, struct cursor *c)
{
	const struct fuse_lk_in *in = whole(c, struct fuse_lk_in);

	if (!in)
		return -EIO;
	set_fh(req, in->fh);
	req->args.lock_owner = in->owner;
	req->args.lock.kind = in->lk_flags & FUSE_LK_FLOCK ? LOCK_KIND_FLOCK : LOCK_KIND_POSIX;
	req->args.lock.start = in->lk.start;
	req->args.lock.end = in->lk.end;
	req->args.lock.pid = in->lk.pid;
	if (in->lk.start > in->lk.end || in->lk.end > LOCK_END_MAX)
		return -EINVAL;
	return decode_lock_type(in->lk.type, &req->args.lock.type);
}

static int decode_getlk(struct request *req, struct cursor *c)
{
	int err = decode_lk(req, c);

	return !err && req->args.lock.type == LOCK_FREE ? -EINVAL : err;
}

static int decode_lk_wait(struct request *req, struct cursor *c)
{
	req->args.lock.wait = true;
	return decode_lk(req, c);
}

static int decode_lseek(struct request *req, struct cursor *c)
{
	const struct fuse_lseek_in *in = whole(c, struct fuse_lseek_in);

	if (!in)
		return -EIO;
	set_fh(req, in->fh);
	req->args.offset = in->offset;
	req->args.whence = in->whence;
	return in->whence == SEEK_DATA || in->whence == SEEK_HOLE ? 0 : -EINVAL;
}

static int decode_getxattr(struct request *req, struct cursor *c)
{
	const struct fuse_getxattr_in *in = start(c, struct fuse_getxattr_in);

	if (!in)
		return -EIO;
	req->args.size = (uint32_t)min_u64(in->size, XATTR_VALUE_MAX);
	return last_xattr_name(c, &req->args.name);
}

static int decode_listxattr(struct request *req, struct cursor *c)
{
	const struct fuse_getxattr_in *in = whole(c, struct fuse_getxattr_in);

	if (!in)
		return -EIO;
	req->args.size = (uint32_t)min_u64(in->size, XATTR_VALUE_MAX);
	return 0;
}

static int decode_removexattr(struct request *req, struct cursor *c)
{
	return last_xattr_name(c, &req->args.name);
}

/* With SETXATTR_EXT, which is taken where it is offered, the struct is longer by two words. One of
 * them is 0 or 1, the other 0. No attribute's name begins so. */
static bool is_long_setxattr(const struct cursor *c)
{
	const struct fuse_setxattr_in *in = (const void *)c->at;

	return c->left >= sizeof(*in) && !in->padding &&
	       !(in->setxattr_flags & ~(uint32_t)FUSE_SETXATTR_ACL_KILL_SGID);
}

static uint32_t setxattr_flags(const struct fuse_setxattr_in *in, bool is_long)
{
	uint32_t flags = 0;

	if (in->flags & XATTR_CREATE)
		flags |= SETXATTR_CREATE;
	if (in->flags & XATTR_REPLACE)
		flags |= SETXATTR_REPLACE;
	if (is_long && (in->setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID))
		flags |= SETXATTR_KILL_SGID;
	return flags;
}

static int decode_setxattr(struct request *req, struct cursor *c)
{
	bool is_long = is_long_setxattr(c);
	const struct fuse_setxattr_in *in =
		take(c, is_long ? sizeof(*in) : FUSE_COMPAT_SETXATTR_IN_SIZE);
	int err;

	if (!in)
		return -EIO;
	req->args.flags = setxattr_flags(in, is_long);
	req->args.size = in->size;
	err = take_xattr_name(c, &req->args.name);
	if (err)
		return err;
	if (in->size != c->left)
		return -EIO;
	req->args.value = c->at;
	return in->size <= XATTR_VALUE_MAX ? 0 : -E2BIG;
}

static int decode_fallocate(struct request *req, struct cursor *c)
{
	const struct fuse_fallocate_in *in = whole(c, struct fuse_fallocate_in);

	if (!in)
		return -EIO;
	set_fh(req, in->fh);
	req->args.offset = in->offset;
	req->args.len = in->length;
	req->args.mode = in->mode;
	if (!in->length)
		return -EINVAL;
	return range_within(in->offset, in->length, INT64_MAX) ? 0 : -EFBIG;
}

/* Bytes beyond the greatest possible size are left out, as with a read. */
static int decode_copy(struct request *req, struct cursor *c)
{
	const struct fuse_copy_file_range_in *in = whole(c, struct fuse_copy_file_range_in);

	if (!in)
		return -EIO;
	set_fh(req, in->fh_in);
	req->args.offset = in->off_in;
	req->args.node2 = in->nodeid_out;
	req->args.fh2 = in->fh_out;
	req->args.offset2 = in->off_out;
	if (in->flags)
		return -EINVAL;
	if (in->off_in > INT64_MAX || in->off_out > INT64_MAX)
		return -EFBIG;
	req->args.len = min_u64(in->len, INT64_MAX - max_u64(in->off_in, in->off_out));
	return req->args.len || !in->len ? 0 : -EFBIG;
}

/* No other ioctl is known. */
static int decode_ioctl(struct request *req, struct cursor *c)
{
	const struct fuse_ioctl_in *in = start(c, struct fuse_ioctl_in);

	if (!in)
		return -EIO;
	if (in->cmd != REMOUNT_IOCTL || req->node != ROOT_INO)
		return -ENOSYS;
	req->args.flags = in->arg & REMOUNT_FLAGS;
	return decode_finish(c);
}

/* ---- the table ------------------------------------------------------------------------------- */

struct decoder {
	int (*decode)(struct request *req, struct cursor *c);
	enum request_op op;
};

static const struct decoder decoders[] = {
	[FUSE_LOOKUP] = {decode_name, OP_LOOKUP},
	[FUSE_GETATTR] = {decode_getattr, OP_GETATTR},
	[FUSE_SETATTR] = {decode_setattr, OP_SETATTR},
	[FUSE_READLINK] = {decode_empty, OP_READLINK},
	[FUSE_SYMLINK] = {decode_symlink, OP_SYMLINK},
	[FUSE_MKNOD] = {decode_mknod, OP_MKNOD},
	[FUSE_MKDIR] = {decode_mkdir, OP_MKDIR},
	[FUSE_UNLINK] = {decode_name, OP_UNLINK},
	[FUSE_RMDIR] = {decode_name, OP_RMDIR},
	[FUSE_RENAME] = {decode_rename, OP_RENAME},
	[FUSE_RENAME2] = {decode_rename2, OP_RENAME},
	[FUSE_LINK] = {decode_link, OP_LINK},
	[FUSE_OPEN] = {decode_open, OP_OPEN},
	[FUSE_READ] = {decode_read, OP_READ},
	[FUSE_WRITE] = {decode_write, OP_WRITE},
	[FUSE_STATFS] = {decode_empty, OP_STATFS},
	[FUSE_RELEASE] = {decode_release, OP_RELEASE},
	[FUSE_FSYNC] = {decode_fsync, OP_FSYNC},
	[FUSE_FLUSH] = {decode_flush, OP_FLUSH},
	[FUSE_OPENDIR] = {decode_open, OP_OPENDIR},
	[FUSE_READDIR] = {decode_readdir, OP_READDIR},
	[FUSE_READDIRPLUS] = {decode_readdirplus, OP_READDIR},
	[FUSE_RELEASEDIR] = {decode_release, OP_RELEASEDIR},
	[FUSE_FSYNCDIR] = {decode_fsync, OP_FSYNCDIR},
	[FUSE_CREATE] = {decode_create, OP_CREATE},
	[FUSE_LSEEK] = {decode_lseek, OP_LSEEK},
	[FUSE_FALLOCATE] = {decode_fallocate, OP_FALLOCATE},
	[FUSE_COPY_FILE_RANGE] = {decode_copy, OP_COPY},
	[FUSE_TMPFILE] = {decode_tmpfile, OP_TMPFILE},
	[FUSE_STATX] = {decode_statx, OP_STATX},
	[FUSE_IOCTL] = {decode_ioctl, OP_REMOUNT},
	[FUSE_GETLK] = {decode_getlk, OP_GETLK},
	[FUSE_SETLK] = {decode_lk, OP_SETLK},
	[FUSE_SETLKW] = {decode_lk_wait, OP_SETLK},
	[FUSE_GETXATTR] = {decode_getxattr, OP_GETXATTR},
	[FUSE_LISTXATTR] = {decode_listxattr, OP_LISTXATTR},
	[FUSE_SETXATTR] = {decode_setxattr, OP_SETXATTR},
	[FUSE_REMOVEXATTR] = {decode_removexattr, OP_REMOVEXATTR},
};

/* The body without the extensions that newer kernels append to it. */
static int body_of(const struct fuse_in_header *h, size_t len, struct cursor *c)
{
	size_t ext = (size_t)h->total_extlen * 8;

	if (ext > len - sizeof(*h))
		return -EIO;
	c->at = (const uint8_t *)(h + 1);
	c->left = len - sizeof(*h) - ext;
	return 0;
}

int fuse_decode(const void *msg, size_t len, struct request *req)
{
	const struct fuse_in_header *h = msg;
	const struct decoder *decoder;
	struct cursor c;
	int err;

	req->unique = h->unique;
	req->node = h->nodeid;
	req->uid = h->uid;
	req->gid = h->gid;
	req->pid = h->pid;
	if (h->opcode >= ARRAY_SIZE(decoders) || !decoders[h->opcode].decode)
		return -ENOSYS;
	decoder = &decoders[h->opcode];
	req->op = decoder->op;
	err = body_of(h, len, &c);
	return err ? err : decoder->decode(req, &c);
}

bool fuse_decode_has_payload(uint32_t opcode)
{
	return opcode == FUSE_WRITE || opcode == FUSE_SETXATTR;
}

bool fuse_decode_signals_are_untold(const void *msg, size_t len)
{
	const struct fuse_in_header *h = msg;
	const void *in = h + 1;

	switch (h->opcode) {
	case FUSE_FLUSH:
		return true;
	case FUSE_READ:
		return len >= sizeof(*h) + sizeof(struct fuse_read_in) && !reads_for_cache(in);
	case FUSE_WRITE:
		return len >= sizeof(*h) + sizeof(struct fuse_write_in) && !writes_from_cache(in);
	default:
		return false;
	}
}
