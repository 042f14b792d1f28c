/* config_files.c - see config_files.h. */
#include "server/config/config_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "server/config/config.h"

static const char suffix[] = ".conf", mark_suffix[] = ".remove";

enum { KEYS_MAX = 32 };

static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), endlen = strlen(end);

	return len > endlen && strcmp(name + len - endlen, end) == 0;
}

static bool is_mark(const char *name)
{
	return name[0] == '.' && ends_with(name + 1, mark_suffix);
}

static int config_files_select(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return is_mark(name) || (name[0] != '.' && ends_with(name, suffix));
}

/* By bytes, in any locale. */
static int config_files_compare(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* The keys of the configuration file that these files do not have. */
static void name_others(const char *names[KEYS_MAX])
{
	size_t n = 0;

	for (const struct conf_key *key = server_config_keys; key->name && n + 1 < KEYS_MAX; key++)
		if (strcmp(key->name, "exports") != 0)
			names[n++] = key->name;
	names[n] = NULL;
}

/* A user that may change what is here could let clients in. The directory may be in one that is
 * everybody's. Containers have directories with mode 0777 on mounts that nobody can write to. */
static int check_writers(const char *path, const struct stat *st, char *why, size_t whylen)
{
	struct statvfs vfs;

	if (st->st_uid != 0 && st->st_uid != geteuid()) {
		snprintf(why, whylen,
			"%s belongs to user %u, and must belong to root or to the server's user: "
			"chown root %s",
			path, st->st_uid, path);
		return -EPERM;
	}
	if (!(st->st_mode & S_IWOTH) || (statvfs(path, &vfs) == 0 && vfs.f_flag & ST_RDONLY))
		return 0;
	snprintf(why, whylen, "%s has mode %04o, and other users may change it: chmod o-w %s", path,
		st->st_mode & 07777, path);
	return -EPERM;
}

/* A reload reads in the thread that serves all clients, and to open a pipe would hold it up. */
static int check_file(const char *path, char *why, size_t whylen)
{
	struct stat st;
	int err;

	if (stat(path, &st) != 0) {
		err = -errno;
		snprintf(why, whylen, "%s: %s", path, errno_text(err));
		return err;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, whylen, "%s: must be a regular file: move it away", path);
		return -EINVAL;
	}
	return check_writers(path, &st, why, whylen);
}

/* path: of config->files, which outlive the exports. */
static int read_file(struct server_config *config, const char *path, char *why, size_t whylen)
{
	const struct conf_key *exports = conf_find(server_config_keys, "exports");
	const struct conf_key keys[] = {*exports, {0}};
	const char *others[KEYS_MAX];
	const struct conf_elsewhere elsewhere = {"server.conf", others};
	struct server_config one = {0};
	struct export_config *export;
	int err = check_file(path, why, whylen);

	if (err)
		return err;
	name_others(others);
	err = conf_read(path, keys, &elsewhere, &one, why, whylen);
	export = one.exports.v;
	for (size_t i = 0; i < one.exports.n; i++)
		export[i].path = path;
	if (!err)
		err = conf_move_groups(exports, &one.exports, &config->exports);
	conf_free(keys, &one);
	return err;
}

static int add_file(
	struct server_config *config, const char *dir, const char *name, char *why, size_t whylen)
{
	autofree char *path = NULL;
	int err;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	err = conf_add_string(&config->files, path, 0);
	return err ? err : read_file(config, config->files.v[config->files.n - 1], why, whylen);
}

/* Whether a living command has it locked. */
static int look_at_mark(const char *path, enum removal_mark *mark, char *why, size_t whylen)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err;

	if (fd < 0) {
		err = -errno;
		snprintf(why, whylen, "%s: %s", path, errno_text(err));
		return err;
	}
	*mark = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK ? MARK_WANTED : MARK_LEFT;
	close(fd);
	return 0;
}

static int add_mark(
	struct server_config *config, const char *dir, const char *name, char *why, size_t whylen)
{
	autofree char *path = NULL, *export = NULL;
	size_t len = strlen(name + 1) - strlen(mark_suffix);
	enum removal_mark mark = MARK_LEFT;
	int err;

	export = strndup(name + 1, len);
	if (!export || asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	err = check_file(path, why, whylen);
	if (!err)
		err = look_at_mark(path, &mark, why, whylen);
	/* The command has ended since. */
	if (err == -ENOENT)
		return 0;
	return err ? err : conf_add_string(&config->marks, export, mark);
}

static int read_directory(struct server_config *config, const char *dir, char *why, size_t whylen)
{
	struct dirent **entries;
	struct stat st;
	int n, err = 0;

	if (stat(dir, &st) == 0)
		err = check_writers(dir, &st, why, whylen);
	if (err)
		return err;
	n = scandir(dir, &entries, config_files_select, config_files_compare);
	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0) {
		err = -errno;
		snprintf(why, whylen, "%s: %s", dir, errno_text(err));
		return err;
	}
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;

		if (!err)
			err = is_mark(name) ? add_mark(config, dir, name, why, whylen)
					    : add_file(config, dir, name, why, whylen);
		free(entries[i]);
	}
	free(entries);
	return err;
}

int config_files_read(struct server_config *config, const char *path, char *why, size_t whylen)
{
	const char *slash = strrchr(path, '/');
	autofree char *dir = NULL;

	snprintf(why, whylen, "out of memory");
	if (asprintf(&dir, "%.*sexports.d", slash ? (int)(slash + 1 - path) : 0, path) < 0)
		return -ENOMEM;
	return read_directory(config, dir, why, whylen);
}

static bool is_of_directory(const struct server_config *config, const struct export_config *export)
{
	const char *slash = export->path ? strrchr(export->path, '/') : NULL, *name;
	size_t len = strlen(export->name);
	bool listed = false;

	for (size_t i = 0; i < config->files.n; i++)
		listed |= config->files.v[i] == export->path;
	name = slash ? slash + 1 : export->path;
	return listed && strncmp(name, export->name, len) == 0 && strcmp(name + len, suffix) == 0;
}

bool config_files_is_alone(const struct server_config *config, const struct export_config *export,
	char *why, size_t whylen)
{
	const struct export_config *all = server_config_export(config, 0);
	unsigned line = config->exports.lines[export - all];

	if (!export->path) {
		snprintf(why, whylen,
			"export '%s' is of the server's command line, or the built-in one: take "
			"it out there, and restart the server",
			export->name);
		return false;
	}
	if (!is_of_directory(config, export)) {
		snprintf(why, whylen,
			"export '%s' stands in %s, line %u: take it out there, and remove it then",
			export->name, export->path, line);
		return false;
	}
	for (size_t i = 0; i < config->exports.n; i++) {
		if (all + i == export || all[i].path != export->path)
			continue;
		snprintf(why, whylen,
			"export '%s' stands in %s, line %u, beside export '%s': take it out there, "
			"and remove it then",
			export->name, export->path, line, all[i].name);
		return false;
	}
	return true;
}
