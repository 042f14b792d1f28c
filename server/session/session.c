/* session.c - see session.h. */
#include "server/session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/session/lost_memory.h"
#include "server/session/peers.h"

/* A client may come and go as often as it likes, but not fill the log. */
enum {
	LOG_MS = 1000,
	LOG_BURST = 64,
	RETURN_MS = 5000,
	RING_AGAIN_MS = 20,
};

/* ---- objects --------------------------------------------------------------------------------- */

struct client_session *client_session_new(
	struct server *s, const struct meta_session *stored, struct export *export)
{
	struct client_session *session = calloc(1, sizeof(*session));

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
	session->began_ms = session->heard_ms = session->lost_ms = now_ms();
	list_init(&session->conns);
	list_init(&session->recalls);
	list_init(&session->turn);
	list_init(&session->asked);
	list_add_tail(&s->sessions, &session->link);
	s->nsessions++;
	export->nsessions++;
	return session;
}

void client_session_delete(struct client_session *session)
{
	session->server->events->deleted(session);
	list_del(&session->link);
	session->server->nsessions--;
	session->export->nsessions--;
	list_del(&session->turn);
	free(session->last_seq);
	free(session);
}

struct penalty_client client_session_penalized(const struct client_session *session)
{
	return penalty_client_of(session->export->index, session->stored.holder,
		session->stored.owner, session->keyed);
}

struct restoring {
	struct server *server;
	int err;
};

static void client_session_restore_one(const struct meta_session *stored, void *arg)
{
	struct restoring *r = arg;
	struct client_session *session;

	session =
		client_session_new(r->server, stored, r->server->exports->v[stored->export_index]);
	if (!session) {
		r->err = -ENOMEM;
		return;
	}
	session->restored = session->counted_before = true;
	session->attached = UINT64_MAX;
}

/* All or none: pages of a session that was left out would be given to others. */
int sessions_restore(struct server *s)
{
	struct restoring r = {s, 0};
	int err = meta_session_each(s->meta, client_session_restore_one, &r);

	if (!err)
		err = r.err;
	if (err)
		log_error("can't take over the stored sessions: %s", errno_text(err));
	return err;
}

void sessions_expect(struct server *s)
{
	list_for_each (pos, &s->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		session->heard_ms = session->lost_ms = s->start_ms;
	}
}

void sessions_delete(struct server *s)
{
	list_for_each_safe (pos, &s->sessions)
		client_session_delete(list_entry(pos, struct client_session, link));
}

struct client_session *client_session_find(struct server *s, uint64_t id)
{
	list_for_each (pos, &s->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (session->stored.id == id)
			return session;
	}
	return NULL;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static int client_session_forget(struct server *s, const struct client_session *session)
{
	int err = meta_begin(s->meta);

	if (err)
		return err;
	if (session->clean)
		err = meta_session_leave(s->meta, session->export->index, session->stored.id);
	else
		err = meta_session_end(s->meta, session->export->index, session->stored.id);
	CRASH_POINT("session.ending");
	if (err)
		meta_abort(s->meta);
	else
		err = meta_commit(s->meta);
	return err;
}

/* No channel of the session is left: gives back all that it held. */
static void client_session_finish(struct client_session *session)
{
	static struct log_ratelimit limit = {.burst = LOG_BURST};
	struct server *s = session->server;
	int err = retry_note(&session->end_retry, client_session_forget(s, session));

	if (err) {
		log_error("session %" PRIu64 " of %s can't be ended: %s", session->stored.id,
			session->stored.client, errno_text(err));
		return;
	}
	if (log_ratelimit_ok(&limit, LOG_MS))
		log_event(LOG_LEVEL_INFO,
			&(struct log_fields){
				.event = "end",
				.export = session->export->name,
				.holder = session->stored.holder,
				.session = session->stored.id,
				.reason = session->why,
			},
			"session %" PRIu64 " of %s at export '%s' has ended%s%s",
			session->stored.id, session->stored.client, session->export->name,
			session->why ? ": " : "", session->why ? session->why : "");
	rpc_counters_add(&session->export->ended, &session->counters);
	client_session_delete(session);
	s->reclaim = true;
	s->events->ended(s);
}

uint64_t client_session_snapshot(const struct client_session *session, bool *frozen)
{
	struct export_snapshot *snapshot = &session->export->snapshot;

	*frozen = snapshot->freezing && !session->said_bye &&
		  !(session->stored.flags & ATTACH_READ_ONLY) && session->frozen != snapshot->id;
	if (*frozen && !snapshot->told_ns)
		snapshot->told_ns = clock_ns(CLOCK_MONOTONIC);
	return snapshot->id;
}

bool client_session_reaches_memory(const struct client_session *session)
{
	return !list_empty(&session->conns) || peers_left(session->server, session->stored.id);
}

static void finish_if_ended(struct client_session *session)
{
	if ((session->ending || session->said_bye) && !client_session_reaches_memory(session))
		client_session_finish(session);
}

void client_session_end(struct client_session *session, const char *why)
{
	if (!session->ending && !session->said_bye)
		session->why = why;
	session->ending = true;
	list_for_each (pos, &session->conns)
		conn_fence(list_entry(pos, struct conn, link));
	finish_if_ended(session);
}

static bool has_channel(const struct client_session *session, unsigned index)
{
	list_for_each (pos, &session->conns)
		if (list_entry(pos, struct conn, link)->index == index)
			return true;
	return false;
}

/* Of another process, to which the client has moved, if this one is gone. */
static bool has_open_channel(const struct client_session *session)
{
	list_for_each (pos, &session->conns)
		if (list_entry(pos, struct conn, link)->state < CONN_FENCING)
			return true;
	return false;
}

void client_session_lost_conn(struct client_session *session, const struct lost_conn *lost)
{
	session->process_gone |= lost->process_gone && !has_open_channel(session);
	if (lost->hung_up && !has_channel(session, lost->index))
		session->live &= ~(UINT64_C(1) << lost->index);
	session->lost_ms = now_ms();
	session->silent_ms = lost->silent_ms;
	finish_if_ended(session);
}

void client_session_lost_process(struct server *s, uint64_t id)
{
	struct client_session *session = client_session_find(s, id);

	if (session)
		client_session_lost_conn(session, &(struct lost_conn){.process_gone = true});
}

/* The time at which nobody has heard of it for the lease time. */
static int64_t expires_ms(const struct client_session *session)
{
	return session->heard_ms + session->server->lease_ms;
}

static bool process_has_memory(const struct client_session *session)
{
	if (peers_left(session->server, session->stored.id))
		return true;
	list_for_each (pos, &session->conns)
		if (channel_peer_pid(list_entry(pos, struct conn, link)->channel))
			return true;
	return false;
}

bool client_session_expired(const struct client_session *session)
{
	if (process_has_memory(session))
		return false;
	if (list_empty(&session->conns) && session->process_gone)
		return true;
	return now_ms() >= expires_ms(session);
}

int64_t client_session_expires_in_ms(const struct client_session *session)
{
	bool known = !client_session_expired(session) && !process_has_memory(session);

	return known ? expires_ms(session) - now_ms() : 0;
}

bool client_session_is_left(const struct client_session *session)
{
	bool hung_up = !session->restored && !session->live;

	return !client_session_reaches_memory(session) && (session->process_gone || hung_up);
}

const char *client_session_why_expired(const struct client_session *session)
{
	return session->process_gone ? "its process had ended"
				     : "nothing was heard of it for the lease time";
}

bool client_session_is_missed(const struct client_session *session)
{
	int64_t since_ms = max_i64(session->lost_ms, session->heard_ms);

	return now_ms() >= max_i64(expires_ms(session), since_ms + RETURN_MS);
}

bool client_session_overdue(const struct client_session *session)
{
	bool gone = list_empty(&session->conns) && session->process_gone;

	return client_session_expired(session) && (gone || client_session_is_missed(session));
}

bool client_session_others_overdue(const struct client_session *session)
{
	list_for_each (pos, &session->server->sessions) {
		const struct client_session *other = list_entry(pos, struct client_session, link);

		if (other != session && other->export == session->export && !other->ending &&
			client_session_overdue(other))
			return true;
	}
	return false;
}

bool client_session_others_ending(const struct client_session *session)
{
	list_for_each (pos, &session->server->sessions) {
		const struct client_session *other = list_entry(pos, struct client_session, link);

		if (other != session && other->export == session->export && other->ending &&
			!process_has_memory(other))
			return true;
	}
	return false;
}

void sessions_end_overdue(
	struct server *s, const struct export *export, const struct client_session *but)
{
	list_for_each_safe (pos, &s->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (session->export == export && session != but && !session->ending &&
			client_session_overdue(session))
			client_session_end(session, client_session_why_expired(session));
	}
}

/* ---- sessions that share an export ----------------------------------------------------------- */

bool client_session_writes_beside(
	const struct client_session *other, const struct client_session *session)
{
	return other->export == session->export && !other->ending &&
	       !(other->stored.flags & ATTACH_READ_ONLY);
}

unsigned client_session_sharers(const struct client_session *session)
{
	bool alone = true;
	unsigned n = 0;

	list_for_each (pos, &session->server->sessions) {
		const struct client_session *other = list_entry(pos, struct client_session, link);

		alone &= other == session || other->export != session->export || other->ending;
		n += client_session_writes_beside(other, session);
	}
	return alone ? 0 : n;
}

/* ---- the other requests outside slots -------------------------------------------------------- */

enum { REGIONS_PER_MESSAGE = 512 };

/* A lost region gets no key: its access is 0. */
static int make_key(
	struct conn *c, const struct region_file *file, unsigned access, struct region_key *key)
{
	if (!file->lost)
		return channel_publish(c->channel, file->registered[c->port->index], access, key);
	*key = (struct region_key){.len = file->len};
	return 0;
}

static int make_room_for_keys(struct conn *c, uint32_t n)
{
	struct region_key *keys;

	if (n <= c->keys_room)
		return 0;
	keys = reallocarray(c->keys, n, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	c->keys = keys;
	c->keys_room = n;
	return 0;
}

/* Makes keys for the regions before end. */
static int client_session_publish(struct conn *c, uint32_t end)
{
	const struct client_session *session = c->session;
	unsigned access = REGION_READ;
	int err = make_room_for_keys(c, end);

	if (!(session->stored.flags & ATTACH_READ_ONLY))
		access |= REGION_WRITE;
	if (!c->nkeys)
		lost_memory_look(c->server, session->export);
	if (!err && !c->nkeys && channel_peer_pid(c->channel))
		err = peers_note(c->server, session->stored.id, channel_peer_pid(c->channel));
	while (!err && c->nkeys < end) {
		err = make_key(c, session->export->regions[c->nkeys], access, &c->keys[c->nkeys]);
		if (!err)
			c->nkeys++;
	}
	return err;
}

static void answer_regions(struct client_request *req, uint32_t first, uint32_t end)
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
	client_request_answer(req, &rep);
}

void client_session_regions(struct client_request *req)
{
	struct conn *c = req->conn;
	uint32_t nregions = c->session->export->nregions;
	uint32_t first = (uint32_t)min_u64(req->rpc.regions.first, nregions);
	uint32_t end = (uint32_t)min_u64(nregions, (uint64_t)first + REGIONS_PER_MESSAGE);
	int err = client_session_publish(c, end);

	if (err && err != -EAGAIN) {
		client_request_refuse(req, err, "can't make a key to region %u of '%s': %s",
			c->nkeys, c->session->export->name, errno_text(err));
	} else if (err && c->nkeys <= first) {
		list_del(&req->link);
		list_add_tail(&c->server->stalled, &req->link);
	} else {
		answer_regions(req, first, (uint32_t)min_u64(end, c->nkeys));
	}
}

void client_session_retry_stalled(struct server *s)
{
	struct list again;

	list_init(&again);
	list_splice_tail(&again, &s->stalled);
	for (struct list *pos; (pos = list_pop(&again));)
		client_session_regions(list_entry(pos, struct client_request, link));
}

void client_session_count(struct client_session *session, const struct rpc_counters *said)
{
	if (session->counted_before)
		session->before = *said;
	session->counted_before = false;
	session->counters = *said;
	rpc_counters_subtract(&session->counters, &session->before);
}

/* The answer still goes out; then every channel of the session is ended in order. */
void client_session_bye(struct client_request *req)
{
	struct client_session *session = req->conn->session;
	struct rpc_reply rep = {0};

	client_session_count(session, &req->rpc.bye.counters);
	session->said_bye = true;
	session->why = "it was unmounted";
	session->clean = !req->rpc.bye.lost;
	client_request_answer(req, &rep);
	list_for_each (pos, &session->conns)
		conn_disconnect(list_entry(pos, struct conn, link));
}

/* ---- rings ----------------------------------------------------------------------------------- */

static bool is_rung(const struct client_session *session)
{
	list_for_each (pos, &session->conns)
		if (list_entry(pos, struct conn, link)->rung)
			return true;
	return false;
}

/* -EAGAIN: it has channels, but none with a send buffer; -ENOTCONN: it has none. */
static int ring(struct client_session *session)
{
	int err = -ENOTCONN;

	if (is_rung(session))
		return 0;
	list_for_each (pos, &session->conns) {
		int one = conn_ring(list_entry(pos, struct conn, link));

		if (!one)
			return 0;
		if (one == -EAGAIN)
			err = one;
	}
	return err;
}

void client_session_ring(struct client_session *session)
{
	session->ring_wanted = ring(session) != 0;
	session->server->rings_wanted |= session->ring_wanted;
}

/* ---- time ------------------------------------------------------------------------------------ */

static void client_session_sooner(int64_t *next, int64_t at)
{
	if (*next < 0 || at < *next)
		*next = at;
}

static void tick_unattached(struct server *s, int64_t now, int64_t *next)
{
	list_for_each_safe (pos, &s->unattached) {
		struct conn *c = list_entry(pos, struct conn, link);
		int64_t at = c->since_ms + UNATTACHED_MS;

		if (!conn_is_timed(c))
			continue;
		if (at > now)
			client_session_sooner(next, at);
		else
			conn_breach(c, "it has not attached in time");
	}
}

static void tick_silent(struct server *s, int64_t now, int64_t *next)
{
	if (now >= s->judge_ms)
		s->judge_ms = conns_judge(s, now);
	if (s->judge_ms < INT64_MAX)
		client_session_sooner(next, s->judge_ms);
}

static void tick_waiting(struct server *s, int64_t now, int64_t *next)
{
	if (list_empty(&s->waiting))
		return;
	s->events->retry_attaches(s);
	list_for_each (pos, &s->waiting) {
		const struct client_request *req = list_entry(pos, struct client_request, link);

		client_session_sooner(next, req->deadline_ms);
		if (req->held_ms > now)
			client_session_sooner(next, req->held_ms);
	}
	list_for_each (pos, &s->sessions) {
		int64_t at = expires_ms(list_entry(pos, struct client_session, link));

		if (at > now)
			client_session_sooner(next, at);
	}
}

/* A channel that comes back, or is attached, brings the next tick itself. */
static void tick_rings(struct server *s, int64_t now, int64_t *next)
{
	if (!s->rings_wanted)
		return;
	s->rings_wanted = false;
	list_for_each (pos, &s->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);
		int err = session->ring_wanted ? ring(session) : 0;

		session->ring_wanted = err;
		s->rings_wanted |= session->ring_wanted;
		if (err == -EAGAIN)
			client_session_sooner(next, now + RING_AGAIN_MS);
	}
}

/* Tries again to end sessions: others may wait for what they had. */
static void tick_unfinished(struct server *s, int64_t now, int64_t *next)
{
	list_for_each_safe (pos, &s->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (!session->end_retry.ms)
			continue;
		if (retry_is_due(&session->end_retry)) {
			finish_if_ended(session);
			client_session_sooner(next, now + RETRY_MIN_MS);
		} else {
			client_session_sooner(next, session->end_retry.until_ms);
		}
	}
}

int64_t sessions_judge(struct server *s, int64_t now)
{
	int64_t next = -1;

	tick_unattached(s, now, &next);
	tick_silent(s, now, &next);
	tick_waiting(s, now, &next);
	return next;
}

int64_t sessions_tick(struct server *s, int64_t now)
{
	int64_t next = -1;

	tick_unfinished(s, now, &next);
	tick_rings(s, now, &next);
	return next;
}
