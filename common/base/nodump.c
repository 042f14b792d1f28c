/* nodump.c - see nodump.h. The heap cuts blocks of a few sizes out of chunks, and keeps freed ones in
 * a list for each size. A larger block has a mapping of its own. */
#include "common/base/nodump.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/sanitized.h"

void nodump_exclude(void *addr, size_t bytes)
{
	madvise(addr, bytes, MADV_DONTDUMP);
}

void *nodump_map(size_t bytes)
{
	void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (addr == MAP_FAILED)
		return NULL;
	nodump_exclude(addr, bytes);
	return addr;
}

void nodump_unmap(void *addr, size_t bytes)
{
	if (addr)
		munmap(addr, bytes);
}

void *nodump_zalloc(size_t bytes)
{
	void *p = nodump_alloc(bytes);

	if (p)
		memset(p, 0, bytes);
	return p;
}

/* A sanitizer checks blocks of its own heap. */
#if IS_SANITIZED

void *nodump_alloc(size_t bytes)
{
	return bytes ? malloc(bytes) : NULL;
}

void *nodump_realloc(void *p, size_t bytes)
{
	if (bytes)
		return realloc(p, bytes);
	free(p);
	return NULL;
}

void nodump_free(void *p)
{
	free(p);
}

#else

enum {
	CHUNK_BYTES = 256 << 10,
	CLASS_LEAST = 5, /* 32 bytes, with the header */
	CLASS_MOST = 12, /* more would be rounded up too far, and kept when it is free */
	NCLASSES = CLASS_MOST + 1,
};

/* Before each block. */
struct block {
	size_t bytes; /* with this header; a power of 2, or a mapping's length */
	struct block *next_free;
};
/* Callers get the alignment of malloc(3). */
static_assert(sizeof(struct block) % _Alignof(max_align_t) == 0, "blocks are aligned");

static struct {
	pthread_mutex_t lock;
	uint8_t *chunk; /* the rest of the newest one */
	size_t left;
	struct block *free[NCLASSES];
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* bytes: with the header, at most 2^CLASS_MOST. */
static unsigned class_of(size_t bytes)
{
	unsigned log2 = CLASS_LEAST;

	while ((size_t)1 << log2 < bytes)
		log2++;
	return log2;
}

/* A new chunk begins when the last one is too short, and the rest of that is lost: at most 4 KiB
 * of 256. */
static struct block *cut_locked(size_t bytes)
{
	struct block *b;

	if (heap.left < bytes) {
		uint8_t *chunk = nodump_map(CHUNK_BYTES);

		if (!chunk)
			return NULL;
		heap.chunk = chunk;
		heap.left = CHUNK_BYTES;
	}
	b = (struct block *)heap.chunk;
	b->bytes = bytes;
	heap.chunk += bytes;
	heap.left -= bytes;
	return b;
}

static struct block *take(unsigned log2)
{
	struct block *b;

	pthread_mutex_lock(&heap.lock);
	b = heap.free[log2];
	if (b)
		heap.free[log2] = b->next_free;
	else
		b = cut_locked((size_t)1 << log2);
	pthread_mutex_unlock(&heap.lock);
	return b;
}

void *nodump_alloc(size_t bytes)
{
	size_t all = bytes + sizeof(struct block);
	struct block *b;

	if (!bytes || all < bytes)
		return NULL;
	if (all <= (size_t)1 << CLASS_MOST) {
		b = take(class_of(all));
	} else {
		b = nodump_map(all);
		if (b)
			b->bytes = all;
	}
	return b ? b + 1 : NULL;
}

void nodump_free(void *p)
{
	struct block *b;
	unsigned log2;

	if (!p)
		return;
	b = (struct block *)p - 1;
	if (b->bytes > (size_t)1 << CLASS_MOST) {
		nodump_unmap(b, b->bytes);
		return;
	}
	log2 = class_of(b->bytes);
	pthread_mutex_lock(&heap.lock);
	b->next_free = heap.free[log2];
	heap.free[log2] = b;
	pthread_mutex_unlock(&heap.lock);
}

/* The old block is not overwritten: whoever needs that does it before. */
void *nodump_realloc(void *p, size_t bytes)
{
	size_t room = p ? ((struct block *)p - 1)->bytes - sizeof(struct block) : 0;
	void *other;

	if (!bytes) {
		nodump_free(p);
		return NULL;
	}
	if (p && bytes <= room)
		return p;
	other = nodump_alloc(bytes);
	if (other && p) {
		memcpy(other, p, room);
		nodump_free(p);
	}
	return other;
}

#endif
