/* landing.h - large WRITEs that make a file grow are received in the pages where they are going to
 * stay.
 *
 * A message's payload comes with its header, so its place is known only after the copy. But pages
 * of the session's grants belong to no file yet. Where the regions are mapped in this process
 * (shm), and a large WRITE into a hole is expected, the thread reads the payload straight into such
 * pages. The inode then takes them for its own, and no byte is copied again. If the request uses
 * the payload otherwise, or has to wait, the payload moves to the message's buffer.
 *
 *     landing_open -> read -> landing_arrived -> the request begins: landing_take, or
 *     landing_fetch -> landing_done, before the next message
 *
 * The pool lends the pages only between open and close, while the thread waits for nothing. They
 * are zero again when they go back.
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

/* For 64 KiB, one copy into memory that is in no cache takes the caller longer than an early answer
 * (ack=local) and two copies by us. For 256 KiB it does not. */
enum { LANDING_BYTES_MIN = 256 << 10 };

struct landing {
	/* the pages that the pool has lent; while it lends none, where they ended */
	struct window pages;
	uint8_t *at;   /* where the pages are mapped; NULL: not open */
	uint8_t *home; /* where a payload goes that does not stay */
	uint32_t len;  /* of the payload in the pages; 0: none, or it was taken or fetched */
	unsigned hope; /* of more WRITEs of this kind */
};

/* Returns IO_BYTES_MAX zero bytes for the next message's payload. NULL: it goes elsewhere. */
void *landing_open(struct io_thread *thread);

/* The message was read. len: bytes of the payload, which belongs to `home`, or -errno. stays: it
 * may be taken; otherwise it is copied to its home at once. */
void landing_arrived(struct io_thread *thread, void *home, int64_t len, bool stays);

/* Whether req's payload lies in the pages. */
bool landing_holds(const struct request *req);
/* The pages that it fills, the last of them with zeros at its end. */
void landing_peek(const struct request *req, struct extent *run);
/* The payload stays there: these pages are the caller's. */
void landing_take(struct request *req);
/* A large WRITE could have stayed where it landed, or could not. */
void landing_expect(struct io_thread *thread, bool could);

/* Copies the payload to its home. */
void landing_fetch(struct io_thread *thread);

/* The message with that number was dealt with. If its request waits, the payload is copied to its
 * home. If the payload still lies there otherwise, nobody wants it. */
void landing_done(struct io_thread *thread, uint64_t unique);

#endif
