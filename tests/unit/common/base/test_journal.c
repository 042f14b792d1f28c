/* test_journal.c - events as entries with fields, at a socket in the place of journald's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "tests/unit/own_mounts.h"

static int journal = -1;

/* /run of a mount namespace of our own has nothing but that socket. */
static int make_journal(void **state)
{
	struct sockaddr_un at = {AF_UNIX, "/run/systemd/journal/socket"};

	if (!own_mounts() || mount("none", "/run", "tmpfs", 0, NULL))
		return 0; /* only root can */
	if (mkdir("/run/systemd", 0755) || mkdir("/run/systemd/journal", 0755))
		return -1;
	journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return bind(journal, (struct sockaddr *)&at, sizeof(at));
}

static int close_journal(void **state)
{
	close(journal);
	return 0;
}

static const struct log_fields fields = {
	.event = "refuse",
	.export = "data",
	.peer = "tcp 10.0.0.9:4711",
	.reason = "two\nlines",
	.session = UINT64_MAX,
};

/* Logs, and gives what was written to standard error. */
static void log_one(char *text, size_t size)
{
	int fds[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	log_event(LOG_LEVEL_WARNING, &fields, "%s: refused", "somebody\nelse");
	dup2(saved, STDERR_FILENO);
	close(saved);
	n = read(fds[0], text, size - 1);
	close(fds[0]);
	assert_true(n >= 0);
	text[n] = '\0';
}

static void log_event__is_an_entry_with_fields(void **state)
{
	static const char expected[] = "MESSAGE=somebody?else: refused\n"
				       "PRIORITY=4\n"
				       "SYSLOG_IDENTIFIER=prog\n"
				       "RMEMFS_EVENT=refuse\n"
				       "RMEMFS_EXPORT=data\n"
				       "RMEMFS_PEER=tcp 10.0.0.9:4711\n"
				       "RMEMFS_REASON=two?lines\n"
				       "RMEMFS_SESSION=18446744073709551615\n";
	char text[512], got[1024];
	ssize_t n;

	if (journal < 0)
		skip();
	log_init("prog", LOG_LEVEL_INFO);
	log_set_journal(true);
	log_one(text, sizeof(text));
	assert_string_equal(text, "");
	n = recv(journal, got, sizeof(got) - 1, 0);
	assert_true(n > 0);
	got[n] = '\0';
	assert_string_equal(got, expected);
	log_line(LOG_LEVEL_DEBUG, "not logged");
	log_event(LOG_LEVEL_DEBUG, &fields, "not logged");
	assert_int_equal(recv(journal, got, sizeof(got), 0), -1);
}

static void log_event__is_a_line_elsewhere(void **state)
{
	char text[512], got[16];

	unsetenv("JOURNAL_STREAM");
	log_init("prog", LOG_LEVEL_INFO);
	log_one(text, sizeof(text));
	assert_non_null(strstr(text, " warning: somebody?else: refused\n"));
	if (journal >= 0)
		assert_int_equal(recv(journal, got, sizeof(got), 0), -1);
}

/* Standard error leads to a journal that takes no entries. */
static void log_event__is_a_line_without_the_socket(void **state)
{
	char text[512];

	if (journal < 0)
		skip();
	assert_int_equal(unlink("/run/systemd/journal/socket"), 0);
	log_init("prog", LOG_LEVEL_INFO);
	log_set_journal(true);
	log_one(text, sizeof(text));
	assert_string_equal(text, "<4>somebody?else: refused\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_event__is_an_entry_with_fields),
		cmocka_unit_test(log_event__is_a_line_elsewhere),
		cmocka_unit_test(log_event__is_a_line_without_the_socket),
	};

	return cmocka_run_group_tests(tests, make_journal, close_journal);
}
