/* lease.h - this client's right to a file that other clients write, too (the mount option share).
 *
 * A client knows things of a file under a lease: its size, where its pages are, and its data that
 * is not committed. LEASE_SHARED allows to read, LEASE_EXCLUSIVE to change. While other clients are
 * in the way of these, LEASE_LAYOUT and LEASE_OVERWRITE allow to read and write the pages that
 * exist, in place. The client then keeps none of their bytes, and acknowledges no write early.
 * Without a lease the client asks the server for everything. A lease of an inode of any kind covers
 * the attributes, too, and a directory's names: local_answer.h asks for one along with LOOKUP and
 * GETATTR.
 *
 *     operation -> lease_admit [-> LEASE, if it is free; or RETURN of less, LEASE] -> its steps ->
 *     op_end
 *     recall    -> those that use it end, new ones wait -> COMMIT -> forgotten -> RETURN
 *     the last writer's close -> COMMIT, with which LEASE_EXCLUSIVE becomes LEASE_SHARED
 *
 * The client keeps a lease, whether the file is open or not, until another client wants it, the
 * kernel forgets the inode, its last name is gone, or there are too many (keep.h). But it keeps
 * LEASE_EXCLUSIVE only while a handle that may write is open. Other clients may read a closed file
 * at once, and its times are those of the COMMIT, not of this client's death. If nothing is to be
 * committed, the lease is lowered with the next batch of returns.
 *
 * An operation that needs more returns what its inode has before it waits, so no two clients wait
 * for each other. A recall waits for transfers and COMMITs, which wait for nobody's lease. An
 * operation that waited for a lease is served once it is there, even if it is recalled already. So
 * a lease changes hands only after work was done. Of the transfers that have waited at most
 * LEASE_TURN use it at a time: other clients do not wait for all that one program has asked for at
 * once.
 *
 * A pin keeps an open file alive when a client removes its last name. If there is no lease, the pin
 * comes with the first handle and goes with the last. A client with a lease needs no pin: the
 * server recalls the lease before the last name goes, and the RETURN says that the file is open. So
 * under a lease OPEN and RELEASE cost no RPC.
 *
 * A recall may overtake its grant, which comes by another channel. So grants have numbers. If a
 * LEASE is on its way, the client keeps the recall until that number has come. A grant by CREATE is
 * returned unseen, all but the pin, and noted, so that CREATE's answer is not believed.
 *
 * OWNERSHIP  An operation that uses a lease, or waits for one, has a reference to the inode.
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

/* The message that is on its way; there is one at a time. */
enum lease_state {
	LEASE_IDLE,
	LEASE_ASKING,    /* a LEASE */
	LEASE_RETURNING, /* a RETURN of its own */
	LEASE_LEAVING,   /* a RETURN of many (keep.h) */
	LEASE_LOWERING,  /* a COMMIT that makes it less */
};

enum { LEASE_TURN = 64 };

struct inode_lease {
	struct inode *inode; /* has lease_type and lease_number */
	bool pinned, unsure; /* the server has the pin; it may have it, and is told at the close */
	bool passing;        /* to be given back when the file is closed */
	bool tried;          /* already, in vain, to get more while this grant was kept */

	unsigned users[LEASE_TYPES]; /* operations, by the type that each of them uses */
	unsigned nturn;              /* of these, transfers that have waited */
	bool used;                   /* since the keeper looked last; atomic */
	int64_t refused_ms;          /* when LOOKUP or GETATTR asked for one, and got none */

	/* The recall, and how the lease goes back. */
	uint64_t recalled;           /* numbers up to this one; 0: nothing */
	uint8_t keep;                /* may stay of the recalled lease */
	bool closing;                /* the only writer seems to close, and has not written since */
	bool evicted;                /* it is to leave, unless it is used before */
	uint64_t returned;           /* grants up to this number were returned last */
	struct list listed, leaving; /* keep.h's, under the keeper's lock */

	enum lease_state state;
	struct io_thread *thread; /* ASKING, RETURNING: the thread that sent the call */
	struct rpc_call call;
	uint64_t epoch;                   /* ASKING: the epoch of the inode table, before */
	uint8_t tail[RPC_RETURNED_BYTES]; /* RETURNING */
	uint8_t lowered_to;               /* LOWERING: the type that will be left */

	/* The thread that is to check whether any operation still wants the LEASE; NULL: none. It
	 * may do so later, in whatever state the lease is then. */
	struct io_thread *taking_back;
	struct thread_call take_back;
};

/* How an operation uses pages that the kernel has cached: kernel_pages.h. */
enum lease_use {
	USE_PLAIN,
	USE_READS_PAGES, /* LEASE_EXCLUSIVE while the file has storers, else LEASE_SHARED */
	USE_WRITES_PAGES_BACK,
	USE_HOLDS_WRITING_BACK, /* the kernel writes nothing back until it is answered */
	USE_MAY_STORE,          /* opens the file so that a mapping may store into it */
	USE_TELLS_END,          /* tells the kernel the end, after it was told that there is none */
};

/* One operation's use of one inode's lease. */
struct op_lease {
	struct inode *inode; /* referenced; NULL: none */
	uint8_t type;
	uint8_t use;  /* enum lease_use */
	uint8_t hint; /* the type to ask for along with a pin, if it is free */
	bool pin;
	bool in_turn; /* counted by inode_lease.nturn */
};

void inode_lease_init(struct inode_lease *lease, struct inode *inode);
/* The inode is about to be freed. */
void lease_fini(struct inode *inode);

/* Before an operation of a sharing mount begins: takes what it needs. True: it may go on. False:
 * then(req, status) follows. op_end() gives it back. */
bool lease_admit(struct request *req, void (*then)(struct request *req, int status));

/* Whether the kernel can't drop pages, as it was asked to, before this request is answered.
 * lease_admit() lets such a request in at once, or fails it, but may find another state by then.
 * The answer may become true when a drop begins (fuse_receive_drop_begins()). */
bool lease_holds_up_dropping(const struct request *req);

/* Whether no other client has a lease of the inode that the request has one of. Others may count as
 * having one, at any time, until op_end(). */
bool lease_is_alone(const struct request *req);

/* The same in the middle of an operation that needs another type, or another inode. The operation
 * gives up its leases first (lease_leave()), outside of the gate. */
bool lease_take(struct request *req, struct inode *inode, enum lease_type type,
	void (*then)(struct request *req, int status));
/* CREATE or TMPFILE has pinned the file. The pin stays until op_end(), and while the file is open.
 * A file that was made comes with its lease; one that is to be cut needs one. notes: lease_notes()
 * from before. True: the pin is there. False: the pin was given back meanwhile and is asked for
 * anew; then(req, status) follows. */
bool lease_take_opened(struct request *req, struct inode *inode,
	const struct rpc_entry_reply *entry, uint64_t epoch, uint64_t notes,
	void (*then)(struct request *req, int status));

/* CREATE's answer was overtaken, and CREATE asks again. The pin of the first file goes back, unless
 * CREATE finds that file again. */
void lease_not_opened(
	struct inode *inode, struct io_thread *thread, const struct rpc_entry_reply *entry);

/* ---- leases that come with LOOKUP and GETATTR (local_answer.h) ------------------------------- */

/* An inode in the answer of a LOOKUP or GETATTR, and the session's lease of it. epoch and notes
 * (lease_notes()) are from before the question. entry: its extents, or NULL. */
struct lease_look {
	const struct lease *lease;
	const struct attr *attr;
	const struct rpc_entry_reply *entry;
	uint64_t epoch, notes;
};
/* True: the answer brought a lease that was not known here, and the inode took the attributes. */
bool lease_looked(struct inode *inode, struct io_thread *thread, const struct lease_look *look);
/* The number of the lease under which the inode is known; 0: there is none. Counts as a use. */
uint64_t lease_known_locked(struct inode *inode);
/* Whether it is recalled. */
bool lease_is_leaving_locked(const struct inode *inode);
/* Whether there is none, and one may be asked for. */
bool lease_lacks_locked(const struct inode *inode, int64_t now);

/* For op_end(). */
void lease_leave(struct request *req);

/* A COMMIT of everything is about to be sent. Returns the number of the grant that the COMMIT
 * lowers, and in *keep what stays; or 0. No operation changes the inode until the COMMIT has
 * ended. */
uint64_t lease_lower_locked(struct inode *inode, uint8_t *keep);
void lease_lowered_locked(struct inode *inode, struct io_thread *thread, bool done);
/* A handle that may write is flushed, which close(2) does first, and all its data is remote. Notes
 * whether the only writer seems to be closing: then the COMMIT that follows may lower the lease. */
void lease_note_closing(struct inode *inode, struct handle *handle);

/* The mount goes by leases from now on, and the file is open, which the server does not know yet:
 * asks for a pin, and for all of the lease. Pages that the kernel has cached are covered once the
 * pin is there. No operation runs, and no other client is there. */
void lease_pin_locked(struct inode *inode, struct io_thread *thread);

/* Before the mount goes without leases: asks for one under which nobody else may change anything of
 * an open file. lease_covers_all_locked(): it has one, and its attributes are as at the server. */
void lease_ask_for_all_locked(struct inode *inode, struct io_thread *thread);
bool lease_covers_all_locked(const struct inode *inode);
/* Of an inode that needs neither: gives back the lease, or the pin. lease_has_nothing_locked():
 * there is none of them, and no message about one is on its way. */
void lease_give_all_locked(struct inode *inode, struct io_thread *thread);
bool lease_has_nothing_locked(const struct inode *inode);

/* A COMMIT has ended, a handle was closed, or the kernel has forgotten the inode: begins what is
 * due. */
void lease_settle(struct inode *inode, struct io_thread *thread);
/* The session has ended, and all leases and pins with it. No operation uses or waits for one. */
void lease_forget_locked(struct inode *inode);
/* Whether an operation uses it, or waits for it. */
bool lease_is_used_locked(const struct inode *inode);
/* The inode goes back as a whole (inode_return.h), or the mount is alone again: its lease is gone
 * here, and recalls of it are answered. */
void lease_end_locked(struct inode *inode);

/* ---- of a mount that moves to another daemon (handover/sharing.h) ---------------------------- */

/* The facts of an inode, while no message about it is on its way, and nobody uses it. */
struct lease_kept {
	uint64_t number, returned;
	uint8_t type;
	bool pinned, unsure, passing;
};
/* False: something is due, or on its way. */
bool lease_keeps_still_locked(const struct inode *inode);
void lease_describe_locked(const struct inode *inode, struct lease_kept *kept);
/* For an inode without a lease, before the threads run. */
void lease_adopt_locked(struct inode *inode, const struct lease_kept *kept);

/* For keep.c. lease_evict(): there are too many; gives back the caller's reference.
 * lease_leave_locked(): whether the lease still leaves with the batch that is made now, and how.
 * lease_left(): that batch was answered. */
void lease_evict(struct inode *inode, struct io_thread *thread);
bool lease_leave_locked(
	struct inode *inode, struct io_thread *thread, struct rpc_returned *returned);
void lease_left(struct inode *inode, struct io_thread *thread);

/* For the tail of a PING's reply, which is well-formed. */
void lease_recall(struct io_thread *thread, const struct rpc_recall *recall);

enum { OP_LEASES = 2 };

/* Every operation of a sharing mount has a state that begins with this struct. */
struct shared_op {
	struct file_op file;
	struct op_hold lease_hold;
	/* The leases that it uses; it may still wait for the last one. */
	struct op_lease leases[OP_LEASES];
	unsigned nleases;
	struct op_lease *at_lease;
	void (*lease_then)(struct request *req, int status);
	struct op_append append;
};

/* The operation's own state: struct write_state *st = op_state(req, struct write_state). */
#define op_state(req, type)                                                                       \
	({                                                                                        \
		static_assert(offsetof(type, shared) == 0 &&                                      \
				      sizeof(((type *)NULL)->shared) == sizeof(struct shared_op), \
			"the state of an operation begins with struct shared_op");                \
		request_state(req, type);                                                         \
	})

static inline struct shared_op *shared_op(struct op *op)
{
	return (struct shared_op *)(void *)op;
}

static inline struct shared_op *shared_op_of(struct request *req)
{
	return (struct shared_op *)(void *)req->state;
}

#endif
