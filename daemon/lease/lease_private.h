/* lease_private.h - what the files of lease.h have of each other.
 *
 *     lease.c    what there is, what is heard of it, and what is due: lease_step_locked()
 *     enter.c    operations: which may use it, which wait
 *     needs.c    what each operation needs
 *     ask.c      LEASE, for all waiters
 *     return.c   what goes back: RETURN, with a batch, by COMMIT
 *     recall.c   what the server wants back
 *
 * One message about a lease is on its way at a time (enum lease_state). Recalls, and operations
 * that come or leave meanwhile, are noted. The message's answer, like every such event, ends in
 * lease_step_locked(), which finds what is due by then:
 *
 *     LEASE_IDLE -> lease_ask_locked       LEASE_ASKING     -> granted, refused or taken back
 *                -> lease_return_locked    LEASE_RETURNING  -> answered        } -> LEASE_IDLE,
 *                -> lease_leave_locked     LEASE_LEAVING    -> lease_left      }    and a step
 *                -> lease_lower_locked     LEASE_LOWERING   -> lease_lowered_locked
 *
 * A lease that goes back is forgotten here when the RETURN is sent, not when it is answered. But a
 * COMMIT that lowers a lease leaves it as it is until the answer; operations that need more than
 * what will be left wait.
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

/* A message goes on its way; it was answered. */
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
/* The same for a caller whose reference goes; also unlocks. */
void lease_step_and_put(struct inode *inode, struct io_thread *thread);
/* Sends lease.call, whose end ends this state. */
void lease_send_locked(struct inode *inode, struct io_thread *thread, enum lease_state state);

/* The server wants something of the inode back. */
void lease_recalled(struct inode *inode, struct io_thread *thread, const struct rpc_recall *recall);

/* ---- enter.c, needs.c ------------------------------------------------------------------------ */

/* The leases that the request needs, with references, in the order in which it takes them. Only
 * regular files: leases of other inodes come with LOOKUP and GETATTR (local_answer.h). */
unsigned lease_needs_of(const struct request *req, struct op_lease needs[OP_LEASES]);

/* The lease that the operation waits for with this link, and the type that it needs by now. */
struct op_lease *lease_wanted_by(const struct list *link);
uint8_t lease_type_for(const struct inode *inode, const struct op_lease *want);
/* Whether an operation waits for more than a pin. */
bool lease_is_waited_for(const struct inode *inode);
/* Whether an operation uses more than `keep`; whether any uses it, even for a pin. */
bool lease_is_used_beyond(const struct inode_lease *l, uint8_t keep);
bool lease_has_users(const struct inode_lease *l);

/* Wakes operations whose need is covered now. True: some of them still wait for their turn; each
 * end of an operation is followed by a step. */
bool lease_wake_covered_locked(struct inode *inode);

/* ---- ask.c ----------------------------------------------------------------------------------- */

/* Sends a LEASE for all waiters; there are some. */
void lease_ask_locked(struct inode *inode, struct io_thread *thread);
/* An operation has given up waiting. If none is left, takes the LEASE back. Then a step; also
 * unlocks, and a reference goes. */
void lease_unask_and_put(struct inode *inode, struct io_thread *thread);

/* ---- return.c -------------------------------------------------------------------------------- */

/* Whether the lease must go back by itself, or may go with a batch; *keep: what stays. */
bool lease_is_to_return(const struct inode *inode, uint8_t *keep);
bool lease_is_to_leave(const struct inode *inode, uint8_t *keep);
/* Sends the RETURN, or does what has to come before it, after which there is another step. */
void lease_return_locked(struct inode *inode, struct io_thread *thread, uint8_t keep);

/* RETURN's body for one inode, whose tail is these RPC_RETURNED_BYTES. */
void lease_put_returned(struct rpc_return *ret, uint8_t *tail, const struct rpc_returned *returned);

#endif
