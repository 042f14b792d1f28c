#include "daemon/admin/look.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "daemon/file/inode.h"
#include "daemon/fuse/receive.h"
#include "daemon/op/fs_parts.h"
#include "daemon/remote/remote.h"
#include "daemon/request/io_thread.h"

/* Signs of life go out each second, so the server has answered a later one. */
#define FOR_MOUNTS_NS INT64_C(2000000000)

/* A thread's answer belongs to that thread while it is on its way. */
struct look_call {
	struct thread_call call;
	struct looks *looks;
	struct io_thread *thread;
	bool on_way; /* under the lock */
	bool late;   /* of the asking thread: it was on its way when it was asked again */
};

struct looks {
	pthread_mutex_t lock;
	pthread_cond_t came;
	unsigned n;
	struct look_call calls[IO_THREADS_MAX];
	struct look asked[IO_THREADS_MAX]; /* filled by the threads */
	struct look told[IO_THREADS_MAX];
};

/* ---- in the I/O thread ----------------------------------------------------------------------- */

/* They come in the order in which they were read. A caller that has its answer waits no more. */
static void list_request(struct request *req, void *arg)
{
	const struct op *op = op_of(req);
	struct look *look = arg;

	bool for_mounts = op->wait == OP_AT_RPC &&
			  clock_ns(CLOCK_BOOTTIME) - req->read_ns >= FOR_MOUNTS_NS &&
			  rpc_may_wait_for_mounts(req->thread, &op->call);

	look->nrequests++;
	if (req->replied)
		return;
	look->nwaiting[op->wait]++;
	if (!look->oldest_ns || req->read_ns < look->oldest_ns)
		look->oldest_ns = req->read_ns;
	if (look->nlisted == LOOK_REQUESTS)
		return;
	look->requests[look->nlisted++] = (struct look_request){
		.op = req->op,
		.wait = op->wait,
		.rpc = op->wait == OP_AT_RPC ? op->call.req.op : 0,
		.for_mounts = for_mounts,
		.ino = op->inode ? op->inode->ino : req->node,
		.pid = req->pid,
		.since_ns = req->read_ns,
	};
}

static void look_run(struct thread_call *call)
{
	struct look_call *c = container_of(call, struct look_call, call);
	struct looks *looks = c->looks;
	struct look *look = &looks->asked[c->thread->index];
	int64_t oldest_ns;
	unsigned nparked;

	nparked = fuse_receive_nparked(c->thread, &oldest_ns);
	*look = (struct look){
		.answered = true,
		.nparked = nparked,
		.oldest_ns = oldest_ns,
		.nlock_waits = list_count(&fs_thread_of(c->thread)->lock_waits),
	};
	remote_look(c->thread, &look->remote);
	io_thread_cpu(c->thread, &look->cpu);
	request_each(c->thread, list_request, look);
	pthread_mutex_lock(&looks->lock);
	c->on_way = false;
	pthread_cond_signal(&looks->came);
	pthread_mutex_unlock(&looks->lock);
}

/* ---- in the thread that asks ----------------------------------------------------------------- */

int looks_new(struct io_thread *first, struct looks **out)
{
	struct looks *looks = calloc(1, sizeof(*looks));
	pthread_condattr_t attr;

	if (!looks)
		return -ENOMEM;
	pthread_mutex_init(&looks->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&looks->came, &attr);
	pthread_condattr_destroy(&attr);
	looks->n = io_thread_siblings(first);
	for (unsigned i = 0; i < looks->n; i++) {
		looks->calls[i] = (struct look_call){
			.call = {.run = look_run},
			.looks = looks,
			.thread = io_thread_sibling(first, i),
		};
		list_init(&looks->calls[i].call.link);
	}
	*out = looks;
	return 0;
}

void looks_delete(struct looks *looks)
{
	if (!looks)
		return;
	pthread_cond_destroy(&looks->came);
	pthread_mutex_destroy(&looks->lock);
	free(looks);
}

/* A thread whose last answer has not come is not asked again. */
static void ask_all(struct looks *looks)
{
	for (unsigned i = 0; i < looks->n; i++) {
		struct look_call *c = &looks->calls[i];
		bool asked;

		pthread_mutex_lock(&looks->lock);
		asked = c->late = c->on_way;
		c->on_way = true;
		pthread_mutex_unlock(&looks->lock);
		if (!asked)
			io_thread_call(c->thread, &c->call);
	}
}

/* A thread that did not answer last time is not waited for again. */
static bool all_came(const struct looks *looks)
{
	for (unsigned i = 0; i < looks->n; i++)
		if (looks->calls[i].on_way && !looks->calls[i].late)
			return false;
	return true;
}

const struct look *looks_take(struct looks *looks, unsigned limit_ms, unsigned *n)
{
	int64_t until = clock_ns(CLOCK_MONOTONIC) + limit_ms * INT64_C(1000000);
	const struct timespec at = {until / 1000000000, until % 1000000000};

	ask_all(looks);
	pthread_mutex_lock(&looks->lock);
	while (!all_came(looks) &&
		pthread_cond_timedwait(&looks->came, &looks->lock, &at) != ETIMEDOUT)
		continue;
	for (unsigned i = 0; i < looks->n; i++) {
		if (!looks->calls[i].on_way)
			looks->told[i] = looks->asked[i];
		else
			looks->told[i].answered = false;
	}
	pthread_mutex_unlock(&looks->lock);
	*n = looks->n;
	return looks->told;
}
