/* kernel_pages.h - what the kernel has cached of a file of a sharing mount, and how it goes before
 * the lease does.
 *
 * All handles bypass the page cache. It has the pages of programs that have mapped the file, or
 * that let the kernel copy it (sendfile). READs for the cache need LEASE_SHARED. They need
 * LEASE_EXCLUSIVE while a handle is open by which a mapping may be stored into, since no store is
 * announced. So pages are dirty under LEASE_EXCLUSIVE only, which writing them back needs. Before a
 * lease goes back, or down while there may be stores, the kernel drops them all, and writes them
 * back before that:
 *
 *     give back -> [range being dropped -> the next one ...] -> nothing is cached -> COMMIT, RETURN
 *
 * The drop waits for pages that a READ has locked. So while a range is being dropped, READs that
 * touch it are answered under the lease that is still there, and their pages are dropped once more.
 * Stores are written back under it, too. A request that cuts the file goes on, since the kernel
 * holds up writing back for it. All other READs wait for the next lease: their pages are locked,
 * and empty, and are left out of the range. So programs that go on reading come to wait there one
 * by one. The drop waits for nothing that waits for a lease, or for room that such requests have
 * (request.h). So no two clients wait for each other.
 *
 * The kernel shows nothing of a mapping behind what it takes for the file's end, and asks nobody.
 * So before the lease of a mapped file goes, the kernel is told that the file is as long as can be.
 * Then it asks for pages behind the end, which others may move from then on, and learns the end
 * from the answer. An operation that asks for the size then waits for another lease, so that the
 * kernel is told again when others move the end that was answered. Entries, whose size no program
 * sees, say that there is no end. While a program appends, all that is left alone: the end that the
 * kernel knows is that program's position. When the last appending handle is closed, the kernel is
 * told what was left out. The same holds while the file is open by a handle that uses the cache
 * (below): read(2) stops at that end. An OPEN to append, after the kernel was told that there is no
 * end, is sent back once to look the file up again. It finds the true end, since the kernel is told
 * nothing until it has come:
 *
 *     OPEN -> -ESTALE, behind all that the kernel is being told -> LOOKUP, GETATTR -> OPEN
 *
 * Others may have made the file longer since the kernel was last answered its size. Then the kernel
 * is told at a READ for a mapping, too, that there is no end. But not if the kernel knows the end,
 * nor if the READ is of the page that the end is in. For a program that lets the kernel copy the
 * file (sendfile) does not look where it ends, but goes by what the kernel knows. It would find
 * zeros up to the end of that page: the kernel takes no size from a READ that is on its way just
 * then (below). That is left where another mount has used the file and the kernel was told, for
 * answers of entries say that there is no end as well.
 *
 * The kernel goes by what it was told last, whichever it looks at first. It counts what it was told
 * of an inode, and takes no size from an answer to an older question. So when pages are dropped
 * just then, stat(2) has the true size, which is its answer. But lseek(2), which looks at what the
 * kernel has, gets a size that is too large: no end; or the beginning of a READ that brings
 * nothing, which the kernel takes for the end (fs/fuse/file.c: fuse_short_read). Only answers to
 * SETATTR, and to operations that make names, are always taken. If such an answer is overtaken, and
 * others move the end before its caller has looked at it, the mapping ends there until a program
 * asks for the size.
 *
 * Nor does the kernel take the size from a READ that brings less than was asked for, if it was told
 * anything while the READ was on its way. A page behind the end may then be stored into, and is
 * written back when the file has grown past it. So such pages are dropped as soon as they are
 * answered. A write, which may make the file grow, waits for that. Bytes of them that are written
 * back meanwhile are cut off. truncate(2) does not wait when it makes a file longer, since the
 * kernel holds up writing back for it.
 *
 * The kernel may also take the file for shorter than it is: others have made it longer, while an
 * appending handle, or one that uses the cache, is open. Before it writes back the page with its
 * end, it makes zeros of what lies behind that end, and sends what lies before it. It would write
 * these zeros later, when it knows the true end. So that page is dropped as soon as the write is
 * answered, and until then no other write of it alone goes further. (Nothing tells these zeros from
 * bytes, so cases are left. A SETATTR makes the file longer just while the kernel writes that page
 * back, with zeros that it has just made: the kernel sends that write when the SETATTR is answered,
 * up to the new end. Before the page is dropped the kernel learns the end, and a program stores
 * into it and the next one: both are written back at once, with the zeros. Or it stores behind the
 * first zero: that store is cut off.)
 *
 * A mount that was alone before others came has handles that use the cache, opened to read only
 * (cache_policy.h). They stay so until their last close. Their read(2) asks for the attributes if
 * it goes past the end that the kernel knows, so it finds what others have appended. A READ that
 * brings less finds that others have cut the file. The kernel may not take the end from it (above),
 * and would go on to show zeros up to the old end, from the page that the end is in. So for such
 * files that page is dropped as well, as soon as it is answered. Until then a read(2) may see these
 * zeros: nothing can tell the kernel of a smaller end in time. Mappings of such a file, by
 * whichever handle, end where the kernel takes the end to be, until a program asks for the size.
 *
 * A lease that was lost (session_renewal.h) leaves its pages behind. They are dropped before
 * another lease is asked for. WRITEs and READs of them fail.
 *
 * OWNERSHIP  Its inode's, which a range that is being dropped holds a reference to. Most files are
 *            never mapped: the first READ allocates it.
 * THREADS    Under the inode's lock. The notifier fs.giver drops, and does what has to come behind
 *            that.
 */
#ifndef RMEMFS_DAEMON_KCACHE_KERNEL_PAGES_H
#define RMEMFS_DAEMON_KCACHE_KERNEL_PAGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/types.h"
#include "daemon/fuse/notifier.h"

struct inode;
struct io_thread;
struct request;

enum { CACHED_RANGES = 16, CACHED_LOOKERS = 4 };

#define CACHED_NOTHING UINT64_MAX

/* Bytes; of cached pages both ends are page boundaries. */
struct cached_range {
	uint64_t from, to;
};

/* A thread that was sent back, and has not come again; until then the kernel is told nothing. */
struct cached_looker {
	uint32_t pid;     /* 0: one of another PID namespace */
	int64_t until_ms; /* 0: free */
};

struct cached_pages {
	struct inode *inode;
	struct notifier_job job;
	bool running;                /* the kernel drops `dropped`, or is being told the end */
	struct cached_range dropped; /* and all else that was read for the cache: */
	struct cached_range ranges[CACHED_RANGES];
	unsigned nranges;
	bool read_again; /* READs have brought some of `dropped` again */
	/* Pages to be dropped whatever the lease: behind the end, or about to be written.
	 * CACHED_NOTHING: none. */
	uint64_t behind, behind_to;
	uint64_t zeroed;   /* the kernel has zeros from here to the page's end; or CACHED_NOTHING */
	unsigned nends;    /* READs that are being answered with less, and so leave such pages */
	bool drops_behind; /* `dropped` is those */
	uint64_t step;     /* the most bytes to be dropped at once */
	bool clean;        /* those of a file that was closed when its mount began to share */
	bool mapped;       /* perhaps, by a handle that goes past the cache */
	bool to_raise;     /* the kernel is to be told that there is no end, whatever the lease */
	bool endless;      /* the kernel was told so last */
	bool raised;       /* it was told so, and no thread that was sent back has looked since */
	bool was_raised;   /* ever */
	/* OPENs to append. */
	unsigned nsent_back; /* being sent back now */
	bool told_before;    /* one was, and nothing was told since: it finds the true end */
	struct cached_looker lookers[CACHED_LOOKERS]; /* the last ones */
};

struct kernel_pages {
	struct cached_pages *pages; /* NULL: nothing was ever read for the cache */
	unsigned nstorers;   /* handles by which a mapping may be stored into, or OPENs for such */
	unsigned nappenders; /* handles that append */
	_Atomic uint64_t told_end; /* the size last answered, which the kernel may not take */
};

void kernel_pages_fini(struct kernel_pages *c);

/* Before a READ for the cache waits, or is answered. False: there is no memory. */
bool kernel_pages_make_locked(struct inode *inode);
/* Whether a READ for the cache may be a mapping's. A handle that uses the cache may be mapped, too,
 * but read(2) by it comes from there as well. */
bool kernel_pages_is_for_mapping(const struct request *req);
/* The READ of these bytes is answered. */
void kernel_pages_note_locked(
	struct inode *inode, struct io_thread *thread, struct cached_range bytes, bool for_mapping);

/* The same for a request of a mount that is alone, and may share later: its READs for the cache are
 * noted, and its writes through it. False: there is no memory. */
bool kernel_pages_note_alone(const struct request *req);
/* How many handles of such a mount write through the cache. There are some only where the kernel
 * maps no file that goes past it (before Linux 6.9). Any thread, with no inode's lock held. */
unsigned kernel_pages_writers(struct fs *fs);
/* The mount goes by leases from now on. Pages of a file that is open stay, under a lease that the
 * caller gets before any request goes on. Those of others are dropped; until they are gone,
 * requests for the file wait. */
void kernel_pages_share_locked(struct inode *inode, struct io_thread *thread);

/* Before a READ is answered with bytes that stop at `end`, the file's end. True: pages behind it
 * may have to be dropped. Then the caller calls kernel_pages_end_answered() when the kernel has the
 * answer: the kernel would not look at the size if it was told to drop something before. */
bool kernel_pages_answers_end(struct inode *inode, uint64_t end);
void kernel_pages_end_answered(struct inode *inode, struct io_thread *thread);
/* The same before a write of pages from the kernel's cache is answered, which stops at `end`. */
bool kernel_pages_writes_end(struct inode *inode, uint64_t end);
/* Until then: where another such write, which stops at `end`, has to be cut off. */
uint64_t kernel_pages_written_to_locked(const struct inode *inode, uint64_t end);
/* Whether such pages are to be dropped: operations that may make the file grow wait. */
bool kernel_pages_drops_behind_locked(const struct inode *inode);

/* Whether there are pages, and handles by which a mapping may be stored into. */
bool kernel_pages_may_be_stored_into_locked(const struct inode *inode);
/* Before these bytes are written past the cache, under LEASE_EXCLUSIVE: whether the kernel may have
 * some of their pages. They are being dropped then. The caller waits for the lease again, which
 * waits for the drop, and asks again. There are pages. */
bool kernel_pages_drop_written_locked(
	struct inode *inode, struct io_thread *thread, uint64_t offset, uint64_t len);

/* Whether the kernel may have pages of the file. */
bool kernel_pages_any_locked(const struct inode *inode);
/* Whether the kernel has to drop pages, or be told the end, before only `keep` of the lease is
 * left. */
bool kernel_pages_hinders_locked(const struct inode *inode, enum lease_type keep);
/* Whether these bytes are just being dropped. */
bool kernel_pages_drops_locked(const struct inode *inode, uint64_t offset, uint64_t len);

/* An answer is about to tell the kernel the size. Any thread. */
void kernel_pages_end_is_answered(struct inode *inode, uint64_t end);
/* A write past the cache is about to be answered, after which the file is as long as this for the
 * kernel, or longer. */
void kernel_pages_end_is_written(struct inode *inode, uint64_t end);
/* Whether the kernel was told that there is no end, and is to go by that. */
bool kernel_pages_is_endless_locked(const struct inode *inode);
/* The size that an entry tells. */
uint64_t kernel_pages_size_of_entry(struct inode *inode, uint64_t size);
/* That thread opens the file to append: whether the kernel has to look it up again before. A thread
 * is sent back once: an open by /proc/self/fd looks nothing up, and may find no end. If the thread
 * does not come (it was killed on its way), things stay as they are for half a minute. */
bool kernel_pages_sends_back_locked(struct inode *inode, uint32_t pid);
/* Follows: the thread is answered now, behind all that the kernel was being told, and comes
 * again. */
void kernel_pages_sent_back(struct inode *inode, uint32_t pid);
/* Whether a handle that has appended cuts the file to this size. No program does that: the kernel
 * cuts off what could not be appended, where it was told that there is no end. */
bool kernel_pages_is_raised_end(struct inode *inode, uint64_t size);

/* Whether all that is cached is as the server has it, though there is no lease. So a request that
 * holds up writing back may wait until it is dropped. */
bool kernel_pages_are_clean_locked(const struct inode *inode);

/* Goes on with dropping what kernel_pages_hinders_locked() tells of; lease_settle() follows as long
 * as there is something. */
void kernel_pages_drop_locked(struct inode *inode, struct io_thread *thread, enum lease_type keep);

/* An appending handle is closed: the kernel is told what was left out for it. */
void kernel_pages_append_ended_locked(struct inode *inode, struct io_thread *thread);
/* The same for a handle that uses the cache. Others may have moved the end long ago. If it was the
 * last such handle, what was read is dropped: another one may be mapped to it, and that mapping
 * asks from then on. */
void kernel_pages_reader_closed_locked(struct inode *inode, struct io_thread *thread);

/* The kernel is told the end, or may be, under a lease that is there or that an appending handle
 * holds up. When that lease goes, the kernel is told again that there is no end. */
void kernel_pages_end_is_told_locked(struct inode *inode);
/* No handle of the file is open any more. */
void kernel_pages_closed_locked(struct inode *inode);

/* ---- of a mount that is about to be alone again (conversion.h) ------------------------------- */

/* Whether the file is mapped, and the kernel was told that there is no end, or may have zeros in
 * place of what is behind the end that it knows. It stays so until the file is closed. */
bool kernel_pages_end_is_open_locked(const struct inode *inode);
/* Under a lease: whether it has pages, and others have made the file longer since it was told the
 * end. Then kernel_pages_drop_locked() comes first. */
bool kernel_pages_have_old_end_locked(const struct inode *inode);
/* The kernel is told that the file, of which it has no page, is at least as long as it is: others
 * may have made it longer, and a mapping would end at the end from before. Under a lease, while no
 * request runs. False: it is not told; no memory, or it is being told something else. */
bool kernel_pages_raise_end_locked(struct inode *inode, struct io_thread *thread);

/* ---- of a mount that moves to another daemon (handover/sharing.h) ---------------------------- */

/* Whether nothing is being dropped or told, and no answer is on its way after which pages may have
 * to be. Then cached_pages without job, inode and what is running says all. */
bool kernel_pages_keep_still_locked(const struct inode *inode);
/* Before the threads run. The inode has no pages yet. -ENOMEM; -EINVAL: ranges that are none. */
int kernel_pages_adopt_locked(struct inode *inode, const struct cached_pages *kept);

#endif
