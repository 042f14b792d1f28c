/* doctor.c - the table of checks, and the processes that they run in. */
#include "daemon/ctl/doctor/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/ctl/args.h"
#include "daemon/ctl/bounded.h"
#include "daemon/ctl/doctor/answer.h"
#include "daemon/ctl/doctor/features.h"
#include "daemon/ctl/doctor/kernel.h"
#include "daemon/ctl/doctor/memory.h"
#include "daemon/ctl/doctor/mounts.h"
#include "daemon/ctl/doctor/network.h"
#include "daemon/ctl/doctor/rdma.h"
#include "daemon/ctl/doctor/server.h"
#include "daemon/ctl/doctor/services.h"
#include "daemon/ctl/json.h"

/* ---- the table ------------------------------------------------------------------------------- */

static const struct check {
	const char *word; /* the JSON's "check", and the manual page's */
	void (*run)(struct doctor *d);
	int limit_ms;
	bool of_server;        /* only with HOST */
	const char *waits_for; /* the part of the system that it asks */
} checks[] = {
	{"rdma", rdma_check, 5000, false, "the RDMA device or its driver"},
	{"modules", kernel_check_modules, 5000, false, "the kernel"},
	{"memlock", memory_check_lock, 5000, false, "the kernel"},
	{"memory", memory_check_room, 5000, false, "the filesystem /dev/shm"},
	{"hugepages", memory_check_huge, 5000, false, "the kernel"},
	{"numa", memory_check_nodes, 5000, false, "the kernel"},
	{"fuse", kernel_check_fuse, 5000, false, "the kernel"},
	{"fusermount", kernel_check_fusermount, 5000, false, "the filesystem of /usr"},
	{"features", features_check, 5000, false, "the kernel's FUSE"},
	{"mounts", mounts_check_here, 5000, false, "/proc"},
	{"namespaces", mounts_check_elsewhere, 5000, false, "/proc"},
	{"services", services_check, 5000, false, "systemd"},
	{"host", network_check_host, 8000, true, "the resolver: see /etc/resolv.conf"},
	{"route", network_check_route, 5000, true, "the kernel"},
	{"mtu", network_check_packets, 5000, true, "the network"},
	{"key", server_check_key, 3000, true, "the filesystem of the key file"},
	{"shm", server_check_shm, 10000, true, "the server's socket"},
	{"verbs", server_check_verbs, 10000, true, "the RDMA device or its driver"},
	{"tcp", server_check_tcp, 10000, true, "the network"},
	{"transport", server_check_transport, 5000, true, "nothing"},
	{"exports", answer_check_exports, 5000, true, "nothing"},
	{"directory", answer_check_memory_dir, 5000, true, "the server's memory directory"},
	{"latency", answer_check_latency, 5000, true, "nothing"},
	{"bandwidth", answer_check_bandwidth, 5000, true, "nothing"},
	{"clock", answer_check_clock, 5000, true, "nothing"},
};

/* ---- one check ------------------------------------------------------------------------------- */

/* A check in its process. */
struct checking {
	const struct check *check;
	struct doctor *d;
};

static void be_check(void *arg)
{
	const struct checking *c = arg;

	c->check->run(c->d);
}

static void tell_late(const struct check *check, struct report *r)
{
	report_found(
		r, VERDICT_FAILURE, "the check did not end within %d s", check->limit_ms / 1000);
	report_cause(r, "no answer from %s", check->waits_for);
	report_remedy(r, "see dmesg and the journal for what hangs; then run this again");
}

static void tell_unmade(int err, struct report *r)
{
	report_found(r, VERDICT_FAILURE, "the check can't begin: %s", errno_text(err));
	report_cause(r, "a check has a process of its own, and this machine or user has too many");
	report_remedy(r, "end some (ps, ulimit -u), and run this again");
}

static void tell_broken(int status, struct report *r)
{
	report_found(r, VERDICT_FAILURE, "the check was ended by %s %d",
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	report_cause(r, "somebody has killed it, memory was short, or rmemfsctl has a fault");
	report_remedy(r, "see dmesg, and run this again");
}

static void run_check(const struct check *check, struct doctor *d)
{
	struct checking c = {check, d};
	int err, status = 0;

	report_begin(&d->report, check->word);
	err = bounded_run(be_check, &c, check->limit_ms, &status);
	if (err == -ETIMEDOUT)
		tell_late(check, &d->report);
	else if (err)
		tell_unmade(err, &d->report);
	else if (status != 0)
		tell_broken(status, &d->report);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void run_all(struct doctor *d, bool json)
{
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		unsigned first = d->report.n;

		if (checks[i].of_server && !d->where)
			continue;
		run_check(&checks[i], d);
		if (!json)
			report_print(&d->report, first);
	}
}

static bool print_json(const struct doctor *d)
{
	json_t *root = report_json(&d->report, d->where);
	bool printed = root && ctl_json_print(root) == 0;

	json_decref(root);
	return printed;
}

static int exit_status(const struct report *r)
{
	if (report_count(r, VERDICT_FAILURE))
		return CTL_DOCTOR_FAILURES;
	return report_count(r, VERDICT_WARNING) ? CTL_DOCTOR_WARNINGS : CTL_DOCTOR_WELL;
}

int doctor_run(const char *where, const char *key_file, bool json)
{
	struct doctor *d =
		mmap(NULL, sizeof(*d), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	if (d == MAP_FAILED) {
		log_error("can't begin: %s", errno_text(errno));
		return CTL_DOCTOR_FAILURES;
	}
	d->where = where;
	d->key_file = key_file;
	run_all(d, json);
	if (!json)
		report_print_sum(&d->report);
	else if (!print_json(d))
		log_error("can't print the report: %s", errno_text(ENOMEM));
	status = fflush(stdout) == 0 ? exit_status(&d->report) : CTL_DOCTOR_FAILURES;
	munmap(d, sizeof(*d));
	return status;
}
