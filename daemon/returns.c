#include "daemon/returns.h"

#include <errno.h>

#include "common/log.h"
#include "daemon/fs_internal.h"

void returns_init(struct returns *r)
{
	*r = (struct returns){0};
	list_init(&r->waits);
	pthread_mutex_init(&r->lock, NULL);
}

void returns_fini(struct returns *r)
{
	pthread_mutex_destroy(&r->lock);
	free(r->v);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void send_batch_locked(struct returns *r, struct io_thread *thread);

static void returns_answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct returns *r = container_of(call, struct returns, call);
	struct io_thread *thread = r->thread;
	struct list drained, *link;

	list_init(&drained);

	fs_thread_of(thread)->nbackground--;
	if (rep->status && rep->status != -ESTALE)
		log_warning("the server refused to take back unlinked files: %s",
			errno_text(rep->status));
	pthread_mutex_lock(&r->lock);
	r->sending = false;
	if (r->n && (!list_empty(&r->waits) || r->n >= RETURNS_BATCH))
		send_batch_locked(r, thread);
	else if (!r->n)
		list_splice_tail(&drained, &r->waits);
	pthread_mutex_unlock(&r->lock);
	while ((link = list_pop(&drained))) {
		struct returns_wait *w = list_entry(link, struct returns_wait, link);

		w->drained(w, thread);
	}
}

static void put_batch(struct returns *r, struct wire_out *w, enum rpc_return_kind kind)
{
	for (unsigned i = 0; i < RETURNS_BATCH && r->n; i++) {
		const struct returned_inode *one = &r->v[--r->n];

		if (kind == RETURN_LEASES)
			rpc_put_returned(w, &(struct rpc_returned){.ino = one->ino,
						    .number = one->number,
						    .pin = RETURN_UNPIN});
		else
			wire_put_u64(w, one->ino);
	}
}

static void send_batch_locked(struct returns *r, struct io_thread *thread)
{
	enum rpc_return_kind kind = thread->fs->options.sharing ? RETURN_LEASES : RETURN_INODES;
	struct wire_out w;

	wire_out_init(&w, r->tail, sizeof(r->tail));
	put_batch(r, &w, kind);
	r->sending = true;
	r->thread = thread;
	r->call = (struct rpc_call){.done = returns_answered};
	r->call.req.op = RPC_RETURN;
	r->call.req.ret = (struct rpc_return){
		.kind = kind,
		.tail = {.data = r->tail, .len = (uint32_t)wire_out_len(&w)},
	};
	fs_thread_of(thread)->nbackground++;
	rpc_start(thread, &r->call);
}

void returns_flush(struct io_thread *thread)
{
	struct returns *r = &thread->fs->returns;

	pthread_mutex_lock(&r->lock);
	if (r->n && !r->sending)
		send_batch_locked(r, thread);
	pthread_mutex_unlock(&r->lock);
}

void returns_drain(struct io_thread *thread, struct returns_wait *w,
	void (*drained)(struct returns_wait *w, struct io_thread *thread))
{
	struct returns *r = &thread->fs->returns;
	bool busy;

	w->drained = drained;
	list_init(&w->link);
	pthread_mutex_lock(&r->lock);
	if (r->n && !r->sending)
		send_batch_locked(r, thread);
	busy = r->sending;
	if (busy)
		list_add_tail(&r->waits, &w->link);
	pthread_mutex_unlock(&r->lock);
	if (!busy)
		drained(w, thread);
}

bool returns_pending(struct returns *r)
{
	bool pending;

	pthread_mutex_lock(&r->lock);
	pending = r->n || r->sending;
	pthread_mutex_unlock(&r->lock);
	return pending;
}

/* ---- gathering ------------------------------------------------------------------------------- */

static bool put_locked(struct returns *r, uint64_t ino, uint64_t number)
{
	if (r->n == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : RETURNS_BATCH;
		struct returned_inode *grown = realloc(r->v, cap * sizeof(*grown));

		if (!grown)
			return false;
		r->v = grown;
		r->cap = cap;
	}
	r->v[r->n++] = (struct returned_inode){ino, number};
	return true;
}

/* Without memory for its entry the inode is freed when the session ends. */
void returns_add_later(struct fs *fs, uint64_t ino, uint64_t number)
{
	struct returns *r = &fs->returns;

	pthread_mutex_lock(&r->lock);
	put_locked(r, ino, number);
	pthread_mutex_unlock(&r->lock);
}

void returns_add(struct io_thread *thread, uint64_t ino, uint64_t number)
{
	struct returns *r = &thread->fs->returns;

	pthread_mutex_lock(&r->lock);
	if (put_locked(r, ino, number) && r->n >= RETURNS_BATCH && !r->sending)
		send_batch_locked(r, thread);
	pthread_mutex_unlock(&r->lock);
}

/* A file's pages are wanted by others as soon as no handle is left. */
static bool in_use_locked(const struct inode *inode)
{
	return !inode_is_regular(inode) || inode->nopen || inode->nlinking ||
	       inode->commit.running || !gate_idle(&inode->gate) || !lease_is_idle_locked(inode);
}

void returns_settle(struct inode *inode, struct io_thread *thread)
{
	bool commit = false, give = false;
	uint64_t number = 0;

	pthread_mutex_lock(&inode->lock);
	if (inode->orphan && !inode->returned && !in_use_locked(inode)) {
		/* Pages that were written to are no grants any more, and go with the file. */
		commit = inode->map.uncommitted && !inode->commit.refused &&
			 !commit_is_clean_locked(inode);
		give = !commit;
	}
	if (give) {
		inode->returned = true;
		inode_return_unused_locked(inode);
		lease_end_locked(inode);
		number = inode->lease.number;
	}
	pthread_mutex_unlock(&inode->lock);
	if (commit)
		commit_start(inode, thread);
	if (give)
		returns_add(thread, inode->ino, number);
}

void returns_orphan(struct inode *inode, uint64_t number, struct io_thread *thread)
{
	pthread_mutex_lock(&inode->lock);
	inode->lease.number = max_u64(inode->lease.number, number);
	inode->orphan = true;
	inode->nameless = false;
	inode->attr.nlink = 0;
	pthread_mutex_unlock(&inode->lock);
	returns_settle(inode, thread);
}

void returns_nameless(struct inode *inode)
{
	pthread_mutex_lock(&inode->lock);
	inode->orphan = inode->nameless = true;
	pthread_mutex_unlock(&inode->lock);
}

bool returns_link_begin(struct inode *inode)
{
	bool ok;

	pthread_mutex_lock(&inode->lock);
	ok = !inode->returned;
	inode->nlinking += ok;
	pthread_mutex_unlock(&inode->lock);
	return ok;
}

void returns_link_end(struct inode *inode, bool linked, struct io_thread *thread)
{
	pthread_mutex_lock(&inode->lock);
	inode->nlinking--;
	if (linked && inode->nameless)
		inode->orphan = inode->nameless = false;
	pthread_mutex_unlock(&inode->lock);
	returns_settle(inode, thread);
}
