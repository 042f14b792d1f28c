/* export_file.c - see export_file.h. */
#include "daemon/ctl/export_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
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

/* Root writes the files, and the server, which runs as this group, reads them. */
#define SERVER_GROUP "rmemfs"

bool export_file_is_name(const char *name)
{
	return name[0] != '.' && strlen(name) <= EXPORT_NAME_MAX &&
	       name[strspn(name,
		       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")] ==
		       '\0';
}

int export_file_name(const struct ctl_args *args, struct export_file *file)
{
	const char *config = args->config ? args->config : RMEMFS_SYSCONFDIR "/server.conf";
	const char *slash = strrchr(config, '/'), *name = args->operands[CTL_EXPORT];
	char quoted[WORD_QUOTED_BYTES];
	int dirlen = slash ? (int)(slash - config) : 1;

	if (!export_file_is_name(name)) {
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
	snprintf(file->mark, sizeof(file->mark), "%.*s/.%s.remove",
		(int)sizeof(file->mark) - EXPORT_NAME_MAX - 10, file->dir, name);
	return 0;
}

int export_file_fail(const char *doing, const char *path, int err)
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
		return export_file_fail("open", file->dir, err);
	log_error("there is no directory %s: make it, or name the server's configuration by "
		  "--config",
		file->dir);
	return err;
}

int export_file_lock(struct export_file *file)
{
	int err = open_directory(file);

	if (err || flock(file->lock, LOCK_EX | LOCK_NB) == 0)
		return err;
	if (errno == EWOULDBLOCK)
		log_error("waiting for another rmemfsctl, which has %s", file->dir);
	while (flock(file->lock, LOCK_EX) != 0)
		if (errno != EINTR)
			return export_file_fail("lock", file->dir, -errno);
	return 0;
}

int export_file_give(int fd)
{
	const struct group *group = geteuid() == 0 ? getgrnam(SERVER_GROUP) : NULL;

	if (group && fchown(fd, (uid_t)-1, group->gr_gid) != 0)
		return -errno;
	return fchmod(fd, 0640) == 0 ? 0 : -errno;
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

/* Until the next call a signal that ends the command prints this text first. NULL: signals are
 * ignored. */
static void at_signals(const char *say)
{
	const struct sigaction action = {.sa_handler = say ? on_signal : SIG_IGN};

	if (say)
		snprintf(interrupted, sizeof(interrupted), "%s", say);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

int export_file_reload(
	const char *where, const char *say, enum ctl_end *end, char why[RPC_TEXT_MAX + 1])
{
	const struct rpc_request req = {.op = RPC_RELOAD, .slot = RPC_NO_SLOT};
	int err;

	at_signals(say);
	err = ctl_order(where, RELOAD_TIMEOUT_MS, &req, end, why, RPC_TEXT_MAX + 1);
	at_signals(NULL);
	return err;
}
