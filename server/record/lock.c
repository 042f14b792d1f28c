/* lock.c - see lock.h. A record is its locks, each little-endian: owner 8, start 8, end 8, pid 4,
 * kind 1, type 1. The type has TYPE_READ_ONLY with it if the session could only read. */
#include "server/record/lock.h"

#include <errno.h>

#include "common/rpc/wire.h"

enum { TYPE_READ_ONLY = 128 };

/* ---- records --------------------------------------------------------------------------------- */

static void put_lock(struct wire_out *w, const struct lock *l)
{
	wire_put_u64(w, l->owner);
	wire_put_u64(w, l->start);
	wire_put_u64(w, l->end);
	wire_put_u32(w, l->pid);
	wire_put_u8(w, l->kind);
	wire_put_u8(w, l->type | (l->read_only ? TYPE_READ_ONLY : 0));
}

/* False: it is no valid lock. */
static bool get_lock(struct wire_in *r, uint64_t session, struct lock *l)
{
	*l = (struct lock){.session = session};
	l->owner = wire_get_u64(r);
	l->start = wire_get_u64(r);
	l->end = wire_get_u64(r);
	l->pid = wire_get_u32(r);
	l->kind = wire_get_u8(r);
	l->type = wire_get_u8(r);
	l->read_only = l->type & TYPE_READ_ONLY;
	l->type &= TYPE_READ_ONLY - 1;
	return !r->truncated && l->start <= l->end && l->kind >= LOCK_KIND_POSIX &&
	       l->kind <= LOCK_KIND_FLOCK && l->type > LOCK_FREE && l->type <= LOCK_EXCLUSIVE;
}

static bool is_length(size_t len)
{
	return len && len % LOCK_BYTES == 0 && len / LOCK_BYTES <= LOCKS_MAX;
}

int lock_decode(struct volume *v, struct store_key key, const struct store_val *val,
	struct lock **locks, size_t *n)
{
	size_t count = 0;
	struct wire_in r;
	struct lock *all;

	if (!is_length(val->len))
		return store_damaged(v->store, STORE_LOCK, key);
	all = calloc(val->len / LOCK_BYTES, sizeof(*all));
	if (!all)
		return -ENOMEM;
	wire_in_init(&r, val->data, val->len);
	for (; wire_in_left(&r); count++) {
		if (!get_lock(&r, key.lo, &all[count])) {
			free(all);
			return store_damaged(v->store, STORE_LOCK, key);
		}
	}
	*locks = all;
	*n = count;
	return 0;
}

int lock_next(struct volume *v, uint64_t key, uint64_t session, struct store_key *found)
{
	int err = store_seek(v->store, STORE_LOCK, STORE_KEY(key, session), found, NULL);

	return !err && found->hi >> INO_BITS != v->id ? -ENOENT : err;
}

/* ---- looking --------------------------------------------------------------------------------- */

/* Returns 1 if fn has ended the walk. */
static int each_of_record(struct volume *v, struct store_key key, const struct store_val *val,
	bool (*fn)(const struct lock *lock, void *arg), void *arg)
{
	struct wire_in r;
	struct lock l;

	if (!is_length(val->len))
		return store_damaged(v->store, STORE_LOCK, key);
	wire_in_init(&r, val->data, val->len);
	while (wire_in_left(&r)) {
		if (!get_lock(&r, key.lo, &l))
			return store_damaged(v->store, STORE_LOCK, key);
		if (!fn(&l, arg))
			return 1;
	}
	return 0;
}

int lock_each(
	struct volume *v, uint64_t key, bool (*fn)(const struct lock *lock, void *arg), void *arg)
{
	struct store_key at = STORE_KEY(key), found;
	struct store_val val;
	int err = 0;

	while (!err) {
		err = store_seek(v->store, STORE_LOCK, at, &found, &val);
		if (!err && found.hi != key)
			err = -ENOENT;
		if (!err)
			err = each_of_record(v, found, &val, fn, arg);
		at.lo = found.lo + 1;
	}
	return err == -ENOENT || err == 1 ? 0 : err;
}

struct conflict {
	const struct lock *want;
	struct lock found;
	bool any;
};

static bool is_no_conflict(const struct lock *lock, void *arg)
{
	struct conflict *c = arg;

	if (!lock_in_way(lock, c->want))
		return true;
	c->found = *lock;
	c->any = true;
	return false;
}

int lock_find_conflict(struct volume *v, uint64_t key, const struct lock *want, struct lock *found)
{
	struct conflict c = {.want = want};
	int err = lock_each(v, key, is_no_conflict, &c);

	*found = c.found;
	return err || c.any ? err : -ENOENT;
}

struct owned {
	const struct lock *owner;
	bool around, any;
};

static bool is_others(const struct lock *lock, void *arg)
{
	struct owned *o = arg;

	o->any = lock_same_owner(lock, o->owner) &&
		 (!o->around || (lock->start < o->owner->start && lock->end > o->owner->end));
	return !o->any;
}

/* Whether the owner has any lock; with `around`, one that goes beyond the range at both ends. */
static int owner_has(
	struct volume *v, uint64_t key, const struct lock *owner, bool around, bool *has)
{
	struct store_key at = STORE_KEY(key, owner->session);
	struct owned o = {.owner = owner, .around = around};
	struct store_val val;
	int err = store_get(v->store, STORE_LOCK, at, &val);

	if (!err)
		err = each_of_record(v, at, &val, is_others, &o);
	*has = o.any;
	return err == -ENOENT || err == 1 ? 0 : err;
}

int lock_owner_has(struct volume *v, uint64_t key, const struct lock *owner, bool *has)
{
	return owner_has(v, key, owner, false, has);
}

int lock_grows(struct volume *v, uint64_t key, const struct lock *lock, bool *grows)
{
	*grows = true;
	return lock->type != LOCK_FREE ? 0 : owner_has(v, key, lock, true, grows);
}

int lock_of_session(
	struct volume *v, uint64_t key, uint64_t session, struct lock **locks, size_t *n)
{
	struct store_key at = STORE_KEY(key, session);
	struct store_val val;
	int err = store_get(v->store, STORE_LOCK, at, &val);

	*locks = NULL;
	*n = 0;
	if (err)
		return err == -ENOENT ? 0 : err;
	return lock_decode(v, at, &val, locks, n);
}

/* ---- changing -------------------------------------------------------------------------------- */

/* nold: how many the record had. */
static int lock_count(struct volume *v, uint64_t session, size_t nold, size_t n)
{
	struct holder_counts *holder = holders_change(&v->holders, session);

	if (!holder)
		return store_fail(v->store, -ENOMEM);
	holder->locks += n - nold;
	v->now.leases.locks += n - nold;
	return 0;
}

static int lock_save(struct volume *v, struct store_key key, const struct lock *locks, size_t n)
{
	autofree uint8_t *buf = NULL;
	struct wire_out w;
	int err;

	if (!n) {
		err = store_del(v->store, STORE_LOCK, key);
		return err == -ENOENT ? 0 : err;
	}
	if (n > LOCKS_MAX)
		return -ENOLCK;
	buf = malloc(n * LOCK_BYTES);
	if (!buf)
		return -ENOMEM;
	wire_out_init(&w, buf, n * LOCK_BYTES);
	for (size_t i = 0; i < n; i++)
		put_lock(&w, &locks[i]);
	return store_put(v->store, STORE_LOCK, key, buf, n * LOCK_BYTES);
}

/* An unlock in the middle of a lock makes two of it. So unlocks may reach twice the limit: a
 * session that has reached its limit must be able to unlock. */
static bool is_too_many(struct volume *v, const struct lock *lock, uint64_t more, uint64_t limit)
{
	uint64_t all = holders_of(&v->holders, lock->session).locks + more;

	return all > (lock->type == LOCK_FREE ? 2 * limit : limit);
}

int lock_set(struct volume *v, uint64_t key, const struct lock *lock, uint32_t limit)
{
	struct store_key at = STORE_KEY(key, lock->session);
	autofree struct lock *old = NULL, *new = NULL;
	size_t n, nnew;
	int err = lock_of_session(v, key, lock->session, &old, &n);

	if (err)
		return err;
	new = calloc(n + 2, sizeof(*new));
	if (!new)
		return -ENOMEM;
	nnew = lock_set_range(new, old, n, lock);
	if (nnew > n && is_too_many(v, lock, nnew - n, limit))
		return -ENOLCK;
	err = lock_save(v, at, new, nnew);
	return err ? err : lock_count(v, lock->session, n, nnew);
}

int lock_end(struct volume *v, struct store_key at)
{
	struct store_val val;
	size_t n;
	int err = store_get(v->store, STORE_LOCK, at, &val);

	if (err)
		return err;
	n = val.len / LOCK_BYTES;
	err = store_del(v->store, STORE_LOCK, at);
	return err ? err : lock_count(v, at.lo, n, 0);
}

int lock_open(struct volume *v)
{
	struct store_key key;
	struct store_val val;
	int err = store_seek(v->store, STORE_LOCK, STORE_KEY(inode_key(v, 0)), &key, &val);

	while (!err && key.hi >> INO_BITS == v->id) {
		err = lock_count(v, key.lo, 0, val.len / LOCK_BYTES);
		if (err)
			return err;
		err = store_next(v->store, STORE_LOCK, &key, &val);
	}
	return err == -ENOENT ? 0 : err;
}
