/* spin.h - whether to look again before sleeping: for as long as a budget says, and only where that
 * has paid lately.
 *
 * Waking a sleeper takes 5 to 50 us, on another CPU than the waker's, and in a virtual machine
 * more. Who looks again instead is there at once, and takes the CPU from others meanwhile. So each
 * wait is judged when it has ended, also one that was slept through: had it ended within the
 * budget, the next one is hoped to as well. A wait for nothing costs more than one for something
 * gains, and weighs as much more.
 *
 *     spin_looks() -> look -> found something: spin_found()
 *                             found nothing: spin_again() ? look again : sleep
 *
 * THREADS    Its owner's alone.
 */
#ifndef RMEMFS_COMMON_BASE_SPIN_H
#define RMEMFS_COMMON_BASE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"

enum { SPIN_HOPE_MAX = 16, SPIN_GAIN = 1, SPIN_LOSS = 2 };

/* All zero: no hope yet, and something was found just now. */
struct spin {
	unsigned hope;
	int64_t idle_since; /* CLOCK_MONOTONIC, ns; 0: not idle */
};

static inline bool spin_hopes(const struct spin *s)
{
	return s->hope > 0;
}

/* What a wait of that length teaches. */
static inline void spin_learn(struct spin *s, int64_t waited_ns, int64_t budget_ns)
{
	if (waited_ns >= budget_ns)
		s->hope = s->hope > SPIN_LOSS ? s->hope - SPIN_LOSS : 0;
	else if (s->hope < SPIN_HOPE_MAX)
		s->hope += SPIN_GAIN;
}

/* The time for spin_found(), from before what is found is dealt with, which is no part of the wait;
 * 0 while nothing is waited for. */
static inline int64_t spin_looks(const struct spin *s)
{
	return s->idle_since ? clock_ns(CLOCK_MONOTONIC) : 0;
}

static inline void spin_found(struct spin *s, int64_t looked, int64_t budget_ns)
{
	if (!s->idle_since)
		return;
	spin_learn(s, looked - s->idle_since, budget_ns);
	s->idle_since = 0;
}

/* budget_ns 0: never. */
static inline bool spin_again(struct spin *s, int64_t budget_ns)
{
	int64_t now;

	if (!budget_ns)
		return false;
	now = clock_ns(CLOCK_MONOTONIC);
	if (!s->idle_since)
		s->idle_since = now;
	return s->hope && now - s->idle_since < budget_ns;
}

#endif
