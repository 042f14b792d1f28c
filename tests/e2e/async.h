/* async.h - reads or writes one range of a file in pieces that are all in flight at once, by the
 * kernel's native asynchronous I/O or by io_uring.
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
	bool by_thread; /* AIO: a thread begins the pieces, and ends before they do */
	int uring;      /* -1: the kernel does not allow io_uring */
	struct io_uring_params params;
	uint8_t *rings;
	size_t rings_bytes;
	struct io_uring_sqe *entries;
	ssize_t results[ASYNC_PIECES_MAX];
};

/* Prepares for npieces pieces. It succeeds without io_uring if the kernel does not allow that. */
int async_init(struct async *a, unsigned npieces);
void async_fini(struct async *a);
bool async_has(const struct async *a, enum async_kind kind);

/* Cuts the range into pieces of at least piece_min bytes, each a multiple of it except the last.
 * Returns the bytes that were moved up to and including the first short piece. If a piece before
 * that failed, returns its error. */
ssize_t async_run(struct async *a, enum async_kind kind, bool write, int fd, uint8_t *buf,
	size_t len, off_t offset, size_t piece_min);

#endif
