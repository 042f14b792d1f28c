/* The words for a squash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "server/base/squash_text.h"

static void kind__is_the_word_of_the_configuration(void **state)
{
	for (int kind = 0; kind < SQUASH_KINDS; kind++) {
		struct squash squash = {(uint8_t)kind, 1, 1};
		int value;

		assert_true(word_find(squash_text_words, squash_text_kind(&squash), &value));
		assert_int_equal(value, kind);
	}
	assert_null(squash_text_words[SQUASH_KINDS].text);
}

static void note__fits(void **state)
{
	char buf[SQUASH_TEXT_BYTES];

	assert_string_equal(squash_text_note(&(struct squash){SQUASH_NONE, 0, 0}, buf), "");
	assert_string_equal(squash_text_note(&(struct squash){SQUASH_ROOT, 65534, 50}, buf),
		"root counts as 65534:50");
	assert_string_equal(
		squash_text_note(&(struct squash){SQUASH_ALL, UINT32_MAX, UINT32_MAX}, buf),
		"all users count as 4294967295:4294967295");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kind__is_the_word_of_the_configuration),
		cmocka_unit_test(note__fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
