/* A long operation's reports to systemd, and when it counts as hanging. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/service.h"
#include "server/base/progress.h"

static void hangs__only_after_its_time_without_a_step(void **state)
{
	struct progress p = {0};
	int64_t at = 5000;

	assert_false(progress_hangs(&p, 7, at));
	assert_false(progress_hangs(&p, 7, at + PROGRESS_HANG_MS - 1));
	assert_false(progress_hangs(&p, 8, at + PROGRESS_HANG_MS - 1));
	assert_false(progress_hangs(&p, 8, at + PROGRESS_HANG_MS));
	at += PROGRESS_HANG_MS - 1;
	assert_false(progress_hangs(&p, 8, at + PROGRESS_HANG_MS - 1));
	assert_true(progress_hangs(&p, 8, at + PROGRESS_HANG_MS));
	/* The count of another operation, which has done less so far. */
	assert_false(progress_hangs(&p, 1, at + PROGRESS_HANG_MS));
}

static void hangs__not_what_was_never_looked_at(void **state)
{
	struct progress p = {0};

	assert_false(progress_hangs(&p, 0, 3 * (int64_t)PROGRESS_HANG_MS));
	assert_true(progress_hangs(&p, 0, 4 * (int64_t)PROGRESS_HANG_MS));
}

static void tell__asks_systemd_for_more_time(void **state)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct progress p = {0};
	char text[256] = "";

	snprintf(un.sun_path, sizeof(un.sun_path), "/tmp/rmemfs-unit.%d.notify", (int)getpid());
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	setenv("NOTIFY_SOCKET", un.sun_path, 1);
	assert_true(service_open());
	progress_tell(&p, "writing", 256, 512);
	assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "STATUS=writing: 1MiB of 2MiB\nEXTEND_TIMEOUT_USEC=60000000");
	/* Nothing is sent while the text is the same. */
	progress_tell(&p, "writing", 257, 512);
	assert_int_equal(recv(fd, text, sizeof(text) - 1, 0), -1);
	service_close();
	unlink(un.sun_path);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hangs__only_after_its_time_without_a_step),
		cmocka_unit_test(hangs__not_what_was_never_looked_at),
		cmocka_unit_test(tell__asks_systemd_for_more_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
