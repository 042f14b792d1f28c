/* contract_alloc.c - counts allocations, to show that the data path makes none. */
#include "tests/unit/common/transport/contract.h"

#include <stdatomic.h>

#include "common/base/sanitized.h"

#if IS_SANITIZED

long nallocs(void)
{
	return -1;
}

#else

static atomic_long count;

extern void *__libc_malloc(size_t len);
extern void *__libc_calloc(size_t n, size_t len);
extern void *__libc_realloc(void *old, size_t len);

void *malloc(size_t len)
{
	count++;
	return __libc_malloc(len);
}

void *calloc(size_t n, size_t len)
{
	count++;
	return __libc_calloc(n, len);
}

void *realloc(void *old, size_t len)
{
	count++;
	return __libc_realloc(old, len);
}

long nallocs(void)
{
	return count;
}

#endif
