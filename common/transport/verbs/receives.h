/* receives.h - the books of receives that many queue pairs share: which of them are posted, and which
 * have gone with a queue pair that was destroyed.
 *
 * A queue pair takes a receive for each message, the oldest one, and gives it back by a completion.
 * One that is destroyed may have taken one that never completes, and nobody tells which that is.
 * But the others work off one message after the other, so each of them, once it has completed
 * something after it was seen to have nothing left to tell, has given back all that it had taken
 * until then. When all have done so, a receive that was passed by long ago and is still out is
 * nobody's any more: it is lost, and may be posted anew. The rounds in which all are waited for are
 * made only while somebody may have taken something along.
 *
 *     posted ── taken by a queue pair ── completed ── posted
 *                        └ destroyed ── (a round) ── lost ── posted
 *
 * A search is for those who had gone when it began, and is over when all that was posted until they
 * went has been passed by. Who goes meanwhile is left to the next one. So each is over after as
 * many postings as there are receives, and a round, however steadily others come and go.
 *
 * Only what the others complete brings a search on, and they may be slow, or gone:
 *
 *  - Each who is there, and each who went and isn't known of yet, is taken to have one receive. Who
 *    would leave too few for all others (receives_fits()) must not join: his caller gives him
 *    receives of his own. So what is in the queue never runs out for good, and nobody is kept out.
 *  - When nobody is left, nobody will tell. The caller makes his queue anew, and the books with it
 *    (receives_abandoned(), receives_clear()).
 *
 * OWNERSHIP  The books and their users are the caller's; neither knows of any device.
 * THREADS    One.
 * ERRORS     0 or -ENOMEM.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_VERBS_RECEIVES_H
#define RMEMFS_COMMON_TRANSPORT_VERBS_RECEIVES_H

#include <stdbool.h>
#include <stdint.h>

/* Queue pairs that may have taken something along. */
struct receives_doubts {
	unsigned n;
	uint64_t until; /* the last posting when the last of them went */
};

struct receives {
	uint64_t *posted; /* [n] the number of each one's posting; 0: it is not posted */
	uint32_t max, n;  /* of them are in use */
	uint64_t last;    /* posting */
	unsigned nusers;  /* queue pairs */
	/* Whose receives are searched for, and who went since that began; none: there is no search
	 * under way. */
	struct receives_doubts searched, later;
	uint64_t round;   /* its number */
	uint64_t reach;   /* the last posting when it began */
	unsigned nbehind; /* users who have not spoken in it */
};

/* A queue pair; its rounds. */
struct receives_user {
	uint64_t emptied; /* in which it was last seen to have nothing left to tell */
	uint64_t spoke;   /* in which it last completed something after that */
};

int receives_init(struct receives *r, uint32_t max);
void receives_fini(struct receives *r);

/* One more is in use, and not posted; its number. Below max only. */
uint32_t receives_add(struct receives *r);
void receives_posted(struct receives *r, uint32_t slot);

/* Queue pairs that may have taken something along, for all that is known yet. */
static inline unsigned receives_doubts(const struct receives *r)
{
	return r->searched.n + r->later.n;
}

/* One more may join: of max receives as many as spare stay in the queue, whatever the users take.
 */
bool receives_fits(const struct receives *r, uint32_t spare);
void receives_join(struct receives *r, struct receives_user *user);
/* The queue pair is destroyed, and all that it has completed was told. sure: that was all it had
 * taken. */
void receives_leave(struct receives *r, const struct receives_user *user, bool sure);

/* Something may be lost, and there is nobody who could tell. */
bool receives_abandoned(const struct receives *r);
/* The queue is gone, with all that was in it: none are in use. Nobody uses them. */
void receives_clear(struct receives *r);

/* The user has no completion left. */
static inline void receives_emptied(const struct receives *r, struct receives_user *user)
{
	user->emptied = r->round;
}

/* The user has completed this one, well or not. True: a round is over, see receives_lost(). */
bool receives_completed(struct receives *r, struct receives_user *user, uint32_t slot);
/* After a round: the next one from here on that is lost, and isn't posted any more; r->n: no more.
 */
uint32_t receives_lost(struct receives *r, uint32_t from);
/* All that were lost have been asked for. */
void receives_next_round(struct receives *r);

#endif
