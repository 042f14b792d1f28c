/* test_process_state.c - a process that runs, is stopped, and is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/process_state.h"
#include "tests/unit/emulated.h"

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
	/* QEMU 7.2 shows a file of its own there. */
	if (!is_emulated())
		assert_int_equal(process_state(getpid()), 'R');
}

static void outdated__when_its_file_is_gone(void **state)
{
	static const char copy[] = "cp /proc/$PPID/exe /tmp/rmemfs-copy.$PPID";
	char path[64], stay[] = "stay";
	char *const argv[] = {path, stay, NULL};
	int status;
	pid_t pid;

	/* The program that /proc shows is the emulator. */
	skip_if_emulated();
	snprintf(path, sizeof(path), "/tmp/rmemfs-copy.%d", (int)getpid());
	assert_int_equal(system(copy), 0);
	pid = fork();
	if (pid == 0) {
		execv(path, argv);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_false(process_state_is_outdated(pid));
	unlink(path);
	assert_true(process_state_is_outdated(pid));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(process_state_is_outdated(pid));
	assert_false(process_state_is_outdated(getpid()));
}

/* With an argument it is the program of which a test removes the file. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_state__of_a_child),
		cmocka_unit_test(outdated__when_its_file_is_gone),
	};

	if (argc > 1)
		return raise(SIGSTOP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
