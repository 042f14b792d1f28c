/* holder.h - another client in a process of its own: over shm only its end is the end of what it
 * has mapped. Failures end the running cmocka test. */
#ifndef RMEMFS_TESTS_RPC_HOLDER_H
#define RMEMFS_TESTS_RPC_HOLDER_H

#include "tests/unit/driver/client.h"

struct holder {
	pid_t pid;
	int go; /* closing it lets the holder say BYE and end */
};

/* The file that one with ATTACH_SHARED, who may write, makes: it has it open, leased to change it,
 * and all free pages. */
#define HOLDER_FILE "held"

/* Attached when this returns, with keys to the regions. */
void holder_start(struct holder *h, const struct test_server *server, const char *owner,
	unsigned instance, uint32_t flags);
void holder_wait(const struct holder *h);
void holder_kill(struct holder *h);

#endif
