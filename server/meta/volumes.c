/* volumes.c - see volumes.h. */
#include "server/meta/volumes.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/conf/conf.h"
#include "common/rpc/wire.h"
#include "server/record/inode.h"
#include "server/record/lease.h"
#include "server/record/lock.h"
#include "server/record/quota.h"
#include "server/record/reaper.h"
#include "server/space/protect.h"

int volumes_add(struct meta *m)
{
	struct volume **v = reallocarray(m->volumes, m->nvolumes + 1, sizeof(struct volume *));

	if (!v)
		return -ENOMEM;
	m->volumes = v;
	v[m->nvolumes] = calloc(1, sizeof(struct volume));
	if (!v[m->nvolumes])
		return -ENOMEM;
	m->nvolumes++;
	return 0;
}

void volumes_close(struct volume *v)
{
	space_close(&v->space);
	quota_close(v);
	holders_fini(&v->holders);
	protect_delete(v->protect);
	free(v->bases);
	*v = (struct volume){0};
}

int volumes_decode(
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

int volumes_next(struct meta *m, uint64_t *id, struct volume *v)
{
	struct store_key key;
	struct store_val val;
	int err = store_seek(m->store, STORE_META, STORE_KEY(*id), &key, &val);

	if (!err)
		err = volumes_decode(m, key, &val, v);
	if (!err)
		*id = key.hi + 1;
	return err;
}

int volumes_find(struct meta *m, const char *name, struct volume *out, uint16_t *id)
{
	uint64_t at = 1;
	int err;

	*id = 1;
	while ((err = volumes_next(m, &at, out)) == 0) {
		if (strcmp(out->name, name) == 0)
			return 0;
		if (*id == out->id)
			++*id;
	}
	return err;
}

/* A client that had an export must not take a new file for an old one, should another export get
 * the name. */
static int first_ino(struct meta *m, uint64_t *ino)
{
	struct volume found;
	uint64_t at = 1;
	int err;

	*ino = 0;
	while ((err = volumes_next(m, &at, &found)) == 0)
		if (volumes_is_removed(&found))
			*ino = max_u64(*ino, found.now.next_ino);
	return err == -ENOENT ? 0 : err;
}

static int make_root(struct meta *m, struct volume *v)
{
	struct stored_inode root;
	uint64_t first;
	int err = first_ino(m, &first);

	if (err)
		return err;
	v->now.next_ino = ROOT_INO;
	inode_init(v, &root, S_IFDIR | 0755, 0, 0, realtime_ns());
	root.parent = ROOT_INO;
	v->now.next_ino = max_u64(v->now.next_ino, first);
	return inode_add(v, &root);
}

/* Uses v's regions, which may be more than the export is to have. */
static int set_volume(struct meta *m, struct volume *v, const struct meta_export *e)
{
	uint32_t n = v->space.nregions;

	v->store = m->store;
	v->space.store = m->store;
	v->space.export_id = v->id;
	memcpy(&v->generation, m->store_id, sizeof(v->generation));
	v->bases = calloc(n, sizeof(*v->bases));
	if (!v->bases)
		return -ENOMEM;
	memcpy(v->bases, e->bases, n * sizeof(*v->bases));
	v->lost = e->lost;
	v->max_inodes = e->max_inodes ? e->max_inodes : UINT64_MAX;
	v->protect = protect_new(&v->space, v->bases);
	return v->protect ? 0 : -ENOMEM;
}

int volumes_make(struct meta *m, struct volume *v, uint16_t id, const struct meta_export *e)
{
	int err;

	*v = (struct volume){.id = id};
	memcpy(v->name, e->name, strlen(e->name) + 1);
	v->space.npages = e->npages;
	v->space.nregions = e->nregions;
	v->space.region_pages = e->region_pages;
	err = set_volume(m, v, e);
	if (err)
		return err;
	volume_charge(v);
	err = space_open(&v->space, true);
	if (!err)
		err = quota_open(v, e->quotas, e->nquotas);
	if (!err)
		err = make_root(m, v);
	return err ? err : meta_save_volume(m, v);
}

/* The bytes of a region's file that was there before mean nothing. A start that was killed while it
 * made the export larger has left it, or one that had made it smaller. */
static int add_regions(
	struct meta *m, struct volume *v, uint32_t first, const struct meta_export *e)
{
	char size[32];

	for (uint32_t i = first; i < v->space.nregions; i++) {
		int err = e->used && e->used[i] ? space_add_used_region(&v->space, i)
						: space_add_region(&v->space, i);

		if (err)
			return err;
	}
	size_format(v->space.npages << PAGE_SHIFT, size, sizeof(size));
	log_notice("export '%s' has grown to %s", v->name, size);
	return meta_save_volume(m, v);
}

int volumes_load(struct meta *m, struct volume *v, const struct meta_export *e, uint32_t first)
{
	int err = set_volume(m, v, e);

	if (!err)
		err = space_open(&v->space, false);
	if (!err && first < v->space.nregions)
		err = add_regions(m, v, first, e);
	if (!err)
		err = quota_open(v, e->quotas, e->nquotas);
	if (!err)
		err = lease_open(v);
	if (!err)
		err = lock_open(v);
	if (!err)
		err = reaper_open(v);
	holders_commit(&v->holders);
	return err;
}

/* ---- larger, while it is open ---------------------------------------------------------------- */

int volumes_growth_prepare(
	const struct volume *v, const struct meta_export *e, struct volume_growth *growth)
{
	const struct space *sp = &v->space;
	int err;

	*growth = (struct volume_growth){.store_pages = v->now.store_pages};
	if (e->region_pages != sp->region_pages || sp->npages % sp->region_pages ||
		e->nregions <= sp->nregions || e->npages != space_growth_pages(sp, e->nregions))
		return -EINVAL;
	growth->bases = calloc(e->nregions, sizeof(*growth->bases));
	if (!growth->bases)
		return -ENOMEM;
	memcpy(growth->bases, e->bases, e->nregions * sizeof(*growth->bases));
	err = space_growth_prepare(sp, e->nregions, &growth->space);
	if (err)
		free(steal_ptr(&growth->bases));
	return err;
}

int volumes_growth_store(struct meta *m, struct volume *v, struct volume_growth *growth)
{
	struct volume larger = {.id = v->id, .now = v->now};
	int err;

	volume_charge(v);
	err = space_growth_store(&v->space, &growth->space);
	store_charge(m->store, NULL);
	if (err)
		return err;
	larger.space.region_pages = v->space.region_pages;
	larger.space.nregions = growth->space.nregions;
	larger.space.npages = space_growth_pages(&v->space, growth->space.nregions);
	memcpy(larger.name, v->name, sizeof(larger.name));
	return meta_save_volume(m, &larger);
}

void volumes_growth_apply(struct volume *v, struct volume_growth *growth)
{
	space_growth_apply(&v->space, &growth->space);
	protect_set_bases(v->protect, growth->bases);
	free(v->bases);
	v->bases = steal_ptr(&growth->bases);
}

void volumes_growth_cancel(struct volume *v, struct volume_growth *growth)
{
	if (!growth->bases)
		return;
	v->now.store_pages = growth->store_pages;
	space_growth_cancel(&v->space, &growth->space);
	free(steal_ptr(&growth->bases));
}
