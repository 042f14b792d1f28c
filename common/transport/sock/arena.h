/* arena.h - memory for blocks of varying size that are freed in the order they were made.
 *
 * THREADS    None of its own.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_SOCK_ARENA_H
#define RMEMFS_COMMON_TRANSPORT_SOCK_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct sock_arena {
	uint8_t *memory;
	size_t size;
	size_t head; /* the next block begins here */
	size_t tail; /* the oldest block begins here */
	size_t used; /* blocks */
};

/* -ENOMEM. Memory that is never used is never touched. */
int sock_arena_init(struct sock_arena *arena, size_t size);
void sock_arena_fini(struct sock_arena *arena);

/* NULL: no room now. An empty arena has room for its size. Aligned to 16 bytes. */
void *sock_arena_alloc(struct sock_arena *arena, size_t bytes);
/* Frees the oldest block, which had so many bytes. */
void sock_arena_free(struct sock_arena *arena, const void *oldest, size_t bytes);

#endif
