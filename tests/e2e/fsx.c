/* fsx.c - random file operations by several processes, each checked against a model in memory:
 * fsx [-w] [-s SEED] [-t SECONDS] [-p PROCESSES] DIRECTORY
 *
 * Each process has files of its own, and writes and reads them in every way: through the cache,
 * past it, mapped, asynchronously in pieces, appending, and while they have no name. All share two
 * more files. In one each process owns every n-th cell. The cells have an odd length, so that
 * neighbours share pages. To the other all append. The seed is printed. The same seed gives each
 * process the same operations.
 *
 * Exit status 0; or 1, with the operations before the first difference on standard error. The files
 * stay in the directory for a later look.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "async.h"
#include "common/base/util.h"

enum {
	FILES = 4,
	SIZE_MAX_BYTES = 1 << 20,
	IO_MAX_BYTES = 160 << 10,
	GROW_MAX_BYTES = 320 << 10,
	SECTOR = 512,
	CELL_BYTES = 1500,
	CELLS = 400, /* of each process */
	HISTORY = 60,
};

/* How a file is opened. That determines how its bytes travel. */
enum way { CACHED, WRITE_ONLY, DIRECT, WAYS };
static const int way_flags[WAYS] = {O_RDWR, O_WRONLY, O_RDWR | O_DIRECT};

struct file {
	char name[32];
	int fd[WAYS]; /* -1: not open */
	bool named;
	size_t size;
	uint8_t *bytes; /* the model; zero beyond the size */
};

/* One process of the test. */
struct player {
	unsigned index, nplayers;
	uint64_t random;
	bool writes_back;
	struct file files[FILES];
	uint8_t *buf; /* aligned for direct I/O */
	struct async async;
	uint8_t cells[CELLS];
	int shared[WAYS], log;
	uint32_t nlogged;
	char history[HISTORY][96];
	unsigned nhistory;
};

struct record {
	uint32_t player, number;
	uint32_t check[14];
};

/* ---- failing --------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3))) note(struct player *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->history[p->nhistory++ % HISTORY], sizeof(p->history[0]), format, args);
	va_end(args);
}

static _Noreturn void __attribute__((format(printf, 2, 3)))
fail(struct player *p, const char *format, ...)
{
	unsigned first = p->nhistory > HISTORY ? p->nhistory - HISTORY : 0;
	va_list args;

	for (unsigned i = first; i < p->nhistory; i++)
		fprintf(stderr, "fsx %u: %u: %s\n", p->index, i, p->history[i % HISTORY]);
	fprintf(stderr, "fsx %u: ", p->index);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

/* Fails the test if the call has failed. */
static void need(struct player *p, bool ok, const char *call)
{
	if (!ok)
		fail(p, "%s: %s", call, strerror(errno));
}

static void compare(struct player *p, const char *what, const uint8_t *got, const uint8_t *want,
	size_t offset, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (got[i] != want[i])
			fail(p, "%s: byte %zu is %#x instead of %#x", what, offset + i, got[i],
				want[i]);
}

/* ---- chance ---------------------------------------------------------------------------------- */

/* xorshift64* */
static uint32_t chance(struct player *p)
{
	p->random ^= p->random >> 12;
	p->random ^= p->random << 25;
	p->random ^= p->random >> 27;
	return (uint32_t)((p->random * UINT64_C(0x2545f4914f6cdd1d)) >> 32);
}

static size_t below(struct player *p, size_t n)
{
	return chance(p) % n;
}

static void fill(struct player *p, uint8_t *buf, size_t len)
{
	uint32_t word = chance(p) | 1;

	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)((word = word * 1664525 + 1013904223) >> 24);
}

/* Draws a range within [0, end), often small or at the edges of pages. */
static void range(struct player *p, size_t end, size_t *offset, size_t *len)
{
	size_t max = below(p, 4) ? 9000 : IO_MAX_BYTES;

	*offset = below(p, end);
	if (!below(p, 4))
		*offset &= ~(size_t)4095;
	*len = 1 + below(p, max);
	if (*offset + *len > end)
		*len = end - *offset;
}

/* Aligns a range for direct I/O. */
static void align(size_t *offset, size_t *len)
{
	*offset &= ~(size_t)(SECTOR - 1);
	*len = (*len + SECTOR - 1) & ~(size_t)(SECTOR - 1);
}

/* ---- a process's own files ------------------------------------------------------------------- */

static void file_close(struct player *p, struct file *f)
{
	for (unsigned way = 0; way < WAYS; way++) {
		if (f->fd[way] >= 0)
			need(p, close(f->fd[way]) == 0, "close");
		f->fd[way] = -1;
	}
}

static int file_open(struct player *p, struct file *f, enum way way)
{
	if (f->fd[way] < 0) {
		note(p, "open %s %u", f->name, way);
		f->fd[way] = open(f->name, way_flags[way] | O_CLOEXEC);
		need(p, f->fd[way] >= 0, "open");
	}
	return f->fd[way];
}

/* A file without a name is usable only by the handles that are open. */
static bool usable(const struct file *f, enum way way)
{
	return f->named || f->fd[way] >= 0;
}

/* Draws a range of a file for one way. Returns false if the file can't be used that way. */
static bool range_for(
	struct player *p, const struct file *f, enum way way, size_t *offset, size_t *len)
{
	range(p, SIZE_MAX_BYTES, offset, len);
	if (way == DIRECT)
		align(offset, len);
	return usable(f, way);
}

static void file_create(struct player *p, struct file *f)
{
	note(p, "create %s", f->name);
	f->fd[CACHED] = open(f->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	need(p, f->fd[CACHED] >= 0, "create");
	f->named = true;
	f->size = 0;
	memset(f->bytes, 0, SIZE_MAX_BYTES);
}

static void check_size(struct player *p, struct file *f, int fd)
{
	struct stat st;

	need(p, fstat(fd, &st) == 0, "fstat");
	if ((size_t)st.st_size != f->size)
		fail(p, "%s: %lld bytes instead of %zu", f->name, (long long)st.st_size, f->size);
}

/* Takes the n of the buffer's len bytes that were written, which must be all, into the model. */
static void take_write(struct player *p, struct file *f, size_t offset, size_t len, ssize_t n)
{
	if (n != (ssize_t)len)
		fail(p, "%s: wrote %zd instead of %zu", f->name, n, len);
	memcpy(f->bytes + offset, p->buf, len);
	if (offset + len > f->size)
		f->size = offset + len;
}

/* Compares the n bytes that were read into the buffer. They must be all of len that the file
 * has. */
static void check_read(struct player *p, const struct file *f, size_t offset, size_t len, ssize_t n)
{
	size_t there = offset < f->size ? f->size - offset : 0;

	if (there > len)
		there = len;
	if (n != (ssize_t)there)
		fail(p, "%s: read %zd instead of %zu", f->name, n, there);
	compare(p, f->name, p->buf, f->bytes + offset, offset, there);
}

static void file_write(struct player *p, struct file *f)
{
	enum way way = below(p, WAYS);
	size_t offset, len;
	ssize_t n;
	int fd;

	if (!range_for(p, f, way, &offset, &len))
		return;
	fd = file_open(p, f, way);
	fill(p, p->buf, len);
	note(p, "write %s %u %zu+%zu", f->name, way, offset, len);
	n = pwrite(fd, p->buf, len, (off_t)offset);
	need(p, n >= 0, "pwrite");
	take_write(p, f, offset, len, n);
}

/* Appends in large pieces, as a copy does. If need be it leaves a gap, so that they start at a
 * page.
 */
static void file_grow(struct player *p, struct file *f)
{
	enum way way = below(p, WAYS);
	size_t offset = (f->size + 4095) & ~(size_t)4095;
	size_t len = GROW_MAX_BYTES - below(p, 20) * 4096;
	ssize_t n;
	int fd;

	if (!usable(f, way))
		return;
	fd = file_open(p, f, way);
	for (; offset + len <= SIZE_MAX_BYTES; offset += len) {
		if (way != DIRECT && !below(p, 4))
			len -= below(p, 4096);
		fill(p, p->buf, len);
		note(p, "grow %s %u %zu+%zu", f->name, way, offset, len);
		n = pwrite(fd, p->buf, len, (off_t)offset);
		need(p, n >= 0, "pwrite");
		take_write(p, f, offset, len, n);
	}
}

/* Pieces begin and end anywhere in the cache, but at sectors past it. */
static size_t piece_of(struct player *p, enum way way)
{
	return way == DIRECT ? SECTOR : 1 + below(p, 5000);
}

static enum async_kind async_kind(struct player *p)
{
	enum async_kind kind = below(p, ASYNC_KINDS);

	return async_has(&p->async, kind) ? kind : ASYNC_AIO;
}

static void async_write(struct player *p, struct file *f)
{
	enum way way = below(p, 3) ? DIRECT : below(p, WAYS);
	enum async_kind kind = async_kind(p);
	size_t offset, len;
	ssize_t n;
	int fd;

	if (!range_for(p, f, way, &offset, &len))
		return;
	fd = file_open(p, f, way);
	fill(p, p->buf, len);
	note(p, "async write %s %u %u %zu+%zu", f->name, way, kind, offset, len);
	n = async_run(&p->async, kind, true, fd, p->buf, len, (off_t)offset, piece_of(p, way));
	take_write(p, f, offset, len, n);
	check_size(p, f, fd);
}

static void async_read(struct player *p, struct file *f)
{
	enum way way = below(p, 3) ? DIRECT : CACHED;
	enum async_kind kind = async_kind(p);
	size_t offset, len;
	ssize_t n;
	int fd;

	if (!range_for(p, f, way, &offset, &len))
		return;
	note(p, "async read %s %u %u %zu+%zu", f->name, way, kind, offset, len);
	fd = file_open(p, f, way);
	/* Until the kernel has written back the new size, an asynchronous direct read of a hole
	 * before it is short. A synchronous one the kernel completes from the cache. */
	if (p->writes_back)
		need(p, fdatasync(fd) == 0, "fdatasync");
	n = async_run(&p->async, kind, false, fd, p->buf, len, (off_t)offset, piece_of(p, way));
	check_read(p, f, offset, len, n);
}

static void file_append(struct player *p, struct file *f)
{
	size_t len = 1 + below(p, 20000);
	int fd;

	if (!f->named || f->size + len > SIZE_MAX_BYTES)
		return;
	fd = open(f->name, (below(p, 2) ? O_WRONLY : O_RDWR) | O_APPEND | O_CLOEXEC |
				   (below(p, 3) ? 0 : O_SYNC));
	need(p, fd >= 0, "open");
	fill(p, p->buf, len);
	note(p, "append %s %zu+%zu", f->name, f->size, len);
	need(p, write(fd, p->buf, len) == (ssize_t)len, "write");
	memcpy(f->bytes + f->size, p->buf, len);
	f->size += len;
	check_size(p, f, fd);
	need(p, close(fd) == 0, "close");
}

static void file_read(struct player *p, struct file *f)
{
	enum way way = below(p, 2) ? CACHED : DIRECT;
	size_t offset, len;
	ssize_t n;

	if (!range_for(p, f, way, &offset, &len))
		return;
	note(p, "read %s %u %zu+%zu", f->name, way, offset, len);
	n = pread(file_open(p, f, way), p->buf, len, (off_t)offset);
	need(p, n >= 0, "pread");
	check_read(p, f, offset, len, n);
}

/* A hole must read as zeros. The kernel alone knows stores into a mapping until they are synced. */
static void file_seek(struct player *p, struct file *f)
{
	size_t hole, data;
	off_t at;
	int fd;

	if (!f->size || !usable(f, CACHED))
		return;
	fd = file_open(p, f, CACHED);
	need(p, fdatasync(fd) == 0, "fdatasync");
	at = lseek(fd, (off_t)below(p, f->size), SEEK_HOLE);
	need(p, at >= 0, "SEEK_HOLE");
	hole = (size_t)at;
	if (hole == f->size)
		return;
	at = lseek(fd, at, SEEK_DATA);
	need(p, at >= 0 || errno == ENXIO, "SEEK_DATA");
	data = at < 0 ? f->size : (size_t)at;
	note(p, "hole %s %zu to %zu", f->name, hole, data);
	for (size_t i = hole; i < data; i++)
		if (f->bytes[i])
			fail(p, "%s: there is data at %zu", f->name, i);
}

/* Stores beyond the file's end, in its last page. These bytes must not appear when the file
 * grows. */
static void store_behind(struct player *p, struct file *f, uint8_t *map, size_t base, size_t end)
{
	size_t page_end = (f->size + 4095) & ~(size_t)4095;

	if (end != f->size || end == page_end || below(p, 2))
		return;
	note(p, "store %s behind the end at %zu", f->name, end);
	fill(p, map + (end - base), page_end - end);
}

/* Stores into a mapping, or loads from it. */
static void file_map(struct player *p, struct file *f)
{
	enum way way = below(p, 2) ? CACHED : DIRECT;
	bool store = below(p, 2);
	size_t offset, len, base;
	uint8_t *map;

	if (!f->size || !usable(f, way))
		return;
	range(p, f->size, &offset, &len);
	base = offset & ~(size_t)4095;
	map = mmap(NULL, offset + len - base, PROT_READ | PROT_WRITE, MAP_SHARED,
		file_open(p, f, way), (off_t)base);
	need(p, map != MAP_FAILED, "mmap");
	note(p, "%s %s %u %zu+%zu", store ? "store" : "load", f->name, way, offset, len);
	if (store) {
		fill(p, f->bytes + offset, len);
		memcpy(map + (offset - base), f->bytes + offset, len);
		store_behind(p, f, map, base, offset + len);
		if (below(p, 2))
			need(p, msync(map, offset + len - base, MS_SYNC) == 0, "msync");
		else
			file_seek(p, f);
	}
	compare(p, f->name, map + (offset - base), f->bytes + offset, offset, len);
	need(p, munmap(map, offset + len - base) == 0, "munmap");
}

static void file_truncate(struct player *p, struct file *f)
{
	size_t size = below(p, 8) ? below(p, SIZE_MAX_BYTES) : 0;

	if (!usable(f, CACHED))
		return;
	if (!below(p, 3))
		size &= ~(size_t)4095;
	note(p, "truncate %s %zu to %zu", f->name, f->size, size);
	need(p, ftruncate(file_open(p, f, CACHED), (off_t)size) == 0, "ftruncate");
	if (size < f->size)
		memset(f->bytes + size, 0, f->size - size);
	f->size = size;
}

/* Allocates, punches or zeros a range. */
static void file_fallocate(struct player *p, struct file *f)
{
	static const int modes[] = {0, FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE};
	int mode = modes[below(p, ARRAY_SIZE(modes))];
	enum way way = below(p, WAYS);
	size_t offset, len;

	range(p, SIZE_MAX_BYTES, &offset, &len);
	if (!usable(f, way))
		return;
	note(p, "fallocate %s %u mode %d %zu+%zu", f->name, way, mode, offset, len);
	need(p, fallocate(file_open(p, f, way), mode, (off_t)offset, (off_t)len) == 0, "fallocate");
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		memset(f->bytes + offset, 0, len);
	if (!(mode & FALLOC_FL_KEEP_SIZE) && offset + len > f->size)
		f->size = offset + len;
	else
		memset(f->bytes + f->size, 0, SIZE_MAX_BYTES - f->size);
}

/* Copies from one file to another, or within one. */
static void file_copy(struct player *p, struct file *f)
{
	struct file *from = &p->files[below(p, FILES)];
	size_t offset, len, to, done = 0;
	enum way way = below(p, WAYS);
	off_t in, out;

	if (!from->size || !usable(f, way) || !usable(from, CACHED))
		return;
	range(p, from->size, &offset, &len);
	to = below(p, SIZE_MAX_BYTES - len + 1);
	if (!below(p, 3))
		to &= ~(size_t)4095;
	if (from == f && offset < to + len && to < offset + len)
		return;
	note(p, "copy %s %zu+%zu to %s %u %zu", from->name, offset, len, f->name, way, to);
	in = (off_t)offset;
	out = (off_t)to;
	while (done < len) {
		ssize_t n = copy_file_range(
			file_open(p, from, CACHED), &in, file_open(p, f, way), &out, len - done, 0);

		need(p, n > 0, "copy_file_range");
		done += (size_t)n;
	}
	memmove(f->bytes + to, from->bytes + offset, len);
	if (to + len > f->size)
		f->size = to + len;
	check_size(p, f, file_open(p, f, way));
}

static void file_sync(struct player *p, struct file *f)
{
	enum way way = below(p, WAYS);

	if (f->fd[way] < 0)
		return;
	note(p, "sync %s %u", f->name, way);
	need(p, (below(p, 2) ? fsync(f->fd[way]) : fdatasync(f->fd[way])) == 0, "fsync");
	check_size(p, f, f->fd[way]);
}

/* Drops the kernel's cached pages of the file. */
static void file_forget(struct player *p, struct file *f)
{
	if (f->fd[CACHED] < 0)
		return;
	note(p, "forget %s", f->name);
	need(p, posix_fadvise(f->fd[CACHED], 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
}

static void file_check(struct player *p, struct file *f)
{
	size_t done = 0;
	int fd;

	if (!usable(f, CACHED))
		return;
	fd = file_open(p, f, CACHED);
	note(p, "check %s", f->name);
	check_size(p, f, fd);
	while (done < f->size) {
		ssize_t n = pread(fd, p->buf, IO_MAX_BYTES, (off_t)done);

		need(p, n >= 0, "pread");
		if (!n)
			fail(p, "%s ends at %zu instead of %zu", f->name, done, f->size);
		compare(p, f->name, p->buf, f->bytes + done, done, (size_t)n);
		done += (size_t)n;
	}
}

static void file_reopen(struct player *p, struct file *f)
{
	if (!f->named)
		return;
	note(p, "close %s", f->name);
	file_close(p, f);
	file_check(p, f);
}

static void file_unlink(struct player *p, struct file *f)
{
	if (!f->named || f->fd[CACHED] < 0 || below(p, 4))
		return;
	note(p, "unlink %s", f->name);
	need(p, unlink(f->name) == 0, "unlink");
	f->named = false;
}

/* Replaces a file that has no name by a new one. */
static void file_renew(struct player *p, struct file *f)
{
	if (f->named)
		return;
	file_check(p, f);
	file_close(p, f);
	file_create(p, f);
}

/* Renames over another file, which loses its name, and is gone unless it is open. */
static void file_rename_over(struct player *p, struct file *f)
{
	struct file *other = &p->files[below(p, FILES)];
	struct file old = *other;

	if (other == f || !f->named || !other->named || below(p, 4))
		return;
	note(p, "rename %s over %s", f->name, other->name);
	need(p, rename(f->name, other->name) == 0, "rename");
	*other = *f;
	memcpy(other->name, old.name, sizeof(old.name));
	memcpy(old.name, f->name, sizeof(old.name));
	*f = old;
	f->named = false;
	if (f->fd[CACHED] < 0) {
		file_close(p, f);
		file_create(p, f);
	}
}

static void file_exchange(struct player *p, struct file *f)
{
	struct file *other = &p->files[below(p, FILES)];
	struct file old = *other;
	char name[sizeof(old.name)];

	if (other == f || !f->named || !other->named)
		return;
	note(p, "exchange %s and %s", f->name, other->name);
	need(p, renameat2(AT_FDCWD, f->name, AT_FDCWD, other->name, RENAME_EXCHANGE) == 0,
		"exchange");
	memcpy(name, f->name, sizeof(name));
	*other = *f;
	memcpy(other->name, old.name, sizeof(name));
	*f = old;
	memcpy(f->name, name, sizeof(name));
}

/* ---- shared files ---------------------------------------------------------------------------- */

static size_t cell_offset(const struct player *p, size_t cell)
{
	return (cell * p->nplayers + p->index) * CELL_BYTES;
}

static void cell_write(struct player *p)
{
	size_t cell = below(p, CELLS);
	enum way way = below(p, 2) ? CACHED : WRITE_ONLY;

	p->cells[cell] = (uint8_t)chance(p);
	memset(p->buf, p->cells[cell], CELL_BYTES);
	note(p, "cell %zu %u is %#x", cell, way, p->cells[cell]);
	need(p,
		pwrite(p->shared[way], p->buf, CELL_BYTES, (off_t)cell_offset(p, cell)) ==
			CELL_BYTES,
		"pwrite");
}

static void cell_check(struct player *p, size_t cell)
{
	uint8_t want[CELL_BYTES];

	memset(want, p->cells[cell], CELL_BYTES);
	need(p,
		pread(p->shared[CACHED], p->buf, CELL_BYTES, (off_t)cell_offset(p, cell)) ==
			CELL_BYTES,
		"pread");
	compare(p, "cells", p->buf, want, cell_offset(p, cell), CELL_BYTES);
}

static void cell_read(struct player *p)
{
	cell_check(p, below(p, CELLS));
}

static struct record record_of(uint32_t player, uint32_t number)
{
	struct record r = {.player = player, .number = number};

	for (unsigned i = 0; i < ARRAY_SIZE(r.check); i++)
		r.check[i] = (player * 31 + number) * (i + 1);
	return r;
}

static void log_append(struct player *p)
{
	struct record r = record_of(p->index, p->nlogged++);

	note(p, "log %u", r.number);
	need(p, write(p->log, &r, sizeof(r)) == sizeof(r), "write");
}

/* Every record is there once, and the records of each player are in order. */
static void log_check(struct player *p, uint32_t *nlogged)
{
	FILE *log = fopen("log", "re");
	struct record r, want;

	need(p, log != NULL, "log");
	while (fread(&r, sizeof(r), 1, log) == 1) {
		if (r.player >= p->nplayers)
			fail(p, "log: a record of player %u", r.player);
		want = record_of(r.player, nlogged[r.player]++);
		if (memcmp(&r, &want, sizeof(r)) != 0)
			fail(p, "log: record %u of player %u instead of %u", r.number, r.player,
				want.number);
	}
	fclose(log);
}

/* ---- a player -------------------------------------------------------------------------------- */

static void own_file(struct player *p)
{
	static void (*const ops[])(struct player * p, struct file * f) = {file_write, file_write,
		file_write, file_write, file_grow, file_append, file_read, file_read, file_read,
		async_write, async_read, file_map, file_map, file_truncate, file_fallocate,
		file_fallocate, file_copy, file_sync, file_seek, file_forget, file_check,
		file_reopen, file_unlink, file_renew, file_rename_over, file_exchange};

	ops[below(p, ARRAY_SIZE(ops))](p, &p->files[below(p, FILES)]);
}

static void step(struct player *p)
{
	switch (below(p, 8)) {
	case 0:
		cell_write(p);
		break;
	case 1:
		cell_read(p);
		break;
	case 2:
		log_append(p);
		break;
	default:
		own_file(p);
	}
}

static void begin(struct player *p)
{
	p->buf = mmap(
		NULL, GROW_MAX_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(p, p->buf != MAP_FAILED, "mmap");
	errno = -async_init(&p->async, ASYNC_PIECES);
	need(p, errno == 0, "async_init");
	for (unsigned i = 0; i < FILES; i++) {
		struct file *f = &p->files[i];

		*f = (struct file){.fd = {-1, -1, -1}, .bytes = malloc(SIZE_MAX_BYTES)};
		need(p, f->bytes != NULL, "malloc");
		snprintf(f->name, sizeof(f->name), "player%u.file%u", p->index, i);
		file_create(p, f);
	}
	p->shared[CACHED] = open("cells", O_RDWR | O_CLOEXEC);
	p->shared[WRITE_ONLY] = open("cells", O_WRONLY | O_CLOEXEC);
	p->log = open("log", O_WRONLY | O_APPEND | O_CLOEXEC);
	need(p, p->shared[CACHED] >= 0 && p->shared[WRITE_ONLY] >= 0 && p->log >= 0, "open");
}

static void end(struct player *p)
{
	for (unsigned i = 0; i < FILES; i++) {
		file_renew(p, &p->files[i]);
		file_reopen(p, &p->files[i]);
		file_close(p, &p->files[i]);
		free(p->files[i].bytes);
	}
	for (size_t cell = 0; cell < CELLS; cell++)
		cell_check(p, cell);
	async_fini(&p->async);
	need(p, close(p->log) == 0, "close");
}

static void play(struct player *p, unsigned seconds, int report)
{
	time_t until = time(NULL) + (time_t)seconds;
	unsigned nsteps = 0;

	begin(p);
	for (; time(NULL) < until; nsteps++)
		step(p);
	end(p);
	need(p,
		pwrite(report, &p->nlogged, sizeof(p->nlogged),
			(off_t)(p->index * sizeof(p->nlogged))) == sizeof(p->nlogged),
		"report");
	printf("fsx %u: %u steps\n", p->index, nsteps);
	fflush(stdout);
	_exit(0);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static struct player *player_new(unsigned index, unsigned nplayers, uint64_t seed, bool writes_back)
{
	struct player *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->index = index;
	p->nplayers = nplayers;
	p->writes_back = writes_back;
	p->random = (seed + index + 1) * UINT64_C(0x9e3779b97f4a7c15);
	return p;
}

static void prepare(struct player *p)
{
	autoclose int cells = open("cells", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	autoclose int log = open("log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	need(p, cells >= 0 && log >= 0, "create");
	need(p, ftruncate(cells, (off_t)p->nplayers * CELLS * CELL_BYTES) == 0, "ftruncate");
}

static bool play_all(const struct player *judge, uint64_t seed, unsigned seconds, int report)
{
	bool ok = true;
	int status;

	for (unsigned i = 0; i < judge->nplayers; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return false;
		if (!pid)
			play(player_new(i, judge->nplayers, seed, judge->writes_back), seconds,
				report);
	}
	while (wait(&status) > 0)
		ok = ok && status == 0;
	return ok;
}

/* The log has as many records of each player as that player has reported. */
static void conclude(struct player *p, int report)
{
	uint32_t *found = calloc(p->nplayers, sizeof(*found));
	uint32_t want;

	need(p, found != NULL, "calloc");
	log_check(p, found);
	for (unsigned i = 0; i < p->nplayers; i++) {
		need(p,
			pread(report, &want, sizeof(want), (off_t)(i * sizeof(want))) ==
				sizeof(want),
			"report");
		if (found[i] != want)
			fail(p, "log: %u records of player %u instead of %u", found[i], i, want);
	}
	free(found);
}

static int usage(void)
{
	fprintf(stderr, "usage: fsx [-w] [-s SEED] [-t SECONDS] [-p PROCESSES] DIRECTORY\n");
	return 1;
}

int main(int argc, char **argv)
{
	unsigned long long seed = (unsigned long long)time(NULL) * 1000 + (unsigned)getpid() % 1000;
	unsigned seconds = 20, nplayers = 4;
	bool writes_back = false;
	struct player *judge;
	int opt, report;

	while ((opt = getopt(argc, argv, "ws:t:p:")) != -1) {
		if (opt == 'w')
			writes_back = true;
		else if (opt == 's')
			seed = strtoull(optarg, NULL, 10);
		else if (opt == 't')
			seconds = (unsigned)strtoul(optarg, NULL, 10);
		else if (opt == 'p')
			nplayers = (unsigned)strtoul(optarg, NULL, 10);
		else
			return usage();
	}
	if (optind + 1 != argc || !nplayers || chdir(argv[optind]) < 0)
		return usage();
	printf("fsx: seed %llu\n", seed);
	fflush(stdout);
	report = memfd_create("report", MFD_CLOEXEC);
	judge = player_new(nplayers, nplayers, seed, writes_back);
	need(judge, report >= 0, "memfd_create");
	prepare(judge);
	if (!play_all(judge, seed, seconds, report))
		return 1;
	conclude(judge, report);
	free(judge);
	return 0;
}
