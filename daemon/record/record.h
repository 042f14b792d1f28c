/* record.h - what a daemon leaves behind for its successor, if it is killed.
 *
 * The kernel goes on to use node ids and handles that the dead daemon gave it, and the server knows
 * the session by numbers. So the daemon keeps them in a piece of memory that outlives it: a memfd,
 * which the service manager holds, too. Each thread writes its entries in place, by plain stores.
 * A kill at any moment leaves entries that are whole: the word that makes an entry count is written
 * last, and is cleared first.
 *
 *     head       whose mount it is, the session (bytes of handover/state.h), and whether there is
 *                something to go on with
 *     inodes     each inode that the kernel knows: the number of its lookups, its type, marks
 *     handles    each open file: the kernel's number for it
 *     locks      each lock of a file that the mount keeps by itself (lock/local_locks.h)
 *     slots      of each channel: the number of the last request, and the request itself where it
 *                must not be done twice
 *
 * A count of lookups may be too high by the answers that the kernel did not get, and never too low.
 * Locks may be those from before a change or those from after it, or both, until the kernel is
 * answered: new entries come before old ones go. A successor joins those of one owner, and
 * exclusive ones win.
 *
 * A mount that shares its export when another one comes can be revived while it is alone at the
 * server, and knows that for certain: `alone`. Leases, pins, and locks at the server are not here.
 *
 * OWNERSHIP  The record has the descriptor and its mapping. Entries belong to their inode, handle
 *            or slot.
 * THREADS    Entries are taken and given back in any thread, without a lock. An entry belongs to
 *            the lock or the thread of what it is of.
 * ERRORS     0 or -errno.
 *
 * The memory has a fixed size, sealed, and pages that were never written take no room. It is left
 * out of core dumps: it has the session's token.
 */
#ifndef RMEMFS_DAEMON_RECORD_RECORD_H
#define RMEMFS_DAEMON_RECORD_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/rpc/rpc_ops.h"
#include "common/transport/transport.h"

/* Any change of the structs below, or of their meaning, changes the version. */
enum { RECORD_VERSION = 2 };

enum {
	RECORD_INODES = 4 << 20,
	RECORD_HANDLES = 1 << 20,
	RECORD_LOCKS = 1 << 19,
	RECORD_THREADS = 16,
	RECORD_SLOTS = 64, /* of a thread */
	RECORD_STATE_BYTES = 16 << 10,
	RECORD_PATH_BYTES = 4096,
};

/* Marks of an inode. */
enum {
	MARK_TOUCHED = 1, /* the server does not know all: at least times */
	MARK_AT_RISK = 2, /* bytes, a size, a mode or owners would be lost; or a loss is untold */
	MARK_ORPHAN = 4,  /* it has no name any more, and the server keeps it for us */
	MARK_NAMELESS = 8 /* the same, and it never had one */
};

struct record_inode {
	_Atomic uint64_t ino;     /* of a free entry: the next free one */
	_Atomic uint64_t nlookup; /* other than 0: it counts */
	uint32_t type;            /* S_IFMT bits; set before it counts */
	_Atomic uint32_t marks;
};

/* Flags of a handle. HANDLE_COUNTS is written last. */
enum {
	HANDLE_COUNTS = 1,
	HANDLE_WRITES = 2,
	HANDLE_APPENDS = 4,
	HANDLE_STORES = 8,
	HANDLE_KIND_SHIFT = 8, /* enum open_kind */
};

struct record_handle {
	_Atomic uint64_t number; /* the kernel's; of a free entry: the next free one */
	uint64_t ino;
	uint64_t opened_by; /* the kernel's request that opened it: request.h, request_number() */
	_Atomic uint32_t flags;
	uint32_t unused;
};

struct record_lock {
	_Atomic uint64_t ino;    /* of a free entry: the next free one */
	uint64_t owner;          /* the kernel's name for it */
	uint64_t handle;         /* the kernel's number for the one that it was had by */
	uint64_t start, end;     /* inclusive */
	uint32_t pid;            /* for GETLK */
	uint8_t kind, type;      /* enum lock_kind, enum lock_type */
	_Atomic uint16_t counts; /* written last */
};

/* seq is of the last request that may have left. If len is not 0, the message is that request's,
 * as in the record's version of the wire protocol. */
struct record_slot {
	_Atomic uint64_t seq;
	uint64_t by; /* the kernel's request: request_number() */
	_Atomic uint32_t len;
	uint32_t unused;
	uint8_t message[RPC_MSG_BYTES];
};

struct record_thread {
	uint32_t nslots, nreserved; /* 0: its channel was never attached */
	struct record_slot slots[RECORD_SLOTS];
};

enum record_life {
	RECORD_ENDED, /* or is not there yet */
	RECORD_LIVES,
	RECORD_OUTDATED, /* the session that it tells of has ended */
};

struct record_head {
	uint64_t magic;
	uint32_t version, wire_version;
	uint64_t bytes; /* of the whole record */
	/* A successor can go on: the descriptors are with the service manager, and the mount has
	 * not ended. */
	atomic_uint lives; /* enum record_life */
	/* And nobody else may be at the export by now, with whom it shares: record_set_alone(). */
	atomic_uint alone;
	/* Counts daemons: each one that takes the record raises it, so that what watches for the
	 * one before knows. */
	atomic_uint generation;
	_Atomic uint64_t nmissing; /* inodes, handles and locks that have no entry */
	/* Entries that were used ever: those behind them are zero. */
	atomic_uint ninodes, nhandles, nlocks;

	/* Deaths, to end with a daemon that dies again and again: how many were found since then
	 * (CLOCK_BOOTTIME), and how many requests the server had got when the last one was. */
	uint32_t ndeaths;
	int64_t died_ms;
	uint64_t nrequests;

	/* Of a mount that may share later (barrier/conversion.h): for how long the kernel was told
	 * to keep an answer, at most; when answers from the last time that it shared have ended
	 * (CLOCK_BOOTTIME); whether it ever has. */
	_Atomic uint32_t ttl_ms;
	atomic_bool has_shared;
	_Atomic int64_t told_ms;

	/* The mount. */
	uint32_t connection; /* the kernel's number */
	uint32_t io_threads;
	atomic_bool read_only;
	char place[RECORD_PATH_BYTES]; /* where it is mounted */
	char asked[RECORD_PATH_BYTES]; /* as the command line names that */
	struct transport_address address;
	uint32_t state_bytes; /* 0: not there yet */
	uint8_t state[RECORD_STATE_BYTES];
};

struct record;

/* -ENOMEM; -errno of memfd_create(2). */
int record_new(struct record **out);
/* A record that another process has made; takes fd, also after an error. -EPROTONOSUPPORT: of
 * another version. -EPROTO: it is none. */
int record_open(int fd, struct record **out);
/* NULL: does nothing. */
void record_delete(struct record *r);

int record_fd(const struct record *r);
struct record_head *record_head(const struct record *r);
struct record_thread *record_thread(const struct record *r, unsigned index);
/* How many requests the server has got, ever. */
uint64_t record_nrequests(const struct record *r);
/* Whether a successor would find all of the mount. */
bool record_is_whole(const struct record *r);

/* Whether a successor can go on with the mount. */
bool record_can_go_on(const struct record_head *head);
/* It is alone; or it begins to share, or has locks at the server, so that nobody can go on with it.
 * A new record is alone. r NULL: does nothing. */
void record_set_alone(struct record *r, bool alone);

/* An entry for an inode or a handle. NULL: all are used, which is counted; or there is no record.
 * A handle's caller fills the entry, and then sets its flags with HANDLE_COUNTS. */
struct record_inode *record_inode_new(struct record *r, uint64_t ino);
struct record_handle *record_handle_new(struct record *r);
/* Its inode or handle is gone; NULL: that had no entry. */
void record_inode_end(struct record *r, struct record_inode *entry);
void record_handle_end(struct record *r, struct record_handle *entry);

/* The same for a lock: its caller fills the entry, and then calls record_lock_counts(). */
struct record_lock *record_lock_new(struct record *r);
void record_lock_counts(struct record_lock *entry);
void record_lock_end(struct record *r, struct record_lock *entry);

/* Calls fn for each entry that counts, until it returns an error, which is returned. Nobody else
 * uses the record. While fn runs, the _new() of this kind returns this entry, if `adopts`. */
int record_each_inode(
	struct record *r, bool adopts, int (*fn)(struct record_inode *entry, void *arg), void *arg);
int record_each_handle(struct record *r, bool adopts,
	int (*fn)(struct record_handle *entry, void *arg), void *arg);
/* Locks are taken out of the record, for those that have copied them all. */
int record_each_lock(
	struct record *r, int (*fn)(const struct record_lock *entry, void *arg), void *arg);
void record_forget_locks(struct record *r);
/* After all: entries that don't count can be used again. */
void record_sweep(struct record *r);

/* A slot's next request: the message of the one before is not there any more. */
void record_slot_begin(struct record_slot *slot, uint64_t seq);
/* The message that is about to be sent, which is of the kernel's request `by`. */
void record_slot_message(struct record_slot *slot, uint64_t by, const void *message, size_t len);

#endif
