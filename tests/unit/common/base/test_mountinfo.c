/* Lines of mountinfo, with what other programs may have put there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/base/mountinfo.h"

static char file[] = "/tmp/rmemfs-mountinfo.XXXXXX";
static struct mount found[4];
static char *texts[4];
static unsigned nfound, wanted;
static char argument[] = "arg";

static int make_file(void **state)
{
	int fd = mkstemp(file);

	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	return unlink(file);
}

static int forget(void **state)
{
	for (unsigned i = 0; i < nfound; i++)
		free(texts[i]);
	nfound = 0;
	wanted = 4;
	return 0;
}

static bool take(const struct mount *mount, void *arg)
{
	assert_ptr_equal(arg, argument);
	texts[nfound] = mountinfo_copy(mount, &found[nfound]);
	assert_non_null(texts[nfound]);
	return ++nfound < wanted;
}

static void read_text(const char *text)
{
	FILE *f = fopen(file, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(mountinfo_each(file, take, argument), 0);
}

static void line__gives_its_parts(void **state)
{
	read_text("36 35 0:42 / /mnt/a\\040b rw,nosuid,noatime master:1 shared:2 - fuse.rmemfs "
		  "host:/e\\134x ro,user_id=1000,group_id=100\n");
	assert_int_equal(nfound, 1);
	assert_int_equal(found[0].minor, 42);
	assert_string_equal(found[0].dir, "/mnt/a b");
	assert_string_equal(found[0].type, MOUNT_TYPE_OURS);
	assert_string_equal(found[0].source, "host:/e\\x");
	assert_int_equal(found[0].flags, MS_NOSUID);
	assert_true(found[0].spreads);
	assert_true(found[0].read_only);
	assert_false(found[0].sync);
	assert_int_equal(found[0].uid, 1000);
}

static void line__without_optional_fields(void **state)
{
	read_text("1 0 8:1 / / rw - ext4 /dev/sda1 rw,sync\n");
	assert_int_equal(nfound, 1);
	assert_false(found[0].spreads);
	assert_false(found[0].read_only);
	assert_true(found[0].sync);
	assert_int_equal(found[0].uid, 0);
	assert_int_equal(found[0].flags, 0);
}

static void line__that_spreads(void **state)
{
	read_text("1 0 0:7 / /a rw shared:3 - fuse.rmemfs s rw\n"
		  "1 0 0:7 / /a rw unbindable master:3 - fuse.rmemfs s rw\n"
		  "1 0 0:7 / /a rw unbindable - fuse.rmemfs s rw\n");
	assert_int_equal(nfound, 3);
	assert_true(found[0].spreads);
	assert_true(found[1].spreads);
	assert_false(found[2].spreads);
}

/* An option's name must not be found within another one. */
static void options__are_whole_words(void **state)
{
	read_text("1 0 0:7 / /a rw,nodevx - fuse.rmemfs s rw,errors=ro,xuser_id=5,roo\n");
	assert_int_equal(found[0].flags, 0);
	assert_false(found[0].read_only);
	assert_int_equal(found[0].uid, 0);
}

static void lines__that_are_cut_are_left_out(void **state)
{
	read_text("\n1\n1 0 0:7 / /a\n1 0 0:7 / /a rw -\n1 0 0:7 / /a rw - fuse.rmemfs\n"
		  "1 0 0:7 / /a rw - fuse.rmemfs s\n1 0 x / /a rw - fuse.rmemfs s rw\n"
		  "1 0 0:9 / /b rw - fuse.rmemfs s rw\n");
	assert_int_equal(nfound, 1);
	assert_int_equal(found[0].minor, 9);
}

static void each__ends_when_it_is_told(void **state)
{
	wanted = 1;
	read_text("1 0 0:7 / /a rw - t s rw\n1 0 0:8 / /b rw - t s rw\n");
	assert_int_equal(nfound, 1);
	assert_string_equal(found[0].dir, "/a");
}

static void each__without_the_file(void **state)
{
	assert_int_equal(mountinfo_each("/nonexistent/mountinfo", take, argument), -2);
}

static void each__of_this_process(void **state)
{
	wanted = 1;
	assert_int_equal(mountinfo_each("/proc/self/mountinfo", take, argument), 0);
	assert_int_equal(nfound, 1);
	assert_int_equal(*found[0].dir, '/');
}

static void find__of_this_process(void **state)
{
	struct mount mount;
	char *text = mountinfo_find("/", &mount);

	assert_non_null(text);
	assert_string_equal(mount.dir, "/");
	free(text);
	assert_null(mountinfo_find("/nonexistent", &mount));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(line__gives_its_parts, forget),
		cmocka_unit_test_setup(line__without_optional_fields, forget),
		cmocka_unit_test_setup(line__that_spreads, forget),
		cmocka_unit_test_setup(options__are_whole_words, forget),
		cmocka_unit_test_setup(lines__that_are_cut_are_left_out, forget),
		cmocka_unit_test_setup(each__ends_when_it_is_told, forget),
		cmocka_unit_test_setup(each__without_the_file, forget),
		cmocka_unit_test_setup_teardown(each__of_this_process, forget, forget),
		cmocka_unit_test(find__of_this_process),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
