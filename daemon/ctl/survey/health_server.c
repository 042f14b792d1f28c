#include "daemon/ctl/survey/health_server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/util.h"
#include "common/conf/conf.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/print.h"
#include "daemon/ctl/print_mount.h"
#include "daemon/ctl/survey/health_waits.h"

enum { SIZE_CHARS = 32, AMOUNT_CHARS = 48, S_PER_HOUR = 3600 };

static const char *milliseconds(uint64_t ms, char buf[CTL_TIME_CHARS])
{
	return ctl_time_text(ms * 1000000, buf);
}

/* ", and 3 more", or "". */
static const char *and_more(unsigned n, char buf[AMOUNT_CHARS])
{
	*buf = '\0';
	if (n > 1)
		snprintf(buf, AMOUNT_CHARS, ", and %u more", n - 1);
	return buf;
}

/* ---- how full it is -------------------------------------------------------------------------- */

/* Rounded down. A server may say anything. */
static unsigned percent(uint64_t used, uint64_t all)
{
	return all ? (unsigned)min_u64((uint64_t)((double)used / (double)all * 100), 1000) : 0;
}

struct level {
	const char *check;
	char of[64]; /* "export data" */
	uint64_t used, all;
	bool count; /* else bytes */
	const char *thing, *cause, *remedy;
};

static void judge_level(const struct level *l, struct report *r)
{
	unsigned share = percent(l->used, l->all);
	char all[AMOUNT_CHARS];

	if (share < HEALTH_NOTED)
		return;
	if (l->count)
		snprintf(all, sizeof(all), "%" PRIu64, l->all);
	else
		size_format(l->all, all, sizeof(all));
	report_begin(r, l->check);
	report_found(r,
		share >= HEALTH_FULL   ? VERDICT_FAILURE
		: share >= HEALTH_NEAR ? VERDICT_WARNING
				       : VERDICT_NOTE,
		"%s: %u %% of its %s%s%s", l->of, share, all, l->count ? " " : " of ", l->thing);
	report_cause(r, "%s", l->cause);
	report_remedy(r, "%s", l->remedy);
}

/* Bytes that are lent to mounts, or are to be cleared, become free when somebody needs them. */
static void judge_memory(const json_t *export, struct level *l, struct report *r)
{
	l->check = "memory";
	l->used = ctl_json_number(export, "used");
	l->all = ctl_json_number(export, "bytes");
	l->count = false;
	l->thing = "memory are in use";
	l->cause = "files have it; without free memory writes fail with ENOSPC";
	l->remedy =
		"remove files, or raise the export's size in server.conf, and restart the server";
	judge_level(l, r);
}

static void judge_inodes(const json_t *export, struct level *l, struct report *r)
{
	l->check = "inodes";
	l->used = ctl_json_number(export, "files");
	l->all = ctl_json_number(export, "max_inodes");
	l->count = true;
	l->thing = "inodes are in use";
	l->cause = "the export's setting inodes is the limit; then no file can be made";
	l->remedy = "remove files, or raise the export's inodes in server.conf: rmemfsctl reload";
	judge_level(l, r);
}

/* A part is kept for operations that give memory back. */
static void judge_metadata(const json_t *export, struct level *l, struct report *r)
{
	const json_t *metadata = json_object_get(export, "metadata");

	l->check = "metadata";
	l->used = ctl_json_number(metadata, "used");
	l->all = l->used + ctl_json_number(metadata, "left");
	l->count = false;
	l->thing = "metadata are in use";
	l->cause = "names, attributes and extents of files have it; then no file can be made";
	l->remedy =
		"remove files, or raise the export's metadata in server.conf: rmemfsctl reload; "
		"a metadata_reserve needs a restart";
	judge_level(l, r);
}

/* ---- quotas ---------------------------------------------------------------------------------- */

/* Reserved space counts as used for all others. */
static unsigned quota_percent(const json_t *quota)
{
	unsigned bytes =
		percent(ctl_json_number(quota, "used") + ctl_json_number(quota, "reserved"),
			ctl_json_number(quota, "limit"));
	unsigned inodes =
		percent(ctl_json_number(quota, "inodes"), ctl_json_number(quota, "max_inodes"));

	return bytes > inodes ? bytes : inodes;
}

/* "user 1000"; "a user", if the status does not tell which. */
static const char *owner_text(const json_t *quota, char buf[AMOUNT_CHARS])
{
	const char *kind = json_object_get(quota, "user") ? "user" : "group";

	if (json_is_integer(json_object_get(quota, kind)))
		snprintf(buf, AMOUNT_CHARS, "%s %" PRIu64, kind, ctl_json_number(quota, kind));
	else
		snprintf(buf, AMOUNT_CHARS, "a %s", kind);
	return buf;
}

static void judge_quotas(const json_t *export, const char *of, struct report *r)
{
	const json_t *quota, *worst = NULL;
	char owner[AMOUNT_CHARS], more[AMOUNT_CHARS];
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(export, "quotas"), i, quota)
	{
		if (quota_percent(quota) < HEALTH_QUOTA)
			continue;
		n++;
		if (!worst || quota_percent(quota) > quota_percent(worst))
			worst = quota;
	}
	if (!n)
		return;
	report_begin(r, "quota");
	report_found(r, VERDICT_WARNING, "%s: %s has %u %% of its quota%s", of,
		owner_text(worst, owner), quota_percent(worst), and_more(n, more));
	report_cause(r, "beyond it writes of that owner fail with EDQUOT");
	report_remedy(r, "rmemfsctl quota shows all; remove files, or raise the limit in "
			 "server.conf: rmemfsctl reload");
}

/* ---- what is lost, and snapshots ------------------------------------------------------------- */

static void judge_lost(const json_t *export, const char *of, struct report *r)
{
	uint64_t lost = ctl_json_number(export, "lost_regions");

	if (!lost)
		return;
	report_begin(r, "lost");
	report_found(r, VERDICT_FAILURE,
		"%s: %" PRIu64 " of its %" PRIu64 " regions have lost bytes", of, lost,
		ctl_json_number(export, "regions"));
	report_cause(r,
		"a process has cut their files in the memory directory, or an access failed; "
		"the server's log says which");
	report_remedy(r, "copy all that can still be read, and serve another export in its place; "
			 "\"Lost memory\" in rmemfs-server(8)");
}

static void judge_snapshot_age(
	const json_t *export, const char *of, const struct health_terms *terms, struct report *r)
{
	const json_t *last = json_object_get(export, "last_snapshot");
	int64_t made = (int64_t)ctl_json_number(last, "completed");
	int64_t hours = (terms->now_s - made) / S_PER_HOUR;

	if (!terms->snapshot_max || (json_is_object(last) && hours < terms->snapshot_max))
		return;
	report_begin(r, "snapshot");
	if (json_is_object(last))
		report_found(r, VERDICT_WARNING, "%s: its last snapshot is %" PRId64 " hours old",
			of, hours);
	else
		report_found(r, VERDICT_WARNING,
			"%s: this run of the server has made no snapshot of it", of);
	report_cause(r, "nobody has asked for one in the last %u hours, or it has failed",
		terms->snapshot_max);
	report_remedy(r, "rmemfsctl snapshot EXPORT DIR, by a timer");
}

static void judge_snapshots(
	const json_t *export, const char *of, const struct health_terms *terms, struct report *r)
{
	const json_t *snapshot = json_object_get(export, "snapshot");
	const char *dir = ctl_json_text(snapshot, "dir");

	/* Not told to this key. */
	if (!json_object_get(export, "last_snapshot"))
		return;
	if (strcmp(ctl_json_text(snapshot, "state"), "failed") == 0) {
		report_begin(r, "snapshot");
		report_found(r, VERDICT_WARNING, "%s: the last snapshot%s%s%s has failed", of,
			*dir ? ", to " : "", dir, *dir ? "," : "");
		report_cause(r, "the server's log says why: journalctl -u rmemfs-server");
		report_remedy(r, "mend that, and take another: rmemfsctl snapshot EXPORT DIR");
	}
	judge_snapshot_age(export, of, terms, r);
}

/* ---- clients --------------------------------------------------------------------------------- */

enum session_fault { SESSION_SILENT, SESSION_AWAY, SESSION_ENDS, SESSION_FAULTS };

static const struct {
	const char *found, *cause, *remedy;
} session_faults[] = {
	[SESSION_SILENT] = {"is connected, and silent",
		"its process is stopped, its machine hangs, or the network is cut",
		"on its machine: rmemfsctl health; if others need its files: rmemfsctl evict "
		"SESSION"},
	[SESSION_AWAY] = {"is not connected",
		"its machine or its network is down; it keeps its files until others need them",
		"bring its machine back; if it is gone for good: rmemfsctl evict SESSION"},
	[SESSION_ENDS] = {"is to end, and its process still has the memory",
		"others get what it had when the process goes on or ends",
		"rmemfsctl status names the process; if ps shows its state as T: kill -CONT, or "
		"kill -9"},
};

/* SESSION_FAULTS: none. */
static enum session_fault fault_of(const json_t *session, uint64_t lease_ms)
{
	const char *state = ctl_json_text(session, "state");
	uint64_t ms = ctl_json_number(session, "silent_ms");

	if (strcmp(state, "active") == 0 && ms >= HEALTH_SILENT_MS)
		return SESSION_SILENT;
	if ((strcmp(state, "disconnected") == 0 || strcmp(state, "restored") == 0) &&
		ms >= max_u64(lease_ms, HEALTH_SILENT_MS))
		return SESSION_AWAY;
	if (strcmp(state, "ending") == 0 && json_array_size(json_object_get(session, "waits_for")))
		return SESSION_ENDS;
	return SESSION_FAULTS;
}

static void explain_fault(
	const json_t *status, const json_t *session, enum session_fault fault, struct report *r)
{
	uint64_t pid = ctl_json_number(session, "pid");
	char cause[HEALTH_CAUSE_CHARS];

	if (fault == SESSION_SILENT && json_is_true(json_object_get(session, "stopped"))) {
		report_cause(r, "its process %" PRIu64 " is stopped", pid);
		report_remedy(r, "kill -CONT %" PRIu64, pid);
	} else if (fault == SESSION_AWAY &&
		   health_waits_key_is_refused(status, session, cause, sizeof(cause))) {
		report_cause(r, "%s", cause);
		report_remedy(r, HEALTH_KEY_REMEDY);
	} else {
		report_cause(r, "%s", session_faults[fault].cause);
		report_remedy(r, "%s", session_faults[fault].remedy);
	}
}

static void judge_fault(const json_t *status, enum session_fault fault, struct report *r)
{
	const json_t *sessions = json_object_get(status, "sessions"), *session, *worst = NULL;
	uint64_t lease_ms = ctl_json_number(status, "lease_ms");
	char time[CTL_TIME_CHARS], more[AMOUNT_CHARS];
	const char *client;
	unsigned n = 0;
	size_t i;

	json_array_foreach(sessions, i, session)
	{
		if (fault_of(session, lease_ms) != fault)
			continue;
		n++;
		if (!worst ||
			ctl_json_number(session, "silent_ms") > ctl_json_number(worst, "silent_ms"))
			worst = session;
	}
	if (!n)
		return;
	client = ctl_json_text(worst, "client");
	report_begin(r, "sessions");
	report_found(r, VERDICT_WARNING, "export %s: session %" PRIu64 "%s%s %s, for %s%s",
		ctl_json_text(worst, "export"), ctl_json_number(worst, "id"), *client ? " of " : "",
		client, session_faults[fault].found,
		milliseconds(ctl_json_number(worst, "silent_ms"), time), and_more(n, more));
	explain_fault(status, worst, fault, r);
}

static bool is_on_tcp(const json_t *session)
{
	const json_t *channel = json_array_get(json_object_get(session, "channels"), 0);

	return strcmp(ctl_json_text(channel, "transport"), "tcp") == 0;
}

static bool listens_on_verbs(const json_t *status)
{
	const json_t *address;
	size_t i;

	json_array_foreach(json_object_get(status, "listen"), i,
		address) if (strncmp(json_string_value(address) ? json_string_value(address) : "",
				     "verbs:", 6) == 0) return true;
	return false;
}

/* A client may have no RDMA device, so this is a note. */
static void judge_transports(const json_t *status, const json_t *sessions, struct report *r)
{
	const json_t *session;
	unsigned n = 0;
	size_t i;

	json_array_foreach(sessions, i, session) n += is_on_tcp(session);
	if (!n || !listens_on_verbs(status))
		return;
	report_begin(r, "transport");
	report_found(r, VERDICT_NOTE,
		"server: %u of its %zu sessions are on tcp, and it listens on "
		"verbs",
		n, json_array_size(sessions));
	report_cause(r, "their machines have no RDMA device that leads here, or verbs failed when "
			"they were mounted");
	report_remedy(r, "on such a machine: rmemfsctl doctor HOST");
}

/* ---- keys ------------------------------------------------------------------------------------ */

static uint64_t days_unused(const json_t *key)
{
	return ctl_json_number(key, "unused_ms") / 1000 / S_PER_HOUR / 24;
}

bool health_server_key_is_unused(const json_t *key)
{
	return days_unused(key) >= HEALTH_KEY_DAYS;
}

static void tell_unused(const json_t *worst, unsigned n, struct report *r)
{
	const char *id = ctl_json_text(worst, "key"), *file = ctl_json_text(worst, "file");
	char more[AMOUNT_CHARS];

	report_begin(r, "keys");
	if (*id)
		report_found(r, VERDICT_NOTE,
			"server: no client has used key %s in %" PRIu64 " days%s", id,
			days_unused(worst), and_more(n, more));
	else
		report_found(r, VERDICT_NOTE,
			"server: no client has used %u of its keys in %d days", n, HEALTH_KEY_DAYS);
	report_cause(r,
		"the client is gone, or has another key; and this one still lets in whoever "
		"has a copy");
	report_remedy(r, "if nobody needs it, take it out of %s: rmemfsctl reload",
		*file ? file : "its file on the server");
}

static void judge_keys(const json_t *status, struct report *r)
{
	const json_t *key, *worst = NULL;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(status, "keys"), i, key)
	{
		if (!health_server_key_is_unused(key))
			continue;
		n++;
		if (!worst || days_unused(key) > days_unused(worst))
			worst = key;
	}
	if (n)
		tell_unused(worst, n, r);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void judge_export(const json_t *export, const json_t *status,
	const struct health_terms *terms, struct report *r)
{
	struct level l = {.check = ""};

	snprintf(l.of, sizeof(l.of), "export %s", ctl_json_text(export, "name"));
	judge_lost(export, l.of, r);
	judge_memory(export, &l, r);
	judge_inodes(export, &l, r);
	judge_metadata(export, &l, r);
	judge_quotas(export, l.of, r);
	judge_snapshots(export, l.of, terms, r);
	health_waits_judge_export(export, status, r);
}

void health_server_judge(const json_t *status, const struct health_terms *terms, struct report *r)
{
	const json_t *sessions = json_object_get(status, "sessions"), *export;
	size_t i;

	health_waits_judge_cpu(status, r);
	json_array_foreach(json_object_get(status, "exports"), i, export)
		judge_export(export, status, terms, r);
	for (unsigned fault = 0; fault < SESSION_FAULTS; fault++)
		judge_fault(status, (enum session_fault)fault, r);
	health_waits_judge_server(status, r);
	judge_transports(status, sessions, r);
	judge_keys(status, r);
	if (!ctl_is_for_mounts(status))
		return;
	report_begin(r, "server");
	report_found(r, VERDICT_NOTE,
		"server: this key sees its own mounts alone: quotas, snapshots and recalls were not "
		"looked at");
	report_remedy(r, "run this on the server, or with a key whose access is \"status\"");
}
