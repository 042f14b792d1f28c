/* attach_change.c - see attach_change.h. */
#include "server/session/attach_change.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/printable.h"
#include "server/session/conn.h"

/* A client may change its session as often as it likes, but not fill the log. */
enum { LOG_MS = 1000, LOG_BURST = 64 };

static int store_change(struct client_session *session, uint32_t flags, uint16_t version)
{
	struct meta *m = session->server->meta;
	int err = meta_begin(m);

	if (err)
		return err;
	if (flags != session->stored.flags)
		err = meta_session_set_flags(m, session->stored.id, flags);
	if (!err && version != session->stored.wire_version)
		err = meta_session_set_version(m, session->stored.id, version);
	if (!err)
		return meta_commit(m);
	meta_abort(m);
	return err;
}

static void log_change(const struct client_session *session, uint32_t flags, uint16_t version)
{
	static struct log_ratelimit limit = {.burst = LOG_BURST};
	const struct meta_session *stored = &session->stored;
	char text[64];

	if (version != stored->wire_version)
		snprintf(text, sizeof(text), "speaks version %u of the protocol now", version);
	else
		snprintf(text, sizeof(text), "%s",
			flags & ATTACH_READ_ONLY ? "is read-only now" : "may write now");
	if (log_ratelimit_ok(&limit, LOG_MS))
		log_info("session %" PRIu64 " of %s at export '%s' %s", stored->id, stored->client,
			session->export->name, text);
}

static int store_client(struct client_session *session, const char *client)
{
	struct meta *m = session->server->meta;
	int err = meta_begin(m);

	if (err)
		return err;
	err = meta_session_set_client(m, session->stored.id, client);
	if (!err)
		return meta_commit(m);
	meta_abort(m);
	return err;
}

void attach_change_client(struct client_session *session, const struct rpc_str *said)
{
	static struct log_ratelimit limit = {.burst = LOG_BURST};
	struct meta_session *stored = &session->stored;
	char client[sizeof(stored->client)];
	int err;

	printable_copy(client, sizeof(client), said->s, said->len);
	if (strcmp(client, stored->client) == 0)
		return;
	err = store_client(session, client);
	if (log_ratelimit_ok(&limit, LOG_MS))
		log_info("session %" PRIu64 " of %s at export '%s' is of %s now%s%s", stored->id,
			stored->client, session->export->name, client,
			err ? "; a restart forgets this, as the store failed: " : "",
			err ? errno_text(err) : "");
	memcpy(stored->client, client, sizeof(client));
}

int attach_change_session(struct client_session *session, uint32_t flags, uint16_t version)
{
	int err;

	if (flags == session->stored.flags && version == session->stored.wire_version)
		return 0;
	err = store_change(session, flags, version);
	if (err)
		return err;
	log_change(session, flags, version);
	session->stored.flags = flags;
	session->stored.wire_version = version;
	list_for_each (pos, &session->conns)
		conn_fence(list_entry(pos, struct conn, link));
	return 0;
}
