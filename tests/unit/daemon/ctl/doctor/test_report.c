/* The report: texts are printable, and it is never longer than its room. */
#include "tests/unit/daemon/ctl/doctor/judged.h"

#include <stdlib.h>

#include "common/base/util.h"

static void found__is_printable(void **state)
{
	struct report *r = judge_anew();

	report_found(r, VERDICT_WARNING, "the server says %s", "\x1b[2J\n\xff");
	report_cause(r, "%s", "a\tb");
	report_remedy(r, "%s", "\xe2\x80\xae");
	assert_string_equal(r->findings[0].found, "the server says ?[2J??");
	assert_string_equal(r->findings[0].cause, "a?b");
	assert_string_equal(r->findings[0].remedy, "?");
}

static void found__is_cut_to_its_room(void **state)
{
	struct report *r = judge_anew();
	char text[2 * REPORT_TEXT_BYTES];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	report_found(r, VERDICT_OK, "%s", text);
	assert_int_equal(strlen(r->findings[0].found), REPORT_TEXT_BYTES - 1);
}

static void found__too_many(void **state)
{
	struct report *r = judge_anew();

	for (int i = 0; i < REPORT_FINDINGS_MAX; i++)
		report_found(r, VERDICT_NOTE, "%d", i);
	assert_false(r->cut);
	report_found(r, VERDICT_FAILURE, "one more");
	report_cause(r, "not of the last one that is there");
	assert_true(r->cut);
	assert_int_equal(r->n, REPORT_FINDINGS_MAX);
	assert_string_equal(r->findings[REPORT_FINDINGS_MAX - 1].cause, "");
	assert_int_equal(report_count(r, VERDICT_FAILURE), 0);
}

static void json__has_all(void **state)
{
	struct report *r = judge_anew();
	autofree char *text = NULL;
	json_t *root;

	report_found(r, VERDICT_OK, "well");
	report_begin(r, "port");
	report_found(r, VERDICT_FAILURE, "closed");
	report_cause(r, "why");
	report_remedy(r, "open it");
	root = report_json(r, "h\xff:1");
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "host")), "h?:1");
	json_decref(root);
	root = report_json(r, NULL);
	assert_non_null(root);
	json_object_del(root, "version");
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	assert_string_equal(text,
		"{\"host\":null,\"failures\":1,\"warnings\":0,\"cut\":false,\"findings\":["
		"{\"check\":\"test\",\"verdict\":\"ok\",\"found\":\"well\",\"cause\":null,"
		"\"remedy\":null},"
		"{\"check\":\"port\",\"verdict\":\"failure\",\"found\":\"closed\",\"cause\":"
		"\"why\",\"remedy\":\"open it\"}]}");
}

static void assert_quoted(const char *text, const char *as)
{
	char buf[REPORT_QUOTED_BYTES];

	assert_string_equal(report_quote(text, buf), as);
}

/* A user may have named a mount point so that root runs a command of that user's. */
static void quote__is_one_word_for_a_shell(void **state)
{
	char text[REPORT_QUOTED_BYTES + 1];

	assert_quoted("/mnt/rmem-1.a_b", "/mnt/rmem-1.a_b");
	assert_quoted("/a b", "'/a b'");
	assert_quoted("/$(x);`y`", "'/$(x);`y`'");
	assert_quoted("/it's", "'/it'\\''s'");
	assert_quoted("-rf", "'-rf'");
	assert_quoted("", "''");
	memset(text, 'x', sizeof(text));
	text[REPORT_QUOTED_BYTES] = '\0';
	assert_quoted(text, "'...'");
	text[REPORT_QUOTED_BYTES - 1] = '\0';
	assert_quoted(text, text);
	text[0] = ' ';
	assert_quoted(text, "'...'");
	text[REPORT_QUOTED_BYTES - 4] = '\'';
	text[REPORT_QUOTED_BYTES - 3] = '\0';
	assert_quoted(text, "'...'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found__is_printable),
		cmocka_unit_test(found__is_cut_to_its_room),
		cmocka_unit_test(found__too_many),
		cmocka_unit_test(json__has_all),
		cmocka_unit_test(quote__is_one_word_for_a_shell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
