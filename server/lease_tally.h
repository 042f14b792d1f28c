/* lease_tally.h - how many leases each session has, of one export.
 *
 * Only bounds depend on it: without memory for one more session its leases are not counted.
 *
 * THREADS  The metadata thread. What a batch changes is kept or undone with it.
 */
#ifndef RMEMFS_SERVER_LEASE_TALLY_H
#define RMEMFS_SERVER_LEASE_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lease_tally {
	uint64_t session;
	uint64_t now, saved;
};

struct lease_tallies {
	struct lease_tally *v;
	size_t n, cap;
	bool changed; /* since the last batch */
};

void lease_tallies_fini(struct lease_tallies *t);
/* One lease more or less. */
void lease_tally_add(struct lease_tallies *t, uint64_t session, int by);
uint64_t lease_tally(const struct lease_tallies *t, uint64_t session);

/* The batch is committed, or aborted. */
void lease_tallies_commit(struct lease_tallies *t);
void lease_tallies_abort(struct lease_tallies *t);

#endif
