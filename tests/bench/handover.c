/* handover.c - what it costs that a file changes hands: handover FILE FILE TURNS
 *
 * Both are one file, by two mounts. In each turn one mount writes eight bytes and the other reads
 * them, which must be those that were written; then the other way round. Prints a line "handover
 * TURNS SECONDS P50 P99", of single turns, in microseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/util.h"

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int turn(int from, int to, uint64_t i)
{
	uint64_t seen = 0;

	if (pwrite(from, &i, sizeof(i), 0) != sizeof(i) ||
		pread(to, &seen, sizeof(seen), 0) != sizeof(seen)) {
		perror("handover");
		return -1;
	}
	if (seen == i)
		return 0;
	fprintf(stderr, "handover: turn %llu: read %llu\n", (unsigned long long)i,
		(unsigned long long)seen);
	return -1;
}

int main(int argc, char **argv)
{
	uint64_t turns = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
	int64_t *took, began;
	uint64_t median, late;
	int fds[2];

	if (!turns) {
		fprintf(stderr, "usage: handover FILE FILE TURNS\n");
		return 2;
	}
	took = calloc(turns, sizeof(*took));
	for (unsigned k = 0; k < 2; k++)
		fds[k] = open(argv[1 + k], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (!took || fds[0] < 0 || fds[1] < 0) {
		perror("handover");
		return 1;
	}
	began = clock_ns(CLOCK_MONOTONIC);
	for (uint64_t i = 0; i < turns; i++) {
		int64_t from = clock_ns(CLOCK_MONOTONIC);

		if (turn(fds[i % 2], fds[1 - i % 2], i + 1))
			return 1;
		took[i] = clock_ns(CLOCK_MONOTONIC) - from;
	}
	printf("handover %llu %.6f", (unsigned long long)turns,
		(double)(clock_ns(CLOCK_MONOTONIC) - began) / 1e9);
	qsort(took, turns, sizeof(*took), compare);
	median = turns / 2;
	late = turns * 99 / 100;
	printf(" %.1f %.1f\n", (double)took[median] / 1e3, (double)took[late] / 1e3);
	free(took);
	return 0;
}
