/* change_time.h - the time of a change, which never goes back.
 *
 * A client takes the server's clock from its replies, so the client's idea of it is wrong by up to
 * half of a round trip. Changes of one file get their times from several such clocks. A program
 * that saw a later time would take the file for unchanged since then, or for older than it is.
 *
 * THREADS    Pure functions.
 */
#ifndef RMEMFS_COMMON_RPC_CHANGE_TIME_H
#define RMEMFS_COMMON_RPC_CHANGE_TIME_H

#include <stdint.h>

enum { CLOCKS_APART_NS = 1000000000 };

/* told: the change's own time. before: the inode's time until now. now: by the clock here. All ns.
 * A time before that lies further in the future was set by utimensat(2): then the change's own
 * counts. */
static inline int64_t change_time_told(int64_t told, int64_t before, int64_t now)
{
	return told < before && before <= now + CLOCKS_APART_NS ? before : told;
}

static inline int64_t change_time(int64_t before, int64_t now)
{
	return change_time_told(now, before, now);
}

#endif
