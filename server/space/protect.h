/* protect.h - which pages of an export hold bytes that a snapshot on its way still wants.
 *
 * At the marker every page that is in a file is protected: one bit a page, in memory only. The
 * snapshot's thread takes the pages' bytes one run after the other. Whoever is going to change a
 * page before that calls protect_give_up() first, which copies it aside, into a bounded amount of
 * memory, from where the snapshot's thread takes it then. A page is taken once, by whoever is
 * first.
 *
 *     protect_begin
 *       protect_give_up       before each change of a page: metadata thread, scrubber
 *       protect_take_*        the snapshot's thread
 *     protect_end
 *
 * Outside of a snapshot protect_give_up() is a test of a flag.
 *
 * THREADS    Begin and end: the metadata thread. The lock is held for the copy of a few hundred
 *            kilobytes at most, never over I/O, and none of them waits for room: who is refused has
 *            other work.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_SERVER_SPACE_PROTECT_H
#define RMEMFS_SERVER_SPACE_PROTECT_H

#include <stdbool.h>
#include <stdint.h>

#include "server/space/space.h"

struct protect;

/* Pages that are taken at once, at most. */
enum { PROTECT_TAKE_PAGES = 64 };

/* The pages are those of space's regions, mapped at bases; both outlive it. */
struct protect *protect_new(const struct space *space, void *const *bases);
/* After protect_end(). */
void protect_delete(struct protect *p);

/* Protects all pages that are in files, outside batches; at most aside_bytes (PROTECT_TAKE_PAGES or
 * more) are copied aside at a time. wake_fd is written to when somebody was refused and there is
 * room again. Its time is that of a copy of one bit a page. -ENOMEM. */
int protect_begin(struct protect *p, uint64_t aside_bytes, int wake_fd);
/* Nothing is protected any more; who waits goes on. What was not taken is lost. */
void protect_end(struct protect *p);

/* The pages may be changed after 0. -EAGAIN: no room aside now, nothing is promised; and
 * protect_has_room() is false until there is some. */
int protect_give_up(struct protect *p, struct page_run run);
/* For who can't stop half way: asks before it begins, and then is never refused; what little that
 * takes more than the bounds is in memory until it has been taken. */
bool protect_has_room(struct protect *p);
void protect_give_up_now(struct protect *p, struct page_run run);
/* Since when somebody has been refused, and nobody told of room; 0: nobody. In now_ms(). */
int64_t protect_refused_ms(struct protect *p);

/* Takes a run and copies its bytes to buf[PROTECT_TAKE_PAGES pages]: one that was copied aside, or
 * the next one in memory. False: there is none. */
bool protect_take_aside(struct protect *p, void *buf, struct page_run *run);
bool protect_take_next(struct protect *p, void *buf, struct page_run *run);

/* True: not all can be taken. There was no memory to keep what was given up at once, or the end
 * came first. */
bool protect_lost(struct protect *p);
/* Protected at the start, and taken since. */
void protect_progress(struct protect *p, uint64_t *done, uint64_t *total);

#endif
