/* reconfigure.c - another configuration for an open store: more exports, and other limits.
 *
 * All that can fail comes first. Then one transaction makes the new exports. After its commit the
 * limits are put in force, which can't fail. If the store grew before a failure it stays so large.
 */
#include "server/meta/meta_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/meta/share.h"
#include "server/meta/volumes.h"
#include "server/record/quota.h"

struct change {
	struct meta *m;
	const struct meta_config *config;
	struct quotas **quotas; /* [nold] */
	unsigned nold;          /* exports that are open */
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

static int prepare_quotas(const struct change *c)
{
	int err = 0;

	for (unsigned i = 0; !err && i < c->nold; i++) {
		const struct meta_export *e = &c->config->exports[i];

		err = quota_prepare(c->m->volumes[i], e->quotas, e->nquotas, &c->quotas[i]);
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

static struct quotas **quotas_new(const struct meta *m)
{
	return calloc(m->nvolumes + 1, sizeof(struct quotas *));
}

static void discard_quotas(const struct change *c)
{
	for (unsigned i = 0; c->quotas && i < c->nold; i++)
		quota_discard(c->quotas[i]);
	free(c->quotas);
}

int meta_may_reconfigure(struct meta *m, const struct meta_config *config, char *why, size_t whylen)
{
	struct change c = {m, config, quotas_new(m), m->nvolumes, why, whylen};
	struct store_usage usage;
	int err = c.quotas ? prepare_quotas(&c) : -ENOMEM;

	discard_quotas(&c);
	if (err == -ENOMEM)
		snprintf(why, whylen, "out of memory");
	store_usage(m->store, &usage);
	if (!err && config->store_bytes > usage.npages * PAGE_BYTES && store_is_viewed(m->store))
		err = wait_for_snapshot(&c);
	return err;
}

static int make_one(const struct change *c, const struct meta_export *e)
{
	struct meta *m = c->m;
	struct volume *v, found;
	uint16_t id;
	int err = volumes_find(m, e->name, &found, &id);

	if (err != -ENOENT)
		return err ? err : -EEXIST;
	err = id ? volumes_add(m) : -ENOSPC;
	if (err)
		return err;
	v = m->volumes[m->nvolumes - 1];
	return volumes_make(m, v, id, e);
}

static int make_all(const struct change *c)
{
	struct meta *m = c->m;
	uint64_t room = 0;
	int err;

	for (unsigned i = c->nold; i < c->config->nexports; i++)
		room += ROOM_PAGES + c->config->exports[i].nregions;
	err = meta_room(m, room, true);
	for (unsigned i = c->nold; !err && i < c->config->nexports; i++)
		err = make_one(c, &c->config->exports[i]);
	CRASH_POINT("store.added");
	return err;
}

static void drop_new(const struct change *c)
{
	struct meta *m = c->m;

	while (m->nvolumes > c->nold) {
		struct volume *v = m->volumes[--m->nvolumes];

		volumes_close(v);
		free(v);
	}
}

static int add_exports(const struct change *c)
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

static void set_limits(const struct change *c)
{
	for (unsigned i = 0; i < c->nold; i++) {
		uint64_t inodes = c->config->exports[i].max_inodes;

		quota_replace(c->m->volumes[i], steal_ptr(&c->quotas[i]));
		c->m->volumes[i]->max_inodes = inodes ? inodes : UINT64_MAX;
	}
	share_set(c->m, c->config);
}

int meta_reconfigure(struct meta *m, const struct meta_config *config, struct store_growth *growth,
	char *why, size_t whylen)
{
	struct change c = {m, config, quotas_new(m), m->nvolumes, why, whylen};
	int err;

	*why = '\0';
	err = c.quotas ? prepare_quotas(&c) : -ENOMEM;
	if (!err)
		err = grow(&c, growth);
	if (!err)
		err = add_exports(&c);
	if (!err)
		set_limits(&c);
	discard_quotas(&c);
	if (err && !*why)
		snprintf(why, whylen, "the store can't take it: %s", errno_text(err));
	return err;
}
