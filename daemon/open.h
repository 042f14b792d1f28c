/* open.h - what OPEN and CREATE share. */
#ifndef RMEMFS_DAEMON_OPEN_H
#define RMEMFS_DAEMON_OPEN_H

#include <stdbool.h>

struct request;

/* The file handle given to the kernel tells how its file was opened. */
enum open_kind { OPENED_DIRECT = 1, OPENED_CACHED = 2 };

/* Opens op->inode for the request, cutting it to nothing before, and answers: OPEN or CREATE. */
void open_inode(struct request *req, bool truncate);

#endif
