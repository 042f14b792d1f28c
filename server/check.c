/* check.c - see check.h. */
#include "server/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/util.h"
#include "server/extents.h"
#include "server/inode.h"
#include "server/meta_internal.h"
#include "server/reaper.h"

enum { PAGE_IN_FILE = PAGE_DIRTY + 1 };

static const char *const state_names[] = {
	[PAGE_FREE] = "free",
	[PAGE_GRANTED] = "granted",
	[PAGE_DIRTY] = "dirty",
	[PAGE_IN_FILE] = "in a file",
};

/* Numbers of inodes, collected and then counted. */
struct inos {
	uint64_t *v;
	size_t n, room;
};

struct check {
	struct meta *m;
	struct volume *v;
	void (*report)(const char *line, void *arg);
	void *arg;
	uint64_t nproblems;
	uint8_t *states;     /* [npages] of the export: enum page_state or PAGE_IN_FILE */
	struct inos named;   /* an inode once for each of its names */
	struct inos parents; /* a directory once for each directory in it */
	uint64_t inodes, symlinks, orphans, reap_files, reap_pages;
};

static void problem(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void problem(struct check *c, const char *format, ...)
{
	char line[256];
	int len = snprintf(line, sizeof(line), "export %s: ", c->v->name);
	va_list args;

	va_start(args, format);
	vsnprintf(line + len, sizeof(line) - (size_t)len, format, args);
	va_end(args);
	c->nproblems++;
	if (c->report)
		c->report(line, c->arg);
}

static void expect(struct check *c, const char *what, uint64_t have, uint64_t want)
{
	if (have != want)
		problem(c, "%s: %" PRIu64 ", but %" PRIu64 " were found", what, have, want);
}

/* ---- collected numbers ----------------------------------------------------------------------- */

static int inos_add(struct inos *list, uint64_t ino)
{
	if (list->n == list->room) {
		size_t room = list->room ? list->room * 2 : 1024;
		uint64_t *v = realloc(list->v, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		list->v = v;
		list->room = room;
	}
	list->v[list->n++] = ino;
	return 0;
}

static int compare_inos(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void inos_sort(struct inos *list)
{
	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), compare_inos);
}

static size_t first_not_below(const struct inos *list, uint64_t ino)
{
	size_t low = 0, high = list->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (list->v[mid] < ino)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint64_t inos_count(const struct inos *list, uint64_t ino)
{
	return first_not_below(list, ino + 1) - first_not_below(list, ino);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void mark(struct check *c, struct page_run run, uint8_t state)
{
	const struct space *sp = &c->v->space;

	if (run.region >= sp->nregions || !run.npages ||
		!range_within(run.page, run.npages, space_region_pages(sp, run.region))) {
		problem(c, "pages %" PRIu32 "+%" PRIu32 " of region %u do not exist", run.page,
			run.npages, run.region);
		return;
	}
	for (uint32_t i = 0; i < run.npages; i++) {
		uint8_t *at = &c->states[run.region * sp->region_pages + run.page + i];

		if (*at)
			problem(c, "page %" PRIu32 " of region %u is %s and %s", run.page + i,
				run.region, state_names[*at], state_names[state]);
		*at = state;
	}
}

static int check_runs(struct check *c)
{
	struct space *sp = &c->v->space;
	uint64_t at = 0, session, sum[PAGE_DIRTY + 1] = {0};
	enum page_state state;
	struct page_run run;
	int err;

	while (!(err = space_stored_run(sp, &at, &run, &state, &session))) {
		mark(c, run, (uint8_t)state);
		sum[state] += run.npages;
	}
	expect(c, "free pages", sp->now.free, sum[PAGE_FREE]);
	expect(c, "granted pages", sp->now.granted, sum[PAGE_GRANTED]);
	expect(c, "dirty pages", sp->now.dirty, sum[PAGE_DIRTY]);
	return err == -ENOENT ? 0 : err;
}

static void check_all_marked(struct check *c)
{
	uint64_t lost = 0;

	for (uint64_t i = 0; i < c->v->space.npages; i++)
		lost += c->states[i] == 0;
	if (lost)
		problem(c, "%" PRIu64 " pages are in no state", lost);
}

/* ---- inodes ---------------------------------------------------------------------------------- */

/* What the extents of an inode come to. */
struct sums {
	uint64_t end; /* of the last one seen: the next must not begin before it */
	uint64_t nextents, npages, hidden;
};

static void add_extent(
	struct check *c, const struct inode *i, const struct extent *e, struct sums *sums)
{
	if (e->fpage < sums->end)
		problem(c, "inode %" PRIu64 ": extents overlap at page %" PRIu64, i->attr.ino,
			e->fpage);
	sums->end = e->fpage + e->npages;
	mark(c, page_run_of(e), PAGE_IN_FILE);
	if (e->fpage >= i->cut) {
		sums->hidden += e->npages;
		return;
	}
	sums->nextents++;
	sums->npages += e->npages;
}

/* A dead inode's pages all count as hidden. */
static void bury(const struct inode *i, struct sums *sums)
{
	if (!(i->flags & INODE_DEAD))
		return;
	sums->hidden += sums->npages;
	sums->npages = 0;
}

static int sum_extents(struct check *c, const struct inode *i, struct sums *sums)
{
	struct inode whole = *i;
	struct extent e;
	uint64_t from = 0;
	int err;

	if (i->flags & INODE_DEAD)
		whole.cut = NO_CUT; /* what its record has is not hidden by the cut */
	for (uint32_t n = 0; n < inode_nhead(i); n++)
		add_extent(c, &whole, &i->head[n], sums);
	if (i->flags & INODE_DEAD)
		sums->end = 0;
	while (!(err = extents_stored_at(c->v, i, from, &e))) {
		add_extent(c, i, &e, sums);
		from = e.fpage + 1;
	}
	bury(i, sums);
	return err == -ENOENT ? 0 : err;
}

static int check_extents(struct check *c, const struct inode *i)
{
	struct reap_record record = {0};
	struct sums sums = {0};
	int err = sum_extents(c, i, &sums);

	if (!err && i->flags & INODE_REAPING)
		err = reap_load(c->v, i->key, &record);
	if (err)
		return err;
	if (sums.nextents != i->nextents || sums.npages != i->attr.npages)
		problem(c,
			"inode %" PRIu64 " says %" PRIu32 " extents of %" PRIu64
			" pages, and has %" PRIu64 " of %" PRIu64,
			i->attr.ino, i->nextents, i->attr.npages, sums.nextents, sums.npages);
	if (sums.hidden != record.npages)
		problem(c,
			"inode %" PRIu64 ": %" PRIu64
			" pages are to be reaped, and it has %" PRIu64,
			i->attr.ino, record.npages, sums.hidden);
	c->reap_pages += record.npages;
	c->reap_files += (i->flags & INODE_REAPING) != 0;
	return 0;
}

static void check_links(struct check *c, const struct inode *i)
{
	uint64_t ino = i->attr.ino, names = inos_count(&c->named, ino);
	bool gone = i->attr.nlink == 0;
	uint64_t links = names;

	if (inode_is_dir(i) && !gone) {
		if (names != (ino != ROOT_INO))
			problem(c, "directory %" PRIu64 " has %" PRIu64 " names", ino, names);
		links = 2 + inos_count(&c->parents, ino);
	}
	if (i->attr.nlink != links)
		problem(c, "inode %" PRIu64 " says %" PRIu32 " links, and has %" PRIu64, ino,
			i->attr.nlink, links);
	if (i->flags & INODE_DEAD && !gone)
		problem(c, "inode %" PRIu64 " is dead and has links", ino);
	if (gone && !(i->flags & INODE_DEAD))
		c->orphans++;
}

static int check_target(struct check *c, const struct inode *i)
{
	struct store_val val;
	int err;

	if (!S_ISLNK(i->attr.mode))
		return 0;
	c->symlinks++;
	err = store_get(c->m->store, STORE_SYMLINK, STORE_KEY(i->key), &val);
	if (err == -ENOENT || (!err && val.len != i->attr.size)) {
		problem(c, "symlink %" PRIu64 " has no target, or another than it says",
			i->attr.ino);
		return 0;
	}
	return err;
}

static int check_inodes(struct check *c)
{
	struct store_key key, start = STORE_KEY(inode_key(c->v, 0));
	struct store_val val;
	struct inode inode;
	int err = store_seek(c->m->store, STORE_INODE, start, &key, &val);

	while (!err && key.hi >> INO_BITS == c->v->id) {
		err = inode_load_any(c->v, ino_of_key(key.hi), &inode);
		if (!err)
			err = check_extents(c, &inode);
		if (!err)
			err = check_target(c, &inode);
		if (err)
			return err;
		check_links(c, &inode);
		if (inode.attr.ino >= c->v->now.next_ino)
			problem(c, "inode %" PRIu64 " is not to be used yet", inode.attr.ino);
		c->inodes++;
		err = store_next(c->m->store, STORE_INODE, &key, &val);
	}
	return err == -ENOENT ? 0 : err;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int check_name(struct check *c, uint64_t dir, const struct dirent_entry *e)
{
	struct inode inode;
	int err = inode_load(c->v, e->ino, &inode);

	if (err == -ESTALE) {
		problem(c, "'%.*s' in directory %" PRIu64 " names no inode", e->name.len, e->name.s,
			dir);
		return 0;
	}
	if (err)
		return err;
	if (e->type != dirent_type(inode.attr.mode) ||
		(inode_is_dir(&inode) && inode.parent != dir))
		problem(c, "'%.*s' in directory %" PRIu64 " has another type or parent",
			e->name.len, e->name.s, dir);
	err = inos_add(&c->named, e->ino);
	if (!err && inode_is_dir(&inode))
		err = inos_add(&c->parents, dir);
	return err;
}

static int check_names(struct check *c)
{
	struct store_key key, start = STORE_KEY(inode_key(c->v, 0));
	struct dirent_entry e;
	struct store_val val;
	int err = store_seek(c->m->store, STORE_DIRENT, start, &key, &val);

	while (!err && key.hi >> INO_BITS == c->v->id) {
		err = dirent_decode(c->v, key, &val, &e);
		if (!err)
			err = check_name(c, ino_of_key(key.hi), &e);
		if (err)
			return err;
		err = store_next(c->m->store, STORE_DIRENT, &key, &val);
	}
	inos_sort(&c->named);
	inos_sort(&c->parents);
	return err == -ENOENT ? 0 : err;
}

/* ---- records that belong to an inode --------------------------------------------------------- */

static int count_of_table(struct check *c, enum store_table table, uint64_t *n)
{
	struct store_key key;
	int err = store_seek(c->m->store, table, STORE_KEY(0), &key, NULL);

	*n = 0;
	while (!err) {
		uint64_t inode = table == STORE_ORPHAN ? key.lo : key.hi;

		*n += inode >> INO_BITS == c->v->id;
		err = store_next(c->m->store, table, &key, NULL);
	}
	return err == -ENOENT ? 0 : err;
}

static int check_totals(struct check *c)
{
	uint64_t orphans, symlinks;
	int err = count_of_table(c, STORE_ORPHAN, &orphans);

	if (!err)
		err = count_of_table(c, STORE_SYMLINK, &symlinks);
	if (err)
		return err;
	expect(c, "inodes", c->v->now.inodes, c->inodes);
	expect(c, "targets of symlinks", symlinks, c->symlinks);
	expect(c, "unlinked inodes kept", orphans, c->orphans);
	expect(c, "files to be reaped", c->v->now.reap_files, c->reap_files);
	expect(c, "pages to be reaped", c->v->now.reap_pages, c->reap_pages);
	return 0;
}

static int check_volume(struct check *c)
{
	int err;

	c->states = calloc(c->v->space.npages, 1);
	if (!c->states)
		return -ENOMEM;
	err = check_runs(c);
	if (!err)
		err = check_names(c);
	if (!err)
		err = check_inodes(c);
	if (!err)
		err = check_totals(c);
	if (!err)
		check_all_marked(c);
	free(c->states);
	free(c->named.v);
	free(c->parents.v);
	return err;
}

int meta_check(
	struct meta *m, void (*report)(const char *line, void *arg), void *arg, uint64_t *nproblems)
{
	int err = store_begin_read(m->store);

	*nproblems = 0;
	if (err)
		return err;
	for (unsigned i = 0; !err && i < m->nvolumes; i++) {
		struct check c = {.m = m, .v = &m->volumes[i], .report = report, .arg = arg};

		err = check_volume(&c);
		*nproblems += c.nproblems;
	}
	store_abort(m->store);
	return err;
}
