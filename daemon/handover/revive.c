/* revive.c - see revive.h. */
#include "daemon/handover/revive.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/barrier/conversion.h"
#include "daemon/file/inherited.h"
#include "daemon/file/inode_return.h"
#include "daemon/file/transfer.h"
#include "daemon/handover/describe.h"
#include "daemon/handover/state.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/kcache/stale_pages.h"
#include "daemon/lock/local_locks.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/op/fs_parts.h"
#include "daemon/record/record.h"

enum { LOOK_MS = 5 };

/* Pages of a file are dropped in steps. The first one may be all: mostly there are few. */
static const uint64_t FIRST_STEP = UINT64_C(1) << 62;

/* ---- recording ------------------------------------------------------------------------------- */

static void set_revivable(struct fs *fs, bool revivable)
{
	fs->requests.revivable = revivable;
	if (revivable)
		transfer_make_zeros_present();
}

void revive_begin_record(struct fs *fs, struct io_thread *threads, struct record *record)
{
	session_record(fs->session, threads, record);
	fs->record = record;
	set_revivable(fs, record);
	if (fs->root && !record)
		fs->root->note = NULL;
}

int revive_record(
	struct fs *fs, struct io_thread *threads, uint8_t *state, size_t room, uint32_t *len)
{
	struct mount_state mount = {0};
	struct wire_out w;
	int owner = session_describe_facts(fs->session, &mount.session);

	describe_options(fs, &mount);
	wire_out_init(&w, state, room);
	state_put(&w, &mount);
	assert(!w.overflow);
	*len = (uint32_t)wire_out_len(&w);
	return owner;
}

/* ---- adopting -------------------------------------------------------------------------------- */

struct adopting {
	struct fs *fs;
	struct revived *revived;
};

static int count_handle(struct record_handle *entry, void *arg)
{
	size_t *n = arg;

	++*n;
	return 0;
}

static int name_handle(struct record_handle *entry, void *arg)
{
	struct adopting *a = arg;
	uint64_t number = atomic_load(&entry->number);

	return number ? inherited_name(a->fs->inherited, number) : -EPROTO;
}

static int revive_adopt_handle(struct record_handle *entry, void *arg)
{
	struct adopting *a = arg;
	uint32_t flags = atomic_load(&entry->flags);
	struct handle_state state = {
		.number = atomic_load(&entry->number),
		.kind = (uint8_t)(flags >> HANDLE_KIND_SHIFT),
		.writes = flags & HANDLE_WRITES,
		.stores = flags & HANDLE_STORES,
		.appends = flags & HANDLE_APPENDS,
		.appended = flags & HANDLE_APPENDS,
		.flushed = true,
		.opened_by = entry->opened_by,
	};
	struct inode *inode = inode_find(a->fs, entry->ino);
	int err = inode ? inodes_adopt_handle(inode, &state) : 0;

	/* The kernel has not got the answer that told it of both. */
	if (!inode)
		atomic_store(&entry->flags, 0);
	/* Pages that were read into the cache beside a direct handle: nobody knows which. */
	if (!err && inode)
		stale_pages_read_locked(inode, 0, INT64_MAX);
	a->revived->nhandles += inode != NULL;
	if (inode)
		inode_put(inode);
	return err;
}

/* The record does not say what the kernel has of it, and others may come, who change it. So the
 * kernel may have all pages, perhaps mapped, and check by any owner. When it became alone, the
 * kernel went by no end that it was told while others were there (kernel_pages.h). */
static int revive_adopt_cache(struct fs *fs, uint64_t ino)
{
	const struct cached_pages all = {
		.ranges = {{.from = 0, .to = (uint64_t)INT64_MAX + 1}},
		.nranges = 1,
		.step = FIRST_STEP,
		.mapped = true,
		.was_raised = atomic_load(&fs->has_shared),
	};
	struct inode *inode = fs_may_share(fs) ? inode_find(fs, ino) : NULL;
	int err = 0;

	if (!inode)
		return 0;
	pthread_mutex_lock(&inode->lock);
	if (inode_is_regular(inode))
		err = kernel_pages_adopt_locked(inode, &all);
	kernel_owner_share_locked(inode);
	pthread_mutex_unlock(&inode->lock);
	inode_put(inode);
	return err;
}

/* A loss is told once to each handle: commit.h. */
static int revive_adopt_inode(struct record_inode *entry, void *arg)
{
	struct adopting *a = arg;
	bool lost = atomic_load(&entry->marks) & MARK_AT_RISK;
	struct inode_state state = {
		.ino = atomic_load(&entry->ino),
		.nlookup = atomic_load(&entry->nlookup),
		.type = entry->type,
		.changed = true,
		.stale = S_ISREG(entry->type),
		.caps = true,
		.error = lost ? -EIO : 0,
		.nfailures = lost,
	};
	uint32_t marks = atomic_load(&entry->marks);
	int err = inodes_adopt(a->fs, &state, NULL);

	if (!err)
		err = revive_adopt_cache(a->fs, state.ino);
	/* revive_settle() and revive_drop_lost() look at them. */
	atomic_store(&entry->marks, marks);
	a->revived->ninodes++;
	a->revived->nlost += lost;
	return err;
}

/* Of a handle that is not there any more: it was closed, and the lock goes with it. */
static int adopt_lock(struct fs *fs, const struct record_lock *recorded)
{
	struct lock_owner_kept owner = {
		.kernel = recorded->owner, .handle = recorded->handle, .kind = recorded->kind};
	struct lock lock = {.start = recorded->start,
		.end = recorded->end,
		.pid = recorded->pid,
		.kind = recorded->kind,
		.type = recorded->type};
	struct inode *inode = inode_find(fs, atomic_load(&recorded->ino));
	int err;

	if (!inode)
		return 0;
	pthread_mutex_lock(&inode->lock);
	err = lock_owner_revive_locked(inode, &owner, &lock.owner);
	if (!err)
		err = local_locks_adopt_locked(inode, &lock);
	pthread_mutex_unlock(&inode->lock);
	inode_put(inode);
	return err == -ENOENT ? 0 : err;
}

/* Copies, since each that is adopted is recorded anew. */
struct recorded_locks {
	struct record_lock *v;
	size_t n;
};

static int count_lock(const struct record_lock *entry, void *arg)
{
	struct recorded_locks *all = arg;

	all->n++;
	return 0;
}

static int copy_lock(const struct record_lock *entry, void *arg)
{
	struct recorded_locks *all = arg;

	memcpy(&all->v[all->n++], entry, sizeof(*entry));
	return 0;
}

/* Of one owner those from before a change may be there, and those from after it. Exclusive ones
 * come last, so they win. */
static int adopt_copies(struct fs *fs, const struct recorded_locks *all)
{
	int err = 0;

	for (unsigned type = LOCK_SHARED; type <= LOCK_EXCLUSIVE; type++)
		for (size_t i = 0; !err && i < all->n; i++)
			if (all->v[i].type == type)
				err = adopt_lock(fs, &all->v[i]);
	return err;
}

static int adopt_locks(struct fs *fs, struct record *record)
{
	struct recorded_locks all = {0};
	unsigned alone;
	int err;

	if (!fs_may_share(fs))
		return 0;
	local_locks_begin(fs);
	record_each_lock(record, count_lock, &all);
	all.v = calloc(all.n + 1, sizeof(*all.v));
	if (!all.v)
		return -ENOMEM;
	all.n = 0;
	record_each_lock(record, copy_lock, &all);
	/* A daemon that was killed meanwhile would leave a record that lacks some. */
	alone = atomic_load(&record_head(record)->alone);
	record_set_alone(record, false);
	record_forget_locks(record);
	err = adopt_copies(fs, &all);
	if (!err)
		record_set_alone(record, alone);
	free(all.v);
	return err;
}

static int adopt_files(struct adopting *a, struct record *record)
{
	size_t nhandles = 0;
	int err = record_each_handle(record, false, count_handle, &nhandles);

	if (!err)
		err = inherited_new(nhandles, &a->fs->inherited);
	if (!err)
		err = record_each_handle(record, false, name_handle, a);
	if (!err)
		err = record_each_inode(record, true, revive_adopt_inode, a);
	if (!err)
		err = record_each_handle(record, true, revive_adopt_handle, a);
	if (!err)
		record_sweep(record);
	if (!err)
		err = adopt_locks(a->fs, record);
	return err;
}

static int adopt_session(struct fs *fs, struct io_thread *threads, struct record *record,
	int *owner_fd, char *why, size_t whylen)
{
	const struct record_head *head = record_head(record);
	struct mount_state mount;
	struct wire_in r;
	int err;

	wire_in_init(&r, head->state, head->state_bytes);
	err = state_get(&r, &mount);
	if (!err && mount.session.nchannels != head->io_threads)
		err = -EPROTO;
	if (err)
		return err;
	mount.session.read_only = atomic_load(&head->read_only);
	/* It may have shared when it was recorded. It does not now, or it would not be revived. */
	mount.session.sharing = false;
	err = describe_adopt_options(fs, &mount, why, whylen);
	if (err)
		return err;
	session_adopt_slots(record, &mount.session);
	err = session_adopt(fs->session, threads, &mount.session, *owner_fd, why, whylen);
	if (err)
		return err;
	steal_fd(owner_fd);
	session_record(fs->session, threads, record);
	return session_replay(fs->session, threads);
}

int revive_adopt(struct fs *fs, struct io_thread *threads, struct record *record, int owner_fd,
	struct revived *revived, char *why, size_t whylen)
{
	autoclose int owner = owner_fd;
	struct adopting a = {.fs = fs, .revived = revived};
	int err;

	*why = '\0';
	*revived = (struct revived){0};
	err = adopt_session(fs, threads, record, &owner, why, whylen);
	fs->record = record;
	set_revivable(fs, true);
	fs->revived = true;
	if (fs_may_share(fs))
		conversion_revive(fs);
	if (!err)
		err = adopt_files(&a, record);
	if (err && !*why)
		snprintf(why, whylen, "the record of the mount can't be used: %s", errno_text(err));
	return err;
}

/* ---- settling -------------------------------------------------------------------------------- */

/* Thread 0 does one after the other: what was lent goes back, then each file without a name is
 * asked for. */
struct settling {
	struct io_thread *thread;
	struct thread_call call;
	struct rpc_call rpc;
	struct inode *at; /* the one that is asked for, or NULL; referenced */
	uint64_t epoch;
	struct inode **orphans;
	bool *nameless;
	size_t n, next, room;
	int err;
	int done_fd;
};

static void settling_end(struct settling *s, int err)
{
	s->err = err;
	eventfd_write(s->done_fd, 1);
}

static void ask_next(struct settling *s);

/* Returned before it died, or by the server's removal of the export's records: the kernel's use of
 * it gets ESTALE. */
static void orphan_answered(struct rpc_call *rpc, const struct rpc_reply *rep)
{
	struct settling *s = container_of(rpc, struct settling, rpc);
	struct inode *inode = s->orphans[s->next];
	bool nameless = s->nameless[s->next];

	s->next++;
	if (!rep->status && inode_learn(inode, &rep->attr.attr, s->epoch, NULL) &&
		!rep->attr.attr.nlink) {
		if (nameless)
			inode_return_nameless(inode);
		else
			inode_return_orphan(inode, 0, s->thread);
	}
	ask_next(s);
}

static void ask_next(struct settling *s)
{
	if (s->next == s->n) {
		settling_end(s, 0);
		return;
	}
	s->epoch = inode_epoch(s->thread->fs);
	s->rpc = (struct rpc_call){.done = orphan_answered};
	s->rpc.req.op = RPC_GETATTR;
	s->rpc.req.ino = (struct rpc_ino_request){.ino = s->orphans[s->next]->ino};
	list_init(&s->rpc.link);
	rpc_start(s->thread, &s->rpc);
}

static void give_all_back(struct settling *s);

static void given_back(struct rpc_call *rpc, const struct rpc_reply *rep)
{
	struct settling *s = container_of(rpc, struct settling, rpc);

	if (rep->status == -EINPROGRESS)
		give_all_back(s);
	else if (rep->status)
		settling_end(s, rep->status);
	else
		ask_next(s);
}

static void give_all_back(struct settling *s)
{
	s->rpc = (struct rpc_call){.done = given_back};
	s->rpc.req.op = RPC_RETURN;
	s->rpc.req.ret = (struct rpc_return){.kind = RETURN_ALL};
	list_init(&s->rpc.link);
	rpc_start(s->thread, &s->rpc);
}

static void settle_run(struct thread_call *call)
{
	give_all_back(container_of(call, struct settling, call));
}

static int find_orphan(struct record_inode *entry, void *arg)
{
	struct settling *s = arg;
	uint32_t marks = atomic_load(&entry->marks);

	if (!(marks & MARK_ORPHAN))
		return 0;
	if (s->n == s->room) {
		size_t room = s->room ? s->room * 2 : 64;
		struct inode **orphans = realloc(s->orphans, room * sizeof(*orphans));
		bool *nameless;

		if (!orphans)
			return -ENOMEM;
		s->orphans = orphans;
		nameless = realloc(s->nameless, room * sizeof(*nameless));
		if (!nameless)
			return -ENOMEM;
		s->nameless = nameless;
		s->room = room;
	}
	s->orphans[s->n] = inode_find(s->thread->fs, atomic_load(&entry->ino));
	s->nameless[s->n] = marks & MARK_NAMELESS;
	s->n += s->orphans[s->n] != NULL;
	return 0;
}

static int await_whole(struct fs *fs, int64_t until)
{
	while (!session_is_whole(fs->session)) {
		if (session_lost(fs->session) || session_has_ended(fs->session))
			return -ESTALE;
		if (now_ms() >= until)
			return -ETIMEDOUT;
		poll(NULL, 0, LOOK_MS);
	}
	return 0;
}

/* After a timeout the thread still uses it: the process ends then. */
static int await_settled(struct settling *s, int64_t until)
{
	struct pollfd pfd = {.fd = s->done_fd, .events = POLLIN};
	int64_t left = max_i64(0, until - now_ms());

	io_thread_call(s->thread, &s->call);
	return poll(&pfd, 1, (int)left) == 1 ? s->err : -ETIMEDOUT;
}

static void settling_fini(struct settling *s)
{
	for (size_t i = 0; i < s->n; i++)
		inode_put(s->orphans[i]);
	free(s->orphans);
	free(s->nameless);
	close(s->done_fd);
	free(s);
}

int revive_settle(struct fs *fs, struct io_thread *threads, struct record *record, int limit_ms,
	char *why, size_t whylen)
{
	struct settling *s = calloc(1, sizeof(*s));
	int64_t until = now_ms() + limit_ms;
	int err = s ? await_whole(fs, until) : -ENOMEM;

	if (!err) {
		s->thread = &threads[0];
		s->call.run = settle_run;
		list_init(&s->call.link);
		s->done_fd = eventfd(0, EFD_CLOEXEC);
		err = s->done_fd < 0 ? -errno : record_each_inode(record, false, find_orphan, s);
	}
	if (!err)
		err = await_settled(s, until);
	if (err) {
		snprintf(why, whylen, "the server did not take the session up again: %s",
			errno_text(err));
		return err;
	}
	settling_fini(s);
	return 0;
}

/* ---- what was lost --------------------------------------------------------------------------- */

struct dropping {
	struct fs *fs;
	struct fuse_port *port;
};

struct drop_job {
	struct notifier_job job;
};

static void job_done(struct notifier_job *job)
{
	free(container_of(job, struct drop_job, job));
}

static int drop_lost(struct record_inode *entry, void *arg)
{
	struct dropping *d = arg;
	uint32_t marks = atomic_load(&entry->marks);
	bool lost = marks & MARK_AT_RISK;
	struct drop_job *drop;

	if (!(marks & (MARK_AT_RISK | MARK_TOUCHED)))
		return 0;
	drop = calloc(1, sizeof(*drop));
	if (!drop)
		return -ENOMEM;
	drop->job = (struct notifier_job){
		.port = d->port,
		.node = atomic_load(&entry->ino),
		.off = lost ? 0 : -1,
		.done = job_done,
	};
	notifier_add(lost ? &d->fs->dropper : &d->fs->notifier, &drop->job);
	return 0;
}

void revive_drop_lost(struct fs *fs, struct fuse_port *port, struct record *record)
{
	struct dropping d = {fs, port};

	if (record_each_inode(record, false, drop_lost, &d))
		log_warning("out of memory: the kernel may show bytes that are lost");
}
