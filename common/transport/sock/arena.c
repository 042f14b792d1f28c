/* arena.c - see arena.h. A ring in which no block wraps: a block that doesn't fit before the end
 * begins at the start, if that is free. */
#include "common/transport/sock/arena.h"

#include <errno.h>

#include "common/base/nodump.h"

enum { ALIGN = 16 };

static size_t aligned(size_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

int sock_arena_init(struct sock_arena *arena, size_t size)
{
	void *memory;

	size = aligned(size);
	memory = nodump_map(size);
	if (!memory)
		return -ENOMEM;
	*arena = (struct sock_arena){.memory = memory, .size = size};
	return 0;
}

void sock_arena_fini(struct sock_arena *arena)
{
	nodump_unmap(arena->memory, arena->size);
	arena->memory = NULL;
}

void *sock_arena_alloc(struct sock_arena *arena, size_t bytes)
{
	size_t at = arena->head;

	bytes = aligned(bytes);
	/* Empty: start over at the front, whose memory is in the cache. */
	if (!arena->used)
		at = arena->tail = 0;
	if (!arena->used || arena->head > arena->tail) {
		if (bytes > arena->size - at) {
			if (bytes > arena->tail)
				return NULL;
			at = 0;
		}
	} else if (bytes > arena->tail - at) {
		return NULL;
	}
	arena->head = at + bytes;
	arena->used++;
	return arena->memory + at;
}

void sock_arena_free(struct sock_arena *arena, const void *oldest, size_t bytes)
{
	arena->tail = (size_t)((const uint8_t *)oldest - arena->memory) + aligned(bytes);
	arena->used--;
}
