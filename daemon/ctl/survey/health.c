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
#include "common/base/process_state.h"
#include "common/base/util.h"
#include "common/transport/address.h"
#include "common/transport/verbs/inspect.h"
#include "daemon/ctl/args.h"
#include "daemon/ctl/bounded.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/configured.h"
#include "daemon/ctl/doctor/quiet.h"
#include "daemon/ctl/doctor/report.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/mount_ask.h"
#include "daemon/ctl/survey/health_findings.h"

enum { MOUNT_MS = 1000, SERVER_MS = 3000, VERBS_MS = 1000, SERVICES_MS = 2000 };

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

/* Whether the process that has answered runs the program that is installed. It is of this machine.
 */
static void look_at_program(json_t *answer)
{
	int pid = (int)ctl_json_number(answer, "pid");

	if (pid > 0 && process_state_is_outdated(pid))
		json_object_set_new(answer, "outdated", json_true());
}

static void judge_mount(struct health_findings *f, json_t *mount)
{
	autofree char *device = device_to(mount);

	look_at_program(json_object_get(mount, "answer"));
	ctl_json_clean(mount);
	health_findings_mount(f, mount, device);
}

static void judge_mounts(struct health_findings *f)
{
	json_t *list, *mount;
	size_t i;
	int err = ctl_list_own_mounts(MOUNT_MS, &list);

	if (err) {
		health_findings_unlisted(f, err);
		return;
	}
	json_array_foreach(list, i, mount) judge_mount(f, mount);
	json_decref(list);
}

/* ---- the server ------------------------------------------------------------------------------ */

/* Nothing is known of a server that could not be asked. */
static bool is_forbidden(const struct health_wish *wish, int err)
{
	return err == -EACCES || err == -EPERM || (wish->key_file && access(wish->key_file, R_OK));
}

static void judge_server(
	struct health_findings *f, const char *where, const struct health_wish *wish)
{
	const struct health_terms terms = {time(NULL), wish->snapshot_max};
	autofree char *text = NULL;
	int64_t round_trip_ns;
	char why[512];
	json_t *status;
	int err = ctl_fetch_status(
		where, wish->key_file, SERVER_MS, &text, &round_trip_ns, why, sizeof(why));

	if (err && !wish->where && is_forbidden(wish, err)) {
		health_findings_hidden(f, why);
		return;
	}
	if (err) {
		health_findings_unanswered(f, where, is_forbidden(wish, err), why);
		return;
	}
	status = ctl_json_read(text);
	ctl_json_clean(status);
	if (*where == '/')
		look_at_program(status);
	health_findings_server(f, where, status, &terms);
	json_decref(status);
}

/* ---- this machine, or a part of it ----------------------------------------------------------- */

static void judge_configured(struct health_findings *f)
{
	json_t *list;
	int err = configured_list(SERVICES_MS, &list);

	ctl_json_clean(list);
	health_findings_configured(f, list, err);
	json_decref(list);
}

static void judge_all(struct health_findings *f, const struct health_wish *wish)
{
	struct stat st;

	judge_mounts(f);
	if (stat(RMEMFS_DEFAULT_SOCKET, &st) == 0)
		judge_server(f, RMEMFS_DEFAULT_SOCKET, wish);
	judge_configured(f);
	health_findings_complete(f);
}

/* As status does: a place of a mount comes before a server's socket. */
static void judge_named(struct health_findings *f, const struct health_wish *wish)
{
	struct mount mount;
	autofree char *text = wish->key_file ? NULL : ctl_find_mount(wish->where, &mount);
	json_t *described;

	if (!text && !wish->key_file && ctl_is_folder(wish->where)) {
		health_findings_unmounted(f, wish->where);
		return;
	}
	if (!text) {
		judge_server(f, wish->where, wish);
		return;
	}
	described = ctl_describe_mount(&mount, MOUNT_MS);
	judge_mount(f, described);
	json_decref(described);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Only what was looked at: a server named by its socket says nothing of this machine's mounts. */
static void print_ok(const struct health_findings *f)
{
	bool mounts = f->nmounts || !f->nservers;

	fputs("ok: ", stdout);
	if (mounts)
		printf("%u mount%s", f->nmounts, f->nmounts == 1 ? "" : "s");
	if (mounts && f->nservers)
		fputs(" and ", stdout);
	if (f->nservers)
		printf("%zu export%s", f->nexports, f->nexports == 1 ? "" : "s");
	puts(f->nmounts + f->nexports == 1 ? " is well" : " are well");
}

static void print_text(const struct health_findings *f)
{
	const struct report *r = &f->report;

	if (health_findings_verdict(f) == VERDICT_OK)
		print_ok(f);
	for (unsigned i = 0; i < r->n; i++) {
		const struct finding *found = &r->findings[i];

		printf("%s: %s; cause: %s; remedy: %s\n", health_findings_name(found->verdict),
			found->found, found->cause, found->remedy);
	}
	if (r->cut)
		printf("more was found than these %d lines\n", REPORT_FINDINGS_MAX);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static bool print_json(const struct health_findings *f, const char *where)
{
	char host[REPORT_TEXT_BYTES] = "";
	json_t *root;
	bool printed;

	if (where)
		printable_copy(host, sizeof(host), where, strlen(where));
	root = json_pack("{s:s, s:o, s:s, s:i, s:i, s:b, s:o}", "version", RMEMFS_VERSION, "where",
		report_text_or_null(host), "status",
		health_findings_name(health_findings_verdict(f)), "mounts", (int)f->nmounts,
		"exports", (int)f->nexports, "cut", f->report.cut, "findings",
		report_findings(&f->report, health_findings_name));
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
	struct health_findings *f = calloc(1, sizeof(*f));
	bool printed = true;
	int status;

	if (!f) {
		log_error("can't begin: %s", errno_text(ENOMEM));
		return CTL_HEALTH_UNKNOWN;
	}
	if (wish->where)
		judge_named(f, wish);
	else
		judge_all(f, wish);
	health_findings_sort(f);
	if (wish->json)
		printed = print_json(f, wish->where);
	else
		print_text(f);
	status = printed && fflush(stdout) == 0 ? exit_status(&f->report) : CTL_HEALTH_UNKNOWN;
	free(f);
	return status;
}
