/* The promises of log.h for a line: its prefix, its level, that it is one line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "common/base/util.h"

struct capture {
	int read_fd, saved_stderr;
};

static void capture_start(struct capture *c)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	c->read_fd = fds[0];
	c->saved_stderr = dup(STDERR_FILENO);
	assert_true(c->saved_stderr >= 0);
	assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
	close(fds[1]);
}

/* Restores standard error; text gets the output of the meantime. */
static void capture_end(struct capture *c, char *text, size_t len)
{
	size_t have = 0;
	ssize_t n;

	dup2(c->saved_stderr, STDERR_FILENO);
	close(c->saved_stderr);
	while ((n = read(c->read_fd, text + have, len - 1 - have)) > 0)
		have += (size_t)n;
	close(c->read_fd);
	text[have] = '\0';
}

/* Sets JOURNAL_STREAM to the stream of standard error. */
static void name_journal_stream(void)
{
	char stream[64];
	struct stat st;

	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
}

static void line__has_program_time_level_and_text(void **state)
{
	struct capture c;
	char text[256];
	int year, month, day, h, m, s, ms, zone, end = 0;

	unsetenv("JOURNAL_STREAM");
	log_init("prog", LOG_LEVEL_INFO);
	capture_start(&c);
	log_warning("disk %d of %s", 3, "box");
	capture_end(&c, text, sizeof(text));
	assert_int_equal(sscanf(text, "prog %d-%d-%d %d:%d:%d.%d %5d %n", &year, &month, &day, &h,
				 &m, &s, &ms, &zone, &end),
		8);
	assert_string_equal(text + end, "warning: disk 3 of box\n");
}

static void line__of_a_command_has_program_and_text(void **state)
{
	struct capture c;
	char text[256];

	unsetenv("JOURNAL_STREAM");
	log_init_command("prog", LOG_LEVEL_WARNING);
	capture_start(&c);
	log_notice("not this");
	log_error("disk %d of %s", 3, "box");
	capture_end(&c, text, sizeof(text));
	assert_string_equal(text, "prog: disk 3 of box\n");
	capture_start(&c);
	name_journal_stream();
	log_init_command("prog", LOG_LEVEL_WARNING);
	log_error("broken");
	capture_end(&c, text, sizeof(text));
	assert_string_equal(text, "<3>broken\n");
}

static void line__under_the_journal_begins_with_the_level(void **state)
{
	struct capture c;
	char text[256];

	capture_start(&c);
	name_journal_stream();
	log_init("prog", LOG_LEVEL_INFO);
	log_error("broken");
	capture_end(&c, text, sizeof(text));
	assert_string_equal(text, "<3>broken\n");
}

static void line__with_another_journal_stream_is_for_people(void **state)
{
	struct capture c;
	char text[256];

	setenv("JOURNAL_STREAM", "1:1", 1);
	log_init("prog", LOG_LEVEL_INFO);
	capture_start(&c);
	log_error("broken");
	capture_end(&c, text, sizeof(text));
	assert_memory_equal(text, "prog ", 5);
}

static void line__below_the_level_is_not_written(void **state)
{
	struct capture c;
	char text[256];

	log_init("prog", LOG_LEVEL_WARNING);
	capture_start(&c);
	log_notice("no");
	log_debug("no");
	capture_end(&c, text, sizeof(text));
	assert_string_equal(text, "");
	assert_true(log_enabled(LOG_LEVEL_WARNING));
	assert_false(log_enabled(LOG_LEVEL_NOTICE));
}

static void line__stays_one_line_whatever_a_peer_sends(void **state)
{
	struct capture c;
	char text[256];

	unsetenv("JOURNAL_STREAM");
	log_init("prog", LOG_LEVEL_INFO);
	capture_start(&c);
	log_info("name %s", "a\nb\033[2J\x7f");
	log_info("name %s", "a\xc2\x9b\x32J\xe2\x80\xae\xe9");
	capture_end(&c, text, sizeof(text));
	assert_non_null(strstr(text, "name a?b?[2J?\n"));
	assert_non_null(strstr(text, "name a?2J??\n"));
}

static void line__too_long_is_cut_and_ended(void **state)
{
	struct capture c;
	char text[8192], message[4096];

	memset(message, 'x', sizeof(message) - 1);
	message[sizeof(message) - 1] = '\0';
	capture_start(&c);
	log_info("%s", message);
	capture_end(&c, text, sizeof(text));
	assert_int_equal(strlen(text), 2048);
	assert_int_equal(text[2047], '\n');
}

static void line__leaves_errno_alone(void **state)
{
	struct capture c;
	char text[256];

	capture_start(&c);
	errno = ENOSPC;
	log_info("why: %m");
	assert_int_equal(errno, ENOSPC);
	capture_end(&c, text, sizeof(text));
	assert_non_null(strstr(text, "why: No space left on device\n"));
}

static void words__are_every_level(void **state)
{
	static const char *const names[] = {"error", "warning", "notice", "info", "debug"};
	int level;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_true(word_find(log_level_words, names[i], &level));
		assert_int_equal(level, LOG_LEVEL_ERROR + i);
	}
	assert_null(log_level_words[ARRAY_SIZE(names)].text);
}

static void line__follows_a_stream_that_is_replaced(void **state)
{
	struct capture c;
	char text[256];

	unsetenv("JOURNAL_STREAM");
	log_init("prog", LOG_LEVEL_INFO);
	capture_start(&c);
	log_set_journal(true);
	log_notice("to the journal");
	log_set_journal(false);
	log_notice("to a file");
	capture_end(&c, text, sizeof(text));
	assert_memory_equal(text, "<5>to the journal\nprog ", 23);
	assert_non_null(strstr(text, "notice: to a file\n"));
}

static void line__with_a_malformed_journal_stream_is_for_people(void **state)
{
	static const char *const streams[] = {"", ":", "1", "a:b", "1:"};

	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		struct capture c;
		char text[256];

		setenv("JOURNAL_STREAM", streams[i], 1);
		log_init("prog", LOG_LEVEL_INFO);
		capture_start(&c);
		log_error("broken");
		capture_end(&c, text, sizeof(text));
		assert_memory_equal(text, "prog ", 5);
	}
	unsetenv("JOURNAL_STREAM");
}

static void complaint__has_no_time(void **state)
{
	struct capture c;
	char text[256];

	unsetenv("JOURNAL_STREAM");
	capture_start(&c);
	log_complaint("prog", "option 'a\nb': unknown");
	capture_end(&c, text, sizeof(text));
	assert_string_equal(text, "prog: option 'a?b': unknown\n");
}

static void complaint__under_the_journal_is_an_error(void **state)
{
	struct capture c;
	char text[256];

	capture_start(&c);
	name_journal_stream();
	log_complaint("prog", "option 'a': unknown");
	capture_end(&c, text, sizeof(text));
	unsetenv("JOURNAL_STREAM");
	assert_string_equal(text, "<3>option 'a': unknown\n");
}

static void complaint__too_long_is_cut_and_ended(void **state)
{
	struct capture c;
	char text[8192], message[4096];

	memset(message, 'x', sizeof(message) - 1);
	message[sizeof(message) - 1] = '\0';
	capture_start(&c);
	log_complaint("prog", message);
	capture_end(&c, text, sizeof(text));
	assert_true(strlen(text) <= 2048);
	assert_int_equal(text[strlen(text) - 1], '\n');
	assert_memory_equal(text, "prog: xxx", 9);
}

static void ratelimit__lets_one_through_and_counts_the_rest(void **state)
{
	struct log_ratelimit limit = {0};
	struct capture c;
	char text[256];

	log_init("prog", LOG_LEVEL_INFO);
	assert_true(log_ratelimit_ok(&limit, 3600 * 1000));
	assert_false(log_ratelimit_ok(&limit, 3600 * 1000));
	assert_false(log_ratelimit_ok(&limit, 3600 * 1000));
	limit.next_ms = 0;
	capture_start(&c);
	assert_true(log_ratelimit_ok(&limit, 3600 * 1000));
	capture_end(&c, text, sizeof(text));
	assert_non_null(strstr(text, "2 lines like the next were kept back\n"));
}

static void change__tells_a_line_once_in_a_row(void **state)
{
	struct log_change change = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct capture c;
	char text[256];

	log_init_command("prog", LOG_LEVEL_INFO);
	capture_start(&c);
	for (int i = 0; i < 3; i++)
		log_if_changed(&change, LOG_LEVEL_INFO, "reason %d", 1);
	log_if_changed(&change, LOG_LEVEL_INFO, "reason %d", 2);
	log_if_changed(&change, LOG_LEVEL_INFO, "reason %d", 1);
	log_change_forget(&change);
	log_if_changed(&change, LOG_LEVEL_INFO, "reason %d", 1);
	capture_end(&c, text, sizeof(text));
	assert_string_equal(
		text, "prog: reason 1\nprog: reason 2\nprog: reason 1\nprog: reason 1\n");
}

static void errno_text__takes_either_sign(void **state)
{
	assert_string_equal(errno_text(ENOENT), "No such file or directory");
	assert_string_equal(errno_text(-ENOENT), "No such file or directory");
	assert_string_equal(errno_text(99999), "unknown error");
}

static void ratelimit__burst(void **state)
{
	struct log_ratelimit limit = {.burst = 3};

	for (unsigned i = 0; i < limit.burst; i++)
		assert_true(log_ratelimit_ok(&limit, 3600 * 1000));
	assert_false(log_ratelimit_ok(&limit, 3600 * 1000));
	/* An interval later there is room for one more. */
	limit.next_ms -= 3600 * 1000;
	assert_true(log_ratelimit_ok(&limit, 3600 * 1000));
	assert_false(log_ratelimit_ok(&limit, 3600 * 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line__has_program_time_level_and_text),
		cmocka_unit_test(line__of_a_command_has_program_and_text),
		cmocka_unit_test(line__under_the_journal_begins_with_the_level),
		cmocka_unit_test(line__with_another_journal_stream_is_for_people),
		cmocka_unit_test(line__below_the_level_is_not_written),
		cmocka_unit_test(line__stays_one_line_whatever_a_peer_sends),
		cmocka_unit_test(line__too_long_is_cut_and_ended),
		cmocka_unit_test(line__leaves_errno_alone),
		cmocka_unit_test(line__follows_a_stream_that_is_replaced),
		cmocka_unit_test(line__with_a_malformed_journal_stream_is_for_people),
		cmocka_unit_test(complaint__has_no_time),
		cmocka_unit_test(complaint__under_the_journal_is_an_error),
		cmocka_unit_test(complaint__too_long_is_cut_and_ended),
		cmocka_unit_test(words__are_every_level),
		cmocka_unit_test(ratelimit__lets_one_through_and_counts_the_rest),
		cmocka_unit_test(ratelimit__burst),
		cmocka_unit_test(change__tells_a_line_once_in_a_row),
		cmocka_unit_test(errno_text__takes_either_sign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
