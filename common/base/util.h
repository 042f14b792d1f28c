/* util.h - small things every file may use: sizes, cleanup attributes, checked arithmetic. */
#ifndef RMEMFS_COMMON_BASE_UTIL_H
#define RMEMFS_COMMON_BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_SIZE(array)               (sizeof(array) / sizeof((array)[0]))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* The unit of allocation in an export and of an SGE. */
enum { PAGE_SHIFT = 12, PAGE_BYTES = 1 << PAGE_SHIFT };

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t div_round_up(uint64_t n, uint64_t by)
{
	return n / by + (n % by != 0);
}

/* [off, off + len) lies within [0, size), without overflow. */
static inline bool range_within(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}

/* Takes the pointer out of a variable that has a cleanup attribute. */
#define steal_ptr(pp)                              \
	({                                         \
		__typeof__(*(pp)) stolen_ = *(pp); \
		*(pp) = NULL;                      \
		stolen_;                           \
	})

static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

static inline void cleanup_free(void *pp)
{
	free(*(void **)pp);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define autofree  __attribute__((cleanup(cleanup_free)))
#define autoclose __attribute__((cleanup(cleanup_close)))

#endif
