/* lock.c - see lock.h. */
#include "common/rpc/lock.h"

#include "common/base/util.h"

/* The locks as they become. */
struct rebuilt {
	struct lock *v;
	size_t n;
};

bool lock_is_before(const struct lock *a, const struct lock *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind;
	return a->owner != b->owner ? a->owner < b->owner : a->start < b->start;
}

static void lock_add(struct rebuilt *r, const struct lock *lock, uint64_t start, uint64_t end)
{
	struct lock *l = &r->v[r->n++];

	*l = *lock;
	l->start = start;
	l->end = end;
}

/* Whether both are of one owner and one type, and overlap or adjoin. */
static bool touches(const struct lock *a, const struct lock *b)
{
	return lock_same_owner(a, b) && a->type == b->type && a->read_only == b->read_only &&
	       (a->end == UINT64_MAX || b->start <= a->end + 1) &&
	       (b->end == UINT64_MAX || a->start <= b->end + 1);
}

/* Of an old lock of the owner: if it touches the new one it becomes part of that; else its part
 * outside of the range stays. */
static void cut(struct rebuilt *r, const struct lock *old, struct lock *lock)
{
	if (touches(old, lock)) {
		lock->start = min_u64(lock->start, old->start);
		lock->end = max_u64(lock->end, old->end);
		return;
	}
	if (old->start > lock->end || old->end < lock->start) {
		lock_add(r, old, old->start, old->end);
		return;
	}
	if (old->start < lock->start)
		lock_add(r, old, old->start, lock->start - 1);
	if (old->end > lock->end)
		lock_add(r, old, lock->end + 1, old->end);
}

static void insert(struct rebuilt *r, const struct lock *lock)
{
	size_t i = r->n++;

	for (; i && lock_is_before(lock, &r->v[i - 1]); i--)
		r->v[i] = r->v[i - 1];
	r->v[i] = *lock;
}

size_t lock_set_range(struct lock *out, const struct lock *v, size_t n, const struct lock *lock)
{
	struct rebuilt r = {.v = out};
	struct lock whole = *lock;

	for (size_t i = 0; i < n; i++) {
		if (lock_same_owner(&v[i], lock))
			cut(&r, &v[i], &whole);
		else
			lock_add(&r, &v[i], v[i].start, v[i].end);
	}
	if (lock->type != LOCK_FREE)
		insert(&r, &whole);
	return r.n;
}
