/* test_configured.c - lines of fstab without a mount. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/ctl/configured.h"
#include "daemon/ctl/json.h"

static char file[] = "/tmp/rmemfs-fstab.XXXXXX";

static void fstab__mounts_of_boot_alone(void **state)
{
	static const char text[] = "# a comment\n"
				   "UUID=1 / ext4 defaults 0 1\n"
				   "host:/a /nowhere/a rmemfs defaults,_netdev 0 0\n"
				   "host:/b /nowhere/b rmemfs noauto,_netdev 0 0\n"
				   "host:/c /nowhere/c rmemfs x-systemd.automount,_netdev 0 0\n"
				   "host:/d /nowhere/d\\040d fuse.rmemfs ro,nofail 0 0\n"
				   "malformed\n";
	json_t *list = json_array();
	int fd = mkstemp(file);

	assert_return_code(fd, errno);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(configured_fstab(file, list), 0);
	unlink(file);
	assert_int_equal(json_array_size(list), 2);
	assert_int_equal(configured_count(list, "mount"), 2);
	assert_int_equal(configured_count(list, "server"), 0);
	assert_string_equal(ctl_json_text(json_array_get(list, 0), "name"), "/nowhere/a");
	assert_string_equal(ctl_json_text(json_array_get(list, 0), "state"), "unmounted");
	assert_string_equal(ctl_json_text(json_array_get(list, 1), "name"), "/nowhere/d d");
	assert_int_equal(configured_fstab("/nowhere/fstab", list), 0);
	assert_int_equal(configured_fstab("/proc/self/stat/fstab", list), -ENOTDIR);
	assert_int_equal(json_array_size(list), 2);
	json_decref(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fstab__mounts_of_boot_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
