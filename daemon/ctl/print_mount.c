#include "daemon/ctl/print_mount.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "common/conf/conf.h"
#include "daemon/ctl/cpu_text.h"
#include "daemon/ctl/json.h"

enum { SIZE_CHARS = 32, LATE_MS = 1000 };

const char *ctl_time_text(uint64_t ns, char buf[CTL_TIME_CHARS])
{
	static const struct {
		uint64_t below, unit;
		const char *name;
	} units[] = {{1000000, 1000, "us"}, {1000000000, 1000000, "ms"},
		{UINT64_C(3600) * 1000000000, 1000000000, "s"}};

	if (ns < 1000) {
		snprintf(buf, CTL_TIME_CHARS, "%" PRIu64 " ns", ns);
		return buf;
	}
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (ns >= units[i].below)
			continue;
		snprintf(buf, CTL_TIME_CHARS, "%" PRIu64 ".%" PRIu64 " %s", ns / units[i].unit,
			ns % units[i].unit / (units[i].unit / 10), units[i].name);
		return buf;
	}
	snprintf(buf, CTL_TIME_CHARS, "%" PRIu64 " h %" PRIu64 " min", ns / 1000000000 / 3600,
		ns / 1000000000 / 60 % 60);
	return buf;
}

static const char *age_text(const json_t *object, const char *key, char buf[CTL_TIME_CHARS])
{
	return ctl_time_text(ctl_json_number(object, key) * 1000000, buf);
}

/* ---- one mount ------------------------------------------------------------------------------- */

/* "connected", "silent for 12.3 s" */
static const char *state_text(const json_t *root, char *buf, size_t len)
{
	char ms[CTL_TIME_CHARS];

	if (ctl_json_number(root, "state_ms"))
		snprintf(buf, len, "%s for %s", ctl_json_text(root, "state"),
			age_text(root, "state_ms", ms));
	else
		snprintf(buf, len, "%s", ctl_json_text(root, "state"));
	return buf;
}

/* The meaning of a state other than "connected", and what to do. */
static void print_remedy(const json_t *root)
{
	static const struct {
		const char *state, *text;
	} remedies[] = {
		{"lost", "the server does not know this mount's session any more: every file gives "
			 "ESTALE; unmount, and mount again"},
		{"stopped",
			"at least one I/O thread of the daemon does not run: look at the process "
			"(SIGCONT, memory, CPU)"},
		{"reconnecting", "operations wait for the server; see 'rmemfsctl status' with its "
				 "address"},
		{"silent",
			"the connection stands, but the server does not answer: it is stopped, or "
			"the path to it is cut"},
		{"renewing", "the server has ended the session, and the mount begins another one"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
		if (strcmp(ctl_json_text(root, "state"), remedies[i].state) == 0)
			printf("            %s\n", remedies[i].text);
}

/* How the daemon's own threads run. */
static void print_pauses(const json_t *root)
{
	struct cpu_wait_view view;
	char text[CPU_WAIT_TEXT_BYTES], time[CTL_TIME_CHARS];

	if (!ctl_cpu_view(root, &view))
		return;
	if (view.starved)
		printf("            this daemon %s\n", cpu_wait_text(&view, text));
	if (view.npauses)
		printf("            this daemon did not run %" PRIu64
		       " times (stopped, or no CPU), "
		       "for %s at most\n",
			view.npauses,
			ctl_time_text((uint64_t)view.longest_pause_ms * 1000000, time));
}

static const char *others_text(const json_t *options)
{
	if (json_is_true(json_object_get(options, "exclusive")))
		return "no other mount is let in (exclusive)";
	return json_is_true(json_object_get(options, "share"))
		       ? "other mounts share the export, or did a while ago: it goes by leases"
		       : "no other mount writes: it is alone";
}

static void print_others(const json_t *root)
{
	const json_t *sharing = json_object_get(root, "sharing");
	uint64_t begun = ctl_json_number(sharing, "begun"),
		 ended = ctl_json_number(sharing, "ended");
	uint64_t keep_out = ctl_json_number(sharing, "keep_out");

	printf("others      %s\n", others_text(json_object_get(root, "options")));
	if (json_is_true(json_object_get(sharing, "under_way")))
		printf("            that is about to change\n");
	if (keep_out)
		printf("            another mount waits until files that are open for writing are "
		       "closed: %" PRIu64 "\n",
			keep_out);
	if (begun || ended)
		printf("            it has begun to share %" PRIu64 " times, and ended %" PRIu64
		       " times\n",
			begun, ended);
}

/* Those that the mount answers by itself. */
static void print_locks(const json_t *root)
{
	const json_t *locks = json_object_get(root, "locks");
	uint64_t had = ctl_json_number(locks, "had"), waits = ctl_json_number(locks, "waits");

	if (had || waits)
		printf("locks       %" PRIu64 " had, %" PRIu64 " callers wait for one\n", had,
			waits);
}

static void print_head(const json_t *root)
{
	const json_t *session = json_object_get(root, "session");
	const json_t *options = json_object_get(root, "options");
	char text[CLOCK_TEXT_BYTES], state[64], size[SIZE_CHARS];

	printf("mount       %s of %s\n", ctl_json_text(root, "mountpoint"),
		ctl_json_text(root, "source"));
	printf("daemon      rmemfs %s, pid %" PRIu64 ", since %s\n", ctl_json_text(root, "version"),
		ctl_json_number(root, "pid"),
		clock_format((int64_t)ctl_json_number(root, "mounted"), -1, text));
	printf("server      %s, protection: %s, wire protocol %" PRIu64 "\n",
		ctl_json_text(root, "server"), ctl_json_text(root, "protection"),
		ctl_json_number(root, "wire_version"));
	if (*ctl_json_text(root, "no_verbs"))
		printf("            not over verbs: %s\n", ctl_json_text(root, "no_verbs"));
	printf("state       %s\n", state_text(root, state, sizeof(state)));
	print_remedy(root);
	if (ctl_json_number(session, "losses"))
		printf("            connection lost %" PRIu64 " times, the last time: %s\n",
			ctl_json_number(session, "losses"), ctl_json_text(session, "last_loss"));
	if (*ctl_json_text(session, "last_attempt"))
		printf("            the last attempt to connect: %s\n",
			ctl_json_text(session, "last_attempt"));
	print_pauses(root);
	size_format(ctl_json_number(root, "granted"), size, sizeof(size));
	printf("session     %" PRIu64 "%s%s, %s of free memory lent\n",
		ctl_json_number(session, "id"),
		json_is_true(json_object_get(session, "read_only")) ? ", read-only" : "",
		json_is_true(json_object_get(session, "squashed")) ? ", users are squashed" : "",
		size);
	print_others(root);
	print_locks(root);
	printf("options     cache=%s, ack=%s, names=%s, io_threads=%" PRIu64 "\n",
		ctl_json_text(options, "cache"), ctl_json_text(options, "ack"),
		ctl_json_text(options, "names"), ctl_json_number(options, "io_threads"));
}

static void print_ops(const json_t *ops)
{
	const char *name;
	json_t *op;
	bool any = false;

	json_object_foreach((json_t *)ops, name, op)
	{
		uint64_t n = ctl_json_number(op, "count");
		char mean[CTL_TIME_CHARS], p50[CTL_TIME_CHARS], p99[CTL_TIME_CHARS],
			bytes[SIZE_CHARS];

		if (!any)
			printf("\n%-12s %12s %9s %10s %10s %10s %10s\n", "operation", "count",
				"errors", "bytes", "mean", "p50", "p99");
		any = true;
		size_format(ctl_json_number(op, "bytes"), bytes, sizeof(bytes));
		printf("%-12s %12" PRIu64 " %9" PRIu64 " %10s %10s %10s %10s\n", name, n,
			ctl_json_number(op, "errors"), bytes,
			ctl_time_text(n ? ctl_json_number(op, "total_ns") / n : 0, mean),
			ctl_time_text(ctl_json_number(op, "p50_ns"), p50),
			ctl_time_text(ctl_json_number(op, "p99_ns"), p99));
	}
}

const char *ctl_wait_text(const char *waits_for)
{
	static const struct {
		const char *wait, *text;
	} texts[] = {
		{"nothing", "is carried out"},
		{"server", "the server's answer"},
		{"transfer", "bytes on their way"},
		{"pages", "free pages of the export: see 'rmemfsctl status' of the server"},
		{"quota", "room in its owner's quota: see 'rmemfsctl quota' of the server"},
		{"lease", "another mount that has the file: see 'rmemfsctl who' of the server"},
		{"snapshot", "a snapshot, which is about to begin"},
		{"session", "another session"},
		{"buffer", "a free buffer: all are in use"},
		{"kernel", "the kernel, which drops pages of the file"},
		{"same pages", "an earlier read or write of the same pages"},
		{"same file", "an earlier change of the same file"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (strcmp(waits_for, texts[i].wait) == 0)
			return texts[i].text;
	return waits_for;
}

static void print_requests(const json_t *requests)
{
	const json_t *r;
	bool any = false;
	size_t i;

	json_array_foreach(requests, i, r)
	{
		char age[CTL_TIME_CHARS];

		if (ctl_json_number(r, "age_ms") < LATE_MS)
			continue;
		if (!any)
			printf("\n%-12s %10s %10s %8s  %s\n", "operation", "since", "inode", "pid",
				"waits for");
		any = true;
		printf("%-12s %10s %10" PRIu64 " %8" PRIu64 "  %s%s%s%s\n",
			ctl_json_text(r, "operation"), age_text(r, "age_ms", age),
			ctl_json_number(r, "inode"), ctl_json_number(r, "pid"),
			ctl_wait_text(ctl_json_text(r, "waits_for")),
			*ctl_json_text(r, "rpc") ? " to " : "", ctl_json_text(r, "rpc"),
			json_is_true(json_object_get(r, "for_mounts"))
				? ", and that for another mount that has the file: see 'rmemfsctl "
				  "who' of the server"
				: "");
	}
}

void ctl_print_mount(const json_t *root)
{
	print_head(root);
	print_requests(json_object_get(root, "requests"));
	print_ops(json_object_get(root, "operations"));
}

/* ---- all mounts ------------------------------------------------------------------------------ */

static int width_of(const json_t *list, const char *key, const char *title)
{
	const json_t *m;
	size_t i, width = strlen(title);

	json_array_foreach(list, i, m) width = max_u64(width, strlen(ctl_json_text(m, key)));
	return (int)width;
}

void ctl_print_mounts(const json_t *list)
{
	int places = width_of(list, "mountpoint", "mount point");
	int sources = width_of(list, "source", "source");
	const json_t *m;
	size_t i;

	if (!json_array_size(list)) {
		printf("no rmemfs is mounted here\n");
		return;
	}
	printf("%-*s  %-*s  %-9s  %-10s  %s\n", places, "mount point", sources, "source",
		"transport", "oldest", "state");
	json_array_foreach(list, i, m)
	{
		const json_t *answer = json_object_get(m, "answer");
		uint64_t oldest = ctl_json_number(answer, "oldest_request_ms");
		const char *attempt =
			ctl_json_text(json_object_get(answer, "session"), "last_attempt");
		char state[64], age[CTL_TIME_CHARS];

		printf("%-*s  %-*s  %-9s  %-10s  %s%s%s\n", places, ctl_json_text(m, "mountpoint"),
			sources, ctl_json_text(m, "source"),
			*ctl_json_text(answer, "transport") ? ctl_json_text(answer, "transport")
							    : "?",
			oldest >= LATE_MS ? age_text(answer, "oldest_request_ms", age) : "-",
			json_is_null(answer) ? ctl_json_text(m, "error")
					     : state_text(answer, state, sizeof(state)),
			*attempt ? ": " : "", attempt);
	}
}
