/* client.c - a channel that asks, piece by piece if need be, and attaches to nothing. */
#include "daemon/ctl/client.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/transport/address.h"
#include "common/auth/auth_key_file.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/proof/key_proof.h"
#include "common/rpc/rpc.h"
#include "common/transport/kinds.h"
#include "common/transport/transport.h"
#include "common/base/util.h"

enum { STATUS_BYTES_MAX = 64 << 20 };

struct ctl {
	struct transport *transport;
	struct evq *q;
	struct channel *channel; /* NULL: closed */
	struct transport_address address;
	bool opened;           /* a server of ours has greeted */
	uint32_t version;      /* of the protocol, to ask for; 0: our own */
	uint32_t peer_version; /* in the hello of a server that refused; 0: none came */
	/* The key to prove, and what its handshake needs; key NULL: none, or it is proven. */
	const struct auth_key *key;
	struct handshake_context *handshakes;
	struct key_proof proof;
	int64_t until_ms;
	/* STATUS and WHO. A STATUS has no `who`. */
	char *text;
	uint32_t len, total;
	int64_t asked_ns, round_trip_ns; /* of the first piece */
	const struct rpc_who *who;
	/* A STATUS that is asked for `rounds` times; NULL: once. */
	struct ctl_course *course;
	unsigned rounds;
	int64_t step_ns; /* when the step, or the round, began */
	/* SNAPSHOT; NULL: another one. */
	const struct rpc_snapshot *snapshot;
	struct ctl_snapshot_state *state;
	/* A request that is done when it is answered: RELOAD, EVICT, LOG; NULL: another one. */
	const struct rpc_request *order;
	bool answered; /* SNAPSHOT, or the order */
	char *why;
	size_t whylen;
};

__attribute__((format(printf, 3, 4))) static int fail(
	struct ctl *ctl, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(ctl->why, ctl->whylen, format, args);
	va_end(args);
	printable_clean_string(ctl->why);
	return err;
}

/* ---- where ----------------------------------------------------------------------------------- */

static bool names_transport(const char *where)
{
	return strncmp(where, "tcp:", 4) == 0 || strncmp(where, "verbs:", 6) == 0 ||
	       strncmp(where, "shm:", 4) == 0;
}

int ctl_parse_where(
	const char *where, struct transport_address *address, bool *named, char *why, size_t len)
{
	struct source source;
	char text[300];
	int err;

	*named = true;
	if (names_transport(where))
		return address_parse_listen(where, address, why, len);
	if (strstr(where, ":/")) {
		err = address_parse_source(where, &source, why, len);
		if (err)
			return err;
		where = source.host;
	}
	if (where[0] == '/')
		return address_resolve(TRANSPORT_SHM, where, 0, address, why, len);
	*named = false;
	snprintf(text, sizeof(text), "tcp:%s", where);
	return address_parse_listen(text, address, why, len);
}

static int parse_where(const char *where, struct transport_address *address, char *why, size_t len)
{
	bool named;

	return ctl_parse_where(where, address, &named, why, len);
}

/* ---- the course ------------------------------------------------------------------------------ */

/* Begins a step, and returns how long the one before took. */
static int64_t begin_step(struct ctl *ctl, enum ctl_step step)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), took = now - ctl->step_ns;

	ctl->step_ns = now;
	if (ctl->course)
		ctl->course->step = step;
	return took;
}

static void note_opened(struct ctl *ctl)
{
	int64_t took = begin_step(ctl, ctl->key ? CTL_STEP_PROVE : CTL_STEP_ASK);

	if (!ctl->course)
		return;
	ctl->course->connect_ns = took;
	ctl->course->peer_version = channel_peer_version(ctl->channel);
	ctl->course->protection = channel_protection(ctl->channel);
}

static void note_proven(struct ctl *ctl)
{
	int64_t took = begin_step(ctl, CTL_STEP_ASK);

	if (!ctl->course)
		return;
	ctl->course->prove_ns = took;
	ctl->course->protection = channel_protection(ctl->channel);
	snprintf(ctl->course->key_id, sizeof(ctl->course->key_id), "%s", ctl->proof.id);
}

static void note_round(struct ctl *ctl)
{
	int64_t took = begin_step(ctl, CTL_STEP_ASK);

	if (ctl->course && ctl->course->nrounds < CTL_ROUNDS_MAX)
		ctl->course->round_ns[ctl->course->nrounds++] = took;
}

static bool has_text(const struct ctl *ctl)
{
	return ctl->text && ctl->len == ctl->total;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static uint16_t op_of(const struct ctl *ctl)
{
	if (ctl->order)
		return ctl->order->op;
	return ctl->snapshot ? RPC_SNAPSHOT : ctl->who ? RPC_WHO : RPC_STATUS;
}

static int client_send(void *user, const struct rpc_request *req)
{
	struct ctl *ctl = user;
	void *buf = channel_send_buffer(ctl->channel);
	size_t len;
	int err;

	if (!buf)
		return -EPROTO;
	err = rpc_request_encode(req, channel_version(ctl->channel), buf,
		channel_limits(ctl->channel)->msg_bytes, &len);
	if (err) {
		channel_send_cancel(ctl->channel, buf);
		return err;
	}
	return channel_send(ctl->channel, buf, (uint32_t)len, 0, 0);
}

static int client_ask(struct ctl *ctl)
{
	struct rpc_request req = {.op = op_of(ctl), .slot = RPC_NO_SLOT};
	int err;

	if (ctl->order) {
		req = *ctl->order;
	} else if (ctl->snapshot) {
		req.snapshot = *ctl->snapshot;
	} else if (ctl->who) {
		req.who = *ctl->who;
		req.who.offset = ctl->len;
	} else {
		req.status.offset = has_text(ctl) ? 0 : ctl->len;
	}
	if (!ctl->asked_ns)
		ctl->asked_ns = clock_ns(CLOCK_MONOTONIC);
	err = client_send(ctl, &req);
	return err ? fail(ctl, err, "can't send: %s", errno_text(err)) : 0;
}

static int take_piece(struct ctl *ctl, const struct event *event)
{
	struct rpc_reply rep;
	const struct rpc_tail *piece = &rep.status_text.tail;
	int err = rpc_reply_decode(&rep, channel_version(ctl->channel), event->data, event->len);

	if (err || rep.op != op_of(ctl))
		return fail(ctl, -EPROTO,
			"the server's answer is malformed: install the same release on both machines");
	if (rep.status)
		return fail(ctl, rep.status, "%.*s", rep.text.len, rep.text.s);
	if (!ctl->text || has_text(ctl))
		note_round(ctl);
	if (has_text(ctl))
		return 0; /* of a later round: all that counts is that it came */
	if (!ctl->text) {
		ctl->round_trip_ns = clock_ns(CLOCK_MONOTONIC) - ctl->asked_ns;
		ctl->total = rep.status_text.total;
		if (ctl->total > STATUS_BYTES_MAX)
			return fail(ctl, -EPROTO,
				"the server's answer is malformed: install the same release on both machines");
		ctl->text = calloc(1, (size_t)ctl->total + 1);
		if (!ctl->text)
			return fail(ctl, -ENOMEM, "out of memory");
	}
	if (piece->len > ctl->total - ctl->len || (!piece->len && ctl->len < ctl->total))
		return fail(ctl, -EPROTO,
			"the server's answer is malformed: install the same release on both machines");
	memcpy(ctl->text + ctl->len, piece->data, piece->len);
	ctl->len += piece->len;
	return 0;
}

static int take_snapshot(struct ctl *ctl, const struct event *event)
{
	struct rpc_reply rep;
	int err = rpc_reply_decode(&rep, channel_version(ctl->channel), event->data, event->len);

	if (err || rep.op != RPC_SNAPSHOT)
		return fail(ctl, -EPROTO,
			"the server's answer is malformed: install the same release on both machines");
	if (rep.status)
		return fail(ctl, rep.status, "%.*s", rep.text.len, rep.text.s);
	*ctl->state = (struct ctl_snapshot_state){
		.state = (enum rpc_snapshot_state)rep.snapshot.state,
		.done = rep.snapshot.done,
		.total = rep.snapshot.total,
		.pause_ns = rep.snapshot.pause_ns,
	};
	snprintf(ctl->state->text, sizeof(ctl->state->text), "%.*s", rep.snapshot.text.len,
		rep.snapshot.text.s);
	ctl->answered = true;
	return 0;
}

static int take_done(struct ctl *ctl, const struct event *event)
{
	struct rpc_reply rep;
	int err = rpc_reply_decode(&rep, channel_version(ctl->channel), event->data, event->len);

	if (err || rep.op != ctl->order->op)
		return fail(ctl, -EPROTO,
			"the server's answer is malformed: install the same release on both machines");
	ctl->answered = true;
	if (rep.status)
		return fail(ctl, rep.status, "%.*s", rep.text.len, rep.text.s);
	if (rep.op == RPC_RELOAD && rep.status_text.tail.len)
		ctl->text =
			strndup((const char *)rep.status_text.tail.data, rep.status_text.tail.len);
	return 0;
}

static bool is_answered(const struct ctl *ctl)
{
	if (ctl->snapshot || ctl->order)
		return ctl->answered;
	return has_text(ctl) && (!ctl->course || ctl->course->nrounds >= ctl->rounds);
}

static int take_answer(struct ctl *ctl, const struct event *event)
{
	if (ctl->order)
		return take_done(ctl, event);
	return ctl->snapshot ? take_snapshot(ctl, event) : take_piece(ctl, event);
}

static int nobody_listens(struct ctl *ctl, int status)
{
	char text[128];

	if (ctl->address.kind == TRANSPORT_SHM)
		return fail(ctl, status,
			"no server listens there: %s: start rmemfs-server, or name its socket as HOST",
			errno_text(status));
	address_format(&ctl->address, text, sizeof(text));
	return fail(ctl, status,
		"no server listens there (%s): start rmemfs-server, or check the address and port "
		"of HOST",
		text);
}

static int may_not_open(struct ctl *ctl, int status)
{
	if (ctl->address.kind != TRANSPORT_SHM)
		return fail(ctl, status, "%s", errno_text(status));
	return fail(ctl, status,
		"%s: the socket is for root and the server's user: ask as "
		"one of these",
		errno_text(status));
}

static int no_common_version(struct ctl *ctl, int status)
{
	char why[WIRE_VERSION_TEXT_BYTES];

	if (!ctl->peer_version || ctl->peer_version == wire_version())
		return fail(ctl, status,
			"no rmemfs-server listens there: it does not speak our protocol");
	wire_version_refused_by_server(ctl->peer_version, why);
	return fail(ctl, status, "%s", why);
}

static int take_closed(struct ctl *ctl, int status)
{
	ctl->peer_version = ctl->channel ? channel_peer_version(ctl->channel) : 0;
	if (ctl->course && ctl->channel)
		ctl->course->peer_version = ctl->peer_version;
	switch (status) {
	case -ECONNREFUSED:
	case -ENOENT:
		return nobody_listens(ctl, status);
	case -EACCES:
		return may_not_open(ctl, status);
	case -EPROTO:
		return no_common_version(ctl, status);
	case 0:
	case -ECONNRESET:
		return fail(ctl, -ECONNRESET,
			ctl->opened ? "the server closed the connection"
				    : "the program there closes the connection: is it an "
				      "rmemfs-server?");
	default:
		return fail(ctl, status, "%s", errno_text(status));
	}
}

static struct key_proof_channel channel_of(struct ctl *ctl)
{
	return (struct key_proof_channel){
		.channel = ctl->channel,
		.kind = ctl->address.kind,
		.send = client_send,
		.user = ctl,
		.server = "the server",
	};
}

static int take_open(struct ctl *ctl)
{
	const struct key_proof_channel on = channel_of(ctl);
	char why[256];
	int err;

	ctl->opened = true;
	note_opened(ctl);
	if (!ctl->key)
		return client_ask(ctl);
	err = key_proof_begin(&ctl->proof, ctl->handshakes, ctl->key, &on, why, sizeof(why));
	return err ? fail(ctl, err, "%s", why) : 0;
}

static int take_proof(struct ctl *ctl, const struct event *event)
{
	const struct key_proof_channel on = channel_of(ctl);
	struct rpc_reply rep;
	char why[256];
	int n = rpc_reply_decode(&rep, channel_version(ctl->channel), event->data, event->len);

	if (n || rep.op != RPC_AUTH)
		return fail(ctl, -EPROTO,
			"the server's answer is malformed: install the same release on both machines");
	n = key_proof_answered(&ctl->proof, &on, &rep, why, sizeof(why));
	if (n < 0)
		return fail(ctl, n, "%s", why);
	if (n) {
		ctl->key = NULL;
		note_proven(ctl);
	}
	return 0;
}

static int take_message(struct ctl *ctl, const struct event *event)
{
	int err = ctl->key ? take_proof(ctl, event) : take_answer(ctl, event);

	channel_recv_done(ctl->channel, event->data);
	return err || ctl->key || is_answered(ctl) ? err : client_ask(ctl);
}

static int take_event(struct ctl *ctl, const struct event *event)
{
	switch (event->type) {
	case EV_OPEN:
		return take_open(ctl);
	case EV_RECV:
		return take_message(ctl, event);
	case EV_CLOSED:
		return take_closed(ctl, event->status);
	default:
		return 0;
	}
}

/* Takes one event: 1; there was none: 0. */
static int poll_event(struct ctl *ctl)
{
	struct event event;
	int n = evq_poll(ctl->q, &event, 1);
	int err;

	if (n <= 0)
		return n;
	err = take_event(ctl, &event);
	return err ? err : 1;
}

static int wait_event(struct ctl *ctl)
{
	struct pollfd fd = {.fd = evq_fd(ctl->q), .events = POLLIN};
	int64_t left = ctl->until_ms - now_ms();
	int n = evq_arm(ctl->q);

	if (!n)
		n = poll_event(ctl);
	if (n)
		return n < 0 ? n : 0;
	if (left <= 0)
		return fail(ctl, -ETIMEDOUT,
			"the server does not answer: see its log, and check the "
			"network and firewalls");
	if (poll(&fd, 1, (int)left) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

static int converse(struct ctl *ctl)
{
	while (!is_answered(ctl)) {
		int n = poll_event(ctl);

		if (!n)
			n = wait_event(ctl);
		if (n < 0)
			return n;
	}
	return 0;
}

static int connect_once(struct ctl *ctl)
{
	struct transport_config config;
	int err;

	transport_config_default(&config);
	config.io_threads = 0;
	config.msg_bytes = RPC_MSG_BYTES;
	begin_step(ctl, CTL_STEP_OPEN);
	err = transport_open(
		&ctl->address, &config, (int)(ctl->until_ms - now_ms()), &ctl->transport);
	if (err)
		return fail(ctl, err, "%s", errno_text(err));
	err = evq_new(ctl->transport, &ctl->q);
	if (err)
		goto err_close;
	begin_step(ctl, CTL_STEP_CONNECT);
	err = channel_connect(ctl->q, &ctl->address, &ctl->channel);
	if (err) {
		take_closed(ctl, err);
		goto err_evq;
	}
	if (ctl->version)
		channel_ask_version(ctl->channel, ctl->version);
	err = converse(ctl);
	channel_delete(ctl->channel);
	ctl->channel = NULL;
err_evq:
	evq_delete(ctl->q);
err_close:
	transport_close(ctl->transport);
	return err;
}

/* A server that is still to be upgraded is asked in its own version, as the package's upgrade does.
 * By its socket alone: over the network somebody between could lower the version. */
static int connect_and_ask(struct ctl *ctl)
{
	int err = connect_once(ctl);

	if (err != -EPROTO || ctl->opened || ctl->address.kind != TRANSPORT_SHM ||
		ctl->peer_version == wire_version() ||
		!wire_version_is_spoken(wire_version(), ctl->peer_version))
		return err;
	ctl->version = ctl->peer_version;
	return connect_once(ctl);
}

static int prove_and_ask(struct ctl *ctl, const struct auth_key *key)
{
	int err;

	ctl->key = key;
	err = connect_and_ask(ctl);
	key_proof_forget(&ctl->proof);
	return err;
}

/* Each key has a connection of its own. The next one is tried when the server does not accept one,
 * as by a mount. */
static int prove_any_and_ask(struct ctl *ctl, const char *path)
{
	struct auth_key_file file = {0};
	int err = auth_key_file_read(path, &file, ctl->why, ctl->whylen);

	if (!err)
		err = handshake_context_new(
			HANDSHAKE_CLIENT, &ctl->handshakes, ctl->why, ctl->whylen);
	if (!err)
		err = -EACCES;
	for (size_t i = 0; err == -EACCES && i < file.n && now_ms() < ctl->until_ms; i++)
		err = prove_and_ask(ctl, &file.v[i]);
	handshake_context_delete(ctl->handshakes);
	auth_key_file_free(&file);
	return err;
}

static int client_fetch(const char *where, const char *key_file, int timeout_ms,
	const struct rpc_who *who, char **text, int64_t *round_trip_ns, char *why, size_t whylen)
{
	struct ctl ctl = {
		.until_ms = now_ms() + timeout_ms, .who = who, .why = why, .whylen = whylen};
	int err;

	snprintf(why, whylen, "can't talk to the server");
	err = parse_where(where, &ctl.address, why, whylen);
	if (err)
		return err;
	err = key_file ? prove_any_and_ask(&ctl, key_file) : connect_and_ask(&ctl);
	if (err) {
		free(ctl.text);
		return err;
	}
	*text = ctl.text;
	*round_trip_ns = ctl.round_trip_ns;
	return 0;
}

int ctl_fetch_status(const char *where, const char *key_file, int timeout_ms, char **text,
	int64_t *round_trip_ns, char *why, size_t whylen)
{
	return client_fetch(where, key_file, timeout_ms, NULL, text, round_trip_ns, why, whylen);
}

static struct rpc_str string(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strnlen(s, UINT16_MAX)};
}

int ctl_fetch_who(const char *where, int timeout_ms, const char *export_name, const char *path,
	char **text, char *why, size_t whylen)
{
	const struct rpc_who who = {.export_name = string(export_name), .path = string(path)};
	int64_t round_trip_ns;

	return client_fetch(where, NULL, timeout_ms, &who, text, &round_trip_ns, why, whylen);
}

int ctl_ask_snapshot(const char *where, int timeout_ms, enum rpc_snapshot_command command,
	const char *export_name, const char *dir, struct ctl_snapshot_state *state, char *why,
	size_t whylen)
{
	const struct rpc_snapshot snapshot = {.command = (uint8_t)command,
		.export_name = string(export_name),
		.dir = string(dir)};
	struct ctl ctl = {.until_ms = now_ms() + timeout_ms,
		.snapshot = &snapshot,
		.state = state,
		.why = why,
		.whylen = whylen};
	int err;

	snprintf(why, whylen, "can't talk to the server");
	err = parse_where(where, &ctl.address, why, whylen);
	return err ? err : connect_and_ask(&ctl);
}

static int give_order(const char *where, int timeout_ms, const struct rpc_request *order,
	char **text, enum ctl_end *end, char *why, size_t whylen)
{
	struct ctl ctl = {
		.until_ms = now_ms() + timeout_ms, .order = order, .why = why, .whylen = whylen};
	int err;

	*end = CTL_UNASKED;
	snprintf(why, whylen, "can't talk to the server");
	err = parse_where(where, &ctl.address, why, whylen);
	if (err)
		return err;
	err = connect_and_ask(&ctl);
	if (!err)
		*end = CTL_DONE;
	else if (ctl.answered)
		*end = CTL_REFUSED;
	else if (ctl.opened)
		*end = CTL_UNKNOWN;
	*text = ctl.text;
	return err;
}

int ctl_order(const char *where, int timeout_ms, const struct rpc_request *order, enum ctl_end *end,
	char *why, size_t whylen)
{
	autofree char *text = NULL;

	return give_order(where, timeout_ms, order, &text, end, why, whylen);
}

int ctl_reload(const char *where, char **text, enum ctl_end *end, char *why, size_t whylen)
{
	const struct rpc_request req = {.op = RPC_RELOAD, .slot = RPC_NO_SLOT};

	return give_order(where, RELOAD_TIMEOUT_MS, &req, text, end, why, whylen);
}

int ctl_follow(const struct transport_address *address, const char *key_file, int timeout_ms,
	unsigned rounds, struct ctl_course *course, char **text, char *why, size_t whylen)
{
	struct ctl ctl = {
		.until_ms = now_ms() + timeout_ms,
		.address = *address,
		.course = course,
		.rounds = rounds < CTL_ROUNDS_MAX ? rounds : CTL_ROUNDS_MAX,
		.why = why,
		.whylen = whylen,
	};
	int err;

	*course = (struct ctl_course){0};
	snprintf(why, whylen, "can't talk to the server");
	err = key_file ? prove_any_and_ask(&ctl, key_file) : connect_and_ask(&ctl);
	if (err && !has_text(&ctl)) {
		free(ctl.text);
		return err;
	}
	*text = ctl.text;
	return 0;
}
