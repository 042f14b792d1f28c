/* check.c - see check.h. */
#include "server/check/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/printable.h"
#include "common/base/util.h"
#include "server/check/check_internal.h"
#include "server/store/store_format.h"

/* ---- reporting ------------------------------------------------------------------------------- */

void check_problem(struct check *c, const char *format, ...)
{
	char line[640];
	int len = c->v ? snprintf(line, sizeof(line), "export %s: ", c->v->name)
		       : snprintf(line, sizeof(line), "store: ");
	va_list args;

	va_start(args, format);
	vsnprintf(line + len, sizeof(line) - (size_t)len, format, args);
	va_end(args);
	c->nproblems++;
	c->report->problem(printable_clean_string(line), c->report->arg);
}

void check_progress(struct check *c, const char *what)
{
	char text[128];

	if (!c->report->progress)
		return;
	if (c->v)
		snprintf(text, sizeof(text), "export %s: %s", c->v->name, what);
	else
		snprintf(text, sizeof(text), "%s", what);
	c->report->progress(text, c->report->arg);
}

/* ---- collected numbers ----------------------------------------------------------------------- */

int check_list_add(struct check_list *list, uint64_t number)
{
	if (list->n == list->room) {
		size_t room = list->room ? list->room * 2 : 1024;
		uint64_t *v = realloc(list->v, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		list->v = v;
		list->room = room;
	}
	list->v[list->n++] = number;
	return 0;
}

static int check_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void check_list_sort(struct check_list *list)
{
	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), check_compare);
}

size_t check_list_find(const struct check_list *list, uint64_t number)
{
	size_t low = 0, high = list->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (list->v[mid] < number)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

uint64_t check_list_count(const struct check_list *list, uint64_t number)
{
	return check_list_find(list, number + 1) - check_list_find(list, number);
}

bool check_list_has(const struct check_list *list, uint64_t number)
{
	size_t at = check_list_find(list, number);

	return at < list->n && list->v[at] == number;
}

/* ---- walks ----------------------------------------------------------------------------------- */

int check_each(struct check *c, enum store_table table, uint64_t from, uint64_t to,
	int (*fn)(struct check *c, struct store_key key, const struct store_val *val))
{
	struct store_key key = {0}, last = {0};
	struct store_val val;
	bool any = false;
	int err = store_seek(c->m->store, table, STORE_KEY(from), &key, &val);

	while ((!err || err == -EBADMSG) && key.hi <= to) {
		/* If the walk itself fails it has no next record. */
		if (err && any && key.hi == last.hi && key.lo == last.lo)
			return err;
		if (!err)
			err = fn(c, key, &val);
		if (err == -EBADMSG)
			check_problem(c, "record %" PRIx64 "/%" PRIx64 " of table %s can't be read",
				key.hi, key.lo, store_table_names[table]);
		else if (err)
			return err;
		any = true;
		last = key;
		err = store_next(c->m->store, table, &key, &val);
	}
	return err == -ENOENT ? 0 : err;
}

int check_each_of_volume(struct check *c, enum store_table table,
	int (*fn)(struct check *c, struct store_key key, const struct store_val *val))
{
	return check_each(
		c, table, inode_key(c->v, 0), inode_key(c->v, ino_of_key(UINT64_MAX)), fn);
}

/* ---- records without an export --------------------------------------------------------------- */

static bool knows_export(struct check *c, uint64_t id)
{
	struct store_val val;

	return id && store_get(c->m->store, STORE_META, STORE_KEY(id), &val) != -ENOENT;
}

/* The keys of these tables all begin with an export's id. */
static int check_exports_of(struct check *c, enum store_table table)
{
	struct store_key key = {0};
	uint64_t from = 0, id;
	int err;

	while (!(err = store_seek(c->m->store, table, STORE_KEY(from), &key, NULL))) {
		id = key.hi >> INO_BITS;
		if (!knows_export(c, id))
			check_problem(c,
				"table %s has records of export %" PRIu64 ", which is not there",
				store_table_names[table], id);
		if (id == UINT16_MAX)
			return 0;
		from = (id + 1) << INO_BITS;
	}
	return err == -ENOENT ? 0 : err;
}

static int check_strangers(struct check *c)
{
	static const enum store_table tables[] = {STORE_INODE, STORE_SPACE, STORE_REAP,
		STORE_SYMLINK, STORE_DIRENT, STORE_EXTENT, STORE_XATTR, STORE_XVALUE, STORE_QUOTA,
		STORE_LEASE, STORE_LOCK};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(tables); i++)
		err = check_exports_of(c, tables[i]);
	return err;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void check_totals(struct check *c)
{
	const struct volume_counts *now = &c->v->now;

	if (now->inodes != c->inodes)
		check_problem(c, "its record says %" PRIu64 " inodes, and there are %" PRIu64,
			now->inodes, c->inodes);
	if (!c->m->inspected &&
		(now->reap_files != c->reap_files || now->reap_pages != c->reap_pages))
		check_problem(c,
			"%" PRIu64 " files of %" PRIu64 " pages are to be reaped, and %" PRIu64
			" of %" PRIu64 " were found",
			now->reap_files, now->reap_pages, c->reap_files, c->reap_pages);
}

static int check_records(struct check *c)
{
	int err = check_collect_sessions(c);

	if (!err)
		err = check_runs(c);
	if (!err)
		err = check_leases(c);
	if (!err)
		err = check_locks(c);
	if (!err)
		err = check_orphans(c);
	if (!err)
		err = check_names(c);
	if (!err)
		err = check_begin_quotas(c);
	if (!err)
		err = check_inodes(c);
	if (!err)
		err = check_quotas(c);
	return err ? err : check_tree(c);
}

static int check_volume(struct check *c)
{
	int err;

	c->states = calloc(c->v->space.npages, 1);
	err = c->states ? check_records(c) : -ENOMEM;
	if (!err) {
		check_totals(c);
		check_pages(c);
	}
	free(c->states);
	free(c->sessions.v);
	free(c->kept.v);
	free(c->named.v);
	free(c->subdirs.v);
	free(c->dirs.v);
	free(c->parents.v);
	return err;
}

int meta_check(struct meta *m, const struct check_report *report, uint64_t *nproblems)
{
	struct check all = {.m = m, .report = report};
	int err = store_begin_read(m->store);

	*nproblems = 0;
	if (err)
		return err;
	for (unsigned i = 0; !err && i < m->nvolumes; i++) {
		struct check c = {.m = m, .v = m->volumes[i], .report = report};

		if (!c.v->id)
			continue;
		err = check_volume(&c);
		all.nproblems += c.nproblems;
	}
	if (!err)
		err = check_sessions(&all);
	if (!err)
		err = check_strangers(&all);
	*nproblems = all.nproblems;
	store_abort(m->store);
	return err;
}
