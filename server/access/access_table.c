#include "server/access/access_table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "common/base/word.h"

/* A table that is being made, and the place for a complaint. */
struct builder {
	const struct server_config *config;
	const struct access_kept *kept;
	const char *path; /* the file of the export that is being added */
	struct access_table *table;
	char *why;
	size_t whylen;
};

/* line 0: the element is from the command line, and option gave it. */
__attribute__((format(printf, 5, 6))) static int refuse(const struct builder *b, unsigned line,
	const char *key, const char *option, const char *format, ...)
{
	char reason[512];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	if (line)
		snprintf(b->why, b->whylen, "%s:%u: %s: %s", b->path, line, key, reason);
	else
		snprintf(b->why, b->whylen, "%s: %s", option, reason);
	return -EINVAL;
}

/* ---- key files ------------------------------------------------------------------------------- */

static struct access_file *find_file(struct access_table *table, const char *path)
{
	for (size_t i = 0; i < table->nfiles; i++)
		if (strcmp(table->files[i].path, path) == 0)
			return &table->files[i];
	return NULL;
}

/* Each path is read once: two reads might see the file before and after a change. */
static int load_file(
	const struct builder *b, const char *path, unsigned line, const struct access_file **out)
{
	struct access_file *file = find_file(b->table, path);
	char why[384];
	int err;

	*out = file;
	if (file)
		return 0;
	file = &b->table->files[b->table->nfiles];
	file->path = strdup(path);
	if (!file->path)
		return -ENOMEM;
	b->table->nfiles++;
	err = auth_key_file_read(path, &file->keys, why, sizeof(why));
	if (err) {
		refuse(b, line, "keys", "--key", "%s", why);
		return err;
	}
	*out = file;
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	const struct access_key *x = a, *y = b;

	return strcmp(x->proof.id, y->proof.id);
}

static const struct access_file *file_of(
	const struct access_table *table, const struct access_key *key)
{
	for (size_t i = 0; i < table->nfiles; i++) {
		const struct auth_key_file *keys = &table->files[i].keys;

		for (size_t j = 0; j < keys->n; j++)
			if (&keys->v[j] == key->secret)
				return &table->files[i];
	}
	return NULL;
}

static int check_twins(const struct builder *b)
{
	const struct access_table *table = b->table;

	for (size_t i = 1; i < table->nkeys; i++) {
		const struct access_key *one = &table->keys[i - 1], *other = &table->keys[i];

		if (strcmp(one->proof.id, other->proof.id) != 0 ||
			memcmp(one->secret->secret, other->secret->secret, AUTH_KEY_BYTES) == 0)
			continue;
		snprintf(b->why, b->whylen,
			"key %s is in %s and in %s with other bytes: remove the one that no client "
			"has, or make one of them anew (rmemfsctl keygen)",
			one->proof.id, file_of(table, one)->path, file_of(table, other)->path);
		return -EINVAL;
	}
	return 0;
}

static int add_key(struct access_table *table, const struct auth_key *secret)
{
	struct access_key *key = &table->keys[table->nkeys++];

	key->secret = secret;
	memcpy(key->proof.id, secret->id, sizeof(key->proof.id));
	return auth_key_fingerprint(secret, key->proof.fingerprint);
}

static int index_keys(const struct builder *b)
{
	struct access_table *table = b->table;
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < table->nfiles; i++)
		n += table->files[i].keys.n;
	table->keys = calloc(n + 1, sizeof(*table->keys));
	if (!table->keys)
		return -ENOMEM;
	for (size_t i = 0; i < table->nfiles; i++)
		for (size_t j = 0; !err && j < table->files[i].keys.n; j++)
			err = add_key(table, &table->files[i].keys.v[j]);
	if (err) {
		snprintf(b->why, b->whylen, "can't compute with keys: %s", errno_text(err));
		return err;
	}
	qsort(table->keys, table->nkeys, sizeof(*table->keys), compare_keys);
	return check_twins(b);
}

/* ---- exports and their clients --------------------------------------------------------------- */

static int add_hosts(
	const struct builder *b, const struct conf_strings *texts, struct access_client *client)
{
	char must[256], quoted[WORD_QUOTED_BYTES];

	client->hosts = calloc(texts->n + 1, sizeof(*client->hosts));
	if (!client->hosts)
		return -ENOMEM;
	for (size_t i = 0; i < texts->n; i++)
		if (hosts_parse(texts->v[i], &client->hosts[i], must, sizeof(must)))
			return refuse(b, texts->lines[i], "hosts", "hosts", "%s: %s",
				word_quote(texts->v[i], quoted), must);
	client->nhosts = texts->n;
	return 0;
}

static int add_client(const struct builder *b, const struct export_client *config, unsigned line,
	struct access_client *client)
{
	int err;

	*client = (struct access_client){
		.level = config->access,
		.sessions = (unsigned)config->sessions,
		.squash = {(uint8_t)config->squash, (uint32_t)config->anonuid,
			(uint32_t)config->anongid},
	};
	snprintf(client->name, sizeof(client->name), "%s", config->name);
	err = add_hosts(b, &config->hosts, client);
	if (err || config->insecure)
		return err;
	return load_file(b, config->keys, line, &client->file);
}

static int add_export(
	const struct builder *b, const struct export_config *config, struct access_export *export)
{
	int err = 0;

	export->protection = config->protection;
	export->name = strdup(config->name);
	export->clients = calloc(config->clients.n + 1, sizeof(*export->clients));
	if (!export->name || !export->clients)
		return -ENOMEM;
	for (; !err && export->n < config->clients.n; export->n++)
		err = add_client(b, server_config_client(config, export->n),
			config->clients.lines[export->n], &export->clients[export->n]);
	return err;
}

static int keep_client(
	const struct builder *b, const struct access_client *from, struct access_client *client)
{
	*client = *from;
	client->file = NULL;
	client->hosts = calloc(from->nhosts + 1, sizeof(*client->hosts));
	if (!client->hosts)
		return -ENOMEM;
	for (size_t i = 0; i < from->nhosts; i++)
		client->hosts[i] = from->hosts[i];
	if (from->file && load_file(b, from->file->path, 0, &client->file) == -ENOMEM)
		return -ENOMEM;
	if (from->file)
		client->file = find_file(b->table, from->file->path);
	return 0;
}

static int keep_export(
	const struct builder *b, const struct access_export *from, struct access_export *export)
{
	int err = 0;

	export->protection = from->protection;
	export->name = strdup(from->name);
	export->clients = calloc(from->n + 1, sizeof(*export->clients));
	if (!export->name || !export->clients)
		return -ENOMEM;
	for (; !err && export->n < from->n; export->n++)
		err = keep_client(b, &from->clients[export->n], &export->clients[export->n]);
	return err;
}

static int keep_all(const struct builder *b)
{
	const struct access_kept *kept = b->kept;
	struct access_table *table = b->table;
	int err = 0;

	for (size_t i = 0; !err && kept && i < kept->n; i++) {
		const struct access_export *from =
			access_table_export(kept->before, kept->names[i], strlen(kept->names[i]));

		if (from)
			err = keep_export(b, from, &table->exports[table->nexports++]);
	}
	return err;
}

/* Files are pointed to, so there is room for all from the begin on. */
static int make_room(const struct builder *b)
{
	const struct server_config *config = b->config;
	const struct access_kept *kept = b->kept;
	struct access_table *table = b->table;
	size_t nfiles = kept ? kept->before->nfiles : 0, nexports = config->exports.n;

	for (size_t i = 0; i < config->exports.n; i++)
		nfiles += server_config_export(config, i)->clients.n;
	nexports += kept ? kept->n : 0;
	table->files = calloc(nfiles + 1, sizeof(*table->files));
	table->exports = calloc(nexports + 1, sizeof(*table->exports));
	return table->files && table->exports ? 0 : -ENOMEM;
}

static int build(struct builder *b)
{
	const struct server_config *config = b->config;
	struct access_table *table = b->table;
	int err = make_room(b);

	for (; !err && table->nexports < config->exports.n; table->nexports++) {
		const struct export_config *export = server_config_export(config, table->nexports);

		b->path = export->path;
		err = add_export(b, export, &table->exports[table->nexports]);
	}
	if (!err)
		err = keep_all(b);
	return err ? err : index_keys(b);
}

static void free_export(struct access_export *export)
{
	for (size_t i = 0; i < export->n; i++)
		free(export->clients[i].hosts);
	free(export->clients);
	free(export->name);
}

static void free_table(struct access_table *table)
{
	for (size_t i = 0; i < table->nexports; i++)
		free_export(&table->exports[i]);
	for (size_t i = 0; i < table->nfiles; i++) {
		auth_key_file_free(&table->files[i].keys);
		free(table->files[i].path);
	}
	free(table->exports);
	free(table->files);
	free(table->keys);
	free(table);
}

int access_table_new(const struct server_config *config, const struct access_kept *kept,
	struct access_table **out, char *why, size_t whylen)
{
	struct access_table *table = calloc(1, sizeof(*table));
	int err;

	snprintf(why, whylen, "out of memory");
	if (!table)
		return -ENOMEM;
	atomic_init(&table->references, 1);
	table->local = config->local_access;
	err = build(&(struct builder){config, kept, .table = table, .why = why, .whylen = whylen});
	if (err)
		free_table(table);
	else
		*out = table;
	return err;
}

struct access_table *access_table_get(struct access_table *table)
{
	atomic_fetch_add(&table->references, 1);
	return table;
}

void access_table_put(struct access_table *table)
{
	if (table && atomic_fetch_sub(&table->references, 1) == 1)
		free_table(table);
}

/* ---- searching ------------------------------------------------------------------------------- */

const struct access_export *access_table_export(
	const struct access_table *table, const char *name, size_t len)
{
	for (size_t i = 0; i < table->nexports; i++) {
		const char *known = table->exports[i].name;

		if (strlen(known) == len && memcmp(known, name, len) == 0)
			return &table->exports[i];
	}
	return NULL;
}

const struct access_key *access_table_key(
	const struct access_table *table, const char *id, size_t len)
{
	struct access_key wanted = {0};

	if (!auth_key_is_id(id, len))
		return NULL;
	memcpy(wanted.proof.id, id, len);
	return bsearch(&wanted, table->keys, table->nkeys, sizeof(wanted), compare_keys);
}

bool access_table_has(const struct access_client *client, const char *id)
{
	return client->file && auth_key_file_find(&client->file->keys, id, strlen(id));
}
