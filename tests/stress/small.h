/* small.h - shared by all players: a clock, and numbers that are spread. */
#ifndef RMEMFS_TESTS_STRESS_SMALL_H
#define RMEMFS_TESTS_STRESS_SMALL_H

#include <stdint.h>
#include <time.h>

static inline int64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* A bijection whose results look random (SplitMix64's last step). */
static inline uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

#endif
