/* permit.c - see permit.h. */
#include "server/session/permit.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/session/client_session.h"

/* The places that struct access_peer points to. */
struct permit_peer {
	struct access_peer peer;
	struct sockaddr_storage address;
};

static void describe_peer(const struct conn *c, struct permit_peer *p)
{
	p->peer = (struct access_peer){
		.kind = transport_kind_of(c->port->transport),
		.proof = c->has_proof ? &c->proof : NULL,
		.protection = channel_protection(c->channel),
	};
	if (channel_peer_address(c->channel, &p->address))
		p->peer.address = (const struct sockaddr *)&p->address;
}

static enum access_level level_of(uint32_t attach_flags)
{
	return attach_flags & ATTACH_READ_ONLY ? ACCESS_READ_ONLY : ACCESS_READ_WRITE;
}

bool permit_attach(struct client_request *req, struct access_decision *decision)
{
	const struct rpc_attach *a = &req->rpc.attach;
	struct access_wish wish = {a->export_name.s, a->export_name.len, level_of(a->flags)};
	struct conn *c = req->conn;
	struct access_table *table = access_current_get(&c->server->access);
	struct permit_peer p;
	int err;

	describe_peer(c, &p);
	err = access_decide(table, &p.peer, &wish, decision);
	access_table_put(table);
	if (err)
		client_request_deny(req, err, decision->log, decision->answer);
	return !err;
}

enum access_view permit_view(
	const struct conn *c, const struct export *export, char holder[CLIENT_NAME_MAX + 1])
{
	struct access_table *table = access_current_get(&c->server->access);
	struct permit_peer p;
	enum access_view view;

	describe_peer(c, &p);
	view = access_view(table, &p.peer, export->name, holder);
	access_table_put(table);
	return view;
}

enum protection permit_protection(struct server *s, const struct export *export)
{
	struct access_table *table = access_current_get(&s->access);
	const struct access_export *known =
		access_table_export(table, export->name, strlen(export->name));
	enum protection protection = known ? known->protection : PROTECTION_BEST;

	access_table_put(table);
	return protection;
}

static bool may_stay(const struct access_table *table, const struct conn *c, char *why, size_t len)
{
	const struct client_session *session = c->session;
	struct access_wish wish = {
		.export_name = session->export->name,
		.len = strlen(session->export->name),
		.level = level_of(session->stored.flags),
	};
	struct access_terms terms = {session->stored.holder, session->squash};
	struct permit_peer p;

	describe_peer(c, &p);
	return access_still(table, &p.peer, &wish, &terms, why, len);
}

int permit_renew(struct server *s, struct access_table *table)
{
	char why[384];
	int n = 0;

	if (key_uses_renew(&s->key_uses, table, now_ms())) {
		access_table_put(table);
		return -ENOMEM;
	}
	access_current_set(&s->access, table);
	list_for_each_safe (pos, &s->conns) {
		struct conn *c = list_entry(pos, struct conn, all);

		/* The rest of a text that was made for other rights. */
		if (conn_is_stranger(c))
			conn_drop_text(c);
		if (!c->session || c->state != CONN_OPEN || may_stay(table, c, why, sizeof(why)))
			continue;
		conn_breach(c, why);
		n++;
	}
	return n;
}
