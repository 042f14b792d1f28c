/* snapshot.c - see snapshot.h. */
#include "server/snapshot/snapshot.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "common/base/clock.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/snapshot/marker.h"
#include "server/space/protect.h"
#include "server/session/session.h"
#include "server/snapshot/snapshot_copy.h"

enum {
	FREEZE_MS = 5000,
	AWAY_MS = 2000,
	FENCE_MS = 2000,
	ROOM_MS = 5000,
	ROOM_LOOK_MS = 100,
	ASIDE_BYTES = 64 << 20,
	WHY_BYTES = 400,
};

struct snapshot {
	struct server *server;
	int wake_fd;

	/* The last snapshot; state says how far it is. */
	enum rpc_snapshot_state state;
	struct export *export;
	bool last;   /* of a server that is stopping */
	bool forced; /* its clients have had their time */
	int err;     /* if FAILED */
	uint64_t id; /* grows from one to the next, over restarts too */
	char dir[SNAPSHOT_DIR_BYTES];
	char why[WHY_BYTES]; /* if FAILED */
	uint64_t done, total;
	int64_t began_ms, pause_ns;
	int64_t deadline_ms; /* of the freeze; 0: it has not begun */
	/* COPYING: since when a client has waited because there was no room; 0: none waits. */
	int64_t short_ms;
	struct snapshot_copy *copy;
	struct marker *marker;
	struct list frozen; /* struct client_request: FROZENs that wait for those of others */
};

static bool snapshot_is_running(const struct snapshot *sn)
{
	return sn->state == SNAPSHOT_FREEZING || sn->state == SNAPSHOT_COPYING;
}

/* Sets the export's fields, by which clients are told. */
static void push(const struct snapshot *sn)
{
	sn->export->snapshot.id = snapshot_is_running(sn) ? sn->id : 0;
	sn->export->snapshot.freezing = sn->state == SNAPSHOT_FREEZING && sn->deadline_ms;
}

int snapshot_init(struct server *s)
{
	struct snapshot *sn = calloc(1, sizeof(*sn));

	if (!sn)
		return -ENOMEM;
	sn->server = s;
	list_init(&sn->frozen);
	sn->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (sn->wake_fd < 0) {
		free(sn);
		return -errno;
	}
	s->snapshot = sn;
	return 0;
}

int snapshot_fd(const struct server *s)
{
	return s->snapshot->wake_fd;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void note_progress(struct snapshot *sn)
{
	if (sn->marker)
		protect_progress(marker_pages(sn->marker), &sn->done, &sn->total);
}

/* FROZEN of a closed export stays without an answer, like all its requests. */
static void answer_frozen(struct snapshot *sn)
{
	struct rpc_reply rep = {0};

	if (sn->export->closed)
		list_splice_tail(&sn->server->parked, &sn->frozen);
	for (struct list *pos; (pos = list_pop(&sn->frozen));)
		client_request_answer(list_entry(pos, struct client_request, link), &rep);
}

/* Requests that found no room aside run again, and the scrubber. */
static void snapshot_go_on(struct server *s)
{
	list_splice_tail(&s->ready, &s->parked);
	s->reclaim = true;
}

/* PING's reply has news. Sessions that only read have no use for it. */
static void ring_writers(const struct snapshot *sn)
{
	list_for_each (pos, &sn->server->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (session->export == sn->export && !(session->stored.flags & ATTACH_READ_ONLY))
			client_session_ring(session);
	}
}

/* Nobody waits for the snapshot any more. Its state says how it ended. */
static void release_clients(struct snapshot *sn)
{
	note_progress(sn);
	if (sn->marker)
		protect_end(marker_pages(sn->marker));
	answer_frozen(sn);
	snapshot_go_on(sn->server);
	ring_writers(sn);
}

__attribute__((format(printf, 3, 4))) static void give_up(
	struct snapshot *sn, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sn->why, sizeof(sn->why), format, args);
	va_end(args);
	sn->state = SNAPSHOT_FAILED;
	sn->err = err;
	push(sn);
	log_warning("snapshot of export '%s' to %s failed: %s", sn->export->name, sn->dir, sn->why);
	/* First: else the thread would take pages whose protection has ended for pages that it
	 * has. */
	if (sn->copy)
		snapshot_copy_cancel(sn->copy);
	release_clients(sn);
}

static void tell_done(const struct snapshot *sn)
{
	int64_t ms = now_ms() - sn->began_ms, pause_us = sn->pause_ns / 1000;
	char size[32];

	size_format(sn->done << PAGE_SHIFT, size, sizeof(size));
	log_notice("snapshot of export '%s' in %s: %s in %lld.%lld s, clients paused for "
		   "%lld.%03lld ms",
		sn->export->name, sn->dir, size, (long long)ms / 1000, (long long)ms % 1000 / 100,
		(long long)pause_us / 1000, (long long)pause_us % 1000);
}

/* The thread has ended, or this waits for its end. */
static void copy_ended(struct snapshot *sn)
{
	char why[WHY_BYTES];
	int err = snapshot_copy_end(steal_ptr(&sn->copy), why, sizeof(why));

	if (snapshot_is_running(sn) && err) {
		give_up(sn, err, "%s", why);
	} else if (snapshot_is_running(sn)) {
		sn->state = SNAPSHOT_DONE;
		push(sn);
		sn->export->completed = realtime_ns() / 1000000000;
		snprintf(sn->export->completed_dir, sizeof(sn->export->completed_dir), "%s",
			sn->dir);
		release_clients(sn);
		tell_done(sn);
	}
	if (sn->marker)
		marker_delete(steal_ptr(&sn->marker));
}

void snapshot_end(struct server *s)
{
	struct snapshot *sn = s->snapshot;

	if (!sn)
		return;
	/* The requests were freed with their channels. */
	list_init(&sn->frozen);
	if (snapshot_is_running(sn) && snapshot_copy_cancel(sn->copy))
		give_up(sn, -ECANCELED, "the server ends");
	if (sn->copy)
		copy_ended(sn);
	close(sn->wake_fd);
	free(sn);
	s->snapshot = NULL;
}

/* ---- freeze and marker ----------------------------------------------------------------------- */

/* The session can have written, and is not known to have stopped. One that is being ended writes
 * until its last channel is fenced. */
static bool is_waited_for(const struct snapshot *sn, const struct client_session *session)
{
	bool cut_off = (session->ending || sn->forced) && !client_session_reaches_memory(session);

	return session->export == sn->export && !session->said_bye && !cut_off &&
	       !(session->stored.flags & ATTACH_READ_ONLY) && session->frozen != sn->id;
}

static const struct client_session *find_waited_for(const struct snapshot *sn)
{
	list_for_each (pos, &sn->server->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);

		if (is_waited_for(sn, session))
			return session;
	}
	return NULL;
}

static void snapshot_mark(struct snapshot *sn)
{
	int err = marker_new(
		sn->server->meta, sn->export->index, ASIDE_BYTES, sn->wake_fd, &sn->marker);

	if (err) {
		give_up(sn, err, "the store can't be read: %s", errno_text(err));
		return;
	}
	CRASH_POINT("snapshot.marked");
	sn->state = SNAPSHOT_COPYING;
	push(sn);
	sn->short_ms = 0;
	if (sn->export->snapshot.told_ns)
		sn->pause_ns = clock_ns(CLOCK_MONOTONIC) - sn->export->snapshot.told_ns;
	note_progress(sn);
	snapshot_copy_go(sn->copy, sn->marker);
	sn->export->closed |= sn->last;
	answer_frozen(sn);
}

static void mark_if_frozen(struct snapshot *sn)
{
	if (sn->state == SNAPSHOT_FREEZING && sn->deadline_ms && !find_waited_for(sn))
		snapshot_mark(sn);
}

static void freeze(struct snapshot *sn)
{
	sn->deadline_ms = now_ms() + FREEZE_MS;
	push(sn);
	sessions_end_overdue(sn->server, sn->export, NULL);
	ring_writers(sn);
	mark_if_frozen(sn);
}

void snapshot_lost_session(struct server *s)
{
	if (s->snapshot)
		mark_if_frozen(s->snapshot);
}

/* Closes the channels of a client that is late, so that it writes no more. Bytes that it has
 * acknowledged to its callers are in memory, and in the snapshot unless their extents were not
 * committed. */
static void force(struct snapshot *sn, const struct client_session *session, int64_t now)
{
	log_warning("%s did not end its writes in time: the last snapshot of export '%s' is taken "
		    "without what it has not committed",
		session->stored.client, sn->export->name);
	sn->forced = sn->export->closed = true;
	sn->deadline_ms = now + FENCE_MS;
	list_for_each (pos, &session->conns)
		conn_fence(list_entry(pos, struct conn, link));
}

static void give_up_waiting(struct snapshot *sn, const struct client_session *session, int64_t now)
{
	if (sn->forced)
		snapshot_mark(sn);
	else if (sn->last)
		force(sn, session, now);
	else
		give_up(sn, -ETIMEDOUT, "%s %s", session->stored.client,
			list_empty(&session->conns)
				? "has no connection, and may have written what is not here yet"
				: "did not end its writes in time");
	mark_if_frozen(sn);
}

static int64_t deadline_of(const struct snapshot *sn, const struct client_session *session)
{
	bool away = list_empty(&session->conns) && !sn->forced;
	int64_t ms = away ? session->lost_ms + AWAY_MS : sn->deadline_ms;

	return ms < sn->deadline_ms ? ms : sn->deadline_ms;
}

/* Returns when to look again. */
static int64_t check_deadlines(struct snapshot *sn, int64_t now)
{
	int64_t next = sn->deadline_ms;

	list_for_each (pos, &sn->server->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);
		int64_t at = deadline_of(sn, session);

		if (!is_waited_for(sn, session))
			continue;
		if (now < at) {
			next = at < next ? at : next;
			continue;
		}
		give_up_waiting(sn, session, now);
		return sn->state == SNAPSHOT_FREEZING ? sn->deadline_ms : -1;
	}
	return next;
}

/* ---- copying --------------------------------------------------------------------------------- */

/* The request that has waited longest, for pages or for room to put them aside. */
static const struct client_request *find_parked(const struct snapshot *sn)
{
	const struct client_request *first = NULL;

	list_for_each (pos, &sn->server->parked) {
		const struct client_request *req = list_entry(pos, struct client_request, link);

		if (req->conn->session->export == sn->export &&
			(!first || req->parked_ms < first->parked_ms))
			first = req;
	}
	return first;
}

/* No request waits for a server's last snapshot: nothing of the export is answered any more. */
static int64_t check_room(struct snapshot *sn, int64_t now)
{
	const struct client_request *req = sn->last ? NULL : find_parked(sn);
	int64_t refused_ms = protect_refused_ms(marker_pages(sn->marker)), until_ms;

	/* There may be room now and then, which others take. */
	if (!req)
		sn->short_ms = 0;
	else if (!sn->short_ms)
		sn->short_ms = refused_ms;
	if (!sn->short_ms)
		return -1;
	/* Before that time it was not room that the request waited for. */
	until_ms = max_i64(req->parked_ms, sn->short_ms) + ROOM_MS;
	if (now < until_ms)
		return until_ms;
	if (!refused_ms)
		return now + ROOM_LOOK_MS;
	give_up(sn, -ETIMEDOUT,
		"the disk is too slow: %s has waited %d s for room to put aside what it changes",
		req->conn->session->stored.client, ROOM_MS / 1000);
	return -1;
}

int64_t snapshot_tick(struct server *s, int64_t now)
{
	struct snapshot *sn = s->snapshot;

	if (sn->state == SNAPSHOT_COPYING)
		return check_room(sn, now);
	if (sn->state != SNAPSHOT_FREEZING || !sn->deadline_ms)
		return -1;
	sessions_end_overdue(s, sn->export, NULL);
	mark_if_frozen(sn);
	return sn->state == SNAPSHOT_FREEZING ? check_deadlines(sn, now) : -1;
}

void snapshot_event(struct server *s)
{
	struct snapshot *sn = s->snapshot;
	eventfd_t n;

	eventfd_read(sn->wake_fd, &n);
	if (!sn->copy)
		return;
	switch (snapshot_copy_phase(sn->copy)) {
	case COPY_ENDED:
		copy_ended(sn);
		break;
	case COPY_READY:
		if (snapshot_is_running(sn) && !sn->deadline_ms)
			freeze(sn);
		break;
	case COPY_STARTING:
	case COPY_COPYING:
		break;
	}
	snapshot_go_on(s);
}

/* ---- FROZEN ---------------------------------------------------------------------------------- */

void snapshot_frozen(struct client_request *req)
{
	struct client_session *session = req->conn->session;
	struct snapshot *sn = session->server->snapshot;
	struct rpc_reply rep = {0};

	list_del(&req->link);
	if (session->export->closed) {
		list_add_tail(&session->server->parked, &req->link);
		return;
	}
	if (sn->state != SNAPSHOT_FREEZING || sn->export != session->export ||
		sn->id != req->rpc.frozen.snapshot) {
		client_request_answer(req, &rep);
		return;
	}
	session->frozen = sn->id;
	list_add_tail(&sn->frozen, &req->link);
	mark_if_frozen(sn);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static int snapshot_take(
	struct server *s, struct export *export, const char *dir, const char *clear)
{
	struct snapshot *sn = s->snapshot, before = *sn;
	int err;

	*sn = (struct snapshot){
		.server = s,
		.wake_fd = before.wake_fd,
		.state = SNAPSHOT_FREEZING,
		.export = export,
		.last = s->leaving,
		.id = max_u64((uint64_t)realtime_ns(), before.id + 1),
		.began_ms = now_ms(),
	};
	list_init(&sn->frozen);
	snprintf(sn->dir, sizeof(sn->dir), "%s", dir);
	err = snapshot_copy_new(sn->dir, clear, sn->wake_fd, &sn->copy);
	export->snapshot.told_ns = 0;
	if (err)
		sn->state = SNAPSHOT_NONE;
	else
		log_info("snapshot of export '%s' to %s begins", export->name, sn->dir);
	push(sn);
	return err;
}

void snapshot_cancel(struct server *s, const char *reason)
{
	if (snapshot_is_running(s->snapshot) && snapshot_copy_cancel(s->snapshot->copy))
		give_up(s->snapshot, -ECANCELED, "%s", reason);
}

int snapshot_take_last(struct server *s, struct export *export, const char *dir, const char *clear)
{
	assert(!s->snapshot->copy);
	return snapshot_take(s, export, dir, clear);
}

uint64_t snapshot_steps(const struct server *s)
{
	return s->snapshot->copy ? snapshot_copy_steps(s->snapshot->copy) : 0;
}

bool snapshot_has_ended(const struct server *s, int *err, const char **why)
{
	const struct snapshot *sn = s->snapshot;

	*err = sn->state == SNAPSHOT_FAILED ? sn->err : 0;
	*why = sn->why;
	return !sn->copy;
}

bool snapshot_is_of(const struct server *s, const struct export *export)
{
	return s->snapshot->export == export &&
	       (snapshot_is_running(s->snapshot) || s->snapshot->copy);
}

void snapshot_forget(struct server *s, const struct export *export)
{
	if (s->snapshot->export == export)
		s->snapshot->export = NULL;
}

/* ---- the admin's requests -------------------------------------------------------------------- */

static void snapshot_begin(struct client_request *req, struct export *export)
{
	const struct rpc_str *text = &req->rpc.snapshot.dir;
	char dir[SNAPSHOT_DIR_BYTES];
	int err;

	snprintf(dir, sizeof(dir), "%.*s", text->len, text->s);
	err = snapshot_take(req->conn->server, export, dir, NULL);
	if (err)
		client_request_refuse(req, err, "can't start a thread: %s", errno_text(err));
	else
		client_request_answer(
			req, &(struct rpc_reply){.snapshot = {.state = SNAPSHOT_FREEZING}});
}

static void snapshot_start(struct client_request *req, struct export *export)
{
	const struct rpc_str *dir = &req->rpc.snapshot.dir;
	const struct snapshot *sn = req->conn->server->snapshot;

	if (req->conn->server->leaving)
		client_request_refuse(req, -ESHUTDOWN, "the server is stopping");
	else if (sn->copy)
		client_request_refuse(req, -EBUSY, "a snapshot of export '%s' to %s is on its way",
			sn->export->name, sn->dir);
	else if (dir->s[0] != '/' || dir->len >= SNAPSHOT_DIR_BYTES)
		client_request_refuse(req, -EINVAL,
			"'%.*s': must be a path from / on, of at most %d bytes", dir->len, dir->s,
			SNAPSHOT_DIR_BYTES - 1);
	else if (atomic_load(&export->lost))
		client_request_refuse(req, -EIO,
			"memory of export '%s' is lost; the server's log names the region",
			export->name);
	else
		snapshot_begin(req, export);
}

/* A failure is told when nothing of the snapshot is left, and another one can begin. */
static enum rpc_snapshot_state visible_state(const struct snapshot *sn)
{
	return sn->state == SNAPSHOT_FAILED && sn->copy ? SNAPSHOT_COPYING : sn->state;
}

static void poll_state(struct client_request *req, const struct export *export)
{
	struct snapshot *sn = req->conn->server->snapshot;
	enum rpc_snapshot_state state;
	struct rpc_reply rep = {0};
	const char *text;

	if (sn->export == export) {
		if (snapshot_is_running(sn))
			note_progress(sn);
		state = visible_state(sn);
		text = state == SNAPSHOT_FAILED ? sn->why : sn->dir;
		rep.snapshot = (struct rpc_snapshot_reply){
			.state = (uint8_t)state,
			.done = sn->done,
			.total = sn->total,
			.pause_ns = (uint64_t)sn->pause_ns,
			.text = {text, (uint16_t)strnlen(text, RPC_TEXT_MAX)},
		};
	}
	client_request_answer(req, &rep);
}

static void snapshot_answer_cancel(struct client_request *req, const struct export *export)
{
	struct snapshot *sn = req->conn->server->snapshot;

	/* An administrator does not cancel a server's last snapshots: the request may mean one
	 * before. */
	if (snapshot_is_running(sn) && sn->export == export && !sn->last &&
		snapshot_copy_cancel(sn->copy))
		give_up(sn, -ECANCELED, "it was cancelled");
	poll_state(req, export);
}

void snapshot_request(struct client_request *req)
{
	const struct rpc_snapshot *q = &req->rpc.snapshot;
	struct export *export;

	/* It writes the export's memory to files that the server's user may write. */
	if (!conn_is_admin(req->conn)) {
		client_request_refuse(req, -EPERM,
			"snapshots are for root and the server's user, by the socket on the "
			"server's machine");
		return;
	}
	export = client_request_export(req, &q->export_name);
	if (!export)
		return;
	switch ((enum rpc_snapshot_command)q->command) {
	case SNAPSHOT_START:
		snapshot_start(req, export);
		break;
	case SNAPSHOT_POLL:
		poll_state(req, export);
		break;
	case SNAPSHOT_CANCEL:
		snapshot_answer_cancel(req, export);
		break;
	}
}

void snapshot_look(const struct server *s, const struct export *export, struct snapshot_view *view)
{
	struct snapshot *sn = s->snapshot;

	*view = (struct snapshot_view){
		.state = SNAPSHOT_NONE,
		.completed = export->completed,
		.completed_dir = export->completed_dir,
	};
	if (sn->export != export)
		return;
	if (snapshot_is_running(sn))
		note_progress(sn);
	view->state = sn->state;
	view->done = sn->done;
	view->total = sn->total;
	view->pause_ns = (uint64_t)sn->pause_ns;
	view->dir = sn->dir;
}
