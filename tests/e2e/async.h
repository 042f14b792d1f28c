/* async.h - one range of a file, read or written in pieces that are all on their way at once: by
 * the kernel's native asynchronous I/O, or by io_uring.
 *
 * OWNERSHIP  async_fini() frees what async_init() made.
 * THREADS    One at a time.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_TESTS_ASYNC_H
#define RMEMFS_TESTS_ASYNC_H

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ASYNC_PIECES = 8, ASYNC_PIECES_MAX = 1024 };

enum async_kind { ASYNC_AIO, ASYNC_URING, ASYNC_KINDS };

struct async {
	unsigned npieces;
	aio_context_t aio;
	int uring; /* -1: the kernel lets nobody use it */
	struct io_uring_params params;
	uint8_t *rings;
	size_t rings_bytes;
	struct io_uring_sqe *entries;
	ssize_t results[ASYNC_PIECES_MAX];
};

/* For so many pieces. io_uring that is switched off is no failure. */
int async_init(struct async *a, unsigned npieces);
void async_fini(struct async *a);
bool async_has(const struct async *a, enum async_kind kind);

/* Pieces of at least piece_min bytes, a multiple of it but for the last. What has been moved in
 * front of the first piece that moved less than it should; or what the first piece that failed
 * failed with. */
ssize_t async_run(struct async *a, enum async_kind kind, bool write, int fd, uint8_t *buf,
	size_t len, off_t offset, size_t piece_min);

#endif
