/* quota_count.c - see quota_count.h. */
#include "server/record/quota_count.h"

#include <errno.h>
#include <stdlib.h>

#include "server/record/inode.h"
#include "server/record/inode_record.h"

static size_t quota_count_place(const struct quota_sums *sums, uint32_t kind, uint32_t id)
{
	uint64_t hash = ((uint64_t)kind << 32 | id) * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (size_t)(hash >> 32) & (sums->room - 1);

	while (sums->v[i].kind && (sums->v[i].kind != kind || sums->v[i].id != id))
		i = (i + 1) & (sums->room - 1);
	return i;
}

static int quota_count_grow(struct quota_sums *sums)
{
	struct quota_sums larger = {.n = sums->n, .room = sums->room ? sums->room * 2 : 64};

	larger.v = calloc(larger.room, sizeof(*larger.v));
	if (!larger.v)
		return -ENOMEM;
	for (size_t i = 0; i < sums->room; i++)
		if (sums->v[i].kind)
			larger.v[quota_count_place(&larger, sums->v[i].kind, sums->v[i].id)] =
				sums->v[i];
	free(sums->v);
	*sums = larger;
	return 0;
}

struct quota_sum *quota_sum_of(struct quota_sums *sums, enum rpc_quota_kind kind, uint32_t id)
{
	struct quota_sum *sum;

	if (sums->n * 2 >= sums->room && quota_count_grow(sums))
		return NULL;
	sum = &sums->v[quota_count_place(sums, kind, id)];
	if (!sum->kind) {
		sum->kind = kind;
		sum->id = id;
		sums->n++;
	}
	return sum;
}

static int quota_count_add(struct quota_sums *sums, enum rpc_quota_kind kind, uint32_t id,
	const struct quota_share *share)
{
	struct quota_sum *sum = quota_sum_of(sums, kind, id);

	if (!sum)
		return -ENOMEM;
	sum->usage.npages += share->npages;
	sum->usage.inodes += share->inodes;
	return 0;
}

int quota_sums_add(struct quota_sums *sums, const struct quota_share *share)
{
	int err = share->inodes ? quota_count_add(sums, QUOTA_USER, share->uid, share) : 0;

	return err || !share->inodes ? err : quota_count_add(sums, QUOTA_GROUP, share->gid, share);
}

int quota_count(struct volume *v, struct quota_sums *sums)
{
	struct store_key key, start = STORE_KEY(inode_key(v, 0));
	struct store_val val;
	struct stored_inode inode;
	int err = store_seek(v->store, STORE_INODE, start, &key, &val);

	*sums = (struct quota_sums){0};
	while (!err && key.hi >> INO_BITS == v->id) {
		err = inode_record_decode(v, key, &val, &inode);
		if (!err)
			err = quota_sums_add(sums, &inode.counted);
		if (!err)
			err = store_next(v->store, STORE_INODE, &key, &val);
	}
	if (!err || err == -ENOENT)
		return 0;
	quota_sums_fini(sums);
	return err;
}

void quota_sums_fini(struct quota_sums *sums)
{
	free(sums->v);
	*sums = (struct quota_sums){0};
}
