/* sharing.c - see sharing.h. */
#include "daemon/handover/sharing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/file/inode.h"
#include "daemon/handover/inodes.h"
#include "daemon/kcache/kernel_attr.h"
#include "daemon/lease/local_answer.h"
#include "daemon/lock/local_locks.h"
#include "daemon/op/fs_parts.h"

/* ---- counting -------------------------------------------------------------------------------- */

struct counting {
	struct sharing_state *state;
	uint64_t busy; /* an inode; 0: none */
};

static bool keeps_still_locked(const struct inode *inode)
{
	return lease_keeps_still_locked(inode) && kernel_pages_keep_still_locked(inode) &&
	       !inode->told->thread && list_empty(&inode->locks->leaving) &&
	       !inode->appends->inside && list_empty(&inode->appends->waiting);
}

static bool has_something_locked(const struct inode *inode)
{
	return inode->lease_type != LEASE_NONE || inode->lease->pinned || inode->lease->unsure ||
	       !list_empty(&inode->locks->owners);
}

static size_t nlocks_of_locked(const struct inode *inode)
{
	return inode->locks->local ? inode->locks->local->n : 0;
}

static void count_inode(struct inode *inode, void *arg)
{
	struct counting *c = arg;
	bool told = inodes_is_to_be_described(inode);

	pthread_mutex_lock(&inode->lock);
	if (!keeps_still_locked(inode) || (!told && has_something_locked(inode)))
		c->busy = inode->ino;
	c->state->ninodes += told;
	c->state->npages += told && inode->cached->pages;
	c->state->nowners += told ? lock_owners_describe_locked(inode, NULL, 0) : 0;
	c->state->nlocks += told ? nlocks_of_locked(inode) : 0;
	pthread_mutex_unlock(&inode->lock);
}

static void count_name(const struct kernel_names_kept *kept, void *arg)
{
	struct sharing_state *state = arg;

	state->nnames++;
}

static void count_message(const struct fuse_parked *message, void *arg)
{
	struct sharing_state *state = arg;

	state->nmessages++;
	state->message_bytes += message->len;
}

/* The mount's messages, thread by thread. */
static void each_message(
	struct fs *fs, void (*fn)(const struct fuse_parked *message, void *arg), void *arg)
{
	for (unsigned i = 0; i < fs->options.session.io_threads; i++)
		fuse_receive_each_parked(fs->threads[i].thread, fn, arg);
}

uint64_t sharing_count(struct fs *fs, struct sharing_state *state)
{
	struct counting c = {.state = state};

	*state = (struct sharing_state){
		.lock_number = __atomic_load_n(&fs->locks->number, __ATOMIC_RELAXED),
		.locks_are_kept = local_locks_are_kept(fs)};
	memcpy(state->name_keys, fs->looks->names.keys, sizeof(state->name_keys));
	inode_each(fs, count_inode, &c);
	state->nwaits = lock_waits_describe(fs->locks, NULL, 0);
	kernel_names_each(&fs->looks->shown, count_name, state);
	each_message(fs, count_message, state);
	return c.busy;
}

/* ---- telling --------------------------------------------------------------------------------- */

struct telling {
	struct wire_out *out;
	uint64_t room; /* in: */
	struct lock_owner_kept *owners;
};

static void tell_inode(struct inode *inode, void *arg)
{
	struct telling *t = arg;
	struct sharing_inode state = {.ino = inode->ino};

	if (!inodes_is_to_be_described(inode))
		return;
	pthread_mutex_lock(&inode->lock);
	lease_describe_locked(inode, &state.lease);
	state.sure = inode->sure;
	state.looked_ms = inode->looked_ms;
	state.attr_told = inode->told->attr;
	state.attr_number = inode->told->number;
	state.owner = *inode->kernel_owner;
	state.has_pages = inode->cached->pages;
	state.nowners = lock_owners_describe_locked(inode, t->owners, (unsigned)t->room);
	state.nlocks = (uint32_t)nlocks_of_locked(inode);
	sharing_state_put_inode(t->out, &state);
	if (state.has_pages)
		sharing_state_put_pages(t->out, inode->cached->pages);
	for (uint32_t i = 0; i < state.nowners; i++)
		sharing_state_put_owner(t->out, &t->owners[i]);
	for (uint32_t i = 0; i < state.nlocks; i++)
		sharing_state_put_lock(t->out, &inode->locks->local->v[i]);
	pthread_mutex_unlock(&inode->lock);
}

static void tell_name(const struct kernel_names_kept *kept, void *arg)
{
	sharing_state_put_name(arg, kept);
}

static void tell_message(const struct fuse_parked *message, void *arg)
{
	sharing_state_put_message(arg, message);
}

int sharing_describe(struct fs *fs, struct wire_out *w, const struct sharing_state *state)
{
	autofree struct lock_owner_kept *owners = calloc(state->nowners + 1, sizeof(*owners));
	autofree struct lock_wait_kept *waits = calloc(state->nwaits + 1, sizeof(*waits));
	struct telling t = {.out = w, .room = state->nowners, .owners = owners};

	if (!owners || !waits)
		return -ENOMEM;
	sharing_state_put(w, state);
	inode_each(fs, tell_inode, &t);
	lock_waits_describe(fs->locks, waits, (unsigned)state->nwaits);
	for (uint64_t i = 0; i < state->nwaits; i++)
		sharing_state_put_wait(w, &waits[i]);
	kernel_names_each(&fs->looks->shown, tell_name, w);
	each_message(fs, tell_message, w);
	return 0;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* The kernel keeps things under the lease that is there, or under one that was lost. */
static void adopt_fields_locked(struct inode *inode, const struct sharing_inode *state)
{
	lease_adopt_locked(inode, &state->lease);
	inode->sure = state->sure;
	inode->looked_ms = state->looked_ms;
	inode->told->attr = state->attr_told;
	inode->told->number = state->attr_number;
	*inode->kernel_owner = state->owner;
}

static int adopt_parts_locked(
	struct inode *inode, const struct sharing_inode *state, struct wire_in *r)
{
	struct cached_pages pages = {0};
	struct lock_owner_kept owner;
	struct lock lock;
	int err = 0;

	if (state->has_pages)
		err = sharing_state_get_pages(r, &pages);
	if (!err && state->has_pages)
		err = kernel_pages_adopt_locked(inode, &pages);
	for (uint32_t i = 0; !err && i < state->nowners; i++) {
		err = sharing_state_get_owner(r, &owner);
		if (!err)
			err = lock_owner_adopt_locked(inode, &owner);
	}
	for (uint32_t i = 0; !err && i < state->nlocks; i++) {
		err = sharing_state_get_lock(r, &lock);
		if (!err)
			err = local_locks_adopt_locked(inode, &lock);
	}
	return err;
}

static bool makes_sense(const struct inode *inode, const struct sharing_inode *state)
{
	return inode && inode->lease_type == LEASE_NONE && !inode->lease_number &&
	       (state->lease.number || state->lease.type == LEASE_NONE) &&
	       (inode_is_regular(inode) ||
		       (!state->has_pages && !state->nowners && !state->nlocks)) &&
	       (local_locks_are_kept(inode->fs) || !state->nlocks) &&
	       (!state->sure || state->lease.type >= LEASE_SHARED);
}

static int adopt_inode(struct fs *fs, struct wire_in *r)
{
	struct sharing_inode state;
	struct inode *inode;
	int err = sharing_state_get_inode(r, &state);

	if (err)
		return err;
	inode = inode_find(fs, state.ino);
	if (!makes_sense(inode, &state)) {
		if (inode)
			inode_put(inode);
		return -EINVAL;
	}
	pthread_mutex_lock(&inode->lock);
	adopt_fields_locked(inode, &state);
	err = adopt_parts_locked(inode, &state, r);
	pthread_mutex_unlock(&inode->lock);
	inode_put(inode);
	return err;
}

static int adopt_wait(struct fs *fs, struct io_thread *threads, struct wire_in *r)
{
	struct lock_wait_kept kept;
	int err = sharing_state_get_wait(r, &kept);

	if (err)
		return err;
	if (kept.thread >= fs->options.session.io_threads)
		return -EINVAL;
	return lock_wait_adopt(&threads[kept.thread], &kept);
}

static int adopt_name(struct fs *fs, struct wire_in *r)
{
	struct kernel_names_kept kept;
	int err = sharing_state_get_name(r, &kept);

	return err ? err : kernel_names_adopt(&fs->looks->shown, &kept);
}

static int adopt_message(struct fs *fs, struct io_thread *threads, struct wire_in *r)
{
	struct fuse_parked message;
	int err = sharing_state_get_message(r, &message);

	if (err)
		return err;
	if (message.thread >= fs->options.session.io_threads)
		return -EINVAL;
	return fuse_receive_adopt_parked(&threads[message.thread], &message);
}

int sharing_adopt(struct fs *fs, struct io_thread *threads, struct wire_in *r)
{
	struct sharing_state state;
	int err = sharing_state_get(r, &state);

	if (err)
		return err;
	__atomic_store_n(&fs->locks->number, state.lock_number, __ATOMIC_RELAXED);
	local_locks_adopt(fs, state.locks_are_kept);
	memcpy(fs->looks->names.keys, state.name_keys, sizeof(state.name_keys));
	for (uint64_t i = 0; !err && i < state.ninodes; i++)
		err = adopt_inode(fs, r);
	for (uint64_t i = 0; !err && i < state.nwaits; i++)
		err = adopt_wait(fs, threads, r);
	for (uint64_t i = 0; !err && i < state.nnames; i++)
		err = adopt_name(fs, r);
	for (uint64_t i = 0; !err && i < state.nmessages; i++)
		err = adopt_message(fs, threads, r);
	return err || !wire_in_left(r) ? err : -EPROTO;
}
