/* connect.c - the life of a thread's channel.
 *
 *     DOWN -> CONNECTING (-> PROVING) -> ATTACHING -> FETCHING -> READY -> (loss) DOWN ...
 *
 * The first channel of thread 0 makes the session, all others join or resume it. The answer to
 * ATTACH is the server's word that the channel before is fenced. Only after it, and with the new
 * channel's keys, is anything repeated. Each step has a deadline of ours, since a connection
 * manager may take minutes.
 *
 * A ready channel is pinged, busy or not: the server sees nothing of one-sided transfers, and wants
 * to hear of the channel, too. It is pinged at once when the server rings, since the answer then
 * has news. A channel that is silent for peer_timeout is given up. A channel whose keys are of the
 * wrong kind, since the session became read-only or writes again, is replaced without a line in the
 * log.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/base/util.h"
#include "daemon/remote/connect_failure.h"
#include "daemon/remote/paths.h"
#include "daemon/remote/prove_key.h"
#include "daemon/remote/remote_private.h"
#include "daemon/remote/scout.h"

enum {
	BACKOFF_MIN_MS = 50,
	BACKOFF_MAX_MS = 1000,
	SETTLED_MS = 1000,     /* after a channel that lasted so long the back-off starts anew */
	ANSWER_MS = 5000,      /* for one answer of a server that is there */
	PATIENCE = 4,          /* peer_timeouts for a PING, whatever else is heard */
	LAST_ATTEMPT_MS = 500, /* the least time for the last attempt of remote_connect() */
	TELL_MS = 1000,        /* after so long a line says what it waits for */
	LATE_MS = 200,         /* at most this counts between two ticks, which come every 100 ms */
};

/* ---- losing a channel ------------------------------------------------------------------------ */

/* A channel that was ready for a while is replaced at once, any other after a pause. */
static void schedule_connect(struct remote *r, int64_t now)
{
	if (r->ready_ms && now - r->ready_ms >= SETTLED_MS)
		r->backoff_ms = 0;
	else if (r->backoff_ms < BACKOFF_MIN_MS)
		r->backoff_ms = BACKOFF_MIN_MS;
	else
		r->backoff_ms = (unsigned)min_u64(r->backoff_ms * 2, BACKOFF_MAX_MS);
	r->connect_ms = now + r->backoff_ms;
	/* The last attempt is made when the time is up. */
	if (r->session->connecting)
		r->connect_ms = (int64_t)min_u64((uint64_t)r->connect_ms,
			max_u64((uint64_t)now, (uint64_t)r->session->connect_until_ms));
}

static void report_loss(struct remote *r, const char *why)
{
	if (r->stopping || r->session->connecting || session_lost(r->session))
		return;
	if (!r->ready_ms) {
		session_complain(r->session, why, r->refused);
	} else if (!r->down) {
		r->down = true;
		session_channel_down(r->session, why);
	}
}

/* A transfer that ends is a sign of life at least of the server's device. The server's process owes
 * the answer to a PING. Transfers before it may hold it up, but not for ever. */
static bool is_silent(const struct remote *r)
{
	int64_t timeout_ms = r->session->peer_timeout_ms;

	return r->mute_ms >= timeout_ms ||
	       (r->ping_ns && r->unanswered_ms >= PATIENCE * timeout_ms);
}

/* A server takes the end of a channel for the end of this process, so it is told otherwise. A
 * silent server is not told: when it goes on, this process may have ended, and its successor would
 * wait. */
static bool says_that_it_lives(const struct remote *r)
{
	return !r->stopping && !is_silent(r);
}

static void channel_remove(struct remote *r)
{
	if (!r->ch)
		return;
	remote_channel_keep_counters(r);
	if (says_that_it_lives(r))
		channel_disconnect(r->ch);
	channel_delete(r->ch);
	r->ch = NULL;
	r->ping_ns = 0;
	r->rung = false;
	prove_key_forget(r);
	region_table_reset(r);
	slots_channel_lost(r);
	transfers_channel_lost(r);
}

/* However the channel went, the next one may find that its path leads nowhere. */
static void missing(struct remote *r)
{
	if (atomic_exchange(&r->session->threads[r->thread->index].ready, NULL))
		scout_look_now(r->session);
}

/* The channel is gone, or not wanted any more. */
static void channel_lost(struct remote *r, const char *why, int64_t now)
{
	if (!remote_channel_has_old_keys(r)) {
		report_loss(r, why);
		r->missed = true;
	}
	channel_remove(r);
	schedule_connect(r, now);
	r->ready_ms = 0;
	missing(r);
	r->state = REMOTE_DOWN;
	if (r->bye_sent)
		r->stopped = true;
}

void connection_take_down(struct remote *r, int64_t now)
{
	if (r->state != REMOTE_DOWN)
		channel_lost(r, "the session has ended", now);
	r->backoff_ms = 0;
	r->connect_ms = now;
}

void connection_end(struct remote *r)
{
	channel_remove(r);
	r->state = REMOTE_OVER;
}

void connection_rest(struct remote *r)
{
	channel_remove(r);
	r->state = REMOTE_AT_REST;
}

/* The time of rest is no silence of the server. News that came meanwhile were left: the next tick
 * asks for them. */
void connection_resume(struct remote *r, int64_t now)
{
	r->rung |= r->state == REMOTE_READY;
	if (r->state != REMOTE_AT_REST)
		return;
	missing(r);
	r->state = REMOTE_DOWN;
	r->ready_ms = r->mute_ms = 0;
	r->ticked_ms = now;
	r->backoff_ms = 0;
	r->connect_ms = now;
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* The time that remote_connect() has left, but enough for a server that answers. */
static int64_t connect_deadline(const struct session *s, int64_t now)
{
	if (!s->connecting)
		return now + s->connect_timeout_ms;
	return (int64_t)max_u64((uint64_t)s->connect_until_ms,
		(uint64_t)now + min_u64(LAST_ATTEMPT_MS, s->connect_timeout_ms));
}

static void connect_begin(struct remote *r, int64_t now)
{
	struct session *s = r->session;
	int err;

	assert(!r->ch);
	r->refused = false;
	err = paths_enter(r);
	if (!err)
		err = channel_connect(r->thread->evq, &r->path->address, &r->ch);
	if (err) {
		r->state = REMOTE_CONNECTING;
		connect_failure_tell(r, err);
		r->state = REMOTE_DOWN;
		r->missed = true;
		session_complain(s, errno_text(err), false);
		schedule_connect(r, now);
		return;
	}
	if (s->wanted == PROTECTION_MESSAGES && !atomic_load(&s->export_wants_more))
		channel_ask_messages_only(r->ch);
	r->state = REMOTE_CONNECTING;
	r->deadline_ms = connect_deadline(s, now);
}

/* Sends a message without a slot. -EAGAIN: no buffer, which only a busy channel can lack. */
static int connect_ask(struct remote *r, const struct rpc_request *req)
{
	int err = remote_channel_send(r, req);

	if (err && err != -ENOTCONN && err != -EAGAIN)
		remote_channel_drop(
			r, "%s can't be sent: %s", rpc_op_info(req->op)->name, errno_text(err));
	return err;
}

static void attach_begin(struct remote *r)
{
	struct rpc_request req = {.op = RPC_ATTACH, .slot = RPC_NO_SLOT};
	struct session *s = r->session;

	r->keys = atomic_load(&s->keys);
	r->attach_ms = 0;
	session_attach_request(s, r->thread->index, &req.attach);
	r->attach_wait_ms = req.attach.wait_ms;
	r->attach_ns = clock_ns(CLOCK_BOOTTIME);
	r->deadline_ms = r->attach_ns / 1000000 + req.attach.wait_ms + ANSWER_MS;
	r->state = REMOTE_ATTACHING;
	connect_ask(r, &req);
}

static void proof_failed(struct remote *r, int err, const char *why)
{
	r->refused = true;
	session_connect_failed(r->session, err, "%s", why);
	remote_channel_drop(r, "%s", why);
}

/* Its event, which comes, has the reason; see also connect_ask(). */
static bool has_closed(int err)
{
	return err == -ENOTCONN || err == -EAGAIN;
}

/* The server's part of the conversation is over, or there was none. However the transport was
 * chosen, the mount keeps to its word. */
static void channel_proven(struct remote *r)
{
	const struct session *s = r->session;
	enum channel_protection has = channel_protection(r->ch);
	char why[SESSION_WHY_BYTES];

	if (protection_allows(s->wanted, r->path->address.kind, has)) {
		attach_begin(r);
		return;
	}
	snprintf(why, sizeof(why), "%s: protection=%s is demanded, and the connection has '%s'",
		s->server, protection_name(s->wanted), channel_protection_name(has));
	proof_failed(r, -EPROTONOSUPPORT, why);
}

/* The channel is open. */
static void connect_opened(struct remote *r)
{
	char why[SESSION_WHY_BYTES];
	int err;

	if (!r->session->key_file) {
		channel_proven(r);
		return;
	}
	r->deadline_ms = now_ms() + ANSWER_MS;
	r->state = REMOTE_PROVING;
	err = prove_key_begin(r, why, sizeof(why));
	if (err && !has_closed(err))
		proof_failed(r, err, why);
}

static void auth_answered(struct remote *r, const struct rpc_reply *rep)
{
	char why[SESSION_WHY_BYTES];
	int ret = prove_key_answered(r, rep, why, sizeof(why));

	if (ret == 1) {
		channel_proven(r);
	} else if (ret == -EACCES && prove_key_has_more(r)) {
		/* No failure while the file has other keys. */
		log_info("%s; the next key of the file is tried", why);
		snprintf(r->reason, sizeof(r->reason), "%s", why);
		r->state = REMOTE_DROPPING;
	} else if (ret < 0 && !has_closed(ret)) {
		proof_failed(r, ret, why);
	}
}

static void fetch_regions(struct remote *r)
{
	r->deadline_ms = now_ms() + ANSWER_MS;
	r->state = REMOTE_FETCHING;
	region_table_ask(r);
}

/* A server at which too many clients wait refuses at once. We must not keep it busy by asking again
 * at once. */
static void connect_attach_again(struct remote *r)
{
	int64_t waited_ms = (clock_ns(CLOCK_BOOTTIME) - r->attach_ns) / 1000000;

	if (2 * waited_ms >= r->attach_wait_ms) {
		attach_begin(r);
		return;
	}
	r->attach_ms = (int64_t)min_u64(
		(uint64_t)now_ms() + BACKOFF_MAX_MS, (uint64_t)r->session->connect_until_ms);
	r->deadline_ms = r->attach_ms + ANSWER_MS;
}

/* The export has no word for a channel that protects messages alone: the next one protects all. */
static bool takes_more(struct remote *r, const struct rpc_reply *rep)
{
	struct session *s = r->session;

	if (rep->status != -EPROTONOSUPPORT || r->path->address.kind != TRANSPORT_TCP ||
		channel_protection(r->ch) != CHANNEL_MESSAGES)
		return false;
	if (!atomic_exchange(&s->export_wants_more, true))
		log_info("%s: the export has not protection = \"messages\": all bytes are "
			 "protected",
			s->server);
	snprintf(r->reason, sizeof(r->reason), "the export wants all bytes protected");
	r->state = REMOTE_DROPPING;
	return true;
}

/* A mount that connects with a session takes it over from another process, which hears it, too. */
static void take_refusal(struct remote *r, int status, const char *why)
{
	struct session *s = r->session;

	if (s->id && status == -EROFS)
		session_may_not_write(s, r->keys, why);
	else if (s->id && remote_may_share(r) && status == -EIDRM)
		session_end(s, why);
	else if (s->id && (status == -EBUSY || status == -EIDRM))
		session_lose(s, why);
	else if ((s->id || s->ended_id) && status == -ESTALE)
		session_lose(s, why);
}

static void attach_refused(struct remote *r, const struct rpc_reply *rep)
{
	struct session *s = r->session;
	char why[RPC_TEXT_MAX + 1], lingering[LINGERING_BYTES] = "";

	if (takes_more(r, rep))
		return;
	if (rep->status == -EALREADY && session_joins(s)) {
		attach_begin(r);
		return;
	}
	if (rep->text.len)
		printable_copy(why, sizeof(why), rep->text.s, rep->text.len);
	else
		snprintf(why, sizeof(why), "%s", errno_text(rep->status));
	if (rep->status == -EBUSY && s->connecting) {
		if (session_waits(s, why)) {
			connect_attach_again(r);
			return;
		}
		lingering_explain(why, lingering);
	}
	session_connect_failed(s, rep->status, "%s: %s%s", s->server, why, lingering);
	if (rep->status == -EPROTONOSUPPORT && !s->connecting) {
		paths_refused(r, why);
		scout_look_now(s);
	}
	if (!s->connecting)
		take_refusal(r, rep->status, why);
	r->refused = true;
	remote_channel_drop(r, "refused: %s", why);
}

static void attach_answered(struct remote *r, const struct rpc_reply *rep)
{
	const struct rpc_attach_reply *attach = &rep->attach;
	char why[RPC_TEXT_MAX];
	int err;

	if (rep->status) {
		attach_refused(r, rep);
		return;
	}
	err = slots_set(r, attach->nslots, attach->nreserved);
	if (err) {
		remote_channel_drop(r, "%u slots, %u reserved, are not what we can use",
			attach->nslots, attach->nreserved);
		return;
	}
	err = session_attached(r->session, attach, channel_limits(r->ch), why, sizeof(why));
	if (err) {
		session_connect_failed(r->session, err, "%s: %s", r->session->server, why);
		remote_channel_drop(r, "%s", why);
		return;
	}
	prove_key_accepted(r);
	atomic_store(&r->session->protection, (int)channel_protection(r->ch));
	r->server = attach->incarnation;
	session_renew(r->session, r->attach_ns, attach->server_time);
	session_told_snapshot(r->session, attach->snapshot, false, r->attach_ns);
	region_table_reset(r);
	fetch_regions(r);
}

static void channel_ready(struct remote *r)
{
	int64_t now = now_ms();

	r->state = REMOTE_READY;
	r->missed = false;
	r->ready_ms = r->next_ping_ms = now;
	r->mute_ms = r->unanswered_ms = 0;
	atomic_store(&r->session->threads[r->thread->index].keys_ready, r->keys);
	atomic_store(&r->session->threads[r->thread->index].ready, r->path);
	if (r->down) {
		r->down = false;
		session_channel_back(r->session);
		if (remote_may_share(r))
			r->session->events->connected(r->thread);
	}
	slots_pump(r);
	transfers_pump(r);
}

static void regions_answered(struct remote *r, const struct rpc_reply *rep)
{
	int ret = region_table_answered(r, rep);

	if (ret == 1)
		channel_ready(r);
	else if (!ret)
		fetch_regions(r);
}

/* The export has grown: transfers wait for the new keys. */
static void more_regions_answered(struct remote *r, const struct rpc_reply *rep)
{
	int ret = region_table_answered(r, rep);

	if (!ret)
		region_table_ask(r);
	else if (ret == 1)
		transfers_pump(r);
}

/* ---- ready ----------------------------------------------------------------------------------- */

static void ping(struct remote *r, int64_t now)
{
	struct rpc_request req = {.op = RPC_PING, .slot = RPC_NO_SLOT, .seq = r->npings + 1};
	int64_t sent_ns = clock_ns(CLOCK_BOOTTIME);

	session_totals(r->session, &req.ping);
	if (connect_ask(r, &req) != 0)
		return;
	r->npings++;
	r->ping_ns = sent_ns;
	r->rung = false;
	r->unanswered_ms = 0;
	r->next_ping_ms = now + session_ping_ms(r->session);
}

/* A PING that is on its way gets the same answer, but may have left too early for the answer to be
 * believed: see session_told_snapshot(). */
static void ping_if_rung(struct remote *r)
{
	if (r->rung && r->state == REMOTE_READY && !r->ping_ns)
		ping(r, now_ms());
}

static void ready_tick(struct remote *r, int64_t now)
{
	if (is_silent(r))
		remote_channel_drop(r, "no answer for %u s", r->session->peer_timeout_ms / 1000);
	else if (r->asks_regions && r->regions_ms >= ANSWER_MS)
		remote_channel_drop(r, "no answer with the keys of new regions");
	else if (!r->ping_ns && (r->rung || now >= r->next_ping_ms))
		ping(r, now);
}

static bool are_recalls(const struct rpc_tail *tail)
{
	struct wire_in in = rpc_tail_reader(tail);
	struct rpc_recall recall;

	while (rpc_get_recall(&in, &recall))
		;
	return !in.truncated;
}

/* Takes the news that rings are about. */
static void connect_take_news(struct remote *r, const struct rpc_ping_reply *ping)
{
	if (!are_recalls(&ping->tail)) {
		remote_channel_drop(r, "malformed recalls of %u bytes", ping->tail.len);
		return;
	}
	/* A mount that never shares anything has nothing to give back. */
	if (!remote_may_share(r))
		return;
	r->session->events->news(r->thread, &ping->tail);
	if (ping->give_pages)
		r->session->events->pages_wanted(r->thread, ping->give_pages);
}

/* Soft-RoCE can deliver a PING or its answer twice (see ARCHITECTURE.md, "Transports"). The second
 * answer is true, and may tell something first. But it proves nothing of the time at which a later
 * PING was sent. */
static void ping_answered(struct remote *r, const struct rpc_reply *rep)
{
	if (rep->status || !rep->seq || rep->seq > r->npings) {
		remote_channel_drop(r, "unexpected answer to a ping: %s", errno_text(rep->status));
		return;
	}
	if (r->ping_ns && rep->seq == r->npings) {
		session_renew(r->session, r->ping_ns, rep->ping.server_time);
		session_told_snapshot(r->session, rep->ping.snapshot, rep->ping.frozen, r->ping_ns);
		r->ping_ns = 0;
	}
	connect_take_news(r, &rep->ping);
	ping_if_rung(r);
}

void connection_bye(struct remote *r)
{
	struct rpc_request req = {.op = RPC_BYE, .slot = RPC_NO_SLOT};

	session_totals(r->session, &req.bye.counters);
	req.bye.lost = atomic_load(&r->session->unsafe);
	r->bye_sent = connect_ask(r, &req) == 0;
}

/* ---- what happens ---------------------------------------------------------------------------- */

void connection_reply(struct remote *r, const struct rpc_reply *rep)
{
	if (rep->op == RPC_ATTACH && r->state == REMOTE_ATTACHING)
		attach_answered(r, rep);
	else if (rep->op == RPC_AUTH && r->state == REMOTE_PROVING)
		auth_answered(r, rep);
	else if (rep->op == RPC_REGIONS && r->state == REMOTE_FETCHING)
		regions_answered(r, rep);
	else if (rep->op == RPC_REGIONS && r->state == REMOTE_READY && r->asks_regions)
		more_regions_answered(r, rep);
	else if (rep->op == RPC_PING && r->state == REMOTE_READY)
		ping_answered(r, rep);
	else if (rep->op == RPC_BYE && r->bye_sent)
		r->stopped = true;
	else if (rep->op != RPC_CANCEL || !slots_cancelled(r))
		remote_channel_drop(r, "unexpected reply to %s", rpc_op_info(rep->op)->name);
}

void connection_rung(struct remote *r)
{
	r->rung = true;
	ping_if_rung(r);
}

static void connection_closed(struct remote *r, int status)
{
	bool ours = r->state == REMOTE_DROPPING;
	char why[SESSION_WHY_BYTES];
	int64_t now = now_ms();

	/* Amid the handshake the server's end comes plain, where what is protected is due. */
	if (status == -EBADMSG && r->state == REMOTE_PROVING)
		status = -ECONNRESET;
	if (ours) {
		snprintf(why, sizeof(why), "%s", r->reason);
	} else {
		/* A server that does not speak our version is there, and has refused. */
		r->refused |= status == -EPROTO && r->state == REMOTE_CONNECTING;
		connect_failure_why(r, status, why, sizeof(why));
		connect_failure_tell(r, status);
	}
	channel_lost(r, why, now);
	connection_tick(r, now);
}

void connection_event(struct remote *r, const struct event *ev)
{
	if (ev->type == EV_OPEN && r->state == REMOTE_CONNECTING)
		connect_opened(r);
	else if (ev->type == EV_CLOSED)
		connection_closed(r, ev->status);
}

/* Thread 0's first channel makes the session, which the others join. */
static bool may_connect(const struct remote *r)
{
	const struct session *s = r->session;

	return !s->connect_error && !r->stopped && !session_lost(s) && !session_has_ended(s) &&
	       (s->id || r->thread->index == 0);
}

static void step_timed_out(struct remote *r, int64_t now)
{
	struct session *s = r->session;

	if (r->state == REMOTE_CONNECTING)
		session_connect_failed(s, -ETIMEDOUT,
			"no answer from %s within %u s: check the machine, its network and "
			"firewalls",
			s->server, (s->connect_timeout_ms + 999) / 1000);
	else
		session_connect_failed(s, -ETIMEDOUT,
			"%s is connected but does not answer: see the server's "
			"log",
			s->server);
	channel_lost(r, "no answer in time", now);
}

static void connecting_tick(struct remote *r, int64_t now)
{
	struct session *s = r->session;
	char why[SESSION_WHY_BYTES];

	if (now >= r->deadline_ms) {
		step_timed_out(r, now);
	} else if (s->connecting && now >= s->connect_until_ms - s->connect_timeout_ms + TELL_MS) {
		snprintf(why, sizeof(why), "no answer from %s", s->server);
		session_tell_waiting(s, why);
	}
}

/* Time in which this thread did not run (SIGSTOP, a machine's pause) is no silence of the server:
 * its answers may be here, unread. */
static void measure_silence(struct remote *r, int64_t now)
{
	int64_t passed_ms = (int64_t)min_u64((uint64_t)(now - r->ticked_ms), LATE_MS);

	r->mute_ms = r->heard && r->state == REMOTE_READY ? 0 : r->mute_ms + passed_ms;
	r->unanswered_ms += passed_ms;
	r->regions_ms += passed_ms;
	r->heard = false;
	r->ticked_ms = now;
}

void connection_tick(struct remote *r, int64_t now)
{
	if (r->state == REMOTE_AT_REST)
		return;
	measure_silence(r, now);
	if (remote_channel_has_old_keys(r))
		channel_lost(r, "the session's keys or its transport have changed", now);
	switch (r->state) {
	case REMOTE_DOWN:
		if (may_connect(r) && now >= r->connect_ms)
			connect_begin(r, now);
		break;
	case REMOTE_CONNECTING:
		connecting_tick(r, now);
		break;
	case REMOTE_PROVING:
	case REMOTE_ATTACHING:
	case REMOTE_FETCHING:
		if (r->state == REMOTE_ATTACHING && r->attach_ms && now >= r->attach_ms)
			attach_begin(r);
		else if (now >= r->deadline_ms)
			step_timed_out(r, now);
		break;
	case REMOTE_READY:
		ready_tick(r, now);
		break;
	case REMOTE_DROPPING:
		channel_lost(r, r->reason, now);
		break;
	case REMOTE_OVER:
	case REMOTE_AT_REST:
		break;
	}
}
