/* Keys as lines: fixed vectors, everything that can be wrong with a line, and new keys. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/auth_key.h"
#include "common/base/util.h"

/* Of the header; computed by another program. The secret is SHA-256("an example, not a secret"). */
#define FORMAT  "RMEMFS-KEY-1:"
#define ID      "web1-k7q2"
#define BODY    "0sE89nwH9zEzWXYlRQCvpab6VpIkoqifrxLzD6dCImtODlil"
#define EXAMPLE FORMAT ID ":" BODY ":"

static const uint8_t example_secret[AUTH_KEY_BYTES] = {0xd2, 0xc1, 0x3c, 0xf6, 0x7c, 0x07, 0xf7,
	0x31, 0x33, 0x59, 0x76, 0x25, 0x45, 0x00, 0xaf, 0xa5, 0xa6, 0xfa, 0x56, 0x92, 0x24, 0xa2,
	0xa8, 0x9f, 0xaf, 0x12, 0xf3, 0x0f, 0xa7, 0x42, 0x22, 0x6b};

/* The least key: the bytes 0 to 31 and an id of one character. */
#define LEAST FORMAT "a:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh/ZDHS5:"

static const struct auth_key nothing;

static void parse(const char *line, struct auth_key *key)
{
	char why[512] = "";

	if (auth_key_parse(line, strlen(line), key, why, sizeof(why)) != 0)
		fail_msg("%s: %s", line, why);
}

/* The line of len bytes is refused with these words, and leaves no secret. */
static void refused_bytes(const char *line, size_t len, const char *words)
{
	struct auth_key key;
	char why[512] = "";

	assert_int_equal(auth_key_parse(line, len, &key, why, sizeof(why)), -EINVAL);
	if (!strstr(why, words))
		fail_msg("%s: %s", line, why);
	assert_null(strstr(why, "0sE89"));
	assert_memory_equal(&key, &nothing, sizeof(key));
}

static void refused(const char *line, const char *words)
{
	refused_bytes(line, strlen(line), words);
}

static void parse__the_example(void **state)
{
	struct auth_key key;
	char text[AUTH_KEY_FINGERPRINT_BYTES];

	parse(EXAMPLE, &key);
	assert_string_equal(key.id, ID);
	assert_memory_equal(key.secret, example_secret, AUTH_KEY_BYTES);
	assert_int_equal(auth_key_fingerprint(&key, text), 0);
	assert_string_equal(text, "26d26a7d");
	parse(LEAST, &key);
	assert_int_equal(strlen(LEAST), AUTH_KEY_LINE_MIN);
	assert_int_equal(auth_key_fingerprint(&key, text), 0);
	assert_string_equal(text, "377736b6");
}

static void format__gives_the_line_back(void **state)
{
	static const char *const lines[] = {EXAMPLE, LEAST};
	char line[AUTH_KEY_LINE_MAX + 1];
	struct auth_key key;

	for (unsigned i = 0; i < ARRAY_SIZE(lines); i++) {
		parse(lines[i], &key);
		assert_int_equal(auth_key_format(&key, line), 0);
		assert_string_equal(line, lines[i]);
	}
}

/* Wherever a key is cut, nothing of it is taken. */
static void parse__cut(void **state)
{
	for (size_t len = 0; len < strlen(EXAMPLE); len++)
		refused_bytes(EXAMPLE, len,
			len < strlen("RMEMFS-KEY-")   ? "no key"
			: len < strlen(FORMAT)        ? "not of the format"
			: len < strlen(FORMAT ID ":") ? "was cut in its id"
						      : "was cut: behind its id");
	for (size_t from = 1; from < strlen(EXAMPLE); from++)
		refused(&EXAMPLE[from], "no key");
}

/* Each character of a key matters: none can be replaced by another that could be in its place. */
static void parse__changed(void **state)
{
	char line[sizeof(EXAMPLE)];
	char why[512];
	struct auth_key key;

	for (size_t i = strlen(FORMAT); i < strlen(EXAMPLE); i++) {
		strcpy(line, EXAMPLE);
		line[i] = line[i] == 'x' ? 'y' : 'x';
		assert_int_equal(
			auth_key_parse(line, strlen(line), &key, why, sizeof(why)), -EINVAL);
		assert_memory_equal(&key, &nothing, sizeof(key));
	}
	refused(FORMAT "web2-k7q2:" BODY ":", "the key or its id was changed");
	refused(FORMAT ID ":1sE89nwH9zEzWXYlRQCvpab6VpIkoqifrxLzD6dCImtODlil:", "was changed");
	refused(FORMAT ID ":0sE89nwH9zEzWXYlRQCvpab6VpIkoqifrxLzD6dCImtODlim:", "was changed");
}

static void parse__not_a_key(void **state)
{
	refused("", "no key: a key begins with RMEMFS-KEY-1:");
	refused("-----BEGIN PRIVATE KEY-----", "no key");
	refused("RMEMFS-KEY-2:" ID ":" BODY ":", "not of the format RMEMFS-KEY-1: that");
	refused("RMEMFS-KEY-1;" ID ":" BODY ":", "not of the format");
	refused(EXAMPLE " ", "too long");
	refused(EXAMPLE EXAMPLE, "too long: copy the whole line again, and nothing behind it");
	refused(FORMAT ID ":" BODY "AAAA:", "too long");
	refused(FORMAT ID ":" BODY "A", "too long");
	refused(FORMAT ID "::" BODY ":", "has 0 characters");
	refused(FORMAT ID ":0sE89nwH9zEz XYlRQCvpab6VpIkoqifrxLzD6dCImtODlil:", "character 13");
	refused(FORMAT ID ":0sE89nwH9zEz=XYlRQCvpab6VpIkoqifrxLzD6dCImtODlil:", "character 13");
	refused(FORMAT ID ":0sE89nwH9zEzWXYlRQCvpab6VpIkoqifrxLzD6dCImtODli=:", "character 48");
	refused_bytes(FORMAT ID ":0sE89\0nwH", strlen(FORMAT ID ":") + 9, "character 6");
	refused_bytes(FORMAT "a\0:" BODY ":", strlen(FORMAT) + 4 + strlen(BODY), "the key's id");
}

static void parse__ids(void **state)
{
	static const char *const good[] = {"a", "0", "a-", "a.b_c-d", "0123456789",
		"abcdefghijklmnopqrstuvwxyz012345"},
				 *const bad[] = {"", "A", "-a", ".a", "_a", "a b", "aB", "a@b",
					 "a/b", "a\n", "\xc3\xa4",
					 "abcdefghijklmnopqrstuvwxyz0123456"};
	char line[256];

	for (unsigned i = 0; i < ARRAY_SIZE(good); i++) {
		struct auth_key key = {0}, again;

		strcpy(key.id, good[i]);
		assert_true(auth_key_is_id(good[i], strlen(good[i])));
		assert_int_equal(auth_key_format(&key, line), 0);
		assert_in_range(strlen(line), AUTH_KEY_LINE_MIN, AUTH_KEY_LINE_MAX);
		parse(line, &again);
		assert_memory_equal(&again, &key, sizeof(key));
	}
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_false(auth_key_is_id(bad[i], strlen(bad[i])));
		snprintf(line, sizeof(line), FORMAT "%s:" BODY ":", bad[i]);
		refused(line, "the key's id must have 1 to 32 characters");
	}
	assert_false(auth_key_is_id("a\0", 2));
}

static void generate__new_keys(void **state)
{
	struct auth_key a, b, again;
	char line[AUTH_KEY_LINE_MAX + 1], why[256];

	assert_int_equal(auth_key_generate("web", &a, why, sizeof(why)), 0);
	assert_int_equal(auth_key_generate("web", &b, why, sizeof(why)), 0);
	assert_int_equal(strlen(a.id), strlen("web-xxxx"));
	assert_memory_equal(a.id, "web-", 4);
	assert_string_not_equal(a.id, b.id);
	assert_memory_not_equal(a.secret, b.secret, AUTH_KEY_BYTES);
	assert_memory_not_equal(a.secret, nothing.secret, AUTH_KEY_BYTES);
	assert_int_equal(auth_key_format(&a, line), 0);
	parse(line, &again);
	assert_memory_equal(&again, &a, sizeof(a));
	auth_key_clear(&a);
	assert_memory_equal(&a, &nothing, sizeof(a));
}

static void generate__names(void **state)
{
	static const char *const bad[] = {
		"", "Web", "-web", "we b", "web/1", "web:1", "abcdefghijklmnopqrstuvwxyz01"};
	struct auth_key key;
	char why[256];

	assert_int_equal(
		auth_key_generate("abcdefghijklmnopqrstuvwxyz0", &key, why, sizeof(why)), 0);
	assert_int_equal(strlen(key.id), AUTH_KEY_ID_MAX);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(auth_key_generate(bad[i], &key, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, "must be 1 to 27 characters of a to z, 0 to 9, '.', '_' "
					 "and '-', and begin with a letter or a digit");
		assert_memory_equal(&key, &nothing, sizeof(key));
	}
}

static void write__the_line_and_a_newline(void **state)
{
	struct auth_key key;
	char text[256] = "";
	int ends[2], full;

	parse(EXAMPLE, &key);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(auth_key_write(&key, ends[1]), 0);
	close(ends[1]);
	assert_int_equal(read(ends[0], text, sizeof(text)), strlen(EXAMPLE) + 1);
	assert_string_equal(text, EXAMPLE "\n");
	close(ends[0]);
	full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(auth_key_write(&key, full), -ENOSPC);
	close(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__the_example),
		cmocka_unit_test(format__gives_the_line_back),
		cmocka_unit_test(parse__cut),
		cmocka_unit_test(parse__changed),
		cmocka_unit_test(parse__not_a_key),
		cmocka_unit_test(parse__ids),
		cmocka_unit_test(generate__new_keys),
		cmocka_unit_test(generate__names),
		cmocka_unit_test(write__the_line_and_a_newline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
