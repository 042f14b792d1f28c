/* receives.h - accounts for receives that many queue pairs share: which of them are posted, and
 * which are lost with a destroyed queue pair.
 *
 * A queue pair takes the oldest receive for each message, and gives it back by a completion. A
 * destroyed queue pair may have taken a receive that never completes, and no device tells which.
 * But a queue pair works off one message after the other. So once it was seen empty and then
 * completes something, it has given back all that it had taken until then. When all queue pairs
 * have done so, that is a round. A receive that was passed by long ago and is still out after a
 * round is lost, and may be posted anew. Rounds take place only while some destroyed queue pair may
 * have taken a receive.
 *
 *     posted ── taken by a queue pair ── completed ── posted
 *                        └ destroyed ── (a round) ── lost ── posted
 *
 * A search concerns the queue pairs that were gone when it began. It ends when all receives posted
 * until they went have been passed by. Queue pairs that go meanwhile are left to the next search.
 * So each search ends after as many postings as there are receives, and one round, however steadily
 * others come and go.
 *
 * Only completions of the other queue pairs advance a search, and these may be slow or gone:
 *
 * - Each present queue pair, and each destroyed one still in doubt, counts as having one receive. A
 *   new one that would leave too few for all others (receives_fits()) must not join: its caller
 *   gives it receives of its own. So the queue never runs out for good, and no peer is kept out.
 * - When no queue pair is left, no completion comes. The caller then makes its queue anew, and
 *   clears these records (receives_abandoned(), receives_clear()).
 *
 * OWNERSHIP  The caller owns the records and the users; neither knows of a device.
 * THREADS    One.
 * ERRORS     0 or -ENOMEM.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_VERBS_RECEIVES_H
#define RMEMFS_COMMON_TRANSPORT_VERBS_RECEIVES_H

#include <stdbool.h>
#include <stdint.h>

/* Destroyed queue pairs that may have taken a receive. */
struct receives_doubts {
	unsigned n;
	uint64_t until; /* the last posting when the last of them went */
};

struct receives {
	uint64_t *posted; /* [n] the number of each receive's posting; 0: not posted */
	uint32_t max, n;  /* n of them are in use */
	uint64_t last;    /* number of the last posting */
	unsigned nusers;  /* queue pairs */
	/* searched: the search concerns these; none: no search is in progress. later: they went
	 * since it began. */
	struct receives_doubts searched, later;
	uint64_t round;   /* its number */
	uint64_t reach;   /* the last posting when it began */
	unsigned nbehind; /* users that have not spoken in it */
};

/* A queue pair. Its fields are numbers of rounds. */
struct receives_user {
	uint64_t emptied; /* it was last seen empty in this round */
	uint64_t spoke;   /* it last completed something after that in this round */
};

int receives_init(struct receives *r, uint32_t max);
void receives_fini(struct receives *r);

/* One more is in use, and not posted; returns its number. Only below max. */
uint32_t receives_add(struct receives *r);
void receives_posted(struct receives *r, uint32_t slot);

/* Number of destroyed queue pairs that may still hold a receive. */
static inline unsigned receives_doubts(const struct receives *r)
{
	return r->searched.n + r->later.n;
}

/* Whether one more user may join: of max receives at least `spare` stay in the queue, whatever the
 * users take.
 */
bool receives_fits(const struct receives *r, uint32_t spare);
void receives_join(struct receives *r, struct receives_user *user);
/* The queue pair is destroyed, and all its completions were reported. sure: it had taken no other
 * receives. */
void receives_leave(struct receives *r, const struct receives_user *user, bool sure);

/* Receives may be lost, and no user is left to find out. */
bool receives_abandoned(const struct receives *r);
/* The queue is gone with all receives in it: none are in use. There must be no users. */
void receives_clear(struct receives *r);

/* The user has no completion left. */
static inline void receives_emptied(const struct receives *r, struct receives_user *user)
{
	user->emptied = r->round;
}

/* The user has completed this one, well or not. True: a round is over, see receives_lost(). */
bool receives_completed(struct receives *r, struct receives_user *user, uint32_t slot);
/* After a round: the next lost receive from `from` on, which then counts as not posted; r->n: no
 * more.
 */
uint32_t receives_lost(struct receives *r, uint32_t from);
/* Call it when receives_lost() has given all. */
void receives_next_round(struct receives *r);

#endif
