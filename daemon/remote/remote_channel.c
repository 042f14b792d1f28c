/* remote_channel.c - the channel, as all parts of a thread's end use it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/remote/paths.h"
#include "daemon/remote/remote_private.h"

bool remote_channel_has_old_keys(const struct remote *r)
{
	bool attached = r->state >= REMOTE_ATTACHING && r->state <= REMOTE_DROPPING;

	if (paths_left_behind(r))
		return true;
	return attached && r->ch &&
	       (r->keys != atomic_load(&r->session->keys) || channel_is_worn(r->ch));
}

void remote_channel_drop(struct remote *r, const char *format, ...)
{
	va_list args;

	if (r->state == REMOTE_DROPPING || !r->ch)
		return;
	va_start(args, format);
	vsnprintf(r->reason, sizeof(r->reason), format, args);
	va_end(args);
	session_connect_failed(r->session, -EPROTO, "%s: %s", r->session->server, r->reason);
	r->state = REMOTE_DROPPING;
	r->missed |= !remote_channel_has_old_keys(r);
}

bool remote_channel_is_away(const struct remote *r)
{
	const struct session *s = r->session;

	return s->soft_ms && r->mute_ms >= s->soft_ms && !session_lost(s);
}

int remote_channel_send(struct remote *r, const struct rpc_request *req)
{
	return remote_channel_send_recorded(r, req, NULL, 0);
}

int remote_channel_send_recorded(
	struct remote *r, const struct rpc_request *req, struct record_slot *note, uint64_t by)
{
	void *buf = channel_send_buffer(r->ch);
	size_t len;
	int err;

	if (!buf)
		return -EAGAIN;
	err = rpc_request_encode(
		req, channel_version(r->ch), buf, channel_limits(r->ch)->msg_bytes, &len);
	if (err) {
		channel_send_cancel(r->ch, buf);
		return err;
	}
	if (note)
		record_slot_message(note, by, buf, len);
	err = channel_send(r->ch, buf, (uint32_t)len, 0, 0);
	if (!err)
		r->coded_bytes += len;
	return err;
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

void remote_channel_keep_counters(struct remote *r)
{
	counters_sum(&r->past, channel_counters(r->ch));
}

static void publish(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* File data travels one-sided only. The codec refuses bytes that it does not know. So bytes of
 * messages that it has not accounted for would be file data. */
void remote_channel_publish_counters(struct remote *r)
{
	struct session_thread *shown = &r->session->threads[r->thread->index];
	struct channel_counters sum = r->past;

	if (r->ch)
		counters_sum(&sum, channel_counters(r->ch));
	publish(&shown->reads, sum.reads);
	publish(&shown->writes, sum.writes);
	publish(&shown->read_bytes, sum.read_bytes);
	publish(&shown->write_bytes, sum.write_bytes);
	publish(&shown->rpcs, r->nrpcs);
	publish(&shown->rpc_data_bytes, sum.send_bytes + sum.recv_bytes - r->coded_bytes);
}
