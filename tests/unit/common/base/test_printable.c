/* test_printable.c - the promises of printable.h for each class of characters, for cut sequences,
 * and for lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/printable.h"
#include "common/base/util.h"

static void expect_clean(const char *text, const char *cleaned)
{
	char buf[64];

	snprintf(buf, sizeof(buf), "%s", text);
	assert_ptr_equal(printable_clean_string(buf), buf);
	assert_string_equal(buf, cleaned);
}

/* Encodes in the shortest form. */
static size_t encode(uint32_t code, char buf[4])
{
	if (code < 0x80) {
		buf[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		buf[0] = (char)(0xc0 | code >> 6);
		buf[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		buf[0] = (char)(0xe0 | code >> 12);
		buf[1] = (char)(0x80 | (code >> 6 & 0x3f));
		buf[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	buf[0] = (char)(0xf0 | code >> 18);
	buf[1] = (char)(0x80 | (code >> 12 & 0x3f));
	buf[2] = (char)(0x80 | (code >> 6 & 0x3f));
	buf[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

static bool is_to_go(uint32_t code)
{
	static const uint32_t ranges[][2] = {{0, 0x1f}, {0x7f, 0x7f}, {0x80, 0x9f},
		{0x202a, 0x202e}, {0x2066, 0x2069}, {0xd800, 0xdfff}};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (code >= ranges[i][0] && code <= ranges[i][1])
			return true;
	return false;
}

/* ---- classes --------------------------------------------------------------------------------- */

static void clean__every_character(void **state)
{
	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		char text[6] = "<";
		size_t len = encode(code, text + 1), now;

		text[len + 1] = '>';
		now = printable_clean(text, len + 2);
		assert_int_equal(text[0], '<');
		assert_int_equal(text[now - 1], '>');
		if (is_to_go(code)) {
			/* No byte of a UTF-16 surrogate is valid UTF-8. */
			assert_int_equal(now, code >= 0xd800 ? 5 : 3);
			assert_int_equal(text[1], '?');
		} else {
			char same[4];

			assert_int_equal(now, len + 2);
			assert_int_equal(encode(code, same), len);
			assert_memory_equal(text + 1, same, len);
		}
	}
}

static void clean__escapes_and_lines(void **state)
{
	expect_clean("", "");
	expect_clean("a\nb\r\tc", "a?b??c");
	expect_clean("\033[2K\033]0;title\007", "?[2K?]0;title?");
	expect_clean("\xc2\x9b"
		     "31mred",
		"?31mred");
	expect_clean("a\xe2\x80\xae"
		     "b\xe2\x81\xa6"
		     "c\x7f",
		"a?b?c?");
	expect_clean("gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x90\x9f",
		"gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x90\x9f");
}

static void clean__what_is_not_utf8(void **state)
{
	expect_clean("caf\xe9 au lait", "caf? au lait");
	expect_clean("\x80\xbf\xfe\xff", "????");
	/* Too long encodings, such as of ESC and of a slash; then code points beyond the last
	 * one. */
	expect_clean("\xc0\x9b[", "??[");
	expect_clean("\xe0\x80\xaf", "???");
	expect_clean("\xf0\x80\x80\x9b", "????");
	expect_clean("\xf4\x90\x80\x80", "????");
	expect_clean("\xf5\x80\x80\x80", "????");
}

/* ---- cuts ------------------------------------------------------------------------------------ */

static void clean__a_sequence_that_is_cut(void **state)
{
	static const char fish[] = "\xf0\x9f\x90\x9f";

	for (size_t len = 1; len < 4; len++) {
		char text[8] = "a";

		memcpy(text + 1, fish, len);
		assert_int_equal(printable_clean(text, len + 1), len + 1);
		assert_memory_equal(text, "a???", len + 1);
	}
	/* Cut by a byte that is no part of the sequence, and is judged by itself. */
	expect_clean("\xe2\x80z", "??z");
	expect_clean("\xe2\x80\033", "???");
	expect_clean("\xe2\xe2\x80\xae", "??");
	expect_clean("\xc3\xc3\xbc", "?\xc3\xbc");
}

/* ---- lengths --------------------------------------------------------------------------------- */

static void clean__looks_at_no_more_than_its_bytes(void **state)
{
	char text[] = "ab\n\n", nul[] = {'a', '\0', 'b'};

	assert_int_equal(printable_clean(text, 3), 3);
	assert_string_equal(text, "ab?\n");
	assert_int_equal(printable_clean(text, 0), 0);
	assert_int_equal(printable_clean(nul, sizeof(nul)), 3);
	assert_memory_equal(nul, "a?b", 3);
}

static void copy__as_much_as_there_is_room_for(void **state)
{
	static const char text[] = "a\xc3\xbc\nb";
	static const char *const got[] = {"", "a", "a", "a\xc3\xbc", "a\xc3\xbc?", "a\xc3\xbc?b"};

	for (size_t size = 1; size <= 8; size++) {
		char buf[9];

		memset(buf, 'x', sizeof(buf));
		printable_copy(buf, size, text, strlen(text));
		assert_string_equal(buf, got[size < 6 ? size - 1 : 5]);
		assert_int_equal(buf[size], 'x');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean__every_character),
		cmocka_unit_test(clean__escapes_and_lines),
		cmocka_unit_test(clean__what_is_not_utf8),
		cmocka_unit_test(clean__a_sequence_that_is_cut),
		cmocka_unit_test(clean__looks_at_no_more_than_its_bytes),
		cmocka_unit_test(copy__as_much_as_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
