/* search.h - whether a history can be explained. Is there an order of its operations, each at one
 * moment between its start and its end, in which an object would have given every result? (Wing and
 * Gong's search, with a memory of the configurations it has met, after Lowe.)
 *
 * An operation takes one or more steps, each at a moment of its own. The caller provides the object
 * and its rules. A history that cannot be explained is certainly wrong; a search that grows beyond
 * its limit is undecided.
 *
 * THREADS    One search at a time.
 */
#ifndef RMEMFS_TESTS_SEARCH_H
#define RMEMFS_TESTS_SEARCH_H

#include "tests/stress/history.h"

/* A player's place: the number of its operation, and the step in it. */
struct cursor {
	uint32_t at;
	uint32_t step;
	uint64_t local[3]; /* results of the operation's earlier steps */
};

enum step { STEP_NO, STEP_MORE, STEP_DONE };

struct search {
	const struct history *history;
	const struct event **ops[PLAYERS_MAX]; /* each player's, in order */
	unsigned nops[PLAYERS_MAX];
	unsigned nplayers;
	size_t object_bytes; /* a multiple of 8 */
	const void *context;
	/* A step that changes no object, and that is never better taken later: it is taken as soon
	 * as possible. STEP_NO: no such step is possible now. */
	enum step (*observe)(const struct search *s, const void *object, struct cursor *c,
		const struct event *e);
	/* Any other step. */
	enum step (*take)(
		const struct search *s, void *object, struct cursor *c, const struct event *e);
	/* A less likely step in place of `take`; may be NULL. */
	enum step (*take_other)(
		const struct search *s, void *object, struct cursor *c, const struct event *e);
};

enum search_result { SEARCH_EXPLAINED, SEARCH_IMPOSSIBLE, SEARCH_UNDECIDED };

/* object: the state before. With SEARCH_EXPLAINED it becomes the state after. With
 * SEARCH_IMPOSSIBLE it becomes the state in which most operations were explained, and *stuck is one
 * that could not be. */
enum search_result search_run(struct search *s, void *object, const struct event **stuck);

/* Takes the events for which `part` holds as the search's operations; it owns their memory until
 * the next call. */
void search_select(struct search *s, const struct history *h,
	bool (*part)(const struct event *e, const void *context), const void *context);

/* A search that has met so many configurations is undecided; at most SEARCH_MAX. */
enum { SEARCH_MAX = 2000000 };
extern unsigned search_limit;

/* Number of configurations met in all. */
extern uint64_t search_configurations;

#endif
