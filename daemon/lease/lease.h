/* lease.h - this client's right to a file that others write, too (the mount option share).
 *
 * What is known of a file - its size, where its pages are, what was written and not committed - is
 * known under a lease: LEASE_SHARED to read it, LEASE_EXCLUSIVE to change it; and while others are
 * in the way of that, LEASE_LAYOUT and LEASE_OVERWRITE to read and write what pages there are,
 * where they are: nothing of their bytes is kept then, and no write answered early. Without one the
 * server is asked for everything, and answers. Of inodes of any kind a lease covers the attributes,
 * too, and a directory's names: local_answer.h asks for one along with LOOKUP and GETATTR.
 *
 *     operation -> lease_admit [-> LEASE, if it is free; or RETURN of less, LEASE] -> its steps ->
 *     op_end
 *     recall    -> those that use it end, new ones wait -> COMMIT -> forgotten -> RETURN
 *     the last writer's close -> COMMIT, with which LEASE_EXCLUSIVE becomes LEASE_SHARED
 *
 * A lease is kept, whether the file is open or not, until somebody else wants it, the kernel
 * forgets the inode, its last name has gone, or there are too many (lease_keep.h); but
 * LEASE_EXCLUSIVE only while somebody has the file open who may write: of what is closed others may
 * read, and it has changed when it was committed, not when this client dies. Where nothing is to be
 * committed that is told with what else goes back.
 *
 * Nobody waits for more before it has returned what it had, so no two wait for each other; and what
 * a recall waits for are transfers and COMMITs, which wait for nobody's lease. Whoever waited for a
 * lease is served once it is there, even if it is recalled already: so it changes hands only for
 * work done. But of transfers only LEASE_TURN at a time: others do not wait for all that one
 * program has asked for at once.
 *
 * A pin keeps an open file alive when its last name goes, whoever takes that. It comes with the
 * first handle and goes with the last where there is no lease. Who has one needs no pin: others
 * have it recalled before they take the last name, and its RETURN says that the file is open. So
 * under a lease OPEN and RELEASE cost no RPC.
 *
 * A recall may overtake the grant that it is about, which comes by another channel: grants have
 * numbers, and the recall is kept until its number has come, if that is on its way by LEASE. What
 * CREATE brings is given back unseen, but for the pin, and noted, so that nobody believes its
 * answer.
 *
 * OWNERSHIP  What uses a lease, or waits for one, has a reference to the inode.
 * THREADS    Fields belong to the inode's lock. RPCs are sent by the thread that has a reason to.
 */
#ifndef RMEMFS_DAEMON_LEASE_LEASE_H
#define RMEMFS_DAEMON_LEASE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/rpc/lease_type.h"
#include "daemon/remote/remote.h"
#include "daemon/file/gate_pass.h"
#include "daemon/lease/append_order.h"
#include "daemon/op/op.h"

struct handle;
struct inode;
struct request;
struct rpc_entry_reply;

/* What is on its way: one thing at a time. */
enum lease_state {
	LEASE_IDLE,
	LEASE_ASKING,    /* a LEASE */
	LEASE_RETURNING, /* a RETURN of its own */
	LEASE_LEAVING,   /* a RETURN of many (lease_keep.h) */
	LEASE_LOWERING,  /* a COMMIT that makes it less */
};

enum { LEASE_TURN = 64 };

struct inode_lease {
	struct inode *inode; /* has lease_type and lease_number */
	bool pinned, unsure; /* the server keeps it; or may, and is told when it is closed */
	bool passing;        /* to be given back when the file is closed */
	bool tried;          /* to get more than this grant while it was kept */

	unsigned users[LEASE_TYPES]; /* operations, by what must not be taken from them */
	unsigned nturn;              /* of these, transfers that have waited */
	bool used;                   /* since it was looked at last; atomic */
	int64_t refused_ms;          /* when one was asked for by looking, and not given */

	/* What is to go back. */
	uint64_t recalled;           /* numbers up to this one; 0: nothing */
	uint8_t keep;                /* of what is recalled */
	bool closing;                /* the only writer is, it seems, and has not written since */
	bool evicted;                /* it is to leave, unless it is used before */
	uint64_t returned;           /* grants up to this number were returned last */
	struct list listed, leaving; /* lease_keep.h's; that has its own lock */

	enum lease_state state;
	struct io_thread *thread; /* ASKING, RETURNING: that has sent the call */
	struct rpc_call call;
	uint64_t epoch;                   /* ASKING: of the inodes' table, before */
	uint8_t tail[RPC_RETURNED_BYTES]; /* RETURNING */
	uint8_t lowered_to;               /* LOWERING: what will be left */

	/* The thread that is to see whether anybody still wants what it asks for; NULL: none. It
	 * may come to that later, whatever the state is then. */
	struct io_thread *taking_back;
	struct thread_call take_back;
};

/* What an operation has to do with pages that the kernel has cached: kernel_pages.h. */
enum lease_use {
	USE_PLAIN,
	USE_READS_PAGES, /* its type is what these need at the time */
	USE_WRITES_PAGES_BACK,
	USE_HOLDS_WRITING_BACK, /* the kernel does, until it is answered */
	USE_MAY_STORE,          /* opens the file so that it can be mapped for that */
	USE_TELLS_END,          /* to the kernel, which was told that there is none */
};

/* One operation's use of one inode's lease. */
struct op_lease {
	struct inode *inode; /* referenced; NULL: none */
	uint8_t type;
	uint8_t use;  /* enum lease_use */
	uint8_t hint; /* what comes along with a pin if it is free */
	bool pin;
	bool in_turn; /* counted by inode_lease.nturn */
};

void inode_lease_init(struct inode_lease *lease, struct inode *inode);
/* The inode goes. */
void lease_fini(struct inode *inode);

/* Before an operation of a sharing mount begins: takes what it needs. True: it may go on. False:
 * then(req, status) follows. op_end() gives it back. */
bool lease_admit(struct request *req, void (*then)(struct request *req, int status));

/* Whether lease_admit() would let the request in, or fail it, at this moment, since until it
 * is answered the kernel can't drop what it is asked to: before lease_admit(), which may see it
 * otherwise then. It may become so when that begins (fuse_receive_drop_begins). */
bool lease_holds_up_dropping(const struct request *req);

/* Whether nobody else has a lease of what the request has one of. It may be as if it had, at any
 * time, until op_end(). */
bool lease_is_alone(const struct request *req);

/* The same in the middle of an operation that has changed its mind, or its inode; what it has it
 * gives up first (lease_leave), outside of the gate. */
bool lease_take(struct request *req, struct inode *inode, enum lease_type type,
	void (*then)(struct request *req, int status));
/* CREATE and TMPFILE have pinned the file, which stays so until op_end(), and while it is open; one
 * that was made comes with its lease, and one that is to be cut needs one. notes: lease_notes()
 * from before. True: so it is. False: then(req, status) follows, since it was given back meanwhile
 * and is asked for anew. */
bool lease_take_opened(struct request *req, struct inode *inode,
	const struct rpc_entry_reply *entry, uint64_t epoch, uint64_t notes,
	void (*then)(struct request *req, int status));

/* CREATE's answer was overtaken, and it asks again: what it has pinned goes back, unless that is
 * what it finds then. */
void lease_not_opened(
	struct inode *inode, struct io_thread *thread, const struct rpc_entry_reply *entry);

/* ---- leases by looking (local_answer.h)
 * ---------------------------------------------------------------
 */

/* What an answer of LOOKUP or GETATTR says of an inode and of what the session has of it; epoch and
 * lease_notes() from before. entry: its extents, or NULL. */
struct lease_look {
	const struct lease *lease;
	const struct attr *attr;
	const struct rpc_entry_reply *entry;
	uint64_t epoch, notes;
};
/* True: that is a lease which was not known here, and the attributes were taken with it. */
bool lease_looked(struct inode *inode, struct io_thread *thread, const struct lease_look *look);
/* The number of the lease under which the inode is known; 0: there is none. It counts as used. */
uint64_t lease_known_locked(struct inode *inode);
/* It is recalled. */
bool lease_is_leaving_locked(const struct inode *inode);
/* There is none, and one may be asked for. */
bool lease_lacks_locked(const struct inode *inode, int64_t now);

/* op_end()'s. */
void lease_leave(struct request *req);

/* A COMMIT is about to be sent that tells all there is: the number of the grant that it makes less,
 * and what is kept, or 0. Nobody else changes anything of the inode until it has ended. */
uint64_t lease_lower_locked(struct inode *inode, uint8_t *keep);
void lease_lowered_locked(struct inode *inode, struct io_thread *thread, bool done);
/* A handle that may write is flushed, which close(2) does first, and all is remote: notes whether
 * the only writer seems to be leaving, so that the COMMIT which follows may lower the lease. */
void lease_note_closing(struct inode *inode, struct handle *handle);

/* After a COMMIT has ended, a handle was closed, or the kernel has forgotten the inode: something
 * may be due. */
void lease_settle(struct inode *inode, struct io_thread *thread);
/* The session has ended, and with it all leases and pins; nobody uses or waits for any. */
void lease_forget_locked(struct inode *inode);
/* Somebody uses it, or waits for it. */
bool lease_is_used_locked(const struct inode *inode);
/* The inode is given back as a whole (inode_return.h), from then on there is nothing of it here. */
void lease_end_locked(struct inode *inode);

/* lease/keep.c's: there are too many, gives back the caller's reference; whether it still leaves,
 * and as what, with the batch that is made now; and that batch is answered. */
void lease_evict(struct inode *inode, struct io_thread *thread);
bool lease_leave_locked(
	struct inode *inode, struct io_thread *thread, struct rpc_returned *returned);
void lease_left(struct inode *inode, struct io_thread *thread);

/* The tail of a PING's reply, well-formed. */
void lease_recall(struct io_thread *thread, const struct rpc_recall *recall);

enum { OP_LEASES = 2 };

/* The state of an operation that a sharing mount may have begins with this one. */
struct shared_op {
	struct file_op file;
	struct op_hold lease_hold;
	/* What it uses; the last may be what it waits for. */
	struct op_lease leases[OP_LEASES];
	unsigned nleases;
	struct op_lease *at_lease;
	void (*lease_then)(struct request *req, int status);
	struct op_append append;
};

static inline struct shared_op *shared_op(struct op *op)
{
	return (struct shared_op *)(void *)op;
}

static inline struct shared_op *shared_op_of(struct request *req)
{
	return (struct shared_op *)(void *)req->state;
}

#endif
