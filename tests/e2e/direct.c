/* direct.c - asynchronous direct reads, writes and appends: see operation.h. KIND is aio,
 * thread (aio by a thread that ends before its requests do) or uring. If the kernel does not allow
 * uring, the operation ends with EOPNOTSUPP.
 *
 *     direct read KIND FILE OFFSET LENGTH             reads by as many requests at once as can be,
 *                                                     and prints the number of bytes it got
 *     direct write KIND FILE OFFSET LENGTH            writes by as many; each word is its offset
 *     direct write-whole KIND FILE OFFSET LENGTH      the same in one request
 *     direct later-read GO KIND FILE OFFSET LENGTH    opens the file, then the pipe GO, and begins
 *     direct later-write ..., later-write-whole ...   when nobody has that open for writing
 *     direct later-read-many ..., later-write-many .. the same in 1024 pieces at once
 *     direct written FILE LENGTH                      whether the file begins with such words
 *     direct append KIND FILE LENGTH TIMES WHO        each time in one request, of numbered words
 *     direct appended FILE LENGTH TIMES COUNT PIECE   whether the file has all appends of the first
 *                                                     COUNT writers, in order, in whole pieces
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "async.h"
#include "common/base/util.h"
#include "operation.h"

enum { ALIGNMENT = 4096, WHOS_MAX = 8 };

static size_t number(const char *arg)
{
	return strtoull(arg, NULL, 0);
}

static enum async_kind kind_of(const char *arg)
{
	return strcmp(arg, "uring") == 0 ? ASYNC_URING : ASYNC_AIO;
}

/* ---- a range --------------------------------------------------------------------------------- */

static void fill_offsets(uint64_t *words, size_t len, size_t offset)
{
	for (size_t i = 0; i < len / sizeof(*words); i++)
		words[i] = offset + i * sizeof(*words);
}

/* The pipe to wait for; NULL: none. */
static const char *go;
static unsigned npieces = ASYNC_PIECES;

static int wait_to_go(void)
{
	autoclose int fd = go ? open(go, O_RDONLY | O_CLOEXEC) : -1;
	char byte;

	if (!go)
		return 0;
	return fd < 0 || read(fd, &byte, 1) < 0 ? -errno : 0;
}

/* Opens the file, runs all requests at once, and returns the result. */
static ssize_t run_at(
	char **args, int flags, size_t piece_min, uint8_t *buf, size_t len, size_t offset)
{
	autoclose int fd = open(args[1], flags | O_DIRECT | O_CLOEXEC);
	struct async async;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = wait_to_go();
	if (!n)
		n = async_init(&async, npieces);
	if (n)
		return n;
	async.by_thread = strcmp(args[0], "thread") == 0;
	n = async_has(&async, kind_of(args[0]))
		    ? async_run(&async, kind_of(args[0]), flags != O_RDONLY, fd, buf, len,
			      (off_t)offset, piece_min)
		    : -EOPNOTSUPP;
	async_fini(&async);
	return n;
}

static int read_range(char **args)
{
	size_t offset = number(args[2]), len = number(args[3]);
	autofree uint8_t *buf = aligned_alloc(ALIGNMENT, len);
	ssize_t n = buf ? run_at(args, O_RDONLY, ALIGNMENT, buf, len, offset) : -ENOMEM;

	if (n >= 0)
		printf("%zd\n", n);
	return n < 0 ? (int)n : 0;
}

static int write_pieces(char **args, size_t piece_min)
{
	size_t offset = number(args[2]), len = number(args[3]);
	autofree uint64_t *buf = aligned_alloc(ALIGNMENT, len);
	ssize_t n;

	if (!buf)
		return -ENOMEM;
	fill_offsets(buf, len, offset);
	n = run_at(args, O_RDWR, piece_min, (uint8_t *)buf, len, offset);
	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EIO;
}

static int write_range(char **args)
{
	return write_pieces(args, ALIGNMENT);
}

static int write_whole(char **args)
{
	return write_pieces(args, number(args[3]));
}

static int read_later(char **args)
{
	go = args[0];
	return read_range(args + 1);
}

static int write_later(char **args)
{
	go = args[0];
	return write_range(args + 1);
}

static int read_many_later(char **args)
{
	npieces = ASYNC_PIECES_MAX;
	return read_later(args);
}

static int write_many_later(char **args)
{
	npieces = ASYNC_PIECES_MAX;
	return write_later(args);
}

static int check_written(char **args)
{
	size_t len = number(args[1]), at = 0;
	FILE *file = fopen(args[0], "re");
	uint64_t word;

	if (!file)
		return -errno;
	while (at < len && fread(&word, sizeof(word), 1, file) == 1 && word == at)
		at += sizeof(word);
	fclose(file);
	if (at < len)
		fprintf(stderr, "wrong at %zu\n", at);
	return at < len ? -EILSEQ : 0;
}

static int write_whole_later(char **args)
{
	go = args[0];
	return write_whole(args + 1);
}

/* ---- appends --------------------------------------------------------------------------------- */

static uint64_t word_of(size_t who, size_t time, size_t at)
{
	return (uint64_t)who << 56 | (uint64_t)time << 32 | at;
}

static int append(char **args)
{
	size_t len = number(args[2]), times = number(args[3]), who = number(args[4]);
	autofree uint64_t *buf = aligned_alloc(ALIGNMENT, len);

	if (!buf)
		return -ENOMEM;
	for (size_t t = 0; t < times; t++) {
		ssize_t n;

		for (size_t i = 0; i < len / sizeof(*buf); i++)
			buf[i] = word_of(who, t, i);
		n = run_at(args, O_WRONLY | O_APPEND, len, (uint8_t *)buf, len, 0);
		if (n < 0)
			return (int)n;
		if ((size_t)n != len)
			return -EIO;
	}
	return 0;
}

struct progress {
	size_t time, at;
};

/* Checks that the word is the next one of its writer. Another writer may follow only at the end of
 * a piece. */
static int take_word(struct progress *progress, size_t nwhos, size_t words, size_t piece,
	uint64_t word, size_t *who)
{
	size_t is = word >> 56;
	struct progress *p = &progress[is];

	if (is >= nwhos || word != word_of(is, p->time, p->at)) {
		fprintf(stderr, "%016llx, and not time %zu, word %zu\n", (unsigned long long)word,
			is < nwhos ? p->time : 0, is < nwhos ? p->at : 0);
		return -EILSEQ;
	}
	if (is != *who && *who < nwhos && progress[*who].at % piece) {
		fprintf(stderr, "%zu within a piece of %zu\n", is, *who);
		return -EILSEQ;
	}
	*who = is;
	if (++p->at == words)
		*p = (struct progress){.time = p->time + 1};
	return 0;
}

static int check_appended(char **args)
{
	size_t words = number(args[1]) / sizeof(uint64_t), times = number(args[2]);
	size_t nwhos = number(args[3]), piece = number(args[4]) / sizeof(uint64_t), who = SIZE_MAX;
	struct progress progress[WHOS_MAX] = {0};
	FILE *file = fopen(args[0], "re");
	uint64_t word;
	int err = 0;

	if (!file || nwhos > WHOS_MAX)
		return file ? -EINVAL : -errno;
	while (!err && fread(&word, sizeof(word), 1, file) == 1)
		err = take_word(progress, nwhos, words, piece, word, &who);
	fclose(file);
	for (size_t i = 0; !err && i < nwhos; i++)
		if (progress[i].time != times || progress[i].at)
			err = -ENODATA;
	return err;
}

int main(int argc, char **argv)
{
	static const struct operation operations[] = {
		{"read", 4, read_range},
		{"write", 4, write_range},
		{"later-read", 5, read_later},
		{"later-write", 5, write_later},
		{"write-whole", 4, write_whole},
		{"later-write-whole", 5, write_whole_later},
		{"later-read-many", 5, read_many_later},
		{"later-write-many", 5, write_many_later},
		{"written", 2, check_written},
		{"append", 5, append},
		{"appended", 5, check_appended},
	};

	return operation_main("direct", operations, ARRAY_SIZE(operations), argc, argv);
}
