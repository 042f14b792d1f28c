/* local_locks.c - see local_locks.h. */
#include "daemon/lock/local_locks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "daemon/file/inode.h"
#include "daemon/lock/local_circle.h"
#include "daemon/lock/local_notes.h"
#include "daemon/op/fs_parts.h"
#include "daemon/record/record.h"

enum { ROOM_MIN = 4 };

static struct local_locks *table_of(const struct inode *inode)
{
	return inode->locks->local;
}

static struct local_wait *wait_of(struct list *pos)
{
	return list_entry(pos, struct local_wait, of_inode);
}

/* ---- whether there are any ------------------------------------------------------------------- */

bool local_locks_are_kept(const struct fs *fs)
{
	return atomic_load_explicit(&fs->locks->local, memory_order_acquire);
}

void local_locks_adopt(struct fs *fs, bool kept)
{
	atomic_store(&fs->locks->local, kept);
	if (fs->options.session.converts)
		record_set_alone(fs->record, kept);
}

void local_locks_begin(struct fs *fs)
{
	local_locks_adopt(fs,
		fs->options.session.converts && !fs->sharing && !session_is_read_only(fs->session));
}

void local_locks_end(struct fs *fs)
{
	local_locks_adopt(fs, false);
}

void local_locks_delete(struct local_locks *t)
{
	if (!t)
		return;
	free(t->v);
	free(t->spare);
	free(t->notes);
	free(t->spare_notes);
	free(t);
}

static struct local_locks *make_locked(struct inode *inode)
{
	struct local_locks *t = table_of(inode);

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	list_init(&t->waits);
	atomic_init(&t->look_ms, INT64_MAX);
	inode->locks->local = t;
	return t;
}

/* Both halves have room for the same number. */
static bool make_room(const struct inode *inode, struct local_locks *t, size_t n)
{
	size_t room = max_u64(n, max_u64(2 * t->room, ROOM_MIN));
	struct lock *v, *spare;

	if (n <= t->room)
		return true;
	if (!local_notes_make_room(inode, t, room))
		return false;
	v = realloc(t->v, room * sizeof(*v));
	if (v)
		t->v = v;
	spare = v ? realloc(t->spare, room * sizeof(*spare)) : NULL;
	if (!spare)
		return false;
	t->spare = spare;
	t->room = room;
	return true;
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* All are of one session, which may write. */
static struct lock lock_of(const struct rpc_lock *lock)
{
	bool whole = lock->kind == LOCK_KIND_FLOCK;

	return (struct lock){
		.owner = lock->owner,
		.start = whole ? 0 : lock->start,
		.end = whole ? LOCK_END_MAX : lock->end,
		.pid = lock->pid,
		.kind = lock->kind,
		.type = lock->type,
	};
}

static const struct lock *find_conflict(const struct local_locks *t, const struct lock *want)
{
	for (size_t i = 0; i < t->n; i++)
		if (lock_conflict(&t->v[i], want))
			return &t->v[i];
	return NULL;
}

static bool has_some(const struct local_locks *t, const struct lock *owner)
{
	for (size_t i = 0; i < t->n; i++)
		if (lock_same_owner(&t->v[i], owner))
			return true;
	return false;
}

/* An unlock in the middle of a lock makes two of it. So unlocks may reach twice the limit. */
static bool is_too_many(const struct locks *locks, const struct lock *lock, size_t more)
{
	uint64_t limit = lock->type == LOCK_FREE ? 2 * SESSION_LOCKS_MAX : SESSION_LOCKS_MAX;

	return atomic_load(&locks->nlocal) + more > limit;
}

static void look_locked(struct local_locks *t);

/* To free all that an owner has makes no more of them. */
static size_t most_after(const struct local_locks *t, const struct lock *lock)
{
	bool all = lock->type == LOCK_FREE && !lock->start && lock->end == LOCK_END_MAX;

	return all ? t->n : t->n + 2;
}

static void replace_locked(struct local_locks *t, size_t n)
{
	struct lock *v = t->v;

	t->v = t->spare;
	t->spare = v;
	t->n = n;
}

static int set_locked(struct inode *inode, const struct lock *lock)
{
	struct local_locks *t = make_locked(inode);
	struct locks *locks = inode->fs->locks;
	size_t n;

	if (!t || !make_room(inode, t, most_after(t, lock)))
		return -ENOLCK;
	n = lock_set_range(t->spare, t->v, t->n, lock);
	if (n > LOCKS_MAX || (n > t->n && is_too_many(locks, lock, n - t->n)))
		return -ENOLCK;
	atomic_fetch_add(&locks->nlocal, n - t->n);
	local_notes_change_locked(inode, t, n);
	replace_locked(t, n);
	look_locked(t);
	return 0;
}

/* As the kernel does: of two owners that both want more than they have, one can get it. */
static void give_up_own_locked(struct inode *inode, const struct lock *want)
{
	struct lock none = *want;

	none.type = LOCK_FREE;
	set_locked(inode, &none);
}

static int try_locked(struct inode *inode, const struct lock *want)
{
	const struct local_locks *t = table_of(inode);

	if (!t || !find_conflict(t, want))
		return set_locked(inode, want);
	if (want->kind == LOCK_KIND_FLOCK)
		give_up_own_locked(inode, want);
	return -EAGAIN;
}

/* The owner may also wait, as threads of one process may: owners that it waits for may now wait for
 * it. */
static void was_granted(struct inode *inode, const struct lock *lock)
{
	if (lock->kind == LOCK_KIND_POSIX && lock->type != LOCK_FREE &&
		atomic_load(&inode->fs->locks->nrecord_waits))
		local_circle_granted(inode->fs->locks, lock);
}

int local_locks_set(struct inode *inode, const struct rpc_lock *asked)
{
	struct lock lock = lock_of(asked);
	int err;

	pthread_mutex_lock(&inode->lock);
	err = try_locked(inode, &lock);
	pthread_mutex_unlock(&inode->lock);
	if (!err)
		was_granted(inode, &lock);
	return err;
}

void local_locks_find(
	struct inode *inode, const struct rpc_lock *asked, struct rpc_getlk_reply *found)
{
	struct lock want = lock_of(asked);
	const struct lock *had;

	*found = (struct rpc_getlk_reply){0};
	pthread_mutex_lock(&inode->lock);
	had = table_of(inode) ? find_conflict(table_of(inode), &want) : NULL;
	if (had)
		*found = (struct rpc_getlk_reply){had->type, had->pid, had->start, had->end};
	pthread_mutex_unlock(&inode->lock);
}

bool local_locks_has_locked(const struct inode *inode, uint64_t owner)
{
	const struct local_locks *t = table_of(inode);

	for (size_t i = 0; t && i < t->n; i++)
		if (t->v[i].owner == owner)
			return true;
	return false;
}

void local_locks_free_locked(struct inode *inode, uint64_t owner, uint8_t kind)
{
	struct lock all = {.owner = owner, .end = LOCK_END_MAX, .kind = kind};

	if (local_locks_has_locked(inode, owner))
		set_locked(inode, &all);
}

void local_locks_forget_locked(struct inode *inode)
{
	struct local_locks *t = table_of(inode);

	if (!t)
		return;
	atomic_fetch_sub(&inode->fs->locks->nlocal, t->n);
	local_notes_end_locked(inode, t);
	t->n = t->nregistered = 0;
	t->stands = false;
}

/* ---- the order ------------------------------------------------------------------------------- */

/* A wait that came at `came_ms` is behind this one until then. */
static int64_t before_until(const struct local_wait *wait, int64_t came_ms)
{
	return (wait->told_ms ? wait->told_ms : came_ms) + LOCK_PATIENCE_MS;
}

/* Until when it is behind another one; 0: behind nobody. */
static int64_t behind_until(const struct local_locks *t, const struct lock *want,
	const struct local_wait *self, int64_t came_ms, int64_t now)
{
	list_for_each (pos, &t->waits) {
		const struct local_wait *wait = wait_of(pos);

		if (wait == self)
			break;
		if (lock_conflict(&wait->want, want) && before_until(wait, came_ms) > now)
			return before_until(wait, came_ms);
	}
	return 0;
}

static bool is_behind(
	const struct local_locks *t, const struct local_wait *wait, const struct lock *want)
{
	int64_t now = now_ms(), came_ms = wait->waits ? wait->came_ms : now;

	return behind_until(t, want, wait, came_ms, now) &&
	       (want->kind == LOCK_KIND_FLOCK || !has_some(t, want));
}

/* 0: it may come now; else when to look at it again; INT64_MAX: after a change. */
static int64_t may_come_ms(const struct local_locks *t, const struct local_wait *wait, int64_t now)
{
	int64_t until;

	if (wait->again)
		return 0;
	if (find_conflict(t, &wait->want))
		return INT64_MAX;
	until = behind_until(t, &wait->want, wait, wait->came_ms, now);
	return until && has_some(t, &wait->want) ? 0 : until;
}

/* After each change: tells those that may come. */
static void look_locked(struct local_locks *t)
{
	int64_t look_ms = INT64_MAX, now;

	if (list_empty(&t->waits) || t->stands) {
		atomic_store(&t->look_ms, INT64_MAX);
		return;
	}
	now = now_ms();
	list_for_each (pos, &t->waits) {
		struct local_wait *wait = wait_of(pos);
		int64_t at_ms = wait->told_ms ? INT64_MAX : may_come_ms(t, wait, now);

		if (!at_ms)
			local_wait_tell_locked(wait);
		else
			look_ms = min_i64(look_ms, at_ms);
	}
	atomic_store(&t->look_ms, look_ms);
}

void local_locks_tick(struct inode *inode)
{
	struct local_locks *t;

	pthread_mutex_lock(&inode->lock);
	t = table_of(inode);
	if (t && atomic_load(&t->look_ms) <= now_ms())
		look_locked(t);
	pthread_mutex_unlock(&inode->lock);
}

/* ---- waits ----------------------------------------------------------------------------------- */

static bool is_of_records(const struct local_wait *wait)
{
	return wait->want.kind == LOCK_KIND_POSIX;
}

/* Record locks: with locks.circles held. */
static void enter_locked(struct local_wait *wait, struct local_locks *t)
{
	struct locks *locks = wait->inode->fs->locks;

	wait->waits = true;
	wait->came_ms = now_ms();
	list_add_tail(&t->waits, &wait->of_inode);
	atomic_fetch_add(&locks->nlocal_waits, 1);
	if (!is_of_records(wait))
		return;
	list_add_tail(&locks->record_waits, &wait->of_mount);
	atomic_fetch_add(&locks->nrecord_waits, 1);
}

static void leave_locked(struct local_wait *wait)
{
	struct locks *locks = wait->inode->fs->locks;

	wait->waits = false;
	list_del(&wait->of_inode);
	atomic_fetch_sub(&locks->nlocal_waits, 1);
	if (is_of_records(wait)) {
		list_del(&wait->of_mount);
		atomic_fetch_sub(&locks->nrecord_waits, 1);
	}
}

/* It counts as not told: what was told of is not to be had. */
static int wait_locked(struct local_wait *wait, struct local_locks *t)
{
	wait->told_ms = 0;
	wait->again = false;
	if (!wait->waits && atomic_load(&wait->inode->fs->locks->nlocal_waits) >= LOCK_WAITS_MAX)
		return -ENOLCK;
	if (!wait->waits)
		enter_locked(wait, t);
	if (!is_of_records(wait))
		give_up_own_locked(wait->inode, &wait->want);
	else
		look_locked(t);
	return -EINPROGRESS;
}

/* A wait that can be had no more leaves before others are told. held: by another owner. */
static int get_or_wait_locked(struct local_wait *wait, bool *held)
{
	struct local_locks *t = make_locked(wait->inode);
	int err;

	*held = false;
	if (!wait->waits && !local_locks_are_kept(wait->inode->fs))
		return -EREMOTE;
	if (!t)
		return -ENOLCK;
	if (t->stands && wait->waits)
		return -EINPROGRESS;
	*held = find_conflict(t, &wait->want);
	if (*held || is_behind(t, wait, &wait->want))
		return wait_locked(wait, t);
	if (wait->waits)
		leave_locked(wait);
	err = set_locked(wait->inode, &wait->want);
	if (err)
		look_locked(t);
	return err;
}

static int wait_for_whole(struct local_wait *wait)
{
	bool held;
	int err;

	pthread_mutex_lock(&wait->inode->lock);
	err = get_or_wait_locked(wait, &held);
	pthread_mutex_unlock(&wait->inode->lock);
	return err;
}

static bool leave_and_look(struct local_wait *wait)
{
	bool waited;

	pthread_mutex_lock(&wait->inode->lock);
	waited = wait->waits;
	if (waited) {
		leave_locked(wait);
		look_locked(table_of(wait->inode));
	}
	pthread_mutex_unlock(&wait->inode->lock);
	return waited;
}

static int wait_for_records(struct local_wait *wait)
{
	struct locks *locks = wait->inode->fs->locks;
	bool held;
	int err;

	pthread_mutex_lock(&locks->circles);
	pthread_mutex_lock(&wait->inode->lock);
	err = get_or_wait_locked(wait, &held);
	pthread_mutex_unlock(&wait->inode->lock);
	if (err == -EINPROGRESS && held && local_circle_is_closed(locks, wait)) {
		leave_and_look(wait);
		err = -EDEADLK;
	}
	pthread_mutex_unlock(&locks->circles);
	return err;
}

void local_locks_wait_init(struct local_wait *wait, struct inode *inode,
	const struct rpc_lock *lock, void (*tell)(struct local_wait *wait))
{
	*wait = (struct local_wait){.inode = inode, .want = lock_of(lock), .tell = tell};
	list_init(&wait->of_inode);
	list_init(&wait->of_mount);
	list_init(&wait->found);
}

int local_locks_wait(struct local_wait *wait)
{
	int err = is_of_records(wait) ? wait_for_records(wait) : wait_for_whole(wait);

	if (!err)
		was_granted(wait->inode, &wait->want);
	return err;
}

bool local_locks_has_wait(struct local_wait *wait)
{
	bool waits;

	pthread_mutex_lock(&wait->inode->lock);
	waits = wait->waits;
	pthread_mutex_unlock(&wait->inode->lock);
	return waits;
}

bool local_locks_leave(struct local_wait *wait)
{
	struct locks *locks = wait->inode->fs->locks;
	bool waited;

	/* Only its own thread has it enter. */
	if (!local_locks_has_wait(wait))
		return false;
	if (!is_of_records(wait))
		return leave_and_look(wait);
	pthread_mutex_lock(&locks->circles);
	waited = leave_and_look(wait);
	pthread_mutex_unlock(&locks->circles);
	return waited;
}

/* ---- the server learns of them --------------------------------------------------------------- */

void local_locks_stand_locked(struct inode *inode)
{
	if (table_of(inode))
		table_of(inode)->stands = true;
}

void local_locks_leave_all(struct inode *inode)
{
	struct locks *locks = inode->fs->locks;
	struct local_locks *t;

	pthread_mutex_lock(&locks->circles);
	pthread_mutex_lock(&inode->lock);
	t = table_of(inode);
	while (t && !list_empty(&t->waits)) {
		struct local_wait *wait = wait_of(t->waits.next);

		leave_locked(wait);
		local_wait_tell_locked(wait);
	}
	local_locks_forget_locked(inode);
	pthread_mutex_unlock(&inode->lock);
	pthread_mutex_unlock(&locks->circles);
}

/* ---- another daemon -------------------------------------------------------------------------- */

int local_locks_adopt_locked(struct inode *inode, const struct lock *lock)
{
	return set_locked(inode, lock) ? -ENOMEM : 0;
}

int local_locks_adopt_wait(struct local_wait *wait)
{
	struct locks *locks = wait->inode->fs->locks;
	struct local_locks *t;

	pthread_mutex_lock(&locks->circles);
	pthread_mutex_lock(&wait->inode->lock);
	t = make_locked(wait->inode);
	if (t)
		enter_locked(wait, t);
	pthread_mutex_unlock(&wait->inode->lock);
	pthread_mutex_unlock(&locks->circles);
	return t ? 0 : -ENOMEM;
}
