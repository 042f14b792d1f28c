#include "daemon/ctl/doctor/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/base/util.h"
#include "common/conf/conf.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/print.h"
#include "daemon/ctl/doctor/remedy.h"

enum { SIZE_CHARS = 32, TIME_CHARS = 32 };

/* ---- the answer ------------------------------------------------------------------------------ */

static void note_exports(const json_t *root, struct doctor_seen *seen)
{
	const json_t *export;
	size_t i;

	json_array_foreach(json_object_get(root, "exports"), i, export)
	{
		if (i < DOCTOR_EXPORTS_MAX) {
			snprintf(seen->exports[i].name, sizeof(seen->exports[i].name), "%s",
				ctl_json_text(export, "name"));
			seen->exports[i].bytes = ctl_json_number(export, "bytes");
			seen->exports[i].free = ctl_json_number(export, "free");
		}
		seen->nexports = (unsigned)i + 1;
	}
}

void answer_note(const char *text, struct doctor_seen *seen)
{
	json_t *root = ctl_json_read(text);

	*seen = (struct doctor_seen){0};
	if (!root)
		return;
	ctl_json_clean(root);
	seen->stranger = ctl_is_for_strangers(root);
	snprintf(seen->version, sizeof(seen->version), "%s", ctl_json_text(root, "version"));
	snprintf(seen->memory_dir, sizeof(seen->memory_dir), "%s",
		ctl_json_text(root, "memory_dir"));
	note_exports(root, seen);
	seen->answered = true;
	json_decref(root);
}

/* ---- exports --------------------------------------------------------------------------------- */

/* Below a twentieth writers soon get ENOSPC. */
static void judge_export(const struct doctor_seen *seen, unsigned i, struct report *r)
{
	uint64_t bytes = seen->exports[i].bytes, left = seen->exports[i].free;
	char size[SIZE_CHARS], free[SIZE_CHARS];
	bool full = left < bytes / 20;

	size_format(bytes, size, sizeof(size));
	size_format(left, free, sizeof(free));
	report_found(r, full ? VERDICT_WARNING : VERDICT_OK, "export %s has %s free of %s",
		seen->exports[i].name, free, size);
	if (!full)
		return;
	report_cause(r, "files, and pages that are lent to clients, take nearly all of it");
	report_remedy(r, REMEDY_MEMORY);
}

void answer_judge_exports(const struct doctor_seen *seen, bool key, struct report *r)
{
	if (!seen->answered)
		return;
	if (strcmp(seen->version, RMEMFS_VERSION) != 0)
		report_found(r, VERDICT_NOTE, "the server is of release %s, this program of %s",
			seen->version, RMEMFS_VERSION);
	if (seen->stranger && !key) {
		report_found(r, VERDICT_NOTE,
			"what may be mounted is not told to strangers: name the key (--key FILE)");
		return;
	}
	if (!seen->nexports) {
		report_found(r, VERDICT_WARNING, "the server shows no export to this key");
		report_cause(
			r, "no export's clients name the key, or their hosts lack this machine");
		report_remedy(r, "on the server, in an export of server.conf: clients = ( { name = "
				 "\"NAME\"; keys = \"FILE\"; } ); then rmemfsctl reload");
		return;
	}
	for (unsigned i = 0; i < seen->nexports && i < DOCTOR_EXPORTS_MAX; i++)
		judge_export(seen, i, r);
	if (seen->nexports > DOCTOR_EXPORTS_MAX)
		report_found(r, VERDICT_NOTE, "%u more exports are not listed",
			seen->nexports - DOCTOR_EXPORTS_MAX);
}

static bool has_proven(const struct doctor *d)
{
	for (unsigned i = 0; i < TRANSPORT_NKINDS; i++)
		if (d->tries[i].tried && !d->tries[i].err && d->tries[i].course.key_id[0])
			return true;
	return false;
}

void answer_check_exports(struct doctor *d)
{
	bool local = d->tries[TRANSPORT_SHM].tried && !d->tries[TRANSPORT_SHM].err;

	answer_judge_exports(&d->seen, local || has_proven(d), &d->report);
}

/* ---- the memory directory of a server on this machine ---------------------------------------- */

void answer_check_memory_dir(struct doctor *d)
{
	char size[SIZE_CHARS], free[SIZE_CHARS];
	struct statvfs fs;

	if (!d->local || !d->seen.memory_dir[0] || statvfs(d->seen.memory_dir, &fs) != 0)
		return;
	size_format((uint64_t)fs.f_blocks * fs.f_frsize, size, sizeof(size));
	size_format((uint64_t)fs.f_bavail * fs.f_frsize, free, sizeof(free));
	report_found(&d->report, VERDICT_OK,
		"the server's memory is in %s, whose filesystem has %s free of %s",
		d->seen.memory_dir, free, size);
}

/* ---- latency --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t median(const int64_t *values, unsigned n)
{
	int64_t sorted[CTL_ROUNDS_MAX];

	if (!n)
		return 0;
	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), compare);
	return sorted[n / 2];
}

static const char *milliseconds(int64_t ns, char buf[TIME_CHARS])
{
	snprintf(buf, TIME_CHARS, "%" PRId64 ".%03" PRId64 " ms", ns / 1000000, ns / 1000 % 1000);
	return buf;
}

/* A question costs the server less than a tenth of this when it has nothing else to do. */
#define SLOW_NS INT64_C(20000000)

void answer_judge_latency(enum transport_kind kind, const struct doctor_try *try, struct report *r)
{
	int64_t question = median(try->course.round_ns, try->course.nrounds);
	char wire[TIME_CHARS], hello[TIME_CHARS], proof[TIME_CHARS], asked[TIME_CHARS];
	bool slow = question > SLOW_NS && question > 10 * try->wire_ns;

	milliseconds(try->wire_ns, wire);
	milliseconds(try->course.connect_ns, hello);
	milliseconds(try->course.prove_ns, proof);
	milliseconds(question, asked);
	report_found(r, slow ? VERDICT_WARNING : VERDICT_OK,
		"%s: the wire %s; connection and hello %s; proof %s; question and answer %s (median "
		"of %u)",
		transport_kind_name(kind), try->wire_ns ? wire : "not measured", hello,
		try->course.prove_ns ? proof : "none", asked, try->course.nrounds);
	if (!slow)
		return;
	report_cause(r, "the server is busy, short of CPU, or swaps; or others ask for its status, "
			"too: it gives ten answers a second");
	report_remedy(r, "on the server: rmemfsctl status; top; vmstat 1; journalctl -u "
			 "rmemfs-server");
}

void answer_check_latency(struct doctor *d)
{
	for (unsigned kind = 0; kind < TRANSPORT_NKINDS; kind++)
		if (d->tries[kind].tried && !d->tries[kind].err)
			answer_judge_latency(
				(enum transport_kind)kind, &d->tries[kind], &d->report);
}

void answer_check_bandwidth(struct doctor *d)
{
	if (d->seen.answered)
		report_found(&d->report, VERDICT_NOTE,
			"not measured: bytes of files move only for a mount (dd in the mount shows "
			"it; ib_write_bw or iperf3 that of the wire)");
}

void answer_check_clock(struct doctor *d)
{
	if (d->seen.answered)
		report_found(&d->report, VERDICT_NOTE,
			"not compared: the server does not tell its time, and no step of a "
			"connection depends on it");
}
