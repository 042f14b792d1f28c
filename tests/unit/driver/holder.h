/* holder.h - another client in a process of its own: over shm a mapping ends only with its process.
 * Failures end the running cmocka test. */
#ifndef RMEMFS_TESTS_RPC_HOLDER_H
#define RMEMFS_TESTS_RPC_HOLDER_H

#include "tests/unit/driver/client.h"

struct holder {
	pid_t pid;
	int go;                     /* closing it lets the holder say BYE and end */
	uint8_t token[TOKEN_BYTES]; /* of its session */
};

/* A holder with ATTACH_SHARED that may write makes this file. It has the file open with an
 * EXCLUSIVE lease, and holds all free pages. */
#define HOLDER_FILE "held"

/* When this returns the holder is attached and has the keys of the regions. */
void holder_start(struct holder *h, const struct test_server *server, const char *owner,
	unsigned instance, uint32_t flags);
void holder_wait(const struct holder *h);
void holder_kill(struct holder *h);

#endif
