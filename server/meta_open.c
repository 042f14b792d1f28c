/* meta_open.c - opens or makes the store: its superblock, the exports it knows. */
#include "server/meta_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/crash_point.h"
#include "common/log.h"
#include "common/util.h"
#include "common/wire.h"
#include "server/inode.h"
#include "server/protect.h"
#include "server/quota.h"
#include "server/reaper.h"
#include "server/store_format.h"

enum {
	SUPER_BYTES = STORE_MAGIC_BYTES + 4 + STORE_ID_BYTES + NAMEHASH_KEY_BYTES + 8,
	VOLUME_BYTES_MAX = 44 + EXPORT_NAME_MAX,
};

/* An eighth of the store's pages, within these. */
enum { RESERVE_MIN = 512, RESERVE_MAX = 4096, RESERVE_SHARE = 8 };

/* What failed, for meta_open's caller. */
struct reason {
	char *text;
	size_t len;
};

/* ---- superblock ------------------------------------------------------------------------------ */

int meta_save_super(struct meta *m)
{
	uint8_t buf[SUPER_BYTES];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put(&w, STORE_MAGIC, STORE_MAGIC_BYTES);
	wire_put_u32(&w, STORE_VERSION);
	wire_put(&w, m->store_id, STORE_ID_BYTES);
	wire_put(&w, m->hash.key, NAMEHASH_KEY_BYTES);
	wire_put_u64(&w, m->now.next_session);
	return store_put(m->store, STORE_META, STORE_KEY(0), buf, sizeof(buf));
}

static int make_super(struct meta *m)
{
	if (getrandom(m->store_id, STORE_ID_BYTES, 0) != STORE_ID_BYTES ||
		getrandom(m->hash.key, NAMEHASH_KEY_BYTES, 0) != NAMEHASH_KEY_BYTES)
		return -EIO;
	m->now.next_session = 1;
	return meta_save_super(m);
}

static int load_super(struct meta *m, const struct reason *why)
{
	char magic[STORE_MAGIC_BYTES];
	struct store_val val;
	struct wire_in r;
	int err = store_get(m->store, STORE_META, STORE_KEY(0), &val);

	if (err == -ENOENT) {
		snprintf(why->text, why->len, "the store is damaged: it has no superblock");
		return -EBADMSG;
	}
	if (err)
		return err;
	wire_in_init(&r, val.data, val.len);
	wire_get(&r, magic, STORE_MAGIC_BYTES); /* store_open() has read it, and the version */
	wire_get_u32(&r);
	wire_get(&r, m->store_id, STORE_ID_BYTES);
	wire_get(&r, m->hash.key, NAMEHASH_KEY_BYTES);
	m->now.next_session = wire_get_u64(&r);
	if (r.truncated || wire_in_left(&r)) {
		snprintf(why->text, why->len,
			"the store is damaged: its superblock has the wrong length");
		return -EBADMSG;
	}
	return 0;
}

/* ---- exports --------------------------------------------------------------------------------- */

int meta_save_volume(struct meta *m, const struct volume *v)
{
	uint8_t buf[VOLUME_BYTES_MAX];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u64(&w, v->space.npages);
	wire_put_u32(&w, v->space.nregions);
	wire_put_u64(&w, v->space.region_pages);
	wire_put_u64(&w, v->now.next_ino);
	wire_put_u64(&w, v->now.inodes);
	wire_put(&w, v->name, strlen(v->name));
	return store_put(m->store, STORE_META, STORE_KEY(v->id), buf, wire_out_len(&w));
}

static int decode_volume(
	struct meta *m, struct store_key key, const struct store_val *val, struct volume *v)
{
	struct wire_in r;
	size_t len;

	*v = (struct volume){.id = (uint16_t)key.hi};
	wire_in_init(&r, val->data, val->len);
	v->space.npages = wire_get_u64(&r);
	v->space.nregions = wire_get_u32(&r);
	v->space.region_pages = wire_get_u64(&r);
	v->now.next_ino = wire_get_u64(&r);
	v->now.inodes = wire_get_u64(&r);
	len = wire_in_left(&r);
	if (r.truncated || !len || len > EXPORT_NAME_MAX)
		return store_damaged(m->store, STORE_META, key);
	wire_get(&r, v->name, len);
	return 0;
}

/* The export's stored record; -ENOENT: none, and *id is one that no other has. */
static int find_volume(struct meta *m, const char *name, struct volume *out, uint16_t *id)
{
	struct store_key key;
	struct store_val val;
	int err = store_seek(m->store, STORE_META, STORE_KEY(1), &key, &val);

	*id = 1;
	while (!err) {
		err = decode_volume(m, key, &val, out);
		if (err || strcmp(out->name, name) == 0)
			return err;
		*id = (uint16_t)(out->id + 1);
		err = store_next(m->store, STORE_META, &key, &val);
	}
	return err;
}

static int make_root(struct volume *v)
{
	struct inode root;

	v->now.next_ino = ROOT_INO;
	inode_init(v, &root, S_IFDIR | 0755, 0, 0, realtime_ns());
	root.parent = ROOT_INO;
	return inode_add(v, &root);
}

/* By whole regions: the last one of a session's table never changes its length. */
static bool has_grown(const struct meta_export *want, const struct volume *stored)
{
	uint64_t unit = stored->space.region_pages;

	return want->npages > stored->space.npages && want->region_pages == unit &&
	       stored->space.npages % unit == 0 && want->npages % unit == 0;
}

static int check_shape(
	const struct meta_export *want, const struct volume *stored, const struct reason *why)
{
	char have[32], wanted[32], unit[32];

	if (stored->space.npages == want->npages && stored->space.nregions == want->nregions &&
		stored->space.region_pages == want->region_pages)
		return 0;
	if (has_grown(want, stored))
		return 0;
	if (stored->space.npages == want->npages) {
		snprintf(why->text, why->len,
			"export %s has %u regions of %" PRIu64
			" bytes, and its files are %u of %" PRIu64
			": a region's file has lost or gained bytes",
			want->name, stored->space.nregions, stored->space.region_pages * PAGE_BYTES,
			want->nregions, want->region_pages * PAGE_BYTES);
		return -EBADMSG;
	}
	size_format(stored->space.npages << PAGE_SHIFT, have, sizeof(have));
	size_format(want->npages << PAGE_SHIFT, wanted, sizeof(wanted));
	size_format(stored->space.region_pages << PAGE_SHIFT, unit, sizeof(unit));
	snprintf(why->text, why->len,
		"export '%s' exists with %s and is configured with %s: its size can't be changed "
		"but from whole regions of %s to more of them",
		want->name, have, wanted, unit);
	return -EINVAL;
}

/* Its files had bytes there. */
static int check_regions(
	const struct meta_export *e, const struct volume *stored, const struct reason *why)
{
	if (!e->missing || e->missing_region >= stored->space.nregions)
		return 0;
	snprintf(why->text, why->len,
		"export %s: its region %s was missing or empty: put it back, or leave the export out "
		"of the configuration",
		e->name, e->missing);
	return -EBADMSG;
}

static bool shape_is_possible(const struct meta_export *e)
{
	return e->nregions && e->nregions <= UINT16_MAX && e->region_pages &&
	       e->region_pages <= INT32_MAX &&
	       e->nregions == div_round_up(e->npages, e->region_pages) &&
	       strlen(e->name) <= EXPORT_NAME_MAX && *e->name;
}

static int set_volume(struct meta *m, struct volume *v, const struct meta_export *e)
{
	v->store = m->store;
	v->space.store = m->store;
	v->space.export_id = v->id;
	memcpy(&v->generation, m->store_id, sizeof(v->generation));
	v->bases = calloc(e->nregions, sizeof(*v->bases));
	if (!v->bases)
		return -ENOMEM;
	memcpy(v->bases, e->bases, e->nregions * sizeof(*v->bases));
	v->max_inodes = e->max_inodes ? e->max_inodes : UINT64_MAX;
	v->protect = protect_new(&v->space, v->bases);
	return v->protect ? 0 : -ENOMEM;
}

static int make_volume(struct meta *m, struct volume *v, uint16_t id, const struct meta_export *e)
{
	int err;

	*v = (struct volume){.id = id};
	memcpy(v->name, e->name, strlen(e->name) + 1);
	v->space.npages = e->npages;
	v->space.nregions = e->nregions;
	v->space.region_pages = e->region_pages;
	err = set_volume(m, v, e);
	if (!err)
		err = space_open(&v->space, true);
	if (!err)
		err = quota_open(v, e->quotas, e->nquotas);
	if (!err)
		err = make_root(v);
	return err ? err : meta_save_volume(m, v);
}

static int add_regions(struct meta *m, struct volume *v, uint32_t first)
{
	int err = space_add_regions(&v->space, first);
	char size[32];

	if (err)
		return err;
	size_format(v->space.npages << PAGE_SHIFT, size, sizeof(size));
	log_notice("export '%s' has grown to %s", v->name, size);
	return meta_save_volume(m, v);
}

static int load_volume(struct meta *m, struct volume *v, const struct meta_export *e)
{
	uint32_t stored = v->space.nregions;
	int err;

	v->space.npages = e->npages;
	v->space.nregions = e->nregions;
	err = set_volume(m, v, e);
	if (!err)
		err = space_open(&v->space, false);
	if (!err && e->nregions > stored)
		err = add_regions(m, v, stored);
	if (!err)
		err = quota_open(v, e->quotas, e->nquotas);
	return err ? err : reap_open(v);
}

static int open_volume(
	struct meta *m, struct volume *v, const struct meta_export *e, const struct reason *why)
{
	uint16_t id;
	int err;

	if (!shape_is_possible(e)) {
		snprintf(why->text, why->len, "export %s: impossible name or regions", e->name);
		return -EINVAL;
	}
	err = find_volume(m, e->name, v, &id);
	if (err == -ENOENT)
		return make_volume(m, v, id, e);
	if (!err)
		err = check_shape(e, v, why);
	if (!err)
		err = check_regions(e, v, why);
	if (err) {
		*v = (struct volume){0};
		return err;
	}
	return load_volume(m, v, e);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void close_volumes(struct meta *m)
{
	for (unsigned i = 0; i < m->nvolumes; i++) {
		space_close(&m->volumes[i].space);
		quota_close(&m->volumes[i]);
		protect_delete(m->volumes[i].protect);
		free(m->volumes[i].bases);
	}
	free(m->volumes);
}

static int load(struct meta *m, const struct meta_config *config, const struct reason *why)
{
	struct store_usage usage;
	int err = store_begin(m->store);

	if (err)
		return err;
	store_usage(m->store, &usage);
	m->reserve = max_u64(RESERVE_MIN, min_u64(usage.npages / RESERVE_SHARE, RESERVE_MAX));
	err = m->is_new ? make_super(m) : load_super(m, why);
	for (unsigned i = 0; !err && i < config->nexports; i++)
		err = open_volume(m, &m->volumes[i], &config->exports[i], why);
	if (!err)
		err = meta_count_ended(m, &m->now.nending);
	CRASH_POINT("store.loaded");
	if (!err)
		return store_commit(m->store);
	store_abort(m->store);
	return err;
}

static void default_reason(const struct reason *why, const struct meta_config *config, int err)
{
	if (*why->text)
		return;
	snprintf(why->text, why->len, "cannot load the store in %s: %s", config->dir,
		err == -EBADMSG ? "it is damaged" : errno_text(err));
}

int meta_open(const struct meta_config *config, struct meta **out, char *text, size_t len)
{
	struct reason why = {text, len};
	autofree char *path = NULL;
	struct meta *m;
	int err;

	*text = '\0';
	m = calloc(1, sizeof(*m));
	if (!m || asprintf(&path, "%s/store.mdb", config->dir) < 0) {
		free(m);
		return -ENOMEM;
	}
	m->hash.mask = DIRENT_HASH_MASK;
	m->nvolumes = config->nexports;
	m->volumes = calloc(m->nvolumes, sizeof(*m->volumes));
	err = m->volumes ? store_open(path, config->store_bytes, &m->store, &m->is_new, text, len)
			 : -ENOMEM;
	if (err)
		goto err_volumes;
	err = scrub_new(&m->scrub);
	if (err)
		goto err_store;
	CRASH_POINT("store.tables");
	err = load(m, config, &why); /* the last that can fail: it commits */
	if (err)
		goto err_scrub;
	if (meta_has_reclaim(m))
		scrub_kick(m->scrub);
	*out = m;
	return 0;

err_scrub:
	scrub_delete(m->scrub);
err_store:
	store_close(m->store);
err_volumes:
	if (m->volumes)
		close_volumes(m);
	free(m);
	default_reason(&why, config, err);
	return err;
}

/* ---- for checks ------------------------------------------------------------------------------ */

static int inspect_volume(struct meta *m, struct store_key key, const struct store_val *val)
{
	struct volume *v = &m->volumes[m->nvolumes];
	struct meta_export shape;
	int err = decode_volume(m, key, val, v);

	if (err)
		return err;
	shape = (struct meta_export){
		v->name, v->space.npages, v->space.nregions, v->space.region_pages, NULL, NULL, 0};
	if (key.hi > UINT16_MAX || !shape_is_possible(&shape))
		return store_damaged(m->store, STORE_META, key);
	v->store = v->space.store = m->store;
	v->space.export_id = v->id;
	memcpy(&v->generation, m->store_id, sizeof(v->generation));
	v->bases = calloc(v->space.nregions, sizeof(*v->bases));
	m->nvolumes++;
	return v->bases ? 0 : -ENOMEM;
}

static int count_volumes(struct meta *m, size_t *n)
{
	struct store_key key;
	int err = store_seek(m->store, STORE_META, STORE_KEY(1), &key, NULL);

	for (*n = 0; !err; ++*n)
		err = store_next(m->store, STORE_META, &key, NULL);
	return err == -ENOENT ? 0 : err;
}

static int inspect_volumes(struct meta *m)
{
	struct store_key key;
	struct store_val val;
	size_t n;
	int err = count_volumes(m, &n);

	if (err)
		return err;
	m->volumes = calloc(n + 1, sizeof(*m->volumes));
	if (!m->volumes)
		return -ENOMEM;
	err = store_seek(m->store, STORE_META, STORE_KEY(1), &key, &val);
	while (!err) {
		err = inspect_volume(m, key, &val);
		if (!err)
			err = store_next(m->store, STORE_META, &key, &val);
	}
	return err == -ENOENT ? 0 : err;
}

static int inspect(struct meta *m, const struct reason *why)
{
	int err = store_begin_read(m->store);

	if (err)
		return err;
	err = load_super(m, why);
	if (!err)
		err = inspect_volumes(m);
	store_abort(m->store);
	if (err == -EBADMSG && !*why->text)
		snprintf(why->text, why->len, "the store is damaged: the record of an export is");
	return err;
}

int meta_inspect(const char *dir, struct meta **out, char *text, size_t len)
{
	struct reason why = {text, len};
	autofree char *path = NULL;
	struct meta *m;
	int err;

	*text = '\0';
	m = calloc(1, sizeof(*m));
	if (!m || asprintf(&path, "%s/store.mdb", dir) < 0) {
		free(m);
		return -ENOMEM;
	}
	m->inspected = true;
	m->hash.mask = DIRENT_HASH_MASK;
	err = store_open_read(path, &m->store, text, len);
	if (!err)
		err = inspect(m, &why);
	if (!err) {
		*out = m;
		return 0;
	}
	meta_close(m);
	return err;
}

/* ---- closing --------------------------------------------------------------------------------- */

void meta_close(struct meta *m)
{
	if (!m)
		return;
	for (unsigned i = 0; !m->inspected && i < m->nvolumes; i++)
		protect_end(m->volumes[i].protect);
	scrub_delete(m->scrub);
	store_close(m->store);
	close_volumes(m);
	free(m);
}

const uint8_t *meta_store_id(const struct meta *m)
{
	return m->store_id;
}

bool meta_is_new(const struct meta *m)
{
	return m->is_new;
}
