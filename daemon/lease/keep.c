#include "daemon/lease/keep.h"

#include <errno.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/inode.h"
#include "daemon/lease/lease.h"

/* How many leases are looked at for one batch, and the share of all that leaves at once. */
enum { LOOKS = 4 * LEASES_BATCH, LEAVING_SHARE = 8 };

static void called(struct thread_call *call);

void lease_keeper_init(struct lease_keeper *k)
{
	*k = (struct lease_keeper){.call = {.run = called}};
	pthread_mutex_init(&k->lock, NULL);
	list_init(&k->listed);
	list_init(&k->leaving);
	list_init(&k->sent);
	list_init(&k->call.link);
}

void lease_keeper_fini(struct lease_keeper *k)
{
	pthread_mutex_destroy(&k->lock);
}

static struct inode *inode_listed(struct list *link)
{
	return list_entry(link, struct inode_lease, listed)->inode;
}

static struct inode *inode_leaving(struct list *link)
{
	return list_entry(link, struct inode_lease, leaving)->inode;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static bool too_many(const struct lease_keeper *k, const struct fs *fs)
{
	return k->nlisted - min_u64(k->nlisted, k->nleaving) >= session_lease_limit(fs->session);
}

/* Other inodes can't be locked under this inode's lock, so the thread does it later. */
static void call(struct lease_keeper *k, struct io_thread *thread)
{
	if (k->called)
		return;
	k->called = true;
	k->caller = thread;
	io_thread_call(thread, &k->call);
}

void lease_list_locked(struct inode *inode, struct io_thread *thread)
{
	struct lease_keeper *k = inode->fs->leases;

	pthread_mutex_lock(&k->lock);
	list_add_tail(&k->listed, &inode->lease->listed);
	k->nlisted++;
	if (too_many(k, inode->fs))
		call(k, thread);
	pthread_mutex_unlock(&k->lock);
}

/* If these are too many, the next one that comes has some leave. */
void lease_keep_adopt_locked(struct inode *inode)
{
	struct lease_keeper *k = inode->fs->leases;

	pthread_mutex_lock(&k->lock);
	list_add_tail(&k->listed, &inode->lease->listed);
	k->nlisted++;
	pthread_mutex_unlock(&k->lock);
}

void lease_unlist_locked(struct inode *inode)
{
	struct lease_keeper *k = inode->fs->leases;

	pthread_mutex_lock(&k->lock);
	list_del(&inode->lease->listed);
	k->nlisted--;
	pthread_mutex_unlock(&k->lock);
}

void lease_leave_later_locked(struct inode *inode, struct io_thread *thread)
{
	struct lease_keeper *k = inode->fs->leases;

	pthread_mutex_lock(&k->lock);
	if (list_empty(&inode->lease->leaving)) {
		inode_ref(inode);
		list_add_tail(&k->leaving, &inode->lease->leaving);
		if (++k->nleaving >= LEASES_BATCH)
			call(k, thread);
	}
	pthread_mutex_unlock(&k->lock);
}

/* ---- who leaves ------------------------------------------------------------------------------ */

/* Takes the inode that was looked at least recently, and moves it to the end. One that was used
 * since then gets another chance. */
static struct inode *look_at_first(struct lease_keeper *k, bool chance)
{
	struct list *first = k->listed.next;
	struct inode *inode = inode_listed(first);
	bool used = __atomic_exchange_n(&inode->lease->used, false, __ATOMIC_RELAXED);

	list_del(first);
	list_add_tail(&k->listed, first);
	if ((used && chance) || !list_empty(&inode->lease->leaving))
		return NULL;
	return inode_try_ref(inode) ? inode : NULL;
}

static unsigned keep_choose(struct lease_keeper *k, const struct fs *fs, struct inode *chosen[])
{
	uint64_t limit = session_lease_limit(fs->session), want;
	unsigned n = 0;

	pthread_mutex_lock(&k->lock);
	want = too_many(k, fs) ? k->nlisted - k->nleaving - limit + 1 + limit / LEAVING_SHARE : 0;
	want = min_u64(want, LEASES_BATCH);
	for (unsigned i = 0; n < want && i < k->nlisted && i < LOOKS + LEASES_BATCH; i++) {
		chosen[n] = look_at_first(k, i < LOOKS);
		n += chosen[n] != NULL;
	}
	pthread_mutex_unlock(&k->lock);
	return n;
}

static void evict(struct io_thread *thread)
{
	struct inode *chosen[LEASES_BATCH];
	unsigned n = keep_choose(thread->fs->leases, thread->fs, chosen);

	for (unsigned i = 0; i < n; i++)
		lease_evict(chosen[i], thread);
}

/* ---- batches --------------------------------------------------------------------------------- */

static void send_batches(struct io_thread *thread);

static struct inode *take_sent(struct lease_keeper *k)
{
	struct list *link;

	pthread_mutex_lock(&k->lock);
	link = list_pop(&k->sent);
	pthread_mutex_unlock(&k->lock);
	return link ? inode_leaving(link) : NULL;
}

static void batch_answered(struct rpc_call *rpc, const struct rpc_reply *rep)
{
	struct lease_keeper *k = container_of(rpc, struct lease_keeper, rpc);
	struct io_thread *thread = k->thread;
	struct inode *inode;
	bool full;

	if (rep->status && rep->status != -ESTALE)
		log_error("the server refused to take leases back: %s", errno_text(rep->status));
	while ((inode = take_sent(k)))
		lease_left(inode, thread);
	pthread_mutex_lock(&k->lock);
	k->sending = false;
	full = k->nleaving >= LEASES_BATCH;
	pthread_mutex_unlock(&k->lock);
	if (full)
		send_batches(thread);
}

/* Moves leaving leases to the batch. False: there are none, or another batch is on its way. */
static bool take_batch(struct lease_keeper *k)
{
	bool any;

	pthread_mutex_lock(&k->lock);
	any = !k->sending && k->nleaving;
	k->sending |= any;
	for (unsigned i = 0; any && i < LEASES_BATCH && k->nleaving; i++, k->nleaving--)
		list_add_tail(&k->sent, list_pop(&k->leaving));
	pthread_mutex_unlock(&k->lock);
	return any;
}

/* Leaves out leases that are wanted again, and those that must be committed first: these come
 * back. */
static void keep_put_batch(struct lease_keeper *k, struct io_thread *thread, struct wire_out *w)
{
	list_for_each_safe (pos, &k->sent) {
		struct inode *inode = inode_leaving(pos);
		struct rpc_returned returned;
		bool leaves;

		pthread_mutex_lock(&inode->lock);
		leaves = lease_leave_locked(inode, thread, &returned);
		if (!leaves) {
			pthread_mutex_lock(&k->lock);
			list_del(pos);
			pthread_mutex_unlock(&k->lock);
		}
		pthread_mutex_unlock(&inode->lock);
		if (leaves)
			rpc_put_returned(w, &returned);
		else
			inode_put(inode);
	}
}

static void send_batches(struct io_thread *thread)
{
	struct lease_keeper *k = thread->fs->leases;
	struct wire_out w;

	wire_out_init(&w, k->tail, sizeof(k->tail));
	while (!wire_out_len(&w)) {
		if (!take_batch(k))
			return;
		keep_put_batch(k, thread, &w);
		if (wire_out_len(&w))
			break;
		pthread_mutex_lock(&k->lock);
		k->sending = false;
		pthread_mutex_unlock(&k->lock);
	}
	k->thread = thread;
	k->rpc = (struct rpc_call){.done = batch_answered};
	list_init(&k->rpc.link);
	k->rpc.req.op = RPC_RETURN;
	k->rpc.req.ret = (struct rpc_return){
		.kind = RETURN_LEASES,
		.tail = {.data = k->tail, .len = (uint32_t)wire_out_len(&w)},
	};
	rpc_start(thread, &k->rpc);
}

void lease_keep_flush(struct io_thread *thread)
{
	send_batches(thread);
}

bool lease_keep_give_all(struct io_thread *thread)
{
	struct lease_keeper *k = thread->fs->leases;
	bool idle;

	pthread_mutex_lock(&k->lock);
	idle = !k->sending && !k->nleaving && !k->called;
	pthread_mutex_unlock(&k->lock);
	if (!idle)
		send_batches(thread);
	return idle;
}

static void called(struct thread_call *thread_call)
{
	struct lease_keeper *k = container_of(thread_call, struct lease_keeper, call);
	struct io_thread *thread;

	pthread_mutex_lock(&k->lock);
	k->called = false;
	thread = k->caller;
	pthread_mutex_unlock(&k->lock);
	evict(thread);
	send_batches(thread);
}

/* ---- what is given back in ignorance --------------------------------------------------------- */

void lease_note(struct fs *fs, uint64_t ino)
{
	struct lease_keeper *k = fs->leases;
	uint64_t n;

	pthread_mutex_lock(&k->lock);
	n = atomic_load_explicit(&k->nnoted, memory_order_relaxed);
	k->noted[n % LEASES_NOTED] = ino;
	atomic_store_explicit(&k->nnoted, n + 1, memory_order_relaxed);
	pthread_mutex_unlock(&k->lock);
}

uint64_t lease_notes(struct fs *fs)
{
	return atomic_load_explicit(&fs->leases->nnoted, memory_order_relaxed);
}

bool lease_noted_since(struct fs *fs, uint64_t notes, uint64_t ino)
{
	struct lease_keeper *k = fs->leases;
	uint64_t n;
	bool noted;

	pthread_mutex_lock(&k->lock);
	n = atomic_load_explicit(&k->nnoted, memory_order_relaxed);
	noted = n - notes > LEASES_NOTED;
	for (; !noted && notes < n; notes++)
		noted = k->noted[notes % LEASES_NOTED] == ino;
	pthread_mutex_unlock(&k->lock);
	return noted;
}

void lease_keep_hold(struct fs *fs, bool held)
{
	atomic_store(&fs->leases->held, held);
}

bool lease_keep_is_held(const struct fs *fs)
{
	return atomic_load(&fs->leases->held);
}
