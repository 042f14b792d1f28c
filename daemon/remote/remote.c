/* remote.c - the frame of a thread's end of the session: it hands events and ticks to the parts. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/remote/remote_private.h"

int remote_init(struct io_thread *thread, struct session *s)
{
	struct remote *r = calloc(1, sizeof(*r));
	int err;

	assert(thread->index < s->nchannels && !s->remotes[thread->index]);
	if (!r)
		return -ENOMEM;
	err = evq_new(s->transport, &thread->evq);
	if (err) {
		free(r);
		return err;
	}
	r->thread = thread;
	r->session = s;
	slots_init(r);
	transfers_init(r);
	s->remotes[thread->index] = r;
	atomic_fetch_add(&s->nrunning, 1);
	thread->remote = r;
	return 0;
}

void remote_fini(struct io_thread *thread)
{
	struct remote *r = thread->remote;

	if (!r)
		return;
	channel_delete(r->ch);
	evq_delete(thread->evq);
	r->session->remotes[thread->index] = NULL;
	thread->remote = NULL;
	thread->evq = NULL;
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

bool remote_is_idle(const struct io_thread *thread)
{
	const struct remote *r = thread->remote;

	return !r->ch && slots_are_idle(r) && transfers_are_idle(r);
}

void remote_begin_anew(struct io_thread *thread)
{
	slots_begin_anew(thread->remote);
}

bool remote_away(const struct remote *r)
{
	const struct session *s = r->session;

	return s->soft_ms && r->mute_ms >= s->soft_ms && !session_lost(s);
}

bool remote_gives_up(const struct io_thread *thread)
{
	return remote_away(thread->remote);
}

/* ---- messages -------------------------------------------------------------------------------- */

int remote_send(struct remote *r, const struct rpc_request *req)
{
	void *buf = channel_send_buffer(r->ch);
	size_t len;
	int err;

	if (!buf)
		return -EAGAIN;
	err = rpc_request_encode(req, buf, channel_limits(r->ch)->msg_bytes, &len);
	if (err) {
		channel_send_cancel(r->ch, buf);
		return err;
	}
	err = channel_send(r->ch, buf, (uint32_t)len, 0, 0);
	if (!err)
		r->coded_bytes += len;
	return err;
}

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
	struct rpc_reply rep;

	if (ev->has_imm && ev->imm == RPC_RING && !ev->len) {
		connection_rung(r);
	} else if (ev->has_imm || rpc_reply_decode(&rep, ev->data, ev->len) != 0) {
		connection_drop(r, "malformed message of %u bytes", ev->len);
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
		return !ev->status && r->session->address.kind != TRANSPORT_SHM;
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
	if (r->last && !r->bye_sent && r->state == REMOTE_READY)
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
	remote_counters_publish(r);
	if (r->stopping && !r->stopped)
		stop_tick(r, now);
}

void remote_stop(struct io_thread *thread, unsigned limit_ms)
{
	struct remote *r = thread->remote;

	if (r->stopping)
		return;
	remote_counters_publish(r);
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

/* ---- counters -------------------------------------------------------------------------------- */

static void counters_sum(struct channel_counters *sum, const struct channel_counters *c)
{
	sum->reads += c->reads;
	sum->writes += c->writes;
	sum->read_bytes += c->read_bytes;
	sum->write_bytes += c->write_bytes;
	sum->send_bytes += c->send_bytes;
	sum->recv_bytes += c->recv_bytes;
}

void remote_counters_keep(struct remote *r)
{
	counters_sum(&r->past, channel_counters(r->ch));
}

static void publish(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* File data travels one-sided only. The codec refuses bytes that it does not know. So bytes of
 * messages that it has not accounted for would be file data. */
void remote_counters_publish(struct remote *r)
{
	struct channel_counters sum = r->past;

	if (r->ch)
		counters_sum(&sum, channel_counters(r->ch));
	publish(&r->counters.reads, sum.reads);
	publish(&r->counters.writes, sum.writes);
	publish(&r->counters.read_bytes, sum.read_bytes);
	publish(&r->counters.write_bytes, sum.write_bytes);
	publish(&r->counters.rpcs, r->nrpcs);
	publish(&r->counters.rpc_data_bytes, sum.send_bytes + sum.recv_bytes - r->coded_bytes);
}

void remote_counters_add(struct remote *r, struct rpc_counters *totals)
{
	totals->reads += atomic_load_explicit(&r->counters.reads, memory_order_relaxed);
	totals->writes += atomic_load_explicit(&r->counters.writes, memory_order_relaxed);
	totals->read_bytes += atomic_load_explicit(&r->counters.read_bytes, memory_order_relaxed);
	totals->write_bytes += atomic_load_explicit(&r->counters.write_bytes, memory_order_relaxed);
	totals->rpcs += atomic_load_explicit(&r->counters.rpcs, memory_order_relaxed);
	totals->rpc_data_bytes +=
		atomic_load_explicit(&r->counters.rpc_data_bytes, memory_order_relaxed);
}
