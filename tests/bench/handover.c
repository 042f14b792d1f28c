/* handover.c - how long it takes until one mount sees what another one has changed: handover WAY
 * FILE FILE TURNS
 *
 * Both names are one file, by two mounts. In each turn one mount changes it and the other looks,
 * and must find the change; then the other way round:
 *
 *     overwrite  overwrites eight bytes; they are read
 *     grow       appends eight bytes; they are read
 *     name       renames the file, from FILE to FILE~ or back; both are looked up
 *
 * Prints a line "WAY TURNS SECONDS P50 P99", of single turns, in microseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static const char *paths[2];
static int fds[2];

static int wrong(const char *what, uint64_t i)
{
	fprintf(stderr, "handover: turn %llu: %s\n", (unsigned long long)i, what);
	return -1;
}

static int hand_over_at(unsigned from, uint64_t i, off_t at)
{
	uint64_t seen = 0;

	if (pwrite(fds[from], &i, sizeof(i), at) != sizeof(i) ||
		pread(fds[!from], &seen, sizeof(seen), at) != sizeof(seen))
		return wrong(strerror(errno), i);
	return seen == i ? 0 : wrong("other bytes", i);
}

static int overwrite(unsigned from, uint64_t i)
{
	return hand_over_at(from, i, 0);
}

static int grow(unsigned from, uint64_t i)
{
	return hand_over_at(from, i, (off_t)(i * sizeof(i)));
}

static const char *name_of(unsigned mount, bool other, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s%s", paths[mount], other ? "~" : "");
	return path;
}

static int rename_it(unsigned from, uint64_t i)
{
	char old[PATH_MAX], new[PATH_MAX];
	bool other = i % 2;

	if (rename(name_of(from, !other, old), name_of(from, other, new)))
		return wrong(strerror(errno), i);
	if (access(name_of(!from, other, new), F_OK))
		return wrong(strerror(errno), i);
	return access(name_of(!from, !other, old), F_OK) ? 0 : wrong("both names are there", i);
}

static const struct way {
	const char *name;
	int (*turn)(unsigned from, uint64_t i);
} ways[] = {{"overwrite", overwrite}, {"grow", grow}, {"name", rename_it}};

static const struct way *find_way(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		if (strcmp(ways[i].name, name) == 0)
			return &ways[i];
	return NULL;
}

/* An even number of turns leaves the name as it was. */
int main(int argc, char **argv)
{
	const struct way *way = argc == 5 ? find_way(argv[1]) : NULL;
	uint64_t turns = way ? strtoull(argv[4], NULL, 10) : 0;
	int64_t *took, began;
	uint64_t median, late;

	if (!turns || turns % 2) {
		fprintf(stderr, "usage: handover overwrite|grow|name FILE FILE TURNS (even)\n");
		return 2;
	}
	took = calloc(turns, sizeof(*took));
	for (unsigned k = 0; k < 2; k++) {
		paths[k] = argv[2 + k];
		fds[k] = open(paths[k], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	}
	if (!took || fds[0] < 0 || fds[1] < 0) {
		perror("handover");
		return 1;
	}
	began = clock_ns(CLOCK_MONOTONIC);
	for (uint64_t i = 0; i < turns; i++) {
		int64_t from = clock_ns(CLOCK_MONOTONIC);

		if (way->turn(i % 2, i + 1))
			return 1;
		took[i] = clock_ns(CLOCK_MONOTONIC) - from;
	}
	printf("%s %llu %.6f", way->name, (unsigned long long)turns,
		(double)(clock_ns(CLOCK_MONOTONIC) - began) / 1e9);
	qsort(took, turns, sizeof(*took), compare);
	median = turns / 2;
	late = turns * 99 / 100;
	printf(" %.1f %.1f\n", (double)took[median] / 1e3, (double)took[late] / 1e3);
	free(took);
	return 0;
}
