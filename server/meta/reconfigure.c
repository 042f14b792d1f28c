/* reconfigure.c - another configuration for an open store: more exports, fewer, larger ones, and
 * other limits.
 *
 * All that can fail comes first. Then one transaction makes the new exports, gives others their new
 * regions, and removes those that go. After its commit memory follows, and the limits are put in
 * force, which can't fail. If
 * the store grew before a failure it stays so large.
 */
#include "server/meta/meta_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/meta/removal.h"
#include "server/meta/share.h"
#include "server/meta/volumes.h"
#include "server/record/quota.h"

/* The change of one export. */
struct place {
	bool open; /* before it begins */
	bool made, gone, grows;
	struct volume_growth growth;
	struct quotas *quotas;
	unsigned ended; /* gone: ended sessions that were to be drained */
};

struct change {
	struct meta *m;
	const struct meta_config *config;
	unsigned nold;        /* places of exports, before it begins */
	struct place *places; /* by export_index: [the larger of nold and config->nexports] */
	char *why;
	size_t whylen;
};

int meta_knows(struct meta *m, const char *name, bool *knows)
{
	struct volume found;
	uint16_t id;
	int err = store_begin_read(m->store);

	if (err)
		return err;
	err = volumes_find(m, name, &found, &id);
	*knows = !err;
	store_abort(m->store);
	return err == -ENOENT ? 0 : err;
}

unsigned meta_nexports(const struct meta *m)
{
	return m->nvolumes;
}

int meta_grow_prepare(
	struct meta *m, uint64_t store_bytes, struct store_growth *growth, char *why, size_t whylen)
{
	return store_grow_prepare(m->store, store_bytes, growth, why, whylen);
}

void meta_grow_cancel(struct meta *m, struct store_growth *growth)
{
	store_grow_cancel(m->store, growth);
}

/* ---- what can fail --------------------------------------------------------------------------- */

static bool stays(const struct change *c, unsigned i)
{
	return i < c->config->nexports && c->places[i].open && c->config->exports[i].name;
}

static bool comes(const struct change *c, unsigned i)
{
	return !c->places[i].open && c->config->exports[i].name;
}

static int prepare(struct change *c)
{
	c->places = calloc(c->nold + c->config->nexports + 1, sizeof(*c->places));
	if (!c->places)
		return -ENOMEM;
	for (unsigned i = 0; i < c->nold; i++) {
		c->places[i].open = c->m->volumes[i]->id != 0;
		c->places[i].gone = i < c->config->nexports && c->places[i].open && !stays(c, i);
		c->places[i].grows = stays(c, i) &&
				     c->config->exports[i].npages > c->m->volumes[i]->space.npages;
	}
	return 0;
}

static int prepare_growth(const struct change *c)
{
	int err = 0;

	for (unsigned i = 0; !err && i < c->nold; i++)
		if (c->places[i].grows)
			err = volumes_growth_prepare(
				c->m->volumes[i], &c->config->exports[i], &c->places[i].growth);
	return err;
}

static int prepare_quotas(const struct change *c)
{
	int err = 0;

	for (unsigned i = 0; !err && i < c->nold; i++) {
		const struct meta_export *e = &c->config->exports[i];

		if (!stays(c, i))
			continue;
		err = quota_prepare(c->m->volumes[i], e->quotas, e->nquotas, &c->places[i].quotas);
		if (err == -EOPNOTSUPP)
			snprintf(c->why, c->whylen,
				"export '%s': its %s quotas take a restart of the server, which "
				"%s what each user has",
				e->name, e->nquotas ? "first" : "last",
				e->nquotas ? "counts" : "forgets");
	}
	return err;
}

static int wait_for_snapshot(const struct change *c)
{
	snprintf(c->why, c->whylen,
		"the memory for metadata can't grow while a snapshot is written: reload again "
		"after its end");
	return -EBUSY;
}

static int grow(const struct change *c, struct store_growth *growth)
{
	int err = store_grow(c->m->store, growth);

	if (err == -EBUSY)
		return wait_for_snapshot(c);
	if (err)
		return -ENOTRECOVERABLE;
	share_set_reserve(c->m);
	return 0;
}

static void discard(const struct change *c)
{
	for (unsigned i = 0; c->places && i < c->nold; i++) {
		quota_discard(c->places[i].quotas);
		if (c->places[i].grows)
			volumes_growth_cancel(c->m->volumes[i], &c->places[i].growth);
	}
	free(c->places);
}

int meta_may_reconfigure(struct meta *m, const struct meta_config *config, char *why, size_t whylen)
{
	struct change c = {m, config, m->nvolumes, NULL, why, whylen};
	struct store_usage usage;
	int err = prepare(&c);

	if (!err)
		err = prepare_quotas(&c);
	discard(&c);
	if (err == -ENOMEM)
		snprintf(why, whylen, "out of memory");
	store_usage(m->store, &usage);
	if (!err && config->store_bytes > usage.npages * PAGE_BYTES && store_is_viewed(m->store))
		err = wait_for_snapshot(&c);
	return err;
}

static int make_one(const struct change *c, unsigned i)
{
	const struct meta_export *e = &c->config->exports[i];
	struct meta *m = c->m;
	struct volume found;
	uint16_t id;
	int err = volumes_find(m, e->name, &found, &id);

	if (err != -ENOENT)
		return err ? err : -EEXIST;
	if (!id)
		return -ENOSPC;
	c->places[i].made = true;
	return volumes_make(m, m->volumes[i], id, e);
}

static int ask_room(const struct change *c)
{
	uint64_t adds = 0, removes = 0;
	int err = 0;

	for (unsigned i = 0; i < c->config->nexports; i++) {
		if (comes(c, i))
			adds += ROOM_PAGES + c->config->exports[i].nregions;
		if (c->places[i].gone)
			removes += ROOM_PAGES;
		/* An export that is full of small files may grow, too. */
		if (c->places[i].grows)
			removes += ROOM_PAGES + c->places[i].growth.space.nregions;
	}
	if (adds)
		err = meta_room(c->m, adds, true);
	return err ? err : meta_room(c->m, adds + removes, false);
}

static int make_all(const struct change *c)
{
	struct meta *m = c->m;
	int err = ask_room(c);

	while (!err && m->nvolumes < c->config->nexports)
		err = volumes_add(m);
	for (unsigned i = 0; !err && i < c->config->nexports; i++)
		if (comes(c, i))
			err = make_one(c, i);
	for (unsigned i = 0; !err && i < c->nold; i++)
		if (c->places[i].grows)
			err = volumes_growth_store(m, m->volumes[i], &c->places[i].growth);
	for (unsigned i = 0; !err && i < c->config->nexports; i++)
		if (c->places[i].gone)
			err = removal_store(m, m->volumes[i], &c->places[i].ended);
	CRASH_POINT("store.added");
	return err;
}

static void drop_new(const struct change *c)
{
	struct meta *m = c->m;

	for (unsigned i = 0; i < m->nvolumes; i++)
		if (c->places[i].made)
			volumes_close(m->volumes[i]);
	while (m->nvolumes > c->nold)
		free(m->volumes[--m->nvolumes]);
}

static int change_exports(const struct change *c)
{
	int err = store_begin(c->m->store);

	if (err)
		return err;
	err = make_all(c);
	if (!err)
		err = store_commit(c->m->store);
	else
		store_abort(c->m->store);
	if (err)
		drop_new(c);
	return err;
}

/* ---- what can't ------------------------------------------------------------------------------ */

static void apply(const struct change *c)
{
	for (unsigned i = 0; i < c->nold; i++) {
		if (c->places[i].gone)
			removal_forget(c->m, i, c->places[i].ended);
		if (c->places[i].grows)
			volumes_growth_apply(c->m->volumes[i], &c->places[i].growth);
	}
}

static void set_limits(const struct change *c)
{
	for (unsigned i = 0; i < c->nold; i++) {
		uint64_t inodes;

		if (!stays(c, i))
			continue;
		inodes = c->config->exports[i].max_inodes;
		quota_replace(c->m->volumes[i], steal_ptr(&c->places[i].quotas));
		c->m->volumes[i]->max_inodes = inodes ? inodes : UINT64_MAX;
	}
	share_set(c->m, c->config);
}

int meta_reconfigure(struct meta *m, const struct meta_config *config, struct store_growth *growth,
	char *why, size_t whylen)
{
	struct change c = {m, config, m->nvolumes, NULL, why, whylen};
	int err;

	*why = '\0';
	err = prepare(&c);
	if (!err)
		err = prepare_quotas(&c);
	if (!err)
		err = prepare_growth(&c);
	if (!err)
		err = grow(&c, growth);
	if (!err)
		err = change_exports(&c);
	if (!err) {
		apply(&c);
		set_limits(&c);
	}
	discard(&c);
	if (err && !*why)
		snprintf(why, whylen, "the store can't take it: %s", errno_text(err));
	return err;
}
