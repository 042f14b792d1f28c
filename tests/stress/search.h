/* search.h - whether a history can be explained: is there an order of its operations, each at one
 * moment between its start and its end, in which every result is what an object would have given?
 * (Wing and Gong's search, with a memory of the configurations it has met, after Lowe.)
 *
 * An operation takes one or more steps, each at a moment of its own. The object and its rules are
 * the caller's. What cannot be explained is certainly wrong; a search that grows beyond its limit
 * is undecided.
 *
 * THREADS    One search at a time.
 */
#ifndef RMEMFS_TESTS_SEARCH_H
#define RMEMFS_TESTS_SEARCH_H

#include "tests/stress/history.h"

/* Where a player is: in which of its operations, and in which step of it. */
struct cursor {
	uint32_t at;
	uint32_t step;
	uint64_t local[3]; /* what earlier steps of the operation have found */
};

enum step { STEP_NO, STEP_MORE, STEP_DONE };

struct search {
	const struct history *history;
	const struct event **ops[PLAYERS_MAX]; /* each player's, in order */
	unsigned nops[PLAYERS_MAX];
	unsigned nplayers;
	size_t object_bytes; /* a multiple of 8 */
	const void *context;
	/* A step that changes no object, and that can't be better taken later: taken as soon as it
	 * can be. STEP_NO: none such is possible now. */
	enum step (*observe)(const struct search *s, const void *object, struct cursor *c,
		const struct event *e);
	/* Any other step. */
	enum step (*take)(
		const struct search *s, void *object, struct cursor *c, const struct event *e);
	/* What may have happened instead of it, and less likely; may be NULL. */
	enum step (*take_other)(
		const struct search *s, void *object, struct cursor *c, const struct event *e);
};

enum search_result { SEARCH_EXPLAINED, SEARCH_IMPOSSIBLE, SEARCH_UNDECIDED };

/* object: as it was before; with SEARCH_EXPLAINED as it is after, with SEARCH_IMPOSSIBLE as it was
 * where most operations were explained, and *stuck is one that could not be. */
enum search_result search_run(struct search *s, void *object, const struct event **stuck);

/* The events for which `part` holds, as the search's operations; room for them is the search's
 * until the next call. */
void search_select(struct search *s, const struct history *h,
	bool (*part)(const struct event *e, const void *context), const void *context);

/* A search that has met so many is undecided; at most SEARCH_MAX. */
enum { SEARCH_MAX = 2000000 };
extern unsigned search_limit;

/* How many configurations were met in all. */
extern uint64_t search_configurations;

#endif
