/* fence_off.h - a test's switch, to see what fences keep out. A server with RMEMFS_FENCE=off in its
 * environment treats channels as fenced that it has not fenced. Their peers go on reaching memory
 * until the event queue is deleted.
 *
 * A build without RMEMFS_CRASH_POINTS (see crash_point.h) has no such switch.
 *
 * THREADS  Each call as the function of transport.h that it is part of.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_FENCE_OFF_H
#define RMEMFS_COMMON_TRANSPORT_FENCE_OFF_H

#include "common/transport/transport_ops.h"

#ifdef RMEMFS_CRASH_POINTS
/* For channel_fence(). True: EV_FENCED will come, and nothing else happens. */
bool fence_off_takes(struct channel *ch);
/* For evq_poll(): gives up to max of these events. */
int fence_off_poll(const struct evq *q, struct event *events, int max);
/* For channel_delete(). True: the channel stays as it is. */
bool fence_off_keeps(const struct channel *ch);
/* For evq_delete(), at its beginning: deletes these channels. */
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
