/* check_quota.c - quotas: usage is the sum over the inodes; reservations belong to sessions and add
 * up. */
#include "server/check/check_internal.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/util.h"
#include "server/record/quota.h"

static const char *kind_name(uint32_t kind)
{
	return kind == QUOTA_USER ? "user" : "group";
}

int check_begin_quotas(struct check *c)
{
	return quota_is_kept(c->v, &c->has_quotas);
}

int check_count_inode(struct check *c, const struct stored_inode *i)
{
	return c->has_quotas ? quota_sums_add(&c->quotas, &i->counted) : 0;
}

static void check_quota_compare(struct check *c, uint32_t kind, uint32_t id,
	const struct quota_usage *have, const struct quota_usage *says)
{
	if (have->npages != says->npages || have->inodes != says->inodes ||
		have->held != says->held)
		check_problem(c,
			"%s %" PRIu32 " has %" PRIu64 " pages, %" PRIu64 " inodes and %" PRIu64
			" pages reserved, and its quota says %" PRIu64 ", %" PRIu64 " and %" PRIu64,
			kind_name(kind), id, have->npages, have->inodes, have->held, says->npages,
			says->inodes, says->held);
}

static int check_held(struct check *c, struct store_key key, const struct store_val *val)
{
	struct quota_held held;
	struct quota_sum *sum;
	int err = quota_decode_held(c->v, key, val, &held);

	if (err || !held.kind)
		return err;
	if (!check_list_has(&c->sessions, held.session))
		check_problem(c,
			"%" PRIu64 " pages of %s %" PRIu32
			"'s quota are reserved for session %" PRIu64 ", which is not there",
			held.npages, kind_name(held.kind), held.id, held.session);
	sum = quota_sum_of(&c->quotas, held.kind, held.id);
	if (!sum)
		return -ENOMEM;
	sum->usage.held += held.npages;
	return 0;
}

/* Compares an owner that the table has, and takes it out of the sums. */
static int check_usage(struct check *c, struct store_key key, const struct store_val *val)
{
	struct quota_usage usage;
	enum rpc_quota_kind kind;
	struct quota_sum *sum;
	uint32_t id;
	int err = quota_decode(c->v, key, val, &kind, &id, &usage);

	if (err || !kind)
		return err;
	sum = quota_sum_of(&c->quotas, kind, id);
	if (!sum)
		return -ENOMEM;
	check_quota_compare(c, kind, id, &sum->usage, &usage);
	sum->usage = (struct quota_usage){0};
	return 0;
}

/* Sums that are left belong to owners that the table does not have. */
static void check_missing(struct check *c)
{
	const struct quota_usage nothing = {0};

	for (size_t i = 0; i < c->quotas.room; i++) {
		const struct quota_sum *sum = &c->quotas.v[i];

		if (sum->kind)
			check_quota_compare(c, sum->kind, sum->id, &sum->usage, &nothing);
	}
}

int check_quotas(struct check *c)
{
	int err = check_each(c, STORE_HELD, 0, UINT64_MAX, check_held);

	if (!err)
		err = check_each_of_volume(c, STORE_QUOTA, check_usage);
	if (!err)
		check_missing(c);
	quota_sums_fini(&c->quotas);
	return err;
}

int check_held_exports(struct check *c, struct store_key key, const struct store_val *val)
{
	uint64_t id = key.lo >> INO_BITS;
	struct store_val record;

	if (!id || store_get(c->m->store, STORE_META, STORE_KEY(id), &record) == -ENOENT)
		check_problem(c,
			"session %" PRIu64 " has reserved of a quota of export %" PRIu64
			", which is not there",
			key.hi, id);
	return 0;
}
