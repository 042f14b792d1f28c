/* test_cpu_wait.c - a thread that waits for a CPU, one that stands still, and one that runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/cpu_wait.h"

static struct cpu_wait w;
static struct cpu_wait_view view;
static char text[CPU_WAIT_TEXT_BYTES];

/* The kernel's file is one of the test's. */
static int set_up(void **state)
{
	cpu_wait_init(&w);
	close(w.fd);
	w.fd = memfd_create("schedstat", 0);
	return w.fd < 0;
}

static int tear_down(void **state)
{
	cpu_wait_fini(&w);
	return 0;
}

static void set_wait(int64_t ms)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "123456 %lld 7\n", (long long)ms * 1000000);

	assert_int_equal(ftruncate(w.fd, 0), 0);
	assert_int_equal(pwrite(w.fd, line, (size_t)n, 0), n);
}

static void look(int64_t now)
{
	cpu_wait_look(&w, now, &view);
}

static void look__that_is_well(void **state)
{
	set_wait(5000);
	look(1000);
	assert_true(view.known);
	assert_int_equal(view.span_ms, 0);
	for (int64_t now = 1000; now <= 31000; now += 500)
		assert_int_equal(cpu_wait_tick(&w, now), now % 1000 == 0);
	look(31500);
	assert_int_equal(view.span_ms, 10500);
	assert_int_equal(view.wait_ms, 0);
	assert_int_equal(view.total_wait_ms, 5000);
	assert_false(view.starved);
	assert_string_equal(cpu_wait_text(&view, text), "waited 0 % of the last 11 s for a CPU");
}

static void look__that_waits(void **state)
{
	bool told = false;

	for (int64_t s = 0; s <= 10; s++) {
		set_wait(290 * s);
		assert_true(cpu_wait_tick(&w, 1000 * s + 1000));
		assert_false(cpu_wait_is_to_be_told(&w, 1000 * s + 1000, &view));
	}
	look(11000);
	assert_int_equal(view.wait_ms, 2900);
	assert_false(view.starved);
	for (int64_t s = 11; s <= 20; s++) {
		set_wait(2900 + 980 * (s - 10));
		assert_true(cpu_wait_tick(&w, 1000 * s + 1000));
		told |= cpu_wait_is_to_be_told(&w, 1000 * s + 1000, &view);
	}
	assert_true(told);
	assert_true(view.starved);
	assert_string_equal(cpu_wait_text(&view, text), "waited 98 % of the last 10 s for a CPU");
	/* Not each second. */
	assert_false(cpu_wait_is_to_be_told(&w, 22000, &view));
	look(21000);
	view.throttled = true;
	assert_string_equal(cpu_wait_text(&view, text),
		"waited 98 % of the last 10 s for a CPU; its control group is throttled: see "
		"CPUQuota=");
	/* It slept for a minute. */
	assert_true(cpu_wait_tick(&w, 80000));
	look(80001);
	assert_int_equal(view.span_ms, 1);
	assert_false(view.starved);
}

/* Of the first moments nothing is said. */
static void look__of_a_short_time(void **state)
{
	set_wait(0);
	cpu_wait_tick(&w, 1000);
	set_wait(2000);
	look(3000);
	assert_int_equal(view.wait_ms, 2000);
	assert_false(view.starved);
	/* It waited again before the count was read. */
	set_wait(2010);
	look(3000);
	assert_int_equal(view.wait_ms, 2000);
}

static void late__for_moments_and_for_long(void **state)
{
	set_wait(0);
	cpu_wait_tick(&w, 1000);
	assert_false(cpu_wait_late(&w, CPU_WAIT_PAUSE_MS - 1, 1500));
	look(1500);
	assert_int_equal(view.late_ms, CPU_WAIT_PAUSE_MS - 1);
	assert_int_equal(view.npauses, 0);
	assert_false(view.starved);
	assert_true(cpu_wait_late(&w, 2600, 2000));
	cpu_wait_tick(&w, 2000);
	assert_true(cpu_wait_late(&w, 1200, 4000));
	for (int64_t now = 3000; now <= 11000; now += 1000) {
		cpu_wait_tick(&w, now);
		look(now);
		assert_int_equal(view.late_ms, 2600);
		assert_true(view.starved);
	}
	assert_string_equal(cpu_wait_text(&view, text),
		"waited 0 % of the last 10 s for a CPU, and ran up to 2.6 s late");
	cpu_wait_tick(&w, 14500);
	cpu_wait_tick(&w, 15500);
	look(15500);
	assert_int_equal(view.late_ms, 0);
	assert_int_equal(view.npauses, 2);
	assert_int_equal(view.recent_pauses, 2);
	assert_int_equal(view.longest_pause_ms, 2600);
}

static void look__where_the_kernel_tells_nothing(void **state)
{
	cpu_wait_fini(&w);
	cpu_wait_tick(&w, 1000);
	cpu_wait_late(&w, 1500, 2000);
	look(5000);
	assert_false(view.known);
	assert_true(view.starved);
	assert_string_equal(cpu_wait_text(&view, text), "ran up to 1.5 s late");
}

/* ---- the kernel's count ---------------------------------------------------------------------- */

static atomic_bool ended;

static void pin_here(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void *be_busy(void *arg)
{
	while (!atomic_load(&ended))
		continue;
	return NULL;
}

/* Two busy threads on one CPU: each waits. Another thread's waits do not count. */
static void look__of_a_real_wait(void **state)
{
	struct cpu_wait real;
	cpu_set_t before;
	pthread_t other;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	cpu_wait_init(&real);
	if (real.fd < 0) {
		print_message("this kernel has no /proc/thread-self/schedstat\n");
		skip();
	}
	pin_here();
	assert_int_equal(pthread_create(&other, NULL, be_busy, NULL), 0);
	cpu_wait_tick(&real, now_ms());
	do
		cpu_wait_look(&real, now_ms(), &view);
	while (view.wait_ms < 20);
	atomic_store(&ended, true);
	pthread_join(other, NULL);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_in_range(view.wait_ms, 20, view.span_ms);
	cpu_wait_fini(&real);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(look__that_is_well),
		CASE(look__that_waits),
		CASE(look__of_a_short_time),
		CASE(late__for_moments_and_for_long),
		CASE(look__where_the_kernel_tells_nothing),
		cmocka_unit_test(look__of_a_real_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
