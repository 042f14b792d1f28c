/* open.h - what OPEN and CREATE share. */
#ifndef RMEMFS_DAEMON_OPS_OPEN_H
#define RMEMFS_DAEMON_OPS_OPEN_H

#include <stdbool.h>

struct request;

/* Opens op->inode for OPEN or CREATE, and answers it. truncate: cuts the file to nothing before. */
void open_inode(struct request *req, bool truncate);
/* Answers OPEN or CREATE with an error. */
void open_refuse(struct request *req, int status);

#endif
