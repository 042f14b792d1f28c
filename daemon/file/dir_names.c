/* dir_names.c - see dir_names.h: open addressing, the next free slot, at most half of them used. */
#include "daemon/file/dir_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/util.h"

enum { SLOTS_FIRST = 16 };

/* The lowest bit of a slot, which is not the hash's: it was added again while it was there. */
static const uint64_t DOUBLE = 1;

int dir_names_sets_init(struct name_sets *sets)
{
	atomic_init(&sets->bytes, 0);
	return getrandom(sets->key, sizeof(sets->key), 0) == sizeof(sets->key) ? 0 : -EIO;
}

uint64_t dir_names_sets_hash(const struct name_sets *sets, const char *name, size_t len)
{
	return namehash(sets->key, name, len);
}

/* A slot's value: neither 0 nor marked. */
static uint64_t value_of(uint64_t hash)
{
	uint64_t value = hash & ~DOUBLE;

	return value ? value : 2;
}

static uint32_t home_of(const struct names *n, uint64_t value)
{
	return (uint32_t)(value >> 32) & (n->nslots - 1);
}

static uint32_t after(const struct names *n, uint32_t i)
{
	return (i + 1) & (n->nslots - 1);
}

/* The slot that has the value, or the free one where it belongs. */
static uint32_t dir_names_find(const struct names *n, uint64_t value)
{
	uint32_t i = home_of(n, value);

	while (n->slots[i] && (n->slots[i] & ~DOUBLE) != value)
		i = after(n, i);
	return i;
}

static bool reserve(struct name_sets *sets, size_t bytes)
{
	if (atomic_fetch_add(&sets->bytes, bytes) + bytes <= NAMES_BYTES_MAX)
		return true;
	atomic_fetch_sub(&sets->bytes, bytes);
	return false;
}

static void release(struct names *n, struct name_sets *sets)
{
	atomic_fetch_sub(&sets->bytes, n->nslots * sizeof(*n->slots));
	free(n->slots);
}

static bool grow(struct names *n, struct name_sets *sets)
{
	struct names more = *n;
	size_t bytes;

	more.nslots = n->nslots ? 2 * n->nslots : SLOTS_FIRST;
	bytes = more.nslots * sizeof(*more.slots);
	if (!reserve(sets, bytes))
		return false;
	more.slots = calloc(more.nslots, sizeof(*more.slots));
	if (!more.slots) {
		atomic_fetch_sub(&sets->bytes, bytes);
		return false;
	}
	for (uint32_t i = 0; i < n->nslots; i++)
		if (n->slots[i])
			more.slots[dir_names_find(&more, n->slots[i] & ~DOUBLE)] = n->slots[i];
	release(n, sets);
	*n = more;
	return true;
}

void dir_names_begin(struct names *n)
{
	n->known = true;
}

void dir_names_forget(struct names *n, struct name_sets *sets)
{
	release(n, sets);
	*n = (struct names){0};
}

static void put(struct names *n, struct name_sets *sets, uint64_t hash)
{
	uint64_t value = value_of(hash);
	uint32_t i;

	if (2 * n->nused >= n->nslots && !grow(n, sets)) {
		dir_names_forget(n, sets);
		return;
	}
	i = dir_names_find(n, value);
	if (n->slots[i]) {
		n->slots[i] |= DOUBLE;
		return;
	}
	n->slots[i] = value;
	n->nused++;
}

void dir_names_add(struct names *n, struct name_sets *sets, uint64_t hash)
{
	if (n->known)
		put(n, sets, hash);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Whether all names up to that entry of the list are here. */
static bool has_all_before(
	struct names *n, struct name_sets *sets, uint64_t changes, uint64_t after)
{
	if (n->known)
		return false;
	if (!after) {
		dir_names_forget(n, sets);
		n->listed = true;
		n->changes = changes;
	}
	return n->listed && n->changes == changes && n->cookie == after;
}

void dir_names_list(
	struct names *n, struct name_sets *sets, const struct names_entry *entry, uint64_t hash)
{
	if (!has_all_before(n, sets, entry->changes, entry->after))
		return;
	n->cookie = entry->cookie;
	put(n, sets, hash);
}

void dir_names_list_end(struct names *n, struct name_sets *sets, uint64_t changes, uint64_t after)
{
	if (!has_all_before(n, sets, changes, after))
		return;
	n->listed = false;
	n->known = true;
}

/* ---- questions and removals ------------------------------------------------------------------ */

/* Whether a search that begins at home passes hole before it comes to i. */
static bool passes(const struct names *n, uint32_t home, uint32_t hole, uint32_t i)
{
	uint32_t mask = n->nslots - 1;

	return ((i - home) & mask) >= ((i - hole) & mask);
}

void dir_names_remove(struct names *n, uint64_t hash)
{
	uint32_t hole;

	if (!n->nused)
		return;
	hole = dir_names_find(n, value_of(hash));
	if (!n->slots[hole] || n->slots[hole] & DOUBLE)
		return;
	/* Those behind it move up. Otherwise a search would end at the hole before it finds them.
	 */
	for (uint32_t i = after(n, hole); n->slots[i]; i = after(n, i)) {
		if (!passes(n, home_of(n, n->slots[i]), hole, i))
			continue;
		n->slots[hole] = n->slots[i];
		hole = i;
	}
	n->slots[hole] = 0;
	n->nused--;
}

bool dir_names_are_none(const struct names *n)
{
	return n->known && !n->nused;
}

bool dir_names_lack(const struct names *n, uint64_t hash)
{
	return n->known && (!n->nused || !n->slots[dir_names_find(n, value_of(hash))]);
}
