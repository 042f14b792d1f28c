/* config_files.c - see config_files.h. */
#include "server/config/config_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "server/config/config.h"

static const char suffix[] = ".conf";

enum { KEYS_MAX = 32 };

static int config_files_select(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name), end = sizeof(suffix) - 1;

	return entry->d_name[0] != '.' && len > end &&
	       strcmp(entry->d_name + len - end, suffix) == 0;
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

/* path: of config->files, which outlive the exports. */
static int read_file(struct server_config *config, const char *path, char *why, size_t whylen)
{
	const struct conf_key *exports = conf_find(server_config_keys, "exports");
	const struct conf_key keys[] = {*exports, {0}};
	const char *others[KEYS_MAX];
	const struct conf_elsewhere elsewhere = {"server.conf", others};
	struct server_config one = {0};
	struct export_config *export;
	int err;

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

static int read_directory(struct server_config *config, const char *dir, char *why, size_t whylen)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, config_files_select, config_files_compare), err = 0;

	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0) {
		err = -errno;
		snprintf(why, whylen, "%s: %s", dir, errno_text(err));
		return err;
	}
	for (int i = 0; i < n; i++) {
		if (!err)
			err = add_file(config, dir, entries[i]->d_name, why, whylen);
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
