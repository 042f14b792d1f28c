/* stream.c - one bare TCP stream over the loopback, as a yardstick for the tcp transport. stream
 * MIB sends that many MiB in writes of 1 MiB from one process to another. The other reads them into
 * memory in pieces of at most 1 MiB. Prints the bytes per second. The count of bytes and the last
 * MiB are checked.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"

enum { CHUNK = 1 << 20, BACK_BYTES = 1 };

static int failed(const char *what)
{
	fprintf(stderr, "stream: %s: %s\n", what, strerror(errno));
	return 1;
}

static void fill(uint8_t *chunk)
{
	for (uint32_t i = 0; i < CHUNK; i++)
		chunk[i] = (uint8_t)(i * 2654435761U >> 24);
}

static int listen_somewhere(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*addr = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)addr, len) < 0 || listen(fd, 1) < 0 ||
		getsockname(fd, (struct sockaddr *)addr, &len) < 0)
		return -1;
	return fd;
}

/* Checks the last chunk in full; the count shows that none of the others was lost. */
static int receive(int listener, uint64_t nchunks, const uint8_t *expected)
{
	autofree uint8_t *chunk = malloc(CHUNK);
	autoclose int fd = accept(listener, NULL, NULL);

	if (!chunk || fd < 0)
		return failed("accept");
	for (uint64_t i = 0; i < nchunks; i++)
		for (size_t have = 0; have < CHUNK;) {
			ssize_t n = read(fd, chunk + have, CHUNK - have);

			if (n <= 0)
				return failed("read");
			have += (size_t)n;
		}
	if (memcmp(chunk, expected, CHUNK) != 0) {
		errno = EILSEQ;
		return failed("what came");
	}
	return write(fd, chunk, BACK_BYTES) == BACK_BYTES ? 0 : failed("write");
}

static int transmit(const struct sockaddr_in *addr, uint64_t nchunks, const uint8_t *chunk)
{
	autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint8_t back[BACK_BYTES];
	int64_t begin;

	if (fd < 0 || connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0)
		return failed("connect");
	begin = clock_ns(CLOCK_MONOTONIC);
	for (uint64_t i = 0; i < nchunks; i++)
		for (size_t have = 0; have < CHUNK;) {
			ssize_t n = write(fd, chunk + have, CHUNK - have);

			if (n <= 0)
				return failed("write");
			have += (size_t)n;
		}
	if (read(fd, back, sizeof(back)) != BACK_BYTES)
		return failed("read");
	printf("%.0f\n",
		(double)nchunks * CHUNK * 1e9 / (double)(clock_ns(CLOCK_MONOTONIC) - begin));
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t nchunks = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
	autofree uint8_t *chunk = malloc(CHUNK);
	struct sockaddr_in addr;
	int listener, status, result;
	pid_t child;

	if (!nchunks || !chunk) {
		fputs("usage: stream MIB\n", stderr);
		return 2;
	}
	fill(chunk);
	listener = listen_somewhere(&addr);
	if (listener < 0)
		return failed("listen");
	child = fork();
	if (child == 0)
		return receive(listener, nchunks, chunk);
	close(listener);
	result = child < 0 ? failed("fork") : transmit(&addr, nchunks, chunk);
	if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
		result = 1;
	return result;
}
