#include "server/config/config_clients.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/util.h"
#include "server/base/squash_text.h"

#define KEY(key) .name = #key, .offset = offsetof(struct export_client, key)

static const struct word access_words[] = {
	{"read-write", ACCESS_READ_WRITE},
	{"read-only", ACCESS_READ_ONLY},
	{"status", ACCESS_STATUS},
	{0},
};

const struct word config_clients_local_words[] = {
	{"read-write", ACCESS_READ_WRITE},
	{"read-only", ACCESS_READ_ONLY},
	{"none", ACCESS_NONE},
	{0},
};

/* As key ids are, since a key is best named by its holder. */
static const char *check_name(const char *name)
{
	if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-")] != '\0')
		return "must be of small letters, digits, '.', '_' and '-'";
	if (strchr("._-", name[0]))
		return "must begin with a small letter or a digit";
	if (strcmp(name, CLIENT_LOCAL) == 0)
		return "must be another name: this one is for root and the server's user over shm";
	return NULL;
}

static const char *check_path(const char *path)
{
	return path[0] == '/' ? NULL : "must be a path from / on";
}

enum { KEY_NAME, KEY_KEYS };

/* The highest number stands for no id at all, as in chown(2). */
#define ID_MAX (UINT32_MAX - 1)

const struct conf_key config_clients_keys[] = {
	[KEY_NAME] = {KEY(name), .type = CONF_STRING, .min = 1, .max = CLIENT_NAME_MAX,
		.check = check_name, .required = true},
	[KEY_KEYS] = {KEY(keys), .type = CONF_STRING, .min = 1, .max = 1024, .check = check_path},
	{KEY(hosts), .type = CONF_STRINGS},
	{KEY(access), .type = CONF_ENUM, .words = access_words},
	{KEY(sessions), .type = CONF_UINT, .min = 1, .max = CLIENT_SESSIONS_MAX},
	{KEY(insecure), .type = CONF_BOOL},
	{KEY(squash), .type = CONF_ENUM, .words = squash_text_words},
	{KEY(anonuid), .type = CONF_UINT, .min = 1, .max = ID_MAX},
	{KEY(anongid), .type = CONF_UINT, .min = 1, .max = ID_MAX},
	{0},
};

__attribute__((format(printf, 3, 4))) static int refuse(
	char *why, size_t whylen, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, whylen, format, args);
	va_end(args);
	return -EINVAL;
}

static bool has_twin(const struct export_client *v, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (strcmp(v[j].name, v[i].name) == 0)
			return true;
	return false;
}

/* Root as the anonymous user would squash nothing: the keys' ranges keep it out. */
static int finish_squash(
	struct export_client *client, const char *path, unsigned line, char *why, size_t whylen)
{
	if (client->squash == SQUASH_NONE && (client->anonuid || client->anongid))
		return refuse(why, whylen,
			"%s:%u: clients: '%s': %s has no meaning without squash = \"root\" or "
			"\"all\"",
			path, line, client->name, client->anonuid ? "anonuid" : "anongid");
	if (client->squash == SQUASH_NONE)
		return 0;
	if (!client->anonuid)
		client->anonuid = CLIENT_ANONYMOUS_ID;
	if (!client->anongid)
		client->anongid = CLIENT_ANONYMOUS_ID;
	return 0;
}

int config_clients_finish(struct conf_groups *clients, const char *path, char *why, size_t whylen)
{
	struct export_client *v = clients->v;

	for (size_t i = 0; i < clients->n; i++) {
		if (!v[i].keys == !v[i].insecure)
			return refuse(why, whylen,
				"%s:%u: clients: each needs keys or insecure = true, and not both",
				path, clients->lines[i]);
		if (has_twin(v, i))
			return refuse(why, whylen,
				"%s:%u: clients: '%s': this export has another client of this name",
				path, clients->lines[i], v[i].name);
		if (!v[i].access)
			v[i].access = ACCESS_READ_WRITE;
		if (!v[i].sessions)
			v[i].sessions = CLIENT_SESSIONS_MAX;
		if (finish_squash(&v[i], path, clients->lines[i], why, whylen))
			return -EINVAL;
	}
	return 0;
}

/* ---- the command line ------------------------------------------------------------------------ */

/* "web" of "/etc/rmemfs/keys/web.key". */
static char *name_of(const char *file)
{
	static const char suffix[] = ".key";
	const char *slash = strrchr(file, '/');
	const char *name = slash ? slash + 1 : file;
	size_t len = strlen(name), end = sizeof(suffix) - 1;

	if (len > end && strcmp(name + len - end, suffix) == 0)
		len -= end;
	return strndup(name, len);
}

static int name_by_file(struct export_client *client, const char *file, char *why, size_t whylen)
{
	autofree char *name = name_of(file);
	char must[256], quoted[WORD_QUOTED_BYTES];
	int err;

	if (!name)
		return -ENOMEM;
	err = conf_set(&config_clients_keys[KEY_NAME], client, name, must, sizeof(must));
	if (err != -EINVAL)
		return err;
	return refuse(why, whylen,
		"--key: %s: the file's name is the client's, and without '.key' it %s",
		word_quote(file, quoted), must);
}

int config_clients_add(const struct conf_key *key, struct conf_groups *clients, const char *file,
	char *why, size_t whylen)
{
	struct export_client *client = conf_add_group(key, clients, 0);
	int err;

	if (!client)
		return -ENOMEM;
	if (!file) {
		client->insecure = true;
		client->name = strdup(CLIENT_ANYBODY);
		return client->name ? 0 : -ENOMEM;
	}
	err = name_by_file(client, file, why, whylen);
	if (err)
		return err;
	client->keys = strdup(file); /* it may be relative, as a shell's user writes it */
	return client->keys ? 0 : -ENOMEM;
}
