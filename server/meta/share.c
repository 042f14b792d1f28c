/* share.c - see share.h. */
#include "server/meta/share.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "common/conf/conf.h"
#include "server/meta/session_codec.h"

/* This part of each share is for LMDB's list of free pages, and for pages that the last
 * transactions gave up. */
enum { SLACK_SHARE = 32 };

/* An eighth of the store's pages, within these bounds. The upper one is for leases
 * (namespace/lease.c): several clients may each keep as many as the default lets them. */
enum { RESERVE_MIN = 512, RESERVE_MAX = 32768, RESERVE_SHARE = 8 };

uint64_t share_used(const struct volume *v)
{
	return (uint64_t)max_i64(v->now.store_pages, 0);
}

static uint64_t for_grants(const struct volume *v)
{
	return v->space.now.granted / PAGES_PER_STORE_PAGE;
}

static bool fits(const struct volume *v, uint64_t npages)
{
	return share_used(v) + npages <= v->share.growth;
}

int share_room(const struct volume *v, uint64_t npages, bool grows)
{
	if (v->share.most == UINT64_MAX)
		return 0;
	if (grows)
		return fits(v, npages + for_grants(v)) ? 0 : -ENOSPC;
	/* Its pages count when it has taken them, so its worst case need not fit. */
	return share_used(v) <= v->share.most ? 0 : -ENOSPC;
}

bool share_has_room_but_for_grants(const struct volume *v, uint64_t npages)
{
	return fits(v, npages);
}

uint64_t share_reserve(const struct meta *m, const struct volume *v)
{
	return v->share.most == UINT64_MAX ? m->reserve : v->share.reserve;
}

/* The part that an export has taken is in use, and is not kept once more. */
static uint64_t reserve_left(const struct meta *m, const struct volume *v)
{
	uint64_t over = share_used(v) - min_u64(share_used(v), v->share.growth);
	uint64_t reserve = share_reserve(m, v);

	return reserve - min_u64(reserve, over);
}

uint64_t share_reserves(const struct meta *m)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < m->nvolumes; i++)
		n += reserve_left(m, m->volumes[i]);
	return n;
}

uint64_t share_left(const struct meta *m, const struct volume *v)
{
	struct store_usage store;
	uint64_t taken, left;

	store_usage(m->store, &store);
	taken = store.used_pages + share_reserves(m);
	left = store.npages - min_u64(store.npages, taken);
	if (v->share.most == UINT64_MAX)
		return left;
	return min_u64(left, v->share.growth - min_u64(v->share.growth, share_used(v)));
}

/* ---- counting -------------------------------------------------------------------------------- */

/* A stored session and its export's counter; NULL: of an export that is not configured. */
struct owner {
	uint64_t session;
	int64_t *counter;
};

struct owners {
	const struct meta *m;
	int64_t *counts; /* [m->nvolumes] */
	struct owner *v; /* by session */
	size_t n, room;
};

static int64_t *counter_of(const struct owners *o, uint64_t export_id)
{
	for (unsigned i = 0; i < o->m->nvolumes; i++)
		if (o->m->volumes[i]->id == export_id)
			return &o->counts[i];
	return NULL;
}

static int add_owner(struct owners *o, uint64_t session, int64_t *counter)
{
	if (o->n == o->room) {
		size_t room = max_u64(64, 2 * o->room);
		struct owner *v = realloc(o->v, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		o->v = v;
		o->room = room;
	}
	o->v[o->n++] = (struct owner){session, counter};
	return 0;
}

static int load_owners(struct meta *m, struct owners *o)
{
	struct session_record rec;
	uint64_t id = 0;
	int err = 0;

	while (!err) {
		err = session_codec_next(m, &id, &rec);
		if (!err)
			err = add_owner(o, rec.session.id, counter_of(o, rec.export_id));
	}
	return err == -ENOENT ? 0 : err;
}

static int compare_owners(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return x->session < y->session ? -1 : x->session > y->session;
}

static int64_t *counter_of_session(const struct owners *o, uint64_t session)
{
	const struct owner want = {.session = session};
	const struct owner *found = bsearch(&want, o->v, o->n, sizeof(want), compare_owners);

	return found ? found->counter : NULL;
}

/* See enum store_table for the keys. */
static int64_t *owner_of(enum store_table table, struct store_key key, void *arg)
{
	switch (table) {
	case STORE_SESSION:
	case STORE_REPLY:
	case STORE_STAGE:
		return counter_of_session(arg, key.hi);
	case STORE_ORPHAN:
	case STORE_HELD:
		return counter_of(arg, key.lo >> INO_BITS);
	default:
		return counter_of(arg, key.hi >> INO_BITS);
	}
}

int share_count(struct meta *m, int64_t *counts)
{
	struct owners o = {.m = m, .counts = counts};
	int err;

	memset(counts, 0, m->nvolumes * sizeof(*counts));
	err = load_owners(m, &o);
	if (!err)
		err = store_count_pages(m->store, owner_of, &o);
	free(o.v);
	return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

void share_fit(struct volume *v)
{
	char used[32], share[32];

	if (share_used(v) <= v->share.growth)
		return;
	v->share.most = max_u64(v->share.most, share_used(v) + v->share.reserve);
	size_format(share_used(v) * PAGE_BYTES, used, sizeof(used));
	size_format(v->share.pages * PAGE_BYTES, share, sizeof(share));
	log_warning("export '%s' has %s of metadata, as much as its share of %s allows, or more: "
		    "nothing new can be made in it; remove files, or give it more (metadata)",
		v->name, used, share);
}

/* The store, as the exports have to share it. */
struct whole {
	uint64_t pages, nobodys; /* in all, and of exports that are not configured */
};

static uint64_t part_of(const struct whole *store, uint64_t pages, uint64_t share)
{
	return (uint64_t)((unsigned __int128)pages * share / store->pages);
}

static void set_share(
	const struct meta *m, struct volume *v, uint64_t bytes, const struct whole *store)
{
	uint64_t n = bytes / PAGE_BYTES;

	v->share = (struct volume_share){
		.pages = store->pages, .growth = UINT64_MAX, .most = UINT64_MAX};
	if (!bytes)
		return;
	v->share.pages = n;
	v->share.reserve = part_of(store, m->reserve, n);
	v->share.most = n - n / SLACK_SHARE - part_of(store, store->nobodys, n);
	v->share.growth = v->share.most - min_u64(v->share.most, v->share.reserve);
	share_fit(v);
}

void share_set_reserve(struct meta *m)
{
	struct store_usage usage;

	store_usage(m->store, &usage);
	m->reserve = max_u64(RESERVE_MIN, min_u64(usage.npages / RESERVE_SHARE, RESERVE_MAX));
}

void share_set(struct meta *m, const struct meta_config *config)
{
	struct store_usage usage;
	struct whole store;

	store_usage(m->store, &usage);
	store = (struct whole){usage.npages, usage.used_pages};
	for (unsigned i = 0; i < m->nvolumes; i++)
		store.nobodys -= min_u64(store.nobodys, share_used(m->volumes[i]));
	store.nobodys -= min_u64(store.nobodys, (uint64_t)max_i64(m->now.removed_pages, 0));
	for (unsigned i = 0; i < m->nvolumes; i++)
		if (m->volumes[i]->id)
			set_share(m, m->volumes[i], config->exports[i].metadata_bytes, &store);
}

int share_open(struct meta *m, const struct meta_config *config)
{
	autofree int64_t *counts = calloc(m->nvolumes, sizeof(*counts));
	int err = counts ? share_count(m, counts) : -ENOMEM;

	for (unsigned i = 0; !err && i < m->nvolumes; i++)
		m->volumes[i]->now.store_pages = counts[i];
	if (!err)
		share_set(m, config);
	return err;
}
