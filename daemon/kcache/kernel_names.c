#include "daemon/kcache/kernel_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"

struct shown_entry {
	struct name_key key; /* both 0: free */
	uint32_t thread;
	struct shown_name name;
};

/* The entry that was noted last comes first. */
struct shown_set {
	struct shown_entry entries[SHOWN_WAYS];
};

int kernel_names_init(struct kernel_names *s)
{
	s->sets = calloc(SHOWN_SETS, sizeof(*s->sets));
	if (!s->sets)
		return -ENOMEM;
	for (unsigned i = 0; i < SHOWN_LOCKS; i++)
		pthread_mutex_init(&s->locks[i], NULL);
	return 0;
}

void kernel_names_fini(struct kernel_names *s)
{
	for (unsigned i = 0; s->sets && i < SHOWN_LOCKS; i++)
		pthread_mutex_destroy(&s->locks[i]);
	free(steal_ptr(&s->sets));
}

void kernel_names_forget(struct kernel_names *s)
{
	for (unsigned i = 0; i < SHOWN_LOCKS; i++)
		pthread_mutex_lock(&s->locks[i]);
	memset(s->sets, 0, SHOWN_SETS * sizeof(*s->sets));
	for (unsigned i = SHOWN_LOCKS; i-- > 0;)
		pthread_mutex_unlock(&s->locks[i]);
}

static struct shown_set *kernel_names_lock(struct kernel_names *s, uint32_t thread)
{
	unsigned n = thread % SHOWN_SETS;

	pthread_mutex_lock(&s->locks[n % SHOWN_LOCKS]);
	return &s->sets[n];
}

static void kernel_names_unlock(struct kernel_names *s, uint32_t thread)
{
	pthread_mutex_unlock(&s->locks[thread % SHOWN_SETS % SHOWN_LOCKS]);
}

static struct shown_entry *find(struct shown_set *set, uint32_t thread, struct name_key key)
{
	for (unsigned i = 0; i < SHOWN_WAYS; i++) {
		struct shown_entry *e = &set->entries[i];

		if (e->thread == thread && e->key.a == key.a && e->key.b == key.b)
			return e;
	}
	return NULL;
}

/* Takes the oldest entry that is not about to come again: the kernel looks up the whole path before
 * it comes. */
static struct shown_entry *kernel_names_make_room(struct shown_set *set)
{
	struct shown_entry *room = &set->entries[SHOWN_WAYS - 1];

	for (unsigned i = 0; i < SHOWN_WAYS; i++) {
		struct shown_entry *e = &set->entries[i];

		if (e->name.refused)
			e->name.refused--;
		if (!e->name.refused || room->name.refused)
			room = e;
	}
	return room;
}

void kernel_names_note(
	struct kernel_names *s, uint32_t thread, struct name_key key, uint64_t ino, bool directory)
{
	struct shown_set *set;
	struct shown_entry *e;
	uint8_t refused;

	if (!thread)
		return;
	set = kernel_names_lock(s, thread);
	e = find(set, thread, key);
	refused = e ? e->name.refused : 0;
	if (!e)
		e = kernel_names_make_room(set);
	for (; e > set->entries; e--)
		*e = e[-1];
	*e = (struct shown_entry){key, thread, {ino, directory, refused}};
	kernel_names_unlock(s, thread);
}

bool kernel_names_find(
	struct kernel_names *s, uint32_t thread, struct name_key key, struct shown_name *out)
{
	struct shown_set *set = kernel_names_lock(s, thread);
	struct shown_entry *e = find(set, thread, key);

	if (e)
		*out = e->name;
	kernel_names_unlock(s, thread);
	return e;
}

void kernel_names_set_refused(
	struct kernel_names *s, uint32_t thread, struct name_key key, bool refused)
{
	struct shown_entry *e = find(kernel_names_lock(s, thread), thread, key);

	if (e)
		e->name.refused = refused ? SHOWN_REFUSED_NAMES : 0;
	kernel_names_unlock(s, thread);
}

/* ---- another daemon -------------------------------------------------------------------------- */

static bool is_free(const struct shown_entry *e)
{
	return !e->thread;
}

void kernel_names_each(struct kernel_names *s,
	void (*fn)(const struct kernel_names_kept *kept, void *arg), void *arg)
{
	for (uint32_t set = 0; set < SHOWN_SETS; set++) {
		struct shown_set *at = kernel_names_lock(s, set);

		for (unsigned i = 0; i < SHOWN_WAYS; i++) {
			const struct shown_entry *e = &at->entries[i];

			if (!is_free(e))
				fn(&(struct kernel_names_kept){e->key, e->thread, e->name}, arg);
		}
		kernel_names_unlock(s, set);
	}
}

int kernel_names_adopt(struct kernel_names *s, const struct kernel_names_kept *kept)
{
	struct shown_set *set;
	unsigned i = 0;

	if (!kept->thread || kept->name.refused > SHOWN_REFUSED_NAMES)
		return -EINVAL;
	set = kernel_names_lock(s, kept->thread);
	while (i < SHOWN_WAYS && !is_free(&set->entries[i]))
		i++;
	if (i < SHOWN_WAYS)
		set->entries[i] = (struct shown_entry){kept->key, kept->thread, kept->name};
	kernel_names_unlock(s, kept->thread);
	return i < SHOWN_WAYS ? 0 : -EINVAL;
}
