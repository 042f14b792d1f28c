/* pages.c - counts the bytes of a file that hold what a benchmark says it has written: pages FILE
 * PATTERN
 *
 * PATTERN is 8 hexadecimal digits, four bytes. A written page repeats them, as fio's
 * --buffer_pattern=0x... makes it. The file is read past the page cache where that is possible.
 * Prints the bytes in pages of 4096 that hold the pattern and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/util.h"

enum { CHUNK = 1 << 20 };

static int open_direct(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);

	return fd < 0 && errno == EINVAL ? open(path, O_RDONLY | O_CLOEXEC) : fd;
}

static int64_t count(int fd, uint8_t *chunk, const uint8_t *expected)
{
	int64_t found = 0;
	off_t off = 0;
	ssize_t n;

	while ((n = pread(fd, chunk, CHUNK, off)) > 0) {
		for (ssize_t at = 0; at + PAGE_BYTES <= n; at += PAGE_BYTES)
			if (memcmp(chunk + at, expected, PAGE_BYTES) == 0)
				found += PAGE_BYTES;
		off += n;
	}
	return n < 0 ? -1 : found;
}

int main(int argc, char **argv)
{
	autofree uint8_t *chunk = aligned_alloc(PAGE_BYTES, CHUNK);
	autoclose int fd = argc == 3 ? open_direct(argv[1]) : -1;
	uint8_t expected[PAGE_BYTES];
	unsigned long pattern;
	int64_t found;

	if (argc != 3 || strlen(argv[2]) != 8) {
		fputs("usage: pages FILE PATTERN\n", stderr);
		return 2;
	}
	pattern = strtoul(argv[2], NULL, 16);
	for (size_t i = 0; i < PAGE_BYTES; i++)
		expected[i] = (uint8_t)(pattern >> (24 - 8 * (i % 4)));
	found = fd < 0 || !chunk ? -1 : count(fd, chunk, expected);
	if (found < 0) {
		perror(argv[1]);
		return 1;
	}
	printf("%lld\n", (long long)found);
	return 0;
}
