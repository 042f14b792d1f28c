/* null_files.h - files that keep nothing, for the two null servers: the cost of FUSE when storage
 * costs nothing. There is one directory of names with sizes, which lists none of them. Written
 * bytes are forgotten, and reads always give the same: the byte at offset o is null_pattern()[o %
 * NULL_PATTERN_BYTES].
 *
 * A file lives until it has neither a name nor a node that the kernel knows.
 *
 * THREADS    Any: one lock for names, none for reading and writing.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_BENCH_NULL_FILES_H
#define RMEMFS_BENCH_NULL_FILES_H

#include <stdint.h>

enum {
	NULL_FILES = 256,
	NULL_ROOT = 1, /* its node; a file's node is its index + NULL_ROOT + 1 */
	NULL_PATTERN_BYTES = 1 << 20,
	NULL_READ_MAX = 1 << 20,
};

struct null_attr {
	uint64_t node, size;
	uint32_t mode;
	int64_t mtime; /* ns since the epoch */
};

void null_files_init(void);

/* A lookup and a creation each count the node once more; null_forget() subtracts. */
int null_lookup(const char *name, struct null_attr *attr);
/* Creates the file, or finds it. */
int null_create(const char *name, uint32_t mode, struct null_attr *attr);
void null_forget(uint64_t node, uint64_t nlookup);
int null_unlink(const char *name);

int null_getattr(uint64_t node, struct null_attr *attr);
int null_truncate(uint64_t node, uint64_t size);
void null_write(uint64_t node, uint64_t off, uint64_t len);
/* Returns how many bytes a read of len, at most NULL_READ_MAX, gets, and where they are. */
uint32_t null_read(uint64_t node, uint64_t off, uint32_t len, const uint8_t **data);

#endif
