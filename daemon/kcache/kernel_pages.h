/* kernel_pages.h - what the kernel has cached of a file of a sharing mount, and how it goes before the
 * lease does.
 *
 * All handles go past the page cache; it has the pages of those who have mapped the file, or let
 * the kernel copy it (sendfile). READs for it need LEASE_SHARED, and LEASE_EXCLUSIVE while somebody
 * has the file open so that he may store into a mapping, since no store is announced: so pages are
 * dirty under LEASE_EXCLUSIVE only, which writing them back needs. Before a lease goes back, or
 * down while there may be stores, the kernel drops them all, and writes them back before that:
 *
 *     give back -> [range being dropped -> the next one ...] -> nothing is cached -> COMMIT, RETURN
 *
 * It waits for pages that a READ has locked. So while a range is being dropped, READs that touch it
 * are answered under the lease that there is still, and what they bring is dropped once more; so
 * is what was stored, and who cuts the file goes on, since the kernel holds up writing back for
 * him. All other READs wait for the next lease: their pages are locked, and empty, and are left out
 * of what is dropped. So those who go on reading come to wait there one by one, and as nothing that
 * is waited for waits for a lease, or for room that such have (request.h), no two clients wait for
 * each other.
 *
 * The kernel shows nothing of a mapping behind what it takes for the file's end, and asks nobody.
 * So before the lease of a mapped file goes the kernel is told that it is as long as anything can
 * be: then it asks for pages behind the end, which others may move from then on, and learns from
 * the answer where that is. Who asks for the size then waits for another lease, so that this
 * is told again when others move the end that he is answered; entries, whose size no program sees,
 * say that there is no end. While somebody appends all that is left alone, for his position in the
 * file is the end that the kernel knows; when the last one has closed it, the kernel is told what
 * it would have been. Who comes to append when it was told that there is none is sent back, once,
 * to look the file up again, and finds the true one, since nothing is told until he has come:
 *
 *     OPEN -> -ESTALE, behind all that the kernel is being told -> LOOKUP, GETATTR -> OPEN
 *
 * What the kernel knew before anything was read for the mapping others may have moved since, with
 * nothing to be told. From then on an answer about the size may be overtaken, and leave that: so it
 * is told at the first READ, too, that there is no end.
 *
 * What the kernel was told last is what it goes by, whichever it looks at first: it counts what it
 * was told of an inode, and takes no size from an answer to what was asked before. So when pages
 * are dropped just then stat(2) has the true size, which is its answer, and lseek(2), which looks
 * at what the kernel has, one that is too large: no end, or, since the kernel takes the beginning
 * of a READ that brings nothing for the end (fs/fuse/file.c: fuse_short_read), that. Only answers
 * to SETATTR, and to what makes names, it always takes: when one is overtaken, and others move the
 * end before its caller has looked at it, the mapping ends there until somebody asks for the size.
 *
 * Nor does it take the size from a READ that brings less than was asked for, if it was told
 * anything while that was on its way. A page may then be stored into that lies behind the end, and
 * is written back when the file has grown past it. So such pages are dropped as soon as they are
 * answered, and who writes, which may make the file grow, waits for that; what is written back of
 * them meanwhile is cut off. A file that is made longer by truncate(2) does not wait, since the
 * kernel holds up writing back for it.
 *
 * A lease that was lost (session_renewal.h) leaves its pages behind: they are dropped before
 * another one is asked for, and what would have been written back, or has to be answered, fails.
 *
 * OWNERSHIP  Its inode's, which a range that is being dropped holds a reference to. Most files are
 *            never mapped: the first READ allocates it.
 * THREADS    Under the inode's lock. The notifier fs.giver drops, and does what has to come behind
 *            that.
 */
#ifndef RMEMFS_DAEMON_KCACHE_KERNEL_PAGES_H
#define RMEMFS_DAEMON_KCACHE_KERNEL_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/types.h"
#include "daemon/fuse/notifier.h"

struct inode;
struct io_thread;

enum { CACHED_RANGES = 16, CACHED_LOOKERS = 4 };

#define CACHED_NOTHING UINT64_MAX

/* Bytes, at pages' ends. */
struct cached_range {
	uint64_t from, to;
};

/* A thread that was sent back, and has not come again; until then nothing is told. */
struct cached_looker {
	uint32_t pid;     /* 0: one of another PID namespace */
	int64_t until_ms; /* 0: nobody */
};

struct cached_pages {
	struct inode *inode;
	struct notifier_job job;
	bool running;                /* the kernel drops `dropped`, or learns of the end */
	struct cached_range dropped; /* and all that was read for the cache besides it: */
	struct cached_range ranges[CACHED_RANGES];
	unsigned nranges;
	bool read_again;   /* something of `dropped`, since that began */
	uint64_t behind;   /* what was read from here on is behind the end; CACHED_NOTHING: none */
	unsigned nends;    /* READs that are being answered with less, because of which */
	bool drops_behind; /* `dropped` is that */
	uint64_t step;     /* bytes to be dropped at once */
	bool mapped;       /* perhaps, by who has it open */
	bool to_raise;     /* the kernel is to be told that there is no end, whatever the lease */
	bool endless;      /* so the kernel was told, and nothing else since */
	bool raised;       /* so it was told, and who was sent back has not looked since */
	bool was_raised;   /* ever */
	/* OPENs to append. */
	unsigned nsent_back; /* that are being sent back */
	bool told_before;    /* one was, since when nothing was told: what he finds is true */
	struct cached_looker lookers[CACHED_LOOKERS]; /* the last ones */
};

struct kernel_pages {
	struct cached_pages *pages; /* NULL: nothing was ever read for the cache */
	unsigned nstorers;   /* handles by which a mapping may be stored into, or OPENs of such */
	unsigned nappenders; /* handles that append */
};

void kernel_pages_fini(struct kernel_pages *c);

/* Before a READ for the cache waits, or is answered. False: there is no memory. */
bool kernel_pages_make_locked(struct inode *inode);
/* It is answered. */
void kernel_pages_note_locked(
	struct inode *inode, struct io_thread *thread, uint64_t offset, uint64_t len);

/* Before a READ is answered with what ends there, the file's end. True: what lies behind may have
 * to be dropped, and kernel_pages_end_answered() follows, when the kernel has the answer: it would
 * not look at it if it was told to drop something before. */
bool kernel_pages_answers_end(struct inode *inode, uint64_t end);
void kernel_pages_end_answered(struct inode *inode, struct io_thread *thread);
/* It is to be dropped: whoever may make the file grow has to wait. */
bool kernel_pages_drops_behind_locked(const struct inode *inode);

/* The kernel may have something of the file. */
bool kernel_pages_any_locked(const struct inode *inode);
/* It has to be dropped before no more than `keep` of the lease is left. */
bool kernel_pages_hinders_locked(const struct inode *inode, enum lease_type keep);
/* These bytes are just being dropped. */
bool kernel_pages_drops_locked(const struct inode *inode, uint64_t offset, uint64_t len);

/* The kernel was told that there is no end, and is to go by that. */
bool kernel_pages_is_endless_locked(const struct inode *inode);
/* What an entry says of its size. */
uint64_t kernel_pages_size_of_entry(struct inode *inode, uint64_t size);
/* It is opened to append, by that thread: whether the kernel has to look it up again before. A
 * thread is sent back once: who opens it by /proc/self/fd looks nothing up, and may find no end.
 * Whoever does not come (he was killed on his way) keeps things as they are for half a minute. */
bool kernel_pages_sends_back_locked(struct inode *inode, uint32_t pid);
/* Follows: he is answered now, behind all that the kernel was being told, and comes again. */
void kernel_pages_sent_back(struct inode *inode, uint32_t pid);
/* It has been cut to this size by a handle that has appended. Not by its user: the kernel cuts off
 * what could not be appended where it was told that there is no end. */
bool kernel_pages_is_raised_end(struct inode *inode, uint64_t size);

/* Goes on with what hinders that; lease_settle() follows as long as there is something. */
void kernel_pages_drop_locked(struct inode *inode, struct io_thread *thread, enum lease_type keep);

/* A handle that appends is closed: what was left alone for it is made up for. */
void kernel_pages_append_ended_locked(struct inode *inode, struct io_thread *thread);

/* The kernel is told the end, or may be, under a lease that there is now or one that is left alone
 * for somebody who appends: when that goes it is told again that there is none. */
void kernel_pages_end_is_told_locked(struct inode *inode);
/* Nobody has the file open any more. */
void kernel_pages_closed_locked(struct inode *inode);

#endif
