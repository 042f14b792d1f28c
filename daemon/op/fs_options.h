/* fs_options.h - the options of a mount. */
#ifndef RMEMFS_DAEMON_OP_FS_OPTIONS_H
#define RMEMFS_DAEMON_OP_FS_OPTIONS_H

#include <stdbool.h>

#include "daemon/remote/session_options.h"

/* The files that use the kernel's page cache: cache_policy.h. */
enum cache_mode { CACHE_NONE, CACHE_SHARED, CACHE_EXCLUSIVE, CACHE_READERS };

/* When write(2) returns: the data is remote, or on its way there in a registered buffer. */
enum ack_mode { ACK_REMOTE, ACK_LOCAL };

/* When reading changes the access time: access_time.h. */
enum access_mode { ACCESS_RELATIVE, ACCESS_STRICT, ACCESS_NEVER };

/* When the server learns of a new file: at its CREATE, or at its close (unmade.h). */
enum names_mode { NAMES_REMOTE, NAMES_LOCAL };

struct fs_options {
	struct session_options session;
	enum cache_mode cache;
	enum ack_mode ack;
	enum access_mode access;
	enum names_mode names;
	bool nodiratime;
	bool debug_io;        /* a log line for each request */
	unsigned buffers;     /* data buffers of each I/O thread */
	unsigned merge_pages; /* pages that may share an SGE; 1: page-sized SGEs */
	/* A signal ends the wait of a caller that can't be seen after this time:
	 * caller_ends_wait(). */
	unsigned interrupt_wait_ms;
};

#endif
