/* test_services.c - what is configured, and does not run, with its cause and its remedy. */
#include "tests/unit/daemon/ctl/doctor/judged.h"

#include <errno.h>

#include "daemon/ctl/doctor/services.h"
#include "daemon/ctl/survey/health_findings.h"

/* One entry. Texts are null if they are not told. */
static void judge(const char *kind, const char *name, int unit, const char *state, bool told)
{
	json_t *list = json_pack("[{s:s, s:s?, s:b, s:s, s:s, s:s?}]", "kind", kind, "name",
		told ? name : NULL, "unit", unit, "state", state, "result", "exit-code", "status",
		told ? "no server there" : NULL);

	assert_non_null(list);
	services_judge(list, 0, judge_anew());
	json_decref(list);
}

static void judge__each_state(void **state)
{
	judge("mount", "rmemfs@a.service", 1, "failed", true);
	assert_judged(VERDICT_FAILURE, "rmemfs@a.service does not run", "journalctl -u");
	assert_has(judged.findings[0].cause, "(exit-code): no server there");
	judge("mount", "rmemfs@a.service", 1, "restarting", true);
	assert_judged(VERDICT_FAILURE, "again and again", "systemctl status");
	judge("server", "rmemfs-server.service", 1, "stopped", true);
	assert_judged(VERDICT_FAILURE, "rmemfs-server.service is enabled", "systemctl start");
	judge("mount", "rmemfs@a.service", 1, "starting", true);
	assert_judged(VERDICT_WARNING, "has not started yet", "systemctl status");
	judge("mount", "/mnt/a b", 0, "unmounted", true);
	assert_judged(VERDICT_FAILURE, "/mnt/a b is in /etc/fstab", "mount '/mnt/a b'");
}

static void judge__without_names(void **state)
{
	judge("mount", "rmemfs@a.service", 1, "failed", false);
	assert_judged(VERDICT_FAILURE, "a mount does not run", "rmemfs@*.service");
	assert_has(judged.findings[0].cause, "exit-code");
	assert_null(strstr(judged.findings[0].cause, "no server there"));
	judge("mount", "/mnt/a", 0, "unmounted", false);
	assert_judged(VERDICT_FAILURE, "a mount is in /etc/fstab", "mount -a");
}

static void judge__systemd_that_can_not_be_asked(void **state)
{
	json_t *list = json_array();

	services_judge(list, -EACCES, judge_anew());
	assert_judged(VERDICT_NOTE, "systemd can't be asked", "systemctl status");
	json_decref(list);
}

/* A note makes no machine well, and a service that is missing is not nothing. */
static void complete__with_services(void **state)
{
	static struct health_findings f;
	json_t *list = json_pack("[{s:s, s:s, s:b, s:s}]", "kind", "mount", "name", "a", "unit", 1,
		"state", "failed");

	health_findings_configured(&f, NULL, -EACCES);
	health_findings_complete(&f);
	assert_int_equal(health_findings_verdict(&f), VERDICT_UNKNOWN);
	memset(&f, 0, sizeof(f));
	health_findings_configured(&f, list, 0);
	health_findings_complete(&f);
	assert_int_equal(f.report.n, 1);
	assert_int_equal(health_findings_verdict(&f), VERDICT_FAILURE);
	json_decref(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judge__each_state),
		cmocka_unit_test(judge__without_names),
		cmocka_unit_test(judge__systemd_that_can_not_be_asked),
		cmocka_unit_test(complete__with_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
