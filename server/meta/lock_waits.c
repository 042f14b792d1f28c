/* lock_waits.c - see lock_waits.h. */
#include "server/meta/lock_waits.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/util.h"

/* The search for a circle follows so many waits in a row, at most; the kernel's own follows ten. */
enum { DEADLOCK_DEPTH = 32, HELD_MIN = 16 };

struct lock_inode {
	struct list link;
	struct volume *v;
	uint64_t key;
	struct list waits; /* struct lock_waiter, in the order they came */
	unsigned n;
	int64_t look_ms; /* when to look at it next; INT64_MAX: after a change */
};

struct lock_session {
	struct list link;
	uint64_t id;
	struct list waits; /* struct lock_waiter */
	unsigned n;
};

void lock_waits_init(struct lock_waits *ws)
{
	*ws = (struct lock_waits){.patience_ms = LOCK_PATIENCE_MS, .look_ms = INT64_MAX};
	list_init(&ws->inodes);
	list_init(&ws->sessions);
}

static struct lock_inode *inode_of(struct list *pos)
{
	return list_entry(pos, struct lock_inode, link);
}

static struct lock_waiter *wait_of(struct list *pos)
{
	return list_entry(pos, struct lock_waiter, of_inode);
}

static struct lock_waiter *own_wait_of(struct list *pos)
{
	return list_entry(pos, struct lock_waiter, of_session);
}

void lock_waits_fini(struct lock_waits *ws)
{
	list_for_each_safe (pos, &ws->sessions)
		lock_waits_drop_session(ws, list_entry(pos, struct lock_session, link)->id);
	list_for_each_safe (pos, &ws->inodes)
		free(inode_of(pos));
}

static struct lock_inode *find_inode(const struct lock_waits *ws, uint64_t key)
{
	list_for_each (pos, &ws->inodes)
		if (inode_of(pos)->key == key)
			return inode_of(pos);
	return NULL;
}

static struct lock_inode *find_or_make_inode(struct lock_waits *ws, struct volume *v, uint64_t key)
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

static struct lock_session *find_session(const struct lock_waits *ws, uint64_t id)
{
	list_for_each (pos, &ws->sessions) {
		struct lock_session *by = list_entry(pos, struct lock_session, link);

		if (by->id == id)
			return by;
	}
	return NULL;
}

static struct lock_session *find_or_make_session(struct lock_waits *ws, uint64_t id)
{
	struct lock_session *by = find_session(ws, id);

	if (by)
		return by;
	by = calloc(1, sizeof(*by));
	if (!by)
		return NULL;
	by->id = id;
	list_init(&by->waits);
	list_add_tail(&ws->sessions, &by->link);
	return by;
}

static void drop_unused_session(struct lock_session *by)
{
	if (by->n)
		return;
	list_del(&by->link);
	free(by);
}

/* The look also frees an inode that nobody waits for any more. */
static void look_soon(struct lock_waits *ws, struct lock_inode *at)
{
	at->look_ms = ws->look_ms = 0;
}

struct lock_waiter *lock_waits_find(
	struct lock_waits *ws, uint64_t key, uint64_t session, uint64_t number)
{
	const struct lock_session *by = find_session(ws, session);

	if (!by)
		return NULL;
	list_for_each (pos, &by->waits) {
		struct lock_waiter *wait = own_wait_of(pos);

		if (wait->number == number && wait->at->key == key)
			return wait;
	}
	return NULL;
}

/* The wait counts as not told: the next look finds out anew whether it may come. */
static void comes_again(struct lock_waits *ws, struct lock_waiter *wait, const struct lock *want)
{
	wait->want = *want;
	wait->told_ms = 0;
	wait->said = wait->again = false;
	look_soon(ws, wait->at);
}

static int lock_waits_append(struct lock_waits *ws, struct lock_inode *at, struct lock_session *by,
	const struct lock *want, uint64_t number)
{
	struct lock_waiter *wait;

	if (by->n >= LOCK_WAITS_MAX)
		return -ENOLCK;
	wait = calloc(1, sizeof(*wait));
	if (!wait)
		return -ENOMEM;
	wait->at = at;
	wait->by = by;
	wait->number = number;
	wait->came_ms = now_ms();
	comes_again(ws, wait, want);
	list_add_tail(&at->waits, &wait->of_inode);
	list_add_tail(&by->waits, &wait->of_session);
	at->n++;
	by->n++;
	ws->n++;
	at->v->lock_waits++;
	return 0;
}

int lock_waits_add(struct lock_waits *ws, struct volume *v, uint64_t key, const struct lock *want,
	uint64_t number)
{
	struct lock_waiter *wait = lock_waits_find(ws, key, want->session, number);
	struct lock_session *by;
	struct lock_inode *at;
	int err;

	if (wait) {
		comes_again(ws, wait, want);
		return 0;
	}
	by = find_or_make_session(ws, want->session);
	if (!by)
		return -ENOMEM;
	at = find_or_make_inode(ws, v, key);
	err = at ? lock_waits_append(ws, at, by, want, number) : -ENOMEM;
	if (at)
		look_soon(ws, at);
	drop_unused_session(by);
	return err;
}

void lock_waits_drop(struct lock_waits *ws, struct lock_waiter *wait)
{
	look_soon(ws, wait->at);
	list_del(&wait->of_inode);
	list_del(&wait->of_session);
	wait->at->n--;
	wait->by->n--;
	drop_unused_session(wait->by);
	wait->at->v->lock_waits--;
	free(wait);
	ws->n--;
}

void lock_waits_drop_session(struct lock_waits *ws, uint64_t session)
{
	for (struct lock_session *by; (by = find_session(ws, session));)
		lock_waits_drop(ws, own_wait_of(by->waits.next));
}

void lock_waits_each(const struct lock_waits *ws, uint64_t key,
	void (*fn)(const struct lock_waiter *wait, void *arg), void *arg)
{
	const struct lock_inode *at = find_inode(ws, key);

	if (!at)
		return;
	list_for_each (pos, &at->waits)
		fn(wait_of(pos), arg);
}

void lock_waits_each_inode(const struct lock_waits *ws, const struct volume *v,
	void (*fn)(const struct lock_waited *waited, void *arg), void *arg)
{
	list_for_each (pos, &ws->inodes) {
		const struct lock_inode *at = inode_of(pos);
		struct lock_waited waited = {.ino = ino_of_key(at->key), .waits = at->n};

		if (at->v != v || list_empty(&at->waits))
			continue;
		waited.since_ms = wait_of(at->waits.next)->came_ms;
		fn(&waited, arg);
	}
}

void lock_waits_changed(struct lock_waits *ws, uint64_t key)
{
	struct lock_inode *at = find_inode(ws, key);

	if (at)
		look_soon(ws, at);
}

void lock_waits_ask_again(struct lock_waits *ws, uint64_t session)
{
	struct lock_session *by = find_session(ws, session);

	if (!by)
		return;
	list_for_each (pos, &by->waits) {
		own_wait_of(pos)->again = true;
		look_soon(ws, own_wait_of(pos)->at);
	}
}

/* ---- the order ------------------------------------------------------------------------------- */

/* A wait that came at `came_ms` is behind this one until then. */
static int64_t before_until(
	const struct lock_waits *ws, const struct lock_waiter *wait, int64_t came_ms)
{
	return (wait->told_ms ? wait->told_ms : came_ms) + ws->patience_ms;
}

/* Until when the owner is behind another one, at least; 0: behind nobody. */
static int64_t behind_until(const struct lock_waits *ws, const struct lock_inode *at,
	const struct lock *want, const struct lock_waiter *self, int64_t came_ms, int64_t now)
{
	list_for_each (pos, &at->waits) {
		const struct lock_waiter *wait = wait_of(pos);

		if (wait == self)
			break;
		if (lock_in_way(&wait->want, want) && before_until(ws, wait, came_ms) > now)
			return before_until(ws, wait, came_ms);
	}
	return 0;
}

int lock_waits_behind(const struct lock_waits *ws, struct volume *v, uint64_t key,
	const struct lock *want, const struct lock_waiter *wait, bool *behind)
{
	const struct lock_inode *at = find_inode(ws, key);
	int64_t now = now_ms();
	bool has;
	int err;

	*behind = at && behind_until(ws, at, want, wait, wait ? wait->came_ms : now, now);
	if (!*behind || want->kind == LOCK_KIND_FLOCK)
		return 0;
	err = lock_owner_has(v, key, want, &has);
	*behind = !has;
	return err;
}

/* ---- circles -------------------------------------------------------------------------------- */

struct circle_search {
	struct lock_waits *ws;
	const struct lock *first;
	unsigned depth;
	unsigned left; /* of LOCK_SEARCH_MAX */
	bool found;
	int err;
};

struct step {
	struct circle_search *search;
	const struct lock *want;
};

static void search_from(
	struct circle_search *s, struct volume *v, uint64_t key, const struct lock *want);

/* False: the search is at its end. */
static bool search_on(struct circle_search *s)
{
	if (s->left)
		s->left--;
	return s->left && !s->found && !s->err;
}

static void search_owner(struct circle_search *s, const struct lock *owner)
{
	const struct lock_session *by = find_session(s->ws, owner->session);

	if (!by)
		return;
	list_for_each (pos, &by->waits) {
		struct lock_waiter *wait = own_wait_of(pos);

		if (!search_on(s))
			return;
		if (!lock_same_process(&wait->want, owner) || wait->visited == s->ws->searches)
			continue;
		wait->visited = s->ws->searches;
		search_from(s, wait->at->v, wait->at->key, &wait->want);
	}
}

static bool search_holder(const struct lock *lock, void *arg)
{
	struct step *step = arg;
	struct circle_search *s = step->search;

	/* A lock of the same process is from before it closed the file: it is about to go. */
	if (!lock_in_way(lock, step->want) || lock_same_process(lock, step->want))
		return search_on(s);
	if (lock_same_process(lock, s->first))
		s->found = true;
	else
		search_owner(s, lock);
	return search_on(s);
}

static void search_from(
	struct circle_search *s, struct volume *v, uint64_t key, const struct lock *want)
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
	struct circle_search s = {.ws = ws, .first = want, .left = LOCK_SEARCH_MAX};

	ws->searches++;
	search_from(&s, v, key, want);
	*deadlock = s.found;
	return s.err;
}

static void have_come_again(struct lock_waits *ws, const struct lock *owner)
{
	list_for_each (pos, &find_session(ws, owner->session)->waits) {
		struct lock_waiter *wait = own_wait_of(pos);

		if (!lock_same_process(&wait->want, owner))
			continue;
		wait->again = true;
		look_soon(ws, wait->at);
	}
}

int lock_waits_granted(struct lock_waits *ws, const struct lock *lock)
{
	struct circle_search s = {.ws = ws, .first = lock, .left = LOCK_SEARCH_MAX};

	ws->searches++;
	search_owner(&s, lock);
	if (s.found)
		have_come_again(ws, lock);
	return s.err;
}

/* ---- looking --------------------------------------------------------------------------------- */

/* All locks of an inode. */
struct held {
	struct lock *v;
	size_t n, room;
	bool no_memory;
};

static bool lock_waits_hold(const struct lock *lock, void *arg)
{
	struct held *h = arg;

	if (h->n == h->room) {
		size_t room = h->room ? 2 * h->room : HELD_MIN;
		struct lock *v = realloc(h->v, room * sizeof(*v));

		h->no_memory = !v;
		if (!v)
			return false;
		h->v = v;
		h->room = room;
	}
	h->v[h->n++] = *lock;
	return true;
}

static bool is_held_by_others(const struct held *h, const struct lock *want)
{
	for (size_t i = 0; i < h->n; i++)
		if (lock_in_way(&h->v[i], want))
			return true;
	return false;
}

static bool has_some(const struct held *h, const struct lock *owner)
{
	for (size_t i = 0; i < h->n; i++)
		if (lock_same_owner(&h->v[i], owner))
			return true;
	return false;
}

/* 0: it may come now; else when to look at it again; INT64_MAX: after a change. */
static int64_t may_come_ms(const struct lock_waits *ws, const struct lock_waiter *wait,
	const struct held *held, int64_t now)
{
	int64_t until;

	if (wait->again)
		return 0;
	if (is_held_by_others(held, &wait->want))
		return INT64_MAX;
	until = behind_until(ws, wait->at, &wait->want, wait, wait->came_ms, now);
	return until && has_some(held, &wait->want) ? 0 : until;
}

static void look_with(struct lock_waits *ws, struct lock_inode *at, const struct held *held,
	int64_t now, void (*tell)(uint64_t session, void *arg), void *arg)
{
	list_for_each (pos, &at->waits) {
		struct lock_waiter *wait = wait_of(pos);
		int64_t at_ms = wait->told_ms ? INT64_MAX : may_come_ms(ws, wait, held, now);

		if (at_ms) {
			at->look_ms = min_i64(at->look_ms, at_ms);
			continue;
		}
		wait->told_ms = now;
		tell(wait->want.session, arg);
	}
}

static int lock_waits_look_at(struct lock_waits *ws, struct lock_inode *at, int64_t now,
	void (*tell)(uint64_t session, void *arg), void *arg)
{
	struct held held = {0};
	int err = lock_each(at->v, at->key, lock_waits_hold, &held);

	if (!err && held.no_memory)
		err = -ENOMEM;
	at->look_ms = INT64_MAX;
	if (!err)
		look_with(ws, at, &held, now, tell, arg);
	else
		at->look_ms = now + ws->patience_ms; /* not at once: a damaged record stays so */
	free(held.v);
	return err;
}

int lock_waits_look(struct lock_waits *ws, void (*tell)(uint64_t session, void *arg), void *arg)
{
	int64_t now = now_ms(), next = INT64_MAX;
	int err = 0;

	list_for_each_safe (pos, &ws->inodes) {
		struct lock_inode *at = inode_of(pos);

		if (list_empty(&at->waits)) {
			list_del(&at->link);
			free(at);
			continue;
		}
		if (at->look_ms <= now) {
			int failed = lock_waits_look_at(ws, at, now, tell, arg);

			err = err ? err : failed;
		}
		next = min_i64(next, at->look_ms);
	}
	ws->look_ms = next;
	return err;
}

bool lock_waits_due(const struct lock_waits *ws, int64_t *next)
{
	*next = ws->look_ms;
	return *next <= now_ms();
}

static bool are_said(const struct lock_session *by)
{
	list_for_each (pos, &by->waits) {
		const struct lock_waiter *wait = own_wait_of(pos);

		if (wait->told_ms && !wait->said)
			return false;
	}
	return true;
}

/* Each wait goes to the end of the list after its turn. */
bool lock_waits_told(struct lock_waits *ws, uint64_t session,
	bool (*fn)(uint64_t ino, uint64_t number, void *arg), void *arg)
{
	struct lock_session *by = find_session(ws, session);

	for (unsigned left = by ? by->n : 0; left; left--) {
		struct lock_waiter *wait = own_wait_of(by->waits.next);

		if (wait->told_ms && !fn(ino_of_key(wait->at->key), wait->number, arg))
			return are_said(by);
		wait->said = wait->told_ms;
		list_del(&wait->of_session);
		list_add_tail(&by->waits, &wait->of_session);
	}
	return true;
}

void lock_waits_untold(struct lock_waits *ws, uint64_t session)
{
	struct lock_session *by = find_session(ws, session);

	if (!by)
		return;
	list_for_each (pos, &by->waits)
		own_wait_of(pos)->said = false;
}

static bool is_waited_for(const struct lock_inode *at, uint64_t session, const struct held *held)
{
	list_for_each (pos, &at->waits) {
		const struct lock *want = &wait_of(pos)->want;

		if (want->session != session && is_held_by_others(held, want))
			return true;
	}
	return false;
}

int lock_waits_for(const struct lock_waits *ws, uint64_t session, bool *any)
{
	*any = false;
	list_for_each (pos, &ws->inodes) {
		const struct lock_inode *at = inode_of(pos);
		struct held held = {0};
		int err = lock_of_session(at->v, at->key, session, &held.v, &held.n);

		*any = !err && is_waited_for(at, session, &held);
		free(held.v);
		if (err || *any)
			return err;
	}
	return 0;
}
