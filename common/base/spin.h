/* spin.h - decides whether a thread polls again before it sleeps. A budget limits the polling, and
 * a thread polls only where that has paid lately.
 *
 * Waking a sleeper takes 5 to 50 us when it runs on another CPU than the waker, and more in a
 * virtual machine. A thread that polls reacts at once, but takes the CPU from others meanwhile. So
 * each wait is judged when it has ended, also one that the thread slept through. If it ended within
 * the budget, the next one is expected to do so, too. A useless wait costs more than a useful one
 * gains, so it counts for more.
 *
 *     spin_looks() -> poll -> found something: spin_found()
 *                             found nothing: spin_again() ? poll again : sleep
 *
 * THREADS    The owner's alone.
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

/* Adjusts the hope to a wait of that length. */
static inline void spin_learn(struct spin *s, int64_t waited_ns, int64_t budget_ns)
{
	if (waited_ns >= budget_ns)
		s->hope = s->hope > SPIN_LOSS ? s->hope - SPIN_LOSS : 0;
	else if (s->hope < SPIN_HOPE_MAX)
		s->hope += SPIN_GAIN;
}

/* Returns the time for spin_found(), or 0 while the owner is not waiting. Take it before you handle
 * what was found: the handling is no part of the wait. */
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

/* Whether to poll again; never with budget_ns 0. */
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
