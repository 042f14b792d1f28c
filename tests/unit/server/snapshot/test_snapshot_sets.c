/* Two sets of snapshots and a link: which one is the latest, whenever the server dies or a disk
 * fails.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/server/failing_fsync.h"

#include "common/base/util.h"
#include "server/snapshot/snapshot_sets.h"

static char dir[128], why_text[512], set[SNAPSHOT_SET_PATH_BYTES];
static const struct image_why why = {why_text, sizeof(why_text)};
static struct snapshot_sets sets;
static bool newer;

/* ---- set up ---------------------------------------------------------------------------------- */

static const char *in(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int set_up(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/rmemfs-unit.XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(snapshot_sets_open(&sets, dir, true, &why), 0);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {
		"a/.whole", "b/.whole", "a", "b", "latest", "latest.new"};

	close(sets.fd);
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		remove(in(names[i]));
	return rmdir(dir);
}

/* Opens the sets as a start does: of a server that may make sets, or of one that only restores. */
static void open_again(bool writable)
{
	close(sets.fd);
	assert_int_equal(snapshot_sets_open(&sets, dir, writable, &why), 0);
}

/* Publishes a set in a process of its own, which dies at `point`, or whose disk fails after so many
 * fsyncs. Returns its status. */
static int publish(const char *point, int fsyncs)
{
	pid_t child;
	int status;

	snapshot_sets_next(&sets, set);
	assert_int_equal(snapshot_set_clear(set, &why), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (point)
			setenv("RMEMFS_CRASH_AT", point, 1);
		fsync_fails_after = fsyncs;
		_exit(-snapshot_sets_publish(&sets, set, &why));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void published(void)
{
	assert_int_equal(publish(NULL, -1), 0);
}

static void killed_at(const char *point)
{
#ifndef RMEMFS_CRASH_POINTS
	skip();
#endif
	assert_int_equal(publish(point, -1), SIGKILL);
}

static void latest_is(const char *name)
{
	assert_int_equal(snapshot_sets_latest(&sets, set, &newer, &why), 0);
	assert_string_equal(strrchr(set, '/') + 1, name);
}

static void next_is(const char *name)
{
	snapshot_sets_next(&sets, set);
	assert_string_equal(strrchr(set, '/') + 1, name);
}

static void link_is(const char *name)
{
	char target[8] = "";

	assert_true(readlink(in("latest"), target, sizeof(target) - 1) > 0);
	assert_string_equal(target, name);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void latest__turns_with_each_set(void **state)
{
	assert_int_equal(snapshot_sets_latest(&sets, set, &newer, &why), -ENOENT);
	published();
	latest_is("a");
	published();
	latest_is("b");
	published();
	latest_is("a");
	assert_false(newer);
}

static void publish__killed_before_the_mark_leaves_the_set_before(void **state)
{
	static const char *const points[] = {"set.written", "set.named"};

	published();
	for (unsigned i = 0; i < ARRAY_SIZE(points); i++) {
		killed_at(points[i]);
		for (unsigned writable = 0; writable < 2; writable++) {
			open_again(writable);
			latest_is("a");
			assert_true(newer);
			next_is("b");
		}
	}
	published();
	latest_is("b");
	assert_false(newer);
}

static void publish__killed_after_the_mark_is_the_latest(void **state)
{
	published();
	killed_at("set.whole");
	link_is("a");
	open_again(false);
	latest_is("b");
	assert_false(newer);
	next_is("a");
	link_is("a");
	open_again(true);
	link_is("b");
	latest_is("b");
	next_is("a");
}

static void publish__killed_after_the_first_mark_is_the_latest(void **state)
{
	killed_at("set.whole");
	open_again(false);
	latest_is("a");
	open_again(true);
	link_is("a");
}

/* After a failure of any fsync the result tells whether there is a new set. */
static void publish__says_what_a_failing_disk_has_left(void **state)
{
	enum { BEFORE_THE_MARK = 3 }; /* the directory, the mark, the set */

	published();
	for (int n = 0; n < BEFORE_THE_MARK; n++) {
		assert_int_equal(WEXITSTATUS(publish(NULL, n)), EIO);
		latest_is("a");
		open_again(true);
		latest_is("a");
	}
	assert_int_equal(publish(NULL, BEFORE_THE_MARK), 0);
	latest_is("b");
	open_again(true);
	latest_is("b");
}

/* Here rename(2) fails, not fsync(2): the link is still the old one. */
static void open__a_link_that_can_t_be_turned(void **state)
{
	published();
	killed_at("set.whole");
	assert_int_equal(unlink(in("latest")), 0);
	assert_int_equal(mkdir(in("latest"), 0700), 0);
	close(sets.fd);
	assert_int_equal(snapshot_sets_open(&sets, dir, true, &why), -EISDIR);
	assert_non_null(strstr(why_text, "to b, which is newer"));
}

/* A running server keeps its lock, whatever it is told of the directory. */
static void reopen__the_same_directory(void **state)
{
	struct snapshot_sets again, other;

	assert_int_equal(snapshot_sets_reopen(&again, NULL, dir, true, &why), -EAGAIN);
	assert_int_equal(again.fd, -1);
	assert_int_equal(snapshot_sets_reopen(&again, &sets, dir, true, &why), 0);
	snapshot_sets_close(&sets);
	assert_int_equal(snapshot_sets_open(&other, dir, true, &why), -EAGAIN);
	snapshot_sets_close(&other);
	sets = again;
	published();
	latest_is("a");
	assert_int_equal(snapshot_sets_reopen(&again, &sets, "/nowhere", true, &why), -ENOENT);
	assert_non_null(strstr(why_text, "/nowhere does not exist"));
}

static void latest__is_what_the_administrator_turns_it_to(void **state)
{
	published();
	published();
	assert_int_equal(unlink(in("latest")), 0);
	assert_int_equal(symlink("a", in("latest")), 0);
	open_again(true);
	latest_is("a");
	next_is("b");
}

static void latest__without_a_link(void **state)
{
	published();
	assert_int_equal(unlink(in("latest")), 0);
	assert_int_equal(snapshot_sets_latest(&sets, set, &newer, &why), -EBADMSG);
	assert_non_null(strstr(why_text, "no link to it: ln -s a "));
	next_is("b");
	assert_int_equal(unlink(in("a/.whole")), 0);
	assert_int_equal(snapshot_sets_latest(&sets, set, &newer, &why), -EBADMSG);
	assert_non_null(strstr(why_text, "the beginning of one (a)"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(latest__turns_with_each_set),
		CASE(publish__killed_before_the_mark_leaves_the_set_before),
		CASE(publish__killed_after_the_mark_is_the_latest),
		CASE(publish__killed_after_the_first_mark_is_the_latest),
		CASE(publish__says_what_a_failing_disk_has_left),
		CASE(open__a_link_that_can_t_be_turned),
		CASE(reopen__the_same_directory),
		CASE(latest__is_what_the_administrator_turns_it_to),
		CASE(latest__without_a_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
