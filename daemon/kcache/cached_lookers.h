/* cached_lookers.h - threads that were sent back from an OPEN to append, so that the kernel learns the
 * file's end (kernel_pages.h). They are few, and the oldest one is forgotten for another.
 *
 * THREADS    Under the inode's lock.
 */
#ifndef RMEMFS_DAEMON_KCACHE_CACHED_LOOKERS_H
#define RMEMFS_DAEMON_KCACHE_CACHED_LOOKERS_H

#include <stdbool.h>
#include <stdint.h>

struct cached_pages;

/* Whether one is awaited, or is just being sent back. */
bool cached_lookers_any(const struct cached_pages *p);
void cached_lookers_add(struct cached_pages *p, uint32_t pid);
/* Whether it was awaited. */
bool cached_lookers_remove(struct cached_pages *p, uint32_t pid);

#endif
