/* Checked arithmetic, ownership helpers and lists. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/list.h"
#include "common/base/util.h"

struct item {
	int n;
	struct list link;
};

static void check_order(struct list *head, const int *expected, size_t n)
{
	size_t i = 0;

	list_for_each (pos, head) {
		assert_true(i < n);
		assert_int_equal(list_entry(pos, struct item, link)->n, expected[i++]);
	}
	assert_int_equal(i, n);
}

static void range_within__knows_the_edges(void **state)
{
	assert_true(range_within(0, 10, 10));
	assert_true(range_within(10, 0, 10));
	assert_false(range_within(10, 1, 10));
	assert_false(range_within(11, 0, 10));
	assert_false(range_within(0, 11, 10));
}

static void range_within__does_not_overflow(void **state)
{
	assert_false(range_within(1, UINT64_MAX, 10));
	assert_false(range_within(UINT64_MAX, 1, 10));
	assert_true(range_within(1, UINT64_MAX - 1, UINT64_MAX));
}

static void div_round_up__is_right_at_the_top(void **state)
{
	assert_int_equal(div_round_up(0, 4096), 0);
	assert_int_equal(div_round_up(1, 4096), 1);
	assert_int_equal(div_round_up(4096, 4096), 1);
	assert_int_equal(div_round_up(4097, 4096), 2);
	assert_true(div_round_up(UINT64_MAX, 4096) == UINT64_C(1) << 52);
}

static void min_max__order(void **state)
{
	assert_int_equal(min_u64(1, 2), 1);
	assert_int_equal(max_u64(1, 2), 2);
}

static void steal__leaves_nothing_to_clean_up(void **state)
{
	char *kept;
	int kept_fd;

	{
		autofree char *p = strdup("kept");
		autoclose int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		kept = steal_ptr(&p);
		kept_fd = steal_fd(&fd);
		assert_null(p);
		assert_int_equal(fd, -1);
	}
	assert_string_equal(kept, "kept");
	free(kept);
	assert_int_equal(close(kept_fd), 0);
}

static void autoclose__closes(void **state)
{
	int number;

	{
		autoclose int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		number = fd;
		assert_true(fd >= 0);
	}
	assert_int_equal(fcntl(number, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
}

static void list__keeps_order(void **state)
{
	struct item items[3] = {{.n = 0}, {.n = 1}, {.n = 2}};
	struct list head;

	list_init(&head);
	assert_true(list_empty(&head));
	list_add_tail(&head, &items[1].link);
	list_add_tail(&head, &items[2].link);
	list_add_head(&head, &items[0].link);
	check_order(&head, (const int[]){0, 1, 2}, 3);
}

static void list_del__twice_is_harmless(void **state)
{
	struct item items[2] = {{.n = 0}, {.n = 1}};
	struct list head;

	list_init(&head);
	list_add_tail(&head, &items[0].link);
	list_add_tail(&head, &items[1].link);
	list_del(&items[0].link);
	list_del(&items[0].link);
	check_order(&head, (const int[]){1}, 1);
}

static void list_for_each_safe__lets_the_body_unlink(void **state)
{
	struct item items[3] = {{.n = 0}, {.n = 1}, {.n = 2}};
	struct list head;

	list_init(&head);
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		list_add_tail(&head, &items[i].link);
	list_for_each_safe (pos, &head) {
		if (list_entry(pos, struct item, link)->n != 1)
			list_del(pos);
	}
	check_order(&head, (const int[]){1}, 1);
}

static void list_pop__takes_the_first(void **state)
{
	struct item items[2] = {{.n = 0}, {.n = 1}};
	struct list head;

	list_init(&head);
	assert_null(list_pop(&head));
	list_add_tail(&head, &items[0].link);
	list_add_tail(&head, &items[1].link);
	assert_ptr_equal(list_pop(&head), &items[0].link);
	assert_ptr_equal(list_pop(&head), &items[1].link);
	assert_null(list_pop(&head));
}

static void list_splice_tail__moves_all(void **state)
{
	struct item items[4] = {{.n = 0}, {.n = 1}, {.n = 2}, {.n = 3}};
	struct list head, from;

	list_init(&head);
	list_init(&from);
	list_splice_tail(&head, &from);
	assert_true(list_empty(&head));
	list_add_tail(&head, &items[0].link);
	list_add_tail(&head, &items[1].link);
	list_add_tail(&from, &items[2].link);
	list_add_tail(&from, &items[3].link);
	list_splice_tail(&head, &from);
	assert_true(list_empty(&from));
	check_order(&head, (const int[]){0, 1, 2, 3}, 4);
}

static void clock__goes_forward(void **state)
{
	int64_t before = now_ms();

	assert_true(now_ms() >= before);
	/* After 2020 and in nanoseconds. */
	assert_true(realtime_ns() > INT64_C(1577836800) * 1000000000);
}

static void in_zone(const char *zone)
{
	setenv("TZ", zone, 1);
	tzset();
}

static void clock_format__is_local_time_with_its_offset(void **state)
{
	char at[CLOCK_TEXT_BYTES];

	in_zone("EST5");
	assert_string_equal(clock_format(1795255149, 7, at), "2026-11-21 04:59:09.007 -0500");
	in_zone("IST-5:30");
	assert_string_equal(clock_format(1795255149, -1, at), "2026-11-21 15:29:09 +0530");
}

static void clock_format__survives_any_number(void **state)
{
	char at[CLOCK_TEXT_BYTES];

	assert_string_equal(clock_format(INT64_MAX, -1, at), "?");
	assert_string_equal(clock_format(INT64_MIN, 0, at), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(range_within__knows_the_edges),
		cmocka_unit_test(range_within__does_not_overflow),
		cmocka_unit_test(div_round_up__is_right_at_the_top),
		cmocka_unit_test(min_max__order),
		cmocka_unit_test(steal__leaves_nothing_to_clean_up),
		cmocka_unit_test(autoclose__closes),
		cmocka_unit_test(list__keeps_order),
		cmocka_unit_test(list_del__twice_is_harmless),
		cmocka_unit_test(list_for_each_safe__lets_the_body_unlink),
		cmocka_unit_test(list_pop__takes_the_first),
		cmocka_unit_test(list_splice_tail__moves_all),
		cmocka_unit_test(clock__goes_forward),
		cmocka_unit_test(clock_format__is_local_time_with_its_offset),
		cmocka_unit_test(clock_format__survives_any_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
