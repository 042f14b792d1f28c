/* allocount.c - a library that a program preloads (LD_PRELOAD). It counts the program's
 * allocations, the bytes that it copies by memcpy(), and its calls of epoll_wait() and recvmsg().
 * The counters are native 64-bit numbers in the file that RMEMFS_ALLOCOUNT names. All children
 * share them. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ALLOCATIONS, COPIED, WAITS, RECEPTIONS, COUNTERS };
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

static void add(int counter, uint64_t n)
{
	if (count)
		atomic_fetch_add_explicit(&count[counter], n, memory_order_relaxed);
}

static void counted(void)
{
	add(ALLOCATIONS, 1);
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
	add(COPIED, len);
	return memmove(to, from, len);
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
	add(WAITS, 1);
	/* arm64 has no epoll_wait(2). */
	return (int)syscall(SYS_epoll_pwait, fd, events, max, timeout_ms, NULL, 0);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	add(RECEPTIONS, 1);
	return syscall(SYS_recvmsg, fd, message, flags);
}
