/* health.c - asks the mounts and the server, and prints what the judgements have found. */
#include "daemon/ctl/survey/health.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/base/util.h"
#include "common/transport/address.h"
#include "common/transport/verbs/inspect.h"
#include "daemon/ctl/args.h"
#include "daemon/ctl/bounded.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/doctor/quiet.h"
#include "daemon/ctl/doctor/report.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/mount_ask.h"
#include "daemon/ctl/print.h"
#include "daemon/ctl/survey/health_mount.h"
#include "daemon/ctl/survey/health_server.h"

enum { MOUNT_MS = 1000, SERVER_MS = 3000, VERBS_MS = 1000 };

/* The findings, and the number of things that were looked at. */
struct survey {
	struct report report;
	unsigned nmounts, nservers;
	size_t nexports;
};

/* ---- mounts ---------------------------------------------------------------------------------- */

/* Prints the RDMA device that leads to a mount's server. Of a process of its own: librdmacm and the
 * drivers may block, and complain on standard error. */
static void find_device(void *arg)
{
	const char *source = arg;
	struct transport_address address;
	struct verbs_path path;
	char why[256];
	bool named;

	quiet_begin();
	if (verbs_any_device() &&
		ctl_parse_where(source, &address, &named, why, sizeof(why)) == 0 &&
		verbs_inspect_path(&address, VERBS_MS, &path) == 0)
		printf("%s", path.device);
}

/* Of a mount that may use verbs and is on tcp; the caller frees it. NULL: none. */
static char *device_to(const json_t *mount)
{
	const json_t *answer = json_object_get(mount, "answer");
	const char *source = json_string_value(json_object_get(mount, "source"));
	struct bounded_text found;

	if (!source || strcmp(ctl_json_text(answer, "transport"), "tcp") != 0 ||
		!json_is_true(json_object_get(json_object_get(answer, "options"), "verbs")))
		return NULL;
	if (bounded_read(find_device, (void *)source, 3 * VERBS_MS, VERBS_NAME_BYTES, &found) ==
			0 &&
		found.len)
		return found.text;
	free(found.text);
	return NULL;
}

static void judge_mount(struct survey *s, json_t *mount)
{
	autofree char *device = device_to(mount);

	s->nmounts++;
	ctl_json_clean(mount);
	health_mount_judge(mount, device, &s->report);
}

static void judge_mounts(struct survey *s)
{
	json_t *list, *mount;
	size_t i;
	int err = ctl_list_own_mounts(MOUNT_MS, &list);

	if (err) {
		report_begin(&s->report, "mount");
		report_found(&s->report, VERDICT_UNKNOWN, "the mounts can't be listed");
		report_cause(&s->report, "/proc/self/mountinfo: %s", errno_text(err));
		report_remedy(&s->report, "mount /proc");
		return;
	}
	json_array_foreach(list, i, mount) judge_mount(s, mount);
	json_decref(list);
}

static void tell_unmounted(struct survey *s, const char *where)
{
	char quoted[REPORT_QUOTED_BYTES];

	s->nmounts++;
	report_begin(&s->report, "mount");
	report_found(&s->report, VERDICT_FAILURE, "%s: no rmemfs is mounted there", where);
	report_cause(&s->report, "it was unmounted, or its mount has failed: see the journal");
	report_remedy(&s->report,
		"mount %s, if it is in /etc/fstab; systemctl start rmemfs@NAME, if it "
		"is a service",
		report_quote(where, quoted));
}

/* ---- the server ------------------------------------------------------------------------------ */

/* Nothing is known of a server that could not be asked. */
static bool is_forbidden(const struct health_wish *wish, int err)
{
	return err == -EACCES || err == -EPERM || (wish->key_file && access(wish->key_file, R_OK));
}

static void tell_unanswered(struct survey *s, const char *where, bool forbidden, const char *why)
{
	report_begin(&s->report, "server");
	report_found(&s->report, forbidden ? VERDICT_UNKNOWN : VERDICT_FAILURE, "server %s: %s",
		where, forbidden ? "it can't be asked" : "no answer");
	report_cause(&s->report, "%s", why);
	report_remedy(&s->report,
		forbidden
			? "run this as root, or name an address and a key (--key FILE)"
			: "on its machine: systemctl status rmemfs-server; ps -C rmemfs-server -o "
			  "pid,stat,wchan (T: kill -CONT); rmemfsctl doctor names the step that "
			  "fails");
}

static void judge_stranger(struct survey *s, const char *where)
{
	report_begin(&s->report, "server");
	report_found(&s->report, VERDICT_UNKNOWN,
		"server %s: it answers, and tells strangers no more", where);
	report_cause(&s->report, "it was asked by an address, and without a key that it accepts");
	report_remedy(&s->report, "name a key whose access is \"status\" (--key FILE)");
}

static void judge_status(struct survey *s, const struct health_wish *wish, json_t *status)
{
	const struct health_terms terms = {time(NULL), wish->snapshot_max};

	ctl_json_clean(status);
	s->nexports += json_array_size(json_object_get(status, "exports"));
	health_server_judge(status, &terms, &s->report);
}

static void judge_server(struct survey *s, const char *where, const struct health_wish *wish)
{
	autofree char *text = NULL;
	int64_t round_trip_ns;
	char why[512];
	json_t *status;
	int err = ctl_fetch_status(
		where, wish->key_file, SERVER_MS, &text, &round_trip_ns, why, sizeof(why));

	s->nservers++;
	if (err) {
		tell_unanswered(s, where, is_forbidden(wish, err), why);
		return;
	}
	status = ctl_json_read(text);
	if (!status)
		tell_unanswered(s, where, false, "its answer is malformed");
	else if (ctl_is_for_strangers(status))
		judge_stranger(s, where);
	else
		judge_status(s, wish, status);
	json_decref(status);
}

/* ---- this machine, or a part of it ----------------------------------------------------------- */

static void judge_all(struct survey *s, const struct health_wish *wish)
{
	struct stat st;

	judge_mounts(s);
	if (stat(RMEMFS_DEFAULT_SOCKET, &st) == 0)
		judge_server(s, RMEMFS_DEFAULT_SOCKET, wish);
	if (s->nmounts || s->nservers || s->report.n)
		return;
	report_begin(&s->report, "mount");
	report_found(&s->report, VERDICT_UNKNOWN, "there is nothing to look at");
	report_cause(&s->report,
		"no rmemfs is mounted here by root or this user, and no server has the "
		"socket " RMEMFS_DEFAULT_SOCKET);
	report_remedy(&s->report, "name a mount or a server: rmemfsctl health MOUNTPOINT");
}

/* As status does: a place of a mount comes before a server's socket. */
static void judge_named(struct survey *s, const struct health_wish *wish)
{
	struct mount mount;
	autofree char *text = wish->key_file ? NULL : ctl_find_mount(wish->where, &mount);
	json_t *described;

	if (!text && !wish->key_file && ctl_is_folder(wish->where)) {
		tell_unmounted(s, wish->where);
		return;
	}
	if (!text) {
		judge_server(s, wish->where, wish);
		return;
	}
	described = ctl_describe_mount(&mount, MOUNT_MS);
	judge_mount(s, described);
	json_decref(described);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static const char *name_of(enum verdict verdict)
{
	return verdict == VERDICT_FAILURE ? "critical" : report_verdict_name(verdict);
}

/* A note asks for nothing. */
static enum verdict status_of(const struct report *r)
{
	return r->worst <= VERDICT_NOTE ? VERDICT_OK : r->worst;
}

/* The worst first, and else in the order in which they were found. */
static void sort(struct report *r)
{
	struct report *sorted = malloc(sizeof(*sorted));
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

static void print_text(const struct survey *s)
{
	const struct report *r = &s->report;

	if (status_of(r) == VERDICT_OK)
		printf("ok: %u mount%s and %zu export%s are well\n", s->nmounts,
			s->nmounts == 1 ? "" : "s", s->nexports, s->nexports == 1 ? "" : "s");
	for (unsigned i = 0; i < r->n; i++) {
		const struct finding *f = &r->findings[i];

		printf("%s: %s; cause: %s; remedy: %s\n", name_of(f->verdict), f->found, f->cause,
			f->remedy);
	}
	if (r->cut)
		printf("more was found than these %d lines\n", REPORT_FINDINGS_MAX);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static bool print_json(const struct survey *s, const char *where)
{
	char host[REPORT_TEXT_BYTES] = "";
	json_t *root;
	bool printed;

	if (where)
		printable_copy(host, sizeof(host), where, strlen(where));
	root = json_pack("{s:s, s:o, s:s, s:i, s:i, s:b, s:o}", "version", RMEMFS_VERSION, "where",
		report_text_or_null(host), "status", name_of(status_of(&s->report)), "mounts",
		(int)s->nmounts, "exports", (int)s->nexports, "cut", s->report.cut, "findings",
		report_findings(&s->report, name_of));
	printed = root && ctl_json_print(root) == 0;
	json_decref(root);
	return printed;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int exit_status(const struct report *r)
{
	switch (r->worst) {
	case VERDICT_FAILURE:
		return CTL_HEALTH_CRITICAL;
	case VERDICT_WARNING:
		return CTL_HEALTH_WARNING;
	case VERDICT_UNKNOWN:
		return CTL_HEALTH_UNKNOWN;
	default:
		return CTL_HEALTH_OK;
	}
}

int health_run(const struct health_wish *wish)
{
	struct survey *s = calloc(1, sizeof(*s));
	bool printed = true;
	int status;

	if (!s) {
		log_error("can't begin: %s", errno_text(ENOMEM));
		return CTL_HEALTH_UNKNOWN;
	}
	if (wish->where)
		judge_named(s, wish);
	else
		judge_all(s, wish);
	sort(&s->report);
	if (wish->json)
		printed = print_json(s, wish->where);
	else
		print_text(s);
	status = printed && fflush(stdout) == 0 ? exit_status(&s->report) : CTL_HEALTH_UNKNOWN;
	free(s);
	return status;
}
