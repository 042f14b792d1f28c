/* test_process_state.c - a process that runs, is stopped, and is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/process_state.h"

static void process_state__of_a_child(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		prctl(PR_SET_NAME, "a) T (b");
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(process_state(pid), 'T');
	assert_true(process_state_is_stopped(pid));
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(process_state(pid), 0);
	assert_false(process_state_is_stopped(pid));
	assert_false(process_state_is_stopped(0));
	assert_int_equal(process_state(getpid()), 'R');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_state__of_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
