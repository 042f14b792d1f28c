/* play_names.c - the players' operations on names, on folders and on files that they keep open; see
 * player.h. */
#include "tests/stress/player.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 32 };

static const char *name_path(struct name name, char path[PATH_BYTES])
{
	if (name.dir)
		snprintf(path, PATH_BYTES, "names/d%u/f%u", name.dir, name.file);
	else
		snprintf(path, PATH_BYTES, "names/f%u", name.file);
	return path;
}

static const char *dir_path(unsigned dir, char path[PATH_BYTES])
{
	if (dir)
		snprintf(path, PATH_BYTES, "names/d%u", dir);
	else
		snprintf(path, PATH_BYTES, "names");
	return path;
}

static struct name draw_name(struct player *p)
{
	struct name name = {.file = (uint8_t)chance(p, NAME_FILES)};

	if (chance(p, 2))
		name.dir = (uint8_t)chance(p, NAME_DIRS + 1);
	return name;
}

static unsigned draw_dir(struct player *p)
{
	return 1 + (unsigned)chance(p, NAME_DIRS);
}

/* ---- files that are kept open ---------------------------------------------------------------- */

static off_t held_offset(uint64_t cell)
{
	return (off_t)(cell * PAGE + 2 * (uint64_t)CELL_BYTES);
}

static void hold(struct player *p, unsigned slot, int fd, uint64_t ino)
{
	if (p->held[slot].fd >= 0)
		close(p->held[slot].fd);
	p->held[slot] = (struct held_file){.fd = fd, .ino = ino};
}

static void held_write(struct player *p, const struct held_file *f, uint64_t cell)
{
	struct event *e = event_new(p, OP_HELD_WRITE, 0);

	e->ino = f->ino;
	e->off = cell;
	e->seq = p->seq;
	e->value = cell_value(p->index, p->seq, f->ino, cell);
	if (falsifies(p, LOST_HELD)) {
		falsified(p);
		e->end = monotonic_ns();
		return;
	}
	TIMED(e, pwrite(f->fd, &e->value, CELL_BYTES, held_offset(cell)));
}

static void held_read(struct player *p, const struct held_file *f, uint64_t cell)
{
	struct event *e = event_new(p, OP_HELD_READ, 0);

	if (!e)
		return;
	e->ino = f->ino;
	e->off = cell;
	TIMED(e, pread(f->fd, &e->value, CELL_BYTES, held_offset(cell)));
	if (e->value && falsifies(p, STALE_HELD)) {
		e->value = 0;
		falsified(p);
	}
}

static void falsify_links(struct player *p, struct event *e)
{
	if (e->err || !falsifies(p, STALE_LINKS))
		return;
	e->nlink++;
	falsified(p);
}

static void held_stat(struct player *p, const struct held_file *f)
{
	struct event *e = event_new(p, OP_HELD_STAT, 0);
	struct stat st = {0};

	if (!e)
		return;
	e->ino = f->ino;
	TIMED(e, fstat(f->fd, &st));
	e->nlink = (uint32_t)st.st_nlink;
	falsify_links(p, e);
}

static void held_step(struct player *p)
{
	const struct held_file *f = &p->held[chance(p, HELD)];
	uint64_t cell = chance(p, HELD_CELLS), what = chance(p, 8);

	/* Count it also without an open file: the length of later appends depends on seq. */
	p->seq += what < 3;
	if (f->fd < 0)
		return;
	if (what < 3)
		held_write(p, f, cell);
	else if (what < 6)
		held_read(p, f, cell);
	else
		held_stat(p, f);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void name_create(struct player *p)
{
	unsigned slot = (unsigned)chance(p, 2 * HELD);
	struct name name = draw_name(p);
	char path[PATH_BYTES];
	struct stat st;
	struct event *e = event_new(p, OP_CREATE, 0);
	int fd;

	e->a = e->b = name;
	fd = (int)TIMED(
		e, open(name_path(name, path), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	if (e->err == EEXIST && falsifies(p, CREATED_TWICE)) {
		e->err = 0;
		e->ino = UINT32_MAX;
		falsified(p);
	}
	if (fd < 0)
		return;
	need(p, fstat(fd, &st) == 0, "fstat");
	e->ino = st.st_ino;
	if (slot < HELD)
		hold(p, slot, fd, e->ino);
	else
		close(fd);
}

static int open_held(struct player *p, struct name name, uint64_t *ino)
{
	struct event *e = event_new(p, OP_OPEN, 0);
	char path[PATH_BYTES];
	struct stat st;
	int fd;

	if (!e)
		return -1;
	e->a = name;
	fd = (int)TIMED(e, open_again(p, name_path(name, path), O_RDWR | O_CLOEXEC));
	if (fd < 0)
		return fd;
	need(p, fstat(fd, &st) == 0, "fstat");
	e->ino = *ino = st.st_ino;
	return fd;
}

static void name_open(struct player *p)
{
	unsigned slot = (unsigned)chance(p, HELD);
	uint64_t ino;
	int fd = open_held(p, draw_name(p), &ino);

	if (fd >= 0)
		hold(p, slot, fd, ino);
}

static void name_unlink(struct player *p, struct name name)
{
	char path[PATH_BYTES];
	struct event *e = event_new(p, OP_UNLINK, 0);

	e->a = e->b = name;
	TIMED(e, unlink(name_path(e->a, path)));
	if (e->err == ENOENT && falsifies(p, UNLINKED_TWICE)) {
		e->err = 0;
		falsified(p);
	}
}

static void name_rename(struct player *p)
{
	char from[PATH_BYTES], to[PATH_BYTES];
	unsigned flags = (unsigned)chance(p, 4);
	struct name a = draw_name(p), b = draw_name(p);
	struct event *e;

	if (flags > RENAME_EXCHANGE || (flags == RENAME_EXCHANGE && p->no_exchange))
		flags = 0;
	if (a.dir == b.dir && a.file == b.file)
		return;
	e = event_new(p, OP_RENAME, 0);
	e->a = a;
	e->b = b;
	e->flags = flags;
	name_path(a, from);
	name_path(b, to);
	if (falsifies(p, LOST_RENAME)) {
		falsified(p);
		e->end = monotonic_ns();
		return;
	}
	TIMED(e, renameat2(AT_FDCWD, from, AT_FDCWD, to, flags));
	if (flags && e->err == EINVAL) {
		p->no_exchange = true;
		p->log->nevents--;
	}
}

static void name_link(struct player *p)
{
	char from[PATH_BYTES], to[PATH_BYTES];
	struct event *e = event_new(p, OP_LINK, 0);

	e->a = draw_name(p);
	e->b = draw_name(p);
	name_path(e->a, from);
	name_path(e->b, to);
	TIMED(e, link(from, to));
}

static void name_stat(struct player *p, struct name name)
{
	struct event *e = event_new(p, OP_NAME_STAT, 0);
	char path[PATH_BYTES];
	struct stat st = {0};

	if (!e)
		return;
	e->a = name;
	TIMED(e, stat(name_path(name, path), &st));
	e->ino = st.st_ino;
	e->nlink = (uint32_t)st.st_nlink;
	falsify_links(p, e);
	if (!e->err && falsifies(p, MISSING_NAME)) {
		e->err = ENOENT;
		falsified(p);
	} else if (e->err && falsifies(p, GHOST_NAME)) {
		e->err = 0;
		e->ino = 1 + mix(p->falsify_random) % 100000;
		e->nlink = 1;
		falsified(p);
	}
}

/* ---- folders --------------------------------------------------------------------------------- */

static void dir_make(struct player *p)
{
	char path[PATH_BYTES];
	struct event *e = event_new(p, OP_MKDIR, 0);

	e->a.dir = e->b.dir = (uint8_t)draw_dir(p);
	TIMED(e, mkdir(dir_path(e->a.dir, path), 0700));
}

static void dir_remove(struct player *p)
{
	char path[PATH_BYTES];
	uint8_t dir = (uint8_t)draw_dir(p);
	bool empties = chance(p, 2);
	struct event *e;

	for (uint8_t f = 0; empties && f < NAME_FILES; f++)
		name_unlink(p, (struct name){.dir = dir, .file = f});
	e = event_new(p, OP_RMDIR, 0);
	e->a.dir = e->b.dir = dir;
	TIMED(e, rmdir(dir_path(e->a.dir, path)));
}

static void dir_rename(struct player *p)
{
	char from[PATH_BYTES], to[PATH_BYTES];
	unsigned a = draw_dir(p), b = draw_dir(p);
	struct event *e;

	if (a == b)
		return;
	e = event_new(p, OP_DIR_RENAME, 0);
	e->a.dir = (uint8_t)a;
	e->b.dir = (uint8_t)b;
	dir_path(a, from);
	dir_path(b, to);
	TIMED(e, rename(from, to));
}

static void dir_stat(struct player *p, unsigned dir)
{
	struct event *e = event_new(p, OP_DIR_STAT, 0);
	char path[PATH_BYTES];
	struct stat st = {0};

	if (!e)
		return;
	e->a.dir = (uint8_t)dir;
	TIMED(e, stat(dir_path(dir, path), &st));
	e->nlink = (uint32_t)st.st_nlink;
}

static void list_entry(struct listing *l, unsigned dir, const struct dirent *entry)
{
	const char *name = entry->d_name;
	unsigned n = (unsigned)(name[0] ? name[1] - '0' : 0);

	if (name[0] == 'f' && n < NAME_FILES && !name[2]) {
		if (l->ino[n])
			l->twice |= 1U << n;
		l->ino[n] = entry->d_ino;
	} else if (name[0] == 'd' && n >= 1 && n <= NAME_DIRS && !name[2] && !dir) {
		if (l->dirs & 1U << n)
			l->twice |= 1U << (NAME_FILES + n);
		l->dirs |= 1U << n;
	} else if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
		snprintf(l->strange, sizeof(l->strange), "%.31s", name);
	}
}

static int list(struct listing *l, unsigned dir)
{
	char path[PATH_BYTES];
	DIR *d = opendir(dir_path(dir, path));
	const struct dirent *entry;
	int err;

	if (!d)
		return -1;
	errno = 0;
	while ((entry = readdir(d)))
		list_entry(l, dir, entry);
	err = errno;
	closedir(d);
	errno = err;
	return err ? -1 : 0;
}

static void dir_list(struct player *p, unsigned dir)
{
	struct event *e = event_new(p, OP_LIST, sizeof(struct listing));
	struct listing *l;

	if (!e)
		return;
	l = event_room(p, e);
	memset(l, 0, sizeof(*l));
	e->a.dir = (uint8_t)dir;
	TIMED(e, list(l, dir));
	for (unsigned i = 0; !e->err && i < NAME_FILES; i++) {
		if (l->ino[i] && falsifies(p, LIST_MISSING)) {
			l->ino[i] = 0;
			falsified(p);
		} else if (!l->ino[i] && falsifies(p, LIST_GHOST)) {
			l->ino[i] = UINT32_MAX;
			falsified(p);
		}
	}
}

/* ---- the whole ------------------------------------------------------------------------------- */

void names_begin(struct player *p)
{
	for (unsigned i = 0; i < HELD; i++)
		p->held[i].fd = -1;
}

static void dir_step(struct player *p)
{
	uint64_t what = chance(p, 8);

	if (what < 2)
		dir_make(p);
	else if (what < 4)
		dir_remove(p);
	else if (what < 5)
		dir_rename(p);
	else if (what < 6)
		dir_stat(p, (unsigned)chance(p, NAME_DIRS + 1));
	else
		dir_list(p, (unsigned)chance(p, NAME_DIRS + 1));
}

void names_step(struct player *p)
{
	uint64_t what = chance(p, 32);

	if (what < 6)
		name_create(p);
	else if (what < 9)
		name_unlink(p, draw_name(p));
	else if (what < 12)
		name_rename(p);
	else if (what < 14)
		name_link(p);
	else if (what < 19)
		name_stat(p, draw_name(p));
	else if (what < 21)
		name_open(p);
	else if (what < 26)
		held_step(p);
	else
		dir_step(p);
}

/* Looks at each name, and at the file behind it. */
static void look_at_name(struct player *p, struct name name)
{
	struct held_file f;

	name_stat(p, name);
	f.fd = open_held(p, name, &f.ino);
	if (f.fd < 0)
		return;
	for (uint64_t cell = 0; cell < HELD_CELLS; cell++)
		held_read(p, &f, cell);
	close(f.fd);
}

void names_rest(struct player *p)
{
	for (unsigned i = 0; i < HELD; i++) {
		if (p->held[i].fd < 0)
			continue;
		held_stat(p, &p->held[i]);
		for (uint64_t cell = 0; cell < HELD_CELLS; cell++)
			held_read(p, &p->held[i], cell);
	}
	for (unsigned d = 0; p->reads_all && d <= NAME_DIRS; d++) {
		dir_stat(p, d);
		dir_list(p, d);
		for (unsigned f = 0; f < NAME_FILES; f++)
			look_at_name(p, (struct name){.dir = (uint8_t)d, .file = (uint8_t)f});
	}
}
