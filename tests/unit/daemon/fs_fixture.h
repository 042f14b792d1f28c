/* fs_fixture.h - a filesystem of a sharing mount. The test itself turns its threads' loops: only
 * the test reads requests and messages, and notifications to the kernel stay queued.
 */
#ifndef RMEMFS_TESTS_FS_FIXTURE_H
#define RMEMFS_TESTS_FS_FIXTURE_H

#include <fcntl.h>
#include <linux/fuse.h>
#include <unistd.h>

#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/serve/threads.h"
#include "daemon/op/op.h"
#include "daemon/remote/remote_private.h"
#include "daemon/serve/fs_block.h"

enum { FIXTURE_INO = 71, FIXTURE_THREADS = 3, FIXTURE_REQUESTS = 4, FIXTURE_WAITS = INT32_MAX };
/* No thread and no process have these numbers. */
enum { FIXTURE_ENDED = INT32_MAX, FIXTURE_ENDED_PROCESS = INT32_MAX - 1 };

struct fs_fixture {
	union {
		struct fs fs;
		struct fs_block block;
	};
	struct session session;
	struct remote remotes[FIXTURE_THREADS]; /* of one slot each, and no channel */
	struct io_threads *group;
	struct io_thread *threads[FIXTURE_THREADS];
	struct inode *inode;  /* a regular file, which the kernel knows */
	struct handle handle; /* open handle of inode */
	struct request *requests[FIXTURE_REQUESTS];
	int kernel[2]; /* a pipe: the read end for the kernel, and the end to write to it */
};

static inline void fs_fixture_thread(struct fs_fixture *fx, unsigned i)
{
	struct io_thread *thread = fx->threads[i] = io_threads_thread(fx->group, i);
	struct remote *r = &fx->remotes[i];

	thread->fs = &fx->fs;
	thread->remote = r;
	thread->priv->fuse_fd = fx->kernel[1];
	*r = (struct remote){.thread = thread, .session = &fx->session, .connect_ms = INT64_MAX};
	slots_init(r);
	transfers_init(r);
	r->nslots = r->free_slots = 1;
	fs_thread_prepare(&fx->fs, thread);
	fx->fs.threads[i].next_commit_ms = fx->fs.threads[i].next_idle_ms = INT64_MAX;
}

static inline void fs_fixture_notifier(struct notifier *n)
{
	list_init(&n->jobs);
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->filled, NULL);
}

/* Returns 0 or -1, as a test's setup. */
static inline int fs_fixture_init(struct fs_fixture *fx)
{
	const struct fs_options options = {
		.session = {.sharing = true, .io_threads = FIXTURE_THREADS}};
	struct spinning none = {0};

	memset(fx, 0, sizeof(*fx));
	if (fs_init(&fx->block, &options) || pipe2(fx->kernel, O_NONBLOCK) ||
		io_threads_new(FIXTURE_THREADS, 1, &none, &fx->group))
		return -1;
	fx->fs.session = &fx->session;
	fx->session.sharing = true;
	fx->session.nchannels = FIXTURE_THREADS;
	pthread_mutex_init(&fx->session.lock, NULL);
	fs_fixture_notifier(&fx->fs.notifier);
	fs_fixture_notifier(&fx->fs.expirer);
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		fs_fixture_thread(fx, i);
	fx->inode = inode_get(&fx->fs, FIXTURE_INO);
	fx->inode->type = S_IFREG;
	inode_remember(fx->inode);
	fx->handle.inode = fx->inode;
	return 0;
}

static inline void fs_fixture_fini(struct fs_fixture *fx)
{
	inode_forget(fx->inode, 1);
	inode_put(fx->inode);
	fs_fini(&fx->fs);
	io_threads_delete(fx->group);
	close(fx->kernel[0]);
	close(fx->kernel[1]);
}

/* Thread i runs the calls that others have made to it. */
static inline void fs_fixture_turn(struct fs_fixture *fx, unsigned i)
{
	struct list *link;

	while ((link = list_pop(&fx->threads[i]->priv->inbox))) {
		struct thread_call *call = list_entry(link, struct thread_call, link);

		call->run(call);
	}
}

/* Request i, which that thread has read but not begun. Its process has ended. */
static inline struct request *fs_fixture_make(
	struct fs_fixture *fx, unsigned i, unsigned thread, enum request_op op)
{
	struct request *req = fx->requests[i] = request_new(fx->threads[thread]);

	req->op = op;
	req->node = FIXTURE_INO;
	req->uid = req->gid = 0;
	req->pid = FIXTURE_ENDED;
	req->process = FIXTURE_ENDED_PROCESS;
	req->unique = i + 1;
	req->args.name = "name";
	return req;
}

/* A message that a thread has read and has no room for; by default the first piece of an append. It
 * lies as struct parked of fuse/receive.c does. */
struct fs_fixture_parked {
	struct list link;
	size_t len;
	bool stays, interrupted;
	uint32_t process;
	int64_t since_ms, read_ns;
	_Alignas(16) struct fuse_in_header head;
	struct fuse_write_in write;
};

static inline void fs_fixture_park(
	struct fs_fixture *fx, unsigned thread, struct fs_fixture_parked *parked)
{
	struct io_thread_private *priv = fx->threads[thread]->priv;

	*parked = (struct fs_fixture_parked){
		.head = {.opcode = FUSE_WRITE, .nodeid = FIXTURE_INO},
		.write = {.flags = O_WRONLY | O_APPEND},
	};
	list_add_tail(&priv->parked, &parked->link);
	priv->any_parked = true;
}

static inline void fs_fixture_unpark(
	struct fs_fixture *fx, unsigned thread, struct fs_fixture_parked *parked)
{
	list_del(&parked->link);
	fx->threads[thread]->priv->any_parked = false;
}

/* The status that the caller of request i got; FIXTURE_WAITS: none yet. */
static inline int fs_fixture_told(struct fs_fixture *fx, unsigned i)
{
	struct fuse_out_header h;

	if (read(fx->kernel[0], &h, sizeof(h)) < 0)
		return FIXTURE_WAITS;
	assert_int_equal(h.unique, i + 1);
	return h.error;
}

#endif
