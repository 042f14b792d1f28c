/* restore.c - see restore.h. First come the records, with places for all pages, then the bytes. */
#include "server/snapshot/restore.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "common/conf/conf.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/record/extents.h"
#include "server/record/inode.h"
#include "server/meta/meta_internal.h"
#include "server/meta/share.h"
#include "server/record/xattr.h"
#include "server/record/inode_record.h"

enum { BATCH_RECORDS = 32, ROOM_PER_RECORD = 6 };

/* The place where pages of the snapshot lie now. The array is sorted by first, once it is
 * complete. */
struct restore_place {
	uint64_t first;
	struct page_run run;
};

struct restoring {
	struct meta *m;
	struct volume *v;
	struct image_reader *image;
	const struct restore_watch *watch;
	const struct image_why *why;
	struct restore_place *places;
	size_t nplaces, places_room;
	uint64_t nplaced, nfilled; /* pages */
	unsigned nbatch;           /* changes in the open batch */
	bool new_cookies; /* the snapshot's cookies come from another hash than the store's */
	/* The file whose extents are being added; key 0: none. */
	struct stored_inode file;
};

static int fail_store(const struct restoring *r, int err)
{
	if (err == -ENOSPC)
		return image_fail(r->why, err,
			"the memory for metadata is too small: make metadata_reserve larger");
	return image_fail(r->why, err, "the store failed: %s", errno_text(err));
}

static int tick(const struct restoring *r, uint64_t done)
{
	int err = r->watch ? r->watch->tick(r->watch->arg, done, image_totals(r->image)->pages) : 0;

	return err ? image_fail(r->why, err, "it was interrupted") : 0;
}

static int fail_image(const struct restoring *r, const char *what, uint64_t ino)
{
	return image_fail(r->why, -EBADMSG, "the snapshot contradicts itself: %s of inode %llu",
		what, (unsigned long long)ino);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int table_is_empty(
	struct store *s, enum store_table table, uint64_t from, uint64_t end, bool *empty)
{
	struct store_key key;
	int err = store_seek(s, table, STORE_KEY(from), &key, NULL);

	*empty = err == -ENOENT || (!err && key.hi >= end);
	return err == -ENOENT ? 0 : err;
}

/* Whether there are no entries and no attributes, between two keys of inodes. */
static int has_no_names(struct store *s, uint64_t from, uint64_t end, bool *none)
{
	int err = table_is_empty(s, STORE_DIRENT, from, end, none);

	return err || !*none ? err : table_is_empty(s, STORE_XATTR, from, end, none);
}

static int check_target(const struct restoring *r)
{
	uint64_t first = inode_key(r->v, 0), end = first + (UINT64_C(1) << INO_BITS);
	bool none;
	int err = has_no_names(r->m->store, first, end, &none);

	if (err)
		return fail_store(r, err);
	if (!none || r->v->now.inodes > 1 || r->v->space.now.free != r->v->space.npages)
		return image_fail(r->why, -EEXIST,
			"export '%s' has files, attributes or a session: a snapshot is restored "
			"into an empty export",
			r->v->name);
	return 0;
}

static int check_size(const struct restoring *r)
{
	uint64_t have = r->v->space.npages, need = image_totals(r->image)->pages;
	char have_text[32], need_text[32];

	if (need <= have)
		return 0;
	size_format(have << PAGE_SHIFT, have_text, sizeof(have_text));
	size_format(need << PAGE_SHIFT, need_text, sizeof(need_text));
	return image_fail(r->why, -ENOSPC, "export '%s' has %s, the snapshot's files need %s",
		r->v->name, have_text, need_text);
}

static int read_through(const struct restoring *r)
{
	struct marker_record rec;
	const void *data;
	uint64_t first, done = 0;
	uint32_t n = 0;
	int err = image_rewind(r->image, r->why);

	for (uint64_t i = 0; !err; i++) {
		err = i % BATCH_RECORDS ? 0 : tick(r, 0);
		if (!err)
			err = image_next_record(r->image, &rec, r->why);
	}
	if (err == -ENOENT)
		err = 0;
	while (!err) {
		err = tick(r, done += n);
		if (!err)
			err = image_next_pages(r->image, &first, &n, &data, r->why);
	}
	return err == -ENOENT ? 0 : err;
}

const char restore_into_files[] =
	"an export in the memory directory has files, or a session: a snapshot is restored into empty "
	"exports: start without --restore, or move the memory directory away";

static int check_no_files(struct meta *m, const struct image_why *why)
{
	bool empty;
	int err = table_is_empty(m->store, STORE_DIRENT, 0, UINT64_MAX, &empty);

	if (err)
		return image_fail(why, err, "the store failed: %s", errno_text(err));
	for (unsigned i = 0; i < m->nvolumes; i++)
		empty = empty && m->volumes[i]->space.now.free == m->volumes[i]->space.npages;
	return empty ? 0 : image_fail(why, -EEXIST, "%s", restore_into_files);
}

int restore_may_begin(struct meta *m, const struct image_why *why)
{
	int err = store_begin_read(m->store);

	if (err)
		return image_fail(why, err, "the store failed: %s", errno_text(err));
	err = check_no_files(m, why);
	store_abort(m->store);
	return err;
}

int restore_check(struct meta *m, unsigned export_index, struct image_reader *image,
	const struct restore_watch *watch, const struct image_why *why)
{
	struct restoring r = {
		.m = m, .v = m->volumes[export_index], .image = image, .watch = watch, .why = why};
	int err = store_begin_read(m->store);

	if (err)
		return fail_store(&r, err);
	err = check_target(&r);
	store_abort(m->store);
	if (!err)
		err = check_size(&r);
	return err ? err : read_through(&r);
}

/* ---- batches --------------------------------------------------------------------------------- */

static int restore_begin(struct restoring *r)
{
	int err = meta_begin(r->m);

	r->nbatch = 0;
	if (!err)
		/* Takes room of the reserve, too: the records of a full store have to find room
		 * again. Records that come in order take no more than they did. */
		err = meta_room(r->m, ROOM_PAGES + BATCH_RECORDS * ROOM_PER_RECORD, false);
	volume_charge(r->v);
	return err ? fail_store(r, err) : 0;
}

static int save_file(struct restoring *r)
{
	int err = r->file.key ? inode_save(r->v, &r->file) : 0;

	return err ? fail_store(r, err) : 0;
}

static int commit(struct restoring *r)
{
	int err = save_file(r);

	if (!err)
		err = meta_commit(r->m);
	return err ? fail_store(r, err) : 0;
}

/* Called before each change: begins a new batch after some. */
static int count_change(struct restoring *r)
{
	int err = 0;

	if (++r->nbatch > BATCH_RECORDS) {
		err = commit(r);
		CRASH_POINT("restore.batch");
		if (!err)
			err = tick(r, 0);
		if (!err)
			err = restore_begin(r);
	}
	return err;
}

/* ---- places ---------------------------------------------------------------------------------- */

static int note_place(struct restoring *r, uint64_t first, struct page_run run)
{
	struct restore_place *last = r->nplaces ? &r->places[r->nplaces - 1] : NULL;

	r->nplaced += run.npages;
	if (last && last->first + last->run.npages == first && last->run.region == run.region &&
		last->run.page + last->run.npages == run.page) {
		last->run.npages += run.npages;
		return 0;
	}
	if (r->nplaces == r->places_room) {
		size_t room = r->places_room ? r->places_room * 2 : 1024;
		struct restore_place *places = realloc(r->places, room * sizeof(*places));

		if (!places)
			return image_fail(r->why, -ENOMEM, "out of memory");
		r->places = places;
		r->places_room = room;
	}
	assert(r->places);
	r->places[r->nplaces++] = (struct restore_place){first, run};
	return 0;
}

/* ---- records --------------------------------------------------------------------------------- */

/* An extent of the snapshot becomes as many as there are places for it. */
static int add_extent(struct restoring *r, struct stored_inode *i, struct extent old)
{
	uint64_t page = old.region * image_facts(r->image)->region_pages + old.page;

	while (old.npages) {
		struct page_run run;
		struct extent e;
		int err = count_change(r);

		if (err)
			return err;
		err = space_take(&r->v->space, old.npages, &run);
		if (err)
			return fail_store(r, err);
		e = (struct extent){.fpage = old.fpage,
			.npages = run.npages,
			.page = run.page,
			.region = run.region};
		err = extents_add(r->v, i, &e);
		if (err)
			return fail_store(r, err);
		err = note_place(r, page, run);
		if (err)
			return err;
		old.fpage += run.npages;
		old.npages -= run.npages;
		page += run.npages;
	}
	return 0;
}

/* The root exists already, and is counted. */
static int count_as_stored(struct restoring *r, struct stored_inode *i)
{
	struct stored_inode root;
	int err;

	if (i->attr.ino != ROOT_INO)
		return 0;
	err = inode_load(r->v, ROOT_INO, &root);
	i->counted = root.counted;
	return err ? fail_store(r, err) : 0;
}

static int restore_inode(struct restoring *r, const struct marker_record *rec)
{
	struct store_key key = STORE_KEY(inode_key(r->v, rec->ino));
	struct stored_inode old, i;
	int err = inode_record_decode(r->v, key, &(struct store_val){rec->data, rec->len}, &old);

	if (err || !rec->ino || rec->ino >= image_facts(r->image)->next_ino)
		return fail_image(r, "the record", rec->ino);
	i = old;
	i.flags = 0;
	i.cut = NO_CUT;
	i.nextents = 0;
	i.attr.npages = 0;
	i.counted = (struct quota_share){0};
	memset(i.head, 0, sizeof(i.head));
	err = count_as_stored(r, &i);
	for (uint32_t n = 0; !err && n < inode_nhead(&old); n++)
		err = add_extent(r, &i, old.head[n]);
	if (!err)
		err = inode_save(r->v, &i);
	return err;
}

static int load_file(struct restoring *r, uint64_t ino)
{
	int err;

	if (r->file.key == inode_key(r->v, ino))
		return 0;
	err = save_file(r);
	if (err)
		return err;
	err = inode_load(r->v, ino, &r->file);
	if (err)
		r->file.key = 0;
	return err ? fail_image(r, "an extent", ino) : 0;
}

static int restore_extent(struct restoring *r, const struct marker_record *rec)
{
	struct store_key key = STORE_KEY(inode_key(r->v, rec->ino), rec->lo);
	struct extent e;
	int err = extents_decode(r->v, key, &(struct store_val){rec->data, rec->len}, &e);

	if (err)
		return fail_image(r, "an extent", rec->ino);
	err = load_file(r, rec->ino);
	return err ? err : add_extent(r, &r->file, e);
}

static int restore_as_it_is(struct restoring *r, const struct marker_record *rec)
{
	struct store_key key = STORE_KEY(inode_key(r->v, rec->ino), rec->lo);
	int err = store_append(r->m->store, rec->table, key, rec->data, rec->len);

	return err ? fail_store(r, err) : 0;
}

/* Finds the first free cookie that an entry or attribute of this name may have. */
static int choose_cookie(const struct restoring *r, enum store_table table,
	const struct rpc_str *name, struct store_key *key)
{
	uint64_t end = dirent_first_cookie(&r->m->hash, name) + DIRENT_COLLISIONS;
	struct store_val val;

	for (key->lo = end - DIRENT_COLLISIONS; key->lo < end; key->lo++) {
		int err = store_get(r->m->store, table, *key, &val);

		if (err)
			return err == -ENOENT ? 0 : fail_store(r, err);
	}
	return image_fail(r->why, -ENOSPC,
		"inode %llu has more than %d names with one hash: restore into an empty memory "
		"directory, where names are hashed anew",
		(unsigned long long)ino_of_key(key->hi), DIRENT_COLLISIONS);
}

static int restore_entry(struct restoring *r, const struct marker_record *rec)
{
	struct store_key key = STORE_KEY(inode_key(r->v, rec->ino), rec->lo);
	struct store_val val = {rec->data, rec->len};
	struct dirent_entry e;
	int err;

	if (dirent_decode(r->v, key, &val, &e))
		return fail_image(r, "an entry", rec->ino);
	err = choose_cookie(r, STORE_DIRENT, &e.name, &key);
	if (err)
		return err;
	err = store_put(r->m->store, STORE_DIRENT, key, rec->data, rec->len);
	return err ? fail_store(r, err) : 0;
}

static int restore_xattr(struct restoring *r, const struct marker_record *rec)
{
	struct store_key key = STORE_KEY(inode_key(r->v, rec->ino), rec->lo);
	struct store_val val = {rec->data, rec->len};
	struct xattr x;
	int err = 0;

	if (rec->lo != XATTR_HEADER) {
		if (xattr_decode(r->v, key, &val, &x))
			return fail_image(r, "an attribute", rec->ino);
		err = choose_cookie(r, STORE_XATTR, &x.name, &key);
	}
	if (err)
		return err;
	err = store_put(r->m->store, STORE_XATTR, key, rec->data, rec->len);
	return err ? fail_store(r, err) : 0;
}

static bool is_marked_table(enum store_table table)
{
	for (unsigned i = 0; i < marker_ntables; i++)
		if (marker_tables[i] == table)
			return true;
	return false;
}

static int restore_record(struct restoring *r, const struct marker_record *rec)
{
	int err = count_change(r);

	if (err)
		return err;
	if (!is_marked_table(rec->table) || rec->ino >> INO_BITS)
		return fail_image(r, "a record", rec->ino);
	if (rec->table == STORE_INODE)
		return restore_inode(r, rec);
	if (rec->table == STORE_EXTENT)
		return restore_extent(r, rec);
	if (r->new_cookies && rec->table == STORE_DIRENT)
		return restore_entry(r, rec);
	if (r->new_cookies && rec->table == STORE_XATTR)
		return restore_xattr(r, rec);
	return restore_as_it_is(r, rec);
}

static int restore_records(struct restoring *r)
{
	struct marker_record rec;
	int err = 0;

	while (!err) {
		err = image_next_record(r->image, &rec, r->why);
		if (!err)
			err = restore_record(r, &rec);
	}
	return err == -ENOENT ? 0 : err;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
	uint64_t x = ((const struct restore_place *)a)->first,
		 y = ((const struct restore_place *)b)->first;

	return x < y ? -1 : x > y;
}

/* The place that holds the page; NULL: none. */
static const struct restore_place *restore_find_place(const struct restoring *r, uint64_t page)
{
	size_t low = 0, high = r->nplaces;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (r->places[mid].first <= page)
			low = mid;
		else
			high = mid;
	}
	if (low == high || page < r->places[low].first ||
		page - r->places[low].first >= r->places[low].run.npages)
		return NULL;
	return &r->places[low];
}

/* Pages without a place belong to files that are left out. */
static void fill_pages(struct restoring *r, uint64_t first, uint32_t n, const uint8_t *data)
{
	for (uint32_t k = 0; k < n; k++) {
		const struct restore_place *p = restore_find_place(r, first + k);
		size_t page;

		if (!p)
			continue;
		page = (size_t)(p->run.page + (first + k - p->first));
		memcpy((char *)r->v->bases[p->run.region] + page * PAGE_BYTES,
			data + (size_t)k * PAGE_BYTES, PAGE_BYTES);
		r->nfilled++;
	}
}

static int restore_pages(struct restoring *r)
{
	const void *data;
	uint64_t first;
	uint32_t n;
	int err = 0;

	if (r->nplaces)
		qsort(r->places, r->nplaces, sizeof(*r->places), compare_places);
	while (!err) {
		err = tick(r, r->nfilled);
		if (!err)
			err = image_next_pages(r->image, &first, &n, &data, r->why);
		if (!err)
			fill_pages(r, first, n, data);
	}
	if (err == -ENOENT && volume_is_lost(r->v))
		return image_fail(r->why, -EIO, "a region's file was cut meanwhile");
	if (err == -ENOENT && r->nfilled != r->nplaced)
		return image_fail(r->why, -EBADMSG,
			"the snapshot contradicts itself: pages of files are not in it");
	return err == -ENOENT ? 0 : err;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* See restore.h. If the hash is a former version's and the store is empty, the store's own key
 * stays. */
static int choose_hash(struct restoring *r)
{
	const struct dirent_hash *hash = &image_facts(r->image)->hash;
	bool none;
	int err = has_no_names(r->m->store, 0, UINT64_MAX, &none);

	if (!err && none) {
		if (hash->bits == DIRENT_HASH_BITS)
			r->m->hash = *hash;
		r->m->hash.bits = DIRENT_HASH_BITS;
		err = meta_save_super(r->m);
	}
	r->new_cookies = !dirent_same_hash(hash, &r->m->hash);
	return err ? fail_store(r, err) : 0;
}

static int restore_all(struct restoring *r)
{
	const struct marker_facts *f = image_facts(r->image);
	int err = image_rewind(r->image, r->why);

	if (!err)
		err = restore_begin(r);
	if (err)
		return err;
	err = choose_hash(r);
	if (err)
		return err;
	r->v->now.next_ino = max_u64(r->v->now.next_ino, f->next_ino);
	err = restore_records(r);
	CRASH_POINT("restore.records");
	if (!err)
		err = commit(r);
	CRASH_POINT("restore.stored");
	if (!err)
		err = restore_pages(r);
	CRASH_POINT("restore.filled");
	return err;
}

int restore_export(struct meta *m, unsigned export_index, struct image_reader *image,
	const struct restore_watch *watch, const struct image_why *why)
{
	struct restoring r = {
		.m = m, .v = m->volumes[export_index], .image = image, .watch = watch, .why = why};
	int err = restore_all(&r);

	meta_abort(m);
	if (!err)
		share_fit(r.v);
	free(r.places);
	return err;
}
