/* local_notes.c - see local_notes.h. */
#include "daemon/lock/local_notes.h"

#include <stdlib.h>

#include "daemon/file/handle.h"
#include "daemon/file/inode.h"
#include "daemon/op/fs_parts.h"
#include "daemon/record/record.h"

static bool grow(struct lock_note **notes, size_t room)
{
	struct lock_note *more = realloc(*notes, room * sizeof(*more));

	if (more)
		*notes = more;
	return more;
}

bool local_notes_make_room(const struct inode *inode, struct local_locks *t, size_t room)
{
	return !inode->fs->record || (grow(&t->notes, room) && grow(&t->spare_notes, room));
}

static const struct lock_owner *owner_of(const struct inode *inode, uint64_t number)
{
	list_for_each (pos, &inode->locks->owners) {
		const struct lock_owner *o = list_entry(pos, struct lock_owner, link);

		if (o->number == number)
			return o;
	}
	return NULL;
}

static struct record_lock *write_entry(const struct inode *inode, const struct lock *lock)
{
	const struct lock_owner *owner = owner_of(inode, lock->owner);
	struct record_lock *entry = record_lock_new(inode->fs->record);

	if (!entry)
		return NULL;
	atomic_store(&entry->ino, inode->ino);
	entry->owner = owner ? owner->kernel : 0;
	entry->handle = owner && owner->handle ? handle_number(owner->handle) : 0;
	entry->start = lock->start;
	entry->end = lock->end;
	entry->pid = lock->pid;
	entry->kind = lock->kind;
	entry->type = lock->type;
	record_lock_counts(entry);
	return entry;
}

static bool is_same(const struct lock *a, const struct lock *b)
{
	return lock_same_owner(a, b) && a->start == b->start && a->end == b->end &&
	       a->type == b->type && a->pid == b->pid;
}

/* Both are sorted. */
static void note_new(const struct inode *inode, struct local_locks *t, size_t n)
{
	size_t old = 0;

	for (size_t i = 0; i < n; i++) {
		while (old < t->n && lock_is_before(&t->v[old], &t->spare[i]))
			old++;
		t->spare_notes[i] = (struct lock_note){0};
		if (old < t->n && is_same(&t->v[old], &t->spare[i])) {
			t->spare_notes[i].entry = t->notes[old].entry;
			t->notes[old].kept = true;
		} else {
			t->spare_notes[i].entry = write_entry(inode, &t->spare[i]);
		}
	}
}

static void end_others(const struct inode *inode, struct local_locks *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (!t->notes[i].kept)
			record_lock_end(inode->fs->record, t->notes[i].entry);
}

void local_notes_change_locked(const struct inode *inode, struct local_locks *t, size_t n)
{
	struct lock_note *notes = t->notes;

	if (!inode->fs->record)
		return;
	note_new(inode, t, n);
	end_others(inode, t);
	t->notes = t->spare_notes;
	t->spare_notes = notes;
}

void local_notes_end_locked(const struct inode *inode, struct local_locks *t)
{
	if (inode->fs->record)
		end_others(inode, t);
}
