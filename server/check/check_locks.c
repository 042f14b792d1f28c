/* check_locks.c - locks of sessions: no two of them exclude each other. */
#include "server/check/check_internal.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/util.h"
#include "server/record/lock.h"

/* Whether b, the next lock, may follow a. */
static bool in_order(const struct lock *a, const struct lock *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind;
	if (a->owner != b->owner)
		return a->owner < b->owner;
	return a->end < b->start &&
	       (a->type != b->type || a->read_only != b->read_only || a->end + 1 < b->start);
}

static void check_order(struct check *c, struct store_key key, const struct lock *locks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool whole = !locks[i].start && locks[i].end == LOCK_END_MAX;

		if ((!i || in_order(&locks[i - 1], &locks[i])) &&
			(locks[i].kind != LOCK_KIND_FLOCK || whole))
			continue;
		check_problem(c,
			"the locks of inode %" PRIu64 " for session %" PRIu64
			" are out of order, or not whole",
			ino_of_key(key.hi), key.lo);
		return;
	}
}

static void check_conflicts(struct check *c, const struct lock *locks, size_t n)
{
	const struct check_locks *seen = &c->locks;

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < seen->n; k++) {
			/* In either order the second lock could not be had. */
			if (!lock_in_way(&locks[i], &seen->v[k]) ||
				!lock_in_way(&seen->v[k], &locks[i]))
				continue;
			check_problem(c,
				"inode %" PRIu64 " is locked by session %" PRIu64
				" and by session %" PRIu64 ", and one has that alone",
				ino_of_key(seen->key), seen->v[k].session, locks[i].session);
			return;
		}
	}
}

/* Adds one record after the other, and so compares the locks of one session with each other,
 * too. */
static int see(struct check *c, uint64_t key, const struct lock *locks, size_t n)
{
	struct check_locks *seen = &c->locks;
	struct lock *all;

	if (seen->key != key)
		seen->n = 0;
	seen->key = key;
	if (!n)
		return 0;
	all = realloc(seen->v, (seen->n + n) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	memcpy(all + seen->n, locks, n * sizeof(*all));
	seen->v = all;
	seen->n += n;
	check_conflicts(c, locks, n);
	return 0;
}

static int check_record(struct check *c, struct store_key key, const struct store_val *val)
{
	autofree struct lock *locks = NULL;
	size_t n = 0;
	int err = lock_decode(c->v, key, val, &locks, &n);

	if (err)
		return err;
	check_order(c, key, locks, n);
	err = check_holder(
		c, ino_of_key(key.hi), "locked by", key.lo, ATTACH_SHARED | ATTACH_CONVERTS, NULL);
	return err ? err : see(c, key.hi, locks, n);
}

int check_locks(struct check *c)
{
	int err = check_each_of_volume(c, STORE_LOCK, check_record);

	free(c->locks.v);
	c->locks = (struct check_locks){0};
	return err;
}
