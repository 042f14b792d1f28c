#include "daemon/ctl/survey/health_waits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/ctl/cpu_text.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/print_mount.h"
#include "daemon/ctl/survey/health_server.h"

enum { NAME_CHARS = 320, MORE_CHARS = 48, SILENT_MS = 2000 };

static const char *milliseconds(uint64_t ms, char buf[CTL_TIME_CHARS])
{
	return ctl_time_text(ms * 1000000, buf);
}

static uint64_t number_in(const json_t *object, const char *in, const char *key)
{
	return ctl_json_number(json_object_get(object, in), key);
}

static bool is_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

/* "session 3 of node7:/mnt/rmem (pid 23892)" */
static const char *name_session(const json_t *session, char buf[NAME_CHARS])
{
	const char *client = ctl_json_text(session, "client");

	snprintf(buf, NAME_CHARS, "session %" PRIu64 "%s%s", ctl_json_number(session, "id"),
		*client ? " of " : "", client);
	return buf;
}

static const char *and_more(unsigned n, char buf[MORE_CHARS])
{
	*buf = '\0';
	if (n > 1)
		snprintf(buf, MORE_CHARS, ", and %u more", n - 1);
	return buf;
}

/* ---- a client's key is refused --------------------------------------------------------------- */

static bool is_refused_now(const json_t *refusal)
{
	return ctl_json_number(refusal, "ms") < HEALTH_REFUSED_MS;
}

/* Of that key; NULL: it was not refused lately. */
static const json_t *refusal_of(const json_t *status, const char *key)
{
	const json_t *refusal;
	size_t i;

	if (!*key)
		return NULL;
	json_array_foreach(json_object_get(status, "refused_keys"), i, refusal)
	{
		if (is_refused_now(refusal) && strcmp(ctl_json_text(refusal, "key"), key) == 0)
			return refusal;
	}
	return NULL;
}

static bool is_away(const json_t *session)
{
	const char *state = ctl_json_text(session, "state");

	return strcmp(state, "disconnected") == 0 || strcmp(state, "restored") == 0;
}

bool health_waits_key_is_refused(
	const json_t *status, const json_t *session, char *cause, size_t len)
{
	const char *key = ctl_json_text(session, "key");
	const json_t *refusal = is_away(session) ? refusal_of(status, key) : NULL;

	if (refusal)
		snprintf(cause, len,
			"its connection is gone: key %s is refused (%" PRIu64 " times)", key,
			ctl_json_number(refusal, "count"));
	return refusal;
}

bool health_waits_is_of_client(const json_t *status, const json_t *refusal)
{
	const json_t *session;
	size_t i;

	if (is_true(refusal, "known"))
		return true;
	json_array_foreach(json_object_get(status, "sessions"), i, session)
	{
		if (strcmp(ctl_json_text(session, "key"), ctl_json_text(refusal, "key")) == 0)
			return true;
	}
	return false;
}

static void judge_refused(const json_t *status, struct report *r)
{
	const json_t *refusal, *worst = NULL;
	char time[CTL_TIME_CHARS], more[MORE_CHARS];
	bool client = false, one;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(status, "refused_keys"), i, refusal)
	{
		/* Without names nobody knows whose it is. */
		if (!is_refused_now(refusal) || !*ctl_json_text(refusal, "key"))
			continue;
		n++;
		one = health_waits_is_of_client(status, refusal);
		if (!worst || one > client)
			worst = refusal;
		client |= one;
	}
	if (!n)
		return;
	report_begin(r, "refused");
	report_found(r, client ? VERDICT_WARNING : VERDICT_NOTE,
		"server: key %s, from %s, is refused: %" PRIu64 " times, the last %s ago%s",
		ctl_json_text(worst, "key"), ctl_json_text(worst, "host"),
		ctl_json_number(worst, "count"), milliseconds(ctl_json_number(worst, "ms"), time),
		and_more(n, more));
	report_cause(r, "%s", ctl_json_text(worst, "reason"));
	report_remedy(r, HEALTH_KEY_REMEDY);
}

/* ---- the server itself ----------------------------------------------------------------------- */

static bool is_starved(const json_t *status)
{
	struct cpu_wait_view view;

	return ctl_cpu_view(status, &view) && view.starved;
}

void health_waits_judge_cpu(const json_t *status, struct report *r)
{
	struct cpu_wait_view view;
	char text[CPU_WAIT_TEXT_BYTES];

	if (!ctl_cpu_view(status, &view) || !view.starved)
		return;
	report_begin(r, "cpu");
	report_found(r, VERDICT_WARNING, "server: it %s", cpu_wait_text(&view, text));
	report_cause(r, "%s",
		view.throttled ? "a quota of its control group keeps it from running: all mounts "
				 "are slow, and none of them is to blame"
			       : "its process was stopped, or other programs or guests have the "
				 "CPUs: all mounts are slow, and none of them is to blame");
	if (view.throttled)
		report_remedy(r,
			"on the server: systemctl show -p CPUQuotaPerSecUSec rmemfs-server; cat "
			"/proc/%" PRIu64 "/cgroup, and cpu.stat of that group and those above it",
			ctl_json_number(status, "pid"));
	else
		report_remedy(r, "on the server: top; end or move what takes the CPUs, or give "
				 "rmemfs-server a higher CPUWeight=");
}

/* ---- others wait now ------------------------------------------------------------------------- */

/* The knowledge of a session that is to give something back, the surest first. */
enum known {
	KNOWN_STOPPED,
	KNOWN_STARVED,
	KNOWN_REFUSED,
	KNOWN_AWAY,
	KNOWN_SILENT,
	KNOWN_UNSTEADY,
	KNOWN_NOTHING
};

static enum known known_of(const json_t *status, const json_t *session)
{
	char cause[HEALTH_CAUSE_CHARS];

	if (is_true(session, "stopped"))
		return KNOWN_STOPPED;
	if (is_starved(status))
		return KNOWN_STARVED;
	if (health_waits_key_is_refused(status, session, cause, sizeof(cause)))
		return KNOWN_REFUSED;
	if (is_away(session))
		return KNOWN_AWAY;
	if (ctl_json_number(session, "silent_ms") >= SILENT_MS)
		return KNOWN_SILENT;
	if (number_in(session, "reconnects", "recent") >= HEALTH_RECONNECTS)
		return KNOWN_UNSTEADY;
	return KNOWN_NOTHING;
}

/* Finds the session of the export that is to give something back, and of which most is known. NULL:
 * none is. */
static const json_t *find_holder(const json_t *export, const json_t *status, enum known *known)
{
	const json_t *session, *found = NULL;
	size_t i;

	json_array_foreach(json_object_get(status, "sessions"), i, session)
	{
		enum known one = known_of(status, session);

		if (!ctl_json_number(session, "recalls") ||
			strcmp(ctl_json_text(session, "export"), ctl_json_text(export, "name")) !=
				0)
			continue;
		if (found && one >= *known)
			continue;
		found = session;
		*known = one;
	}
	return found;
}

static void explain_stopped(const json_t *session, const char *name, struct report *r)
{
	uint64_t pid = ctl_json_number(session, "pid");

	report_cause(r, "%s: its process %" PRIu64 " is stopped", name, pid);
	report_remedy(
		r, "kill -CONT %" PRIu64 "; kill -9 %" PRIu64 " ends it and its mount", pid, pid);
}

/* Of a holder; its number is needed for what ends it. */
static void explain_holder(
	const json_t *status, const json_t *session, enum known known, struct report *r)
{
	uint64_t id = ctl_json_number(session, "id");
	char name[NAME_CHARS], time[CTL_TIME_CHARS], cause[HEALTH_CAUSE_CHARS];

	name_session(session, name);
	switch (known) {
	case KNOWN_STOPPED:
		explain_stopped(session, name, r);
		break;
	case KNOWN_STARVED:
		report_cause(
			r, "the server itself gets too little CPU; %s need not be to blame", name);
		report_remedy(r, "mend that first");
		break;
	case KNOWN_REFUSED:
		health_waits_key_is_refused(status, session, cause, sizeof(cause));
		report_cause(r, "%s: %s", name, cause);
		report_remedy(r, HEALTH_KEY_REMEDY);
		break;
	case KNOWN_AWAY:
		report_cause(r, "%s: its connection is gone", name);
		report_remedy(r,
			"on its machine: rmemfsctl health; if it does not come back: rmemfsctl "
			"evict %" PRIu64,
			id);
		break;
	case KNOWN_SILENT:
		report_cause(r,
			"%s: nothing was heard of it for %s: its process is stopped, its machine "
			"hangs, or the network is cut",
			name, milliseconds(ctl_json_number(session, "silent_ms"), time));
		report_remedy(r,
			"on its machine: rmemfsctl health; if it does not come back: rmemfsctl "
			"evict %" PRIu64,
			id);
		break;
	case KNOWN_UNSTEADY:
		report_cause(r, "%s: it lost its connection %" PRIu64 " times", name,
			number_in(session, "reconnects", "recent"));
		report_remedy(r, HEALTH_UNSTEADY_REMEDY);
		break;
	case KNOWN_NOTHING:
		report_cause(r, "%s: it is connected and has not given it back yet", name);
		report_remedy(r, "on its machine: rmemfsctl health, and rmemfsctl status "
				 "MOUNTPOINT; rmemfsctl leases shows who is late often");
		break;
	}
}

void health_waits_judge_export(const json_t *export, const json_t *status, struct report *r)
{
	const json_t *file, *worst = NULL, *holder;
	uint64_t lease_ms = ctl_json_number(status, "lease_ms"), ms;
	char time[CTL_TIME_CHARS], more[MORE_CHARS];
	enum known known = KNOWN_NOTHING;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(export, "contested"), i, file)
	{
		if (ctl_json_number(file, "ms") < HEALTH_RECALL_MS)
			continue;
		n++;
		if (!worst || ctl_json_number(file, "ms") > ctl_json_number(worst, "ms"))
			worst = file;
	}
	if (!n)
		return;
	ms = ctl_json_number(worst, "ms");
	report_begin(r, "recalls");
	report_found(r,
		lease_ms && ms >= 2 * lease_ms && !is_starved(status) ? VERDICT_FAILURE
								      : VERDICT_WARNING,
		"export %s: others have waited %s for a mount to give back inode %" PRIu64 "%s",
		ctl_json_text(export, "name"), milliseconds(ms, time),
		ctl_json_number(worst, "inode"), and_more(n, more));
	holder = find_holder(export, status, &known);
	if (holder) {
		explain_holder(status, holder, known, r);
		return;
	}
	report_cause(r, "that mount has not given it back yet");
	report_remedy(r, "rmemfsctl who EXPORT %" PRIu64 " on the server names it",
		ctl_json_number(worst, "inode"));
}

/* ---- again and again ------------------------------------------------------------------------- */

/* The session with the highest member `key` in `in`, from `least` on, and how many there are. */
static const json_t *find_worst(
	const json_t *status, const char *in, const char *key, uint64_t least, unsigned *n)
{
	const json_t *session, *worst = NULL;
	size_t i;

	*n = 0;
	json_array_foreach(json_object_get(status, "sessions"), i, session)
	{
		if (number_in(session, in, key) < least)
			continue;
		++*n;
		if (!worst || number_in(session, in, key) > number_in(worst, in, key))
			worst = session;
	}
	return worst;
}

static void judge_late(const json_t *status, struct report *r)
{
	char name[NAME_CHARS], time[CTL_TIME_CHARS], more[MORE_CHARS];
	unsigned n;
	const json_t *session =
		find_worst(status, "late_recalls", "recent", HEALTH_LATE_RECALLS, &n);

	if (!session)
		return;
	report_begin(r, "late");
	report_found(r, VERDICT_WARNING,
		"export %s: %s gave files back late %" PRIu64 " times within minutes, the latest "
		"after %s%s",
		ctl_json_text(session, "export"), name_session(session, name),
		number_in(session, "late_recalls", "recent"),
		milliseconds(number_in(session, "late_recalls", "longest_ms"), time),
		and_more(n, more));
	report_cause(r, "its process is stopped for moments, or its machine or its network is "
			"slow: others wait each time");
	report_remedy(r, "on its machine: rmemfsctl health, and the log of the mount: \"did not "
			 "run for\"; rmemfsctl doctor HOST");
}

static void judge_unsteady(const json_t *status, struct report *r)
{
	char name[NAME_CHARS], more[MORE_CHARS];
	unsigned n;
	const json_t *session = find_worst(status, "reconnects", "recent", HEALTH_RECONNECTS, &n);

	if (!session)
		return;
	report_begin(r, "unsteady");
	report_found(r, VERDICT_WARNING,
		"export %s: %s lost its connection %" PRIu64 " times within minutes%s",
		ctl_json_text(session, "export"), name_session(session, name),
		number_in(session, "reconnects", "recent"), and_more(n, more));
	report_cause(r, "the network loses packets, perhaps the large ones alone, or its machine "
			"stands still for moments");
	report_remedy(r, HEALTH_UNSTEADY_REMEDY);
}

void health_waits_judge_server(const json_t *status, struct report *r)
{
	if (!is_starved(status)) {
		judge_unsteady(status, r);
		judge_late(status, r);
	}
	judge_refused(status, r);
}
