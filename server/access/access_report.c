#include "server/access/access_report.h"

#include "common/base/log.h"
#include "server/base/squash_text.h"

static const char *level_text(enum access_level level)
{
	switch (level) {
	case ACCESS_READ_WRITE:
		return "may read and write";
	case ACCESS_READ_ONLY:
		return "may read";
	case ACCESS_STATUS:
		return "may ask for its state";
	default:
		return "may not mount it";
	}
}

/* ---- the lines ------------------------------------------------------------------------------- */

static void print_keys(
	const struct access_table *table, const struct access_client *client, FILE *to)
{
	const struct auth_key_file *keys = &client->file->keys;

	fprintf(to, "with key");
	for (size_t i = 0; i < keys->n; i++) {
		const char *id = keys->v[i].id;

		fprintf(to, "%s %s (fingerprint %s)", i ? " or" : "", id,
			access_table_key(table, id, strlen(id))->proof.fingerprint);
	}
	fprintf(to, " of %s", client->file->path);
}

static void print_client(const struct access_table *table, const struct access_export *export,
	const struct access_client *client, FILE *to)
{
	char host[HOSTS_TEXT_BYTES], note[SQUASH_TEXT_BYTES];

	fprintf(to, "export '%s': client '%s' %s, ", export->name, client->name,
		level_text(client->level));
	if (client->file)
		print_keys(table, client, to);
	else
		fprintf(to, "without a key");
	fprintf(to, client->nhosts ? ", from" : ", from any address");
	for (size_t i = 0; i < client->nhosts; i++)
		fprintf(to, "%s %s", i ? "," : "", hosts_format(&client->hosts[i], host));
	if (client->sessions < CLIENT_SESSIONS_MAX)
		fprintf(to, "; %u session%s at a time", client->sessions,
			client->sessions == 1 ? "" : "s");
	if (client->squash.kind != SQUASH_NONE)
		fprintf(to, "; %s", squash_text_note(&client->squash, note));
	fputc('\n', to);
}

void access_report_print(const struct access_table *table, FILE *to)
{
	for (size_t i = 0; i < table->nexports; i++) {
		const struct access_export *export = &table->exports[i];

		if (!export->n)
			fprintf(to, "export '%s': nobody over tcp and verbs\n", export->name);
		else if (export->protection == PROTECTION_ALL)
			fprintf(to,
				"export '%s': all bytes are protected, so nobody can mount it over "
				"verbs\n",
				export->name);
		else if (export->protection == PROTECTION_MESSAGES)
			fprintf(to,
				"export '%s': over tcp file bytes are plain for a mount with "
				"protection=messages\n",
				export->name);
		for (size_t j = 0; j < export->n; j++)
			print_client(table, export, &export->clients[j], to);
	}
	fprintf(to, "each export: over shm root and the server's user %s\n",
		level_text(table->local));
}

/* ---- warnings -------------------------------------------------------------------------------- */

static bool is_from_anywhere(const struct access_client *client)
{
	for (size_t i = 0; i < client->nhosts; i++)
		if (client->hosts[i].prefix == 0)
			return true;
	return !client->nhosts;
}

static const char *common_key(const struct access_client *a, const struct access_client *b)
{
	const struct auth_key_file *keys = &a->file->keys;

	for (size_t i = 0; i < keys->n; i++)
		if (access_table_has(b, keys->v[i].id))
			return keys->v[i].id;
	return NULL;
}

static void warn_of_common_key(const struct access_export *export, size_t i)
{
	for (size_t j = 0; export->clients[i].file && j < i; j++) {
		const struct access_client *first = &export->clients[j];
		const char *key = first->file ? common_key(first, &export->clients[i]) : NULL;

		if (key)
			log_warning("export '%s': key %s is of client '%s' and of client '%s': the "
				    "first one whose hosts have the peer's address counts",
				export->name, key, first->name, export->clients[i].name);
	}
}

static void warn_of_clients(const struct access_export *export, bool network)
{
	for (size_t i = 0; i < export->n; i++) {
		const struct access_client *client = &export->clients[i];

		if (network && !client->file && is_from_anywhere(client))
			log_warning(
				"export '%s': client '%s' is insecure and may come from any "
				"address: anybody who reaches this server %s without a key; name "
				"its addresses in hosts",
				export->name, client->name, level_text(client->level));
		warn_of_common_key(export, i);
	}
}

static bool listens(const struct server_config *config, enum transport_kind kind)
{
	for (size_t i = 0; i < config->listen.n; i++)
		if (config->addresses[i].kind == kind)
			return true;
	return false;
}

void access_report_warn(const struct access_table *table, const struct server_config *config)
{
	bool tcp = listens(config, TRANSPORT_TCP);
	bool network = tcp || listens(config, TRANSPORT_VERBS);

	/* Those that are kept come behind, and have been warned of. */
	for (size_t i = 0; i < config->exports.n; i++) {
		const struct access_export *export = &table->exports[i];

		if (!export->n && network)
			log_warning("export '%s' has no clients: nobody can mount it over tcp and "
				    "verbs. Make a key (rmemfsctl keygen) and name its file in %s",
				export->name,
				config->exports.lines[i] ? "clients, or say insecure there"
							 : "--key, or say --insecure");
		if (export->n && network && !tcp && export->protection == PROTECTION_ALL)
			log_warning(
				"export '%s' has protection = \"all\", and the server listens at "
				"no tcp address: nobody can mount it over verbs. Add tcp:HOST to "
				"listen, or take protection away",
				export->name);
		warn_of_clients(export, network);
	}
}
