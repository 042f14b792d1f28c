/* test_task.c - lines and orders reach the threads that work for a task, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "common/base/log.h"
#include "server/base/task.h"

static struct task task;
static char why[RPC_TEXT_MAX];

static int set_up(void **state)
{
	task_begin(&task);
	task_enter(&task);
	return 0;
}

static int tear_down(void **state)
{
	task_enter(NULL);
	task_end(&task);
	return 0;
}

struct other {
	struct task *task;
	bool cancelled;
};

static void *run(void *arg)
{
	struct other *other = arg;

	task_enter(other->task);
	log_error("of another thread");
	other->cancelled = task_is_cancelled();
	return NULL;
}

static void run_other(struct other *other)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, other), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void why__is_the_first_error_of_the_task(void **state)
{
	struct other stranger = {NULL, false};

	run_other(&stranger);
	log_notice("no error");
	log_error("ours");
	log_error("later");
	task_why(&task, -EIO, why, sizeof(why));
	assert_string_equal(why, "ours");
}

static void why__comes_from_threads_that_entered(void **state)
{
	struct other helper = {task_current(), false};

	run_other(&helper);
	task_why(&task, -EIO, why, sizeof(why));
	assert_string_equal(why, "of another thread");
}

static void why__without_a_line_is_the_error(void **state)
{
	task_why(&task, -ENOMEM, why, sizeof(why));
	assert_string_equal(why, "Cannot allocate memory");
}

static void cancel__reaches_the_threads_of_the_task_alone(void **state)
{
	struct other stranger = {NULL, true}, helper = {task_current(), false};

	assert_false(task_is_cancelled());
	task_cancel(&task);
	assert_true(task_is_cancelled());
	run_other(&stranger);
	run_other(&helper);
	assert_false(stranger.cancelled);
	assert_true(helper.cancelled);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(why__is_the_first_error_of_the_task),
		TEST(why__comes_from_threads_that_entered),
		TEST(why__without_a_line_is_the_error),
		TEST(cancel__reaches_the_threads_of_the_task_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
