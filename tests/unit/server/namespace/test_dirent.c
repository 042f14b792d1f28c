/* test_dirent.c - listing directories, and names whose hashes collide. */
#include "tests/unit/server/meta_fixture.h"

#include <dirent.h>

#include "server/record/inode.h"

enum { FILE_MODE = S_IFREG | 0644 };

/* ---- readdir --------------------------------------------------------------------------------- */

struct listing {
	unsigned n;
	uint64_t inos, last_cookie;
};

static bool is_wide(void)
{
	return fx.m->hash.bits == DIRENT_HASH_BITS_WIDE;
}

/* One READDIR; false at the end. */
static bool read_some(uint64_t dir, uint32_t bytes, bool plus, struct listing *list)
{
	struct rpc_dirent d;
	struct wire_in r;
	unsigned before = list->n;

	assert_int_equal(
		FX_RUN(.op = RPC_READDIR, .readdir = {dir, list->last_cookie, bytes, plus}), 0);
	r = rpc_tail_reader(&fx.rep.readdir.tail);
	assert_true(fx.rep.readdir.tail.len <= bytes);
	while (rpc_get_dirent(&r, &d, plus)) {
		assert_true(d.cookie > list->last_cookie && d.cookie >= 256);
		assert_true(d.cookie <= (is_wide() ? INT64_MAX : INT32_MAX));
		assert_int_equal(d.attr.ino, d.ino);
		assert_int_equal(IFTODT(d.attr.mode), d.type);
		if (plus)
			assert_int_equal(d.attr.mode, FILE_MODE);
		list->last_cookie = d.cookie;
		list->inos += d.ino;
		list->n++;
	}
	assert_false(r.truncated);
	return list->n > before;
}

static void list_many(void)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), inos = 0;

	for (unsigned i = 0; i < 500; i++) {
		char name[16];

		snprintf(name, sizeof(name), "file-%u", i);
		inos += fx_file(dir, name);
	}
	for (int plus = 0; plus < 2; plus++) {
		struct listing list = {0};

		while (read_some(dir, 1000, plus, &list))
			;
		assert_int_equal(list.n, 500);
		assert_int_equal(list.inos, inos);
		assert_int_equal(fx.rep.readdir.parent, ROOT_INO);
		assert_int_equal(list.last_cookie > INT32_MAX, is_wide());
	}
}

static void readdir__gives_every_entry_once(void **state)
{
	list_many();
}

static void readdir__of_a_former_store_gives_every_entry_once(void **state)
{
	fx_make_wide();
	list_many();
}

static void readdir__is_steady_while_entries_come_and_go(void **state)
{
	struct listing list = {0};
	char name[16];

	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "stay-%u", i);
		fx_file(ROOT_INO, name);
	}
	for (unsigned i = 0; read_some(ROOT_INO, 300, false, &list); i++) {
		snprintf(name, sizeof(name), "go-%u", i);
		fx_return_inode(fx_file(ROOT_INO, name));
		assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, name), 0);
	}
	assert_int_equal(list.n, 200);
}

static void readdir__errors(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	assert_int_equal(FX_RUN(.op = RPC_READDIR, .readdir = {ino, 0, 1000, 0}), -ENOTDIR);
	assert_int_equal(FX_RUN(.op = RPC_READDIR, .readdir = {999, 0, 1000, 0}), -ESTALE);
	assert_int_equal(FX_RUN(.op = RPC_READDIR, .readdir = {ROOT_INO, 0, 4, 0}), -EINVAL);
	assert_int_equal(FX_RUN(.op = RPC_READDIR, .readdir = {ROOT_INO, UINT64_MAX, 1000, 0}), 0);
	assert_int_equal(fx.rep.readdir.tail.len, 0);
}

/* ---- colliding names ------------------------------------------------------------------------- */

static void collisions__are_told_apart(void **state)
{
	struct listing list = {0};
	char name[16];

	fx.m->hash.bits = 2;
	for (unsigned i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		fx_file(ROOT_INO, name);
	}
	for (unsigned i = 0; i < 300; i += 2) {
		snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, name), 0);
	}
	for (unsigned i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(fx_lookup(ROOT_INO, name), i % 2 ? 0 : -ENOENT);
	}
	while (read_some(ROOT_INO, 1000, false, &list))
		;
	assert_int_equal(list.n, 150);
}

static void collisions__end_at_256(void **state)
{
	char name[16];

	fx.m->hash.bits = 0;
	for (unsigned i = 0; i < 256; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		fx_file(ROOT_INO, name);
	}
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "more", FILE_MODE), -ENOSPC);
	assert_int_equal(fx_lookup(ROOT_INO, "more"), -ENOENT);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "more"), -ENOENT);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "n7"), 0);
	fx_file(ROOT_INO, "more");
}

/* Only this directory has no room for one more name, and nothing else is touched. */
static void collisions__at_256_leave_all_else_alone(void **state)
{
	uint64_t full, other, ino;
	char name[16];

	fx.m->hash.bits = 0;
	full = fx_dir(ROOT_INO, "full");
	other = fx_dir(ROOT_INO, "other");
	ino = fx_file(other, "file");
	for (unsigned i = 0; i < 256; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		fx_file(full, name);
	}
	assert_int_equal(fx_make(RPC_MKDIR, full, "more", 0755), -ENOSPC);
	assert_int_equal(FX_RUN(.op = RPC_LINK, .link = {ino, full, fx_str("more")}), -ENOSPC);
	assert_int_equal(fx_rename(other, "file", full, "more", 0), -ENOSPC);
	assert_int_equal(fx_rename(full, "n9", full, "more", 0), -ENOSPC);
	assert_int_equal(fx_lookup(full, "n9"), 0);
	assert_int_equal(fx_rename(full, "n9", full, "n10", 0), 0);
	assert_int_equal(fx_rename(other, "file", full, "n9", 0), 0);
	assert_int_equal(fx_rename(full, "n9", other, "file", 0), 0);
	assert_int_equal(fx_rename(full, "n11", full, "more", 0), 0);
	assert_int_equal(fx_lookup(full, "more"), 0);
	assert_int_equal(fx_attr(ino).nlink, 1);
}

/* ---- any hash: names against a model --------------------------------------------------------- */

enum { MODEL_NAMES = 300, MODEL_STEPS = 4000 };

static struct {
	bool there[MODEL_NAMES];
	bool changed[MODEL_NAMES]; /* since the listing began */
	unsigned seen[MODEL_NAMES];
	struct listing list;
} model;

static const char *model_name(unsigned i)
{
	static char name[16];

	snprintf(name, sizeof(name), "name-%u", i);
	return name;
}

static unsigned model_number(const struct rpc_str *name)
{
	char text[16];

	snprintf(text, sizeof(text), "%.*s", name->len, name->s);
	return (unsigned)strtoul(text + strlen("name-"), NULL, 10);
}

static void model_change(uint64_t dir, unsigned i, unsigned to)
{
	char from[16];

	snprintf(from, sizeof(from), "%s", model_name(i));
	if (!model.there[i]) {
		fx_file(dir, from);
	} else if (to % 2) {
		assert_int_equal(fx_name(RPC_UNLINK, dir, from), 0);
	} else {
		assert_int_equal(fx_rename(dir, from, dir, model_name(to), 0), 0);
		model.there[to] = model.changed[to] = true;
	}
	model.there[i] = !model.there[i] || (to == i && !(to % 2));
	model.changed[i] = true;
}

/* A name that was there all the time is listed once, one that never was is not listed. */
static void model_end_listing(void)
{
	for (unsigned i = 0; i < MODEL_NAMES; i++)
		if (!model.changed[i])
			assert_int_equal(model.seen[i], model.there[i]);
	memset(model.changed, 0, sizeof(model.changed));
	memset(model.seen, 0, sizeof(model.seen));
	model.list = (struct listing){0};
}

static void model_list(uint64_t dir)
{
	struct rpc_dirent d;
	struct wire_in r;
	bool more = read_some(dir, 400, false, &model.list);

	r = rpc_tail_reader(&fx.rep.readdir.tail);
	while (rpc_get_dirent(&r, &d, false))
		model.seen[model_number(&d.name)]++;
	if (!more)
		model_end_listing();
}

static void model_run(uint8_t bits)
{
	unsigned seed = 5;
	uint64_t dir;

	memset(&model, 0, sizeof(model));
	fx.m->hash.bits = bits;
	dir = fx_dir(ROOT_INO, "dir");
	for (unsigned i = 0; i < MODEL_STEPS; i++) {
		unsigned at = (unsigned)rand_r(&seed) % MODEL_NAMES;

		model_change(dir, at, (unsigned)rand_r(&seed) % MODEL_NAMES);
		if (i % 5 == 0)
			model_list(dir);
		if (i % 1000 == 500) {
			fx_reopen();
			fx.m->hash.bits = bits;
		}
	}
	for (unsigned i = 0; i < MODEL_NAMES; i++)
		assert_int_equal(fx_lookup(dir, model_name(i)), model.there[i] ? 0 : -ENOENT);
}

static void names__agree_with_a_model(void **state)
{
	model_run(DIRENT_HASH_BITS);
}

static void names__of_a_former_store_agree_with_a_model(void **state)
{
	fx_make_wide();
	model_run(DIRENT_HASH_BITS_WIDE);
}

static void names__that_collide_agree_with_a_model(void **state)
{
	model_run(4);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fx_set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(readdir__gives_every_entry_once),
		CASE(readdir__of_a_former_store_gives_every_entry_once),
		CASE(readdir__is_steady_while_entries_come_and_go),
		CASE(readdir__errors),
		CASE(collisions__are_told_apart),
		CASE(collisions__end_at_256),
		CASE(collisions__at_256_leave_all_else_alone),
		CASE(names__agree_with_a_model),
		CASE(names__of_a_former_store_agree_with_a_model),
		CASE(names__that_collide_agree_with_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
