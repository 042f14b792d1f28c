#include "daemon/ctl/survey/health_findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/base/util.h"
#include "common/transport/address.h"
#include "daemon/ctl/doctor/services.h"
#include "daemon/ctl/print.h"
#include "daemon/ctl/survey/health_mount.h"

/* ---- mounts ---------------------------------------------------------------------------------- */

void health_findings_mount(struct health_findings *f, const json_t *mount, const char *verbs_device)
{
	f->nmounts++;
	health_mount_judge(mount, verbs_device, &f->report);
}

void health_findings_unmounted(struct health_findings *f, const char *where)
{
	char quoted[REPORT_QUOTED_BYTES];

	f->nmounts++;
	report_begin(&f->report, "mount");
	report_found(&f->report, VERDICT_FAILURE, "%s: no rmemfs is mounted there", where);
	report_cause(&f->report, "it was unmounted, or its mount has failed: see the journal");
	report_remedy(&f->report,
		"mount %s, if it is in /etc/fstab; systemctl start rmemfs@NAME, if it "
		"is a service",
		report_quote(where, quoted));
}

void health_findings_unlisted(struct health_findings *f, int err)
{
	report_begin(&f->report, "mount");
	report_found(&f->report, VERDICT_UNKNOWN, "the mounts can't be listed");
	report_cause(&f->report, "/proc/self/mountinfo: %s", errno_text(err));
	report_remedy(&f->report, "mount /proc");
}

/* ---- servers --------------------------------------------------------------------------------- */

/* "server 10.0.0.1" */
static const char *name_server(const char *where, char name[REPORT_TEXT_BYTES])
{
	snprintf(name, REPORT_TEXT_BYTES, "%s%s", where ? "server " : "this machine's server",
		where ? where : "");
	return name;
}

static void tell_unanswered(
	struct health_findings *f, const char *where, bool forbidden, const char *why)
{
	char name[REPORT_TEXT_BYTES];

	report_begin(&f->report, "server");
	report_found(&f->report, forbidden ? VERDICT_UNKNOWN : VERDICT_FAILURE, "%s: %s",
		name_server(where, name), forbidden ? "it can't be asked" : "no answer");
	report_cause(&f->report, "%s", why);
	report_remedy(&f->report,
		forbidden
			? "run this as root or as the server's user, or name an address and a key "
			  "(--key FILE)"
			: "on its machine: systemctl status rmemfs-server; ps -C rmemfs-server -o "
			  "pid,stat,wchan (T: kill -CONT); rmemfsctl doctor names the step that "
			  "fails");
}

void health_findings_unanswered(
	struct health_findings *f, const char *where, bool forbidden, const char *why)
{
	f->nservers++;
	tell_unanswered(f, where, forbidden, why);
}

void health_findings_hidden(struct health_findings *f, const char *why)
{
	report_begin(&f->report, "server");
	report_found(&f->report, f->nmounts ? VERDICT_NOTE : VERDICT_UNKNOWN,
		"this machine's server was not looked at");
	report_cause(&f->report, "%s", why);
	report_remedy(&f->report, "run this as root or as the server's user");
}

static void tell_stranger(struct health_findings *f, const char *where)
{
	char name[REPORT_TEXT_BYTES];

	report_begin(&f->report, "server");
	report_found(&f->report, VERDICT_UNKNOWN, "%s: it answers, and tells strangers no more",
		name_server(where, name));
	report_cause(&f->report, "it was asked by an address, and without a key that it accepts");
	report_remedy(&f->report, "name a key whose access is \"status\" (--key FILE)");
}

void health_findings_server(struct health_findings *f, const char *where, const json_t *status,
	const struct health_terms *terms)
{
	f->nservers++;
	if (!status) {
		tell_unanswered(f, where, false, "its answer is malformed");
		return;
	}
	if (ctl_is_for_strangers(status)) {
		tell_stranger(f, where);
		return;
	}
	f->nexports += json_array_size(json_object_get(status, "exports"));
	health_server_judge(status, terms, &f->report);
}

/* ---- all of them ----------------------------------------------------------------------------- */

void health_findings_configured(struct health_findings *f, const json_t *list, int err)
{
	report_begin(&f->report, "services");
	services_judge(list, err, &f->report);
}

/* A note does not make a machine well. */
void health_findings_complete(struct health_findings *f)
{
	if (f->nmounts || f->nservers || f->report.worst > VERDICT_NOTE)
		return;
	report_begin(&f->report, "mount");
	report_found(&f->report, VERDICT_UNKNOWN, "there is nothing to look at");
	report_cause(&f->report,
		"no rmemfs is mounted here by root or this user, no server has the "
		"socket " RMEMFS_DEFAULT_SOCKET ", and no service and no line of fstab is missing");
	report_remedy(&f->report,
		"name a mount or a server: rmemfsctl health MOUNTPOINT; systemctl status "
		"rmemfs-server 'rmemfs@*'");
}

void health_findings_sort(struct health_findings *f)
{
	struct report *r = &f->report, *sorted = malloc(sizeof(*sorted));
	unsigned n = 0;

	if (!sorted)
		return;
	for (int verdict = VERDICT_FAILURE; verdict >= VERDICT_OK; verdict--)
		for (unsigned i = 0; i < r->n; i++)
			if (r->findings[i].verdict == (enum verdict)verdict)
				sorted->findings[n++] = r->findings[i];
	memcpy(r->findings, sorted->findings, n * sizeof(*r->findings));
	free(sorted);
}

enum verdict health_findings_verdict(const struct health_findings *f)
{
	return f->report.worst <= VERDICT_NOTE ? VERDICT_OK : f->report.worst;
}

const char *health_findings_name(enum verdict verdict)
{
	return verdict == VERDICT_FAILURE ? "critical" : report_verdict_name(verdict);
}
