/* export_remove.c - see export_remove.h. */
#include "daemon/ctl/export_remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/conf/conf.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/export_status.h"

/* ---- the files ------------------------------------------------------------------------------- */

static int remove_one(const struct export_file *file, const char *path)
{
	if (unlink(path) != 0 && errno != ENOENT)
		return export_file_fail("remove", path, -errno);
	return fsync(file->lock) == 0 ? 0 : export_file_fail("write", file->dir, -errno);
}

/* The mark is the last one: without it a start would make the export anew. */
static int remove_both(const struct export_file *file)
{
	int err = remove_one(file, file->path);

	CRASH_POINT("remove.unlinked");
	return err ? err : remove_one(file, file->mark);
}

/* The server never sees a mark that is not locked, or that it can't read. */
static int publish_mark(const struct export_file *file, int fd)
{
	int err = flock(fd, LOCK_EX | LOCK_NB) == 0 ? export_file_give(fd) : -errno;

	if (!err && rename(file->draft, file->mark) != 0)
		err = -errno;
	if (!err && fsync(file->lock) != 0)
		err = -errno;
	return err ? export_file_fail("make", file->mark, err) : 0;
}

/* *fd: it stays locked until this is closed. */
static int make_mark(const struct export_file *file, int *fd)
{
	int err;

	/* One that was killed has left it: we have the lock. */
	unlink(file->draft);
	*fd = open(file->draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (*fd < 0)
		return export_file_fail("make", file->draft, -errno);
	err = publish_mark(file, *fd);
	if (err) {
		unlink(file->draft);
		close(*fd);
	}
	CRASH_POINT("remove.marked");
	return err;
}

/* A person may have written the export's file anew since. */
static bool is_older(const char *path, const struct stat *mark)
{
	struct stat st;

	return stat(path, &st) == 0 &&
	       (st.st_mtim.tv_sec < mark->st_mtim.tv_sec ||
		       (st.st_mtim.tv_sec == mark->st_mtim.tv_sec &&
			       st.st_mtim.tv_nsec <= mark->st_mtim.tv_nsec));
}

int export_remove_finish(const struct ctl_args *args, const struct export_file *file)
{
	struct stat mark;
	json_t *root;
	bool served;

	if (stat(file->mark, &mark) != 0)
		return errno == ENOENT ? 0 : export_file_fail("read", file->mark, -errno);
	root = export_status_fetch(args->operands[CTL_HOST]);
	if (!root)
		return -EIO;
	served = export_status_find(root, args->operands[CTL_EXPORT]);
	json_decref(root);
	if (served || !is_older(file->path, &mark))
		return remove_one(file, file->mark);
	return remove_both(file);
}

/* ---- the server ------------------------------------------------------------------------------ */

static int fail_unknown(const struct ctl_args *args, const char *why)
{
	log_error("%s: whether export '%s' was removed is not known: see 'rmemfsctl export list', "
		  "and repeat this",
		why, args->operands[CTL_EXPORT]);
	return EXIT_FAILURE;
}

/* A server that reads other files reloads without looking at the mark. */
static int conclude(const struct ctl_args *args, const struct export_file *file)
{
	const char *where = args->operands[CTL_HOST], *name = args->operands[CTL_EXPORT];
	json_t *root = export_status_fetch(where);
	bool served = root && export_status_find(root, name);

	json_decref(root);
	if (!root)
		return fail_unknown(args, where);
	if (!served)
		return remove_both(file) ? EXIT_FAILURE : EXIT_SUCCESS;
	remove_one(file, file->mark);
	log_error("%s: export '%s' is not removed: the server does not read %s: it has another -c, "
		  "which --config has to name",
		where, name, file->dir);
	return EXIT_FAILURE;
}

static int have_removed(const struct ctl_args *args, const struct export_file *file)
{
	const char *where = args->operands[CTL_HOST], *name = args->operands[CTL_EXPORT];
	char why[RPC_TEXT_MAX + 1], say[256 + EXPORT_NAME_MAX];
	enum ctl_end end;
	int err;

	snprintf(say, sizeof(say),
		"rmemfsctl: interrupted: whether export '%s' was removed is not known: see "
		"'rmemfsctl export list', and repeat this\n",
		name);
	err = export_file_reload(where, say, &end, why);
	CRASH_POINT("remove.told");
	if (!err)
		return conclude(args, file);
	if (end == CTL_UNKNOWN)
		return fail_unknown(args, why);
	remove_one(file, file->mark);
	log_error("%s: export '%s' is not removed: %s", where, name, why);
	return EXIT_FAILURE;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int tell_loss(const struct ctl_args *args, const json_t *export)
{
	/* The root is one of them. */
	json_int_t files = json_integer_value(json_object_get(export, "files")) - 1;
	char used[32], size[32];

	size_format(
		(uint64_t)json_integer_value(json_object_get(export, "used")), used, sizeof(used));
	size_format(
		(uint64_t)json_integer_value(json_object_get(export, "bytes")), size, sizeof(size));
	log_error(
		"export '%s' of %s has %lld files and directories with %s of data, which are lost "
		"for good if it is removed: if that is meant, repeat this with --yes",
		args->operands[CTL_EXPORT], size, (long long)files, used);
	return EXIT_FAILURE;
}

static int remove_served(const struct ctl_args *args, const struct export_file *file)
{
	int fd, status;

	if (make_mark(file, &fd))
		return EXIT_FAILURE;
	status = have_removed(args, file);
	close(fd);
	return status;
}

/* It has gone, and a command that was killed has left its file. */
static int remove_left(const struct ctl_args *args, const struct export_file *file)
{
	if (access(file->mark, F_OK) == 0)
		return export_remove_finish(args, file) ? EXIT_FAILURE : EXIT_SUCCESS;
	log_error("%s: the server has no export '%s': see 'rmemfsctl export list'",
		args->operands[CTL_HOST], args->operands[CTL_EXPORT]);
	return EXIT_FAILURE;
}

static int remove_locked(const struct ctl_args *args, const struct export_file *file)
{
	json_t *root = export_status_fetch(args->operands[CTL_HOST]);
	const json_t *export;
	int status;

	if (!root)
		return EXIT_FAILURE;
	export = export_status_find(root, args->operands[CTL_EXPORT]);
	if (!export)
		status = remove_left(args, file);
	else if (!args->yes)
		status = tell_loss(args, export);
	else
		status = remove_served(args, file);
	json_decref(root);
	return status;
}

int export_remove(const struct ctl_args *args)
{
	struct export_file file = {.lock = -1};
	int status = EXIT_FAILURE;

	if (export_file_name(args, &file))
		return status;
	if (!export_file_lock(&file))
		status = remove_locked(args, &file);
	if (file.lock >= 0)
		close(file.lock);
	return status;
}
