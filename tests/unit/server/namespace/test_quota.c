/* test_quota.c - limits, usage and reservations, by cases and under a random load. */
#include "tests/unit/server/meta_fixture.h"

#include "server/record/inode.h"
#include "server/record/quota.h"

enum { ALICE = 1000, BOB = 1001, STAFF = 50, LIMIT_PAGES = 100, LIMIT_INODES = 5 };

static const struct quota_limit limits[] = {
	{.kind = QUOTA_USER, .id = ALICE, .npages = LIMIT_PAGES, .inodes = LIMIT_INODES},
	{.kind = QUOTA_USER, .everybody = true, .npages = 2 * LIMIT_PAGES},
	{.kind = QUOTA_GROUP, .id = STAFF, .npages = 4 * LIMIT_PAGES},
};

static void reopen_with(const struct quota_limit *v, unsigned n)
{
	fx.exports[0].quotas = v;
	fx.exports[0].nquotas = n;
	fx_reopen();
}

static int set_up(void **state)
{
	fx_set_up(state);
	reopen_with(limits, ARRAY_SIZE(limits));
	return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int make_as(uint16_t op, const char *name, uint32_t mode, uint32_t uid, uint32_t gid)
{
	struct rpc_create create = {.parent = ROOT_INO,
		.name = fx_str(name),
		.mode = mode,
		.exclusive = true,
		.target = fx_str("over/there"),
		.uid = uid,
		.gid = gid};

	return FX_RUN(.op = op, .create = create);
}

static uint64_t file_of(const char *name, uint32_t uid, uint32_t gid)
{
	assert_int_equal(make_as(RPC_CREATE, name, S_IFREG | 0644, uid, gid), 0);
	return fx.rep.entry.attr.ino;
}

static int reserve(enum rpc_quota_kind kind, uint32_t id, uint64_t npages)
{
	return FX_RUN(.op = RPC_QUOTA, .quota = {.kind = kind, .id = id, .npages = npages});
}

static int give_back(enum rpc_quota_kind kind, uint32_t id, uint64_t npages)
{
	return FX_RUN(.op = RPC_QUOTA,
		.quota = {.kind = kind, .id = id, .npages = npages, .give_back = true});
}

static int chown_to(uint64_t ino, uint32_t uid)
{
	return FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = ino, .valid = SET_UID, .uid = uid});
}

/* Removes the file and returns its inode. */
static void delete (const char *name)
{
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, name), 0);
	if (!fx.rep.remove.child.nlink)
		assert_int_equal(fx_return_inode(fx.rep.remove.child.ino), 0);
}

/* ---- the stored usage ------------------------------------------------------------------------ */

static struct quota_usage usage_of(enum rpc_quota_kind kind, uint32_t id)
{
	struct quota_usage usage, none = {0};
	uint64_t next = id;
	int err;

	assert_int_equal(store_begin_read(fx.m->store), 0);
	err = quota_next(fx_volume(), kind, &next, &usage);
	store_abort(fx.m->store);
	return !err && next == id + UINT64_C(1) ? usage : none;
}

static void assert_usage(
	enum rpc_quota_kind kind, uint32_t id, uint64_t npages, uint64_t inodes, uint64_t held)
{
	struct quota_usage usage = usage_of(kind, id);

	assert_int_equal(usage.npages, npages);
	assert_int_equal(usage.inodes, inodes);
	assert_int_equal(usage.held, held);
}

/* ---- usage ----------------------------------------------------------------------------------- */

static void quota_charge__follows_pages_and_inodes(void **state)
{
	uint64_t ino = file_of("a", ALICE, STAFF);

	assert_usage(QUOTA_USER, ALICE, 0, 1, 0);
	fx_fill(ino, 0, 10);
	fx_fill(ino, 20, 5);
	assert_usage(QUOTA_USER, ALICE, 15, 1, 0);
	assert_usage(QUOTA_GROUP, STAFF, 15, 1, 0);
	assert_int_equal(fx_truncate(ino, 3 * PAGE_BYTES), 0);
	assert_usage(QUOTA_USER, ALICE, 3, 1, 0);
	delete ("a");
	assert_usage(QUOTA_USER, ALICE, 0, 0, 0);
	assert_usage(QUOTA_GROUP, STAFF, 0, 0, 0);
}

static void quota_charge__unlinked_file_that_is_kept_counts(void **state)
{
	uint64_t ino = file_of("a", ALICE, STAFF);

	fx_fill(ino, 0, 10);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "a"), 0);
	assert_usage(QUOTA_USER, ALICE, 10, 1, 0);
	assert_int_equal(fx_return_inode(ino), 0);
	assert_usage(QUOTA_USER, ALICE, 0, 0, 0);
}

static void quota_charge__file_left_to_the_reaper_is_nobodys(void **state)
{
	uint64_t ino = fx_fragmented("long", 60);

	assert_int_equal(chown_to(ino, ALICE), 0);
	assert_usage(QUOTA_USER, ALICE, 60, 1, 0);
	delete ("long");
	assert_int_equal(fx_volume()->now.reap_files, 1);
	assert_usage(QUOTA_USER, ALICE, 0, 0, 0);
	assert_int_equal(fx_usage().inodes, 1);
	fx_settle();
	assert_usage(QUOTA_USER, ALICE, 0, 0, 0);
}

static void quota_charge__long_file_cut_short(void **state)
{
	uint64_t ino = fx_fragmented("long", 60);

	assert_int_equal(chown_to(ino, ALICE), 0);
	assert_int_equal(fx_truncate(ino, PAGE_BYTES), 0);
	assert_usage(QUOTA_USER, ALICE, 1, 1, 0);
	fx_settle();
	assert_usage(QUOTA_USER, ALICE, 1, 1, 0);
}

static void quota_charge__owner_of_nothing_has_no_record(void **state)
{
	uint64_t next = ALICE;
	struct quota_usage usage;

	file_of("a", ALICE, STAFF);
	delete ("a");
	assert_int_equal(store_begin_read(fx.m->store), 0);
	assert_int_equal(quota_next(fx_volume(), QUOTA_USER, &next, &usage), -ENOENT);
	store_abort(fx.m->store);
}

static void quota_charge__aborted_batch_changes_nothing(void **state)
{
	struct rpc_request req = {.op = RPC_CREATE,
		.create = {.parent = ROOT_INO,
			.name = fx_str("a"),
			.mode = S_IFREG | 0600,
			.uid = ALICE,
			.gid = STAFF}};

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(fx_execute(&req), 0);
	meta_abort(fx.m);
	assert_usage(QUOTA_USER, ALICE, 0, 0, 0);
	assert_int_equal(fx_usage().inodes, 1);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void create__beyond_the_users_inodes(void **state)
{
	char name[8];

	for (unsigned i = 0; i < LIMIT_INODES - 2; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		file_of(name, ALICE, STAFF);
	}
	assert_int_equal(make_as(RPC_MKDIR, "dir", 0755, ALICE, STAFF), 0);
	assert_int_equal(make_as(RPC_SYMLINK, "link", 0777, ALICE, STAFF), 0);
	assert_int_equal(make_as(RPC_CREATE, "f", S_IFREG | 0644, ALICE, STAFF), -EDQUOT);
	assert_int_equal(make_as(RPC_MKNOD, "f", S_IFIFO | 0644, ALICE, STAFF), -EDQUOT);
	assert_int_equal(make_as(RPC_MKDIR, "f", 0755, ALICE, STAFF), -EDQUOT);
	assert_int_equal(make_as(RPC_SYMLINK, "f", 0777, ALICE, STAFF), -EDQUOT);
	file_of("bobs", BOB, STAFF);
	delete ("f0");
	file_of("f", ALICE, STAFF);
}

static void create__that_opens_needs_no_inode(void **state)
{
	struct rpc_create create = {.parent = ROOT_INO,
		.name = fx_str("0"),
		.mode = S_IFREG | 0644,
		.uid = ALICE,
		.gid = STAFF};
	char name[8];

	for (unsigned i = 0; i < LIMIT_INODES; i++) {
		snprintf(name, sizeof(name), "%u", i);
		file_of(name, ALICE, STAFF);
	}
	assert_int_equal(FX_RUN(.op = RPC_CREATE, .create = create), 0);
	assert_false(fx.rep.entry.created);
}

static void create__beyond_the_exports_inodes(void **state)
{
	fx.exports[0].max_inodes = 3; /* the root is one */
	fx_reopen();
	file_of("a", 0, 0);
	file_of("b", 0, 0);
	assert_int_equal(make_as(RPC_CREATE, "c", S_IFREG | 0644, 0, 0), -ENOSPC);
	assert_int_equal(FX_RUN(.op = RPC_STATFS), 0);
	assert_int_equal(fx.rep.statfs.inodes, 3);
	assert_int_equal(fx.rep.statfs.free_inodes, 0);
	delete ("a");
	file_of("c", 0, 0);
}

static void create__counts_for_the_directorys_group(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "shared");

	assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = dir,
							   .valid = SET_MODE | SET_GID,
							   .mode = 02777,
							   .gid = STAFF}),
		0);
	fx_file(dir, "a");
	assert_usage(QUOTA_GROUP, STAFF, 0, 2, 0);
	assert_usage(QUOTA_USER, 10, 0, 2, 0);
}

static void setattr__new_owner_without_room(void **state)
{
	uint64_t ino = file_of("a", BOB, 0);

	fx_fill(ino, 0, LIMIT_PAGES + 1);
	assert_int_equal(chown_to(ino, ALICE), -EDQUOT);
	assert_usage(QUOTA_USER, BOB, LIMIT_PAGES + 1, 1, 0);
	assert_usage(QUOTA_USER, ALICE, 0, 0, 0);
	assert_int_equal(fx_truncate(ino, LIMIT_PAGES * PAGE_BYTES), 0);
	assert_int_equal(chown_to(ino, ALICE), 0);
	assert_usage(QUOTA_USER, BOB, 0, 0, 0);
	assert_usage(QUOTA_USER, ALICE, LIMIT_PAGES, 1, 0);
	assert_int_equal(chown_to(ino, ALICE), 0);
}

static void fallocate__to_the_last_page(void **state)
{
	uint64_t ino = file_of("a", ALICE, STAFF);
	struct rpc_request req = {.op = RPC_FALLOCATE,
		.fallocate = {.ino = ino, .offset = 0, .len = (LIMIT_PAGES + 1) * PAGE_BYTES}};

	assert_int_equal(reserve(QUOTA_USER, ALICE, 10), 0);
	assert_int_equal(fx_run(&req), 0);
	assert_int_equal(fx.rep.progress.done, (LIMIT_PAGES - 10) * PAGE_BYTES);
	assert_usage(QUOTA_USER, ALICE, LIMIT_PAGES - 10, 1, 10);
	req.fallocate.offset = (LIMIT_PAGES - 10) * PAGE_BYTES;
	req.fallocate.len = PAGE_BYTES;
	assert_int_equal(fx_run(&req), -EDQUOT);
}

/* ---- reservations ---------------------------------------------------------------------------- */

static void quota_reserve__to_the_last_page(void **state)
{
	uint64_t ino = file_of("a", ALICE, STAFF);

	fx_fill(ino, 0, 40);
	assert_int_equal(reserve(QUOTA_USER, ALICE, 50), 0);
	assert_int_equal(fx.rep.quota.npages, 50);
	assert_int_equal(reserve(QUOTA_USER, ALICE, 50), 0);
	assert_int_equal(fx.rep.quota.npages, 10);
	assert_int_equal(reserve(QUOTA_USER, ALICE, 1), -EDQUOT);
	assert_usage(QUOTA_USER, ALICE, 40, 1, 60);
	assert_int_equal(give_back(QUOTA_USER, ALICE, 1), 0);
	assert_int_equal(reserve(QUOTA_USER, ALICE, 9), 0);
	assert_int_equal(fx.rep.quota.npages, 1);
}

static void quota_reserve__whom_nothing_limits(void **state)
{
	assert_int_equal(reserve(QUOTA_USER, 0, 1000000), 0);
	assert_true(fx.rep.quota.npages == QUOTA_UNLIMITED);
	assert_int_equal(reserve(QUOTA_GROUP, STAFF + 1, 1000000), 0);
	assert_true(fx.rep.quota.npages == QUOTA_UNLIMITED);
	assert_int_equal(reserve(QUOTA_USER, BOB, 1000000), 0);
	assert_int_equal(fx.rep.quota.npages, 2 * LIMIT_PAGES);
}

static void quota_reserve__of_no_pages(void **state)
{
	assert_int_equal(reserve(QUOTA_USER, ALICE, 0), -EINVAL);
	assert_int_equal(give_back(QUOTA_USER, ALICE, 0), -EINVAL);
}

static void quota_reserve__waits_for_an_ended_session(void **state)
{
	uint64_t first = fx.ctx.session;

	assert_int_equal(reserve(QUOTA_USER, ALICE, LIMIT_PAGES), 0);
	fx.ctx.session = fx_new_session();
	assert_int_equal(reserve(QUOTA_USER, ALICE, 1), -EDQUOT);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, first), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	assert_int_equal(reserve(QUOTA_USER, ALICE, 1), -EAGAIN);
	fx_settle();
	assert_int_equal(reserve(QUOTA_USER, ALICE, 1), 0);
}

static void quota_give_back__more_than_is_reserved(void **state)
{
	assert_int_equal(reserve(QUOTA_USER, ALICE, 10), 0);
	assert_int_equal(give_back(QUOTA_USER, ALICE, 1000), 0);
	assert_int_equal(give_back(QUOTA_USER, BOB, 1000), 0);
	assert_usage(QUOTA_USER, ALICE, 0, 0, 0);
}

static void quota_use__commit_takes_what_was_reserved(void **state)
{
	uint64_t ino = file_of("a", ALICE, STAFF);

	assert_int_equal(reserve(QUOTA_USER, ALICE, 30), 0);
	assert_int_equal(reserve(QUOTA_GROUP, STAFF, 5), 0);
	fx_fill(ino, 0, 10);
	assert_usage(QUOTA_USER, ALICE, 10, 1, 20);
	assert_usage(QUOTA_GROUP, STAFF, 10, 1, 0);
}

/* Each owner's reservation is a record. It must not use the store's reserve, which is for
 * returns. */
static void quota_reserve__leaves_the_stores_reserve(void **state)
{
	uint64_t reserved = fx.m->reserve;

	assert_int_equal(reserve(QUOTA_USER, ALICE, 30), 0);
	fx.m->reserve = UINT32_MAX;
	assert_int_equal(reserve(QUOTA_USER, BOB, 1), -ENOSPC);
	assert_int_equal(give_back(QUOTA_USER, ALICE, 30), 0);
	fx.m->reserve = reserved;
}

static void quota_use__what_nobody_reserved_is_taken(void **state)
{
	uint64_t ino = file_of("a", ALICE, STAFF);

	fx_fill(ino, 0, LIMIT_PAGES + 10);
	assert_usage(QUOTA_USER, ALICE, LIMIT_PAGES + 10, 1, 0);
	assert_int_equal(reserve(QUOTA_USER, ALICE, 1), -EDQUOT);
}

static void return_all__gives_back_what_was_reserved(void **state)
{
	assert_int_equal(reserve(QUOTA_USER, ALICE, 20), 0);
	assert_usage(QUOTA_USER, ALICE, 0, 0, 20);
	assert_int_equal(FX_RUN(.op = RPC_RETURN, .ret = {.kind = RETURN_ALL}), 0);
	assert_usage(QUOTA_USER, ALICE, 0, 0, 0);
	assert_int_equal(reserve(QUOTA_USER, ALICE, 20), 0);
}

static void quota_end_session__many_owners(void **state)
{
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(reserve(QUOTA_USER, 5000 + i, 2), 0);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, fx.ctx.session), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_settle();
	for (uint32_t i = 0; i < 100; i++)
		assert_usage(QUOTA_USER, 5000 + i, 0, 0, 0);
	fx.ctx.session = fx_new_session();
}

/* ---- limits that come and go ----------------------------------------------------------------- */

static void quota_open__counts_what_is_there(void **state)
{
	uint64_t ino;

	reopen_with(NULL, 0);
	ino = file_of("a", ALICE, STAFF);
	fx_fill(ino, 0, 7);
	file_of("b", BOB, STAFF);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "b"), 0);
	assert_int_equal(reserve(QUOTA_USER, ALICE, 1), 0);
	assert_true(fx.rep.quota.npages == QUOTA_UNLIMITED);
	assert_false(meta_has_quotas(fx.m, 0));
	reopen_with(limits, ARRAY_SIZE(limits));
	assert_true(meta_has_quotas(fx.m, 0));
	assert_usage(QUOTA_USER, ALICE, 7, 1, 0);
	assert_usage(QUOTA_USER, BOB, 0, 1, 0);
	assert_usage(QUOTA_GROUP, STAFF, 7, 2, 0);
}

static void quota_open__keeps_reservations_over_a_restart(void **state)
{
	assert_int_equal(reserve(QUOTA_USER, ALICE, 30), 0);
	fx_reopen();
	assert_usage(QUOTA_USER, ALICE, 0, 0, 30);
}

static void quota_open__without_limits_forgets(void **state)
{
	file_of("a", ALICE, STAFF);
	assert_int_equal(reserve(QUOTA_USER, ALICE, 30), 0);
	reopen_with(NULL, 0);
	assert_usage(QUOTA_USER, ALICE, 0, 0, 0);
	reopen_with(limits, ARRAY_SIZE(limits));
	assert_usage(QUOTA_USER, ALICE, 0, 1, 0);
}

static void quota_open__limit_below_what_is_used(void **state)
{
	static const struct quota_limit low = {
		.kind = QUOTA_USER, .id = ALICE, .npages = 3, .inodes = 1};
	uint64_t ino = file_of("a", ALICE, STAFF);

	file_of("b", ALICE, STAFF);
	fx_fill(ino, 0, 10);
	reopen_with(&low, 1);
	assert_int_equal(reserve(QUOTA_USER, ALICE, 1), -EDQUOT);
	assert_int_equal(make_as(RPC_CREATE, "c", S_IFREG | 0644, ALICE, STAFF), -EDQUOT);
	assert_int_equal(fx_truncate(ino, 2 * PAGE_BYTES), 0);
	assert_int_equal(reserve(QUOTA_USER, ALICE, 9), 0);
	assert_int_equal(fx.rep.quota.npages, 1);
}

/* ---- listing --------------------------------------------------------------------------------- */

struct listing {
	struct quota_entry v[16];
	unsigned n;
};

static void list(const struct quota_entry *entry, void *arg)
{
	struct listing *l = arg;

	assert_true(l->n < ARRAY_SIZE(l->v));
	l->v[l->n++] = *entry;
}

static void quota_each__limits_and_owners(void **state)
{
	struct listing l = {0};

	file_of("a", BOB, STAFF);
	assert_int_equal(meta_quotas(fx.m, 0, list, &l), 0);
	/* alice, staff; everybody, root, bob; root's group */
	assert_int_equal(l.n, 6);
	assert_int_equal(l.v[0].limit.id, ALICE);
	assert_int_equal(l.v[0].limit.inodes, LIMIT_INODES);
	assert_int_equal(l.v[1].limit.kind, QUOTA_GROUP);
	assert_int_equal(l.v[1].usage.inodes, 1);
	assert_true(l.v[2].limit.everybody);
	assert_int_equal(l.v[3].limit.id, 0);
	assert_int_equal(l.v[3].limit.npages, 0);
	assert_int_equal(l.v[4].limit.id, BOB);
	assert_int_equal(l.v[4].limit.npages, 2 * LIMIT_PAGES);
	assert_int_equal(l.v[4].usage.inodes, 1);
	assert_int_equal(l.v[5].limit.kind, QUOTA_GROUP);
}

/* ---- a check that finds problems ------------------------------------------------------------- */

static unsigned nfound;
static char found[256];

static void note(const char *line, void *arg)
{
	nfound++;
	snprintf(found, sizeof(found), "%s", line);
}

static void put(enum store_table table, struct store_key key, uint64_t a, uint64_t b, uint64_t c)
{
	uint8_t buf[24];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u64(&w, a);
	if (table == STORE_QUOTA) {
		wire_put_u64(&w, b);
		wire_put_u64(&w, c);
	}
	assert_int_equal(store_begin(fx.m->store), 0);
	assert_int_equal(store_put(fx.m->store, table, key, buf, wire_out_len(&w)), 0);
	assert_int_equal(store_commit(fx.m->store), 0);
}

static void corrupt(
	enum store_table table, struct store_key key, uint64_t a, uint64_t b, uint64_t c)
{
	static const struct check_report report = {.problem = note};
	uint64_t nproblems;

	put(table, key, a, b, c);
	nfound = 0;
	assert_int_equal(meta_check(fx.m, &report, &nproblems), 0);
	assert_int_equal(nproblems, 1);
	assert_int_equal(nfound, 1);
}

static uint64_t owner(enum rpc_quota_kind kind, uint32_t id)
{
	return (uint64_t)fx_volume()->id << INO_BITS | (uint64_t)kind << 32 | id;
}

static void check_quota__names_what_is_wrong(void **state)
{
	struct store_key alice = STORE_KEY(owner(QUOTA_USER, ALICE));
	struct store_key held = STORE_KEY(fx.ctx.session, owner(QUOTA_USER, ALICE));

	fx_fill(file_of("a", ALICE, STAFF), 0, 4);
	assert_int_equal(reserve(QUOTA_USER, ALICE, 3), 0);
	corrupt(STORE_QUOTA, alice, 5, 1, 3);
	assert_non_null(
		strstr(found, "user 1000 has 4 pages, 1 inodes and 3 pages reserved, and its quota "
			      "says 5, 1 and 3"));
	corrupt(STORE_QUOTA, alice, 4, 2, 3);
	corrupt(STORE_QUOTA, alice, 4, 1, 2);
	assert_int_equal(store_begin(fx.m->store), 0);
	assert_int_equal(store_del(fx.m->store, STORE_QUOTA, alice), 0);
	assert_int_equal(store_commit(fx.m->store), 0);
	corrupt(STORE_HELD, held, 2, 0, 0);
	assert_non_null(
		strstr(found, "user 1000 has 4 pages, 1 inodes and 2 pages reserved, and its quota "
			      "says 0, 0 and 0"));
	put(STORE_HELD, held, 3, 0, 0);
	put(STORE_QUOTA, alice, 4, 1, 3);
	corrupt(STORE_QUOTA, STORE_KEY(owner(QUOTA_GROUP, 77)), 1, 0, 0);
}

static int tear_down_corrupt(void **state)
{
	meta_close(fx.m);
	fx.m = NULL;
	return fx_tear_down(state);
}

/* ---- a random load --------------------------------------------------------------------------- */

enum { FILES = 12, OWNERS = 4, ROUNDS = 60, STEPS = 40 };

struct model_file {
	uint64_t ino;
	unsigned uid;
	uint64_t npages; /* from the beginning on */
};

static struct model {
	struct model_file file[FILES];
	uint64_t held[OWNERS];
} model, before;
static unsigned seed;

static unsigned pick(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

static const char *name_of(unsigned i)
{
	static char name[8];

	snprintf(name, sizeof(name), "f%u", i);
	return name;
}

static uint64_t used_by(unsigned uid)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < FILES; i++)
		n += model.file[i].ino && model.file[i].uid == uid ? model.file[i].npages : 0;
	return n;
}

static uint64_t limit_of(unsigned uid)
{
	return uid == 1 ? 60 : uid ? 40 : UINT64_MAX;
}

static uint64_t left_of(unsigned uid)
{
	uint64_t taken = used_by(uid) + model.held[uid], limit = limit_of(uid);

	return limit - min_u64(limit, taken);
}

static void step_create(struct model_file *f, unsigned i)
{
	unsigned uid = pick(OWNERS);
	struct rpc_request req = {.op = RPC_CREATE,
		.create = {.parent = ROOT_INO,
			.name = fx_str(name_of(i)),
			.mode = S_IFREG | 0600,
			.exclusive = true,
			.uid = uid,
			.gid = uid}};

	assert_int_equal(fx_execute(&req), 0);
	*f = (struct model_file){.ino = fx.rep.entry.attr.ino, .uid = uid};
}

static void step_delete(struct model_file *f, unsigned i)
{
	struct rpc_request req = {.op = RPC_UNLINK, .name = {ROOT_INO, fx_str(name_of(i))}};
	struct wire_out w;

	assert_int_equal(fx_execute(&req), 0);
	wire_out_init(&w, fx.out, sizeof(fx.out));
	wire_put_u64(&w, f->ino);
	req = (struct rpc_request){
		.op = RPC_RETURN, .ret = {.kind = RETURN_INODES, .tail = {fx.out, 8}}};
	assert_int_equal(fx_execute(&req), 0);
	*f = (struct model_file){0};
}

/* As a client does it: it accepts only data for which it has a reservation. */
static void step_write(struct model_file *f)
{
	uint64_t want = 1 + pick(20), left = left_of(f->uid), n;
	struct rpc_request req = {
		.op = RPC_QUOTA, .quota = {.kind = QUOTA_USER, .id = f->uid, .npages = want}};
	int status = fx_execute(&req);

	assert_int_equal(status, left ? 0 : -EDQUOT);
	if (status)
		return;
	n = fx.rep.quota.npages;
	assert_true(f->uid ? n == min_u64(want, left) : n == QUOTA_UNLIMITED);
	n = min_u64(n, want);
	if (f->uid)
		model.held[f->uid] += n;
	if (pick(4) == 0)
		return; /* accepted later, or never */
	req = (struct rpc_request){.op = RPC_GRANT, .grant = {(uint32_t)n, false}};
	if (fx_execute(&req) || fx.rep.grant.ngrant != 1 || fx.rep.grant.grant[0].npages != n)
		return;
	fx.rep.grant.grant[0].fpage = f->npages;
	req = (struct rpc_request){.op = RPC_COMMIT,
		.commit = {.ino = f->ino,
			.flags = COMMIT_SIZE,
			.size = (f->npages + n) * PAGE_BYTES,
			.tail = fx_extents_tail(fx.rep.grant.grant, 1)}};
	assert_int_equal(fx_execute(&req), 0);
	f->npages += n;
	if (f->uid)
		model.held[f->uid] -= n;
}

static void step_truncate(struct model_file *f)
{
	uint64_t npages = pick((unsigned)f->npages + 1);
	struct rpc_request req = {.op = RPC_SETATTR,
		.setattr = {.ino = f->ino, .valid = SET_SIZE, .size = npages * PAGE_BYTES}};

	assert_int_equal(fx_execute(&req), 0);
	f->npages = npages;
}

static void step_chown(struct model_file *f)
{
	unsigned uid = pick(OWNERS);
	struct rpc_request req = {
		.op = RPC_SETATTR, .setattr = {.ino = f->ino, .valid = SET_UID, .uid = uid}};
	bool fits = uid == f->uid || !f->npages || left_of(uid) >= f->npages;

	assert_int_equal(fx_execute(&req), fits ? 0 : -EDQUOT);
	if (fits)
		f->uid = uid;
}

static void step_give_back(unsigned uid)
{
	struct rpc_request req = {.op = RPC_QUOTA,
		.quota = {
			.kind = QUOTA_USER, .id = uid, .npages = 1 + pick(30), .give_back = true}};

	assert_int_equal(fx_execute(&req), 0);
	model.held[uid] -= min_u64(model.held[uid], req.quota.npages);
}

static void step(void)
{
	unsigned i = pick(FILES);
	struct model_file *f = &model.file[i];

	switch (f->ino ? 1 + pick(9) : 0) {
	case 0:
		step_create(f, i);
		break;
	case 1:
		step_delete(f, i);
		break;
	case 2:
		step_truncate(f);
		break;
	case 3:
		step_chown(f);
		break;
	case 4:
		step_give_back(1 + pick(OWNERS - 1));
		break;
	default:
		step_write(f);
	}
}

static void end_session(void)
{
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, fx.ctx.session), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_settle();
	memset(model.held, 0, sizeof(model.held));
	fx.ctx.session = fx_new_session();
}

static void random_load__table_is_what_the_inodes_come_to(void **state)
{
	static const struct quota_limit own[] = {
		{.kind = QUOTA_USER, .id = 1, .npages = 60},
		{.kind = QUOTA_USER, .everybody = true, .npages = 40},
	};

	seed = 4711;
	memset(&model, 0, sizeof(model));
	reopen_with(own, ARRAY_SIZE(own));
	for (unsigned round = 0; round < ROUNDS; round++) {
		before = model;
		assert_int_equal(meta_begin(fx.m), 0);
		for (unsigned i = 0; i < STEPS; i++)
			step();
		if (pick(4) == 0) {
			meta_abort(fx.m);
			model = before;
		} else {
			assert_int_equal(meta_commit(fx.m), 0);
		}
		if (pick(5) == 0)
			end_session();
		if (pick(5) == 0)
			fx_reopen();
		fx_check();
		for (unsigned uid = 1; uid < OWNERS; uid++) {
			struct quota_usage usage = usage_of(QUOTA_USER, uid);

			assert_int_equal(usage.npages, used_by(uid));
			assert_int_equal(usage.held, model.held[uid]);
			assert_true(usage.npages + usage.held <= limit_of(uid));
		}
	}
}

static int set_up_load(void **state)
{
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, 64 << 20);
	return 0;
}

#define QUOTA_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		QUOTA_TEST(quota_charge__follows_pages_and_inodes),
		QUOTA_TEST(quota_charge__unlinked_file_that_is_kept_counts),
		QUOTA_TEST(quota_charge__file_left_to_the_reaper_is_nobodys),
		QUOTA_TEST(quota_charge__long_file_cut_short),
		QUOTA_TEST(quota_charge__owner_of_nothing_has_no_record),
		QUOTA_TEST(quota_charge__aborted_batch_changes_nothing),
		QUOTA_TEST(create__beyond_the_users_inodes),
		QUOTA_TEST(create__that_opens_needs_no_inode),
		QUOTA_TEST(create__beyond_the_exports_inodes),
		QUOTA_TEST(create__counts_for_the_directorys_group),
		QUOTA_TEST(setattr__new_owner_without_room),
		QUOTA_TEST(fallocate__to_the_last_page),
		QUOTA_TEST(quota_reserve__to_the_last_page),
		QUOTA_TEST(quota_reserve__whom_nothing_limits),
		QUOTA_TEST(quota_reserve__of_no_pages),
		QUOTA_TEST(quota_reserve__waits_for_an_ended_session),
		QUOTA_TEST(quota_give_back__more_than_is_reserved),
		QUOTA_TEST(quota_use__commit_takes_what_was_reserved),
		QUOTA_TEST(quota_reserve__leaves_the_stores_reserve),
		QUOTA_TEST(quota_use__what_nobody_reserved_is_taken),
		QUOTA_TEST(return_all__gives_back_what_was_reserved),
		QUOTA_TEST(quota_end_session__many_owners),
		QUOTA_TEST(quota_open__counts_what_is_there),
		QUOTA_TEST(quota_open__keeps_reservations_over_a_restart),
		QUOTA_TEST(quota_open__without_limits_forgets),
		QUOTA_TEST(quota_open__limit_below_what_is_used),
		QUOTA_TEST(quota_each__limits_and_owners),
		cmocka_unit_test_setup_teardown(
			check_quota__names_what_is_wrong, set_up, tear_down_corrupt),
		cmocka_unit_test_setup_teardown(
			random_load__table_is_what_the_inodes_come_to, set_up_load, fx_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
