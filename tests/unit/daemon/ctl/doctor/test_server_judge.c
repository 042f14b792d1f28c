/* Judgements of a connection's steps, and of which transport a mount takes. */
#include "tests/unit/daemon/ctl/doctor/judged.h"

#include <errno.h>
#include <stdio.h>

#include "common/rpc/wire_version.h"
#include "daemon/ctl/doctor/server.h"

static struct server_course course_over(enum transport_kind kind)
{
	struct server_course c = {.kind = kind, .without = VERDICT_FAILURE};

	snprintf(c.address, sizeof(c.address), "10.0.0.1:7470");
	return c;
}

static struct server_course port_with(enum transport_kind kind, int err)
{
	struct server_course c = course_over(kind);

	c.err = -ENOTCONN;
	c.port.err = err;
	return c;
}

static struct server_course failed_at(enum ctl_step step, int err, const char *why)
{
	struct server_course c = course_over(TRANSPORT_TCP);

	c.err = err;
	c.course.step = step;
	snprintf(c.why, sizeof(c.why), "%s", why);
	return c;
}

static void judge_it(struct server_course c)
{
	server_judge_course(&c, judge_anew());
}

/* ---- nobody is reached ----------------------------------------------------------------------- */

static void course__nobody_listens(void **state)
{
	judge_it(port_with(TRANSPORT_TCP, -ECONNREFUSED));
	assert_judged(VERDICT_FAILURE, "nobody listens", "systemctl start rmemfs-server");
	assert_has(judged.findings[0].cause, "the machine answers");
	assert_has(judged.findings[0].cause, "a firewall rejects");
	assert_has(judged.findings[0].remedy, "; if it listens at this one, allow the port");
	judge_it(port_with(TRANSPORT_SHM, -ENOENT));
	assert_judged(VERDICT_FAILURE, "nobody listens", "name its socket");
}

static void course__packets_are_dropped(void **state)
{
	judge_it(port_with(TRANSPORT_TCP, -ETIMEDOUT));
	assert_judged(VERDICT_FAILURE, "no answer within 2 s",
		"nft insert rule inet filter input tcp dport 7470 accept");
	assert_has(judged.findings[0].remedy, "firewall-cmd --permanent --add-port=7470/tcp");
	assert_has(judged.findings[0].remedy, "ufw allow 7470/tcp");
	assert_has(judged.findings[0].remedy, "/etc/nftables.conf");
	assert_has(judged.findings[0].cause, "firewall");
}

static void course__other_errors_of_a_port(void **state)
{
	judge_it(port_with(TRANSPORT_TCP, -EHOSTUNREACH));
	assert_judged(VERDICT_FAILURE, "No route to host", "ip route get");
	judge_it(port_with(TRANSPORT_SHM, -EACCES));
	assert_judged(VERDICT_FAILURE, "Permission denied", "as one of these");
	judge_it(port_with(TRANSPORT_SHM, -EAGAIN));
	assert_judged(VERDICT_FAILURE, "temporarily unavailable", "journalctl");
}

/* Its failure is none of the whole. */
static void course__of_a_transport_that_is_not_needed(void **state)
{
	struct server_course c = port_with(TRANSPORT_TCP, -ECONNREFUSED);

	c.without = VERDICT_NOTE;
	judge_it(c);
	assert_judged(VERDICT_NOTE, "nobody listens", NULL);
}

static void course__no_path(void **state)
{
	struct server_course c = course_over(TRANSPORT_VERBS);

	c.err = -ENOTCONN;
	c.path_err = -ENODEV;
	c.path.step = VERBS_STEP_MANAGER;
	judge_it(c);
	assert_judged(VERDICT_FAILURE, "connection manager", "modprobe rdma_ucm");
	c.path.step = VERBS_STEP_ADDRESS;
	judge_it(c);
	assert_judged(VERDICT_FAILURE, "no RDMA device has a route", "rdma link show");
	c.path.step = VERBS_STEP_ROUTE;
	judge_it(c);
	assert_judged(VERDICT_FAILURE, "finds no path", "ibstat");
}

/* ---- somebody is reached --------------------------------------------------------------------- */

static void course__stopped_server(void **state)
{
	struct server_course c = failed_at(CTL_STEP_CONNECT, -ETIMEDOUT, "");

	judge_it(c);
	assert_judged(VERDICT_FAILURE, "the port is open, but nobody answers", "-CONT");
	c.kind = TRANSPORT_SHM;
	c.port.stopped = true;
	c.port.pid = 811;
	judge_it(c);
	assert_judged(VERDICT_FAILURE, "process 811, is stopped", "kill -CONT 811");
}

static void course__other_versions(void **state)
{
	struct server_course c = failed_at(CTL_STEP_CONNECT, -EPROTO, "");

	judge_it(c);
	assert_judged(VERDICT_FAILURE, "no rmemfs-server", "check the port");
	c.course.peer_version = RMEMFS_WIRE_VERSION - 1;
	judge_it(c);
	assert_judged(VERDICT_FAILURE, "the server speaks version", "on the server");
	c.course.peer_version = RMEMFS_WIRE_VERSION + 1;
	judge_it(c);
	assert_judged(VERDICT_FAILURE, "the server speaks version", "on this machine");
}

static void course__key_that_is_not_accepted(void **state)
{
	judge_it(failed_at(CTL_STEP_PROVE, -EACCES, "the server does not accept key web-k7q2"));
	assert_judged(VERDICT_FAILURE, "does not accept key web-k7q2",
		"copy the server's file over this one");
	judge_it(failed_at(CTL_STEP_PROVE, -ECONNRESET, "the server closed the connection"));
	assert_judged(VERDICT_FAILURE, "closed the connection", "journalctl");
}

static void course__transport_that_can_not_be_opened(void **state)
{
	struct server_course c = failed_at(CTL_STEP_OPEN, -EOPNOTSUPP, "not supported");

	snprintf(c.logged, sizeof(c.logged), "verbs: lower them");
	judge_it(c);
	assert_judged(VERDICT_FAILURE, "verbs: lower them", NULL);
}

static void course__texts_of_a_server_are_printable(void **state)
{
	judge_it(failed_at(CTL_STEP_ASK, -EIO, "\x1b]0;x\x07"));
	assert_judged(VERDICT_FAILURE, "?]0;x?", NULL);
}

static void course__answered(void **state)
{
	struct server_course c = course_over(TRANSPORT_TCP);

	c.course.peer_version = 8;
	c.course.protection = CHANNEL_ALL;
	snprintf(c.course.key_id, sizeof(c.course.key_id), "web-k7q2");
	judge_it(c);
	assert_judged(VERDICT_OK, "both have proven key web-k7q2", NULL);
	c.course.key_id[0] = '\0';
	judge_it(c);
	assert_judged(VERDICT_OK, "no key was proven", NULL);
}

static void without__depends_on_the_others(void **state)
{
	static struct doctor d;

	assert_int_equal(server_verdict_without(&d, TRANSPORT_TCP), VERDICT_FAILURE);
	assert_int_equal(server_verdict_without(&d, TRANSPORT_VERBS), VERDICT_WARNING);
	assert_int_equal(server_verdict_without(&d, TRANSPORT_SHM), VERDICT_WARNING);
	d.tries[TRANSPORT_VERBS] = (struct doctor_try){.tried = true, .err = -ETIMEDOUT};
	assert_int_equal(server_verdict_without(&d, TRANSPORT_TCP), VERDICT_FAILURE);
	d.tries[TRANSPORT_VERBS].err = 0;
	assert_int_equal(server_verdict_without(&d, TRANSPORT_TCP), VERDICT_NOTE);
	d.named = true;
	assert_int_equal(server_verdict_without(&d, TRANSPORT_TCP), VERDICT_FAILURE);
}

/* ---- the transport --------------------------------------------------------------------------- */

static void transport__in_the_order_of_a_mount(void **state)
{
	static struct doctor d;

	for (unsigned i = 0; i < TRANSPORT_NKINDS; i++)
		d.tries[i] = (struct doctor_try){.tried = true};
	server_judge_transport(&d, judge_anew());
	assert_judged(VERDICT_OK, "over shm", NULL);
	d.tries[TRANSPORT_SHM].tried = false;
	server_judge_transport(&d, judge_anew());
	assert_judged(VERDICT_OK, "over verbs", NULL);
	d.tries[TRANSPORT_VERBS].err = -ENODEV;
	server_judge_transport(&d, judge_anew());
	assert_judged(VERDICT_OK, "over tcp", NULL);
	d.tries[TRANSPORT_TCP].err = -ECONNREFUSED;
	server_judge_transport(&d, judge_anew());
	assert_judged(VERDICT_FAILURE, "no transport", "above");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(course__nobody_listens),
		cmocka_unit_test(course__packets_are_dropped),
		cmocka_unit_test(course__other_errors_of_a_port),
		cmocka_unit_test(course__of_a_transport_that_is_not_needed),
		cmocka_unit_test(course__no_path),
		cmocka_unit_test(course__stopped_server),
		cmocka_unit_test(course__other_versions),
		cmocka_unit_test(course__key_that_is_not_accepted),
		cmocka_unit_test(course__transport_that_can_not_be_opened),
		cmocka_unit_test(course__texts_of_a_server_are_printable),
		cmocka_unit_test(course__answered),
		cmocka_unit_test(without__depends_on_the_others),
		cmocka_unit_test(transport__in_the_order_of_a_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
