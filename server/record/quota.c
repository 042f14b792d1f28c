/* quota.c - see quota.h. Keys of the table of usage: export 16 bits, kind 16, id 32. A record of
 * kind 0 says that the export's usage is kept. Reservations have the session before that. */
#include "server/record/quota.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "server/record/quota_count.h"

enum { USAGE_BYTES = 24, HELD_BYTES = 8 };

enum { KINDS = 2 };
static const enum rpc_quota_kind kinds[KINDS] = {QUOTA_USER, QUOTA_GROUP};

struct quotas {
	struct quota_limit everybody[KINDS];
	unsigned n;
	struct quota_limit own[]; /* sorted by kind and id */
};

static uint64_t owner_key(const struct volume *v, uint32_t kind, uint32_t id)
{
	return (uint64_t)v->id << INO_BITS | (uint64_t)kind << 32 | id;
}

static bool quota_is_of(const struct volume *v, uint64_t key)
{
	return key >> INO_BITS == v->id;
}

static enum rpc_quota_kind quota_kind_of(uint64_t key)
{
	return (enum rpc_quota_kind)(uint16_t)(key >> 32);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static int quota_compare(const void *a, const void *b)
{
	const struct quota_limit *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static struct quotas *make_limits(const struct quota_limit *limits, unsigned n)
{
	struct quotas *q = calloc(1, sizeof(*q) + n * sizeof(q->own[0]));

	if (!q)
		return NULL;
	for (unsigned k = 0; k < KINDS; k++)
		q->everybody[k] = (struct quota_limit){.kind = kinds[k], .everybody = true};
	for (unsigned i = 0; i < n; i++) {
		if (limits[i].everybody)
			q->everybody[limits[i].kind - QUOTA_USER] = limits[i];
		else
			q->own[q->n++] = limits[i];
	}
	qsort(q->own, q->n, sizeof(q->own[0]), quota_compare);
	return q;
}

static const struct quota_limit *own_limit(
	const struct quotas *q, enum rpc_quota_kind kind, uint32_t id)
{
	const struct quota_limit want = {.kind = kind, .id = id};

	return bsearch(&want, q->own, q->n, sizeof(want), quota_compare);
}

static struct quota_limit limit_of(const struct volume *v, enum rpc_quota_kind kind, uint32_t id)
{
	const struct quota_limit *own = own_limit(v->quotas, kind, id);
	struct quota_limit limit = {.kind = kind, .id = id};

	if (own)
		return *own;
	if (id) {
		limit = v->quotas->everybody[kind - QUOTA_USER];
		limit.id = id;
	}
	return limit;
}

/* ---- the table of usage ---------------------------------------------------------------------- */

static int decode_usage(
	struct volume *v, uint64_t key, const struct store_val *val, struct quota_usage *usage)
{
	struct wire_in r;

	wire_in_init(&r, val->data, val->len);
	usage->npages = wire_get_u64(&r);
	usage->inodes = wire_get_u64(&r);
	usage->held = wire_get_u64(&r);
	if (r.truncated || wire_in_left(&r))
		return store_damaged(v->store, STORE_QUOTA, STORE_KEY(key));
	return 0;
}

int quota_decode(struct volume *v, struct store_key key, const struct store_val *val,
	enum rpc_quota_kind *kind, uint32_t *id, struct quota_usage *usage)
{
	*kind = quota_kind_of(key.hi);
	*id = (uint32_t)key.hi;
	if (*kind == 0 && *id == 0)
		return 0;
	if (*kind != QUOTA_USER && *kind != QUOTA_GROUP)
		return store_damaged(v->store, STORE_QUOTA, key);
	return decode_usage(v, key.hi, val, usage);
}

static int quota_load(struct volume *v, uint64_t key, struct quota_usage *usage)
{
	struct store_val val;
	int err = store_get(v->store, STORE_QUOTA, STORE_KEY(key), &val);

	*usage = (struct quota_usage){0};
	if (err)
		return err == -ENOENT ? 0 : err;
	return decode_usage(v, key, &val, usage);
}

/* An owner of nothing has no record. */
static int quota_save(struct volume *v, uint64_t key, const struct quota_usage *usage)
{
	uint8_t buf[USAGE_BYTES];
	struct wire_out w;
	int err;

	if (!usage->npages && !usage->inodes && !usage->held) {
		err = store_del(v->store, STORE_QUOTA, STORE_KEY(key));
		return err == -ENOENT ? 0 : err;
	}
	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u64(&w, usage->npages);
	wire_put_u64(&w, usage->inodes);
	wire_put_u64(&w, usage->held);
	return store_put(v->store, STORE_QUOTA, STORE_KEY(key), buf, sizeof(buf));
}

/* Usage that is added, and usage that is taken away. */
struct change {
	struct quota_usage more, less;
};

static int quota_apply(struct volume *v, uint64_t key, const struct change *c)
{
	struct quota_usage usage;
	int err = quota_load(v, key, &usage);

	if (err)
		return err;
	usage.npages += c->more.npages;
	usage.inodes += c->more.inodes;
	usage.held += c->more.held;
	if (usage.npages < c->less.npages || usage.inodes < c->less.inodes ||
		usage.held < c->less.held)
		return store_damaged(v->store, STORE_QUOTA, STORE_KEY(key));
	usage.npages -= c->less.npages;
	usage.inodes -= c->less.inodes;
	usage.held -= c->less.held;
	return quota_save(v, key, &usage);
}

int quota_next(struct volume *v, enum rpc_quota_kind kind, uint64_t *id, struct quota_usage *usage)
{
	struct store_key key;
	struct store_val val;
	int err;

	if (*id > UINT32_MAX)
		return -ENOENT;
	err = store_seek(
		v->store, STORE_QUOTA, STORE_KEY(owner_key(v, kind, (uint32_t)*id)), &key, &val);
	if (!err && (!quota_is_of(v, key.hi) || quota_kind_of(key.hi) != kind))
		err = -ENOENT;
	if (!err)
		err = decode_usage(v, key.hi, &val, usage);
	if (!err)
		*id = (uint32_t)key.hi + UINT64_C(1);
	return err;
}

/* ---- inodes ---------------------------------------------------------------------------------- */

static uint32_t id_in(const struct quota_share *share, enum rpc_quota_kind kind)
{
	return kind == QUOTA_USER ? share->uid : share->gid;
}

static int quota_check_owner(
	struct volume *v, enum rpc_quota_kind kind, uint32_t id, uint64_t npages, uint64_t inodes)
{
	struct quota_limit limit = limit_of(v, kind, id);
	struct quota_usage usage;
	int err;

	if ((!npages || !limit.npages) && (!inodes || !limit.inodes))
		return 0;
	err = quota_load(v, owner_key(v, kind, id), &usage);
	if (err)
		return err;
	if (npages && limit.npages && usage.npages + usage.held + npages > limit.npages)
		return -EDQUOT;
	return inodes && limit.inodes && usage.inodes + inodes > limit.inodes ? -EDQUOT : 0;
}

int quota_check(struct volume *v, const struct quota_share *from, const struct quota_share *to)
{
	int err = 0;

	for (unsigned k = 0; quota_on(v) && !err && k < KINDS; k++) {
		bool same = id_in(from, kinds[k]) == id_in(to, kinds[k]);
		uint64_t npages = same ? min_u64(from->npages, to->npages) : 0;
		uint64_t inodes = same ? min_u64(from->inodes, to->inodes) : 0;

		err = quota_check_owner(
			v, kinds[k], id_in(to, kinds[k]), to->npages - npages, to->inodes - inodes);
	}
	return err;
}

static int left_of(struct volume *v, enum rpc_quota_kind kind, uint32_t id, uint64_t *left)
{
	struct quota_limit limit = limit_of(v, kind, id);
	struct quota_usage usage = {0};
	int err = limit.npages ? quota_load(v, owner_key(v, kind, id), &usage) : 0;

	*left = UINT64_MAX;
	if (!err && limit.npages)
		*left = limit.npages - min_u64(limit.npages, usage.npages + usage.held);
	return err;
}

int quota_left(struct volume *v, const struct quota_share *counted, uint64_t npages, uint64_t *left)
{
	uint64_t more = npages - min_u64(npages, counted->npages), n;
	int err = 0;

	*left = UINT64_MAX;
	for (unsigned k = 0; quota_on(v) && !err && k < KINDS; k++) {
		err = left_of(v, kinds[k], id_in(counted, kinds[k]), &n);
		if (!err && n != UINT64_MAX)
			*left = min_u64(*left, n - min_u64(n, more));
	}
	return err;
}

static int charge_kind(struct volume *v, enum rpc_quota_kind kind, const struct quota_share *from,
	const struct quota_share *to)
{
	const struct quota_usage less = {.npages = from->npages, .inodes = from->inodes};
	const struct quota_usage more = {.npages = to->npages, .inodes = to->inodes};
	uint32_t from_id = id_in(from, kind), to_id = id_in(to, kind);
	int err = 0;

	if (from_id == to_id && from->npages == to->npages && from->inodes == to->inodes)
		return 0;
	if (from_id == to_id)
		return quota_apply(v, owner_key(v, kind, to_id), &(struct change){more, less});
	if (from->inodes)
		err = quota_apply(v, owner_key(v, kind, from_id), &(struct change){.less = less});
	if (!err && to->inodes)
		err = quota_apply(v, owner_key(v, kind, to_id), &(struct change){.more = more});
	return err;
}

int quota_charge(struct volume *v, const struct quota_share *from, const struct quota_share *to)
{
	int err = 0;

	for (unsigned k = 0; quota_on(v) && !err && k < KINDS; k++)
		err = charge_kind(v, kinds[k], from, to);
	return err;
}

/* ---- reservations ---------------------------------------------------------------------------- */

int quota_decode_held(struct volume *v, struct store_key key, const struct store_val *val,
	struct quota_held *held)
{
	struct wire_in r;

	held->session = key.hi;
	held->kind = quota_is_of(v, key.lo) ? quota_kind_of(key.lo) : 0;
	held->id = (uint32_t)key.lo;
	wire_in_init(&r, val->data, val->len);
	held->npages = wire_get_u64(&r);
	if (r.truncated || wire_in_left(&r) || !held->npages)
		return store_damaged(v->store, STORE_HELD, key);
	return 0;
}

static int load_held(struct volume *v, struct store_key key, uint64_t *npages)
{
	struct quota_held held = {0};
	struct store_val val;
	int err = store_get(v->store, STORE_HELD, key, &val);

	if (!err)
		err = quota_decode_held(v, key, &val, &held);
	*npages = held.npages;
	return err == -ENOENT ? 0 : err;
}

static int save_held(struct volume *v, struct store_key key, uint64_t npages)
{
	uint8_t buf[HELD_BYTES];
	struct wire_out w;

	if (!npages)
		return store_del(v->store, STORE_HELD, key);
	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u64(&w, npages);
	return store_put(v->store, STORE_HELD, key, buf, sizeof(buf));
}

int quota_reserve(struct volume *v, uint64_t session, enum rpc_quota_kind kind, uint32_t id,
	uint64_t want, uint64_t *got)
{
	struct quota_limit limit = quota_on(v) ? limit_of(v, kind, id) : (struct quota_limit){0};
	struct store_key key = STORE_KEY(session, owner_key(v, kind, id));
	struct quota_usage usage;
	uint64_t held, taken;
	int err;

	*got = QUOTA_UNLIMITED;
	if (!limit.npages)
		return 0;
	err = quota_load(v, key.lo, &usage);
	if (err)
		return err;
	taken = usage.npages + usage.held;
	if (taken >= limit.npages)
		return -EDQUOT;
	*got = min_u64(want, limit.npages - taken);
	usage.held += *got;
	err = load_held(v, key, &held);
	if (!err)
		err = save_held(v, key, held + *got);
	return err ? err : quota_save(v, key.lo, &usage);
}

int quota_give_back(
	struct volume *v, uint64_t session, enum rpc_quota_kind kind, uint32_t id, uint64_t npages)
{
	struct store_key key = STORE_KEY(session, owner_key(v, kind, id));
	uint64_t held, n;
	int err = load_held(v, key, &held);

	n = min_u64(held, npages);
	if (err || !n)
		return err;
	err = save_held(v, key, held - n);
	return err ? err : quota_apply(v, key.lo, &(struct change){.less.held = n});
}

int quota_use(struct volume *v, uint64_t session, uint32_t uid, uint32_t gid, uint64_t npages)
{
	int err;

	if (!quota_on(v) || !npages)
		return 0;
	err = quota_give_back(v, session, QUOTA_USER, uid, npages);
	return err ? err : quota_give_back(v, session, QUOTA_GROUP, gid, npages);
}

/* The next reservation, from *at on; advances it. */
static int next_held(struct volume *v, struct store_key *at, struct quota_held *held)
{
	struct store_key key;
	struct store_val val;
	int err = store_seek(v->store, STORE_HELD, *at, &key, &val);

	if (err)
		return err;
	*at = STORE_KEY(key.hi, key.lo + 1);
	return quota_decode_held(v, key, &val, held);
}

int quota_end_session(struct volume *v, uint64_t session, unsigned max, bool *done)
{
	struct store_key at = STORE_KEY(session);
	struct quota_held held = {0};
	int err = 0;

	*done = false;
	while (max--) {
		err = next_held(v, &at, &held);
		if (err || held.session != session)
			break;
		if (!held.kind)
			return store_damaged(v->store, STORE_HELD, STORE_KEY(session));
		err = quota_give_back(v, session, held.kind, held.id, held.npages);
		if (err)
			return err;
	}
	if (err && err != -ENOENT)
		return err;
	*done = err == -ENOENT || held.session != session;
	return 0;
}

/* ---- beginning and ending -------------------------------------------------------------------- */

static int forget_usage(struct volume *v)
{
	struct store_key key;
	int err = 0;

	while (!err) {
		err = store_seek(v->store, STORE_QUOTA, STORE_KEY(owner_key(v, 0, 0)), &key, NULL);
		if (!err && !quota_is_of(v, key.hi))
			err = -ENOENT;
		if (!err)
			err = store_del(v->store, STORE_QUOTA, key);
	}
	return err == -ENOENT ? 0 : err;
}

static int forget_held(struct volume *v)
{
	struct store_key at = STORE_KEY(0), key;
	struct quota_held held;
	int err = 0;

	while (!err) {
		err = next_held(v, &at, &held);
		if (err || !held.kind)
			continue;
		key = STORE_KEY(held.session, owner_key(v, held.kind, held.id));
		err = store_del(v->store, STORE_HELD, key);
	}
	return err == -ENOENT ? 0 : err;
}

static int store_sums(struct volume *v, const struct quota_sums *sums)
{
	static const uint8_t mark;
	struct store_key key = STORE_KEY(owner_key(v, 0, 0));
	int err = store_put(v->store, STORE_QUOTA, key, &mark, sizeof(mark));

	for (size_t i = 0; !err && i < sums->room; i++) {
		const struct quota_sum *sum = &sums->v[i];

		if (sum->kind)
			err = quota_save(v, owner_key(v, sum->kind, sum->id), &sum->usage);
	}
	return err;
}

static int count_all(struct volume *v)
{
	struct quota_sums sums;
	int err = quota_count(v, &sums);

	if (err)
		return err;
	err = store_sums(v, &sums);
	quota_sums_fini(&sums);
	return err;
}

int quota_is_kept(struct volume *v, bool *kept)
{
	struct store_val val;
	int err = store_get(v->store, STORE_QUOTA, STORE_KEY(owner_key(v, 0, 0)), &val);

	*kept = !err;
	return err == -ENOENT ? 0 : err;
}

int quota_open(struct volume *v, const struct quota_limit *limits, unsigned n)
{
	bool kept;
	int err = quota_is_kept(v, &kept);

	if (err)
		return err;
	if (!n) {
		err = kept ? forget_usage(v) : 0;
		return err || !kept ? err : forget_held(v);
	}
	err = kept ? 0 : count_all(v);
	if (err)
		return err;
	v->quotas = make_limits(limits, n);
	return v->quotas ? 0 : -ENOMEM;
}

void quota_close(struct volume *v)
{
	free(v->quotas);
	v->quotas = NULL;
}

int quota_prepare(
	const struct volume *v, const struct quota_limit *limits, unsigned n, struct quotas **out)
{
	*out = NULL;
	if (quota_on(v) != (n > 0))
		return -EOPNOTSUPP;
	if (!n)
		return 0;
	*out = make_limits(limits, n);
	return *out ? 0 : -ENOMEM;
}

void quota_replace(struct volume *v, struct quotas *quotas)
{
	free(v->quotas);
	v->quotas = quotas;
}

void quota_discard(struct quotas *quotas)
{
	free(quotas);
}

/* ---- for people ------------------------------------------------------------------------------ */

static int each_own(
	struct volume *v, void (*fn)(const struct quota_entry *entry, void *arg), void *arg)
{
	struct quota_entry entry;
	int err = 0;

	for (unsigned i = 0; !err && i < v->quotas->n; i++) {
		entry.limit = v->quotas->own[i];
		err = quota_load(v, owner_key(v, entry.limit.kind, entry.limit.id), &entry.usage);
		if (!err)
			fn(&entry, arg);
	}
	return err;
}

static int each_other(struct volume *v, enum rpc_quota_kind kind,
	void (*fn)(const struct quota_entry *entry, void *arg), void *arg)
{
	struct quota_entry entry = {.limit = v->quotas->everybody[kind - QUOTA_USER]};
	uint64_t next = 0;
	int err = 0;

	if (entry.limit.npages || entry.limit.inodes)
		fn(&entry, arg);
	while (!err) {
		err = quota_next(v, kind, &next, &entry.usage);
		if (err || own_limit(v->quotas, kind, (uint32_t)(next - 1)))
			continue;
		entry.limit = limit_of(v, kind, (uint32_t)(next - 1));
		entry.limit.everybody = false;
		fn(&entry, arg);
	}
	return err == -ENOENT ? 0 : err;
}

int quota_each(struct volume *v, void (*fn)(const struct quota_entry *entry, void *arg), void *arg)
{
	int err = quota_on(v) ? each_own(v, fn, arg) : 0;

	for (unsigned k = 0; quota_on(v) && !err && k < KINDS; k++)
		err = each_other(v, kinds[k], fn, arg);
	return err;
}
