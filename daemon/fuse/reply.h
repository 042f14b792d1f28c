/* reply.h - answers to messages that have no request; requests have reply_*() of request.h. */
#ifndef RMEMFS_DAEMON_FUSE_REPLY_H
#define RMEMFS_DAEMON_FUSE_REPLY_H

#include <stdint.h>

struct io_thread;

/* error: 0, or -errno. In the thread that read the message. */
void fuse_reply_status(struct io_thread *thread, uint64_t unique, int error);

#endif
