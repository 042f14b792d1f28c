/* clock.h - the two clocks we use: BOOTTIME for intervals, since a lease goes on while the machine
 * is suspended; REALTIME for what users see.
 *
 * Times that users read are local ones of the machine that writes them, with the offset from UTC,
 * in all programs alike; JSON has seconds since 1970. */
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

/* "2026-11-21 09:08:07.006 +0100", seconds being since 1970; ms -1: without them. Returns buf. */
enum { CLOCK_TEXT_BYTES = 64 };
const char *clock_format(int64_t seconds, int ms, char buf[CLOCK_TEXT_BYTES]);

#endif
