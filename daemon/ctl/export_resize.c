/* export_resize.c - see export_resize.h. */
#include "daemon/ctl/export_resize.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/types.h"
#include "common/base/util.h"
#include "common/conf/conf.h"
#include "common/conf/conf_edit.h"
#include "common/conf/conf_text.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/export_file.h"
#include "daemon/ctl/export_status.h"

struct resize {
	const char *where, *name, *size;
	struct export_file file;
	char before[PATH_MAX]; /* the former file */
};

/* ---- the file -------------------------------------------------------------------------------- */

static int write_all(int fd, const char *text)
{
	size_t len = strlen(text);

	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	return fsync(fd) == 0 ? 0 : -errno;
}

/* It belongs to the same user and group, with the same mode. */
static int write_draft(const struct export_file *file, const struct stat *like, const char *text)
{
	int fd, err;

	/* One that was killed has left it: we have the lock. */
	unlink(file->draft);
	fd = open(file->draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return export_file_fail("make", file->draft, -errno);
	err = fchown(fd, like->st_uid, like->st_gid) == 0 && fchmod(fd, like->st_mode & 07777) == 0
		      ? write_all(fd, text)
		      : -errno;
	close(fd);
	if (err)
		unlink(file->draft);
	return err ? export_file_fail("write", file->draft, err) : 0;
}

static int sync_directory(const struct export_file *file)
{
	return fsync(file->lock) == 0 ? 0 : export_file_fail("write", file->dir, -errno);
}

/* The name has one of the two files at any time. */
static int publish(const struct resize *r)
{
	const struct export_file *file = &r->file;
	int err = 0;

	unlink(r->before);
	if (link(file->path, r->before) != 0 || rename(file->draft, file->path) != 0)
		err = export_file_fail("change", file->path, -errno);
	if (err) {
		unlink(r->before);
		unlink(file->draft);
	}
	return err ? err : sync_directory(file);
}

static void take_back(const struct resize *r)
{
	if (rename(r->before, r->file.path) != 0)
		log_error("can't put %s back: %s: it is %s: move it there", r->file.path,
			errno_text(errno), r->before);
	else
		sync_directory(&r->file);
}

static int refuse_text(const struct resize *r, const char *why)
{
	log_error("%s: the size of export '%s' can't be changed there: %s: edit it, and run "
		  "'rmemfsctl reload'",
		r->file.path, r->name, why);
	return -EINVAL;
}

static int change_file(const struct resize *r, const struct stat *st)
{
	const struct conf_place place = {"exports", "name", r->name, "size"};
	autofree char *text = NULL, *changed = NULL;
	char why[PATH_MAX + 256];
	int err = conf_text_load(r->file.path, &text, why, sizeof(why));

	if (err) {
		log_error("%s", why);
		return err;
	}
	err = conf_edit(text, &place, r->size, &changed);
	if (err)
		return refuse_text(
			r, err == -ENOENT ? "it has no size of that export" : "it can't be read");
	err = write_draft(&r->file, st, changed);
	return err ? err : publish(r);
}

/* ---- the server ------------------------------------------------------------------------------ */

static int fail_unknown(const struct resize *r, const char *why)
{
	unlink(r->before);
	log_error("%s: whether export '%s' has the new size is not known, and %s has it: see "
		  "'rmemfsctl export list', and repeat this",
		why, r->name, r->file.path);
	return EXIT_FAILURE;
}

/* A server that reads other files reloads without looking at this one. */
static int conclude(const struct resize *r)
{
	json_t *root = export_status_fetch(r->where);
	const json_t *export = root ? export_status_find(root, r->name) : NULL;
	json_int_t bytes = json_integer_value(json_object_get(export, "bytes"));
	uint64_t want = 0;

	json_decref(root);
	if (!root)
		return fail_unknown(r, r->where);
	size_parse(r->size, &want);
	if (export && (uint64_t)bytes == want) {
		unlink(r->before);
		return EXIT_SUCCESS;
	}
	take_back(r);
	log_error("%s: export '%s' is not resized: the server does not read %s: it has another "
		  "-c, which --config has to name",
		r->where, r->name, r->file.path);
	return EXIT_FAILURE;
}

static int have_resized(const struct resize *r)
{
	char why[RPC_TEXT_MAX + 1], say[PATH_MAX + 256];
	enum ctl_end end;
	int err;

	/* The server goes on with the reload. So the file can't be taken back. */
	snprintf(say, sizeof(say),
		"rmemfsctl: interrupted: whether export '%s' has the new size is not known, and %s "
		"has it: see 'rmemfsctl export list'\n",
		r->name, r->file.path);
	err = export_file_reload(r->where, say, &end, why);
	CRASH_POINT("resize.told");
	if (!err)
		return conclude(r);
	if (end == CTL_UNKNOWN)
		return fail_unknown(r, why);
	take_back(r);
	log_error("%s: export '%s' is not resized: %s", r->where, r->name, why);
	return EXIT_FAILURE;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int refuse_file(const struct resize *r, const char *has, bool is_link)
{
	if (!has)
		log_error("%s: export '%s' is of the server's command line, or the built-in one: "
			  "change its size there, and restart the server",
			r->where, r->name);
	else if (is_link)
		log_error("%s is a link: change the size of export '%s' in the file that it names, "
			  "and run 'rmemfsctl reload'",
			r->file.path, r->name);
	else
		log_error("export '%s' stands in %s, and not in %s: change its size there, and run "
			  "'rmemfsctl reload'",
			r->name, has, r->file.path);
	return -EINVAL;
}

/* The server says which file has the export. It may name the same file by another path. */
static int check_file(const struct resize *r, const json_t *export, struct stat *st)
{
	const char *has = json_string_value(json_object_get(export, "config_file"));
	struct stat theirs;

	if (!has || lstat(r->file.path, st) != 0 || stat(has, &theirs) != 0)
		return refuse_file(r, has, false);
	if (S_ISLNK(st->st_mode))
		return refuse_file(r, has, true);
	if (st->st_dev != theirs.st_dev || st->st_ino != theirs.st_ino)
		return refuse_file(r, has, false);
	return 0;
}

static int resize_locked(const struct resize *r)
{
	json_t *root = export_status_fetch(r->where);
	const json_t *export;
	struct stat st;
	int err = -ENOENT;

	if (!root)
		return EXIT_FAILURE;
	export = export_status_find(root, r->name);
	if (export)
		err = check_file(r, export, &st);
	else
		log_error("%s: the server has no export '%s': see 'rmemfsctl export list'",
			r->where, r->name);
	json_decref(root);
	if (!err)
		err = change_file(r, &st);
	CRASH_POINT("resize.written");
	return err ? EXIT_FAILURE : have_resized(r);
}

int export_resize(const struct ctl_args *args)
{
	struct resize r = {
		.where = args->operands[CTL_HOST],
		.name = args->operands[CTL_EXPORT],
		.size = args->operands[CTL_SIZE],
		.file = {.lock = -1},
	};
	int status = EXIT_FAILURE;

	if (export_file_name(args, &r.file))
		return status;
	snprintf(r.before, sizeof(r.before), "%.*s/.%s.before",
		(int)sizeof(r.before) - EXPORT_NAME_MAX - 10, r.file.dir, r.name);
	if (!export_file_lock(&r.file))
		status = resize_locked(&r);
	if (r.file.lock >= 0)
		close(r.file.lock);
	return status;
}
