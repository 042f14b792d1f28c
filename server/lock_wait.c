/* lock_wait.c - see lock_wait.h. */
#include "server/lock_wait.h"

#include <errno.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/util.h"

/* Of waits that wait for each other's owners; the kernel looks no further than ten. */
enum { DEADLOCK_DEPTH = 32 };

struct lock_inode {
	struct list link;
	struct volume *v;
	uint64_t key;
	struct list waits; /* struct lock_wait, in the order they came */
	int64_t look_ms;   /* when to look at it next; INT64_MAX: when something has changed */
};

void lock_waits_init(struct lock_waits *ws)
{
	*ws = (struct lock_waits){.patience_ms = LOCK_PATIENCE_MS};
	list_init(&ws->inodes);
	list_init(&ws->all);
}

void lock_waits_fini(struct lock_waits *ws)
{
	list_for_each_safe (pos, &ws->all)
		lock_waits_drop(ws, list_entry(pos, struct lock_wait, all));
	list_for_each_safe (pos, &ws->inodes)
		free(list_entry(pos, struct lock_inode, link));
}

static struct lock_inode *find_inode(const struct lock_waits *ws, uint64_t key)
{
	list_for_each (pos, &ws->inodes) {
		struct lock_inode *at = list_entry(pos, struct lock_inode, link);

		if (at->key == key)
			return at;
	}
	return NULL;
}

static struct lock_inode *find_or_make(struct lock_waits *ws, struct volume *v, uint64_t key)
{
	struct lock_inode *at = find_inode(ws, key);

	if (at)
		return at;
	at = calloc(1, sizeof(*at));
	if (!at)
		return NULL;
	at->v = v;
	at->key = key;
	at->look_ms = INT64_MAX;
	list_init(&at->waits);
	list_add_tail(&ws->inodes, &at->link);
	return at;
}

static struct lock_wait *wait_of(struct list *pos)
{
	return list_entry(pos, struct lock_wait, of_inode);
}

static void look_soon(struct lock_inode *at)
{
	at->look_ms = 0;
}

struct lock_wait *lock_waits_find(
	struct lock_waits *ws, uint64_t key, uint64_t session, uint64_t number)
{
	const struct lock_inode *at = find_inode(ws, key);

	if (!at)
		return NULL;
	list_for_each (pos, &at->waits) {
		struct lock_wait *wait = wait_of(pos);

		if (wait->want.session == session && wait->number == number)
			return wait;
	}
	return NULL;
}

/* One that has been told is not any more: whether it may come has to be found out anew. */
static void comes_again(struct lock_wait *wait, const struct lock *want)
{
	wait->want = *want;
	wait->told_ms = 0;
	look_soon(wait->at);
}

int lock_waits_add(struct lock_waits *ws, struct volume *v, uint64_t key, const struct lock *want,
	uint64_t number)
{
	struct lock_wait *wait = lock_waits_find(ws, key, want->session, number);
	struct lock_inode *at;

	if (wait) {
		comes_again(wait, want);
		return 0;
	}
	if (ws->n >= LOCK_WAITS_MAX)
		return -ENOLCK;
	at = find_or_make(ws, v, key);
	wait = at ? calloc(1, sizeof(*wait)) : NULL;
	if (!wait)
		return -ENOMEM;
	wait->at = at;
	wait->number = number;
	wait->came_ms = now_ms();
	comes_again(wait, want);
	list_add_tail(&at->waits, &wait->of_inode);
	list_add_tail(&ws->all, &wait->all);
	ws->n++;
	return 0;
}

void lock_waits_drop(struct lock_waits *ws, struct lock_wait *wait)
{
	look_soon(wait->at);
	list_del(&wait->of_inode);
	list_del(&wait->all);
	free(wait);
	ws->n--;
}

void lock_waits_drop_session(struct lock_waits *ws, uint64_t session)
{
	list_for_each_safe (pos, &ws->all) {
		struct lock_wait *wait = list_entry(pos, struct lock_wait, all);

		if (wait->want.session == session)
			lock_waits_drop(ws, wait);
	}
}

void lock_waits_changed(struct lock_waits *ws, uint64_t key)
{
	struct lock_inode *at = find_inode(ws, key);

	if (at)
		look_soon(at);
}

/* ---- the order ------------------------------------------------------------------------------- */

/* Until when who came at `came_ms` is behind this one. */
static int64_t before_until(
	const struct lock_waits *ws, const struct lock_wait *wait, int64_t came_ms)
{
	return (wait->told_ms ? wait->told_ms : came_ms) + ws->patience_ms;
}

/* INT64_MIN: he is behind nobody. */
static int64_t behind_until(const struct lock_waits *ws, const struct lock_inode *at,
	const struct lock *want, const struct lock_wait *self, int64_t came_ms)
{
	int64_t until = INT64_MIN;

	list_for_each (pos, &at->waits) {
		const struct lock_wait *wait = wait_of(pos);
		int64_t one;

		if (wait == self)
			break;
		if (!lock_conflict(&wait->want, want))
			continue;
		one = before_until(ws, wait, came_ms);
		until = one > until ? one : until;
	}
	return until;
}

bool lock_waits_behind(const struct lock_waits *ws, uint64_t key, const struct lock *want,
	const struct lock_wait *wait)
{
	const struct lock_inode *at = find_inode(ws, key);
	int64_t now = now_ms();

	return at && behind_until(ws, at, want, wait, wait ? wait->came_ms : now) > now;
}

/* ---- who waits for each other ---------------------------------------------------------------- */

struct search {
	struct lock_waits *ws;
	const struct lock *first;
	unsigned depth;
	bool found;
	int err;
};

struct step {
	struct search *search;
	const struct lock *want;
};

static void search_from(struct search *s, struct volume *v, uint64_t key, const struct lock *want);

static void search_owner(struct search *s, const struct lock *owner)
{
	list_for_each (pos, &s->ws->all) {
		struct lock_wait *wait = list_entry(pos, struct lock_wait, all);

		if (s->found || s->err)
			return;
		if (!lock_same_owner(&wait->want, owner) || wait->visited == s->ws->searches)
			continue;
		wait->visited = s->ws->searches;
		search_from(s, wait->at->v, wait->at->key, &wait->want);
	}
}

static bool search_holder(const struct lock *lock, void *arg)
{
	struct step *step = arg;
	struct search *s = step->search;

	if (!lock_conflict(lock, step->want))
		return true;
	if (lock_same_owner(lock, s->first))
		s->found = true;
	else
		search_owner(s, lock);
	return !s->found && !s->err;
}

static void search_from(struct search *s, struct volume *v, uint64_t key, const struct lock *want)
{
	struct step step = {s, want};
	int err;

	if (s->depth == DEADLOCK_DEPTH)
		return;
	s->depth++;
	err = lock_each(v, key, search_holder, &step);
	s->depth--;
	if (err)
		s->err = err;
}

int lock_waits_deadlock(struct lock_waits *ws, struct volume *v, uint64_t key,
	const struct lock *want, bool *deadlock)
{
	struct search s = {.ws = ws, .first = want};

	ws->searches++;
	search_from(&s, v, key, want);
	*deadlock = s.found;
	return s.err;
}

/* ---- looking --------------------------------------------------------------------------------- */

static int64_t earlier_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* until: when it is to be looked at again; INT64_MAX: when something has changed. */
static int may_come(const struct lock_waits *ws, const struct lock_inode *at,
	const struct lock_wait *wait, int64_t now, bool *may, int64_t *until)
{
	int64_t behind = behind_until(ws, at, &wait->want, wait, wait->came_ms);
	struct lock found;
	int err;

	*may = false;
	*until = INT64_MAX;
	err = lock_find_conflict(at->v, at->key, &wait->want, &found);
	if (err != -ENOENT)
		return err;
	*may = behind <= now;
	if (!*may)
		*until = behind;
	return 0;
}

static int look_at(struct lock_waits *ws, struct lock_inode *at, int64_t now,
	void (*tell)(uint64_t session, void *arg), void *arg)
{
	at->look_ms = INT64_MAX;
	list_for_each (pos, &at->waits) {
		struct lock_wait *wait = wait_of(pos);
		int64_t until;
		bool may;
		int err;

		if (wait->told_ms)
			continue;
		err = may_come(ws, at, wait, now, &may, &until);
		if (err)
			return err;
		at->look_ms = earlier_of(at->look_ms, until);
		if (!may)
			continue;
		wait->told_ms = now;
		tell(wait->want.session, arg);
	}
	return 0;
}

int lock_waits_look(struct lock_waits *ws, void (*tell)(uint64_t session, void *arg), void *arg)
{
	int64_t now = now_ms();

	list_for_each_safe (pos, &ws->inodes) {
		struct lock_inode *at = list_entry(pos, struct lock_inode, link);
		int err;

		if (at->look_ms > now)
			continue;
		if (list_empty(&at->waits)) {
			list_del(&at->link);
			free(at);
			continue;
		}
		err = look_at(ws, at, now, tell, arg);
		/* Not at once: what is damaged stays so. */
		if (err) {
			at->look_ms = now + ws->patience_ms;
			return err;
		}
	}
	return 0;
}

bool lock_waits_due(const struct lock_waits *ws, int64_t *next)
{
	*next = INT64_MAX;
	list_for_each (pos, &ws->inodes)
		*next = earlier_of(*next, list_entry(pos, struct lock_inode, link)->look_ms);
	return *next <= now_ms();
}

void lock_waits_told(const struct lock_waits *ws, uint64_t session,
	void (*fn)(uint64_t ino, uint64_t number, void *arg), void *arg)
{
	list_for_each (pos, &ws->all) {
		const struct lock_wait *wait = list_entry(pos, struct lock_wait, all);

		if (wait->told_ms && wait->want.session == session)
			fn(ino_of_key(wait->at->key), wait->number, arg);
	}
}

int lock_waits_for(const struct lock_waits *ws, uint64_t session, bool *any)
{
	*any = false;
	list_for_each (pos, &ws->all) {
		const struct lock_wait *wait = list_entry(pos, struct lock_wait, all);
		struct lock found;
		int err = lock_find_conflict_of(
			wait->at->v, wait->at->key, session, &wait->want, &found);

		if (err != -ENOENT) {
			*any = !err;
			return err;
		}
	}
	return 0;
}
