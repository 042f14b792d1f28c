/* The configuration reader: each type, each bound, and the place that an error names. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/conf/conf.h"
#include "common/base/util.h"

struct volume {
	char *name;
	uint64_t size;
};

struct settings {
	bool flag;
	uint64_t count, bytes;
	int colour;
	char *word;
	struct conf_strings words;
	struct conf_groups volumes;
};

static const struct word colours[] = {{"red", 1}, {"green", 2}, {"blue", 3}, {0}};

static const char *check_word(const char *text)
{
	return text[0] == 'x' ? "must not begin with x" : NULL;
}

static const struct conf_key volume_keys[] = {
	{"name", CONF_STRING, offsetof(struct volume, name), .min = 1, .max = 8, .required = true},
	{"size", CONF_SIZE, offsetof(struct volume, size), .min = 4096, .multiple = 4096,
		.required = true},
	{0},
};

static const struct conf_key keys[] = {
	{"flag", CONF_BOOL, offsetof(struct settings, flag)},
	{"count", CONF_UINT, offsetof(struct settings, count), .min = 1, .max = 64},
	{"bytes", CONF_SIZE, offsetof(struct settings, bytes), .min = 4096, .max = 1 << 30},
	{"colour", CONF_ENUM, offsetof(struct settings, colour), .words = colours},
	{"word", CONF_STRING, offsetof(struct settings, word), .min = 1, .max = 8,
		.check = check_word},
	{"words", CONF_STRINGS, offsetof(struct settings, words)},
	{"volumes", CONF_GROUPS, offsetof(struct settings, volumes), .keys = volume_keys,
		.element_bytes = sizeof(struct volume)},
	{0},
};

static const char *const other_names[] = {"weight", "height", NULL};
static const struct conf_elsewhere other = {"other.conf", other_names};

static char dir[] = "/tmp/rmemfs-test-conf.XXXXXX";
static char path[64];

static int make_dir(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/a.conf", dir);
	return 0;
}

static int remove_dir(void **state)
{
	unlink(path);
	return rmdir(dir);
}

static void write_file(const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
}

static int read_text(const char *text, struct settings *out, char *why, size_t whylen)
{
	write_file(text, strlen(text));
	return conf_read(path, keys, &other, out, why, whylen);
}

static void read__empty_file_leaves_the_defaults(void **state)
{
	struct settings s = {.count = 7};
	char why[256];

	assert_int_equal(read_text("", &s, why, sizeof(why)), 0);
	assert_int_equal(s.count, 7);
	assert_int_equal(conf_read("/dev/null", keys, NULL, &s, why, sizeof(why)), 0);
	conf_free(keys, &s);
}

static void read__stores_every_type(void **state)
{
	struct settings s = {.word = strdup("default")};
	const struct volume *v;
	char why[256] = "";

	assert_int_equal(read_text("# a comment\n"
				   "flag = true; count = 64; bytes = \"512MiB\"; word = \"hello\"\n"
				   "colour = \"blue\"\n"
				   "words = [ \"a\", \"b\" ]\n"
				   "volumes = ( { name = \"x\"; size = 8192 },\n"
				   "            { name = \"y\"; size = \"64GiB\" } )\n",
				 &s, why, sizeof(why)),
		0);
	assert_string_equal(why, "");
	assert_true(s.flag);
	assert_int_equal(s.count, 64);
	assert_int_equal(s.bytes, 512 << 20);
	assert_string_equal(s.word, "hello");
	assert_int_equal(s.colour, 3);
	assert_int_equal(s.words.n, 2);
	assert_string_equal(s.words.v[1], "b");
	assert_int_equal(s.volumes.n, 2);
	v = s.volumes.v;
	assert_string_equal(v[0].name, "x");
	assert_int_equal(v[0].size, 8192);
	assert_string_equal(v[1].name, "y");
	assert_int_equal(v[1].size, UINT64_C(64) << 30);
	conf_free(keys, &s);
	assert_null(s.word);
	assert_int_equal(s.words.n, 0);
	assert_int_equal(s.volumes.n, 0);
}

static void read__replaces_default_lists(void **state)
{
	struct settings s = {0};
	char why[256];

	assert_int_equal(read_text("words = \"one\"", &s, why, sizeof(why)), 0);
	assert_int_equal(s.words.n, 1);
	assert_int_equal(read_text("words = ( \"two\", \"three\" )", &s, why, sizeof(why)), 0);
	assert_int_equal(s.words.n, 2);
	assert_string_equal(s.words.v[0], "two");
	assert_int_equal(read_text("words = [ \"three\" ]", &s, why, sizeof(why)), 0);
	assert_int_equal(s.words.n, 1);
	conf_free(keys, &s);
}

static void read__lists_remember_their_lines(void **state)
{
	struct settings s = {0};
	char why[256];

	assert_int_equal(
		read_text("words = [ \"a\",\n\n \"b\" ]\nvolumes = (\n"
			  "{ name = \"a\"; size = 4096 },\n{ name = \"b\"; size = 4096 } )",
			&s, why, sizeof(why)),
		0);
	assert_int_equal(s.words.lines[0], 1);
	assert_int_equal(s.words.lines[1], 3);
	assert_int_equal(s.volumes.lines[0], 5);
	assert_int_equal(s.volumes.lines[1], 6);
	conf_free(keys, &s);
}

static void read__refuses_and_says_where(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"\nspeed = 3", ":2: speed: unknown key; see rmemfs.conf(5)"},
		{"height = 3", ":1: height: belongs to other.conf"},
		{"wrd = 3", ":1: wrd: unknown key; did you mean 'word'?"},
		{"flag = 1", ":1: flag: must be true or false"},
		{"flag = \"true\"", ":1: flag: must be true or false"},
		{"count = \"x\"", ":1: count: must be a whole number"},
		{"count = 1.5", ":1: count: must be a whole number"},
		{"count = 0", ":1: count: '0': must be a whole number from 1 to 64"},
		{"count = -1", ":1: count: '-1': must be a whole number from 1 to 64"},
		{"count = 65", ":1: count: '65': must be a whole number from 1 to 64"},
		{"count = 5000000000L",
			":1: count: '5000000000': must be a whole number from 1 to 64"},
		{"bytes = true", ":1: bytes: must be a size like \"64GiB\""},
		{"bytes = \"5 lots\"",
			":1: bytes: '5 lots': must be a whole number and B, KiB, MiB, GiB or TiB, as in 512MiB or 64GiB"},
		{"bytes = \"1.5GiB\"",
			":1: bytes: '1.5GiB': must be a whole number and B, KiB, MiB, GiB or TiB, as in 512MiB or 64GiB"},
		{"bytes = \"1XiB\"",
			":1: bytes: '1XiB': must be a whole number and B, KiB, MiB, GiB or TiB, as in 512MiB or 64GiB"},
		{"bytes = \"-1GiB\"",
			":1: bytes: '-1GiB': must be a whole number and B, KiB, MiB, GiB or TiB, as in 512MiB or 64GiB"},
		{"bytes = \"\"",
			":1: bytes: must be a whole number and B, KiB, MiB, GiB or TiB, as in 512MiB or 64GiB"},
		{"bytes = -5",
			":1: bytes: '-5': must be a whole number and B, KiB, MiB, GiB or TiB, as in 512MiB or 64GiB"},
		{"bytes = 0", ":1: bytes: '0': must be 4KiB to 1GiB"},
		{"bytes = \"1B\"", ":1: bytes: '1B': must be 4KiB to 1GiB"},
		{"bytes = \"2GiB\"", ":1: bytes: '2GiB': must be 4KiB to 1GiB"},
		{"bytes = \"99999999TiB\"", ":1: bytes: '99999999TiB': must be 4KiB to 1GiB"},
		{"colour = \"pink\"", ":1: colour: 'pink': must be red, green or blue"},
		{"colour = \"Red\"", ":1: colour: 'Red': must be red, green or blue"},
		{"colour = \"\"", ":1: colour: must be red, green or blue"},
		{"colour = 1", ":1: colour: must be a string in double quotes"},
		{"word = 1", ":1: word: must be a string in double quotes"},
		{"word = \"\"", ":1: word: must not be empty"},
		{"word = \"far too long\"", ":1: word: 'far too long': must be 1 to 8 bytes long"},
		{"word = \"xa\"", ":1: word: 'xa': must not begin with x"},
		{"word = \"a\\nb long one\"",
			":1: word: 'a?b long one': must be 1 to 8 bytes long"},
		{"words = 5", ":1: words: must be a string or a list of strings"},
		{"words = ( \"a\",\n 5 )", ":2: words: must be a string in double quotes"},
		{"words = [ \"a\",\n \"\" ]", ":2: words: must not be empty"},
		{"words = [ ]", ":1: words: must not be empty; leave it out for the default"},
		{"volumes = 5", ":1: volumes: must be a list of groups: ( { ... }, { ... } )"},
		{"volumes = ( 5 )", ":1: volumes: each element must be a group { ... }"},
		{"volumes = ( )", ":1: volumes: must not be empty; leave it out for the default"},
		{"volumes = ( { name = \"x\";\n  colour = 1 } )",
			":2: colour: unknown key; see rmemfs.conf(5)"},
		{"volumes = ( { name = \"x\";\n  sizr = 1 } )",
			":2: sizr: unknown key; did you mean 'size'?"},
		{"volumes = ( { name = \"x\" } )", ":1: size: is missing"},
		{"volumes = ( { name = \"x\"; size = 5 } )",
			":1: size: '5': must be at least 4KiB"},
		{"volumes = ( { name = \"x\"; size = 4097 } )",
			":1: size: '4097': must be a multiple of 4KiB"},
		{"volumes = ( { name = \"x\"; size = \"99999999TiB\" } )",
			":1: size: '99999999TiB': is too large"},
		{"count = 5\n\t flag =", ":2: syntax error: 'flag ='"},
		{"count = 5\nflag =\n\n", ":4: syntax error: a line before it is not complete"},
		{"count = 5\n = 7\nflag = true\n", ":2: syntax error: '= 7'"},
		{"count = 5; count = 6", ":1: duplicate setting name: 'count = 5; count = 6'"},
		{"count = 5;\nflag = true;\n  count = 6;\nword = \"a\";",
			":3: duplicate setting name: 'count = 6;'"},
	};
	char why[512], expected[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct settings s = {.word = strdup("default")};

		snprintf(expected, sizeof(expected), "%s%s", path, cases[i].why);
		assert_int_equal(read_text(cases[i].text, &s, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, expected);
		conf_free(keys, &s);
	}
}

/* libconfig itself would read these as other numbers. */
static void read__refuses_what_would_be_misread(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"\ncount = 4294967297", ":2: 4294967297: too large; write 4294967297L"},
		{"count=-4294967297", ":1: -4294967297: too large; write -4294967297L"},
		{"count = 0x100000001;", ":1: 0x100000001: too large; write 0x100000001L"},
		{"words = [ \"\\\"\" ]\ncount:4294967297",
			":2: 4294967297: too large; write 4294967297L"},
		{"@include \"b.conf\"", ":1: @include is not supported"},
	};
	char why[512], expected[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct settings s = {0};

		snprintf(expected, sizeof(expected), "%s%s", path, cases[i].why);
		assert_int_equal(read_text(cases[i].text, &s, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, expected);
	}
}

static void read__big_numbers_in_strings_and_comments_are_no_numbers(void **state)
{
	struct settings s = {0};
	char why[256] = "";

	assert_int_equal(read_text("# 99999999999 @\n// 99999999999\n/* 99999999999\n */ word = "
				   "\"9999999\"; words = [ \"99999999999 @ \\\" 99999999999\" ]\n"
				   "count = 0x10; bytes = 0x40000000L",
				 &s, why, sizeof(why)),
		0);
	assert_string_equal(why, "");
	assert_int_equal(s.count, 16);
	assert_int_equal(s.bytes, 1 << 30);
	conf_free(keys, &s);
}

static void read__missing_file_is_enoent(void **state)
{
	struct settings s = {0};
	char why[256];

	assert_int_equal(conf_read("/nonexistent/x", keys, NULL, &s, why, sizeof(why)), -ENOENT);
	assert_string_equal(why, "configuration file /nonexistent/x: No such file or directory");
}

static void read__unreadable_file_is_eacces(void **state)
{
	struct settings s = {0};
	char why[256];

	if (geteuid() == 0 && seteuid(65534) < 0)
		fail_msg("can't become nobody");
	/* The file belongs to root and has mode 0400. */
	assert_int_equal(conf_read("/etc/shadow", keys, NULL, &s, why, sizeof(why)), -EACCES);
	assert_string_equal(why, "configuration file /etc/shadow: Permission denied");
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

static void read__directory_is_an_error_and_not_the_end(void **state)
{
	struct settings s = {0};
	char why[256];

	assert_int_equal(conf_read("/tmp", keys, NULL, &s, why, sizeof(why)), -EISDIR);
	assert_string_equal(why, "configuration file /tmp: Is a directory");
}

static void read__binary_file_is_refused(void **state)
{
	struct settings s = {0};
	char why[256];

	write_file("count = 5\0garbage", 17);
	assert_int_equal(conf_read(path, keys, NULL, &s, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "not a text file"));
}

static void read__endless_file_is_refused(void **state)
{
	struct settings s = {0};
	char why[256];

	assert_int_equal(conf_read("/dev/zero", keys, NULL, &s, why, sizeof(why)), -EFBIG);
}

static void read__a_long_value_leaves_room_for_the_reason(void **state)
{
	struct settings s = {0};
	char text[4096] = "word = \"", why[256];

	memset(text + 8, 'a', sizeof(text) - 10);
	text[sizeof(text) - 2] = '"';
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(read_text(text, &s, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "aaa...': must be 1 to 8 bytes long"));
}

static const struct conf_key *key_of(const char *name)
{
	return conf_find(keys, name);
}

static void set__takes_text(void **state)
{
	struct settings s = {0};
	char must[128] = "";

	assert_int_equal(conf_set(key_of("flag"), &s, "true", must, sizeof(must)), 0);
	assert_int_equal(conf_set(key_of("count"), &s, "64", must, sizeof(must)), 0);
	assert_int_equal(conf_set(key_of("bytes"), &s, "1MiB", must, sizeof(must)), 0);
	assert_int_equal(conf_set(key_of("colour"), &s, "green", must, sizeof(must)), 0);
	assert_int_equal(conf_set(key_of("word"), &s, "hello", must, sizeof(must)), 0);
	assert_true(s.flag);
	assert_int_equal(s.count, 64);
	assert_int_equal(s.bytes, 1 << 20);
	assert_int_equal(s.colour, 2);
	assert_string_equal(s.word, "hello");
	assert_string_equal(must, "");
	conf_free(keys, &s);
}

static void set__refuses_and_leaves_the_value(void **state)
{
	static const char count_must[] = "must be a whole number from 1 to 64";
	static const struct {
		const char *key, *text, *must;
	} cases[] = {
		{"flag", "yes", "must be true or false"},
		{"flag", "", "must be true or false"},
		{"count", "", count_must},
		{"count", "0", count_must},
		{"count", "65", count_must},
		{"count", "-1", count_must},
		{"count", "+7", count_must},
		{"count", " 7", count_must},
		{"count", "7 ", count_must},
		{"count", "0x10", count_must},
		{"count", "7.0", count_must},
		{"count", "18446744073709551617", count_must},
		{"count", "99999999999999999999999999999", count_must},
		{"bytes", "0", "must be 4KiB to 1GiB"},
		{"bytes", "1.5GiB",
			"must be a whole number and B, KiB, MiB, GiB or TiB, as in 512MiB or 64GiB"},
		{"colour", "pink", "must be red, green or blue"},
		{"word", "", "must not be empty"},
		{"word", "xyz", "must not begin with x"},
		{"words", "a", "cannot be set like this"},
	};
	char must[128];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct settings s = {.count = 7, .bytes = 7, .colour = 7, .word = strdup("old")};

		assert_int_equal(
			conf_set(key_of(cases[i].key), &s, cases[i].text, must, sizeof(must)),
			-EINVAL);
		assert_string_equal(must, cases[i].must);
		assert_false(s.flag);
		assert_true(s.count == 7 && s.bytes == 7 && s.colour == 7);
		assert_string_equal(s.word, "old");
		conf_free(keys, &s);
	}
}

static void add__lists_grow_from_nothing(void **state)
{
	struct settings s = {0};
	struct volume *v;

	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(conf_add_string(&s.words, "text", i), 0);
		v = conf_add_group(key_of("volumes"), &s.volumes, i);
		assert_non_null(v);
		assert_true(!v->name && !v->size);
		v->name = strdup("name");
	}
	assert_int_equal(s.words.n, 100);
	assert_int_equal(s.volumes.n, 100);
	assert_int_equal(s.words.lines[99], 99);
	assert_int_equal(s.volumes.lines[99], 99);
	conf_clear(key_of("words"), &s);
	assert_true(!s.words.n && !s.words.v && !s.words.lines);
	assert_int_equal(s.volumes.n, 100);
	conf_free(keys, &s);
}

static void size_parse__takes_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"0", 0},
		{"4096", 4096},
		{"7B", 7},
		{"3KiB", 3 << 10},
		{"512MiB", 512 << 20},
		{"64GiB", UINT64_C(64) << 30},
		{"2TiB", UINT64_C(2) << 40},
		{"9223372036854775808", UINT64_C(1) << 63},
		{"8388608TiB", UINT64_C(1) << 63},
	};
	uint64_t n;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(size_parse(cases[i].text, &n), 0);
		assert_true(n == cases[i].bytes);
	}
}

static void size_parse__refuses_others(void **state)
{
	static const char *const malformed[] = {
		"", "B", "-1", "+1", " 1", "1 ", "1 MiB", "1.5GiB", "1MB", "1mib", "1G", "0x10"};
	static const char *const too_large[] = {"9223372036854775809", "18446744073709551616",
		"8388609TiB", "99999999999999999999999GiB"};
	uint64_t n = 42;

	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++)
		assert_int_equal(size_parse(malformed[i], &n), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(too_large); i++)
		assert_int_equal(size_parse(too_large[i], &n), -ERANGE);
	assert_int_equal(n, 42);
}

static void equal__by_the_value_of_each_type(void **state)
{
	static const char *const texts[][2] = {{"flag", "true"}, {"count", "2"}, {"bytes", "8KiB"},
		{"colour", "blue"}, {"word", "a"}};
	struct settings a = {.count = 1, .colour = 1}, b = a;
	char must[64];

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const struct conf_key *key = key_of(texts[i][0]);

		assert_true(conf_equal(key, &a, &b));
		assert_int_equal(conf_set(key, &b, texts[i][1], must, sizeof(must)), 0);
		assert_false(conf_equal(key, &a, &b));
		assert_int_equal(conf_set(key, &a, texts[i][1], must, sizeof(must)), 0);
		assert_true(conf_equal(key, &a, &b));
	}
	assert_int_equal(conf_add_string(&a.words, "x", 1), 0);
	assert_false(conf_equal(key_of("words"), &a, &b));
	assert_int_equal(conf_add_string(&b.words, "x", 2), 0);
	assert_true(conf_equal(key_of("words"), &a, &b));
	assert_int_equal(conf_add_string(&a.words, "y", 1), 0);
	assert_int_equal(conf_add_string(&b.words, "z", 1), 0);
	assert_false(conf_equal(key_of("words"), &a, &b));
	conf_free(keys, &a);
	conf_free(keys, &b);
}

static void size_format__is_exact_where_it_is_short(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0B"},
		{4097, "4097B"},
		{1 << 10, "1KiB"},
		{512 << 20, "512MiB"},
		{UINT64_C(3) << 29, "1536MiB"},
		{UINT64_C(64) << 30, "64GiB"},
		{123456789, "117.7MiB"},
		{(UINT64_C(3) << 29) + 1, "1.5GiB"},
		{UINT64_MAX, "16777216.0TiB"},
	};
	char buf[32];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_format(cases[i].bytes, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__empty_file_leaves_the_defaults),
		cmocka_unit_test(read__stores_every_type),
		cmocka_unit_test(read__replaces_default_lists),
		cmocka_unit_test(read__lists_remember_their_lines),
		cmocka_unit_test(read__refuses_and_says_where),
		cmocka_unit_test(read__refuses_what_would_be_misread),
		cmocka_unit_test(read__big_numbers_in_strings_and_comments_are_no_numbers),
		cmocka_unit_test(read__missing_file_is_enoent),
		cmocka_unit_test(read__unreadable_file_is_eacces),
		cmocka_unit_test(read__directory_is_an_error_and_not_the_end),
		cmocka_unit_test(read__binary_file_is_refused),
		cmocka_unit_test(read__endless_file_is_refused),
		cmocka_unit_test(read__a_long_value_leaves_room_for_the_reason),
		cmocka_unit_test(set__takes_text),
		cmocka_unit_test(set__refuses_and_leaves_the_value),
		cmocka_unit_test(equal__by_the_value_of_each_type),
		cmocka_unit_test(add__lists_grow_from_nothing),
		cmocka_unit_test(size_parse__takes_units),
		cmocka_unit_test(size_parse__refuses_others),
		cmocka_unit_test(size_format__is_exact_where_it_is_short),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
