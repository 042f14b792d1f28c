/* attach.c - see attach.h. */
#include "server/session/attach.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/base/util.h"
#include "common/auth/auth_token.h"
#include "server/base/squash_text.h"
#include "server/session/attach_change.h"
#include "server/session/attach_refusal.h"
#include "server/session/auth.h"
#include "server/session/in_the_way.h"
#include "server/session/peers.h"
#include "server/session/permit.h"
#include "server/session/session.h"

static_assert(HOLDER_NAME_MAX == (int)CLIENT_NAME_MAX, "a holder is a client's name");

/* A client may come and go as often as it likes, but not fill the log. */
enum { LOG_MS = 1000, LOG_BURST = 64 };

/* Between the end of umount(8) and that of the session. */
enum { LEAVES_MS = 250 };

/* For those that read alone to share: their kernels forget within a quarter of the lease time. A
 * client waits for 5 s for an answer (connect.c). */
enum { READERS_SHARE_MS = 4000 };

static bool waits_for_a_session(const struct client_request *req)
{
	return !req->rpc.attach.session;
}

static bool is_same_export(const struct client_request *a, const struct client_request *b)
{
	const struct rpc_str *x = &a->rpc.attach.export_name, *y = &b->rpc.attach.export_name;

	return x->len == y->len && memcmp(x->s, y->s, x->len) == 0;
}

/* Clients that wait hold channels which have not attached, and are tried again at each change. So
 * only a part of those is for clients that wait, and a smaller one for each holder. The others are
 * refused, and ask again. Channels that resume a session wait for their own fence alone. */
static bool too_many_wait(const struct client_request *req)
{
	const struct conn *c = req->conn;
	unsigned n = 0, of_holder = 0;

	list_for_each (pos, &c->server->waiting) {
		const struct client_request *other = list_entry(pos, struct client_request, link);

		if (!waits_for_a_session(other))
			continue;
		n++;
		of_holder +=
			strcmp(other->conn->holder, c->holder) == 0 && is_same_export(other, req);
	}
	return n >= ATTACH_WAITING_MAX ||
	       (conn_is_stranger(c) && of_holder >= ATTACH_WAITING_OF_HOLDER);
}

static void wait_more(struct client_request *req)
{
	list_del(&req->link);
	list_add_tail(&req->conn->server->waiting, &req->link);
}

static int answer_attach(struct client_request *req, struct client_session *session, bool resumed)
{
	struct server *s = session->server;
	struct rpc_reply rep = {.attach = {
					.session = session->stored.id,
					.incarnation = s->incarnation,
					.resumed = resumed,
					.nslots = CHANNEL_SLOTS,
					.nreserved = CHANNEL_RESERVED,
					.lease_ms = s->lease_ms,
					.lease_limit = s->lease_limit,
					.peer_timeout_ms = conn_timeout_ms(req->conn),
					.server_time = realtime_ns(),
					.nregions = session->export->nregions,
					.npages = session->export->npages,
					.quotas = meta_has_quotas(s->meta, session->export->index),
					.squash = session->squash,
				}};
	int err = meta_root(s->meta, session->export->index, &rep.attach.root);
	bool frozen;

	if (err)
		return err;
	rep.attach.snapshot = client_session_snapshot(session, &frozen);
	memcpy(rep.attach.store_id, meta_store_id(s->meta), sizeof(rep.attach.store_id));
	memcpy(rep.attach.token, session->stored.token, sizeof(rep.attach.token));
	client_request_answer(req, &rep);
	return 0;
}

static void log_begin(const struct client_session *session, const struct conn *c, bool resumed)
{
	uint32_t flags = session->stored.flags;
	char note[SQUASH_TEXT_BYTES];
	const struct log_fields fields = {
		.event = resumed ? "resume" : "attach",
		.export = session->export->name,
		.holder = session->stored.holder,
		.key = c->has_proof ? c->proof.id : NULL,
		.peer = channel_peer(c->channel),
		.session = session->stored.id,
	};

	squash_text_note(&session->squash, note);
	log_event(LOG_LEVEL_INFO, &fields,
		"session %" PRIu64 " of %s (%s) at export '%s' %s over %s%s%s%s%s%s%s%s%s",
		session->stored.id, session->stored.holder, session->stored.client,
		session->export->name, resumed ? "resumed" : "begins", channel_peer(c->channel),
		c->has_proof ? ", key " : "", c->has_proof ? c->proof.id : "",
		channel_protection_note(channel_protection(c->channel)),
		flags & ATTACH_READ_ONLY ? ", read-only" : "",
		flags & ATTACH_EXCLUSIVE ? ", exclusive" : "",
		flags & ATTACH_SHARED ? ", share" : "", *note ? ", " : "", note);
}

static void note_joined(struct client_session *session, const struct conn *c, bool resumed)
{
	bool again = c->index == 0 && resumed && !session->restored;

	session->heard_ms = now_ms();
	session->keyed = c->keyed;
	session->restored = session->process_gone = session->fell_silent = false;
	snprintf(session->key, sizeof(session->key), "%s", c->has_proof ? c->proof.id : "");
	if (!again)
		return;
	session->nreconnects++;
	recent_add(&session->reconnects, session->heard_ms);
}

/* The channel becomes the session's. */
static void join(struct client_request *req, struct client_session *session)
{
	static struct log_ratelimit limit = {.burst = LOG_BURST};
	const struct rpc_attach *a = &req->rpc.attach;
	struct conn *c = req->conn;
	bool resumed = session->attached >> a->channel & 1;
	int err;

	c->keys = calloc(session->export->nregions, sizeof(*c->keys));
	if (!c->keys) {
		client_request_refuse(req, -ENOMEM, "the server is out of memory");
		return;
	}
	c->keys_room = session->export->nregions;
	/* A client that is there all the time has its time to give back pages: see page_recall.c.
	 */
	if (list_empty(&session->conns))
		session->spare.kept_ms = now_ms();
	conn_attach(c, session, a->channel);
	session->squash = c->squash;
	session->attached |= UINT64_C(1) << a->channel;
	session->live |= UINT64_C(1) << a->channel;
	note_joined(session, c, resumed);
	if (a->channel == 0 && log_ratelimit_ok(&limit, LOG_MS))
		log_begin(session, c, resumed);
	err = answer_attach(req, session, resumed);
	if (err)
		client_request_refuse(req, err, "the store failed: %s", errno_text(err));
}

static int store_session(struct server *s, struct meta_session *stored)
{
	int err = meta_begin(s->meta);

	if (err)
		return err;
	err = meta_session_new(s->meta, stored);
	if (err)
		meta_abort(s->meta);
	else
		err = meta_commit(s->meta);
	return err;
}

static int begin_session(
	struct client_request *req, struct export *export, struct client_session **out)
{
	const struct rpc_attach *a = &req->rpc.attach;
	struct server *s = req->conn->server;
	struct client_session *session;
	struct meta_session stored = {
		.export_index = export->index,
		.flags = a->flags,
		.instance = a->instance,
		.nchannels = a->nchannels,
		.wire_version = (uint16_t)channel_version(req->conn->channel),
	};
	int err;

	err = auth_token_make(stored.token);
	if (err)
		return err;
	memcpy(stored.holder, req->conn->holder, sizeof(stored.holder));
	memcpy(stored.owner, a->owner, sizeof(stored.owner));
	printable_copy(stored.client, sizeof(stored.client), a->client.s, a->client.len);
	session = client_session_new(s, &stored, export);
	if (!session)
		return -ENOMEM;
	session->serial = req->conn->serial;
	CRASH_POINT("attach.before");
	err = store_session(s, &session->stored);
	CRASH_POINT("attach.stored");
	if (err) {
		client_session_delete(session);
		return err;
	}
	*out = session;
	return 0;
}

static bool gives_way(const struct client_session *session, const struct client_request *req)
{
	return in_the_way_is_former(session, req) || session->ending || session->said_bye ||
	       client_session_expired(session);
}

static const char *why_it_ends(
	const struct client_session *session, const struct client_request *req)
{
	if (in_the_way_is_of_process(session, req))
		return "its mount begins another one";
	return in_the_way_is_former(session, req) ? "it was mounted again at the same place"
						  : client_session_why_expired(session);
}

/* Ends the client's own former sessions. Ends expired ones only if none would stay that keeps the
 * client out all the same. */
static void end_those_in_the_way(const struct client_request *req, const struct export *export)
{
	struct server *s = req->conn->server;
	bool all = true;

	list_for_each (pos, &s->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);

		all &= !in_the_way_is(session, export, req) || gives_way(session, req);
	}
	list_for_each_safe (pos, &s->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (in_the_way_is(session, export, req) &&
			(all || in_the_way_is_former(session, req)))
			client_session_end(session, why_it_ends(session, req));
	}
}

/* holder NULL: whosever it is. */
static bool is_at(
	const struct client_session *session, const struct export *export, const char *holder)
{
	return session->export == export && !session->ending &&
	       (!holder || strcmp(session->stored.holder, holder) == 0);
}

/* Whether there is a place among so many. Expired sessions are kept until a client needs their
 * places. */
static bool has_place(
	struct server *s, const struct export *export, const char *holder, unsigned places)
{
	unsigned n = 0;

	list_for_each (pos, &s->sessions)
		n += is_at(list_entry(pos, struct client_session, link), export, holder);
	if (n < places)
		return true;
	list_for_each_safe (pos, &s->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (is_at(session, export, holder) && client_session_expired(session)) {
			client_session_end(session, client_session_why_expired(session));
			return true;
		}
	}
	return false;
}

/* A process that has lost its session says that it has unmapped all of it. A client that has the
 * export's key is trusted with all of it, and on shm wholly. */
static void take_word(struct client_request *req, const struct export *export)
{
	const struct rpc_attach *a = &req->rpc.attach;
	int pid = channel_peer_pid(req->conn->channel);
	struct client_session *ended =
		a->ended ? client_session_find(req->conn->server, a->ended) : NULL;

	if (!pid || !ended || !ended->ending || ended->export != export ||
		!in_the_way_is_of_owner(ended, req) ||
		!auth_token_equal(ended->stored.token, a->token))
		return;
	list_for_each (pos, &ended->conns) {
		struct conn *c = list_entry(pos, struct conn, link);

		if (channel_peer_pid(c->channel) == pid)
			channel_fence_at_once(c->channel);
	}
	peers_unmapped(req->conn->server, a->ended, pid);
}

/* Whether the client has to wait because of its former sessions (penalty.h): then the request
 * waits, or is refused. */
static bool is_held_off(struct client_request *req, const struct export *export)
{
	struct server *s = req->conn->server;
	const struct conn *c = req->conn;
	const struct penalty_client client =
		penalty_client_of(export->index, c->holder, req->rpc.attach.owner, c->keyed);
	int64_t now = now_ms(), over_ms = penalty_over_ms(&s->penalties, &client);

	req->held_ms = 0;
	if (now >= over_ms)
		return false;
	if (now < req->deadline_ms && !too_many_wait(req)) {
		req->held_ms = over_ms;
		wait_more(req);
	} else {
		client_request_refuse(req, -EBUSY,
			"client %s did not give back in time what others wanted, and its session "
			"was ended: it gets another one at export '%s' in %lld s",
			c->holder, export->name, (long long)(over_ms - now + 999) / 1000);
	}
	return true;
}

/* A mount that was unmounted a moment ago is about to say BYE. One that is alone then need not
 * share with it. */
static bool may_still_leave(struct client_request *req, const struct export *export)
{
	int64_t until_ms = min_i64(req->deadline_ms, req->came_ms + LEAVES_MS);

	if (in_the_way_share_now(req, export) || now_ms() >= until_ms)
		return false;
	req->held_ms = until_ms;
	return true;
}

/* Sessions keep the client out. True: it was answered that it comes again, as one that shares. Else
 * they are asked to share, if the client does, or the client waits for their end. */
static bool is_let_in_later(struct client_request *req, const struct export *export)
{
	if (!in_the_way_may_share_later(req, export))
		return false;
	if (req->rpc.attach.flags & ATTACH_SHARED) {
		req->held_ms = in_the_way_ask_to_share(req, export);
		return false;
	}
	if (may_still_leave(req, export))
		return false;
	/* It is no refusal to anybody but the client's program. */
	client_request_deny(
		req, -EALREADY, NULL, "the export has other mounts: share it with them");
	return true;
}

/* Inodes of a removed export have numbers that no other one gets, but for the root. */
static bool is_another_export(const struct client_request *req, const struct export *export)
{
	struct attr root;

	return req->rpc.attach.born && !meta_root(req->conn->server->meta, export->index, &root) &&
	       root.btime != req->rpc.attach.born;
}

/* A client without a session begins one, as soon as nothing is in its way. */
static void attach_new(struct client_request *req, struct export *export)
{
	const struct conn *c = req->conn;
	struct server *s = c->server;
	struct client_session *holder;
	unsigned n;
	int err;

	if (is_another_export(req, export)) {
		client_request_refuse(req, -ESTALE,
			"export '%s' was removed, and another one has its name", export->name);
		return;
	}
	if (in_the_way_has_later(req, export)) {
		client_request_refuse(req, -ESTALE,
			"this client has a later session at export '%s'", export->name);
		return;
	}
	end_those_in_the_way(req, export);
	take_word(req, export);
	if (is_held_off(req, export))
		return;
	holder = in_the_way_find(req, export, &n);
	if (holder && is_let_in_later(req, export))
		return;
	if (holder) {
		if (now_ms() >= req->deadline_ms || too_many_wait(req))
			attach_refuse_busy(req, holder, n);
		else
			wait_more(req);
		return;
	}
	if (!has_place(s, export, c->holder, c->holder_sessions)) {
		client_request_refuse(req, -EUSERS,
			"client %s may have %u mounts of export '%s', and has them: unmount one",
			c->holder, c->holder_sessions, export->name);
		return;
	}
	if (!has_place(s, export, NULL, EXPORT_SESSIONS)) {
		client_request_refuse(req, -EUSERS,
			"export '%s' has %d clients, and no place for more: unmount one",
			export->name, EXPORT_SESSIONS);
		return;
	}
	err = begin_session(req, export, &holder);
	if (err)
		client_request_refuse(req, err, "can't begin a session: %s", errno_text(err));
	else
		join(req, holder);
}

/* Whether something that was begun by this channel may still reach memory, until it is fenced. Over
 * shm the process itself copies. It has ended all of that if it is the one that asks, or has closed
 * the channel in order. So a mount goes on in another process while the first one lives. */
static bool may_reach_memory(const struct conn *c, int pid)
{
	return !pid || (channel_peer_pid(c->channel) != pid && !c->left);
}

/* Whether a channel of this index may still touch memory. Fences the one that was in use. */
static bool predecessor_lives(struct client_session *session, const struct client_request *req)
{
	int pid = channel_peer_pid(req->conn->channel);
	bool lives = false;

	list_for_each (pos, &session->conns) {
		struct conn *c = list_entry(pos, struct conn, link);

		if (c->index != req->rpc.attach.channel)
			continue;
		conn_fence(c);
		lives |= may_reach_memory(c, pid);
	}
	return lives;
}

static bool shares(const struct client_session *session)
{
	return session->stored.flags & ATTACH_SHARED;
}

/* Each ATTACH changes the session only when it joins. While it waits another one may want the
 * opposite. */
static void change_and_join(struct client_request *req, struct client_session *session)
{
	uint32_t kept = session->stored.flags & ~(uint32_t)ATTACH_READ_ONLY;
	int err = attach_change_session(session, kept | (req->rpc.attach.flags & ATTACH_READ_ONLY),
		(uint16_t)channel_version(req->conn->channel));

	if (err) {
		client_request_refuse(req, err, "can't change session %" PRIu64 ": %s",
			session->stored.id, errno_text(err));
		return;
	}
	attach_change_client(session, &req->rpc.attach.client);
	join(req, session);
}

/* Sessions that are ending count, too: they may still reach memory. */
static bool has_others(const struct client_session *session)
{
	list_for_each (pos, &session->server->sessions) {
		const struct client_session *other = list_entry(pos, struct client_session, link);

		if (other != session && other->export == session->export)
			return true;
	}
	return false;
}

/* All of a mount's requests wait for its ATTACH, so not for long. */
static bool waits_for_readers(struct client_request *req, const struct client_session *session)
{
	int64_t wait_ms = min_i64(READERS_SHARE_MS, session->server->lease_ms * 2 / 5);
	int64_t until_ms = min_i64(req->deadline_ms, req->came_ms + wait_ms);

	in_the_way_ask_readers(session);
	if (now_ms() >= until_ms)
		return false;
	req->held_ms = until_ms;
	wait_more(req);
	return true;
}

/* Whether a session that reads has the export for itself, to write, or shares it. False: the
 * request was refused, or waits for sessions that read alone, or no longer. */
static bool may_write_now(struct client_request *req, struct client_session *session)
{
	unsigned n;
	const struct client_session *other = in_the_way_reader(session, &n);

	if (other && shares(session) && waits_for_readers(req, session))
		return false;
	if (other) {
		client_request_refuse(req, -EROFS,
			"export '%s' has %u more readers, such as %s: "
			"unmount them first, or this one, and mount it with rw",
			session->export->name, n, other->stored.client);
		return false;
	}
	if (shares(session))
		return true;
	sessions_end_overdue(session->server, session->export, session);
	if (!has_others(session))
		return true;
	if (now_ms() < req->deadline_ms)
		wait_more(req);
	else
		client_request_refuse(req, -EROFS, "a client that read export '%s' can't be fenced",
			session->export->name);
	return false;
}

static bool wants_to_write(const struct client_request *req, const struct client_session *session)
{
	return !(req->rpc.attach.flags & ATTACH_READ_ONLY) &&
	       session->stored.flags & ATTACH_READ_ONLY;
}

/* A session that converts may have become one that shares by a CONVERT whose answer its client has
 * not had yet. */
static bool flags_differ(uint32_t said, uint32_t stored)
{
	uint32_t may_differ = ATTACH_READ_ONLY | SESSION_FORGETS;

	if (said & stored & ATTACH_CONVERTS)
		may_differ |= ATTACH_SHARED;
	return (said ^ stored) & ~may_differ;
}

static void attach_run_again(struct client_request *req, struct export *export)
{
	const struct rpc_attach *a = &req->rpc.attach;
	struct client_session *session = client_session_find(req->conn->server, a->session);

	if (!session || session->export != export || session->ending || session->said_bye) {
		client_request_refuse(req, -EIDRM, "session %" PRIu64 " has ended", a->session);
		return;
	}
	if (!in_the_way_is_of_process(session, req) ||
		!auth_token_equal(session->stored.token, a->token)) {
		client_request_refuse(
			req, -ESTALE, "session %" PRIu64 " belongs to another client", a->session);
		return;
	}
	if (session->stored.nchannels != a->nchannels) {
		client_request_refuse(req, -EINVAL, "session %" PRIu64 " has %u channels, not %u",
			a->session, session->stored.nchannels, a->nchannels);
		return;
	}
	if (flags_differ(a->flags, session->stored.flags)) {
		client_request_refuse(req, -EINVAL,
			"session %" PRIu64 " can't become exclusive, or shared", a->session);
		return;
	}
	if (wants_to_write(req, session) && !may_write_now(req, session))
		return;
	if (!predecessor_lives(session, req))
		change_and_join(req, session);
	else if (now_ms() < req->deadline_ms)
		wait_more(req);
	else
		client_request_refuse(req, -EBUSY,
			"channel %u of session %" PRIu64 " can't be fenced", a->channel,
			a->session);
}

static bool is_of_another_store(const struct server *s, const struct rpc_attach *a)
{
	return (a->session || a->ended) &&
	       memcmp(a->store_id, meta_store_id(s->meta), META_STORE_ID_BYTES) != 0;
}

/* The export, if the peer may attach to it; else the request was refused. Each try asks anew: the
 * configuration may have changed while the ATTACH waited. */
static struct export *permitted_export(struct client_request *req)
{
	const struct rpc_str *name = &req->rpc.attach.export_name;
	struct conn *c = req->conn;
	struct access_decision decision;

	/* Over shm the refusal names the exports that there are. */
	if (!conn_is_stranger(c) && !client_request_export(req, name))
		return NULL;
	if (!permit_attach(req, &decision))
		return NULL;
	memcpy(c->holder, decision.holder, sizeof(c->holder));
	c->holder_sessions = decision.sessions;
	c->squash = decision.squash;
	c->keyed = decision.keyed;
	return client_request_export(req, name);
}

static void attach_try(struct client_request *req)
{
	const struct rpc_attach *a = &req->rpc.attach;
	struct server *s = req->conn->server;
	struct export *export;

	/* Another ATTACH may have attached it, which was answered while this one waited. */
	if (req->conn->session) {
		client_request_refuse(req, -EPROTO, "this channel is attached already");
		return;
	}
	export = permitted_export(req);
	if (!export)
		return;
	if (export->closed) {
		if (now_ms() < req->deadline_ms)
			wait_more(req);
		else
			client_request_refuse(req, -EBUSY, "the server is stopping");
	} else if (is_of_another_store(s, a)) {
		client_request_refuse(req, -ESTALE, "the memory was lost, this is another store");
	} else if (a->session) {
		attach_run_again(req, export);
	} else {
		attach_new(req, export);
	}
}

/* On shm a session ends with its process. A process in a PID namespace that is not below ours has
 * no number here. It may still ask for the server's state. */
static bool is_out_of_sight(const struct conn *c)
{
	return transport_kind_of(c->port->transport) == TRANSPORT_SHM &&
	       !channel_peer_pid(c->channel);
}

void attach_request(struct client_request *req)
{
	const struct rpc_attach *a = &req->rpc.attach;
	struct server *s = req->conn->server;
	int64_t wait_ms = (int64_t)min_u64(a->wait_ms, ATTACH_WAIT_MAX_MS);

	if (auth_is_proving(req->conn)) {
		conn_breach(req->conn, "ATTACH before the end of its handshake");
		return;
	}
	if (a->nchannels > SESSION_CHANNELS) {
		client_request_refuse(
			req, -EINVAL, "a session has at most %d channels", SESSION_CHANNELS);
		return;
	}
	if (a->flags & ATTACH_SHARED && a->flags & ATTACH_EXCLUSIVE) {
		client_request_refuse(
			req, -EINVAL, "an export is shared, or somebody's alone: not both");
		return;
	}
	if (!a->session && a->channel) {
		client_request_refuse(req, -EPROTO, "channel 0 makes the session");
		return;
	}
	if (is_out_of_sight(req->conn)) {
		client_request_refuse(req, -EOPNOTSUPP,
			"the server's PID namespace does not show this process, and shm goes by "
			"processes: run the server in an outer one, or mount over tcp");
		return;
	}
	/* Fencing a predecessor takes its time, even if the client would wait for less. */
	if (a->session && wait_ms < s->lease_ms)
		wait_ms = s->lease_ms;
	req->came_ms = now_ms();
	req->deadline_ms = req->came_ms + wait_ms;
	attach_try(req);
}

void attach_retry_waiting(struct server *s)
{
	struct list again;

	list_init(&again);
	list_splice_tail(&again, &s->waiting);
	for (struct list *pos; (pos = list_pop(&again));)
		attach_try(list_entry(pos, struct client_request, link));
}
