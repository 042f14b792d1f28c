/* session.c - sessions are made, resumed, ended. */
#include "server/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/crash_point.h"
#include "common/log.h"
#include "common/util.h"
#include "server/peers.h"
#include "server/snapshot.h"

/* A client may come and go as often as it likes, but not fill the log. */
enum { LOG_MS = 1000, LOG_BURST = 64, RETURN_MS = 5000 };

/* ---- objects --------------------------------------------------------------------------------- */

static struct session *session_new(
	struct server *s, const struct meta_session *stored, struct export *export)
{
	struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	session->last_seq = calloc((size_t)stored->nchannels * CHANNEL_SLOTS, sizeof(uint64_t));
	if (!session->last_seq) {
		free(session);
		return NULL;
	}
	session->server = s;
	session->export = export;
	session->stored = *stored;
	session->heard_ms = session->lost_ms = now_ms();
	list_init(&session->conns);
	list_add_tail(&s->sessions, &session->link);
	return session;
}

static void session_delete(struct session *session)
{
	list_del(&session->link);
	free(session->last_seq);
	free(session);
}

struct restoring {
	struct server *server;
	int err;
};

static void restore_one(const struct meta_session *stored, void *arg)
{
	struct restoring *r = arg;
	struct session *session;

	session = session_new(r->server, stored, &r->server->exports->v[stored->export_index]);
	if (!session) {
		r->err = -ENOMEM;
		return;
	}
	session->restored = true;
	session->attached = UINT64_MAX;
}

/* All or none: pages of a session that was left out would be given to others. */
int sessions_restore(struct server *s)
{
	struct restoring r = {s, 0};
	int err = meta_session_each(s->meta, restore_one, &r);

	if (!err)
		err = r.err;
	if (err)
		log_error("can't take over the stored sessions: %s", errno_text(err));
	return err;
}

void sessions_expect(struct server *s)
{
	list_for_each (pos, &s->sessions) {
		struct session *session = list_entry(pos, struct session, link);

		session->heard_ms = session->lost_ms = s->start_ms;
	}
}

void sessions_delete(struct server *s)
{
	list_for_each_safe (pos, &s->sessions)
		session_delete(list_entry(pos, struct session, link));
}

static struct session *session_of_export(struct server *s, const struct export *export)
{
	list_for_each (pos, &s->sessions) {
		struct session *session = list_entry(pos, struct session, link);

		if (session->export == export)
			return session;
	}
	return NULL;
}

static struct session *session_find(struct server *s, uint64_t id)
{
	list_for_each (pos, &s->sessions) {
		struct session *session = list_entry(pos, struct session, link);

		if (session->stored.id == id)
			return session;
	}
	return NULL;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void add_counters(struct rpc_counters *sum, const struct rpc_counters *more)
{
	sum->reads += more->reads;
	sum->writes += more->writes;
	sum->read_bytes += more->read_bytes;
	sum->write_bytes += more->write_bytes;
	sum->rpcs += more->rpcs;
	sum->rpc_data_bytes += more->rpc_data_bytes;
}

static int forget(struct server *s, const struct session *session)
{
	int err = meta_begin(s->meta);

	if (err)
		return err;
	err = meta_session_end(s->meta, session->export->index, session->stored.id);
	CRASH_POINT("session.ending");
	if (err)
		meta_abort(s->meta);
	else
		err = meta_commit(s->meta);
	return err;
}

/* No channel of it is left: what it held goes back. */
static void finish(struct session *session)
{
	static struct log_ratelimit limit = {.burst = LOG_BURST};
	struct server *s = session->server;
	int err = forget(s, session);

	if (err) {
		log_error("session %" PRIu64 " of %s can't be ended: %s", session->stored.id,
			session->stored.client, errno_text(err));
		return;
	}
	if (log_ratelimit_ok(&limit, LOG_MS))
		log_info("session %" PRIu64 " of %s at export '%s' has ended", session->stored.id,
			session->stored.client, session->export->name);
	add_counters(&session->export->ended, &session->counters);
	session_delete(session);
	s->reclaim = true;
	snapshot_lost_session(s);
}

bool session_reaches_memory(const struct session *session)
{
	return !list_empty(&session->conns) || peers_left(session->server, session->stored.id);
}

/* The session may be gone after this. */
static void end_session(struct session *session)
{
	session->ending = true;
	list_for_each (pos, &session->conns)
		conn_fence(list_entry(pos, struct conn, link));
	if (!session_reaches_memory(session))
		finish(session);
}

void session_lost_conn(struct session *session, bool process_gone)
{
	session->process_gone |= process_gone;
	session->lost_ms = now_ms();
	if (!session_reaches_memory(session) && (session->ending || session->said_bye))
		finish(session);
}

void session_lost_process(struct server *s, uint64_t id)
{
	struct session *session = session_find(s, id);

	if (session)
		session_lost_conn(session, true);
	session_retry_waiting(s);
}

/* When nobody has heard of it for as long as a lease lasts. */
static int64_t expires_ms(const struct session *session)
{
	return session->heard_ms + session->server->lease_ms;
}

/* On shm a process that lives may use its mappings: then only its own BYE ends the session. */
static bool expired(const struct session *session)
{
	if (peers_left(session->server, session->stored.id))
		return false;
	list_for_each (pos, &session->conns)
		if (channel_peer_pid(list_entry(pos, struct conn, link)->channel))
			return false;
	if (list_empty(&session->conns) && session->process_gone)
		return true;
	return now_ms() >= expires_ms(session);
}

/* A lease may be shorter than what a client that lives needs to come back, or to be heard again. */
static bool may_come_back(const struct session *session)
{
	bool gone = list_empty(&session->conns) && session->process_gone;
	int64_t since_ms =
		session->lost_ms > session->heard_ms ? session->lost_ms : session->heard_ms;

	return !gone && now_ms() < since_ms + RETURN_MS;
}

void sessions_end_expired(struct server *s, const struct export *export)
{
	list_for_each_safe (pos, &s->sessions) {
		struct session *session = list_entry(pos, struct session, link);

		if (session->export == export && !session->ending && expired(session) &&
			!may_come_back(session))
			end_session(session);
	}
}

/* ---- attaching ------------------------------------------------------------------------------- */

/* Whoever waits can't be told from a stranger, and holds one of the places for channels that have
 * not attached: so there are places that no number of them takes. */
static bool too_many_wait(const struct server *s)
{
	unsigned n = 0;

	list_for_each (pos, &s->waiting)
		n++;
	return n >= ATTACH_WAITING_MAX;
}

static void wait_more(struct request *req)
{
	list_del(&req->link);
	list_add_tail(&req->conn->server->waiting, &req->link);
}

static int answer_attach(struct request *req, struct session *session, bool resumed)
{
	struct server *s = session->server;
	struct rpc_reply rep = {.attach = {
					.session = session->stored.id,
					.incarnation = s->incarnation,
					.resumed = resumed,
					.nslots = CHANNEL_SLOTS,
					.nreserved = CHANNEL_RESERVED,
					.lease_ms = s->lease_ms,
					.peer_timeout_ms = conn_timeout_ms(req->conn),
					.server_time = realtime_ns(),
					.nregions = session->export->nregions,
					.npages = session->export->npages,
					.quotas = meta_has_quotas(s->meta, session->export->index),
				}};
	int err = meta_root(s->meta, session->export->index, &rep.attach.root);
	bool frozen;

	if (err)
		return err;
	rep.attach.snapshot = snapshot_of(session, &frozen);
	memcpy(rep.attach.store_id, meta_store_id(s->meta), sizeof(rep.attach.store_id));
	request_answer(req, &rep);
	return 0;
}

/* The channel becomes the session's. */
static void join(struct request *req, struct session *session)
{
	static struct log_ratelimit limit = {.burst = LOG_BURST};
	const struct rpc_attach *a = &req->rpc.attach;
	struct conn *c = req->conn;
	bool resumed = session->attached >> a->channel & 1;
	int err;

	c->keys = calloc(session->export->nregions, sizeof(*c->keys));
	if (!c->keys) {
		request_refuse(req, -ENOMEM, "the server is out of memory");
		return;
	}
	conn_attach(c, session, a->channel);
	session->attached |= UINT64_C(1) << a->channel;
	session->heard_ms = now_ms();
	session->restored = session->process_gone = session->fell_silent = false;
	if (a->channel == 0 && log_ratelimit_ok(&limit, LOG_MS))
		log_info("session %" PRIu64 " of %s at export '%s' %s over %s", session->stored.id,
			session->stored.client, session->export->name,
			resumed ? "resumed" : "begins", channel_peer(c->channel));
	err = answer_attach(req, session, resumed);
	if (err)
		request_refuse(req, err, "the store failed: %s", errno_text(err));
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

static int begin_session(struct request *req, struct export *export, struct session **out)
{
	const struct rpc_attach *a = &req->rpc.attach;
	struct server *s = req->conn->server;
	struct session *session;
	struct meta_session stored = {
		.export_index = export->index,
		.flags = a->flags,
		.instance = a->instance,
		.nchannels = a->nchannels,
	};
	int err;

	memcpy(stored.owner, a->owner, sizeof(stored.owner));
	snprintf(stored.client, sizeof(stored.client), "%.*s", a->client.len, a->client.s);
	session = session_new(s, &stored, export);
	if (!session)
		return -ENOMEM;
	CRASH_POINT("attach.before");
	err = store_session(s, &session->stored);
	CRASH_POINT("attach.stored");
	if (err) {
		session_delete(session);
		return err;
	}
	*out = session;
	return 0;
}

/* One session has an export, whatever its flags; those who asked for that are told of it. */
static const char *why_alone(const struct request *req, const struct session *holder)
{
	if (holder->stored.flags & ATTACH_EXCLUSIVE)
		return ", for itself alone (cache=exclusive)";
	if (req->rpc.attach.flags & ATTACH_EXCLUSIVE)
		return "; cache=exclusive takes an export that nobody uses";
	return "";
}

static void refuse_busy(struct request *req, const struct session *holder)
{
	const struct conn *c;

	if (list_empty(&holder->conns)) {
		request_refuse(req, -EBUSY,
			"export '%s' is in use by %s, which has no connection now%s",
			holder->export->name, holder->stored.client, why_alone(req, holder));
		return;
	}
	c = list_entry(holder->conns.next, struct conn, link);
	request_refuse(req, -EBUSY, "export '%s' is in use by %s over %s%s", holder->export->name,
		holder->stored.client, channel_peer(c->channel), why_alone(req, holder));
}

/* A client that knows of no session: a new one, as soon as the export is free. */
static void attach_new(struct request *req, struct export *export)
{
	const struct rpc_attach *a = &req->rpc.attach;
	struct server *s = req->conn->server;
	struct session *holder = session_of_export(s, export);
	bool same = holder && memcmp(holder->stored.owner, a->owner, OWNER_BYTES) == 0;
	int err;

	if (same && a->instance < holder->stored.instance) {
		request_refuse(req, -ESTALE, "a newer instance of this client has export '%s'",
			export->name);
		return;
	}
	if (holder && (same || holder->said_bye || expired(holder))) {
		end_session(holder);
		holder = session_of_export(s, export);
	}
	if (holder) {
		if (now_ms() >= req->deadline_ms || too_many_wait(s))
			refuse_busy(req, holder);
		else
			wait_more(req);
		return;
	}
	err = begin_session(req, export, &holder);
	if (err)
		request_refuse(req, err, "can't begin a session: %s", errno_text(err));
	else
		join(req, holder);
}

/* Whether a channel of this index may still touch memory; fences the one that was in use. */
static bool predecessor_lives(struct session *session, const struct request *req)
{
	int pid = channel_peer_pid(req->conn->channel);
	bool lives = false;

	list_for_each (pos, &session->conns) {
		struct conn *c = list_entry(pos, struct conn, link);

		if (c->index != req->rpc.attach.channel)
			continue;
		conn_fence(c);
		lives |= !pid || channel_peer_pid(c->channel) != pid;
	}
	return lives;
}

static int store_flags(struct session *session, uint32_t flags)
{
	struct meta *m = session->server->meta;
	int err = meta_begin(m);

	if (err)
		return err;
	err = meta_session_set_flags(m, session->stored.id, flags);
	if (!err)
		return meta_commit(m);
	meta_abort(m);
	return err;
}

/* It is read-only from now on, or no more: then keys that it has are of the other kind. */
static int change_flags(struct session *session, uint32_t flags)
{
	static struct log_ratelimit limit = {.burst = LOG_BURST};
	int err;

	if (flags == session->stored.flags)
		return 0;
	err = store_flags(session, flags);
	if (err)
		return err;
	session->stored.flags = flags;
	if (log_ratelimit_ok(&limit, LOG_MS))
		log_info("session %" PRIu64 " of %s at export '%s' %s", session->stored.id,
			session->stored.client, session->export->name,
			flags & ATTACH_READ_ONLY ? "is read-only now" : "may write now");
	list_for_each (pos, &session->conns)
		conn_fence(list_entry(pos, struct conn, link));
	return 0;
}

/* Once each: one that waits changes nothing meanwhile, which another one may want otherwise. */
static void change_and_join(struct request *req, struct session *session)
{
	int err = change_flags(session, req->rpc.attach.flags);

	if (err)
		request_refuse(req, err, "can't change session %" PRIu64 ": %s", session->stored.id,
			errno_text(err));
	else
		join(req, session);
}

static void attach_again(struct request *req, struct export *export)
{
	const struct rpc_attach *a = &req->rpc.attach;
	struct session *session = session_find(req->conn->server, a->session);

	if (!session || session->export != export || session->ending || session->said_bye) {
		request_refuse(req, -ESTALE, "session %" PRIu64 " has ended", a->session);
		return;
	}
	if (memcmp(session->stored.owner, a->owner, OWNER_BYTES) != 0 ||
		session->stored.instance != a->instance) {
		request_refuse(
			req, -ESTALE, "session %" PRIu64 " belongs to another client", a->session);
		return;
	}
	if (session->stored.nchannels != a->nchannels) {
		request_refuse(req, -EINVAL, "session %" PRIu64 " has %u channels, not %u",
			a->session, session->stored.nchannels, a->nchannels);
		return;
	}
	if ((a->flags ^ session->stored.flags) & ~(uint32_t)ATTACH_READ_ONLY) {
		request_refuse(req, -EINVAL,
			"session %" PRIu64 " can't become exclusive, or shared", a->session);
		return;
	}
	if (!predecessor_lives(session, req))
		change_and_join(req, session);
	else if (now_ms() < req->deadline_ms)
		wait_more(req);
	else
		request_refuse(req, -EBUSY, "channel %u of session %" PRIu64 " can't be fenced",
			a->channel, a->session);
}

static void attach_try(struct request *req)
{
	const struct rpc_attach *a = &req->rpc.attach;
	struct server *s = req->conn->server;
	struct export *export = exports_find(s->exports, &a->export_name);
	char names[RPC_TEXT_MAX];

	/* Also by another ATTACH, which was answered while this one waited. */
	if (req->conn->session) {
		request_refuse(req, -EPROTO, "this channel is attached already");
		return;
	}
	if (!export) {
		exports_names(s->exports, names, sizeof(names));
		request_refuse(req, -ENOENT, "no export '%.*s'; exports: %s", a->export_name.len,
			a->export_name.s, names);
	} else if (export->closed) {
		if (now_ms() < req->deadline_ms)
			wait_more(req);
		else
			request_refuse(req, -EBUSY, "the server is stopping");
	} else if (a->session) {
		attach_again(req, export);
	} else {
		attach_new(req, export);
	}
}

void session_attach(struct request *req)
{
	const struct rpc_attach *a = &req->rpc.attach;
	struct server *s = req->conn->server;
	int64_t wait_ms = (int64_t)min_u64(a->wait_ms, ATTACH_WAIT_MAX_MS);

	if (a->nchannels > SESSION_CHANNELS) {
		request_refuse(req, -EINVAL, "a session has at most %d channels", SESSION_CHANNELS);
		return;
	}
	if (!a->session && a->channel) {
		request_refuse(req, -EPROTO, "channel 0 makes the session");
		return;
	}
	/* The fence of a predecessor takes its time, however short the client's patience. */
	if (a->session && wait_ms < s->lease_ms)
		wait_ms = s->lease_ms;
	req->deadline_ms = now_ms() + wait_ms;
	attach_try(req);
}

void session_retry_waiting(struct server *s)
{
	struct list again;

	list_init(&again);
	list_splice_tail(&again, &s->waiting);
	for (struct list *pos; (pos = list_pop(&again));)
		attach_try(list_entry(pos, struct request, link));
}

/* ---- the other requests outside slots -------------------------------------------------------- */

enum { REGIONS_PER_MESSAGE = 512 };

/* Makes keys up to the end'th region. */
static int publish(struct conn *c, uint32_t end)
{
	const struct session *session = c->session;
	unsigned access = REGION_READ;
	int err = 0;

	if (!(session->stored.flags & ATTACH_READ_ONLY))
		access |= REGION_WRITE;
	if (!c->nkeys && channel_peer_pid(c->channel))
		err = peers_note(c->server, session->stored.id, channel_peer_pid(c->channel));
	while (!err && c->nkeys < end) {
		uint32_t i = session->export->first_region + c->nkeys;

		err = channel_publish(c->channel, c->port->regions[i], access, &c->keys[c->nkeys]);

		if (!err)
			c->nkeys++;
	}
	return err;
}

static void answer_regions(struct request *req, uint32_t first, uint32_t end)
{
	struct conn *c = req->conn;
	uint8_t tail[REGIONS_PER_MESSAGE * RPC_REGION_BYTES];
	struct rpc_reply rep = {
		.regions = {.version = 1, .nregions = c->session->export->nregions}};
	struct wire_out w;

	wire_out_init(&w, tail, sizeof(tail));
	for (uint32_t i = first; i < end; i++)
		rpc_put_region(&w, &(struct rpc_region){
					   .index = i,
					   .len = c->keys[i].len,
					   .addr = c->keys[i].addr,
					   .rkey = c->keys[i].rkey,
					   .access = c->keys[i].access,
				   });
	rep.regions.tail = (struct rpc_tail){tail, (uint32_t)wire_out_len(&w)};
	request_answer(req, &rep);
}

void session_regions(struct request *req)
{
	struct conn *c = req->conn;
	uint32_t nregions = c->session->export->nregions;
	uint32_t first = (uint32_t)min_u64(req->rpc.regions.first, nregions);
	uint32_t end = (uint32_t)min_u64(nregions, (uint64_t)first + REGIONS_PER_MESSAGE);
	int err = publish(c, end);

	if (err && err != -EAGAIN) {
		request_refuse(req, err, "can't make a key to region %u of '%s': %s", c->nkeys,
			c->session->export->name, errno_text(err));
	} else if (err && c->nkeys <= first) {
		list_del(&req->link);
		list_add_tail(&c->server->stalled, &req->link);
	} else {
		answer_regions(req, first, (uint32_t)min_u64(end, c->nkeys));
	}
}

void session_retry_stalled(struct server *s)
{
	struct list again;

	list_init(&again);
	list_splice_tail(&again, &s->stalled);
	for (struct list *pos; (pos = list_pop(&again));)
		session_regions(list_entry(pos, struct request, link));
}

void session_ping(struct request *req)
{
	struct rpc_reply rep = {.ping = {.server_time = realtime_ns()}};

	req->conn->session->counters = req->rpc.ping;
	rep.ping.snapshot = snapshot_of(req->conn->session, &rep.ping.frozen);
	request_answer(req, &rep);
}

/* The answer still goes out; then every channel of the session is ended in order. */
void session_bye(struct request *req)
{
	struct session *session = req->conn->session;
	struct rpc_reply rep = {0};

	session->counters = req->rpc.ping;
	session->said_bye = true;
	request_answer(req, &rep);
	list_for_each (pos, &session->conns)
		conn_disconnect(list_entry(pos, struct conn, link));
}

/* ---- time ------------------------------------------------------------------------------------ */

static void sooner(int64_t *next, int64_t at)
{
	if (*next < 0 || at < *next)
		*next = at;
}

static void tick_unattached(struct server *s, int64_t now, int64_t *next)
{
	list_for_each_safe (pos, &s->unattached) {
		struct conn *c = list_entry(pos, struct conn, link);
		int64_t at = c->since_ms + UNATTACHED_MS;

		if (!conn_is_silent(c))
			continue;
		if (at > now) {
			sooner(next, at);
			return;
		}
		conn_breach(c, "it has not attached in time");
	}
}

static void tick_silent(struct server *s, int64_t now, int64_t *next)
{
	if (now >= s->judge_ms)
		s->judge_ms = conns_judge(s, now);
	if (s->judge_ms < INT64_MAX)
		sooner(next, s->judge_ms);
}

static void tick_waiting(struct server *s, int64_t now, int64_t *next)
{
	if (list_empty(&s->waiting))
		return;
	session_retry_waiting(s);
	list_for_each (pos, &s->waiting)
		sooner(next, list_entry(pos, struct request, link)->deadline_ms);
	list_for_each (pos, &s->sessions) {
		int64_t at = expires_ms(list_entry(pos, struct session, link));

		if (at > now)
			sooner(next, at);
	}
}

/* Pages of an earlier run are reused when none of its sessions is out of sight, and connections of
 * a dying process have had their time. */
static void tick_reuse(struct server *s, int64_t now, int64_t *next)
{
	int64_t at = s->start_ms + s->lease_ms;

	for (unsigned i = 0; i < s->exports->n; i++) {
		struct export *export = &s->exports->v[i];
		const struct session *session = session_of_export(s, export);

		if (export->reuse_allowed)
			continue;
		if (at > now) {
			sooner(next, at);
		} else if (!session || !session->restored) {
			meta_allow_reuse(s->meta, i);
			export->reuse_allowed = s->reclaim = true;
		}
	}
}

static void tick_snapshot(struct server *s, int64_t now, int64_t *next)
{
	int64_t at = snapshot_tick(s, now);

	if (at >= 0)
		sooner(next, at);
}

int sessions_tick(struct server *s)
{
	int64_t now = now_ms(), next = -1;

	tick_unattached(s, now, &next);
	tick_silent(s, now, &next);
	tick_waiting(s, now, &next);
	tick_reuse(s, now, &next);
	tick_snapshot(s, now, &next);
	return next < 0 ? -1 : (int)max_u64(1, (uint64_t)(next - now));
}
