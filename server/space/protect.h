/* protect.h - which pages of an export hold bytes that a snapshot on its way still wants.
 *
 * At the marker every page that is in a file is protected: one bit a page, in memory only. The
 * snapshot's thread takes the pages' bytes one run after the other. A thread that is going to
 * change a protected page calls protect_give_up() first. That copies the page aside, into a bounded
 * amount of memory, from where the snapshot's thread takes it later. Each page is taken once, by
 * the thread that is first.
 *
 *     protect_begin
 *       protect_give_up       before each change of a page: metadata thread, scrubber
 *       protect_take_*        the snapshot's thread
 *     protect_end
 *
 * Outside of a snapshot protect_give_up() is a test of a flag.
 *
 * THREADS    Begin and end: the metadata thread. The lock is held for the copy of a few hundred
 *            kilobytes at most, never over I/O. No thread waits here for room: one that is refused
 *            has other work.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_SERVER_SPACE_PROTECT_H
#define RMEMFS_SERVER_SPACE_PROTECT_H

#include <stdbool.h>
#include <stdint.h>

#include "server/space/space.h"

struct protect;

/* The most pages that are taken at once. */
enum { PROTECT_TAKE_PAGES = 64 };

/* The pages are those of space's regions, mapped at bases. Both must outlive the new struct. */
struct protect *protect_new(const struct space *space, void *const *bases);
/* The space has grown, and its regions are listed elsewhere. Only while nothing is protected. */
void protect_set_bases(struct protect *p, void *const *bases);
/* To be called after protect_end(). */
void protect_delete(struct protect *p);

/* Protects all pages that are in files; outside batches. At most aside_bytes (PROTECT_TAKE_PAGES or
 * more) are copied aside at a time. wake_fd is written to when a caller was refused and there is
 * room again. Takes the time of a copy of one bit a page. -ENOMEM. */
int protect_begin(struct protect *p, uint64_t aside_bytes, int wake_fd);
/* Nothing is protected any more, and callers that were refused can go on. Pages that were not taken
 * are lost to the snapshot. */
void protect_end(struct protect *p);

/* After 0 the pages may be changed. -EAGAIN: there is no room aside now, and they may not.
 * protect_has_room() is false until there is some. */
int protect_give_up(struct protect *p, struct page_run run);
/* For a caller that can't stop half way. It asks protect_has_room() before it begins; then
 * protect_give_up_now() never refuses. The little that goes beyond the bound stays in memory until
 * it has been taken. */
bool protect_has_room(struct protect *p);
void protect_give_up_now(struct protect *p, struct page_run run);
/* The time of the first refusal since there was room, in now_ms(); 0: none. */
int64_t protect_refused_ms(struct protect *p);

/* Takes a run and copies its bytes to buf[PROTECT_TAKE_PAGES pages]: one that was copied aside, or
 * the next one in memory. False: there is none. */
bool protect_take_aside(struct protect *p, void *buf, struct page_run *run);
bool protect_take_next(struct protect *p, void *buf, struct page_run *run);

/* True: not all pages can be taken. There was no memory to copy a page aside at once, or the end
 * came first. */
bool protect_lost(struct protect *p);
/* total: pages that were protected at the start. done: those that were taken since. */
void protect_progress(struct protect *p, uint64_t *done, uint64_t *total);

#endif
