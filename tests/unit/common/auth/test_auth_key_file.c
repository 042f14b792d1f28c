/* Files of keys: contents, owners, modes, and things that are no files. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include <openssl/crypto.h>

#include "common/auth/auth_key_file.h"
#include "common/base/util.h"
#include "tests/unit/emulated.h"

#define ONE "RMEMFS-KEY-1:web1-k7q2:0sE89nwH9zEzWXYlRQCvpab6VpIkoqifrxLzD6dCImtODlil:"
#define TWO "RMEMFS-KEY-1:a:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh/ZDHS5:"
/* Two users without rights, and a group. */
enum { USER = 65534, OTHER = 65533, GROUP = 65532 };

static char dir[] = "/tmp/rmemfs-test-keys.XXXXXX";
static char path[64], why[2048];

static int make_dir(void **state)
{
	if (!mkdtemp(dir) || chmod(dir, 0755) != 0)
		return -1;
	snprintf(path, sizeof(path), "%s/web.key", dir);
	return 0;
}

static int remove_path(void **state)
{
	if (unlink(path) != 0 && errno == EISDIR)
		return rmdir(path);
	return 0;
}

static int remove_dir(void **state)
{
	return rmdir(dir);
}

static void write_bytes(const char *text, size_t len)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
}

static void write_text(const char *text)
{
	write_bytes(text, strlen(text));
}

/* The file has the ids, in this order. */
static void has(const char *first, const char *second)
{
	struct auth_key_file file;

	if (auth_key_file_read(path, &file, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	assert_int_equal(file.n, second ? 2 : 1);
	assert_string_equal(file.v[0].id, first);
	if (second)
		assert_string_equal(file.v[1].id, second);
	auth_key_file_free(&file);
	assert_null(file.v);
}

/* The file is refused for this reason, in which '@' stands for its path. */
static void refused(int err, const char *reason)
{
	struct auth_key_file file;
	char expected[512], *at = expected;

	for (; *reason; reason++)
		at += snprintf(at, (size_t)(expected + sizeof(expected) - at), "%.*s",
			*reason == '@' ? (int)sizeof(path) : 1, *reason == '@' ? path : reason);
	why[0] = '\0';
	assert_int_equal(auth_key_file_read(path, &file, why, sizeof(why)), err);
	assert_null(file.v);
	assert_int_equal(file.n, 0);
	assert_non_null(strstr(why, path));
	if (!strstr(why, expected))
		fail_msg("'%s', not '%s'", why, expected);
}

/* ---- contents -------------------------------------------------------------------------------- */

static void read__one_or_more_keys(void **state)
{
	write_text(ONE "\n");
	has("web1-k7q2", NULL);
	write_text(ONE);
	has("web1-k7q2", NULL);
	write_text("# both are valid until Monday\n\n" TWO "\n \t\n" ONE "\n\n# end");
	has("a", "web1-k7q2");
	write_text(ONE "\n" TWO);
	has("web1-k7q2", "a");
}

/* As other machines and people write them. */
static void read__blanks_at_the_ends(void **state)
{
	write_text("# comment\r\n\r\n" ONE "\r\n" TWO "\r\n");
	has("web1-k7q2", "a");
	write_text("\t# comment\n  " ONE " \n" TWO "\t");
	has("web1-k7q2", "a");
}

static void read__faults_have_their_line(void **state)
{
	write_text("# comment\n\nRMEMFS-KEY-1:web1-k7q2:0sE89nwH9z\n" TWO "\n");
	refused(-EINVAL, "@:3: the key was cut: behind its id it has 10 characters");
	write_text(ONE "\nweb.key\n");
	refused(-EINVAL, "@:2: no key: a key begins with RMEMFS-KEY-1:");
	write_text(ONE "\n\n" TWO "\n" ONE "\n");
	refused(-EINVAL, "@:4: the file has key web1-k7q2 already: remove one of the lines");
	write_bytes(ONE "\n" TWO "\0\n", sizeof(ONE "\n" TWO "\0\n") - 1);
	refused(-EINVAL, "@:2: the key is too long");
}

static void read__no_keys(void **state)
{
	write_text("");
	refused(-EINVAL, "key file @ has no key: on a client copy the server's file here; "
			 "on the server rmemfsctl keygen NAME >>@ adds a key");
	write_text("# later\n\n");
	refused(-EINVAL, "key file @ has no key");
}

static void read__size(void **state)
{
	enum { LIMIT = 16 << 10 };
	static char text[LIMIT];
	int fd;

	memset(text, '\n', sizeof(text));
	memcpy(text + sizeof(text) - sizeof(ONE), ONE, sizeof(ONE) - 1);
	write_bytes(text, sizeof(text) - 1);
	has("web1-k7q2", NULL);
	write_bytes(text, sizeof(text));
	refused(-EFBIG, "key file @ has 16 KiB or more: keep keys alone in it");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1LL << 40), 0);
	close(fd);
	refused(-EFBIG, "16 KiB");
}

/* As many keys as a file can have, each with the shortest line. */
static void parse__full(void **state)
{
	static char text[16 << 10];
	struct auth_key_file file;
	struct auth_key key = {.id = "x"};
	size_t len = 0, n = 0;

	for (; len + AUTH_KEY_LINE_MAX < sizeof(text); n++) {
		snprintf(key.id, sizeof(key.id), "%zx", n);
		assert_int_equal(auth_key_format(&key, text + len), 0);
		len += strlen(text + len);
		text[len++] = '\n';
	}
	assert_true(n > 240);
	assert_int_equal(auth_key_file_parse(path, text, len, &file, NULL, NULL), 0);
	assert_int_equal(file.n, n);
	for (size_t i = 0; i < n; i++)
		assert_ptr_equal(
			auth_key_file_find(&file, file.v[i].id, strlen(file.v[i].id)), &file.v[i]);
	auth_key_file_free(&file);
}

static void find__by_whole_ids(void **state)
{
	struct auth_key_file file = {0};

	assert_null(auth_key_file_find(&file, "a", 1));
	write_text(ONE "\n" TWO "\n");
	assert_int_equal(auth_key_file_read(path, &file, why, sizeof(why)), 0);
	assert_ptr_equal(auth_key_file_find(&file, "a", 1), &file.v[1]);
	assert_ptr_equal(auth_key_file_find(&file, "abc", 1), &file.v[1]);
	assert_null(auth_key_file_find(&file, "abc", 3));
	assert_null(auth_key_file_find(&file, "web1-k7q", 8));
	assert_null(auth_key_file_find(&file, "", 0));
	auth_key_file_free(&file);
}

static void count(void *arg, const char *text)
{
	assert_non_null(strstr(text, path));
	++*(unsigned *)arg;
}

static void check__tells_all_faults(void **state)
{
	struct auth_key_file file;
	unsigned faults = 0;

	write_text(ONE "\nnone\n" TWO "\n" ONE "\n");
	assert_int_equal(chmod(path, 0664), 0);
	assert_int_equal(auth_key_file_check(path, &file, count, &faults), -EPERM);
	assert_int_equal(faults, 3);
	assert_int_equal(file.n, 2);
	assert_string_equal(file.v[1].id, "a");
	auth_key_file_free(&file);

	faults = 0;
	write_text("# none yet\n");
	assert_int_equal(chmod(path, 0664), 0);
	assert_int_equal(auth_key_file_check(path, &file, count, &faults), -EPERM);
	assert_int_equal(faults, 2);
	auth_key_file_free(&file);

	faults = 0;
	write_text("none\n");
	assert_int_equal(auth_key_file_check(path, &file, count, &faults), -EINVAL);
	assert_int_equal(faults, 1);
	auth_key_file_free(&file);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void read__modes(void **state)
{
	static const unsigned good[] = {0400, 0600, 0440, 0640, 0700, 0750, 0601};
	static const struct {
		unsigned mode;
		const char *reason;
	} bad[] = {
		{0604, "key file @ has mode 0604, and other users may read it: chmod g-w,o-rw @"},
		{0644, "has mode 0644, and other users may read it"},
		{0620, "has mode 0620, and other users may change it"},
		{0660, "has mode 0660, and other users may change it"},
		{0602, "has mode 0602, and other users may change it"},
		{0666, "has mode 0666, and other users may change it"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(good); i++) {
		write_text(ONE "\n");
		assert_int_equal(chmod(path, good[i]), 0);
		has("web1-k7q2", NULL);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(chmod(path, bad[i].mode), 0);
		refused(-EPERM, bad[i].reason);
	}
}

static void become(uid_t uid)
{
	assert_int_equal(setegid(uid ? GROUP : 0), 0);
	assert_int_equal(seteuid(uid), 0);
}

static void read__owners(void **state)
{
	if (geteuid() != 0)
		skip();
	write_text(ONE "\n");
	assert_int_equal(chown(path, OTHER, GROUP), 0);
	refused(-EPERM, "key file @ belongs to user 65533, and must belong to root or to its "
			"reader: chown 0 @");

	assert_int_equal(chmod(path, 0640), 0);
	become(USER);
	refused(-EPERM, "chown 65534 @");
	become(0);

	assert_int_equal(chown(path, USER, 0), 0);
	become(USER);
	has("web1-k7q2", NULL);
	become(0);

	/* As on a server: root's file, readable for the server's group. */
	assert_int_equal(chown(path, 0, GROUP), 0);
	become(USER);
	has("web1-k7q2", NULL);
	become(0);

	assert_int_equal(chmod(path, 0600), 0);
	become(USER);
	refused(-EACCES, "key file @: Permission denied: user 65534 reads it, and must be its "
			 "owner or in its group: chgrp GROUP @; chmod 640 ");
	become(0);
}

static void read__nothing_there(void **state)
{
	refused(-ENOENT,
		"key file @: No such file or directory: on a client copy the server's file here; "
		"on the server rmemfsctl keygen NAME @ makes a key");
}

static void read__links(void **state)
{
	char target[80];

	snprintf(target, sizeof(target), "%s.target", path);
	write_text(ONE "\n");
	assert_int_equal(rename(path, target), 0);
	assert_int_equal(symlink(target, path), 0);
	refused(-ELOOP, "key file @ is a symbolic link: name the file itself");
	assert_int_equal(unlink(target), 0);
	refused(-ELOOP, "is a symbolic link");
}

/* None of these is waited for. */
static void read__no_regular_file(void **state)
{
	static const char reason[] = "key file @ is no regular file: name a file with keys";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	assert_int_equal(mkfifo(path, 0600), 0);
	refused(-EINVAL, reason);
	assert_int_equal(unlink(path), 0);

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strcpy(address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	refused(-EINVAL, reason);
	close(fd);
	assert_int_equal(unlink(path), 0);

	assert_int_equal(mkdir(path, 0700), 0);
	refused(-EINVAL, reason);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Whether the kernel leaves this address out of core dumps. */
static bool is_dumped(const void *at)
{
	unsigned long from, to;
	bool found = false, dumped = true;
	char line[512];
	FILE *f = fopen("/proc/self/smaps", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			found = (unsigned long)at >= from && (unsigned long)at < to;
		else if (found && strncmp(line, "VmFlags:", 8) == 0)
			dumped = !strstr(line, " dd");
	}
	fclose(f);
	return dumped;
}

static void secrets__are_in_no_core_dump(void **state)
{
	struct auth_key_file file;
	size_t before;

	skip_if_emulated();
	write_text(ONE "\n");
	has("web1-k7q2", NULL); /* makes the heap */
	before = CRYPTO_secure_used();
	assert_int_equal(auth_key_file_read(path, &file, why, sizeof(why)), 0);
	assert_true(CRYPTO_secure_allocated(file.v));
	assert_true(CRYPTO_secure_used() > before);
	assert_false(is_dumped(file.v));
	assert_true(is_dumped(why));
	auth_key_file_free(&file);
	assert_int_equal(CRYPTO_secure_used(), before);
}

/* OpenSSL fails where its heap is full: keys leave room in it, and then lie elsewhere. */
static void secrets__more_than_the_heap_holds(void **state)
{
	enum { FILES = 32 };
	static char text[(16 << 10) - 1];
	struct auth_key_file files[FILES];
	size_t outside = 0;
	void *other;

	memset(text, '\n', sizeof(text));
	memcpy(text, ONE, sizeof(ONE) - 1);
	write_bytes(text, sizeof(text));
	for (unsigned i = 0; i < FILES; i++) {
		assert_int_equal(auth_key_file_read(path, &files[i], why, sizeof(why)), 0);
		assert_int_equal(files[i].n, 1);
		outside += !CRYPTO_secure_allocated(files[i].v);
	}
	assert_in_range(outside, 1, FILES - 1);
	other = OPENSSL_secure_malloc(32 << 10);
	assert_non_null(other);
	OPENSSL_secure_free(other);
	for (unsigned i = 0; i < FILES; i++)
		auth_key_file_free(&files[i]);
}

#define FILE_TEST(function) cmocka_unit_test_teardown(function, remove_path)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(read__one_or_more_keys),
		FILE_TEST(read__blanks_at_the_ends),
		FILE_TEST(read__faults_have_their_line),
		FILE_TEST(read__no_keys),
		FILE_TEST(read__size),
		cmocka_unit_test(parse__full),
		FILE_TEST(find__by_whole_ids),
		FILE_TEST(check__tells_all_faults),
		FILE_TEST(read__modes),
		FILE_TEST(read__owners),
		cmocka_unit_test(read__nothing_there),
		FILE_TEST(read__links),
		FILE_TEST(read__no_regular_file),
		FILE_TEST(secrets__are_in_no_core_dump),
		FILE_TEST(secrets__more_than_the_heap_holds),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
