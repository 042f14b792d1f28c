#include "daemon/ctl/doctor/services.h"

#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/ctl/configured.h"
#include "daemon/ctl/json.h"

enum { LIMIT_MS = 3000 };

static const struct {
	const char *state;
	enum verdict verdict;
	const char *found, *cause;
} states[] = {
	{"failed", VERDICT_FAILURE, "does not run", "its last start has failed, or it has crashed"},
	{"restarting", VERDICT_FAILURE, "does not run, and systemd starts it again and again",
		"each start fails"},
	{"starting", VERDICT_WARNING, "has not started yet", "it waits, or begins just now"},
	{"stopped", VERDICT_FAILURE, "is enabled, and does not run", "somebody has stopped it"},
	{"unmounted", VERDICT_FAILURE, "is in /etc/fstab, and not mounted",
		"its mount has failed, or somebody has unmounted it"},
};

static void tell_cause(const json_t *each, const char *otherwise, struct report *r)
{
	const char *result = ctl_json_text(each, "result"), *status = ctl_json_text(each, "status");

	if (*result && *status)
		report_cause(r, "%s (%s): %s", otherwise, result, status);
	else if (*result || *status)
		report_cause(r, "%s: %s", otherwise, *result ? result : status);
	else
		report_cause(r, "%s", otherwise);
}

static void tell_remedy(const json_t *each, bool stopped, struct report *r)
{
	const char *name = ctl_json_text(each, "name");
	bool server = strcmp(ctl_json_text(each, "kind"), "server") == 0;
	char quoted[REPORT_QUOTED_BYTES];

	if (!*name)
		name = server ? "rmemfs-server.service" : "rmemfs@*.service";
	report_quote(name, quoted);
	if (!json_is_true(json_object_get(each, "unit")))
		report_remedy(r, "mount %s; journalctl -t rmemfs says why it failed",
			*ctl_json_text(each, "name") ? quoted : "-a");
	else if (stopped)
		report_remedy(r, "systemctl start %s; if it is not to run: systemctl disable %s",
			quoted, quoted);
	else
		report_remedy(r, "systemctl status %s; journalctl -u %s", quoted, quoted);
}

static void judge(const json_t *each, struct report *r)
{
	const char *state = ctl_json_text(each, "state"), *name = ctl_json_text(each, "name");
	bool server = strcmp(ctl_json_text(each, "kind"), "server") == 0;

	if (!*name)
		name = server ? "this machine's server" : "a mount";
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		if (strcmp(states[i].state, state) != 0)
			continue;
		report_found(r, states[i].verdict, "%s %s", name, states[i].found);
		tell_cause(each, states[i].cause, r);
		tell_remedy(each, strcmp(state, "stopped") == 0, r);
	}
}

void services_judge(const json_t *list, int err, struct report *r)
{
	const json_t *each;
	size_t i;

	json_array_foreach(list, i, each) judge(each, r);
	if (!err)
		return;
	report_found(r, VERDICT_NOTE, "services were not looked at: systemd can't be asked: %s",
		errno_text(err));
	report_cause(r, "this user has no D-Bus to systemd, or systemd does not answer");
	report_remedy(r, "systemctl status rmemfs-server 'rmemfs@*'");
}

void services_check(struct doctor *d)
{
	json_t *list;
	int err = configured_list(LIMIT_MS, &list);

	ctl_json_clean(list);
	services_judge(list, err, &d->report);
	if (!err && !json_array_size(list))
		report_found(&d->report, VERDICT_OK, "no service and no line of fstab is missing");
	json_decref(list);
}
