/* landing.h - large WRITEs that make a file grow are received where they are going to stay.
 *
 * A message's payload comes with its header: where it belongs is known when it has been copied. But
 * pages of the session's grants belong to nobody yet. Where the regions are mapped in this process
 * (shm), and a large WRITE into a hole is expected, the payload is read straight into such pages,
 * and the inode takes them for its own: no byte is copied again. Who has other plans for the
 * payload, or has to wait, gets it in the message's buffer as ever.
 *
 *     landing_open -> read -> landing_arrived -> the request begins: landing_take, or
 *     landing_fetch -> landing_done, before the next message
 *
 * The pool lends the pages for the time between open and close only, while the thread waits for
 * nothing, and they are zero again when they go back.
 *
 * THREADS    The I/O thread's own.
 */
#ifndef RMEMFS_DAEMON_PAGES_LANDING_H
#define RMEMFS_DAEMON_PAGES_LANDING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/pages/grants.h"

struct io_thread;
struct request;

/* Of 64 KiB the one copy into memory that is in no cache takes the caller longer than an early
 * answer (ack=local) and two copies take us; of 256 KiB it does not. */
enum { LANDING_BYTES_MIN = 256 << 10 };

struct landing {
	struct window pages; /* what the pool has lent; where it ended, while it has not */
	uint8_t *at;         /* where they are mapped; NULL: it is not open */
	uint8_t *home;       /* where the payload goes that does not stay */
	uint32_t len;  /* of the payload that lies there; 0: none, or it was taken or fetched */
	unsigned hope; /* of more WRITEs of this kind */
};

/* IO_BYTES_MAX zero bytes for the next message's payload. NULL: it goes elsewhere. */
void *landing_open(struct io_thread *thread);

/* What came of reading it: so many bytes lie there, and belong to `home`; or -errno. `stays`: they
 * may be taken; else they are copied to their home at once. */
void landing_arrived(struct io_thread *thread, void *home, int64_t len, bool stays);

/* Whether that of req lies there. */
bool landing_holds(const struct request *req);
/* In which pages, the last of them filled up with zeros. */
void landing_peek(const struct request *req, struct extent *run);
/* It stays there: these pages are the caller's. */
void landing_take(struct request *req);
/* A large WRITE could have stayed where it landed, or could not. */
void landing_expect(struct io_thread *thread, bool could);

/* Copies what lies there to its home. */
void landing_fetch(struct io_thread *thread);

/* The message of that number has been dealt with. The payload of its request, if that waits, is
 * copied to its home; what still lies there nobody wants. */
void landing_done(struct io_thread *thread, uint64_t unique);

#endif
