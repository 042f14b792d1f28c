/* remote.c - the frame of a thread's end of the session: it hands events and ticks to the parts. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/service.h"
#include "common/base/util.h"
#include "daemon/remote/paths.h"
#include "daemon/remote/prove_key.h"
#include "daemon/remote/remote_private.h"

int remote_init(struct io_thread *thread, struct session *s)
{
	struct remote *r = calloc(1, sizeof(*r));
	int err;

	assert(thread->index < s->nchannels && !thread->remote);
	if (!r)
		return -ENOMEM;
	r->thread = thread;
	r->session = s;
	err = paths_enter(r);
	if (err) {
		free(r);
		return err;
	}
	slots_init(r);
	transfers_init(r);
	atomic_fetch_add(&s->nrunning, 1);
	thread->remote = r;
	return 0;
}

void remote_fini(struct io_thread *thread)
{
	struct remote *r = thread->remote;

	if (!r)
		return;
	prove_key_forget(r);
	channel_delete(steal_ptr(&r->ch));
	paths_leave(r);
	thread->remote = NULL;
	free(r);
}

bool remote_connected(const struct io_thread *thread)
{
	return thread->remote->state == REMOTE_READY;
}

bool remote_disconnected(const struct io_thread *thread)
{
	return thread->remote->missed;
}

bool remote_has_no_calls(const struct io_thread *thread)
{
	const struct remote *r = thread->remote;

	return slots_are_idle(r) && transfers_are_idle(r);
}

bool remote_is_idle(const struct io_thread *thread)
{
	return !thread->remote->ch && remote_has_no_calls(thread);
}

void remote_rest(struct io_thread *thread)
{
	assert(remote_has_no_calls(thread));
	remote_channel_publish_counters(thread->remote);
	connection_rest(thread->remote);
}

void remote_resume(struct io_thread *thread)
{
	connection_resume(thread->remote, now_ms());
}

void remote_begin_anew(struct io_thread *thread)
{
	slots_begin_anew(thread->remote);
}

bool remote_gives_up(const struct io_thread *thread)
{
	return remote_channel_is_away(thread->remote);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void message_deliver(struct remote *r, const struct rpc_reply *rep)
{
	if (r->state == REMOTE_DROPPING)
		return;
	if (rpc_op_info(rep->op)->slotted)
		slots_reply(r, rep);
	else
		connection_reply(r, rep);
}

static void message_event(struct remote *r, const struct event *ev)
{
	uint32_t version = channel_version(r->ch);
	struct rpc_reply rep;

	if (ev->has_imm && ev->imm == RPC_RING && !ev->len) {
		connection_rung(r);
	} else if (ev->has_imm || rpc_reply_decode(&rep, version, ev->data, ev->len) != 0) {
		remote_channel_drop(r, "malformed message of %u bytes", ev->len);
	} else {
		r->coded_bytes += ev->len;
		message_deliver(r, &rep);
	}
	channel_recv_done(r->ch, ev->data);
}

/* ---- events and ticks ------------------------------------------------------------------------ */

/* A refused or closed connection is no sign of a server, nor is a copy that we make ourselves. */
static bool is_sign_of_life(const struct remote *r, const struct event *ev)
{
	if (ev->type == EV_DONE)
		return !ev->status && r->path->address.kind != TRANSPORT_SHM;
	return ev->type == EV_RECV;
}

void remote_event(struct io_thread *thread, const struct event *ev)
{
	struct remote *r = thread->remote;

	if (!r->ch || ev->channel != r->ch)
		return;
	r->heard |= is_sign_of_life(r, ev);
	switch (ev->type) {
	case EV_RECV:
		message_event(r, ev);
		break;
	case EV_DONE:
		transfers_done(r, ev);
		break;
	default:
		connection_event(r, ev);
		break;
	}
}

static void stop_tick(struct remote *r, int64_t now)
{
	/* One message outside the slots at a time, besides PING and CANCEL. */
	if (r->last && !r->bye_sent && r->state == REMOTE_READY && !r->asks_regions)
		connection_bye(r);
	if (now >= r->stop_ms || session_lost(r->session) || session_has_ended(r->session))
		r->stopped = true;
}

void remote_tick(struct io_thread *thread, int64_t now)
{
	struct remote *r = thread->remote;

	if (session_lost(r->session)) {
		connection_end(r);
		slots_fail_all(r);
		transfers_fail_all(r);
	} else if (session_has_ended(r->session)) {
		connection_take_down(r, now);
		slots_fail_all(r);
		transfers_fail_all(r);
	} else {
		connection_tick(r, now);
		slots_tick(r);
		transfers_tick(r);
	}
	remote_channel_publish_counters(r);
	if (r->stopping && !r->stopped)
		stop_tick(r, now);
}

void remote_stop(struct io_thread *thread, unsigned limit_ms)
{
	struct remote *r = thread->remote;

	if (r->stopping)
		return;
	remote_channel_publish_counters(r);
	r->stopping = true;
	r->stop_ms = now_ms() + limit_ms;
	r->last = atomic_fetch_sub(&r->session->nrunning, 1) == 1;
	if (r->last)
		stop_tick(r, now_ms());
	else
		r->stopped = true;
}

bool remote_stopped(const struct io_thread *thread)
{
	return thread->remote->stopped;
}

/* ---- before the threads run ------------------------------------------------------------------ */

enum { CONNECT_POLL_MS = 20 };

/* One turn of the loop that an I/O thread runs later. */
static int connect_turn(struct io_thread *thread)
{
	struct event events[16];
	int n = evq_poll(thread->evq, events, ARRAY_SIZE(events));

	if (n == 0) {
		struct pollfd pfd = {.fd = evq_fd(thread->evq), .events = POLLIN};
		int err = evq_arm(thread->evq);

		if (err)
			return err;
		n = evq_poll(thread->evq, events, ARRAY_SIZE(events));
		if (n == 0)
			poll(&pfd, 1, CONNECT_POLL_MS);
	}
	for (int i = 0; i < n; i++)
		remote_event(thread, &events[i]);
	remote_tick(thread, now_ms());
	service_tick(now_ms(), true);
	return n < 0 ? n : 0;
}

int remote_connect(struct io_thread *thread, char *why, size_t whylen)
{
	struct session *s = thread->remote->session;
	int err = 0;

	if (!s->connect_until_ms)
		s->connect_until_ms = now_ms() + s->connect_timeout_ms;
	s->connecting = true;
	while (!err && !s->connect_error && !remote_connected(thread))
		err = connect_turn(thread);
	s->connecting = false;
	if (s->connect_error) {
		snprintf(why, whylen, "%s", s->connect_why);
		return s->connect_error;
	}
	if (err)
		snprintf(why, whylen, "%s: %s", s->server, errno_text(err));
	return err;
}

void remote_await_stop(struct io_thread *thread)
{
	while (!remote_stopped(thread))
		if (connect_turn(thread) != 0)
			return;
}
