/* lease_private.h - what the files of lease.h have of each other.
 *
 *     lease.c         what there is, what is heard of it, and what is due: lease_step_locked()
 *     lease_enter.c   operations: which may use it, which wait
 *     lease_needs.c   what each operation needs
 *     lease_ask.c     LEASE, for those who wait
 *     lease_return.c  what goes back: RETURN, with a batch, by COMMIT
 *     lease_recall.c  what the server wants back
 *
 * Of a lease one thing is on its way at a time (enum lease_state). Whatever happens to it meanwhile
 * - a recall, somebody who comes, or leaves - is noted, and its answer, as every such event, ends
 * in lease_step_locked(), which sees what is due by then:
 *
 *     LEASE_IDLE -> lease_ask_locked       LEASE_ASKING     -> granted, refused or taken back
 *                -> lease_return_locked    LEASE_RETURNING  -> answered        } -> LEASE_IDLE,
 *                -> lease_leave_locked     LEASE_LEAVING    -> lease_left      }    and a step
 *                -> lease_lower_locked     LEASE_LOWERING   -> lease_lowered_locked
 *
 * What goes back is forgotten here when that is sent, not when it is answered; but what a COMMIT
 * makes less stays as it is until then, while who needs more than what is left waits.
 *
 * THREADS    As lease.h.
 */
#ifndef RMEMFS_DAEMON_LEASE_LEASE_PRIVATE_H
#define RMEMFS_DAEMON_LEASE_LEASE_PRIVATE_H

#include <assert.h>
#include <stdint.h>

#include "daemon/lease/lease.h"
#include "daemon/op/op.h"
#include "daemon/file/inode.h"

struct rpc_recall;
struct rpc_return;
struct rpc_returned;

/* Something is on its way, and is no more. */
static inline void lease_state_begin(struct inode_lease *l, enum lease_state state)
{
	assert(l->state == LEASE_IDLE && state != LEASE_IDLE);
	l->state = state;
}

static inline void lease_state_end(struct inode_lease *l, enum lease_state state)
{
	assert(l->state == state && state != LEASE_IDLE);
	l->state = LEASE_IDLE;
}

static inline bool lease_is_recalled(const struct inode_lease *l)
{
	return l->recalled && l->recalled >= l->inode->lease_number;
}

/* ---- lease.c --------------------------------------------------------------------------------- */

void lease_set_type_locked(struct inode *inode, struct io_thread *thread, uint8_t type);

/* Begins what is due, if nothing is on its way. */
void lease_step_locked(struct inode *inode, struct io_thread *thread);
/* The same for who has a reference that goes; unlocks, too. */
void lease_step_and_put(struct inode *inode, struct io_thread *thread);
/* Sends lease.call, whose end ends this state. */
void lease_send_locked(struct inode *inode, struct io_thread *thread, enum lease_state state);

/* The server wants something of the inode back. */
void lease_recalled(struct inode *inode, struct io_thread *thread, const struct rpc_recall *recall);

/* ---- lease_enter.c, lease_needs.c ------------------------------------------------------------ */

/* What the request needs, in the order in which it is to be taken, with references: of regular
 * files only. What else is leased came by looking (local_answer.h). */
unsigned lease_needs_of(const struct request *req, struct op_lease needs[OP_LEASES]);

/* What the operation wants that waits with this link, and of which type that is by now. */
struct op_lease *lease_wanted_by(const struct list *link);
uint8_t lease_type_for(const struct inode *inode, const struct op_lease *want);
/* By somebody who wants more than a pin. */
bool lease_is_waited_for(const struct inode *inode);
/* By somebody who needs more than that; by anybody, for a pin, too. */
bool lease_is_used_beyond(const struct inode_lease *l, uint8_t keep);
bool lease_has_users(const struct inode_lease *l);

/* Those go on who wait for what there is now. True: but for some whose turn comes when others of
 * them have ended, after each of which there is a step. */
bool lease_wake_covered_locked(struct inode *inode);

/* ---- lease_ask.c ----------------------------------------------------------------------------- */

/* For all who wait; there are some. */
void lease_ask_locked(struct inode *inode, struct io_thread *thread);
/* Somebody has given up waiting: if nobody is left, what was asked for is taken back. Then a step;
 * unlocks, too, and a reference goes. */
void lease_unask_and_put(struct inode *inode, struct io_thread *thread);

/* ---- lease_return.c -------------------------------------------------------------------------- */

/* What must go back by itself and is not kept, or may go with others. */
bool lease_is_to_return(const struct inode *inode, uint8_t *keep);
bool lease_is_to_leave(const struct inode *inode, uint8_t *keep);
/* Does so, or what has to come before it, after which there is another step. */
void lease_return_locked(struct inode *inode, struct io_thread *thread, uint8_t keep);

/* RETURN's body for one inode, whose tail is these RPC_RETURNED_BYTES. */
void lease_put_returned(struct rpc_return *ret, uint8_t *tail, const struct rpc_returned *returned);

#endif
