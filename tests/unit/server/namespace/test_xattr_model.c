/* test_xattr_model.c - thousands of random changes of extended attributes against a plain model.
 * Some batches are aborted; there are restarts, deleted files, colliding names, a full store and
 * kills of the process. */
#include "tests/unit/server/xattr_fixture.h"

#include <signal.h>
#include <sys/wait.h>

#include "server/record/xattr.h"

enum { FILES = 3, NAMES = 12, BATCHES = 1500, HASH_BITS = 2 };

struct model_value {
	bool exists;
	uint32_t len;
	unsigned seed;
};

struct model_file {
	uint64_t ino; /* 0: no such file */
	struct model_value value[NAMES];
};

static struct model_file model[FILES], before[FILES];
static unsigned seed;
/* The store is nearly full: operations that grow may be refused. */
static bool scarce;
static unsigned nrefused, nset;

static unsigned pick(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

static const char *name_of(unsigned n)
{
	static const char *const names[NAMES] = {"user.a", "user.b", "user.c", "user.d",
		"user.a-much-longer-name-than-the-others-have", "trusted.a", "trusted.b",
		"security.capability", "security.selinux", "user.e", "user.f", "user.g"};

	return names[n];
}

static const char *file_name(unsigned f)
{
	static const char *const names[FILES] = {"x", "y", "z"};

	return names[f];
}

static uint32_t pick_length(void)
{
	static const uint32_t below[] = {2, 100, 1000, 2500, 6000, XATTR_VALUE_MAX + 1};

	return pick(below[pick(ARRAY_SIZE(below))]);
}

/* Runs within the batch. True: go on with status; false: the batch must be aborted. */
static bool run(const struct rpc_request *req, int *status)
{
	*status = fx_execute(req);
	if (fx.result < 0) {
		assert_true(scarce);
		assert_int_equal(fx.result, -EAGAIN);
	}
	nrefused += fx.result < 0 || *status == -ENOSPC;
	assert_true(*status != -ENOSPC || scarce);
	return fx.result >= 0;
}

/* ---- operations on both ---------------------------------------------------------------------- */

static bool create(unsigned f)
{
	struct rpc_request req = {.op = RPC_CREATE,
		.create = {
			.parent = ROOT_INO, .name = fx_str(file_name(f)), .mode = S_IFREG | 0600}};
	int status;

	if (!run(&req, &status))
		return false;
	if (!status)
		model[f].ino = fx.rep.entry.attr.ino;
	return true;
}

static bool remove_file(unsigned f)
{
	uint8_t buf[8];
	struct rpc_request unlink = {.op = RPC_UNLINK, .name = {ROOT_INO, fx_str(file_name(f))}};
	struct rpc_request give_back = {.op = RPC_RETURN, .ret = {RETURN_INODES, {buf, 8}}};
	struct wire_out w;
	int status;

	if (!run(&unlink, &status))
		return false;
	assert_int_equal(status, 0);
	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u64(&w, model[f].ino);
	model[f] = (struct model_file){0};
	if (!run(&give_back, &status))
		return false;
	assert_int_equal(status, 0);
	return true;
}

/* Stages the first parts of a value. *staged: their length; it is less than needed if one was
 * refused. */
static bool stage(const uint8_t *data, uint32_t len, uint32_t *staged)
{
	uint32_t step = 1000 + pick(FX_STAGE_BYTES - 1000);
	int status = 0;

	for (*staged = 0; !status && len - *staged > FX_LAST_BYTES;) {
		uint32_t bytes = (uint32_t)min_u64(step, len - *staged);
		struct rpc_request req = {
			.op = RPC_STAGE, .stage = {1, *staged, {data + *staged, bytes}}};

		if (!run(&req, &status))
			return false;
		*staged += status ? 0 : bytes;
	}
	return true;
}

static int expected(const struct model_value *v, uint32_t flags)
{
	if (flags & SETXATTR_CREATE && v->exists)
		return -EEXIST;
	return flags & SETXATTR_REPLACE && !v->exists ? -ENODATA : 0;
}

static bool set(unsigned f, unsigned n)
{
	struct model_value *v = &model[f].value[n], new = {true, pick_length(), pick(50)};
	uint32_t flags = pick(8) ? 0 : pick(2) ? SETXATTR_CREATE : SETXATTR_REPLACE, staged;
	static uint8_t data[XATTR_VALUE_MAX];
	struct rpc_request req = {.op = RPC_SETXATTR};
	int status;

	fx_pattern(data, new.len, new.seed);
	if (!stage(data, new.len, &staged))
		return false;
	if (new.len - staged > FX_LAST_BYTES)
		return true;
	req.setxattr = (struct rpc_setxattr){
		.ino = model[f].ino,
		.flags = flags,
		.stage = staged ? 1 : 0,
		.total = new.len,
		.name = fx_str(name_of(n)),
		.tail = {data + staged, new.len - staged},
	};
	if (!run(&req, &status))
		return false;
	if (status == -ENOSPC)
		return true;
	assert_int_equal(status, expected(v, flags));
	nset += !status;
	if (!status)
		*v = new;
	return true;
}

static bool remove_value(unsigned f, unsigned n)
{
	struct model_value *v = &model[f].value[n];
	struct rpc_request req = {
		.op = RPC_REMOVEXATTR, .removexattr = {model[f].ino, fx_str(name_of(n))}};
	int status;

	if (!run(&req, &status))
		return false;
	assert_int_equal(status, v->exists ? 0 : -ENODATA);
	v->exists = false;
	return true;
}

static bool drop_caps(unsigned f)
{
	struct rpc_request req = {
		.op = RPC_SETATTR, .setattr = {.ino = model[f].ino, .valid = SET_NO_CAPS}};
	int status;

	if (!run(&req, &status))
		return false;
	assert_int_equal(status, 0);
	for (unsigned n = 0; n < NAMES; n++)
		if (strcmp(name_of(n), "security.capability") == 0)
			model[f].value[n].exists = false;
	return true;
}

static bool random_operation(void)
{
	unsigned f = pick(FILES), n = pick(NAMES);

	if (!model[f].ino)
		return create(f);
	switch (pick(40)) {
	case 0:
		return remove_file(f);
	case 1:
		return drop_caps(f);
	default:
		return pick(4) ? set(f, n) : remove_value(f, n);
	}
}

/* ---- comparison ------------------------------------------------------------------------------ */

static unsigned listed(uint64_t ino)
{
	struct rpc_xattr_entry e;
	struct wire_in r;
	unsigned n = 0;

	assert_int_equal(FX_RUN(.op = RPC_LISTXATTR, .listxattr = {ino, 0}), 0);
	assert_true(fx.rep.listxattr.last);
	r = rpc_tail_reader(&fx.rep.listxattr.tail);
	while (rpc_get_xattr_entry(&r, &e))
		n++;
	return n;
}

static void compare_file(const struct model_file *file)
{
	static uint8_t data[XATTR_VALUE_MAX];
	uint32_t flags = 0;
	unsigned count = 0;

	for (unsigned n = 0; n < NAMES; n++) {
		const struct model_value *v = &file->value[n];

		if (!v->exists) {
			assert_int_equal(fx_getxattr(file->ino, name_of(n)), -ENODATA);
			continue;
		}
		fx_pattern(data, v->len, v->seed);
		fx_expect_value(file->ino, name_of(n), data, v->len);
		flags |= ATTR_XATTRS |
			 xattr_flag(&(struct rpc_str){name_of(n), (uint16_t)strlen(name_of(n))});
		count++;
	}
	assert_int_equal(listed(file->ino), count);
	assert_int_equal(fx_flags(file->ino), flags);
}

static void compare(void)
{
	for (unsigned f = 0; f < FILES; f++)
		if (model[f].ino)
			compare_file(&model[f]);
	fx_check();
}

/* ---- the run --------------------------------------------------------------------------------- */

static void random_batch(void)
{
	bool go_on = true, more;
	uint64_t freed;

	memcpy(before, model, sizeof(model));
	assert_int_equal(meta_begin(fx.m), 0);
	for (unsigned n = 1 + pick(6); go_on && n; n--)
		go_on = random_operation();
	if (go_on && pick(3) == 0) {
		int err = meta_reclaim(fx.m, &more, &freed);

		assert_true(!err || (scarce && err == -EAGAIN));
		go_on = !err;
	}
	if (go_on && pick(10)) {
		assert_int_equal(meta_commit(fx.m), 0);
		return;
	}
	meta_abort(fx.m);
	memcpy(model, before, sizeof(model));
}

static void reopen(void)
{
	fx_reopen();
	fx.m->hash.bits = HASH_BITS;
}

static void workload(void)
{
	nrefused = nset = 0;
	for (unsigned i = 0; i < BATCHES; i++) {
		random_batch();
		if (i % 50 == 0)
			compare();
		if (i % 300 == 150)
			reopen();
	}
	compare();
	assert_true(nset > BATCHES);
}

static void remove_all(void)
{
	for (unsigned f = 0; f < FILES; f++) {
		if (!model[f].ino)
			continue;
		assert_int_equal(meta_begin(fx.m), 0);
		assert_true(remove_file(f));
		assert_int_equal(meta_commit(fx.m), 0);
	}
	fx_settle();
}

static void random_work__agrees_with_the_model(void **state)
{
	seed = 1;
	scarce = false;
	workload();
	remove_all();
	assert_int_equal(fx_usage().inodes, 1);
}

/* Sets values of the greatest length until there is no room, then removes some of the files. */
static unsigned fill_store(void)
{
	static uint8_t data[XATTR_VALUE_MAX];
	unsigned n = 0;
	int status = 0;

	for (; !status; n++) {
		char name[16];
		uint64_t ino;

		snprintf(name, sizeof(name), "fill-%u", n);
		status = fx_make(RPC_CREATE, ROOT_INO, name, S_IFREG | 0600);
		ino = fx.rep.entry.attr.ino;
		for (unsigned i = 0; !status && i < 3; i++)
			status = fx_setxattr(ino, name_of(i), data, i ? 100 : 60000, 0);
	}
	assert_int_equal(status, -ENOSPC);
	assert_true(fx.rep.text.len > 0);
	return n;
}

static void remove_fill(unsigned i)
{
	char name[16];

	snprintf(name, sizeof(name), "fill-%u", i);
	if (fx_name(RPC_UNLINK, ROOT_INO, name) == 0)
		assert_int_equal(fx_return_inode(fx.rep.remove.child.ino), 0);
	fx_settle();
}

static void random_work__in_a_store_that_is_full(void **state)
{
	unsigned n = fill_store();

	assert_true(n > 10);
	seed = 2;
	scarce = true;
	for (unsigned i = n - 10; i < n; i++)
		remove_fill(i);
	workload();
	assert_true(nrefused > BATCHES / 100);
	remove_all();
	for (unsigned i = 0; i < n; i++)
		remove_fill(i);
	assert_int_equal(fx_usage().inodes, 1);
	fx_check();
	assert_true(fill_store() >= n - n / 10);
}

/* ---- killed ---------------------------------------------------------------------------------- */

enum { KILLS = 25, KEYS = 5 };

/* The value that change i gives to name i % KEYS; some change nothing but remove it. */
static uint32_t value_of(unsigned i, uint8_t *data)
{
	uint32_t len = i * 2654435761U % (i % 3 ? 3000 : XATTR_VALUE_MAX);

	fx_pattern(data, len, i);
	return len;
}

static bool removes(unsigned i)
{
	return i % 11 == 7;
}

static _Noreturn void change_for_ever(uint64_t ino, unsigned first, int fd)
{
	static uint8_t data[XATTR_VALUE_MAX];

	if (fx_open())
		_exit(1);
	for (unsigned i = first;; i++) {
		uint32_t len = value_of(i, data);

		if (removes(i))
			fx_removexattr(ino, name_of(i % KEYS));
		else if (fx_setxattr(ino, name_of(i % KEYS), data, len, 0))
			_exit(2);
		if (write(fd, "", 1) != 1)
			_exit(3);
	}
}

/* Returns how many changes were acknowledged, at least n. */
static unsigned run_and_kill(uint64_t ino, unsigned first, unsigned n)
{
	unsigned acknowledged = 0;
	int fds[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0)
		change_for_ever(ino, first, fds[1]);
	close(fds[1]);
	while (acknowledged < n && read(fds[0], &byte, 1) == 1)
		acknowledged++;
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	while (read(fds[0], &byte, 1) == 1)
		acknowledged++;
	close(fds[0]);
	assert_true(acknowledged >= n);
	return acknowledged;
}

static bool is_value(uint64_t ino, unsigned i)
{
	static uint8_t data[XATTR_VALUE_MAX];
	int64_t have = fx_getxattr(ino, name_of(i % KEYS));
	uint32_t len = value_of(i, data);

	if (removes(i))
		return have == -ENODATA;
	return have == len && memcmp(fx_value, data, len) == 0;
}

/* The last change may have been made and not acknowledged. */
static void expect_changes(uint64_t ino, unsigned n)
{
	for (unsigned i = n - KEYS; i < n; i++)
		assert_true(is_value(ino, i) || (i == n - KEYS && is_value(ino, n)));
}

static void kill__loses_nothing_acknowledged(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	unsigned n = 0;

	meta_close(fx.m);
	fx.m = NULL;
	seed = 3;
	for (unsigned i = 0; i < KILLS; i++) {
		n += run_and_kill(ino, n, KEYS + pick(60));
		assert_int_equal(fx_open(), 0);
		expect_changes(ino, n);
		fx_check();
		meta_close(fx.m);
		fx.m = NULL;
	}
	assert_int_equal(fx_open(), 0);
}

static int set_up(void **state, uint64_t store_bytes)
{
	memset(model, 0, sizeof(model));
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, store_bytes);
	fx.m->hash.bits = HASH_BITS;
	return 0;
}

static int large_store(void **state)
{
	return set_up(state, 64 << 20);
}

static int small_store(void **state)
{
	return set_up(state, 6 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			random_work__agrees_with_the_model, large_store, fx_tear_down),
		cmocka_unit_test_setup_teardown(
			random_work__in_a_store_that_is_full, small_store, fx_tear_down),
		cmocka_unit_test_setup_teardown(
			kill__loses_nothing_acknowledged, fx_set_up, fx_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
