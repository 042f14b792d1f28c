/* fence_off.h - a test's switch, to see what fences keep out: with RMEMFS_FENCE=off in its environment
 * a server takes channels for fenced that it has not fenced: their peers go on reaching memory
 * until the queue is deleted.
 *
 * In a build without RMEMFS_CRASH_POINTS (see crash_point.h) there is no such switch.
 *
 * THREADS  Each call as the function of transport.h that it is part of.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_FENCE_OFF_H
#define RMEMFS_COMMON_TRANSPORT_FENCE_OFF_H

#include "common/transport/transport_ops.h"

#ifdef RMEMFS_CRASH_POINTS
/* channel_fence(): true: EV_FENCED is to come, and nothing else happens. */
bool fence_off_takes(struct channel *ch);
/* evq_poll(): up to max of these events. */
int fence_off_poll(const struct evq *q, struct event *events, int max);
/* channel_delete(): true: it is left as it is. */
bool fence_off_keeps(const struct channel *ch);
/* evq_delete(), before: deletes them. */
void fence_off_end(const struct evq *q);
#else
static inline bool fence_off_takes(struct channel *ch)
{
	return false;
}

static inline int fence_off_poll(const struct evq *q, struct event *events, int max)
{
	return 0;
}

static inline bool fence_off_keeps(const struct channel *ch)
{
	return false;
}

static inline void fence_off_end(const struct evq *q)
{
}
#endif

#endif
