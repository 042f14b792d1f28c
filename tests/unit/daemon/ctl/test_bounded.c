/* Processes that end well, late, by a signal, and with more text than there is room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/ctl/bounded.h"

enum { LONG_MS = 60000, SHORT_MS = 50 };

static struct bounded_text written;

static void write_number(void *arg)
{
	*(int *)arg = 7;
}

static void sleep_on(void *arg)
{
	for (;;)
		pause();
}

static void die(void *arg)
{
	raise(SIGKILL);
}

static void end_with_3(void *arg)
{
	_exit(3);
}

static void run__shares_memory(void **state)
{
	int *shared =
		mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = -1;

	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_int_equal(bounded_run(write_number, shared, LONG_MS, &status), 0);
	assert_int_equal(status, 0);
	assert_int_equal(*shared, 7);
	munmap(shared, sizeof(int));
}

static void run__tells_how_it_ended(void **state)
{
	int status;

	assert_int_equal(bounded_run(die, NULL, LONG_MS, &status), 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(bounded_run(end_with_3, NULL, LONG_MS, &status), 0);
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_int_equal(bounded_run(sleep_on, NULL, SHORT_MS, &status), -ETIMEDOUT);
	assert_int_equal(waitpid(-1, &status, WNOHANG), -1); /* none is left */
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void speak(void *arg)
{
	char c;

	printf("out ");
	fflush(stdout);
	fprintf(stderr, "err ");
	printf("%s", read(STDIN_FILENO, &c, 1) == 0 ? "empty" : "input");
}

static void speak_and_sleep(void *arg)
{
	printf("first");
	fflush(stdout);
	sleep_on(arg);
}

static void speak_on(void *arg)
{
	for (;;)
		printf("more");
}

static int read_of(void (*run)(void *arg), int limit_ms, size_t max)
{
	free(written.text);
	return bounded_read(run, NULL, limit_ms, max, &written);
}

static void read__both_outputs(void **state)
{
	assert_int_equal(read_of(speak, LONG_MS, 100), 0);
	assert_string_equal(written.text, "out err empty");
	assert_int_equal(written.len, 13);
	assert_int_equal(written.status, 0);
	assert_false(written.cut);
}

static void read__keeps_what_came_in_time(void **state)
{
	assert_int_equal(read_of(speak_and_sleep, 1000, 100), -ETIMEDOUT);
	assert_string_equal(written.text, "first");
}

static void read__ends_a_process_that_writes_too_much(void **state)
{
	assert_int_equal(read_of(speak_on, LONG_MS, 10), 0);
	assert_true(written.cut);
	assert_string_equal(written.text, "moremoremo");
	assert_int_equal(read_of(die, LONG_MS, 10), 0);
	assert_int_equal(WTERMSIG(written.status), SIGKILL);
	assert_int_equal(written.len, 0);
}

static int tear_down(void **state)
{
	free(written.text);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run__shares_memory),
		cmocka_unit_test(run__tells_how_it_ended),
		cmocka_unit_test(read__both_outputs),
		cmocka_unit_test(read__keeps_what_came_in_time),
		cmocka_unit_test(read__ends_a_process_that_writes_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, tear_down);
}
