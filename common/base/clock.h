/* clock.h - the two clocks we use. BOOTTIME measures intervals, since a lease goes on while the
 * machine is suspended. REALTIME gives the times that users see.
 *
 * All programs print times as local times of their machine, with the offset from UTC. JSON has
 * seconds since 1970. */
#ifndef RMEMFS_COMMON_BASE_CLOCK_H
#define RMEMFS_COMMON_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline int64_t now_ms(void)
{
	return clock_ns(CLOCK_BOOTTIME) / 1000000;
}

static inline int64_t realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* Writes "2026-11-21 09:08:07.006 +0100" and returns buf. seconds counts from 1970; with ms -1 the
 * text has no milliseconds. */
enum { CLOCK_TEXT_BYTES = 64 };
const char *clock_format(int64_t seconds, int ms, char buf[CLOCK_TEXT_BYTES]);

#endif
