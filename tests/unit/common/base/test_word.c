/* Words: found, listed, quoted, and guessed from wrong spellings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/util.h"
#include "common/base/word.h"

static const struct word three[] = {{"red", 1}, {"green", -2}, {"blue", 3}, {0}};

static void find__is_exact(void **state)
{
	int value = 42;

	assert_true(word_find(three, "green", &value));
	assert_int_equal(value, -2);
	value = 42;
	assert_false(word_find(three, "Green", &value));
	assert_false(word_find(three, "gree", &value));
	assert_false(word_find(three, "", &value));
	assert_int_equal(value, 42);
}

static void list__joins_the_last_by_or(void **state)
{
	char buf[64];

	word_list(three, buf, sizeof(buf));
	assert_string_equal(buf, "red, green or blue");
	word_list(three + 1, buf, sizeof(buf));
	assert_string_equal(buf, "green or blue");
	word_list(three + 2, buf, sizeof(buf));
	assert_string_equal(buf, "blue");
	word_list(three + 3, buf, sizeof(buf));
	assert_string_equal(buf, "");
}

static void list__is_cut_to_the_buffer(void **state)
{
	char buf[8];

	word_list(three, buf, sizeof(buf));
	assert_string_equal(buf, "red, gr");
}

static void quote__cuts_and_blanks(void **state)
{
	char text[200], buf[WORD_QUOTED_BYTES];

	assert_string_equal(word_quote("plain", buf), "'plain'");
	assert_string_equal(word_quote("", buf), "''");
	assert_string_equal(word_quote("a\nb\033[2J\x7f", buf), "'a?b?[2J?'");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	word_quote(text, buf);
	assert_int_equal(strlen(buf), 64 + 5);
	assert_string_equal(buf + 64, "x...'");
}

static const char *guess(const char *unknown)
{
	static const char *const known[] = {
		"port", "soft", "transport", "log_level", "exports", "ro", "rw", "size"};
	struct word_guess guess = {.unknown = unknown};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		word_guess_offer(&guess, known[i]);
	return guess.nearest;
}

static void guess__finds_the_nearest(void **state)
{
	static const struct {
		const char *unknown, *nearest;
	} cases[] = {
		{"prot", "port"},           /* swapped */
		{"prt", "port"},            /* left out */
		{"porrt", "port"},          /* put in */
		{"sofd", "soft"},           /* replaced */
		{"export", "exports"},      /* at the end */
		{"loglevel", "log_level"},  /* in the middle */
		{"tarnsprot", "transport"}, /* two slips */
		{"sizr", "size"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(guess(cases[i].unknown), cases[i].nearest);
}

static void guess__is_silent_about_other_words(void **state)
{
	char text[100];

	assert_null(guess(""));
	assert_null(guess("r"));
	assert_null(guess("rx"));
	assert_null(guess("fast"));
	assert_null(guess("remount"));
	memset(text, 'p', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_null(guess(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__is_exact),
		cmocka_unit_test(list__joins_the_last_by_or),
		cmocka_unit_test(list__is_cut_to_the_buffer),
		cmocka_unit_test(quote__cuts_and_blanks),
		cmocka_unit_test(guess__finds_the_nearest),
		cmocka_unit_test(guess__is_silent_about_other_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
