#include "daemon/ctl/survey/health_mount.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/ctl/cpu_text.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/print_mount.h"

/* A mount's parts that most findings name. */
struct subject {
	const char *place;
	const json_t *answer;
	char number[32];                  /* the place, if it is not told */
	char quoted[REPORT_QUOTED_BYTES]; /* the place, for a shell */
	char host[REPORT_QUOTED_BYTES];   /* the server, as an operand of rmemfsctl */
	char source[REPORT_QUOTED_BYTES];
};

/* A word of a remedy, or what stands there for one that is not told. */
static void name_word(const char *text, const char *otherwise, char word[REPORT_QUOTED_BYTES])
{
	if (*text)
		report_quote(text, word);
	else
		snprintf(word, REPORT_QUOTED_BYTES, "%s", otherwise);
}

/* "tcp 10.0.0.1:7470" is tcp:10.0.0.1:7470 there. */
static void name_host(const json_t *answer, char host[REPORT_QUOTED_BYTES])
{
	char text[REPORT_QUOTED_BYTES];
	char *blank;

	snprintf(text, sizeof(text), "%s", ctl_json_text(answer, "server"));
	blank = strchr(text, ' ');
	if (blank)
		*blank = ':';
	name_word(text, "HOST", host);
}

static void name_place(struct subject *s, const json_t *mount)
{
	snprintf(s->number, sizeof(s->number), "mount %" PRIu64,
		ctl_json_number(mount, "connection"));
	s->place = ctl_json_text(mount, "mountpoint");
	name_word(s->place, "MOUNTPOINT", s->quoted);
	name_word(ctl_json_text(mount, "source"), "HOST:/EXPORT", s->source);
	if (!*s->place)
		s->place = s->number;
}

static const char *milliseconds(uint64_t ms, char buf[CTL_TIME_CHARS])
{
	return ctl_time_text(ms * 1000000, buf);
}

/* ---- no answer ------------------------------------------------------------------------------- */

static void judge_unanswered(const struct subject *s, const json_t *mount, struct report *r)
{
	bool allowed = json_is_true(json_object_get(mount, "allowed"));
	const char *error = ctl_json_text(mount, "error");

	report_begin(r, "mount");
	report_found(r, allowed ? VERDICT_FAILURE : VERDICT_UNKNOWN, "%s: %s", s->place,
		allowed ? "no answer from its daemon" : "this user may not ask its daemon");
	if (*error)
		report_cause(r, "%s", error);
	else
		report_cause(r, "%s",
			allowed ? "it has ended, is stopped, or this machine gives it no CPU"
				: "its socket is for others");
	if (allowed)
		report_remedy(r, "rmemfsctl doctor names the daemon's process, if there is one");
	else
		report_remedy(r, "run this as root, or as a member of the group rmemfs-monitor");
}

/* ---- the connection -------------------------------------------------------------------------- */

/* True: the connection is as it should be, and there may be more to find. */
static bool judge_away(const struct subject *s, const char *state, struct report *r)
{
	uint64_t ms = ctl_json_number(s->answer, "state_ms");
	const json_t *session = json_object_get(s->answer, "session");
	const char *attempt = ctl_json_text(session, "last_attempt");
	const char *loss = *attempt ? attempt : ctl_json_text(session, "last_loss");
	enum verdict verdict = ms >= HEALTH_AWAY_MS ? VERDICT_FAILURE : VERDICT_WARNING;
	const char *server = ctl_json_text(s->answer, "server");
	bool silent = strcmp(state, "silent") == 0;
	char time[CTL_TIME_CHARS];

	if (!silent && strcmp(state, "connecting") != 0 && strcmp(state, "reconnecting") != 0)
		return true;
	report_found(r, verdict, "%s: %s for %s", s->place,
		silent ? "its server is silent" : "no connection to its server",
		milliseconds(ms, time));
	if (silent)
		report_cause(r,
			"the connection stands, but %s does not answer: it is stopped or "
			"overloaded, or the network is cut",
			*server ? server : "the server");
	else
		report_cause(
			r, "%s", *loss ? loss : "the server does not run, or the network is cut");
	report_remedy(
		r, "on the server: rmemfsctl health; from here: rmemfsctl doctor %s", s->host);
	return false;
}

static bool judge_state(const struct subject *s, struct report *r)
{
	const char *state = ctl_json_text(s->answer, "state");

	report_begin(r, "connection");
	if (strcmp(state, "lost") == 0) {
		report_found(r, VERDICT_FAILURE,
			"%s: its files are lost, and all fails with ESTALE", s->place);
		report_cause(r, "the server does not know the mount's session: its memory is "
				"another one than before");
		report_remedy(r, "umount %s, and mount again; a service rmemfs@ does so by itself",
			s->quoted);
		return false;
	}
	if (strcmp(state, "stopped") == 0) {
		report_found(r, VERDICT_FAILURE,
			"%s: at least one I/O thread of its daemon does "
			"not run",
			s->place);
		report_cause(r, "the process is stopped, or this machine gives it no CPU");
		report_remedy(r,
			"ps -L -o tid,stat,wchan,comm -p %" PRIu64
			"; if it is stopped (T): kill -CONT %" PRIu64,
			ctl_json_number(s->answer, "pid"), ctl_json_number(s->answer, "pid"));
		return false;
	}
	if (strcmp(state, "renewing") == 0) {
		report_found(r, VERDICT_WARNING, "%s: it begins another session", s->place);
		report_cause(r, "the server has ended the session: its log says why");
		report_remedy(r, "wait; if it lasts: rmemfsctl doctor %s", s->host);
		return false;
	}
	return judge_away(s, state, r);
}

/* ---- the daemon itself ----------------------------------------------------------------------- */

/* A pause may be over, and come again. */
static void judge_cpu(const struct subject *s, struct report *r)
{
	struct cpu_wait_view view;
	char text[CPU_WAIT_TEXT_BYTES], time[CTL_TIME_CHARS];

	if (!ctl_cpu_view(s->answer, &view))
		return;
	report_begin(r, "cpu");
	if (view.recent_pauses >= HEALTH_PAUSES)
		report_found(r, VERDICT_WARNING,
			"%s: its daemon did not run %u times within minutes, the longest for %s",
			s->place, view.recent_pauses,
			milliseconds((uint64_t)view.longest_pause_ms, time));
	else if (view.starved && view.late_ms < CPU_WAIT_PAUSE_MS)
		report_found(r, VERDICT_WARNING, "%s: its daemon %s", s->place,
			cpu_wait_text(&view, text));
	else
		return;
	report_cause(r, "%s",
		view.throttled ? "a quota of its control group keeps it from running"
			       : "something stops its process for moments, or other programs have "
				 "this machine's CPUs");
	report_remedy(r,
		"here: top; look for what stops process %" PRIu64 " (a debugger, cpulimit, a "
		"frozen control group), and for CPUQuota= of its unit",
		ctl_json_number(s->answer, "pid"));
}

/* ---- requests -------------------------------------------------------------------------------- */

static const json_t *oldest_request(const json_t *answer)
{
	const json_t *request, *oldest = NULL;
	size_t i;

	json_array_foreach(json_object_get(answer, "requests"), i,
		request) if (!oldest || ctl_json_number(request, "age_ms") >
						ctl_json_number(oldest, "age_ms")) oldest = request;
	return oldest;
}

static void judge_requests(const struct subject *s, struct report *r)
{
	uint64_t ms = ctl_json_number(s->answer, "oldest_request_ms");
	const json_t *oldest = oldest_request(s->answer);
	char time[CTL_TIME_CHARS], operation[64] = "";

	if (ms < HEALTH_LATE_MS)
		return;
	if (oldest)
		snprintf(operation, sizeof(operation), " (%s)", ctl_json_text(oldest, "operation"));
	report_begin(r, "requests");
	report_found(r, ms >= HEALTH_HUNG_MS ? VERDICT_FAILURE : VERDICT_WARNING,
		"%s: a request%s has waited for %s", s->place, operation, milliseconds(ms, time));
	if (!oldest || strcmp(ctl_json_text(oldest, "waits_for"), "nothing") == 0)
		report_cause(r, "the daemon carries it out, or has just ended it");
	else
		report_cause(
			r, "it waits for %s", ctl_wait_text(ctl_json_text(oldest, "waits_for")));
	report_remedy(r, "rmemfsctl status %s shows all that wait", s->quoted);
}

/* ---- room ------------------------------------------------------------------------------------ */

static void judge_room(const struct subject *s, struct report *r)
{
	const json_t *ago = json_object_get(s->answer, "no_room_ms");
	char time[CTL_TIME_CHARS];

	if (!json_is_integer(ago) || json_integer_value(ago) >= HEALTH_NO_ROOM_MS)
		return;
	report_begin(r, "room");
	report_found(r, VERDICT_WARNING, "%s: a program was told ENOSPC %s ago", s->place,
		milliseconds(ctl_json_number(s->answer, "no_room_ms"), time));
	report_cause(r, "the export has no memory, no inodes or no metadata left");
	report_remedy(r, "df %s; df -i %s; on the server: rmemfsctl health", s->quoted, s->quoted);
}

/* ---- the transport --------------------------------------------------------------------------- */

static void judge_transport(const struct subject *s, const char *verbs_device, struct report *r)
{
	if (!verbs_device || strcmp(ctl_json_text(s->answer, "transport"), "tcp") != 0)
		return;
	report_begin(r, "transport");
	report_found(r, VERDICT_WARNING,
		"%s: it is on tcp, and the RDMA device %s leads to its "
		"server",
		s->place, verbs_device);
	if (*ctl_json_text(s->answer, "no_verbs"))
		report_cause(r, "%s", ctl_json_text(s->answer, "no_verbs"));
	else
		report_cause(r, "it has not looked yet since the device is there");
	report_remedy(r,
		"rmemfsctl doctor %s says more; the mount comes to verbs within a minute after "
		"the repair. If tcp is meant, mount with transport=tcp",
		s->source);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void judge_program(const struct subject *s, struct report *r)
{
	if (!json_is_true(json_object_get(s->answer, "outdated")))
		return;
	report_begin(r, "program");
	report_found(r, VERDICT_NOTE, "%s: its daemon runs the program from before an upgrade",
		s->place);
	report_cause(r, "the file of its program was replaced or removed since it was mounted");
	report_remedy(r,
		"rmemfsctl upgrade %s, or systemctl reload of its service rmemfs@: open files stay",
		s->quoted);
}

void health_mount_judge(const json_t *mount, const char *verbs_device, struct report *r)
{
	struct subject s = {.answer = json_object_get(mount, "answer")};

	name_place(&s, mount);
	if (!json_is_object(s.answer)) {
		judge_unanswered(&s, mount, r);
		return;
	}
	name_host(s.answer, s.host);
	if (judge_state(&s, r))
		judge_requests(&s, r);
	judge_room(&s, r);
	judge_cpu(&s, r);
	judge_transport(&s, verbs_device, r);
	judge_program(&s, r);
}
