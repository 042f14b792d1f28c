/* local_circle.c - see local_circle.h. */
#include "daemon/lock/local_circle.h"

#include "daemon/file/inode.h"

struct search {
	struct locks *locks;
	const struct lock *first; /* of the process that the circle would lead back to */
	unsigned left;            /* of LOCK_SEARCH_MAX */
	bool closed;
};

static void search_init(struct search *s, struct locks *locks, const struct lock *first)
{
	*s = (struct search){.locks = locks, .first = first, .left = LOCK_SEARCH_MAX};
	locks->searches++;
}

static struct local_wait *mount_wait_of(struct list *pos)
{
	return list_entry(pos, struct local_wait, of_mount);
}

/* False: the search is at its end. */
static bool goes_on(struct search *s)
{
	if (s->left)
		s->left--;
	return s->left && !s->closed;
}

/* The owner's process waits for something itself. */
static void add_waits_of(struct search *s, const struct lock *owner)
{
	list_for_each (pos, &s->locks->record_waits) {
		struct local_wait *wait = mount_wait_of(pos);

		if (!goes_on(s))
			return;
		if (wait->visited == s->locks->searches || !lock_same_process(&wait->want, owner))
			continue;
		wait->visited = s->locks->searches;
		list_add_tail(&s->locks->found, &wait->found);
	}
}

/* A lock of the same process is from before it closed the file: it is about to go. */
static void look_at_holders(struct search *s, const struct local_wait *wait)
{
	const struct local_locks *t;

	pthread_mutex_lock(&wait->inode->lock);
	t = wait->inode->locks->local;
	for (size_t i = 0; t && i < t->n && goes_on(s); i++) {
		const struct lock *had = &t->v[i];

		if (!lock_conflict(had, &wait->want) || lock_same_process(had, &wait->want))
			continue;
		if (lock_same_process(had, s->first))
			s->closed = true;
		else
			add_waits_of(s, had);
	}
	pthread_mutex_unlock(&wait->inode->lock);
}

static bool run(struct search *s)
{
	struct list *link;

	while ((link = list_pop(&s->locks->found)))
		if (!s->closed)
			look_at_holders(s, list_entry(link, struct local_wait, found));
	return s->closed;
}

bool local_circle_is_closed(struct locks *locks, struct local_wait *wait)
{
	struct search s;

	search_init(&s, locks, &wait->want);
	wait->visited = locks->searches;
	list_add_tail(&locks->found, &wait->found);
	return run(&s);
}

static void have_come_again(struct locks *locks, const struct lock *owner)
{
	list_for_each (pos, &locks->record_waits) {
		struct local_wait *wait = mount_wait_of(pos);

		if (!lock_same_process(&wait->want, owner))
			continue;
		pthread_mutex_lock(&wait->inode->lock);
		wait->again = true;
		local_wait_tell_locked(wait);
		pthread_mutex_unlock(&wait->inode->lock);
	}
}

void local_circle_granted(struct locks *locks, const struct lock *lock)
{
	struct search s;

	pthread_mutex_lock(&locks->circles);
	search_init(&s, locks, lock);
	add_waits_of(&s, lock);
	if (run(&s))
		have_come_again(locks, lock);
	pthread_mutex_unlock(&locks->circles);
}
