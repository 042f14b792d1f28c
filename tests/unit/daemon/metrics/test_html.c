/* Names that others have chosen stay text. */
#include "tests/unit/daemon/metrics/written.h"

#include "daemon/metrics/html.h"

static void expect(const char *name, const char *as)
{
	html_put(write_anew(), "%s", name);
	assert_string_equal(end_writing(), as);
}

static void put__markup_is_escaped(void **state)
{
	expect("<script>alert('&')</script>",
		"&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;");
	expect("\" onclick=\"x", "&quot; onclick=&quot;x");
	expect("", "");
	expect("plain", "plain");
}

/* U+202E, a byte that is no UTF-8, ESC, U+FFFF. */
static void put__characters_that_are_not_shown(void **state)
{
	expect("a\xe2\x80\xae"
	       "b",
		"a?b");
	expect("a\xff"
	       "b\x1b[1m",
		"a?b?[1m");
	expect("\xef\xbf\xbf", "?");
	expect("é–\xf0\x9f\x8d\x8e", "é–\xf0\x9f\x8d\x8e");
}

static void put__the_format_is_markup(void **state)
{
	html_put(write_anew(), "<b a=\"%s\">%u %%</b>%s", "<", 7U, "%s");
	assert_string_equal(end_writing(), "<b a=\"&lt;\">7 %</b>%s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(put__markup_is_escaped, drop_written),
		cmocka_unit_test_teardown(put__characters_that_are_not_shown, drop_written),
		cmocka_unit_test_teardown(put__the_format_is_markup, drop_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
