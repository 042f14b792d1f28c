/* rmemfs as mount(8) calls it: mount.rmemfs SOURCE MOUNTPOINT [-sfnv] [-N NAMESPACE] [-o OPTIONS].
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mount.h>

#include "common/base/util.h"
#include "daemon/mount/options.h"

static char why[512];

/* getopt permutes its argv, so that can't be constant. */
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
	assert_string_equal(o.mount_options, "rw,noexec");
	assert_int_equal(options_flags(&o), MS_NOEXEC | MS_NOSUID | MS_NODEV);
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
	assert_string_equal(o.mount_options, "ro");
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

static void parse_flags(
	const char *const *words, unsigned long *flags, unsigned long *kept, char *passed)
{
	struct options o;

	assert_int_equal(parse(words, &o), 0);
	*flags = options_flags(&o);
	*kept = options_kept_flags(&o);
	if (passed)
		strcpy(passed, o.mount_options);
	options_fini(&o);
}

static unsigned long flags_of(const char *list)
{
	unsigned long flags, kept;

	parse_flags((const char *const[]){"mount.rmemfs", "h:/e", "/m", "-o", list, NULL}, &flags,
		&kept, NULL);
	assert_int_equal(kept, 0);
	return flags;
}

#define NEITHER (MS_NOSUID | MS_NODEV)

static void options_flags__are_those_of_mount(void **state)
{
	assert_int_equal(flags_of("rw,suid,dev"), 0);
	assert_int_equal(flags_of("ro,nosuid,nodev,noexec,nosymfollow"),
		MS_RDONLY | NEITHER | MS_NOEXEC | MS_NOSYMFOLLOW);
	assert_int_equal(flags_of("ro,nosuid,nodev,rw,suid,exec,symfollow"), MS_NODEV);
	/* Without an option for access times they stay unchanged. */
	assert_int_equal(flags_of("ro,norelatime,sync"), NEITHER | MS_RDONLY);
	assert_int_equal(flags_of("noatime"), NEITHER | MS_NOATIME);
	assert_int_equal(flags_of("noatime,atime"), NEITHER | MS_RELATIME);
	assert_int_equal(
		flags_of("strictatime,nodiratime"), NEITHER | MS_STRICTATIME | MS_NODIRATIME);
	assert_int_equal(flags_of("nodiratime,diratime"), NEITHER | MS_RELATIME);
}

static void options_flags__suid_and_dev_are_said_or_not_there(void **state)
{
	assert_int_equal(flags_of("rw"), NEITHER);
	assert_int_equal(flags_of("defaults"), NEITHER);
	assert_int_equal(flags_of("rw,suid"), MS_NODEV);
	assert_int_equal(flags_of("defaults,dev"), MS_NOSUID);
	assert_int_equal(flags_of("suid,dev,nosuid"), MS_NOSUID);
	/* As mount(8) before 2.39 hands it on. */
	assert_int_equal(flags_of("rw,allow_suid,allow_dev"), 0);
	assert_int_equal(flags_of("rw,nosuid,nodev,noexec,allow_suid,user"), MS_NODEV | MS_NOEXEC);
}

static void options_flags__what_mount_fuse_adds_is_nobodys_word(void **state)
{
	static const struct {
		const char *list, *passed;
		unsigned long flags;
	} cases[] = {
		{"dev,suid", "", NEITHER},
		{"rw,dev,suid", "rw", NEITHER},
		{"rw,suid,dev", "rw,suid,dev", 0},
		{"rw,nosuid,dev", "rw", NEITHER},
		{"rw,nodev,suid", "rw", NEITHER},
		{"rw,allow_suid,dev,suid", "rw,suid", MS_NODEV},
		{"rw,nodev,allow_suid", "rw,suid", MS_NODEV},
		{"rw,suid", "rw,suid", MS_NODEV},
	};
	unsigned long flags, kept;
	char passed[64];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		parse_flags(
			(const char *const[]){"rmemfs", "h:/e", "/m", "-o", cases[i].list, NULL},
			&flags, &kept, passed);
		assert_int_equal(flags, cases[i].flags);
		assert_string_equal(passed, cases[i].passed);
	}
	/* Nowhere else: there these are options of users. */
	parse_flags((const char *const[]){"rmemfs", "-o", "dev,suid", "h:/e", "/m", NULL}, &flags,
		&kept, passed);
	assert_int_equal(flags, 0);
	parse_flags((const char *const[]){"mount.rmemfs", "h:/e", "/m", "-o", "dev,suid", NULL},
		&flags, &kept, passed);
	assert_int_equal(flags, 0);
}

static void options_kept_flags__what_a_remount_does_not_say(void **state)
{
	static const struct {
		const char *list;
		unsigned long kept, flags; /* of those that are not kept */
	} cases[] = {
		/* The list of fstab's line, or of a command. */
		{"remount,ro", NEITHER, MS_RDONLY},
		{"rw,remount,suid", MS_NODEV, 0},
		{"remount,nosuid,dev", 0, MS_NOSUID},
		{"remount,allow_suid,allow_dev", 0, 0},
		/* The options that the kernel shows, changed by mount(8): it has removed the
		 * missing ones. */
		{"ro,nosuid,nodev,relatime,user_id=0,group_id=0,remount", 0,
			MS_RDONLY | NEITHER | MS_RELATIME},
		{"rw,nodev,relatime,user_id=0,group_id=0,remount", 0, MS_NODEV | MS_RELATIME},
		{"rw,relatime,user_id=0,group_id=0,remount,nosuid", 0, MS_NOSUID | MS_RELATIME},
	};
	unsigned long flags, kept;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		parse_flags((const char *const[]){"mount.rmemfs", "h:/e", "/m", "-o", cases[i].list,
				    NULL},
			&flags, &kept, NULL);
		assert_int_equal(kept, cases[i].kept);
		assert_int_equal(flags & ~kept, cases[i].flags);
	}
	/* The same at the end of mount.fuse3's command line. */
	parse_flags(
		(const char *const[]){"rmemfs", "h:/e", "/m", "-o", "ro,remount,dev,suid", NULL},
		&flags, &kept, NULL);
	assert_int_equal(kept, NEITHER);
	parse_flags((const char *const[]){"rmemfs", "h:/e", "/m", "-o",
			    "ro,nosuid,user_id=0,remount,dev", NULL},
		&flags, &kept, NULL);
	assert_int_equal(kept, 0);
	assert_int_equal(flags, MS_RDONLY | MS_NOSUID);
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
		cmocka_unit_test(options_flags__suid_and_dev_are_said_or_not_there),
		cmocka_unit_test(options_flags__what_mount_fuse_adds_is_nobodys_word),
		cmocka_unit_test(options_kept_flags__what_a_remount_does_not_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
