/* rmemfs as mount(8) calls it: mount.rmemfs SOURCE MOUNTPOINT [-sfnv] [-N NAMESPACE] [-o OPTIONS].
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mount.h>

#include "common/util.h"
#include "daemon/options.h"

static char why[512];

/* getopt permutes its argv, which is no constant. */
static int parse(const char *const *words, struct options *options)
{
	static char *argv[16];
	int argc = 0;

	for (; words[argc]; argc++)
		argv[argc] = (char *)words[argc];
	argv[argc] = NULL;
	why[0] = '\0';
	return options_parse(argc, argv, "/nonexistent/client.conf", options, why, sizeof(why));
}

static void options_parse__f_is_fake_for_mount_and_foreground_for_people(void **state)
{
	struct options o;

	assert_int_equal(
		parse((const char *const[]){"/sbin/mount.fuse.rmemfs", "h:/e", "/m", "-f", NULL},
			&o),
		0);
	assert_true(o.fake && !o.foreground);
	options_fini(&o);
	assert_int_equal(
		parse((const char *const[]){"/mount.d/rmemfs", "h:/e", "/m", "-f", NULL}, &o), 0);
	assert_true(o.foreground && !o.fake);
	options_fini(&o);
}

static void options_parse__every_switch_of_mount(void **state)
{
	struct options o;

	assert_int_equal(
		parse((const char *const[]){"/sbin/mount.rmemfs", "h:/e", "/m", "-s", "-f", "-n",
			      "-v", "-o", "rw,noexec,nosuid,nodev,user,_netdev,nofail", "-N",
			      "/proc/7/fd/4", NULL},
			&o),
		0);
	assert_true(o.fake);
	assert_false(o.remount || o.read_only);
	assert_string_equal(o.mount_namespace, "/proc/7/fd/4");
	assert_string_equal(o.mount_options, "rw,noexec,nosuid,nodev");
	options_fini(&o);
}

static void options_parse__sloppy_passes_over_unknown_options_alone(void **state)
{
	struct options o;

	assert_int_equal(parse((const char *const[]){"mount.rmemfs", "h:/e", "/m", "-s", "-o",
				       "vers=3,nosuch,port=9", NULL},
				 &o),
		0);
	assert_int_equal(o.config.port, 9);
	options_fini(&o);
	assert_int_equal(parse((const char *const[]){"mount.rmemfs", "h:/e", "/m", "-s", "-o",
				       "port=x", NULL},
				 &o),
		-EINVAL);
	options_fini(&o);
	assert_int_equal(
		parse((const char *const[]){"mount.rmemfs", "h:/e", "/m", "-o", "nosuch", NULL},
			&o),
		-EINVAL);
	options_fini(&o);
}

static void options_parse__remount_brings_the_kernels_options_along(void **state)
{
	struct options o;
	char shown[] = "ro,nosuid,relatime,remount,user_id=0,group_id=0,default_permissions";

	assert_int_equal(
		parse((const char *const[]){"mount.rmemfs", "h:/e", "/m", "-o", shown, NULL}, &o),
		0);
	assert_true(o.remount && o.read_only);
	assert_string_equal(o.mount_options, "ro,nosuid");
	options_fini(&o);
}

static void options_parse__the_kernels_options_are_refused_without_remount(void **state)
{
	struct options o;

	assert_int_equal(
		parse((const char *const[]){"mount.rmemfs", "h:/e", "/m", "-o", "user_id=0", NULL},
			&o),
		-EINVAL);
	assert_non_null(strstr(why, "user_id="));
	options_fini(&o);
	assert_int_equal(
		parse((const char *const[]){"mount.rmemfs", "h:/e", "/m", "-o", "remount=1", NULL},
			&o),
		-EINVAL);
	options_fini(&o);
}

static unsigned long flags_of(const char *list)
{
	struct options o;
	unsigned long flags;

	assert_int_equal(
		parse((const char *const[]){"mount.rmemfs", "h:/e", "/m", "-o", list, NULL}, &o),
		0);
	flags = options_flags(&o);
	options_fini(&o);
	return flags;
}

static void options_flags__are_those_of_mount(void **state)
{
	assert_int_equal(flags_of("rw"), 0);
	assert_int_equal(flags_of("ro,nosuid,nodev,noexec,nosymfollow"),
		MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOSYMFOLLOW);
	assert_int_equal(flags_of("ro,nosuid,nodev,rw,suid,exec,symfollow"), MS_NODEV);
	/* What is not said of access times stays as it is. */
	assert_int_equal(flags_of("ro,norelatime,sync"), MS_RDONLY);
	assert_int_equal(flags_of("noatime"), MS_NOATIME);
	assert_int_equal(flags_of("noatime,atime"), MS_RELATIME);
	assert_int_equal(flags_of("strictatime,nodiratime"), MS_STRICTATIME | MS_NODIRATIME);
	assert_int_equal(flags_of("nodiratime,diratime"), MS_RELATIME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_parse__f_is_fake_for_mount_and_foreground_for_people),
		cmocka_unit_test(options_parse__every_switch_of_mount),
		cmocka_unit_test(options_parse__sloppy_passes_over_unknown_options_alone),
		cmocka_unit_test(options_parse__remount_brings_the_kernels_options_along),
		cmocka_unit_test(options_parse__the_kernels_options_are_refused_without_remount),
		cmocka_unit_test(options_flags__are_those_of_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
