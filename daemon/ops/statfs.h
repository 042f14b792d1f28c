/* statfs.h - what the server said last of the export's size and room. */
#ifndef RMEMFS_DAEMON_OPS_STATFS_H
#define RMEMFS_DAEMON_OPS_STATFS_H

#include <pthread.h>

#include "daemon/request/request.h"

struct fs;

struct statfs_memory {
	pthread_mutex_t lock;
	struct statfs_values last;
};

void statfs_init(struct statfs_memory *m);
void statfs_fini(struct statfs_memory *m);

/* Pages that are granted to this session and that no file has: as good as free. */
uint64_t statfs_unused_pages(struct fs *fs);

#endif
