#include "server/access/access.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/util.h"
#include "common/base/word.h"

/* A question, and the names in it as texts show them. */
struct question {
	const struct access_table *table;
	const struct access_peer *peer;
	const struct access_wish *wish;
	const struct access_export *export; /* NULL: it is not there */
	const char *key;                    /* the id of a proven key that is still ours, or NULL */
	char quoted[WORD_QUOTED_BYTES];     /* the export's name */
	struct access_decision *out;
};

__attribute__((format(printf, 2, 3))) static void say(
	const struct question *q, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(q->out->log, sizeof(q->out->log), format, args);
	va_end(args);
}

/* The peer gets the reason, too. */
static int refuse_openly(const struct question *q, int err)
{
	memcpy(q->out->answer, q->out->log, sizeof(q->out->answer));
	return err;
}

/* The answer depends on nothing but the peer's own words. */
static int refuse_blindly(const struct question *q)
{
	struct access_decision *out = q->out;

	if (q->peer->proof)
		snprintf(out->answer, sizeof(out->answer), "key %s has no export %s here",
			q->peer->proof->id, q->quoted);
	else
		snprintf(out->answer, sizeof(out->answer),
			"nobody gets export %s here without a key: have one made on the server "
			"(rmemfsctl keygen) and mount with key=FILE, or have a client made "
			"insecure there",
			q->quoted);
	return -EACCES;
}

static int allow(
	const struct question *q, const char *holder, enum access_level level, unsigned sessions)
{
	snprintf(q->out->holder, sizeof(q->out->holder), "%s", holder);
	q->out->level = level;
	q->out->sessions = sessions;
	return 0;
}

static const char gone[] = "key %s is no longer here, or has other bytes now";

/* ---- shm ------------------------------------------------------------------------------------- */

static int decide_local(const struct question *q)
{
	const struct access_table *table = q->table;
	enum access_level level = table->local > ACCESS_STATUS ? table->local : ACCESS_STATUS;

	if (!q->export) {
		say(q, "there is no export %s", q->quoted);
		return refuse_openly(q, -ENOENT);
	}
	if (q->wish->level <= level)
		return allow(q, CLIENT_LOCAL, level, CLIENT_SESSIONS_MAX);
	if (table->local == ACCESS_READ_ONLY) {
		say(q, "export %s may only be read over shm (local_access): mount it with ro",
			q->quoted);
		return refuse_openly(q, -EROFS);
	}
	say(q, "export %s can't be mounted over shm: local_access is \"none\"", q->quoted);
	return refuse_openly(q, -EACCES);
}

/* ---- tcp and verbs --------------------------------------------------------------------------- */

static bool is_for_key(const struct access_client *client, const char *key)
{
	return key ? access_table_has(client, key) : !client->file;
}

/* The first client that has the key; with key NULL: that is insecure. *here: its hosts have the
 * peer's address. One where they have comes before one where they have not. */
static const struct access_client *find_client(
	const struct question *q, const char *key, bool *here)
{
	const struct access_client *elsewhere = NULL;

	for (size_t i = 0; i < q->export->n; i++) {
		const struct access_client *client = &q->export->clients[i];

		if (!is_for_key(client, key))
			continue;
		*here = !client->nhosts ||
			hosts_match(client->hosts, client->nhosts, q->peer->address);
		if (*here)
			return client;
		if (!elsewhere)
			elsewhere = client;
	}
	return elsewhere;
}

/* A config has no insecure client beside a demand, so the peer has a key here. */
static int decide_channel(const struct question *q, const struct access_client *client)
{
	enum protection wanted = q->export->protection;

	if (protection_allows(wanted, q->peer->kind, q->peer->protection)) {
		q->out->squash = client->squash;
		q->out->keyed = client->file;
		return allow(q, client->name, client->level, client->sessions);
	}
	say(q, "export %s has protection = \"%s\", and %s protects %s: mount it with %s", q->quoted,
		protection_name(wanted),
		q->peer->kind == TRANSPORT_VERBS ? "verbs" : "this connection",
		q->peer->protection == CHANNEL_MESSAGES ? "messages alone" : "less",
		q->peer->kind == TRANSPORT_VERBS
			? "transport=tcp, or with transport=auto, which takes tcp then"
			: "protection=best");
	return refuse_openly(q, -EPROTONOSUPPORT);
}

static int decide_level(const struct question *q, const struct access_client *client)
{
	const char *key = client->file ? q->key : NULL;
	bool reads = client->level == ACCESS_READ_ONLY;

	if (q->wish->level <= client->level)
		return decide_channel(q, client);
	say(q, "%s%s may only %s export %s%s", key ? "key " : "a client without a key",
		key ? key : "", reads ? "read" : "ask for the state of", q->quoted,
		reads ? ": mount it with ro" : "");
	return refuse_openly(q, reads ? -EROFS : -EACCES);
}

/* keyed, insecure: the clients that would let the peer in from another address; or NULL. */
static void say_no_client(const struct question *q, const struct access_client *keyed,
	const struct access_client *insecure)
{
	const char *id = q->peer->proof ? q->peer->proof->id : NULL;

	if (id && !q->key)
		say(q, gone, id);
	else if (!q->export)
		say(q, "there is no export %s", q->quoted);
	else if (!q->export->n)
		say(q,
			"export %s has no clients: make a key (rmemfsctl keygen) and name its file in "
			"clients, or make a client insecure",
			q->quoted);
	else if (keyed)
		say(q,
			"key %s is not for export %s from this address: it is not in hosts of client "
			"%s",
			id, q->quoted, keyed->name);
	else if (id)
		say(q, "key %s is not for export %s: no client of it has a file with this key", id,
			q->quoted);
	else if (insecure)
		say(q,
			"it has no key, and its address is not in hosts of client %s, which export %s "
			"lets in without one",
			insecure->name, q->quoted);
	else
		say(q,
			"it has no key, and export %s lets nobody in without one: mount it "
			"with a client's key (key=FILE)",
			q->quoted);
}

static int decide_remote(const struct question *q)
{
	const struct access_client *keyed = NULL, *insecure = NULL;
	bool here = false;

	if (q->export && q->key) {
		keyed = find_client(q, q->key, &here);
		if (keyed && here)
			return decide_level(q, keyed);
	}
	if (q->export) {
		insecure = find_client(q, NULL, &here);
		if (insecure && here)
			return decide_level(q, insecure);
	}
	say_no_client(q, keyed, insecure);
	return refuse_blindly(q);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* A reload may have taken the key away, or given its id to another secret. */
static const char *proven_key(const struct access_table *table, const struct access_proof *proof)
{
	const struct access_key *key =
		proof ? access_table_key(table, proof->id, strlen(proof->id)) : NULL;

	return key && strcmp(key->proof.fingerprint, proof->fingerprint) == 0 ? key->proof.id
									      : NULL;
}

static void quote_name(const struct access_wish *wish, char *quoted)
{
	char name[WORD_QUOTED_BYTES];

	snprintf(name, sizeof(name), "%.*s", (int)min_u64(wish->len, sizeof(name) - 1),
		wish->export_name);
	word_quote(name, quoted);
}

int access_decide(const struct access_table *table, const struct access_peer *peer,
	const struct access_wish *wish, struct access_decision *decision)
{
	struct question q = {.table = table, .peer = peer, .wish = wish, .out = decision};

	*decision = (struct access_decision){0};
	q.export = access_table_export(table, wish->export_name, wish->len);
	q.key = proven_key(table, peer->proof);
	quote_name(wish, q.quoted);
	return peer->kind == TRANSPORT_SHM ? decide_local(&q) : decide_remote(&q);
}

static bool is_same_squash(const struct squash *a, const struct squash *b)
{
	return a->kind == b->kind && a->anonuid == b->anonuid && a->anongid == b->anongid;
}

bool access_still(const struct access_table *table, const struct access_peer *peer,
	const struct access_wish *wish, const struct access_terms *terms, char *reason, size_t len)
{
	struct access_decision decision;

	if (peer->kind != TRANSPORT_SHM && peer->proof && !proven_key(table, peer->proof)) {
		snprintf(reason, len, gone, peer->proof->id);
		return false;
	}
	if (access_decide(table, peer, wish, &decision)) {
		snprintf(reason, len, "%s", decision.log);
		return false;
	}
	if (strcmp(decision.holder, terms->holder) != 0) {
		snprintf(reason, len, "it was let in as client %s, and is client %s now",
			terms->holder, decision.holder);
		return false;
	}
	if (is_same_squash(&decision.squash, &terms->squash))
		return true;
	snprintf(reason, len, "squash, anonuid or anongid of client %s has changed", terms->holder);
	return false;
}

static enum access_view view_of(const struct access_client *client, char *holder)
{
	if (client->level == ACCESS_STATUS)
		return ACCESS_SEES_ALL;
	if (!client->file)
		return ACCESS_SEES_NOTHING;
	snprintf(holder, CLIENT_NAME_MAX + 1, "%s", client->name);
	return ACCESS_SEES_OWN;
}

enum access_view access_view(const struct access_table *table, const struct access_peer *peer,
	const char *export_name, char holder[CLIENT_NAME_MAX + 1])
{
	struct question q = {.table = table, .peer = peer};
	const struct access_client *client = NULL;
	bool here = false;

	if (peer->kind == TRANSPORT_SHM)
		return ACCESS_SEES_ALL;
	q.export = access_table_export(table, export_name, strlen(export_name));
	if (!q.export)
		return ACCESS_SEES_NOTHING;
	q.key = proven_key(table, peer->proof);
	if (q.key)
		client = find_client(&q, q.key, &here);
	if (!client || !here)
		client = find_client(&q, NULL, &here);
	return client && here ? view_of(client, holder) : ACCESS_SEES_NOTHING;
}
