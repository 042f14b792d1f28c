/* exports.c - see exports.h. */
#include "daemon/ctl/exports.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/types.h"
#include "common/base/util.h"
#include "common/base/word.h"
#include "common/conf/conf.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/export_file.h"
#include "daemon/ctl/export_remove.h"
#include "daemon/ctl/export_resize.h"
#include "daemon/ctl/export_status.h"

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
	err = fflush(f) != 0 || ferror(f) ? -EIO : export_file_give(fd);
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
		return export_file_fail("make", file->path, err);
	if (fsync(file->lock) == 0)
		return 0;
	err = -errno;
	unlink(file->path);
	return export_file_fail("write", file->path, err);
}

static int write_file(const struct export_file *file, const struct ctl_args *args)
{
	int fd, err;

	/* One that was killed has left it: we have the lock. */
	unlink(file->draft);
	fd = open(file->draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return export_file_fail("make", file->draft, -errno);
	err = write_text(fd, args);
	err = err ? export_file_fail("write", file->draft, err) : publish(file);
	unlink(file->draft);
	return err;
}

static void take_back(const struct export_file *file)
{
	if (unlink(file->path) != 0 || fsync(file->lock) != 0)
		log_error("can't remove %s again: %s: remove it", file->path, errno_text(errno));
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
	json_t *root = export_status_fetch(where);
	bool served = root && export_status_find(root, name);

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
	const char *where = args->operands[CTL_HOST];
	char why[RPC_TEXT_MAX + 1], say[PATH_MAX + 256];
	enum ctl_end end;
	int err;

	/* It goes on with the reload. So the file can't be taken back. */
	snprintf(say, sizeof(say),
		"rmemfsctl: interrupted: whether the export was added is not known, and %s stays: "
		"see 'rmemfsctl export list'\n",
		file->path);
	err = export_file_reload(where, say, &end, why);
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

	if (export_file_name(args, &file) || check_size(args->operands[CTL_SIZE]) ||
		check_key_file(args->key_file))
		return status;
	if (!export_file_lock(&file) && !export_remove_finish(args, &file) &&
		!write_file(&file, args))
		status = reload(args, &file);
	if (file.lock >= 0)
		close(file.lock);
	return status;
}

/* ---- list ------------------------------------------------------------------------------------ */

/* The server tells the file, which may be gone. Only those of exports.d are shown: rmemfsctl
 * removes these. */
static void print_file(const json_t *export)
{
	const char *path = json_string_value(json_object_get(export, "config_file"));

	if (!path || !strstr(path, "exports.d/"))
		puts("-");
	else if (access(path, F_OK) != 0 && errno == ENOENT)
		printf("%s (gone)\n", path);
	else
		puts(path);
}

static void print_export(const json_t *root, const json_t *export)
{
	const char *name = export_status_name(export);
	char size[32], used[32];

	if (!*name)
		return;
	size_format(
		(uint64_t)json_integer_value(json_object_get(export, "bytes")), size, sizeof(size));
	size_format(
		(uint64_t)json_integer_value(json_object_get(export, "used")), used, sizeof(used));
	printf("%-20s %10s %10s %7u  ", name, size, used, export_status_mounts(root, name));
	print_file(export);
}

static int list(const struct ctl_args *args)
{
	json_t *root = export_status_fetch(args->operands[CTL_HOST]);
	const json_t *export;
	size_t i;

	if (!root)
		return EXIT_FAILURE;
	printf("%-20s %10s %10s %7s  %s\n", "EXPORT", "SIZE", "USED", "MOUNTS", "FILE");
	json_array_foreach(json_object_get(root, "exports"), i, export) print_export(root, export);
	json_decref(root);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int ctl_export(const struct ctl_args *args)
{
	const char *action = args->operands[CTL_ACTION];

	if (strcmp(action, "list") == 0)
		return list(args);
	if (strcmp(action, "resize") == 0)
		return check_size(args->operands[CTL_SIZE]) ? EXIT_FAILURE : export_resize(args);
	return strcmp(action, "add") == 0 ? add(args) : export_remove(args);
}
