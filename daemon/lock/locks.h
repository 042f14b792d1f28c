/* locks.h - what a mount has of locks: the waits of all its threads, and the numbers by which the
 * server knows waits and owners.
 *
 * THREADS    locks.lock guards the waits; the number is atomic.
 */
#ifndef RMEMFS_DAEMON_LOCK_LOCKS_H
#define RMEMFS_DAEMON_LOCK_LOCKS_H

#include <pthread.h>
#include <stdint.h>

#include "common/base/list.h"

struct locks {
	pthread_mutex_t lock;
	struct list waits; /* struct lock_wait */
	uint64_t number;   /* atomic: of the last wait, or owner */
};

/* A number that the mount has not used before; not 0. */
static inline uint64_t locks_number(struct locks *locks)
{
	return __atomic_add_fetch(&locks->number, 1, __ATOMIC_RELAXED);
}

#endif
