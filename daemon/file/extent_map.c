#include "daemon/file/extent_map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"

enum { CHUNK_FIRST = 4, CHUNK_MAX = 128 };

/* Sorted; never empty while it is in the map. */
struct extent_chunk {
	uint32_t n, cap;
	uint32_t npending; /* extents that are not COMMITTED; 0: nobody need look at the others */
	struct mapped_extent e[];
};

static uint64_t end_of(const struct mapped_extent *e)
{
	return e->fpage + e->npages;
}

void extent_map_init(struct extent_map *map)
{
	*map = (struct extent_map){0};
}

void extent_map_fini(struct extent_map *map)
{
	for (size_t i = 0; i < map->nchunks; i++)
		free(map->chunks[i]);
	free(map->chunks);
	extent_map_init(map);
}

/* ---- finding --------------------------------------------------------------------------------- */

/* The last chunk that begins at or before fpage; 0 if none does. */
static size_t find_chunk(const struct extent_map *map, uint64_t fpage)
{
	size_t low = 0, high = map->nchunks;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (map->chunks[mid]->e[0].fpage <= fpage)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* The first extent that ends behind fpage. False: none, and the cursor is behind the last one. */
static bool locate(const struct extent_map *map, uint64_t fpage, struct extent_cursor *at)
{
	*at = (struct extent_cursor){.chunk = find_chunk(map, fpage)};
	if (at->chunk >= map->nchunks)
		return false;

	const struct extent_chunk *chunk = map->chunks[at->chunk];
	uint32_t low = 0, high = chunk->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (end_of(&chunk->e[mid]) <= fpage)
			low = mid + 1;
		else
			high = mid;
	}
	at->index = low;
	if (low == chunk->n)
		*at = (struct extent_cursor){.chunk = at->chunk + 1};
	return at->chunk < map->nchunks;
}

bool extent_map_seek(const struct extent_map *map, uint64_t fpage, struct extent_cursor *cursor,
	struct mapped_extent *out)
{
	if (!locate(map, fpage, cursor))
		return false;
	*out = map->chunks[cursor->chunk]->e[cursor->index];
	return true;
}

bool extent_map_next(
	const struct extent_map *map, struct extent_cursor *cursor, struct mapped_extent *out)
{
	if (++cursor->index >= map->chunks[cursor->chunk]->n)
		*cursor = (struct extent_cursor){.chunk = cursor->chunk + 1};
	if (cursor->chunk >= map->nchunks)
		return false;
	*out = map->chunks[cursor->chunk]->e[cursor->index];
	return true;
}

bool extent_map_has_all(const struct extent_map *map, uint64_t fpage, uint64_t end)
{
	struct extent_cursor at;
	struct mapped_extent e;
	bool found = extent_map_seek(map, fpage, &at, &e);

	while (found && e.fpage <= fpage && fpage < end) {
		fpage = e.fpage + e.npages;
		found = extent_map_next(map, &at, &e);
	}
	return fpage >= end;
}

size_t extent_map_count(const struct extent_map *map)
{
	size_t count = 0;

	for (size_t i = 0; i < map->nchunks; i++)
		count += map->chunks[i]->n;
	return count;
}

/* ---- inserting ------------------------------------------------------------------------------- */

/* b goes on where a ends, in the file and in memory. */
static bool extent_map_adjoin(const struct mapped_extent *a, const struct mapped_extent *b)
{
	return a->state == b->state && a->state != EXTENT_FILLING && end_of(a) == b->fpage &&
	       a->target == b->target && a->region == b->region &&
	       (uint64_t)a->page + a->npages == b->page &&
	       (uint64_t)a->npages + b->npages <= UINT32_MAX;
}

static struct extent_chunk *chunk_resize(struct extent_chunk *chunk, uint32_t cap)
{
	struct extent_chunk *grown = realloc(chunk, sizeof(*grown) + cap * sizeof(grown->e[0]));

	if (grown && !chunk)
		grown->n = grown->npending = 0;
	if (grown)
		grown->cap = cap;
	return grown;
}

/* Makes room for a chunk pointer at index. */
static int add_chunk(struct extent_map *map, size_t index, struct extent_chunk *chunk)
{
	if (map->nchunks == map->cap) {
		size_t cap = map->cap ? map->cap * 2 : 1;
		struct extent_chunk **grown = realloc(map->chunks, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		map->chunks = grown;
		map->cap = cap;
	}
	memmove(&map->chunks[index + 1], &map->chunks[index],
		(map->nchunks - index) * sizeof(map->chunks[0]));
	map->chunks[index] = chunk;
	map->nchunks++;
	return 0;
}

static uint32_t count_pending(const struct mapped_extent *e, uint32_t n)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++)
		count += e[i].state != EXTENT_COMMITTED;
	return count;
}

/* Splits a full chunk. Where the file grows at its end, begins an empty chunk behind it instead. */
static int split_chunk(struct extent_map *map, struct extent_cursor *at)
{
	struct extent_chunk *full = map->chunks[at->chunk];
	uint32_t keep =
		at->index == full->n && at->chunk + 1 == map->nchunks ? full->n : full->n / 2;
	struct extent_chunk *behind = chunk_resize(NULL, CHUNK_MAX);
	int r;

	if (!behind)
		return -ENOMEM;
	r = add_chunk(map, at->chunk + 1, behind);
	if (r) {
		free(behind);
		return r;
	}
	behind->n = full->n - keep;
	memcpy(behind->e, &full->e[keep], behind->n * sizeof(behind->e[0]));
	behind->npending = count_pending(behind->e, behind->n);
	full->npending -= behind->npending;
	full->n = keep;
	if (at->index > keep || keep == CHUNK_MAX)
		*at = (struct extent_cursor){.chunk = at->chunk + 1, .index = at->index - keep};
	return 0;
}

/* Gives the chunk at the cursor room for one more extent; may move the cursor. */
static int extent_map_make_room(struct extent_map *map, struct extent_cursor *at)
{
	struct extent_chunk *chunk;
	int r;

	if (!map->nchunks) {
		chunk = chunk_resize(NULL, CHUNK_FIRST);
		if (!chunk)
			return -ENOMEM;
		r = add_chunk(map, 0, chunk);
		if (r)
			free(chunk);
		*at = (struct extent_cursor){0};
		return r;
	}
	chunk = map->chunks[at->chunk];
	if (chunk->n < chunk->cap)
		return 0;
	if (chunk->cap == CHUNK_MAX)
		return split_chunk(map, at);
	chunk = chunk_resize(chunk, chunk->cap * 4 < CHUNK_MAX ? chunk->cap * 4 : CHUNK_MAX);
	if (!chunk)
		return -ENOMEM;
	map->chunks[at->chunk] = chunk;
	return 0;
}

/* Merges e with the extent before or at the cursor, or both. */
static bool try_merge(struct extent_chunk *chunk, uint32_t index, const struct mapped_extent *e)
{
	struct mapped_extent *before = index ? &chunk->e[index - 1] : NULL;
	struct mapped_extent *behind = index < chunk->n ? &chunk->e[index] : NULL;

	if (before && extent_map_adjoin(before, e)) {
		before->npages += e->npages;
		if (behind && extent_map_adjoin(before, behind)) {
			before->npages += behind->npages;
			chunk->npending -= behind->state != EXTENT_COMMITTED;
			memmove(behind, behind + 1, (chunk->n - index - 1) * sizeof(*behind));
			chunk->n--;
		}
		return true;
	}
	if (behind && extent_map_adjoin(e, behind)) {
		behind->fpage = e->fpage;
		behind->page = e->page;
		behind->npages += e->npages;
		return true;
	}
	return false;
}

static int insert_at(struct extent_map *map, struct extent_cursor at, const struct mapped_extent *e)
{
	struct extent_chunk *chunk;
	int r;

	/* The place in front of a chunk is also that behind the chunk before, where a growing file
	 * goes on. */
	if (at.chunk && !at.index) {
		at.chunk--;
		at.index = map->chunks[at.chunk]->n;
	}
	if (map->nchunks && try_merge(map->chunks[at.chunk], at.index, e))
		return 0;
	r = extent_map_make_room(map, &at);
	if (r)
		return r;
	chunk = map->chunks[at.chunk];
	memmove(&chunk->e[at.index + 1], &chunk->e[at.index],
		(chunk->n - at.index) * sizeof(chunk->e[0]));
	chunk->e[at.index] = *e;
	chunk->n++;
	chunk->npending += e->state != EXTENT_COMMITTED;
	return 0;
}

int extent_map_insert(struct extent_map *map, const struct extent *e, enum extent_state state)
{
	struct mapped_extent new = {.fpage = e->fpage,
		.npages = e->npages,
		.page = e->page,
		.target = e->target,
		.region = e->region,
		.state = (uint8_t)state};
	struct extent_cursor at;
	struct mapped_extent behind;
	int r;

	if (!e->npages)
		return 0;
	if (extent_map_seek(map, e->fpage, &at, &behind) && behind.fpage < end_of(&new))
		return -EEXIST;
	r = insert_at(map, at, &new);
	if (!r && state != EXTENT_COMMITTED)
		map->uncommitted += e->npages;
	return r;
}

/* ---- learning -------------------------------------------------------------------------------- */

int extent_map_learn(struct extent_map *map, const struct extent *e)
{
	int r;

	if (e->fpage < map->known_end)
		return -EEXIST;
	r = extent_map_insert(map, e, EXTENT_COMMITTED);
	if (r)
		return r;
	map->known_end = e->fpage + e->npages;
	if (!map->was_whole)
		map->doubtful_end = map->known_end;
	return 0;
}

void extent_map_learned_all(struct extent_map *map)
{
	map->known_end = UINT64_MAX;
	map->was_whole = true;
}

void extent_map_doubt(struct extent_map *map, uint64_t end)
{
	map->doubtful_end = max_u64(map->doubtful_end, end);
}

bool extent_map_is_doubtful(const struct extent_map *map, uint64_t fpage, uint64_t end)
{
	struct extent_cursor at;
	struct mapped_extent e;
	bool found = extent_map_seek(map, fpage, &at, &e);

	end = min_u64(end, map->doubtful_end);
	for (; found && e.fpage < end; found = extent_map_next(map, &at, &e))
		if (e.state != EXTENT_FILLING && fpage < end)
			return true;
	return false;
}

/* ---- changing states ------------------------------------------------------------------------- */

/* Joins neighbours that adjoin. */
static void compact(struct extent_chunk *chunk)
{
	uint32_t kept = 0;

	for (uint32_t i = 1; i < chunk->n; i++) {
		if (extent_map_adjoin(&chunk->e[kept], &chunk->e[i]))
			chunk->e[kept].npages += chunk->e[i].npages;
		else
			chunk->e[++kept] = chunk->e[i];
	}
	chunk->n = kept + 1;
	chunk->npending = count_pending(chunk->e, chunk->n);
}

void extent_map_filled(struct extent_map *map, uint64_t fpage, uint64_t end)
{
	struct extent_cursor at;

	for (bool more = locate(map, fpage, &at); more && at.chunk < map->nchunks; at.chunk++) {
		struct extent_chunk *chunk = map->chunks[at.chunk];
		bool changed = false;

		for (; at.index < chunk->n && chunk->e[at.index].fpage < end; at.index++) {
			if (chunk->e[at.index].state != EXTENT_FILLING)
				continue;
			chunk->e[at.index].state = EXTENT_DIRTY;
			changed = true;
		}
		more = at.index == chunk->n;
		at.index = 0;
		if (changed)
			compact(chunk);
	}
}

size_t extent_map_collect(struct extent_map *map, struct extent *out, size_t max, bool *more)
{
	size_t n = 0;

	*more = false;
	for (size_t c = 0; c < map->nchunks; c++) {
		struct extent_chunk *chunk = map->chunks[c];

		for (uint32_t i = 0; chunk->npending && i < chunk->n; i++) {
			struct mapped_extent *e = &chunk->e[i];

			if (e->state != EXTENT_DIRTY)
				continue;
			if (n == max) {
				*more = true;
				return n;
			}
			e->state = EXTENT_COMMITTING;
			out[n++] = (struct extent){.fpage = e->fpage,
				.npages = e->npages,
				.page = e->page,
				.target = e->target,
				.region = e->region};
		}
	}
	return n;
}

uint64_t extent_map_collected(struct extent_map *map, bool committed)
{
	uint64_t npages = 0;

	for (size_t c = 0; c < map->nchunks; c++) {
		struct extent_chunk *chunk = map->chunks[c];

		if (!chunk->npending)
			continue;
		for (uint32_t i = 0; i < chunk->n; i++) {
			if (chunk->e[i].state != EXTENT_COMMITTING)
				continue;
			chunk->e[i].state = committed ? EXTENT_COMMITTED : EXTENT_DIRTY;
			npages += chunk->e[i].npages;
		}
		compact(chunk);
	}
	if (committed)
		map->uncommitted -= npages;
	return npages;
}

/* ---- cutting --------------------------------------------------------------------------------- */

static void forget_pages(struct extent_map *map, const struct mapped_extent *e, uint64_t npages)
{
	if (e->state != EXTENT_COMMITTED)
		map->uncommitted -= npages;
}

/* Drops the chunk's extents from index on. Of the first it keeps the part before fpage. */
static void cut_chunk(
	struct extent_map *map, struct extent_chunk *chunk, uint32_t index, uint64_t fpage)
{
	uint32_t keep = index;

	for (uint32_t i = index; i < chunk->n; i++) {
		struct mapped_extent *e = &chunk->e[i];
		uint64_t left = e->fpage < fpage ? fpage - e->fpage : 0;

		forget_pages(map, e, e->npages - left);
		if (left) {
			e->npages = (uint32_t)left;
			keep++;
		}
	}
	chunk->n = keep;
	chunk->npending = count_pending(chunk->e, keep);
}

static void drop_from(struct extent_map *map, uint64_t fpage)
{
	struct extent_cursor at;

	if (!locate(map, fpage, &at))
		return;
	cut_chunk(map, map->chunks[at.chunk], at.index, fpage);

	size_t keep = at.chunk + (map->chunks[at.chunk]->n ? 1 : 0);

	for (size_t c = at.chunk + 1; c < map->nchunks; c++)
		cut_chunk(map, map->chunks[c], 0, fpage);
	for (size_t c = keep; c < map->nchunks; c++)
		free(map->chunks[c]);
	map->nchunks = keep;
}

void extent_map_cut(struct extent_map *map, uint64_t fpage)
{
	if (map->known_end >= fpage)
		extent_map_learned_all(map);
	map->doubtful_end = min_u64(map->doubtful_end, fpage);
	drop_from(map, fpage);
}

void extent_map_forget(struct extent_map *map, uint64_t fpage)
{
	map->known_end = min_u64(map->known_end, fpage);
	drop_from(map, fpage);
}
