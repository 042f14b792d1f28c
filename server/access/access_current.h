/* access_current.h - the table in force, which a reload replaces while several threads read it.
 *
 * OWNERSHIP  References, as access_table.h counts them.
 * THREADS    Any. The lock is held for a pointer's time, and no table is freed under it.
 */
#ifndef RMEMFS_SERVER_ACCESS_ACCESS_CURRENT_H
#define RMEMFS_SERVER_ACCESS_ACCESS_CURRENT_H

#include <pthread.h>

#include "server/access/access_table.h"

struct access_current {
	pthread_mutex_t lock;
	struct access_table *table;
};

/* Takes over the reference. */
void access_current_init(struct access_current *current, struct access_table *table);
void access_current_fini(struct access_current *current);
/* A reference to the table, which the caller gives back. */
struct access_table *access_current_get(struct access_current *current);
/* Takes over the reference, and gives back that to the table before. */
void access_current_set(struct access_current *current, struct access_table *table);

#endif
