/* The number of threads that read /dev/fuse: artificial loads of known speed for each number of
 * readers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/serve/readers.h"

enum { MAX = 4 };

/* rate: requests per ms by the number of readers. keeps_up: so many readers find no more requests
 * waiting. */
struct load {
	unsigned rate[MAX + 1];
	unsigned keeps_up;
};

struct run {
	struct readers readers;
	int64_t now;
	uint64_t served, behind;
	unsigned woken, most;
};

static void begin(struct run *run)
{
	*run = (struct run){.now = 1000000};
	readers_init(&run->readers, MAX);
}

static void go_on(struct run *run, const struct load *load, unsigned ms)
{
	for (unsigned i = 0; i < ms; i++) {
		unsigned n = readers_now(&run->readers), woken;

		run->now++;
		run->served += load->rate[n];
		run->behind += n < load->keeps_up ? load->rate[n] : 0;
		woken = readers_review(&run->readers, run->now, run->served, run->behind);
		/* The woken reader is the added one. */
		assert_int_equal(woken, readers_now(&run->readers) > n ? n : 0);
		run->woken += woken != 0;
		run->most = readers_now(&run->readers) > run->most ? readers_now(&run->readers)
								   : run->most;
	}
}

static const struct load idle;
static const struct load lone = {{0, 60, 45, 45, 45}, 1};
static const struct load lone_and_quick = {{0, 60, 45, 45, 45}, MAX + 1};
static const struct load large = {{0, 4, 8, 8, 8}, 2};
static const struct load many = {{0, 100, 200, 300, 400}, MAX + 1};

static void one_reads_at_first(void **state)
{
	struct run run;

	begin(&run);
	for (unsigned i = 0; i < MAX; i++)
		assert_true(readers_has(&run.readers, i) == (i == 0));
}

static void a_lone_program_is_served_by_one(void **state)
{
	struct run run;

	begin(&run);
	go_on(&run, &lone, 10000);
	assert_int_equal(run.most, 1);
}

static void what_gains_nothing_is_tried_and_given_up(void **state)
{
	struct run run;
	unsigned ms_at_one = 0;

	begin(&run);
	go_on(&run, &lone_and_quick, 5000);
	assert_int_equal(run.most, 2);
	for (unsigned i = 0; i < 10000; i++) {
		go_on(&run, &lone_and_quick, 1);
		ms_at_one += readers_now(&run.readers) == 1;
	}
	/* One period per second. */
	assert_true(ms_at_one > 9700);
	assert_true(run.woken > 5);
}

static void what_gains_is_kept(void **state)
{
	struct run run;
	unsigned ms_at_two = 0;

	begin(&run);
	go_on(&run, &large, 60);
	assert_int_equal(readers_now(&run.readers), 2);
	go_on(&run, &large, 5000);
	for (unsigned i = 0; i < 10000; i++) {
		go_on(&run, &large, 1);
		ms_at_two += readers_now(&run.readers) == 2;
	}
	assert_int_equal(run.most, 2);
	assert_true(ms_at_two > 9700);
}

static void it_grows_to_all_and_no_further(void **state)
{
	struct run run;

	begin(&run);
	go_on(&run, &many, 1000);
	assert_int_equal(run.most, MAX);
}

static void when_the_load_has_gone_one_reads(void **state)
{
	struct run run;

	begin(&run);
	go_on(&run, &many, 1000);
	go_on(&run, &idle, 10000);
	assert_int_equal(readers_now(&run.readers), 1);
	/* And the next load is found as the first one was. */
	go_on(&run, &large, 600);
	assert_int_equal(readers_now(&run.readers), 2);
}

static void a_reader_without_room_has_a_stand_in(void **state)
{
	struct run run;

	begin(&run);
	assert_int_equal(readers_stand_in(&run.readers, run.now), 1);
	for (int i = 0; i < 50; i++) {
		go_on(&run, &idle, 100);
		assert_true(readers_has(&run.readers, 1));
		readers_stand_in(&run.readers, run.now);
	}
	assert_int_equal(readers_now(&run.readers), MAX);
	assert_int_equal(readers_stand_in(&run.readers, run.now), 0);
	go_on(&run, &idle, 10000);
	assert_int_equal(readers_now(&run.readers), 1);
}

static void a_single_thread_reads_always(void **state)
{
	struct run run;

	begin(&run);
	readers_init(&run.readers, 1);
	go_on(&run, &many, 1000);
	assert_int_equal(readers_stand_in(&run.readers, run.now), 0);
	assert_int_equal(readers_now(&run.readers), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_reads_at_first),
		cmocka_unit_test(a_lone_program_is_served_by_one),
		cmocka_unit_test(what_gains_nothing_is_tried_and_given_up),
		cmocka_unit_test(what_gains_is_kept),
		cmocka_unit_test(it_grows_to_all_and_no_further),
		cmocka_unit_test(when_the_load_has_gone_one_reads),
		cmocka_unit_test(a_reader_without_room_has_a_stand_in),
		cmocka_unit_test(a_single_thread_reads_always),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
