/* exports.d: the exports of its files come after those of the configuration file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/config/config.h"
#include "server/config/config_files.h"

static char root[64], why[640];
static struct server_config config;

#define A "exports = ( { name = \"a\"; size = 4096; } );\n"
#define B "exports = ( { name = \"b\"; size = 8192; } );\n"
#define C "exports = ( { name = \"c\"; size = 4096; }, { name = \"d\"; size = 4096; } );\n"

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/rmemfs-test-files.XXXXXX");
	if (!mkdtemp(root) || mkdir(path_of("exports.d"), 0755))
		return -1;
	server_config_init(&config);
	why[0] = '\0';
	return 0;
}

static int remove_root(void **state)
{
	static const char *const names[] = {"server.conf", "exports.d/a.conf", "exports.d/b.conf",
		"exports.d/c.conf", "exports.d/B.conf", "exports.d/.b.conf", "exports.d/b.conf.old",
		"exports.d/conf", "exports.d/.c.remove", "exports.d/.remove", "other"};

	(void)state;
	server_config_fini(&config);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		remove(path_of(names[i]));
	rmdir(path_of("exports.d"));
	return rmdir(root);
}

static int read_all(void)
{
	static char path[256];
	int err;

	snprintf(path, sizeof(path), "%s", path_of("server.conf"));
	err = access(path, F_OK) == 0 ? server_config_read(&config, path, why, sizeof(why)) : 0;
	if (!err)
		err = config_files_read(&config, path, why, sizeof(why));
	return err ? err : server_config_finish(&config, why, sizeof(why));
}

static void expect_names(const char *names)
{
	char text[64] = "";

	for (size_t i = 0; i < config.exports.n; i++)
		strcat(text, server_config_export(&config, i)->name);
	assert_string_equal(text, names);
}

static void expect_refused(const char *file, const char *reason)
{
	char text[512];

	snprintf(text, sizeof(text), "%s/%s%s", root, file, reason);
	assert_int_equal(read_all(), -EINVAL);
	assert_string_equal(why, text);
}

static void read__in_the_order_of_names(void **state)
{
	(void)state;
	write_file("server.conf", B);
	write_file("exports.d/c.conf", C);
	write_file("exports.d/a.conf", A);
	assert_int_equal(read_all(), 0);
	expect_names("bacd");
	assert_string_equal(server_config_find(&config, "b")->path, path_of("server.conf"));
	assert_string_equal(server_config_find(&config, "d")->path, path_of("exports.d/c.conf"));
	assert_int_equal(server_config_find(&config, "b")->size, 8192);
	assert_null(server_config_find(&config, "e"));
}

static void read__other_files_are_left_alone(void **state)
{
	(void)state;
	write_file("exports.d/.b.conf", "nonsense");
	write_file("exports.d/b.conf.old", "nonsense");
	write_file("exports.d/conf", "nonsense");
	write_file("exports.d/a.conf", A);
	assert_int_equal(read_all(), 0);
	expect_names("a");
}

static void read__without_the_directory(void **state)
{
	(void)state;
	assert_int_equal(rmdir(path_of("exports.d")), 0);
	write_file("server.conf", A);
	assert_int_equal(read_all(), 0);
	expect_names("a");
}

static void read__other_keys_belong_elsewhere(void **state)
{
	(void)state;
	write_file("exports.d/a.conf", A "region_size = 4096;\n");
	expect_refused("exports.d/a.conf", ":2: region_size: belongs to server.conf");
}

static void read__names_the_file_that_is_wrong(void **state)
{
	(void)state;
	write_file("server.conf", A);
	write_file("exports.d/b.conf", "\n\nexports = ( { name = \"b\"; size = 1; } );\n");
	expect_refused("exports.d/b.conf", ":3: size: '1': must be at least 4KiB");
}

/* A mark counts as long as somebody has it locked. */
static void read__marks(void **state)
{
	int fd;

	(void)state;
	write_file("server.conf", A);
	write_file("exports.d/c.conf", C);
	write_file("exports.d/.c.remove", "nonsense");
	write_file("exports.d/.remove", "nonsense");
	assert_int_equal(read_all(), 0);
	expect_names("acd");
	assert_int_equal(config.marks.n, 1);
	assert_string_equal(config.marks.v[0], "c");
	assert_int_equal(config.marks.lines[0], MARK_LEFT);
	fd = open(path_of("exports.d/.c.remove"), O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	server_config_fini(&config);
	server_config_init(&config);
	assert_int_equal(read_all(), 0);
	assert_int_equal(config.marks.n, 1);
	assert_int_equal(config.marks.lines[0], MARK_WANTED);
	close(fd);
}

static void read__mark_that_is_no_file(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path_of("exports.d/.c.remove"), 0600), 0);
	expect_refused("exports.d/.c.remove", ": must be a regular file: move it away");
}

static bool is_alone(const char *name)
{
	return config_files_is_alone(&config, server_config_find(&config, name), why, sizeof(why));
}

static void is_alone__only_in_a_file_of_its_name(void **state)
{
	char text[512];

	(void)state;
	write_file("server.conf", A);
	write_file("exports.d/b.conf", "\n" B);
	write_file("exports.d/c.conf", C);
	assert_int_equal(read_all(), 0);
	assert_true(is_alone("b"));
	assert_false(is_alone("a"));
	snprintf(text, sizeof(text),
		"export 'a' stands in %s/server.conf, line 1: take it out there, and remove it then",
		root);
	assert_string_equal(why, text);
	assert_false(is_alone("c"));
	snprintf(text, sizeof(text),
		"export 'c' stands in %s/exports.d/c.conf, line 1, beside export 'd': take it out "
		"there, and remove it then",
		root);
	assert_string_equal(why, text);
	assert_false(is_alone("d"));
	assert_non_null(strstr(why, "export 'd' stands in "));
}

static void is_alone__not_the_built_in_one(void **state)
{
	(void)state;
	assert_int_equal(read_all(), 0);
	assert_false(is_alone("default"));
	assert_non_null(strstr(why, "of the server's command line, or the built-in one"));
}

static void drop__leaves_the_others_as_they_were(void **state)
{
	const struct export_config *d;

	(void)state;
	write_file("server.conf", B);
	write_file("exports.d/c.conf", C);
	assert_int_equal(read_all(), 0);
	assert_int_equal(server_config_drop(&config, "c", why, sizeof(why)), 0);
	expect_names("bd");
	d = server_config_find(&config, "d");
	assert_string_equal(d->path, path_of("exports.d/c.conf"));
	assert_int_equal(d->size, 4096);
	assert_int_equal(config.exports.lines[1], 1);
	assert_true(d->share > 0);
	assert_int_equal(server_config_drop(&config, "c", why, sizeof(why)), 0);
	expect_names("bd");
}

/* A reload must not wait for a writer. */
static void read__what_is_no_file(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path_of("exports.d/b.conf"), 0600), 0);
	expect_refused("exports.d/b.conf", ": must be a regular file: move it away");
	assert_int_equal(unlink(path_of("exports.d/b.conf")), 0);
	assert_int_equal(mkdir(path_of("exports.d/b.conf"), 0700), 0);
	expect_refused("exports.d/b.conf", ": must be a regular file: move it away");
}

static void read__links(void **state)
{
	(void)state;
	write_file("other", A);
	assert_int_equal(symlink("../other", path_of("exports.d/b.conf")), 0);
	assert_int_equal(read_all(), 0);
	expect_names("a");
	assert_int_equal(unlink(path_of("other")), 0);
	server_config_fini(&config);
	server_config_init(&config);
	assert_int_equal(read_all(), -ENOENT);
	assert_non_null(strstr(why, "exports.d/b.conf: No such file or directory"));
}

static void expect_writable(const char *name, int mode)
{
	char text[512];

	assert_int_equal(chmod(path_of(name), (mode_t)mode | S_IWOTH), 0);
	assert_int_equal(read_all(), -EPERM);
	snprintf(text, sizeof(text),
		"%s/%s has mode %04o, and other users may change it: chmod o-w %s/%s", root, name,
		(unsigned)mode | S_IWOTH, root, name);
	assert_string_equal(why, text);
	assert_int_equal(chmod(path_of(name), (mode_t)mode), 0);
}

static void read__what_others_may_change(void **state)
{
	(void)state;
	write_file("exports.d/a.conf", A);
	expect_writable("exports.d/a.conf", 0664);
	expect_writable("exports.d", 0755);
	assert_int_equal(read_all(), 0);
	expect_names("a");
}

static void expect_foreign(const char *name)
{
	char text[512];

	assert_int_equal(chown(path_of(name), 1234, 0), 0);
	assert_int_equal(read_all(), -EPERM);
	snprintf(text, sizeof(text),
		"%s/%s belongs to user 1234, and must belong to root or to the server's user: "
		"chown root %s/%s",
		root, name, root, name);
	assert_string_equal(why, text);
	assert_int_equal(chown(path_of(name), geteuid(), 0), 0);
}

static void read__what_is_another_users(void **state)
{
	(void)state;
	write_file("exports.d/a.conf", A);
	expect_foreign("exports.d/a.conf");
	expect_foreign("exports.d");
	assert_int_equal(read_all(), 0);
	expect_names("a");
}

static void read__a_directory_that_is_a_file(void **state)
{
	(void)state;
	assert_int_equal(rmdir(path_of("exports.d")), 0);
	write_file("exports.d", A);
	assert_int_equal(read_all(), -ENOTDIR);
	assert_non_null(strstr(why, "exports.d: Not a directory"));
	assert_int_equal(unlink(path_of("exports.d")), 0);
}

static void finish__one_name_in_two_files(void **state)
{
	char reason[512];

	(void)state;
	write_file("exports.d/a.conf", "\n" A);
	write_file("exports.d/b.conf", A);
	snprintf(reason, sizeof(reason),
		":1: exports: 'a': there is another export of this name in %s, line 2",
		path_of("exports.d/a.conf"));
	expect_refused("exports.d/b.conf", reason);
}

static void finish__names_the_file_of_a_client(void **state)
{
	(void)state;
	write_file("server.conf", A);
	write_file("exports.d/b.conf",
		"exports = ( { name = \"b\"; size = 4096;\n clients = ( { name = \"x\"; } ); } );\n");
	expect_refused("exports.d/b.conf",
		":2: clients: each needs keys or insecure = true, and not both");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(read__in_the_order_of_names),
		TEST(read__other_files_are_left_alone),
		TEST(read__marks),
		TEST(read__mark_that_is_no_file),
		TEST(is_alone__only_in_a_file_of_its_name),
		TEST(is_alone__not_the_built_in_one),
		TEST(drop__leaves_the_others_as_they_were),
		TEST(read__without_the_directory),
		TEST(read__other_keys_belong_elsewhere),
		TEST(read__names_the_file_that_is_wrong),
		TEST(read__what_is_no_file),
		TEST(read__links),
		TEST(read__what_others_may_change),
		TEST(read__what_is_another_users),
		TEST(read__a_directory_that_is_a_file),
		TEST(finish__one_name_in_two_files),
		TEST(finish__names_the_file_of_a_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
