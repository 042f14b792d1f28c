/* open.h - what OPEN and CREATE share. */
#ifndef RMEMFS_DAEMON_OPS_OPEN_H
#define RMEMFS_DAEMON_OPS_OPEN_H

#include <stdbool.h>

struct request;

/* Opens op->inode for the request, cutting it to nothing before, and answers: OPEN or CREATE. */
void open_inode(struct request *req, bool truncate);
/* It can't be opened after all. */
void open_refuse(struct request *req, int status);

#endif
