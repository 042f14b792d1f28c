/* open.c - opens or makes the store: its superblock, the exports it knows. */
#include "server/meta/meta_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#include "common/base/clock.h"
#include "common/conf/conf.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "server/record/inode.h"
#include "server/record/lease.h"
#include "server/record/lock.h"
#include "server/meta/removal.h"
#include "server/meta/share.h"
#include "server/meta/volumes.h"
#include "server/space/protect.h"
#include "server/record/quota.h"
#include "server/record/reaper.h"
#include "server/base/resize.h"
#include "server/store/store_format.h"

/* The text for meta_open()'s caller: what failed. */
struct reason {
	char *text;
	size_t len;
};

/* ---- superblock ------------------------------------------------------------------------------ */

static int make_super(struct meta *m)
{
	if (getrandom(m->store_id, STORE_ID_BYTES, 0) != STORE_ID_BYTES ||
		getrandom(m->hash.key, NAMEHASH_KEY_BYTES, 0) != NAMEHASH_KEY_BYTES)
		return -EIO;
	m->hash.bits = DIRENT_HASH_BITS;
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
	wire_get(&r, magic, STORE_MAGIC_BYTES); /* store_verify() knows it, and the version */
	m->hash.bits =
		wire_get_u32(&r) == STORE_VERSION_WIDE ? DIRENT_HASH_BITS_WIDE : DIRENT_HASH_BITS;
	wire_get(&r, m->store_id, STORE_ID_BYTES);
	wire_get(&r, m->hash.key, NAMEHASH_KEY_BYTES);
	m->now.next_session = wire_get_u64(&r);
	m->now.lease_number = wire_get_u64(&r);
	if (r.truncated || wire_in_left(&r)) {
		snprintf(why->text, why->len,
			"the store is damaged: its superblock has the wrong length");
		return -EBADMSG;
	}
	return 0;
}

/* ---- exports --------------------------------------------------------------------------------- */

static int check_shape(
	const struct meta_export *want, const struct volume *stored, const struct reason *why)
{
	uint64_t unit = stored->space.region_pages << PAGE_SHIFT;
	uint64_t from = stored->space.npages << PAGE_SHIFT, to = want->npages << PAGE_SHIFT;
	char have[32], wanted[32], choices[192];

	if (stored->space.region_pages == want->region_pages &&
		(from != to || stored->space.nregions == want->nregions) &&
		resize_is_possible(from, to, unit))
		return 0;
	if (from == to) {
		snprintf(why->text, why->len,
			"export %s has %u regions of %" PRIu64
			" bytes, and its files are %u of %" PRIu64
			": a region's file has lost or gained bytes",
			want->name, stored->space.nregions, stored->space.region_pages * PAGE_BYTES,
			want->nregions, want->region_pages * PAGE_BYTES);
		return -EBADMSG;
	}
	size_format(from, have, sizeof(have));
	size_format(to, wanted, sizeof(wanted));
	resize_choices(from, to, unit, choices, sizeof(choices));
	snprintf(why->text, why->len, "export '%s' exists with %s and is configured with %s: %s",
		want->name, have, wanted, choices);
	return -EINVAL;
}

/* -EBADMSG: a region of the stored export is missing or has lost bytes. */
static int check_regions(
	const struct meta_export *e, const struct volume *stored, const struct reason *why)
{
	static const char remedy[] = "put it back, or leave the export out of the configuration";
	uint64_t there = max_u64(e->npages, e->mapped_pages);

	if (e->missing && e->missing_region < stored->space.nregions)
		snprintf(why->text, why->len, "export %s: its region %s was missing or empty: %s",
			e->name, e->missing, remedy);
	else if (e->npages < stored->space.npages && there < stored->space.npages)
		snprintf(why->text, why->len,
			"export %s: its region %s.%04" PRIu64 " is missing or has lost bytes: %s",
			e->name, e->name, there / stored->space.region_pages, remedy);
	else if (e->holed && e->holed_region < stored->space.nregions)
		snprintf(why->text, why->len,
			"export %s: its region %s has holes: a process that had it open has cut "
			"it, and the bytes are lost: leave the export out of the configuration",
			e->name, e->holed);
	else
		return 0;
	return -EBADMSG;
}

static bool shape_is_possible(const struct meta_export *e)
{
	return e->nregions && e->nregions <= UINT16_MAX && e->region_pages &&
	       e->region_pages <= INT32_MAX &&
	       e->nregions == div_round_up(e->npages, e->region_pages) &&
	       strlen(e->name) <= EXPORT_NAME_MAX && *e->name;
}

/* Loads the export's stored record, and checks that it can become what is configured. -ENOENT: it
 * is new, and *id is its. */
static int find_checked(struct meta *m, struct volume *v, uint16_t *id, const struct meta_export *e,
	const struct reason *why)
{
	int err;

	if (!shape_is_possible(e)) {
		snprintf(why->text, why->len, "export %s: impossible name or regions", e->name);
		return -EINVAL;
	}
	err = volumes_find(m, e->name, v, id);
	if (!err)
		err = check_shape(e, v, why);
	if (!err)
		err = check_regions(e, v, why);
	if (err)
		*v = (struct volume){0};
	return err;
}

static int open_volume(
	struct meta *m, struct volume *v, const struct meta_export *e, const struct reason *why)
{
	uint32_t stored;
	uint16_t id;
	int err = find_checked(m, v, &id, e, why);

	if (err == -ENOENT)
		return volumes_make(m, v, id, e);
	if (err)
		return err;
	stored = v->space.nregions;
	v->space.npages = e->npages;
	v->space.nregions = e->nregions;
	return volumes_load(m, v, e, stored);
}

/* ---- smaller --------------------------------------------------------------------------------- */

static int add_volumes(struct meta *m, unsigned n)
{
	int err = 0;

	while (!err && m->nvolumes < n)
		err = volumes_add(m);
	return err;
}

/* Opens the export with all its stored regions; -ENOENT: these are not more than it is to have. */
static int open_to_shrink(
	struct meta *m, struct volume *v, const struct meta_export *e, const struct reason *why)
{
	uint16_t id;
	int err = find_checked(m, v, &id, e, why);

	if (!err && v->space.nregions <= e->nregions)
		err = -ENOENT;
	if (err) {
		*v = (struct volume){0};
		return err;
	}
	err = volumes_load(m, v, e, v->space.nregions);
	return err ? err : meta_count_ended(m, &m->now.nending);
}

static int shrink_one(struct meta *m, const struct meta_export *e, const struct reason *why)
{
	struct volume *v = m->volumes[0];
	int err = store_begin(m->store);

	if (err)
		return err;
	err = open_to_shrink(m, v, e, why);
	if (err) {
		store_abort(m->store);
		return err == -ENOENT ? 0 : err;
	}
	err = store_commit(m->store);
	if (!err)
		err = meta_shrink(m, v, e->nregions, why->text, why->len);
	if (!err)
		volumes_close(v);
	return err;
}

/* Checks, as far as is possible before a change, that all exports can become what is configured. */
static int check_all(struct meta *m, const struct meta_config *config, const struct reason *why)
{
	struct volume found;
	uint16_t id;
	int err = store_begin_read(m->store);

	if (err)
		return err;
	err = load_super(m, why);
	for (unsigned i = 0; !err && i < config->nexports; i++) {
		err = find_checked(m, &found, &id, &config->exports[i], why);
		if (err == -ENOENT)
			err = 0;
	}
	store_abort(m->store);
	return err;
}

/* Shrinks each export by transactions of its own, before the one that loads them all. The volume of
 * one that fails is closed with all others. */
static int shrink_all(struct meta *m, const struct meta_config *config, const struct reason *why)
{
	int err = check_all(m, config, why);

	m->nvolumes = 1;
	for (unsigned i = 0; !err && i < config->nexports; i++)
		err = shrink_one(m, &config->exports[i], why);
	m->nvolumes = config->nexports;
	return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void close_volumes(struct meta *m)
{
	for (unsigned i = 0; i < m->nvolumes; i++) {
		volumes_close(m->volumes[i]);
		free(m->volumes[i]);
	}
	free(m->volumes);
}

static int meta_open_load(
	struct meta *m, const struct meta_config *config, const struct reason *why)
{
	int err = store_begin(m->store);

	if (err)
		return err;
	err = m->is_new ? make_super(m) : load_super(m, why);
	for (unsigned i = 0; !err && i < config->nexports; i++)
		err = open_volume(m, m->volumes[i], &config->exports[i], why);
	if (!err)
		err = meta_count_ended(m, &m->now.nending);
	if (!err)
		err = removal_count(m, &m->now.removed);
	if (!err)
		err = share_open(m, config);
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
	lock_waits_init(&m->lock_waits);
	err = add_volumes(m, config->nexports);
	if (!err)
		err = store_open(path, config->store_bytes, &m->store, &m->is_new, text, len);
	if (err)
		goto err_volumes;
	err = scrub_new(&m->scrub);
	if (err)
		goto err_store;
	CRASH_POINT("store.tables");
	share_set_reserve(m);
	if (!m->is_new)
		err = shrink_all(m, config, &why);
	if (!err)
		err = meta_open_load(m, config, &why); /* the last that can fail: it commits */
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
	close_volumes(m);
	free(m);
	default_reason(&why, config, err);
	return err;
}

/* ---- for checks ------------------------------------------------------------------------------ */

static int inspect_volume(struct meta *m, struct store_key key, const struct store_val *val)
{
	struct meta_export shape;
	struct volume *v;
	int err = volumes_add(m);

	if (err)
		return err;
	v = m->volumes[m->nvolumes - 1];
	err = volumes_decode(m, key, val, v);
	if (err)
		return err;
	if (volumes_is_removed(v)) {
		free(m->volumes[--m->nvolumes]);
		return 0;
	}
	shape = (struct meta_export){.name = v->name,
		.npages = v->space.npages,
		.nregions = v->space.nregions,
		.region_pages = v->space.region_pages};
	if (key.hi > UINT16_MAX || !shape_is_possible(&shape))
		return store_damaged(m->store, STORE_META, key);
	v->store = v->space.store = m->store;
	v->space.export_id = v->id;
	memcpy(&v->generation, m->store_id, sizeof(v->generation));
	v->bases = calloc(v->space.nregions, sizeof(*v->bases));
	return v->bases ? 0 : -ENOMEM;
}

static int inspect_volumes(struct meta *m)
{
	struct store_key key;
	struct store_val val;
	int err = store_seek(m->store, STORE_META, STORE_KEY(1), &key, &val);

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

static int open_inspected(const char *dir, struct meta **out, char *text, size_t len)
{
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
	lock_waits_init(&m->lock_waits);
	err = store_open_read(path, &m->store, text, len);
	if (err)
		meta_close(m);
	else
		*out = m;
	return err;
}

int meta_inspect(const char *dir, struct meta **out, char *text, size_t len)
{
	struct meta *m;
	int err = open_inspected(dir, &m, text, len);

	if (err)
		return err;
	err = inspect(m, &(struct reason){text, len});
	if (err)
		meta_close(m);
	else
		*out = m;
	return err;
}

int meta_stored(const char *dir, const char *name, bool *stored, char *text, size_t len)
{
	struct meta *m;
	int err = open_inspected(dir, &m, text, len);

	*stored = false;
	if (err)
		return err == -ENOENT ? 0 : err;
	err = meta_knows(m, name, stored);
	meta_close(m);
	return err;
}

/* ---- looked at ------------------------------------------------------------------------------- */

/* Leaves v with the space that is stored. */
static int look_at_stored(
	struct meta *m, struct volume *v, const struct meta_export *e, struct meta_look *out)
{
	uint16_t id;
	int err = find_checked(m, v, &id, e, &(struct reason){out->why, sizeof(out->why)});

	if (err)
		return err;
	v->store = v->space.store = m->store;
	v->space.export_id = v->id;
	out->stored = true;
	out->npages = v->space.npages;
	err = space_open(&v->space, false);
	if (err)
		return err;
	out->used = space_in_file(&v->space);
	out->has_files |= v->space.now.free != v->space.npages;
	return 0;
}

/* Makes it the only open volume, since sessions are sought by the open ones. */
static void look_at_export(struct meta *m, const struct meta_export *e, struct meta_look *out)
{
	struct volume *v = m->volumes[0];
	int err = store_begin_read(m->store);

	*out = (struct meta_look){0};
	if (!err) {
		out->has_files = !store_seek(
			m->store, STORE_DIRENT, STORE_KEY(0), &(struct store_key){0}, NULL);
		err = look_at_stored(m, v, e, out);
		store_abort(m->store);
	}
	if (!err && v->space.nregions > e->nregions)
		err = meta_shrink_look(m, v, e->nregions, out->why, sizeof(out->why));
	volumes_close(v);
	out->err = err == -ENOENT && !out->stored ? 0 : err;
	if (out->err && !out->why[0])
		snprintf(out->why, sizeof(out->why), "export '%s': the store says: %s", e->name,
			errno_text(err));
}

int meta_look(const struct meta_config *config, struct meta_look *looks,
	uint8_t store_id[META_STORE_ID_BYTES], char *text, size_t len)
{
	struct meta *m;
	int err = open_inspected(config->dir, &m, text, len);

	if (err)
		return err;
	err = volumes_add(m);
	if (!err)
		err = store_begin_read(m->store);
	if (!err) {
		err = load_super(m, &(struct reason){text, len});
		store_abort(m->store);
	}
	for (unsigned i = 0; !err && i < config->nexports; i++)
		look_at_export(m, &config->exports[i], &looks[i]);
	memcpy(store_id, m->store_id, META_STORE_ID_BYTES);
	meta_close(m);
	return err;
}

/* ---- closing --------------------------------------------------------------------------------- */

void meta_close(struct meta *m)
{
	if (!m)
		return;
	for (unsigned i = 0; !m->inspected && i < m->nvolumes; i++)
		protect_end(m->volumes[i]->protect);
	scrub_delete(m->scrub);
	store_close(m->store);
	lock_waits_fini(&m->lock_waits);
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
