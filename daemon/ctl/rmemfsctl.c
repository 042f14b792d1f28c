/* rmemfsctl.c - the admin tool: shows what a server is doing, and whether its stored state is
 * whole; gives orders to servers and mounts; makes keys; checks what a mount needs. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "common/auth/auth_memory.h"
#include "common/base/log.h"
#include "common/base/mount_socket.h"
#include "common/base/util.h"
#include "daemon/ctl/args.h"
#include "daemon/ctl/check.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/doctor/doctor.h"
#include "daemon/ctl/exports.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/keys.h"
#include "daemon/ctl/mount_ask.h"
#include "daemon/ctl/print.h"
#include "daemon/ctl/print_mount.h"
#include "daemon/ctl/snapshot.h"
#include "daemon/ctl/survey/gather.h"
#include "daemon/ctl/survey/health.h"
#include "daemon/ctl/survey/top.h"

enum { TIMEOUT_MS = 5000 };

#define FUSE_CONNECTIONS "/sys/fs/fuse/connections"

struct answer {
	char *text;
	int64_t round_trip_ns; /* of a status */
};

static int rmemfsctl_fetch(
	const struct ctl_args *args, struct answer *answer, char *why, size_t whylen)
{
	const char *where = args->operands[CTL_HOST];

	if (args->command == CTL_WHO)
		return ctl_fetch_who(where, TIMEOUT_MS, args->operands[CTL_EXPORT],
			args->operands[CTL_PATH], &answer->text, why, whylen);
	return ctl_fetch_status(where, args->key_file, TIMEOUT_MS, &answer->text,
		&answer->round_trip_ns, why, whylen);
}

static void print_tables(enum ctl_command command, const json_t *root, int64_t round_trip_ns)
{
	switch (command) {
	case CTL_LEASES:
		ctl_print_leases(root);
		break;
	case CTL_WHO:
		ctl_print_who(root);
		break;
	case CTL_QUOTA:
		ctl_print_quotas(root);
		break;
	default:
		if (ctl_is_for_strangers(root))
			ctl_print_for_strangers(root, round_trip_ns);
		else
			ctl_print_status(root);
		break;
	}
}

/* These commands show parts of a status that are not for everybody: the reason, or NULL. */
static const char *lacks_part(enum ctl_command command, const json_t *root)
{
	if (command != CTL_LEASES && command != CTL_QUOTA)
		return NULL;
	if (ctl_is_for_strangers(root))
		return "strangers are not told this";
	return ctl_is_for_mounts(root) ? "this key sees its own mounts alone" : NULL;
}

/* False: the reason was printed. */
static bool print(const struct ctl_args *args, const struct answer *answer, json_t *root)
{
	const char *where = args->operands[CTL_HOST], *lacks;

	if (!root) {
		log_error("%s: the server's answer is malformed: install the same release on both "
			  "machines",
			where);
		return false;
	}
	lacks = lacks_part(args->command, root);
	if (lacks) {
		log_error(
			"%s: %s: run 'rmemfsctl %s' on the server's machine, or with --key FILE of "
			"a client whose access is \"status\"",
			where, lacks, args->command == CTL_LEASES ? "leases" : "quota");
		return false;
	}
	if (args->json)
		return ctl_json_print(root) == 0;
	ctl_json_clean(root);
	print_tables(args->command, root, answer->round_trip_ns);
	return true;
}

static int show(const struct ctl_args *args)
{
	struct answer answer = {0};
	char why[256];
	json_t *root;
	bool printed;

	if (rmemfsctl_fetch(args, &answer, why, sizeof(why))) {
		log_error("%s: %s", args->operands[CTL_HOST], why);
		return EXIT_FAILURE;
	}
	root = ctl_json_read(answer.text);
	free(answer.text);
	printed = print(args, &answer, root);
	json_decref(root);
	return printed && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* without: the beginning of the message if it fails. */
static int order(const char *where, const struct rpc_request *req, const char *without)
{
	char why[RPC_TEXT_MAX + 1];
	enum ctl_end end;

	if (!ctl_order(where, TIMEOUT_MS, req, &end, why, sizeof(why)))
		return EXIT_SUCCESS;
	log_error("%s: %s: %s", where, without, why);
	return EXIT_FAILURE;
}

static void print_changes(const json_t *root)
{
	const json_t *change;
	size_t i;

	json_array_foreach(json_object_get(root, "changes"), i, change)
		puts(ctl_json_text(change, "text"));
	if (ctl_json_number(root, "unlisted"))
		printf("and %" PRIu64 " more lines, which are in the server's log\n",
			ctl_json_number(root, "unlisted"));
}

/* As the ExecReload= of the server's unit: the journal has the lines from the server already. */
static int show_changes(const char *text, bool json)
{
	json_t *root = text ? ctl_json_read(text) : NULL;

	if (!json && !log_is_journal()) {
		ctl_json_clean(root);
		print_changes(root);
	} else if (json && root && ctl_json_print(root)) {
		log_error("out of memory");
	}
	json_decref(root);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int reload(const char *where, bool json)
{
	autofree char *text = NULL;
	char why[RPC_TEXT_MAX + 1];
	enum ctl_end end;

	if (!ctl_reload(where, &text, &end, why, sizeof(why)))
		return show_changes(text, json);
	if (end == CTL_UNKNOWN)
		log_error("%s: %s: whether all is reloaded is in the server's log", where, why);
	else if (end == CTL_REFUSED)
		log_error("%s: %s", where, why);
	else
		log_error("%s: nothing is reloaded: %s", where, why);
	return EXIT_FAILURE;
}

static int evict(const char *session, const char *where)
{
	struct rpc_request req = {.op = RPC_EVICT, .slot = RPC_NO_SLOT};
	char quoted[WORD_QUOTED_BYTES], *end;

	errno = 0;
	req.evict.session = strtoull(session, &end, 10);
	if (errno || *end || !isdigit((unsigned char)*session) || !req.evict.session) {
		log_error("SESSION %s: not the number of a session, as 'rmemfsctl status' has it",
			word_quote(session, quoted));
		return EXIT_FAILURE;
	}
	return order(where, &req, "no session is ended");
}

/* ---- mounts ---------------------------------------------------------------------------------- */

static int out(bool printed)
{
	return printed && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int not_mounted(const char *place)
{
	log_error("%s: no rmemfs is mounted there: see 'rmemfsctl mounts'", place);
	return EXIT_FAILURE;
}

static int show_mount(const struct ctl_args *args, const struct mount *mount)
{
	bool printed = true;
	json_t *answer;
	char why[512];

	if (ctl_ask_mount(mount, "status", TIMEOUT_MS, &answer, why, sizeof(why))) {
		log_error("%s: %s", mount->dir, why);
		return EXIT_FAILURE;
	}
	if (args->json) {
		printed = ctl_json_print(answer) == 0;
	} else {
		ctl_json_clean(answer);
		ctl_print_mount(answer);
	}
	json_decref(answer);
	return out(printed);
}

/* The place of a mount comes before a server's socket of the same path: nothing can listen there.
 */
static int show_status(const struct ctl_args *args)
{
	struct mount mount;
	autofree char *text =
		args->key_file ? NULL : ctl_find_mount(args->operands[CTL_HOST], &mount);

	if (text)
		return show_mount(args, &mount);
	if (!args->key_file && ctl_is_folder(args->operands[CTL_HOST]))
		return not_mounted(args->operands[CTL_HOST]);
	return show(args);
}

static bool all_are_connected(const json_t *list)
{
	const json_t *m;
	size_t i;

	json_array_foreach(list, i, m)
	{
		const char *state =
			json_string_value(json_object_get(json_object_get(m, "answer"), "state"));

		if (!state || strcmp(state, "connected") != 0)
			return false;
	}
	return true;
}

static int show_mounts(const struct ctl_args *args)
{
	bool printed = true, connected;
	json_t *list;
	int err = ctl_list_mounts(TIMEOUT_MS, &list);

	if (err) {
		log_error("the mounts can't be listed: /proc/self/mountinfo: %s", errno_text(err));
		return EXIT_FAILURE;
	}
	connected = all_are_connected(list);
	if (args->json) {
		printed = ctl_json_print(list) == 0;
	} else {
		ctl_json_clean(list);
		ctl_print_mounts(list);
	}
	json_decref(list);
	return out(printed && connected);
}

static int set_server_level(const char *target, int level)
{
	const bool is_default = strcmp(target, "server") == 0;
	const struct rpc_request req = {
		.op = RPC_LOG, .slot = RPC_NO_SLOT, .log.level = (uint8_t)level};

	if (!is_default && (*target != '/' || ctl_is_folder(target)))
		return not_mounted(target);
	return order(is_default ? RMEMFS_DEFAULT_SOCKET : target, &req, "the level is not set");
}

/* target: a mount of this machine, the word "server", or a server's socket. */
static int set_level(const char *target, const char *level)
{
	struct mount mount;
	autofree char *text = ctl_find_mount(target, &mount);
	char question[MOUNT_QUESTION_BYTES], why[512], all[64], quoted[WORD_QUOTED_BYTES];
	int value;
	json_t *answer;

	if (!word_find(log_level_words, level, &value)) {
		word_list(log_level_words, all, sizeof(all));
		log_error("level %s: unknown; must be %s", word_quote(level, quoted), all);
		return EXIT_FAILURE;
	}
	if (!text)
		return set_server_level(target, value);
	snprintf(question, sizeof(question), "log %s", level);
	if (ctl_ask_mount(&mount, question, TIMEOUT_MS, &answer, why, sizeof(why))) {
		log_error("%s: %s", target, why);
		return EXIT_FAILURE;
	}
	json_decref(answer);
	return EXIT_SUCCESS;
}

/* Where nobody has mounted fusectl, root mounts it for this process alone. */
static int open_abort(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = errno;

	if (fd >= 0 || err != ENOENT || geteuid() != 0)
		return fd;
	if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		mount("none", FUSE_CONNECTIONS, "fusectl", MS_NOSUID | MS_NODEV | MS_NOEXEC,
			NULL) == 0)
		return open(path, O_WRONLY | O_CLOEXEC);
	errno = err;
	return -1;
}

/* The kernel ends the connection: each request fails, and the daemon goes. */
static int abort_mount(const char *dir)
{
	struct mount mount;
	autofree char *text = ctl_find_mount(dir, &mount);
	autoclose int fd = -1;
	char path[64];

	if (!text)
		return not_mounted(dir);
	snprintf(path, sizeof(path), FUSE_CONNECTIONS "/%u/abort", mount.minor);
	fd = open_abort(path);
	if (fd >= 0 && write(fd, "1", 1) == 1)
		return EXIT_SUCCESS;
	log_error("%s: can't write to %s: %s%s", mount.dir, path, errno_text(errno),
		errno == ENOENT   ? ": mount -t fusectl none " FUSE_CONNECTIONS
		: errno == EACCES ? ": root and the user of the mount may do this"
				  : "");
	return EXIT_FAILURE;
}

/* Becomes the daemon that takes the mount over; its parent process ends when that is done. */
static int upgrade(const char *dir)
{
	struct mount mount;
	autofree char *text = ctl_find_mount(dir, &mount);
	char program[] = "rmemfs", option[] = "--take-over";
	char *const argv[] = {program, option, text ? (char *)mount.dir : NULL, NULL};

	if (!text)
		return not_mounted(dir);
	ctl_exec_installed(program, argv);
	log_error("can't run rmemfs: %s", errno_text(errno));
	return EXIT_FAILURE;
}

/* ---- the whole machine ----------------------------------------------------------------------- */

static int health(const struct ctl_args *args)
{
	return health_run(&(struct health_wish){.where = args->operands[CTL_SERVER],
		.key_file = args->key_file,
		.snapshot_max = args->snapshot_max,
		.json = args->json});
}

/* ---- main ------------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
	struct ctl_args args;
	int status;

	log_init_command("rmemfsctl", LOG_LEVEL_ERROR);
	auth_memory_init();
	status = ctl_args_read(argc, argv, &args);
	if (status >= 0)
		return status;
	switch (args.command) {
	case CTL_CHECK:
		return ctl_check(args.operands[CTL_DIR]);
	case CTL_STATUS:
		return show_status(&args);
	case CTL_MOUNTS:
		return show_mounts(&args);
	case CTL_LOG:
		return set_level(args.operands[CTL_TARGET], args.operands[CTL_LEVEL]);
	case CTL_UPGRADE:
		return upgrade(args.operands[CTL_MOUNTPOINT]);
	case CTL_ABORT:
		return abort_mount(args.operands[CTL_MOUNTPOINT]);
	case CTL_EVICT:
		return evict(args.operands[CTL_SESSION], args.operands[CTL_HOST]);
	case CTL_SNAPSHOT:
		return ctl_snapshot(
			args.operands[CTL_HOST], args.operands[CTL_EXPORT], args.operands[CTL_DIR]);
	case CTL_RELOAD:
		return reload(args.operands[CTL_HOST], args.json);
	case CTL_EXPORTS:
		return ctl_export(&args);
	case CTL_KEYGEN:
		return ctl_keygen(args.operands[CTL_NAME], args.operands[CTL_FILE]);
	case CTL_KEYCHECK:
		return ctl_keycheck(args.operands[CTL_FILE]);
	case CTL_DOCTOR:
		return doctor_run(args.operands[CTL_SERVER], args.key_file, args.json);
	case CTL_HEALTH:
		return health(&args);
	case CTL_REPORT:
		return gather_run(args.operands[CTL_FILE]);
	case CTL_TOP:
		return top_run(args.once, args.json);
	default:
		return show(&args);
	}
}
