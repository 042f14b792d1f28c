/* store_verify.c - see store_verify.h. The layout is that of LMDB 0.9 (its mdb.c) on a machine of
 * 64 bits, little-endian. The file is never trusted: each offset is checked against its bounds
 * before use.
 */
#include "server/store/store_verify.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "server/store/store_format.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(size_t) == 8,
	"LMDB's file depends on the machine; this is the one layout that is known here");

/* ---- the layout ------------------------------------------------------------------------------ */

#define META_MAGIC UINT32_C(0xBEEFC0DE)
#define NO_PAGE    UINT64_MAX

enum {
	META_PAGES = 2,
	META_VERSION = 1,
	PAGE_BRANCH = 1, /* flags of a page */
	PAGE_LEAF = 2,
	PAGE_OVERFLOW = 4,
	PAGE_META = 8,
	NODE_BIG = 1, /* flags of a leaf's node: the value is on pages of its own; the node is a
		       * table */
	NODE_TABLE = 2,
	TREE_INTEGER_KEYS = 8, /* flags of a tree */
	DEPTH_MAX = 32,
	NODE_KEY_MAX = 511,
	LMDB_PAGE_BYTES_MAX = 0x8000,
};

struct page { /* its header; in a leaf or branch the offsets of its nodes follow */
	uint64_t number;
	uint16_t pad, flags;
	union {
		struct {
			uint16_t lower, upper; /* where free space begins and ends */
		};
		uint32_t npages; /* of an overflow run */
	};
};
enum { HEADER_BYTES = sizeof(struct page) };

struct node {
	uint16_t low, high; /* of the value's length, or of the child's page number */
	uint16_t flags;     /* of a branch: upper bits of the page number */
	uint16_t klen;
	uint8_t bytes[]; /* key, value */
};

struct tree_record {
	uint32_t pad;
	uint16_t flags, depth;
	uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};

struct meta_page {
	struct page page; /* its header */
	uint32_t magic, version;
	uint64_t address, map_bytes;
	struct tree_record free, main; /* free.pad: bytes of a page */
	uint64_t last_page, txnid;
};
_Static_assert(sizeof(struct meta_page) == HEADER_BYTES + 136, "as LMDB has it");

/* ---- one verification ------------------------------------------------------------------------ */

struct verify {
	const uint8_t *map;
	uint64_t page_bytes;
	uint64_t npages;  /* as the last transaction knows them */
	uint64_t *placed; /* a bit a page: it is in a tree, or free */
	uint64_t nplaced;
	uint64_t txnid;
	struct tree_record tables[STORE_TABLES];
	bool has_table[STORE_TABLES];
	bool has_strange; /* there is a table that is none of ours */
	char *why;
	size_t whylen;
	uint16_t node_bytes[LMDB_PAGE_BYTES_MAX / 2]; /* of the node at offset / 2 */
};

struct bytes {
	const uint8_t *at;
	size_t len;
};

/* A tree that is walked, in the order of its keys. */
struct verify_walk {
	const char *name;
	const struct tree_record *record;
	size_t klen; /* 0: any */
	bool integer_keys;
	bool lone_child; /* a branch may have one child: LMDB relies on two but in its own list */
	int table;       /* of ours, or -1 */
	int (*take)(struct verify *v, struct verify_walk *w, const struct bytes *key,
		uint16_t flags, const struct bytes *val);
	struct tree_record found;
	struct bytes last;  /* key */
	bool last_is_bound; /* of a branch: the next key may be the same */
	struct step {
		const struct page *page;
		unsigned next, n;
	} stack[DEPTH_MAX];
	unsigned depth;
};

static int damage(struct verify *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int damage(struct verify *v, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(v->why, v->whylen, format, args);
	va_end(args);
	return -EBADMSG;
}

static const struct page *page_at(const struct verify *v, uint64_t number)
{
	return (const struct page *)(const void *)(v->map + number * v->page_bytes);
}

/* Notes that the pages are in use by `name`; no page may have two places. */
static int store_verify_place(struct verify *v, uint64_t number, uint64_t npages, const char *name)
{
	if (number < META_PAGES || !range_within(number, npages, v->npages))
		return damage(v, "%s leads to page %" PRIu64 "+%" PRIu64 " of %" PRIu64, name,
			number, npages, v->npages);
	for (uint64_t i = number; i < number + npages; i++) {
		uint64_t bit = UINT64_C(1) << (i % 64);

		if (v->placed[i / 64] & bit)
			return damage(
				v, "page %" PRIu64 " is in two places, one of them in %s", i, name);
		v->placed[i / 64] |= bit;
	}
	v->nplaced += npages;
	return 0;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static uint16_t node_offset(const struct page *p, unsigned i)
{
	return ((const uint16_t *)(const void *)(p + 1))[i];
}

static const struct node *node_at(const struct page *p, unsigned i)
{
	return (const struct node *)(const void *)((const uint8_t *)p + node_offset(p, i));
}

static uint64_t node_child(const struct node *n)
{
	return n->low | (uint64_t)n->high << 16 | (uint64_t)n->flags << 32;
}

static uint64_t node_value_len(const struct node *n)
{
	return n->low | (uint64_t)n->high << 16;
}

static uint64_t node_len(const struct node *n, bool branch)
{
	uint64_t len = sizeof(*n) + n->klen;

	if (!branch)
		len += n->flags & NODE_BIG ? sizeof(uint64_t) : node_value_len(n);
	return len + (len & 1);
}

/* Nodes lie within the page, one beside the other, from `upper` to the page's end. */
static int check_nodes(
	struct verify *v, const struct verify_walk *w, const struct page *p, unsigned n)
{
	bool branch = p->flags == PAGE_BRANCH;
	uint64_t at = p->upper;

	memset(v->node_bytes, 0, v->page_bytes / 2 * sizeof(v->node_bytes[0]));
	for (unsigned i = 0; i < n; i++) {
		uint64_t offset = node_offset(p, i), len;

		if (offset % 2 || offset < p->upper ||
			!range_within(offset, sizeof(struct node), v->page_bytes))
			return damage(v, "page %" PRIu64 " of %s: node %u is outside", p->number,
				w->name, i);
		len = node_len(node_at(p, i), branch);
		if (node_at(p, i)->klen > NODE_KEY_MAX ||
			!range_within(offset, len, v->page_bytes) || v->node_bytes[offset / 2])
			return damage(v, "page %" PRIu64 " of %s: node %u has a wrong length",
				p->number, w->name, i);
		v->node_bytes[offset / 2] = (uint16_t)len;
	}
	while (at < v->page_bytes && v->node_bytes[at / 2])
		at += v->node_bytes[at / 2];
	if (at != v->page_bytes)
		return damage(v, "page %" PRIu64 " of %s: its nodes overlap or leave gaps",
			p->number, w->name);
	return 0;
}

static int store_verify_compare(
	const struct verify_walk *w, const struct bytes *a, const struct bytes *b)
{
	uint64_t x, y;
	int order;

	if (w->integer_keys) {
		memcpy(&x, a->at, sizeof(x));
		memcpy(&y, b->at, sizeof(y));
		return x < y ? -1 : x > y;
	}
	order = memcmp(a->at, b->at, min_u64(a->len, b->len));
	return order ? order : (a->len > b->len) - (a->len < b->len);
}

static int check_key(
	struct verify *v, struct verify_walk *w, const struct page *p, const struct node *n)
{
	struct bytes key = {n->bytes, n->klen};
	bool bound = p->flags == PAGE_BRANCH;
	int order;

	if (!key.len || (w->klen && key.len != w->klen))
		return damage(v, "page %" PRIu64 " of %s: a key of %zu bytes", p->number, w->name,
			key.len);
	order = w->last.at ? store_verify_compare(w, &key, &w->last) : 1;
	if (order < 0 || (order == 0 && (bound || !w->last_is_bound)))
		return damage(
			v, "page %" PRIu64 " of %s: keys are out of order", p->number, w->name);
	w->last = key;
	w->last_is_bound = bound;
	return 0;
}

/* ---- pages of a tree ------------------------------------------------------------------------- */

/* Enters a page with nodes. It must be of the kind that its level demands, and whole. */
static int store_verify_enter(struct verify *v, struct verify_walk *w, uint64_t number)
{
	bool leaf = w->depth + 1 == w->record->depth;
	const struct page *p;
	unsigned n;
	int err = store_verify_place(v, number, 1, w->name);

	if (err)
		return err;
	p = page_at(v, number);
	if (p->number != number || p->flags != (leaf ? PAGE_LEAF : PAGE_BRANCH))
		return damage(v, "page %" PRIu64 " is not the %s of %s that it must be", number,
			leaf ? "leaf" : "branch", w->name);
	if (p->lower % 2 || p->upper % 2 || p->lower <= HEADER_BYTES || p->lower > p->upper ||
		p->upper > v->page_bytes)
		return damage(v, "page %" PRIu64 " of %s: free space from %u to %u", number,
			w->name, p->lower, p->upper);
	n = (p->lower - HEADER_BYTES) / 2u;
	if (!leaf && n < 2 && !w->lone_child)
		return damage(
			v, "page %" PRIu64 " of %s: a branch with one child", number, w->name);
	if (leaf)
		w->found.leaf_pages++;
	else
		w->found.branch_pages++;
	w->stack[w->depth++] = (struct step){p, 0, n};
	return check_nodes(v, w, p, n);
}

static int descend(struct verify *v, struct verify_walk *w, struct step *s)
{
	const struct node *n = node_at(s->page, s->next);
	/* LMDB neither reads the first child's key nor keeps it up. */
	int err = s->next ? check_key(v, w, s->page, n) : 0;

	s->next++;
	return err ? err : store_verify_enter(v, w, node_child(n));
}

static int find_value(struct verify *v, struct verify_walk *w, const struct page *p,
	const struct node *n, struct bytes *val)
{
	const struct page *run;
	uint64_t number;
	int err;

	*val = (struct bytes){n->bytes + n->klen, node_value_len(n)};
	if (!(n->flags & NODE_BIG))
		return 0;
	memcpy(&number, val->at, sizeof(number));
	if (number < META_PAGES || number >= v->npages)
		return damage(v, "page %" PRIu64 " of %s: a value on page %" PRIu64 " of %" PRIu64,
			p->number, w->name, number, v->npages);
	run = page_at(v, number);
	if (run->number != number || run->flags != PAGE_OVERFLOW ||
		run->npages < (HEADER_BYTES + val->len + v->page_bytes - 1) / v->page_bytes)
		return damage(v, "page %" PRIu64 " is not the value of %s that it must be", number,
			w->name);
	err = store_verify_place(v, number, run->npages, w->name);
	w->found.overflow_pages += run->npages;
	val->at = (const uint8_t *)run + HEADER_BYTES;
	return err;
}

static int take_leaf(struct verify *v, struct verify_walk *w, struct step *s)
{
	for (; s->next < s->n; s->next++) {
		const struct node *n = node_at(s->page, s->next);
		struct bytes key = {n->bytes, n->klen}, val;
		int err = check_key(v, w, s->page, n);

		if (!err)
			err = find_value(v, w, s->page, n, &val);
		if (!err)
			err = w->take(v, w, &key, n->flags, &val);
		if (err)
			return err;
		w->found.entries++;
	}
	return 0;
}

static int check_counts(struct verify *v, const struct verify_walk *w)
{
	const struct tree_record *want = w->record, *have = &w->found;

	if (want->branch_pages == have->branch_pages && want->leaf_pages == have->leaf_pages &&
		want->overflow_pages == have->overflow_pages && want->entries == have->entries)
		return 0;
	return damage(v,
		"%s has %" PRIu64 "/%" PRIu64 "/%" PRIu64 " pages and %" PRIu64
		" records, not %" PRIu64 "/%" PRIu64 "/%" PRIu64 " and %" PRIu64,
		w->name, have->branch_pages, have->leaf_pages, have->overflow_pages, have->entries,
		want->branch_pages, want->leaf_pages, want->overflow_pages, want->entries);
}

static int walk_tree(struct verify *v, struct verify_walk *w)
{
	bool empty = w->record->root == NO_PAGE;
	int err;

	if (w->record->depth > DEPTH_MAX || empty != (w->record->depth == 0))
		return damage(v, "%s is %u levels deep", w->name, w->record->depth);
	err = empty ? 0 : store_verify_enter(v, w, w->record->root);
	while (!err && w->depth) {
		struct step *s = &w->stack[w->depth - 1];

		if (w->depth == w->record->depth)
			err = take_leaf(v, w, s);
		if (!err && s->next == s->n)
			w->depth--;
		else if (!err)
			err = descend(v, w, s);
	}
	return err ? err : check_counts(v, w);
}

/* ---- the trees ------------------------------------------------------------------------------- */

/* A record of the list of free pages: {count, pages, descending}, under the transaction that freed
 * them. There may be room after the last one. */
static int take_free(struct verify *v, struct verify_walk *w, const struct bytes *key,
	uint16_t flags, const struct bytes *val)
{
	uint64_t txnid, count, number, above = NO_PAGE;

	memcpy(&txnid, key->at, sizeof(txnid));
	if (flags & ~NODE_BIG || val->len < sizeof(count) || val->len % sizeof(number))
		return damage(v, "the list of free pages has a record of %zu bytes", val->len);
	memcpy(&count, val->at, sizeof(count));
	if (count >= val->len / sizeof(number) || !txnid || txnid > v->txnid)
		return damage(v,
			"the list of free pages has %" PRIu64 " of transaction %" PRIu64
			" in a record of %zu bytes",
			count, txnid, val->len);
	for (uint64_t i = 1; i <= count; i++, above = number) {
		int err;

		memcpy(&number, val->at + i * sizeof(number), sizeof(number));
		if (number >= above)
			return damage(v, "the list of free pages is out of order at page %" PRIu64,
				number);
		err = store_verify_place(v, number, 1, w->name);
		if (err)
			return err;
	}
	return 0;
}

static int find_table(const struct bytes *name)
{
	for (int i = 0; i < STORE_TABLES; i++)
		if (strlen(store_table_names[i]) == name->len &&
			memcmp(store_table_names[i], name->at, name->len) == 0)
			return i;
	return -1;
}

/* A table that is none of ours may be of another version: the superblock tells which. */
static int take_table(struct verify *v, struct verify_walk *w, const struct bytes *key,
	uint16_t flags, const struct bytes *val)
{
	int table = find_table(key);

	if (flags != NODE_TABLE || val->len != sizeof(v->tables[0]))
		return damage(v, "%s has something else than tables", w->name);
	if (table < 0) {
		v->has_strange = true;
		return 0;
	}
	memcpy(&v->tables[table], val->at, sizeof(v->tables[table]));
	v->has_table[table] = true;
	return 0;
}

/* The first version had no sums. So its number is read before a missing sum is an error. */
static int check_super(struct verify *v, const struct bytes *super, bool whole)
{
	uint32_t version;

	if (super->len < STORE_MAGIC_BYTES + sizeof(version) ||
		memcmp(super->at, STORE_MAGIC, STORE_MAGIC_BYTES) != 0)
		return damage(v, "the superblock is unreadable");
	memcpy(&version, super->at + STORE_MAGIC_BYTES, sizeof(version));
	if (version == STORE_VERSION || version == STORE_VERSION_WIDE ||
		(version != STORE_VERSION_NO_SUMS && !whole))
		return 0;
	snprintf(v->why, v->whylen, "store of version %" PRIu32 "; this server reads %d and %d",
		version, STORE_VERSION_WIDE, STORE_VERSION);
	return -EPROTONOSUPPORT;
}

static int take_record(struct verify *v, struct verify_walk *w, const struct bytes *key,
	uint16_t flags, const struct bytes *val)
{
	enum store_table table = (enum store_table)w->table;
	struct store_key k = store_key_unpack(table, key->at);
	struct store_val stored = {val->at, val->len};
	bool whole = store_val_check(table, &k, &stored);

	if (table == STORE_META && k.hi == 0) {
		int err = check_super(v, val, whole);

		if (err)
			return err;
	}
	if (flags & ~NODE_BIG || !whole)
		return damage(v, "record %" PRIx64 "/%" PRIx64 " of %s was overwritten", k.hi, k.lo,
			w->name);
	return 0;
}

static int verify_free(struct verify *v, const struct meta_page *m)
{
	struct verify_walk w = {
		.name = "the list of free pages",
		.record = &m->free,
		.klen = sizeof(uint64_t),
		.integer_keys = true,
		.lone_child = true,
		.table = -1,
		.take = take_free,
	};

	return walk_tree(v, &w);
}

static int verify_main(struct verify *v, const struct meta_page *m)
{
	struct verify_walk w = {
		.name = "the list of tables",
		.record = &m->main,
		.table = -1,
		.take = take_table,
	};

	if (m->main.flags)
		return damage(v, "%s has flags %#x", w.name, m->main.flags);
	return walk_tree(v, &w);
}

static int verify_table(struct verify *v, enum store_table table)
{
	char name[32];
	struct verify_walk w = {
		.name = name,
		.record = &v->tables[table],
		.klen = store_key_bytes(table),
		.integer_keys = table < STORE_PAIRS,
		.table = (int)table,
		.take = take_record,
	};

	snprintf(name, sizeof(name), "table %s", store_table_names[table]);
	if (!v->has_table[table])
		return damage(v, "%s is missing", name);
	if (w.record->flags != (w.integer_keys ? TREE_INTEGER_KEYS : 0))
		return damage(v, "%s has flags %#x", name, w.record->flags);
	return walk_tree(v, &w);
}

/* The superblock's table comes first: it tells the version. */
static int verify_tables(struct verify *v, const struct meta_page *m)
{
	int err = 0;

	/* A first start that was killed has made none. */
	for (int i = 0; !err && m->main.entries && i < STORE_TABLES; i++) {
		err = verify_table(v, (enum store_table)i);
		if (!err && v->has_strange)
			err = damage(v, "the list of tables has one that is none of ours");
	}
	return err;
}

/* ---- the meta pages -------------------------------------------------------------------------- */

static uint64_t lmdb_page_bytes(void)
{
	return min_u64((uint64_t)sysconf(_SC_PAGESIZE), LMDB_PAGE_BYTES_MAX);
}

/* Checks that hold for the older meta page, too, which a commit may have been about to replace. */
static int check_meta(struct verify *v, unsigned i)
{
	const struct meta_page *m = (const void *)page_at(v, i);

	if (m->page.number != i || m->page.flags != PAGE_META || m->magic != META_MAGIC ||
		m->version != META_VERSION || m->free.pad != v->page_bytes ||
		!(m->free.flags & TREE_INTEGER_KEYS) || m->txnid % META_PAGES != (m->txnid ? i : 0))
		return damage(v, "meta page %u is none of LMDB 0.9 with pages of %" PRIu64, i,
			v->page_bytes);
	return 0;
}

/* The newer meta page is the current one. The other is of the transaction before. */
static int choose_meta(struct verify *v, const struct meta_page **out)
{
	const struct meta_page *m[META_PAGES];
	unsigned newer;

	for (unsigned i = 0; i < META_PAGES; i++) {
		int err = check_meta(v, i);

		if (err)
			return err;
		m[i] = (const void *)page_at(v, i);
	}
	newer = m[1]->txnid > m[0]->txnid;
	if (m[newer]->txnid && m[newer]->txnid - m[!newer]->txnid != 1)
		return damage(v, "the meta pages are of transactions %" PRIu64 " and %" PRIu64,
			m[0]->txnid, m[1]->txnid);
	*out = m[newer];
	return 0;
}

/* Before its first transaction a store has not been given its length yet. */
static int check_length(struct verify *v, const struct meta_page *m, uint64_t len)
{
	uint64_t have = len / v->page_bytes;

	if (m->last_page + 1 < META_PAGES || m->last_page >= have)
		return damage(v, "it ends at page %" PRIu64 ", and has %" PRIu64 " in use", have,
			m->last_page + 1);
	if (m->txnid && (m->map_bytes > len || m->map_bytes % v->page_bytes))
		return damage(v, "it was cut short: %" PRIu64 " of %" PRIu64 " bytes are there",
			len, m->map_bytes);
	return 0;
}

static int verify_all(struct verify *v, uint64_t len)
{
	const struct meta_page *m = NULL;
	int err = choose_meta(v, &m);

	if (err)
		return err;
	assert(m);
	err = check_length(v, m, len);
	if (err)
		return err;
	v->txnid = m->txnid;
	v->npages = m->last_page + 1;
	v->placed = calloc(div_round_up(v->npages, 64), sizeof(*v->placed));
	if (!v->placed)
		return -ENOMEM;
	err = verify_main(v, m);
	if (!err)
		err = verify_tables(v, m);
	if (!err)
		err = verify_free(v, m);
	if (!err && v->nplaced != v->npages - META_PAGES)
		err = damage(v, "%" PRIu64 " pages are neither in use nor free",
			v->npages - META_PAGES - v->nplaced);
	free(v->placed);
	return err;
}

int store_verify_bytes(const void *map, uint64_t len, char *why, size_t whylen)
{
	struct verify *v = calloc(1, sizeof(*v));
	int err;

	if (!v)
		return -ENOMEM;
	v->map = map;
	v->page_bytes = lmdb_page_bytes();
	v->why = why;
	v->whylen = whylen;
	err = len < META_PAGES * v->page_bytes
		      ? damage(v, "it was cut short: %" PRIu64 " bytes are there", len)
		      : verify_all(v, len);
	free(v);
	return err;
}

int store_verify(const char *path, char *why, size_t whylen)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *map;
	int err;

	if (fd < 0 || fstat(fd, &st) != 0) {
		err = -errno;
		snprintf(why, whylen, "can't read it: %s", errno_text(err));
		return err;
	}
	if (st.st_size == 0)
		return -ENOENT;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		err = -errno;
		snprintf(why, whylen, "can't map it: %s", errno_text(err));
		return err;
	}
	err = store_verify_bytes(map, (uint64_t)st.st_size, why, whylen);
	munmap(map, (size_t)st.st_size);
	return err;
}
