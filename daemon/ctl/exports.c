/* exports.c - see exports.h. */
#include "daemon/ctl/exports.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/types.h"
#include "common/base/util.h"
#include "common/base/word.h"
#include "common/conf/conf.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/json.h"

/* Root writes the files, and the server, which runs as this group, reads them. */
#define SERVER_GROUP "rmemfs"

enum { TIMEOUT_MS = 5000 };

/* A file of exports.d, and the directory. */
struct export_file {
	int lock; /* the directory, open */
	char dir[PATH_MAX];
	char path[PATH_MAX];
	char draft[PATH_MAX]; /* the server does not look at it */
};

/* ---- checks ---------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
	return name[0] != '.' && strlen(name) <= EXPORT_NAME_MAX &&
	       name[strspn(name,
		       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")] ==
		       '\0';
}

static int name_file(const struct ctl_args *args, struct export_file *file)
{
	const char *config = args->config ? args->config : RMEMFS_SYSCONFDIR "/server.conf";
	const char *slash = strrchr(config, '/'), *name = args->operands[CTL_EXPORT];
	char quoted[WORD_QUOTED_BYTES];
	int dirlen = slash ? (int)(slash - config) : 1;

	if (!is_name(name)) {
		log_error("%s: an export's name has letters, digits, '.', '_' and '-', at most %d "
			  "of them, and begins with no '.'",
			word_quote(name, quoted), EXPORT_NAME_MAX);
		return -EINVAL;
	}
	if (snprintf(file->dir, sizeof(file->dir), "%.*s/exports.d", dirlen,
		    slash ? config : ".") >= (int)sizeof(file->dir) - 2 * EXPORT_NAME_MAX) {
		log_error("%s: the path is too long", config);
		return -ENAMETOOLONG;
	}
	snprintf(file->path, sizeof(file->path), "%.*s/%s.conf",
		(int)sizeof(file->path) - EXPORT_NAME_MAX - 8, file->dir, name);
	snprintf(file->draft, sizeof(file->draft), "%.*s/.%s.conf",
		(int)sizeof(file->draft) - EXPORT_NAME_MAX - 8, file->dir, name);
	return 0;
}

/* The text goes between double quotes of libconfig. */
static int check_key_file(const char *path)
{
	if (!path)
		return 0;
	if (path[0] != '/' || path[strcspn(path, "\"\\\n")] != '\0') {
		log_error("option '--key': FILE must be a path from / on, without quotes and "
			  "backslashes: the server reads it");
		return -EINVAL;
	}
	return 0;
}

static int check_size(const char *text)
{
	char quoted[WORD_QUOTED_BYTES];
	uint64_t bytes;

	if (!size_parse(text, &bytes))
		return 0;
	log_error("%s: must be a size like 64GiB", word_quote(text, quoted));
	return -EINVAL;
}

static int fail_file(const char *doing, const char *path, int err)
{
	log_error("can't %s %s: %s", doing, path, errno_text(err));
	return err;
}

/* ---- one at a time --------------------------------------------------------------------------- */

static int open_directory(struct export_file *file)
{
	int err;

	file->lock = open(file->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (file->lock >= 0)
		return 0;
	err = -errno;
	if (err != -ENOENT)
		return fail_file("open", file->dir, err);
	log_error("there is no directory %s: make it, or name the server's configuration by "
		  "--config",
		file->dir);
	return err;
}

/* Until the server has decided. A reload takes all files or none, so it would refuse ours for the
 * file of another command that runs beside this one. */
static int lock_directory(struct export_file *file)
{
	int err = open_directory(file);

	if (err || flock(file->lock, LOCK_EX | LOCK_NB) == 0)
		return err;
	if (errno == EWOULDBLOCK)
		log_error("waiting for another rmemfsctl, which has %s", file->dir);
	while (flock(file->lock, LOCK_EX) != 0)
		if (errno != EINTR)
			return fail_file("lock", file->dir, -errno);
	return 0;
}

/* ---- signals --------------------------------------------------------------------------------- */

static char interrupted[PATH_MAX + 256];

static void on_signal(int number)
{
	ssize_t n = write(STDERR_FILENO, interrupted, strlen(interrupted));

	(void)number;
	(void)n;
	_exit(EXIT_FAILURE);
}

static void at_signals(void (*handler)(int))
{
	const struct sigaction action = {.sa_handler = handler};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* While it waits for the server, which goes on with the reload. So the file can't be taken back. */
static void say_at_signals(const struct export_file *file)
{
	snprintf(interrupted, sizeof(interrupted),
		"rmemfsctl: interrupted: whether the export was added is not known, and %s stays: "
		"see 'rmemfsctl export list'\n",
		file->path);
	at_signals(on_signal);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* "web" of "/etc/rmemfs/keys/web.key". */
static void write_client(FILE *f, const char *key_file)
{
	const char *name = strrchr(key_file, '/') + 1;
	size_t len = strlen(name);

	if (len > 4 && strcmp(name + len - 4, ".key") == 0)
		len -= 4;
	fprintf(f, "\tclients = ( { name = \"%.*s\"; keys = \"%s\"; } );\n", (int)len, name,
		key_file);
}

/* The server reads it, under any umask. */
static int give_to_server(int fd)
{
	const struct group *group = geteuid() == 0 ? getgrnam(SERVER_GROUP) : NULL;

	if (group && fchown(fd, (uid_t)-1, group->gr_gid) != 0)
		return -errno;
	return fchmod(fd, 0640) == 0 ? 0 : -errno;
}

static int write_text(int fd, const struct ctl_args *args)
{
	FILE *f = fdopen(fd, "w");
	int err;

	if (!f) {
		err = -errno;
		close(fd);
		return err;
	}
	fprintf(f,
		"# By rmemfsctl export. After a change: rmemfsctl reload.\n"
		"exports = ( {\n\tname = \"%s\";\n\tsize = \"%s\";\n",
		args->operands[CTL_EXPORT], args->operands[CTL_SIZE]);
	if (args->key_file)
		write_client(f, args->key_file);
	fprintf(f, "} );\n");
	err = fflush(f) != 0 || ferror(f) ? -EIO : give_to_server(fd);
	if (!err && fsync(fd) != 0)
		err = -errno;
	fclose(f);
	return err;
}

/* link(2) gives the draft its name only if no file has it. */
static int publish(const struct export_file *file)
{
	int err = link(file->draft, file->path) == 0 ? 0 : -errno;

	if (err == -EEXIST) {
		log_error("%s is there already: edit it and run 'rmemfsctl reload', or choose "
			  "another name",
			file->path);
		return err;
	}
	if (err)
		return fail_file("make", file->path, err);
	if (fsync(file->lock) == 0)
		return 0;
	err = -errno;
	unlink(file->path);
	return fail_file("write", file->path, err);
}

static int write_file(const struct export_file *file, const struct ctl_args *args)
{
	int fd, err;

	/* One that was killed has left it: we have the lock. */
	unlink(file->draft);
	fd = open(file->draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return fail_file("make", file->draft, -errno);
	err = write_text(fd, args);
	err = err ? fail_file("write", file->draft, err) : publish(file);
	unlink(file->draft);
	return err;
}

static void take_back(const struct export_file *file)
{
	if (unlink(file->path) != 0 || fsync(file->lock) != 0)
		log_error("can't remove %s again: %s: remove it", file->path, errno_text(errno));
}

/* ---- the server's answer --------------------------------------------------------------------- */

static json_t *fetch(const char *where)
{
	int64_t round_trip_ns;
	char *text, why[256];
	json_t *root;

	if (ctl_fetch_status(where, NULL, TIMEOUT_MS, &text, &round_trip_ns, why, sizeof(why))) {
		log_error("%s: %s", where, why);
		return NULL;
	}
	root = ctl_json_read(text);
	free(text);
	if (!root)
		log_error("%s: the server's answer is malformed", where);
	return root;
}

static const char *name_of(const json_t *export)
{
	const char *name = json_string_value(json_object_get(export, "name"));

	return name ? name : "";
}

static bool serves(const json_t *root, const char *name)
{
	const json_t *export;
	size_t i;

	json_array_foreach(json_object_get(root, "exports"), i, export)
	{
		if (strcmp(name_of(export), name) == 0)
			return true;
	}
	return false;
}

/* ---- add ------------------------------------------------------------------------------------- */

static int tell_unknown(const struct export_file *file, const char *why)
{
	log_error("%s: whether the export was added is not known, and %s stays: see 'rmemfsctl "
		  "export list'",
		why, file->path);
	return EXIT_FAILURE;
}

/* A server that reads other files, or takes its exports from the command line, reloads without
 * looking at this one. */
static int check_served(const struct ctl_args *args, const struct export_file *file)
{
	const char *where = args->operands[CTL_HOST], *name = args->operands[CTL_EXPORT];
	json_t *root = fetch(where);
	bool served = root && serves(root, name);

	json_decref(root);
	if (served)
		return EXIT_SUCCESS;
	if (!root)
		return tell_unknown(file, where);
	take_back(file);
	log_error("%s: export '%s' is not added: the server does not read %s: it has another -c, "
		  "which --config has to name, or its --export replaces all exports of files",
		where, name, file->path);
	return EXIT_FAILURE;
}

static int reload(const struct ctl_args *args, const struct export_file *file)
{
	const struct rpc_request req = {.op = RPC_RELOAD, .slot = RPC_NO_SLOT};
	const char *where = args->operands[CTL_HOST];
	char why[RPC_TEXT_MAX + 1];
	enum ctl_end end;
	int err;

	say_at_signals(file);
	err = ctl_order(where, RELOAD_TIMEOUT_MS, &req, &end, why, sizeof(why));
	at_signals(SIG_IGN);
	if (!err)
		return check_served(args, file);
	if (end == CTL_UNKNOWN)
		return tell_unknown(file, why);
	take_back(file);
	log_error("%s: export '%s' is not added: %s", where, args->operands[CTL_EXPORT], why);
	return EXIT_FAILURE;
}

static int add(const struct ctl_args *args)
{
	struct export_file file = {.lock = -1};
	int status = EXIT_FAILURE;

	if (name_file(args, &file) || check_size(args->operands[CTL_SIZE]) ||
		check_key_file(args->key_file))
		return status;
	if (!lock_directory(&file) && !write_file(&file, args))
		status = reload(args, &file);
	if (file.lock >= 0)
		close(file.lock);
	return status;
}

/* ---- list ------------------------------------------------------------------------------------ */

static unsigned count_mounts(const json_t *root, const char *export)
{
	const json_t *session;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(root, "sessions"), i, session)
	{
		const char *at = json_string_value(json_object_get(session, "export"));

		n += at && strcmp(at, export) == 0;
	}
	return n;
}

static void print_export(const struct ctl_args *args, const json_t *root, const json_t *export)
{
	const char *name = name_of(export);
	struct ctl_args named = *args;
	struct export_file file;
	char size[32], used[32];

	if (!*name || !is_name(name))
		return;
	named.operands[CTL_EXPORT] = name;
	if (name_file(&named, &file))
		return;
	size_format(
		(uint64_t)json_integer_value(json_object_get(export, "bytes")), size, sizeof(size));
	size_format(
		(uint64_t)json_integer_value(json_object_get(export, "used")), used, sizeof(used));
	printf("%-20s %10s %10s %7u  %s\n", name, size, used, count_mounts(root, name),
		access(file.path, F_OK) == 0 ? file.path : "-");
}

static int list(const struct ctl_args *args)
{
	json_t *root = fetch(args->operands[CTL_HOST]);
	const json_t *export;
	size_t i;

	if (!root)
		return EXIT_FAILURE;
	printf("%-20s %10s %10s %7s  %s\n", "EXPORT", "SIZE", "USED", "MOUNTS", "FILE");
	json_array_foreach(json_object_get(root, "exports"), i, export)
		print_export(args, root, export);
	json_decref(root);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int ctl_export(const struct ctl_args *args)
{
	return strcmp(args->operands[CTL_ACTION], "list") == 0 ? list(args) : add(args);
}
