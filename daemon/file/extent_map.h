/* extent_map.h - where the pages of one file live, as far as this client knows.
 *
 * The map knows all pages below known_end: those without an extent are a hole. Extents that the
 * server does not know yet carry their state. Neighbours of one state that adjoin in the file and
 * in memory are one extent. Only extents that are being filled stay apart: each belongs to one
 * write.
 *
 *     hole -> FILLING -> DIRTY -> COMMITTING -> COMMITTED       (COMMITTING -> DIRTY: it failed)
 *
 * Extents lie in sorted chunks. So 100,000 extents are searched in two steps, and inserting moves
 * one chunk only.
 *
 * THREADS    The caller holds the inode's lock.
 * ERRORS     -ENOMEM; -EEXIST: something of the range is mapped. Nothing was changed then.
 */
#ifndef RMEMFS_DAEMON_FILE_EXTENT_MAP_H
#define RMEMFS_DAEMON_FILE_EXTENT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/types.h"

enum extent_state { EXTENT_COMMITTED, EXTENT_FILLING, EXTENT_DIRTY, EXTENT_COMMITTING };

struct mapped_extent {
	uint64_t fpage;
	uint32_t npages;
	uint32_t page;
	uint16_t target;
	uint16_t region;
	uint8_t state; /* enum extent_state */
};

struct extent_chunk;

struct extent_map {
	struct extent_chunk **chunks;
	size_t nchunks, cap;
	uint64_t known_end;   /* pages; UINT64_MAX: all is known */
	uint64_t uncommitted; /* pages that are not COMMITTED */
	/* Pages mapped below it and beyond the file's size may hold bytes of a write that nobody
	 * was told of: its client died before the COMMIT, or it failed here. */
	uint64_t doubtful_end;
	bool was_whole; /* all was known once: extents learned later are zero or ours */
};

void extent_map_init(struct extent_map *map);
void extent_map_fini(struct extent_map *map);

int extent_map_insert(struct extent_map *map, const struct extent *e, enum extent_state state);

/* The server's answer: its next extent, from known_end on; and that there are no more. */
int extent_map_learn(struct extent_map *map, const struct extent *e);
void extent_map_learned_all(struct extent_map *map);

/* A write up to page `end` has failed. */
void extent_map_doubt(struct extent_map *map, uint64_t end);
/* Whether any of pages [fpage, end), which lie beyond the file's size, may be other than zero.
 * Pages being filled don't count: their writes know of them. */
bool extent_map_is_doubtful(const struct extent_map *map, uint64_t fpage, uint64_t end);

/* Steps through the extents in order: the one that holds fpage, or else the first behind it. */
struct extent_cursor {
	size_t chunk;
	uint32_t index;
};
bool extent_map_seek(const struct extent_map *map, uint64_t fpage, struct extent_cursor *cursor,
	struct mapped_extent *out);
bool extent_map_next(
	const struct extent_map *map, struct extent_cursor *cursor, struct mapped_extent *out);

/* Whether all pages [fpage, end) are there. */
bool extent_map_has_all(const struct extent_map *map, uint64_t fpage, uint64_t end);

/* The fills of one write within [fpage, end) have ended: FILLING -> DIRTY. Allocates nothing. */
void extent_map_filled(struct extent_map *map, uint64_t fpage, uint64_t end);

/* Takes up to max DIRTY extents for a commit: they become COMMITTING and are copied to out.
 * *more: there are others. */
size_t extent_map_collect(struct extent_map *map, struct extent *out, size_t max, bool *more);
/* The commit has ended: COMMITTING -> COMMITTED, or DIRTY again. Returns how many pages. */
uint64_t extent_map_collected(struct extent_map *map, bool committed);

/* Drops all pages from fpage on; from there on the file is known to be a hole. */
void extent_map_cut(struct extent_map *map, uint64_t fpage);

/* Forgets the map from fpage on, where nothing is uncommitted: it is to be fetched anew. */
void extent_map_forget(struct extent_map *map, uint64_t fpage);

size_t extent_map_count(const struct extent_map *map);

#endif
