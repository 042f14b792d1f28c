/* test_check_numbers.c - corruptions of inode numbers that a session was lent, each named by the
 * check; see corruption.h. MAKE overwrites no inode. */
#include "tests/unit/server/corruption.h"

#include "server/meta/lent_numbers.h"

enum { STORE_BYTES = 4 << 20 };

static uint64_t file, first;

static int set_up(void **state)
{
	struct rpc_create create = {.parent = ROOT_INO,
		.mode = S_IFREG | 0644,
		.numbers = NUMBERS_ANEW,
		.name = fx_str("asks")};

	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, STORE_BYTES);
	file = fx_file(ROOT_INO, "file");
	assert_int_equal(FX_RUN(.op = RPC_CREATE, .create = create), 0);
	first = fx.rep.entry.lent.first;
	return 0;
}

static int set_up_image(void **state)
{
	int err = set_up(state);

	keep_image();
	return err;
}

static int tear_down(void **state)
{
	free(image);
	image = NULL;
	return fx_tear_down(state);
}

static void lend(uint64_t from)
{
	struct session_record rec;

	assert_int_equal(lent_numbers_load(fx.m, fx.ctx.session, &rec), 0);
	rec.session.lent[1] = (struct lent_window){.first = from, .left = 1};
	assert_int_equal(session_codec_put(fx.m, &rec), 0);
}

static void used(void)
{
	lend(file);
}

static void too_high(void)
{
	lend(first + 1);
}

static void none(void)
{
	lend(0);
}

static const struct corruption corruptions[] = {
	{used, "session N was lent the number N, which an inode has"},
	{too_high, "session N was lent numbers from N on, which were not given out"},
	{none, "session N was lent numbers from 0 on, which were not given out"},
};

static void check__whole_store_has_no_problem(void **state)
{
	assert_whole();
}

static void check__names_each_corruption_of_numbers(void **state)
{
	assert_all_named(corruptions, ARRAY_SIZE(corruptions));
}

/* The damage ends the batch. */
static void make__overwrites_no_inode(void **state)
{
	struct rpc_making making = {.commit.ino = file,
		.make = {.parent = ROOT_INO, .mode = S_IFREG | 0600, .name = fx_str("made")}};
	struct wire_out w;

	wire_out_init(&w, fx.out, sizeof(fx.out));
	assert_true(rpc_put_making(&w, &making));
	assert_int_equal(meta_begin(fx.m), 0);
	lend(file);
	assert_int_equal(fx_execute(&(struct rpc_request){.op = RPC_MAKE,
				 .makes.tail = {fx.out, (uint32_t)wire_out_len(&w), 0}}),
		-EBADMSG);
	meta_abort(fx.m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			check__whole_store_has_no_problem, set_up_image, tear_down),
		cmocka_unit_test_setup_teardown(
			check__names_each_corruption_of_numbers, set_up_image, tear_down),
		cmocka_unit_test_setup_teardown(make__overwrites_no_inode, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
