/* play_data.c - the players' operations on the files that all write, on the logs and on the file
 * that is replaced; see player.h. */
#include "tests/stress/player.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"

static void data_name(char name[16], unsigned file)
{
	snprintf(name, 16, "data%u", file);
}

static void log_name(char name[16], unsigned log)
{
	snprintf(name, 16, "log%u", log);
}

static void forget(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- the files that all write ---------------------------------------------------------------- */

/* Often at the file's beginning, where the others work, too; often a few cells, or whole pages. */
static void draw_range(struct player *p, enum way way, uint64_t *off, uint64_t *len)
{
	uint64_t end = p->h->file_bytes, shape = chance(p, 4);

	*off = chance(p, chance(p, 2) || end < 16384 ? end : 16384) & ~(uint64_t)(CELL_BYTES - 1);
	*len = (1 + chance(p, shape == 0   ? 4
			      : shape == 3 ? IO_MAX / CELL_BYTES
					   : 1200)) *
	       CELL_BYTES;
	if (shape == 2) {
		*off &= ~(uint64_t)(PAGE - 1);
		*len = (*len + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	}
	if (way == DIRECT) {
		*off &= ~(uint64_t)(SECTOR - 1);
		*len = (*len + SECTOR - 1) & ~(uint64_t)(SECTOR - 1);
	}
	if (*len > IO_MAX)
		*len = IO_MAX;
	if (*off + *len > end)
		*len = end - *off;
}

/* A range that ends with a page, if that is the file's manner. */
static void draw_change(struct player *p, unsigned file, enum way way, uint64_t *off, uint64_t *len)
{
	draw_range(p, way, off, len);
	if (!p->manner[file].whole_pages || way == MAPPED)
		return;
	*len = div_round_up(*off + *len, PAGE) * PAGE - *off;
	if (*len > IO_MAX)
		*len -= PAGE;
}

static void fill(struct player *p, unsigned id, uint64_t first, uint64_t ncells)
{
	uint64_t *cells = (uint64_t *)(void *)p->buf;

	for (uint64_t i = 0; i < ncells; i++)
		cells[i] = cell_value(p->index, p->seq, id, first + i);
}

static void data_write(struct player *p, unsigned file)
{
	enum way way = way_draw(p, file, false);
	uint64_t off, len;
	struct event *e;

	way_open(p, file, way);
	draw_change(p, file, way, &off, &len);
	p->seq++;
	fill(p, file, off / CELL_BYTES, len / CELL_BYTES);
	e = event_new(p, OP_WRITE, 0);
	e->file = (uint8_t)file;
	e->way = (uint8_t)way;
	e->seq = p->seq;
	e->off = off;
	e->len = len;
	if (way != MAPPED && falsifies(p, LOST_WRITE)) {
		falsified(p);
		e->n = e->len;
		e->end = monotonic_ns();
		return;
	}
	if (way == MAPPED && falsifies(p, LOST_STORE)) {
		falsified(p);
		e->n = (uint64_t)TIMED(e, way_read(p, file, way, off, len));
		return;
	}
	e->n = (uint64_t)TIMED(e, way_write(p, file, way, off, len));
}

/* A value that was overwritten before the round began. */
static void falsify_read(struct player *p, struct event *e)
{
	const uint64_t *old = p->h->rest.previous[e->file], *now = p->h->rest.cells[e->file];
	uint64_t *cells = event_room(p, e), first = e->off / CELL_BYTES, stale = 0;

	if (e->way == MAPPED && e->n > PAGE && falsifies(p, LOST_PAGES)) {
		e->n = PAGE;
		falsified(p);
	}
	if (falsifies(p, GARBAGE) && e->n) {
		cells[(e->n - 1) / CELL_BYTES] ^= 0x40;
		falsified(p);
	}
	if (falsifies(p, STALE_READ) || (e->way == MAPPED && falsifies(p, STALE_MAPPED)) ||
		(e->way == SENT && falsifies(p, STALE_SENT)))
		stale = ~UINT64_C(0);
	else if (falsifies(p, STALE_BYTES))
		stale = 0xffffff;
	for (uint64_t i = 0; stale && i < e->n / CELL_BYTES; i++) {
		if (!old[first + i] || old[first + i] == now[first + i])
			continue;
		cells[i] = (cells[i] & ~stale) | (old[first + i] & stale);
		falsified(p);
		return;
	}
}

static void data_read_at(struct player *p, unsigned file, enum way way, uint64_t off, uint64_t len)
{
	struct event *e = event_new(p, OP_READ, len);

	if (!e)
		return;
	way_open(p, file, way);
	e->file = (uint8_t)file;
	e->way = (uint8_t)way;
	e->off = off;
	e->len = len;
	e->n = (uint64_t)TIMED(e, way_read(p, file, way, off, len));
	if (e->err)
		return;
	memcpy(event_room(p, e), p->buf, e->n);
	falsify_read(p, e);
}

static void data_read(struct player *p, unsigned file)
{
	enum way way = way_draw(p, file, true);
	uint64_t off, len;

	draw_range(p, way, &off, &len);
	data_read_at(p, file, way, off, len);
}

static void data_truncate(struct player *p, unsigned file)
{
	uint64_t size = chance(p, p->h->file_bytes) & ~(uint64_t)(CELL_BYTES - 1);
	bool by_name = chance(p, 3) == 0;
	struct event *e;
	char name[16];
	int fd;

	data_name(name, file);
	if (chance(p, 4) == 0)
		size = 0;
	else if (chance(p, 3) == 0 || p->manner[file].whole_pages)
		size &= ~(uint64_t)(PAGE - 1);
	if (!p->manner[file].calls)
		return;
	fd = way_open_to_change(p, file);
	e = event_new(p, OP_TRUNCATE, 0);
	e->file = (uint8_t)file;
	e->len = size;
	if (falsifies(p, LOST_TRUNCATE)) {
		falsified(p);
		e->end = monotonic_ns();
		return;
	}
	TIMED(e, by_name ? truncate(name, (off_t)size) : ftruncate(fd, (off_t)size));
}

/* An operation that the filesystem does not have is not tried again. */
static void data_allocate(struct player *p, unsigned file, bool punch)
{
	bool *none = punch ? &p->no_punch : &p->no_allocate;
	int mode = punch ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : 0;
	uint64_t off, len;
	struct event *e;
	int fd;

	draw_change(p, file, CACHED, &off, &len);
	if (*none || !p->manner[file].calls)
		return;
	fd = way_open_to_change(p, file);
	e = event_new(p, punch ? OP_PUNCH : OP_ALLOCATE, 0);
	e->file = (uint8_t)file;
	e->off = off;
	e->len = len;
	TIMED(e, fallocate(fd, mode, (off_t)off, (off_t)len));
	if (e->err == EOPNOTSUPP) {
		*none = true;
		p->log->nevents--;
	}
}

static int64_t mtime_of(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static void ask_size(struct event *e, enum asked by, int fd, const char *name)
{
	struct stat st = {0};

	e->way = (uint8_t)by;
	if (by == BY_FD)
		TIMED(e, fstat(fd, &st));
	else if (by == BY_PATH)
		TIMED(e, stat(name, &st));
	else
		st.st_size = (off_t)TIMED(e, lseek(fd, 0, SEEK_END));
	e->size = (uint64_t)st.st_size;
	if (by != BY_SEEK && !e->err)
		e->mtime = mtime_of(&st);
}

static void data_stat(struct player *p, unsigned file, enum asked by)
{
	char name[16];
	int fd = way_open(p, file, CACHED);
	struct event *e = event_new(p, OP_STAT, 0);

	data_name(name, file);
	e->file = (uint8_t)file;
	ask_size(e, by, fd, name);
	if (p->h->rest.previous_size[file] != e->size && falsifies(p, STALE_SIZE)) {
		e->size = p->h->rest.previous_size[file];
		falsified(p);
	}
	if (e->mtime && falsifies(p, STALE_MTIME)) {
		e->mtime -= 1000000000;
		falsified(p);
	}
}

/* A newly opened file must show what was closed elsewhere. */
static void data_reopen(struct player *p, unsigned file)
{
	enum way way = (enum way)chance(p, WAYS);

	way_forget(p, file, way);
	way_open(p, file, way_draw(p, file, true));
}

static void data_sync(struct player *p, unsigned file)
{
	int fd = way_open(p, file, way_draw(p, file, false));

	need(p, (chance(p, 2) ? fsync(fd) : fdatasync(fd)) == 0, "fsync");
}

/* ---- the logs -------------------------------------------------------------------------------- */

static int open_log(struct player *p, int *fd, unsigned log, int flags)
{
	char name[16];

	log_name(name, log);
	if (*fd < 0)
		*fd = open(name, flags | O_CLOEXEC);
	need(p, *fd >= 0, name);
	return *fd;
}

static void log_append(struct player *p, unsigned log)
{
	int fd = open_log(p, &p->append[log], log, O_WRONLY | O_APPEND);
	struct event *e;
	unsigned n;

	p->seq++;
	n = record_cells(p->index, p->seq);
	fill(p, LOG_ID + log, 0, n);
	e = event_new(p, OP_APPEND, 0);
	e->file = (uint8_t)log;
	e->seq = p->seq;
	e->len = n * (uint64_t)CELL_BYTES;
	e->n = e->len;
	if (falsifies(p, LOST_APPEND)) {
		falsified(p);
		e->end = monotonic_ns();
		return;
	}
	if (falsifies(p, DOUBLE_APPEND) && write(fd, p->buf, e->len) > 0)
		falsified(p);
	e->n = (uint64_t)TIMED(e, write(fd, p->buf, e->len));
	if (chance(p, 4) == 0)
		forget(&p->append[log]);
}

static void falsify_tail(struct player *p, struct event *e)
{
	uint8_t *seen = event_room(p, e);

	if (!e->n)
		return;
	if (falsifies(p, ZERO_TAIL)) {
		memset(seen + e->n - CELL_BYTES, 0, CELL_BYTES);
		falsified(p);
	}
	if (e->off < p->h->rest.log_size[e->file] && falsifies(p, SHORT_TAIL)) {
		e->n = 0;
		falsified(p);
	}
}

/* Reads on where the last read ended, or anywhere. */
static void log_tail(struct player *p, unsigned log)
{
	int fd = open_log(p, &p->tail[log], log, O_RDONLY);
	uint64_t len = CELL_BYTES * (1 + chance(p, IO_MAX / CELL_BYTES)), off = p->tail_at[log];
	bool on = chance(p, 4) != 0;
	struct event *e = event_new(p, OP_TAIL, len);

	if (!e)
		return;
	if (!on)
		off = chance(p, p->h->rest.log_size[log] + IO_MAX);
	e->file = (uint8_t)log;
	e->off = off;
	e->len = len;
	e->n = (uint64_t)TIMED(e, pread(fd, p->buf, len, (off_t)off));
	if (e->err)
		return;
	memcpy(event_room(p, e), p->buf, e->n);
	if (on)
		p->tail_at[log] = off + e->n;
	falsify_tail(p, e);
	if (chance(p, 8) == 0)
		forget(&p->tail[log]);
}

static void log_stat(struct player *p, unsigned log)
{
	int fd = open_log(p, &p->tail[log], log, O_RDONLY);
	struct event *e = event_new(p, OP_LOG_STAT, 0);
	char name[16];

	log_name(name, log);
	e->file = (uint8_t)log;
	ask_size(e, (enum asked)chance(p, ASKED), fd, name);
	if (p->h->rest.log_size[log] && falsifies(p, STALE_LOG_SIZE)) {
		e->size = p->h->rest.log_size[log] - CELL_BYTES;
		falsified(p);
	}
}

/* ---- the file that is replaced --------------------------------------------------------------- */

static void conf_publish(struct player *p)
{
	char name[24];
	struct event *e;
	uint64_t len, first;
	int fd;

	snprintf(name, sizeof(name), "new.%u", p->index);
	p->seq++;
	len = conf_cells(p->index, p->seq) * (uint64_t)CELL_BYTES;
	fill(p, CONF_ID, 0, len / CELL_BYTES);
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	need(p, fd >= 0, name);
	first = chance(p, 2) ? len : chance(p, len) & ~(uint64_t)(CELL_BYTES - 1);
	need(p, write(fd, p->buf, first) == (ssize_t)first, name);
	need(p, write(fd, p->buf + first, len - first) == (ssize_t)(len - first), name);
	if (chance(p, 4) == 0)
		need(p, fsync(fd) == 0, name);
	need(p, close(fd) == 0, name);
	e = event_new(p, OP_PUBLISH, 0);
	e->seq = p->seq;
	e->value = cell_value(p->index, p->seq, CONF_ID, 0);
	TIMED(e, rename(name, "conf"));
}

static void falsify_fetch(struct player *p, struct event *e)
{
	uint64_t *cells = event_room(p, e), old = p->h->rest.previous_conf;

	if (e->n > CELL_BYTES && falsifies(p, TORN_CONF)) {
		e->n -= CELL_BYTES;
		falsified(p);
	}
	if (falsifies(p, MISSING_CONF)) {
		e->err = ENOENT;
		falsified(p);
	}
	if (old && old != p->h->rest.conf && falsifies(p, STALE_CONF)) {
		unsigned n = conf_cells(cell_player(old), cell_seq(old));

		for (unsigned k = 0; k < n; k++)
			cells[k] = cell_value(cell_player(old), cell_seq(old), CONF_ID, k);
		e->n = n * (uint64_t)CELL_BYTES;
		falsified(p);
	}
}

/* It must be the file that was opened, even if another has taken its place since. */
static void conf_fetch(struct player *p)
{
	struct event *e = event_new(p, OP_FETCH, IO_MAX);
	ssize_t n;
	int fd;

	if (!e)
		return;
	fd = (int)TIMED(e, open_again(p, "conf", O_RDONLY | O_CLOEXEC));
	if (e->err)
		return;
	if (chance(p, 4) == 0)
		usleep(200);
	n = read(fd, event_room(p, e), IO_MAX);
	if (n < 0)
		e->err = errno;
	e->n = n < 0 ? 0 : (uint64_t)n;
	close(fd);
	falsify_fetch(p, e);
}

/* ---- the whole ------------------------------------------------------------------------------- */

void data_begin(struct player *p)
{
	ways_begin(p);
	memset(p->append, -1, sizeof(p->append));
	memset(p->tail, -1, sizeof(p->tail));
}

/* The logs may have been emptied before. */
void data_round(struct player *p)
{
	ways_round(p);
	for (unsigned log = 0; log < LOGS; log++)
		if (p->tail_at[log] > p->h->rest.log_size[log])
			p->tail_at[log] = 0;
}

static void file_step(struct player *p, unsigned file)
{
	uint64_t what = chance(p, 32);

	if (what < 11)
		data_write(p, file);
	else if (what < 21)
		data_read(p, file);
	else if (what < 25)
		data_stat(p, file, (enum asked)chance(p, ASKED));
	else if (what < 27)
		data_truncate(p, file);
	else if (what < 28)
		data_allocate(p, file, true);
	else if (what < 29)
		data_allocate(p, file, false);
	else if (what < 31)
		data_reopen(p, file);
	else
		data_sync(p, file);
}

static void log_step(struct player *p, unsigned log)
{
	uint64_t what = chance(p, 8);

	if (what < 3)
		log_append(p, log);
	else if (what < 6)
		log_tail(p, log);
	else
		log_stat(p, log);
}

void data_step(struct player *p)
{
	uint64_t what = chance(p, 8);

	if (what < 5)
		file_step(p, (unsigned)chance(p, p->nhot));
	else if (what < 7)
		log_step(p, (unsigned)chance(p, LOGS));
	else if (chance(p, 3) == 0)
		conf_publish(p);
	else
		conf_fetch(p);
}

/* Reads all of every file by each mount, and behind its end, too. A write and a truncation at the
 * same time may be explained in either order. The bytes that they leave depend on the last one, and
 * are known only if a player has looked. */
void data_rest(struct player *p)
{
	for (unsigned file = 0; file < p->h->nfiles && p->reads_all; file++) {
		enum way way = way_draw(p, file, true);

		for (uint64_t off = 0; off < p->h->file_bytes + PAGE; off += IO_MAX)
			data_read_at(p, file, way, off, IO_MAX);
		data_stat(p, file, BY_FD);
		data_stat(p, file, BY_PATH);
	}
	for (unsigned log = 0; log < LOGS && p->reads_all; log++) {
		log_stat(p, log);
		log_tail(p, log);
	}
	conf_fetch(p);
}
