/* test_health_findings.c - findings of a whole machine. */
#include "tests/unit/daemon/ctl/survey/answers.h"

#include "daemon/ctl/survey/health_findings.h"

static struct health_findings f;

static int set_up(void **state)
{
	memset(&f, 0, sizeof(f));
	return 0;
}

static void hidden__server_beside_a_mount_is_a_note(void **state)
{
	json_t *mount = answer_read(mount_answer);

	health_findings_mount(&f, mount, NULL);
	health_findings_hidden(&f, "Permission denied");
	health_findings_complete(&f);
	assert_int_equal(f.report.n, 1);
	assert_int_equal(f.report.findings[0].verdict, VERDICT_NOTE);
	assert_string_not_equal(f.report.findings[0].remedy, "");
	assert_int_equal(health_findings_verdict(&f), VERDICT_OK);
	json_decref(mount);
}

static void hidden__server_alone_is_unknown(void **state)
{
	health_findings_hidden(&f, "Permission denied");
	health_findings_complete(&f);
	assert_int_equal(f.report.n, 1);
	assert_int_equal(health_findings_verdict(&f), VERDICT_UNKNOWN);
}

static void unanswered__server_beside_a_mount_is_not(void **state)
{
	json_t *mount = answer_read(mount_answer);

	health_findings_mount(&f, mount, NULL);
	health_findings_unanswered(&f, "/a/socket", true, "Permission denied");
	assert_int_equal(health_findings_verdict(&f), VERDICT_UNKNOWN);
	json_decref(mount);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(hidden__server_beside_a_mount_is_a_note, set_up),
		cmocka_unit_test_setup(hidden__server_alone_is_unknown, set_up),
		cmocka_unit_test_setup(unanswered__server_beside_a_mount_is_not, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
