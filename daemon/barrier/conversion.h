/* conversion.h - a mount that had its export for itself goes by leases from a moment on, since
 * another client has come and waits for that.
 *
 *     NONE ──PING: RECALL_SHARE──> DRAINS ──what had begun has ended──> STILL ──all is committed──>
 *     TELLS ──CONVERT_SHARES is answered: all is forgotten, fs.sharing──> PINS ──open files are
 *     leased──> FORGETS ──the kernel's entries have ended──> CONVERT_FORGOT ──> NONE
 *
 * From DRAINS to PINS requests are held before they have entered anything. While the mount DRAINS
 * what the kernel reads for its cache, or writes back from it, is let through: an operation that
 * has begun may wait until the kernel has dropped such pages. Nothing that has begun waits for
 * another client, so the drain ends by itself, if the server answers.
 *
 * The state that a mount is in from PINS on is that after a renewal of its session: no lease is
 * known, and nothing that needs one. Then each open file gets a lease, with a pin. So nobody
 * removes it for good, and pages that the kernel has of it, perhaps with stores, are covered. The
 * mount asks until it has all pins.
 *
 * The kernel shows names and attributes for as long as it was told, without asking. A mount that is
 * alone tells a time that is short (conversion_ttl_ms()), and none from DRAINS on. While the mount
 * FORGETS, that time passes. It works by leases meanwhile, and the server lets nobody in, so no
 * request waits for another client. The kernel is told to forget nothing, so what is mounted below
 * a directory of this mount stays, as do working directories.
 *
 * A kernel that maps no file which goes past its cache (before Linux 6.9) keeps all files in it
 * that are open, also those that are written. Others can't change such a file, since it would not
 * agree with the cache. So such a mount does not begin to share while a file is open for writing.
 * It says so (CONVERT_NOT_NOW), and is asked again.
 *
 * Back, when nobody else has been there for a while (conversion_back.c):
 *
 *     NONE ──PING: RECALL_ALONE──> DRAINS ──> STILL ──> RETURNS ──leases are settled──> TELLS
 *     ──CONVERT_ALONE is answered: not fs.sharing──> NONE
 *
 * Leases are settled when each open file has LEASE_SHARED or more, and no other inode has any, but
 * for those without a name. The mount then knows of an open file what it has to know alone: size,
 * map and attributes stay. All else is forgotten. The server
 * forgets all leases and pins with CONVERT_ALONE, and keeps what has no name until it is returned.
 * So no lease may go after the last look at them: lease_keep_hold().
 *
 * The kernel may be wrong about a file's end, since others have moved it. A mount that has ever
 * shared does not go by that: fs_kernel_knows_ends(). But a file that was mapped while it was
 * shared keeps the mount as it is, since the kernel was told that it has no end, and can't be told
 * another one before somebody asks. So does any open file where the kernel maps none that goes past
 * its cache (below).
 *
 * If the server says that somebody has come, or that there are too many leases, or if they are not
 * settled in time, the mount goes on as it was, and tries again later. The kernel keeps answers
 * under leases, which stay true while the mount is alone. They have ended before another mount is
 * let in (told_ms).
 *
 * A mount that changes names by itself while it is alone (names=local) makes no such change from
 * DRAINS on, and it is not STILL at its end before the server knows all of them. The inode numbers
 * that it was lent, and the names that it knows, are good for nothing from then on. Alone again, it
 * asks for others.
 *
 * A mount that is alone notes what the kernel reads for its cache (kernel_pages.h), and keeps locks
 * by itself (local_locks.h). While it PINS, the server learns of all locks. It lets nobody in
 * before that, so it grants them, and no other mount gets one that is had here.
 *
 * The same is done, and nothing else, before a mount that is alone is remounted read-only, since
 * others that only read may be beside it then:
 *
 *     NONE ──remount──> DRAINS ──> STILL ──> PINS ──the server has all locks──> NONE
 *
 * The server ends a session that takes longer than the lease time. Then the mount renews it
 * (session_renewal.h), as one that shares, in whatever state it is.
 *
 * A mount that has a record (record.h) can be revived while it is alone, and keeps its locks by
 * itself. From DRAINS on, until it is alone again, it can't: CONVERT_SHARES may have been sent, and
 * leases and pins are not recorded.
 *
 * THREADS    Each thread holds its own requests, and says for itself that it is idle. Thread 0 does
 *            the rest, while all are idle.
 */
#ifndef RMEMFS_DAEMON_BARRIER_CONVERSION_H
#define RMEMFS_DAEMON_BARRIER_CONVERSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/barrier/barrier.h"
#include "daemon/remote/remote.h"

struct fs;
struct request;

enum conversion_phase {
	CONVERSION_NONE,
	CONVERSION_DRAINS,
	CONVERSION_STILL,
	CONVERSION_TELLS,
	CONVERSION_PINS,
	CONVERSION_FORGETS,
	CONVERSION_RETURNS, /* the way back: leases are settled */
};

struct conversion {
	_Atomic enum conversion_phase phase; /* changed under the lock */
	struct barrier hold;
	void (*begin)(struct request *req, int status);
	pthread_mutex_t lock;
	uint32_t idle;       /* a bit for each thread that is, in this phase */
	bool back;           /* it is to be alone; under the lock */
	bool locks;          /* the server is to learn of locks, and that is all; under the lock */
	int64_t back_ms;     /* not before; under the lock */
	int64_t failed_ms;   /* how long it waited after the last try; 0: none has failed */
	atomic_bool not_now; /* the server is to learn that it can't be now */
	_Atomic int64_t rest_ms; /* nor before then */
	/* Since this daemon began; for the admin. */
	_Atomic uint64_t nbegun, nended;
	_Atomic int64_t kept_out_ms; /* when another mount was last kept out; 0: none was */
	/* Thread 0's. */
	struct rpc_call call;
	bool telling;      /* CONVERT_FORGOT or CONVERT_NOT_NOW is on its way */
	int64_t began_ms;  /* DRAINS; on the way back also RETURNS */
	bool ends_told;    /* the kernel knows the ends of all open files */
	uint32_t ttl_ms;   /* the longest time that the kernel was told */
	int64_t forgot_ms; /* when the kernel has nothing any more */
	int64_t told_ms;   /* answers under leases have ended by then */
	unsigned nopen;    /* files that were open */
	unsigned nlacking; /* of these, those that the server has not pinned yet */
};

struct conversion_told {
	uint32_t ttl_ms;  /* the longest time that an answer without a lease is kept */
	uint32_t left_ms; /* in that time answers under leases have ended */
};

/* begin(req, 0) begins a request that was held, begin(req, -errno) ends it. */
void conversion_init(
	struct conversion *c, struct fs *fs, void (*begin)(struct request *req, int status));
void conversion_fini(struct conversion *c);

/* The server tells that another client waits. It repeats that. */
void conversion_wanted(struct io_thread *thread);
/* The server tells that nobody else has been there for a while. It repeats that. */
void conversion_back_wanted(struct io_thread *thread);
/* Does what is due, after events and about every 100 ms. */
void conversion_step(struct io_thread *thread);
/* Another session is about to begin: there is nothing to convert any more. */
void conversion_is_over(struct fs *fs);

/* Whether it is under way: then the mount can't move to another daemon. None begins while the mount
 * is paused (pause.h). Any thread. */
bool conversion_is_under_way(const struct fs *fs);

struct conversion_view {
	uint64_t nbegun, nended; /* how often it was converted, each way, by this daemon */
	bool under_way;
	unsigned nkeep_out; /* files that keep out a mount that waits now; 0: none waits for that */
};

/* Any thread. It takes the lock of each inode, if a mount is kept out. */
void conversion_look(struct fs *fs, struct conversion_view *view);
/* A session that was alone was ended, and its successor shares. Thread 0. */
void conversion_note_renewal(struct fs *fs);

/* The most that the kernel was told; the daemon before this one has told it so. */
struct conversion_told conversion_told(const struct fs *fs);
void conversion_adopt(struct fs *fs, struct conversion_told told);
/* The same by the record of a killed daemon, and whether it has ever shared. */
void conversion_revive(struct fs *fs);

/* Before a request of a mount that may be converted begins. False: it is held, and begin() follows.
 * STATFS, which changes nothing that counts, goes on. */
bool conversion_enter(struct request *req);

/* For how long the kernel of a mount that does not share may keep an answer, where ms is the most.
 */
uint32_t conversion_ttl_ms(const struct fs *fs, uint32_t ms);

#endif
