/* fullness.h - tells the log when an export becomes full, and when it gets better.
 *
 * Memory, metadata and inodes of an export have a level each:
 *
 *     0 ──80 % used──> 80 ──90 %──> 90 ──95 %──> 95
 *       <──below 78 %──   <──below 88 %──   <──below 93 %──
 *
 * A line in the log tells of each change. A level is left only below two percent less, so that
 * small changes up and down give no lines.
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_ADMIN_FULLNESS_H
#define RMEMFS_SERVER_ADMIN_FULLNESS_H

#include <stdint.h>

struct server;

/* The level of `used` parts of total, after the level `before`. total 0: 0. */
unsigned fullness_level(unsigned before, uint64_t used, uint64_t total);

/* Looks at all exports, at most once a second, and only if the store has changed meanwhile. See
 * tick.h for what it returns. */
int64_t fullness_tick(struct server *s, int64_t now);

#endif
