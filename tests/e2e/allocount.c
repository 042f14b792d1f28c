/* allocount.c - a library that a program preloads (LD_PRELOAD). It counts the program's allocations
 * and the bytes that it copies by memcpy(). The counters are two native 64-bit numbers in the file
 * that RMEMFS_ALLOCOUNT names. All children share them. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALLOCATIONS, COPIED, COUNTERS };
static _Atomic uint64_t *count;

/* The C library's own entry points. Calling them needs no dlsym(), which would allocate. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

__attribute__((constructor)) static void share_count(void)
{
	const char *path = getenv("RMEMFS_ALLOCOUNT");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	map = mmap(NULL, COUNTERS * sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		count = map;
}

static void counted(void)
{
	if (count)
		atomic_fetch_add_explicit(&count[ALLOCATIONS], 1, memory_order_relaxed);
}

void *malloc(size_t size)
{
	counted();
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	counted();
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	counted();
	return __libc_realloc(old, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	counted();
	*out = __libc_memalign(alignment, size);
	return *out ? 0 : 12;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	counted();
	return __libc_memalign(alignment, size);
}

/* Without restrict: the compiler would make memmove() a memcpy() again. */
void *memcpy(void *to, const void *from, size_t len)
{
	if (count)
		atomic_fetch_add_explicit(&count[COPIED], len, memory_order_relaxed);
	return memmove(to, from, len);
}
