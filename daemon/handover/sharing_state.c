/* sharing_state.c - see sharing_state.h. Each put has its get beside it. */
#include "daemon/handover/sharing_state.h"

#include <errno.h>

#include "common/rpc/lease_type.h"
#include "daemon/handover/state.h"

static int result(const struct wire_in *r)
{
	return r->truncated ? -EPROTO : 0;
}

/* A number that has fewer bits in its struct. */
static uint8_t get_small(struct wire_in *r, uint32_t most)
{
	uint32_t value = wire_get_u32(r);

	r->truncated |= value > most;
	return (uint8_t)value;
}

/* ---- the mount ------------------------------------------------------------------------------- */

size_t sharing_state_bytes(const struct sharing_state *state)
{
	return SHARING_HEAD_BYTES + state->ninodes * SHARING_INODE_BYTES +
	       state->npages * SHARING_PAGES_BYTES + state->nowners * SHARING_OWNER_BYTES +
	       state->nlocks * SHARING_LOCK_BYTES + state->nwaits * SHARING_WAIT_BYTES +
	       state->nnames * SHARING_NAME_BYTES + state->nmessages * SHARING_MESSAGE_BYTES +
	       state->message_bytes;
}

void sharing_state_put(struct wire_out *w, const struct sharing_state *state)
{
	wire_put_u64(w, state->lock_number);
	wire_put_u64(w, state->locks_are_kept);
	wire_put(w, state->name_keys, sizeof(state->name_keys));
	wire_put_u64(w, state->ninodes);
	wire_put_u64(w, state->npages);
	wire_put_u64(w, state->nowners);
	wire_put_u64(w, state->nlocks);
	wire_put_u64(w, state->nwaits);
	wire_put_u64(w, state->nnames);
	wire_put_u64(w, state->nmessages);
	wire_put_u64(w, state->message_bytes);
}

/* Each number is small enough to be multiplied. */
static bool is_length(const struct sharing_state *state, size_t left)
{
	return state->ninodes <= left && state->npages <= left && state->nowners <= left &&
	       state->nwaits <= left && state->nnames <= left && state->nmessages <= left &&
	       state->message_bytes <= left &&
	       left == sharing_state_bytes(state) - SHARING_HEAD_BYTES;
}

int sharing_state_get(struct wire_in *r, struct sharing_state *state)
{
	uint64_t kept;

	state->lock_number = wire_get_u64(r);
	kept = wire_get_u64(r);
	state->locks_are_kept = kept;
	wire_get(r, state->name_keys, sizeof(state->name_keys));
	state->ninodes = wire_get_u64(r);
	state->npages = wire_get_u64(r);
	state->nowners = wire_get_u64(r);
	state->nlocks = wire_get_u64(r);
	state->nwaits = wire_get_u64(r);
	state->nnames = wire_get_u64(r);
	state->nmessages = wire_get_u64(r);
	state->message_bytes = wire_get_u64(r);
	return r->truncated || kept > 1 || !is_length(state, wire_in_left(r)) ? -EPROTO : 0;
}

/* ---- inodes ---------------------------------------------------------------------------------- */

void sharing_state_put_inode(struct wire_out *w, const struct sharing_inode *i)
{
	const struct lease_kept *l = &i->lease;
	const bool *const flags[] = {&l->pinned, &l->unsure, &l->passing, &i->sure, &i->has_pages,
		&i->attr_told, &i->owner.told, &i->owner.one_uid, &i->owner.one_gid};

	wire_put_u64(w, i->ino);
	wire_put_u64(w, l->number);
	wire_put_u64(w, l->returned);
	wire_put_u64(w, (uint64_t)i->looked_ms);
	wire_put_u64(w, i->attr_number);
	wire_put_u32(w, i->owner.uid);
	wire_put_u32(w, i->owner.gid);
	wire_put_u32(w, l->type);
	state_put_flags(w, flags, 9);
	wire_put_u32(w, i->nowners);
	wire_put_u32(w, i->nlocks);
}

int sharing_state_get_inode(struct wire_in *r, struct sharing_inode *i)
{
	struct lease_kept *l = &i->lease;
	bool *const flags[] = {&l->pinned, &l->unsure, &l->passing, &i->sure, &i->has_pages,
		&i->attr_told, &i->owner.told, &i->owner.one_uid, &i->owner.one_gid};

	i->ino = wire_get_u64(r);
	l->number = wire_get_u64(r);
	l->returned = wire_get_u64(r);
	i->looked_ms = (int64_t)wire_get_u64(r);
	i->attr_number = wire_get_u64(r);
	i->owner.uid = wire_get_u32(r);
	i->owner.gid = wire_get_u32(r);
	l->type = get_small(r, LEASE_TYPES - 1);
	state_get_flags(r, flags, 9);
	i->nowners = wire_get_u32(r);
	i->nlocks = wire_get_u32(r);
	return result(r);
}

/* ---- pages ----------------------------------------------------------------------------------- */

void sharing_state_put_pages(struct wire_out *w, const struct cached_pages *p)
{
	const bool *const flags[] = {
		&p->mapped, &p->to_raise, &p->endless, &p->raised, &p->was_raised, &p->told_before};

	wire_put_u64(w, p->step);
	state_put_flags(w, flags, 6);
	wire_put_u32(w, p->nranges);
	for (unsigned i = 0; i < CACHED_RANGES; i++) {
		wire_put_u64(w, i < p->nranges ? p->ranges[i].from : 0);
		wire_put_u64(w, i < p->nranges ? p->ranges[i].to : 0);
	}
	for (unsigned i = 0; i < CACHED_LOOKERS; i++) {
		wire_put_u32(w, p->lookers[i].pid);
		wire_put_u64(w, (uint64_t)p->lookers[i].until_ms);
	}
}

int sharing_state_get_pages(struct wire_in *r, struct cached_pages *p)
{
	bool *const flags[] = {
		&p->mapped, &p->to_raise, &p->endless, &p->raised, &p->was_raised, &p->told_before};

	p->step = wire_get_u64(r);
	state_get_flags(r, flags, 6);
	p->nranges = get_small(r, CACHED_RANGES);
	for (unsigned i = 0; i < CACHED_RANGES; i++) {
		p->ranges[i].from = wire_get_u64(r);
		p->ranges[i].to = wire_get_u64(r);
	}
	for (unsigned i = 0; i < CACHED_LOOKERS; i++) {
		p->lookers[i].pid = wire_get_u32(r);
		p->lookers[i].until_ms = (int64_t)wire_get_u64(r);
	}
	r->truncated |= p->step > INT64_MAX;
	return result(r);
}

/* ---- locks ----------------------------------------------------------------------------------- */

void sharing_state_put_owner(struct wire_out *w, const struct lock_owner_kept *o)
{
	const bool *const flags[] = {&o->has, &o->freed};

	wire_put_u64(w, o->number);
	wire_put_u64(w, o->kernel);
	wire_put_u64(w, o->handle);
	wire_put_u32(w, o->kind);
	state_put_flags(w, flags, 2);
}

int sharing_state_get_owner(struct wire_in *r, struct lock_owner_kept *o)
{
	bool *const flags[] = {&o->has, &o->freed};

	o->number = wire_get_u64(r);
	o->kernel = wire_get_u64(r);
	o->handle = wire_get_u64(r);
	o->kind = get_small(r, LOCK_KIND_FLOCK);
	state_get_flags(r, flags, 2);
	return result(r);
}

void sharing_state_put_lock(struct wire_out *w, const struct lock *l)
{
	wire_put_u64(w, l->owner);
	wire_put_u64(w, l->start);
	wire_put_u64(w, l->end);
	wire_put_u32(w, l->pid);
	wire_put_u32(w, (uint32_t)l->kind << 8 | l->type);
}

static bool is_lock(const struct lock *l)
{
	return l->owner && l->start <= l->end && l->end <= LOCK_END_MAX &&
	       (l->kind == LOCK_KIND_POSIX || l->kind == LOCK_KIND_FLOCK) &&
	       (l->type == LOCK_SHARED || l->type == LOCK_EXCLUSIVE);
}

int sharing_state_get_lock(struct wire_in *r, struct lock *l)
{
	uint32_t kinds;

	*l = (struct lock){.owner = wire_get_u64(r)};
	l->start = wire_get_u64(r);
	l->end = wire_get_u64(r);
	l->pid = wire_get_u32(r);
	kinds = wire_get_u32(r);
	l->kind = (uint8_t)(kinds >> 8);
	l->type = (uint8_t)kinds;
	r->truncated |= kinds >> 16 != 0 || !is_lock(l);
	return result(r);
}

void sharing_state_put_wait(struct wire_out *w, const struct lock_wait_kept *wait)
{
	const struct rpc_lock *lock = &wait->lock;

	wire_put_u64(w, wait->unique);
	wire_put_u32(w, wait->pid);
	wire_put_u32(w, wait->thread);
	wire_put_u64(w, lock->ino);
	wire_put_u64(w, lock->owner);
	wire_put_u64(w, lock->wait);
	wire_put_u64(w, lock->start);
	wire_put_u64(w, lock->end);
	wire_put_u32(w, lock->pid);
	wire_put_u32(w, (uint32_t)lock->kind << 8 | lock->type);
}

int sharing_state_get_wait(struct wire_in *r, struct lock_wait_kept *wait)
{
	struct rpc_lock *lock = &wait->lock;
	uint32_t kinds;

	wait->unique = wire_get_u64(r);
	wait->pid = wire_get_u32(r);
	wait->thread = wire_get_u32(r);
	lock->ino = wire_get_u64(r);
	lock->owner = wire_get_u64(r);
	lock->wait = wire_get_u64(r);
	lock->start = wire_get_u64(r);
	lock->end = wire_get_u64(r);
	lock->pid = wire_get_u32(r);
	kinds = wire_get_u32(r);
	lock->kind = (uint8_t)(kinds >> 8);
	lock->type = (uint8_t)kinds;
	r->truncated |= kinds >> 16 != 0;
	return result(r);
}

/* ---- names ----------------------------------------------------------------------------------- */

void sharing_state_put_name(struct wire_out *w, const struct kernel_names_kept *n)
{
	wire_put_u64(w, n->key.a);
	wire_put_u64(w, n->key.b);
	wire_put_u64(w, n->name.ino);
	wire_put_u32(w, n->thread);
	wire_put_u32(w, (uint32_t)n->name.refused << 1 | n->name.directory);
}

int sharing_state_get_name(struct wire_in *r, struct kernel_names_kept *n)
{
	uint32_t bits;

	n->key.a = wire_get_u64(r);
	n->key.b = wire_get_u64(r);
	n->name.ino = wire_get_u64(r);
	n->thread = wire_get_u32(r);
	bits = wire_get_u32(r);
	n->name.directory = bits & 1;
	n->name.refused = (uint8_t)(bits >> 1);
	r->truncated |= bits >> 1 > SHOWN_REFUSED_NAMES;
	return result(r);
}

/* ---- messages -------------------------------------------------------------------------------- */

void sharing_state_put_message(struct wire_out *w, const struct fuse_parked *m)
{
	wire_put_u32(w, m->thread);
	wire_put_u32(w, m->interrupted);
	wire_put_u64(w, (uint64_t)m->since_ms);
	wire_put_u64(w, (uint64_t)m->read_ns);
	wire_put_u64(w, m->len);
	wire_put(w, m->msg, m->len);
}

int sharing_state_get_message(struct wire_in *r, struct fuse_parked *m)
{
	uint32_t interrupted;

	m->thread = wire_get_u32(r);
	interrupted = wire_get_u32(r);
	m->interrupted = interrupted;
	m->since_ms = (int64_t)wire_get_u64(r);
	m->read_ns = (int64_t)wire_get_u64(r);
	m->len = wire_get_u64(r);
	m->msg = wire_get_ref(r, m->len);
	r->truncated |= interrupted > 1;
	return result(r);
}
