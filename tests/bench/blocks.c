/* blocks.c - random blocks of one file: blocks FILE read|write BYTES DEPTH OPERATIONS
 *
 * DEPTH threads share that many operations of BYTES each, direct (O_DIRECT), at random places of
 * the file. Prints the seconds that they took.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"

enum { DEPTH_MAX = 256, ALIGNMENT = 4096 };

static int fd;
static bool writes;
static size_t bytes;
static unsigned long nblocks, share;

static void *run(void *seed)
{
	unsigned random = (unsigned)(size_t)seed;
	void *block = aligned_alloc(ALIGNMENT, bytes);

	if (!block)
		err(1, "memory");
	memset(block, (int)random, bytes);
	for (unsigned long i = 0; i < share; i++) {
		off_t at = (off_t)((unsigned long)rand_r(&random) % nblocks * bytes);
		ssize_t n = writes ? pwrite(fd, block, bytes, at) : pread(fd, block, bytes, at);

		if (n != (ssize_t)bytes)
			err(1, "%zd bytes at %lld", n, (long long)at);
	}
	free(block);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[DEPTH_MAX];
	unsigned long depth;
	int64_t begun;
	off_t size;

	if (argc != 6)
		errx(2, "usage: blocks FILE read|write BYTES DEPTH OPERATIONS");
	writes = strcmp(argv[2], "write") == 0;
	bytes = strtoul(argv[3], NULL, 10);
	depth = strtoul(argv[4], NULL, 10);
	fd = open(argv[1], O_RDWR | O_DIRECT | O_CLOEXEC);
	size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (size < 0)
		err(1, "%s", argv[1]);
	if (!bytes || bytes % ALIGNMENT || (size_t)size < bytes || !depth || depth > DEPTH_MAX)
		errx(2, "BYTES is a multiple of %d within the file, DEPTH 1 to %d", ALIGNMENT,
			DEPTH_MAX);
	nblocks = (size_t)size / bytes;
	share = strtoul(argv[5], NULL, 10) / depth;
	begun = clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < depth; i++)
		if ((errno = pthread_create(&threads[i], NULL, run, (void *)(i + 1))) != 0)
			err(1, "a thread");
	for (size_t i = 0; i < depth; i++)
		pthread_join(threads[i], NULL);
	printf("%.6f\n", (double)(clock_ns(CLOCK_MONOTONIC) - begun) / 1e9);
	return 0;
}
