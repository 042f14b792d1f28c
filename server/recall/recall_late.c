/* recall_late.c - see recall_private.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/process_state.h"
#include "common/base/util.h"
#include "server/recall/recall_private.h"
#include "server/recall/page_reuse.h"
#include "server/session/session.h"

enum {
	SLOW_MS = 1000,
	LOG_MS = 1000,
	LOG_BURST = 64,
	/* A client gives a sign of life once a second. */
	SILENT_MS = 2000,
	QUICK_STEPS = 16,
	/* A pause between two ticks counts for at most this share of the lease time. */
	STILL_SHARE = 4,
};

/* ---- what takes long ------------------------------------------------------------------------- */

/* The process of a session over shm, if it is stopped; else 0. */
static int stopped_process(const struct client_session *session)
{
	list_for_each (pos, &session->conns) {
		int pid = channel_peer_pid(list_entry(pos, struct conn, link)->channel);

		if (process_state_is_stopped(pid))
			return pid;
	}
	return 0;
}

static bool server_is_starved(const struct server *s, int64_t now)
{
	struct cpu_wait_view view;

	cpu_wait_look(&s->cpu, now, &view);
	return view.starved;
}

/* The reason, as far as it is known: "; its connection is gone". "": nothing. */
static void describe_cause(const struct client_session *session, int64_t now, char *buf, size_t len)
{
	long long silent_ms = (long long)(now - session->heard_ms);
	int pid = stopped_process(session);

	*buf = '\0';
	if (server_is_starved(session->server, now))
		snprintf(buf, len, "; but this server itself gets too little CPU");
	else if (pid)
		snprintf(buf, len, "; its process %d is stopped: kill -CONT %d", pid, pid);
	else if (list_empty(&session->conns))
		snprintf(buf, len, "; its connection is gone");
	else if (silent_ms >= SILENT_MS)
		snprintf(buf, len, "; nothing was heard of it for %lld.%lld s", silent_ms / 1000,
			silent_ms % 1000 / 100);
}

static void recall_late_tell(struct recall *r)
{
	int64_t now = now_ms(), ms = now - r->since_ms;
	char cause[96];

	r->slow = SLOW_TOLD;
	describe_cause(r->session, now, cause, sizeof(cause));
	log_warning("session %" PRIu64 " of %s at export '%s' has not given back inode %" PRIu64
		    " for %lld.%lld s, and others wait for it%s%s%s",
		r->session->stored.id, r->session->stored.client, r->at->export->name, r->at->ino,
		(long long)ms / 1000, (long long)ms % 1000 / 100, r->at->path ? ": " : "",
		r->at->path ? r->at->path : "", cause);
}

void recall_tell_untold(struct recall *r)
{
	if (r->slow == SLOW_UNTOLD)
		recall_late_tell(r);
}

void recall_note_end(const struct recall *r)
{
	struct late_recalls *late = &r->session->late;
	int64_t now = now_ms(), ms = now - r->since_ms;

	if (ms < SLOW_MS || server_is_starved(r->session->server, now))
		return;
	late->count++;
	recent_add(&late->recent, now);
	late->longest_ms = max_i64(late->longest_ms, ms);
}

/* Early enough that the log can have the path before the session is ended. */
static int64_t slow_after_ms(const struct server *s)
{
	return min_i64(SLOW_MS, s->lease_ms / 2);
}

static void note_slow(struct recall *r)
{
	static struct log_ratelimit limit = {.burst = LOG_BURST};
	struct contested *at = r->at;

	r->slow = log_ratelimit_ok(&limit, LOG_MS) ? SLOW_UNTOLD : SLOW_TOLD;
	if (r->slow == SLOW_TOLD)
		return;
	if (at->path)
		recall_late_tell(r);
	else if (list_empty(&at->searched))
		list_add_tail(&r->session->server->recalls->late.searched, &at->searched);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static void search_begin(struct recalls *rs, struct contested *at)
{
	rs->late.searching = at;
	path_search_begin(&rs->late.search, at->export->index, at->ino);
}

static void search_end(struct recalls *rs, struct contested *at, bool found)
{
	at->path = found ? strdup(path_search_text(&rs->late.search)) : NULL;
	rs->late.searching = NULL;
	list_del(&at->searched);
	list_for_each (pos, &at->recalls)
		recall_tell_untold(list_entry(pos, struct recall, of_inode));
}

bool recalls_search(struct server *s)
{
	struct recalls *rs = s->recalls;
	struct contested *at;
	int err;

	if (list_empty(&rs->late.searched))
		return false;
	at = list_entry(rs->late.searched.next, struct contested, searched);
	if (rs->late.searching != at)
		search_begin(rs, at);
	err = path_search_step(s->meta, &rs->late.search);
	if (err != -EAGAIN)
		search_end(rs, at, err == 0);
	return !list_empty(&rs->late.searched);
}

void recall_forget_path(struct recalls *rs, struct contested *at)
{
	if (rs->late.searching == at)
		rs->late.searching = NULL;
	list_del(&at->searched);
	free(steal_ptr(&at->path));
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Adds the time that does not count. While this process was stopped no client could return
 * anything. A client need not while its writes stand still for a snapshot, or for pages that are
 * not yet to be reused. */
void recall_discount(const struct client_session *session, int64_t *since_ms, int64_t now)
{
	const struct server *s = session->server;
	int64_t passed = now - max_i64(s->recalls->late.ticked_ms, *since_ms);
	int64_t allowed = s->lease_ms / STILL_SHARE;

	if (session->export->snapshot.freezing || page_reuse_is_awaited(session))
		allowed = 0;
	if (passed > allowed)
		*since_ms += passed - allowed;
}

/* Nobody is left that could return anything. */
static bool is_gone(const struct client_session *session)
{
	return session->process_gone && !client_session_reaches_memory(session);
}

int64_t recall_deadline(const struct client_session *session, int64_t since_ms)
{
	int64_t lease_ms = session->server->lease_ms;
	int64_t heard_ms = max_i64(session->heard_ms, session->lost_ms);

	if (!list_empty(&session->conns))
		return since_ms + lease_ms;
	if (is_gone(session))
		return 0;
	return min_i64(since_ms, heard_ms) + lease_ms;
}

/* Whether the session is on shm, with this run of the server or an earlier one. */
static bool is_on_shm(const struct client_session *session)
{
	if (list_empty(&session->conns))
		return client_session_reaches_memory(session);
	list_for_each (pos, &session->conns)
		if (channel_peer_pid(list_entry(pos, struct conn, link)->channel))
			return true;
	return false;
}

/* A session that is ended at once was not late, so nobody has looked for the path. Does so if it is
 * quick. */
static void find_path_now(struct contested *at, struct meta *m)
{
	struct path_search search;
	int err = -EAGAIN;

	if (at->path)
		return;
	path_search_begin(&search, at->export->index, at->ino);
	for (unsigned i = 0; err == -EAGAIN && i < QUICK_STEPS; i++)
		err = path_search_step(m, &search);
	if (!err)
		at->path = strdup(path_search_text(&search));
}

static void log_end(struct recall *r, int64_t now)
{
	const struct client_session *session = r->session;
	const struct contested *at = r->at;
	const char *comma = at->path ? ", " : "", *path = at->path ? at->path : "";
	long long ms = (long long)(now - r->since_ms);

	if (is_gone(session))
		log_warning("session %" PRIu64 " of %s at export '%s' is ended: its process has "
			    "ended, and others want inode %" PRIu64 "%s%s",
			session->stored.id, session->stored.client, at->export->name, at->ino,
			comma, path);
	else
		log_warning("session %" PRIu64 " of %s at export '%s' is ended: it has not given "
			    "back inode %" PRIu64 "%s%s%s for %lld.%lld s%s",
			session->stored.id, session->stored.client, at->export->name, at->ino,
			comma, path, at->path ? "," : "", ms / 1000, ms % 1000 / 100,
			is_on_shm(session) ? "; others get it when its process goes on or ends"
					   : "");
}

void recall_end_late(struct client_session *session, int64_t now)
{
	const struct penalty_client client = client_session_penalized(session);

	if (!is_gone(session))
		penalty_add(&session->server->penalties, &client, session->began_ms, now);
	client_session_end(session, NULL);
}

static void end_holder(struct recall *r, int64_t now)
{
	find_path_now(r->at, r->session->server->meta);
	log_end(r, now);
	recall_end_late(r->session, now);
}

/* Ends the session if it is late; it may be freed then. */
static void tick_session(struct client_session *session, int64_t now, int64_t *next)
{
	list_for_each (pos, &session->recalls) {
		struct recall *r = list_entry(pos, struct recall, of_session);
		int64_t slow_ms = r->since_ms + slow_after_ms(session->server), end_ms;

		if (session->ending || r->at->export->closed)
			return;
		recall_discount(session, &r->since_ms, now);
		end_ms = recall_deadline(session, r->since_ms);
		if (r->slow == SLOW_NOT && now >= slow_ms)
			note_slow(r);
		if (now >= end_ms) {
			end_holder(r, now);
			return;
		}
		*next = min_i64(*next, r->slow ? end_ms : min_i64(slow_ms, end_ms));
	}
}

int64_t recalls_tick(struct server *s, int64_t now)
{
	int64_t next = INT64_MAX;

	list_for_each_safe (pos, &s->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (!list_empty(&session->recalls))
			tick_session(session, now, &next);
	}
	s->recalls->late.ticked_ms = now;
	/* Often enough that a longer pause between two ticks is one of this process. */
	return next == INT64_MAX ? -1 : min_i64(next, now + s->lease_ms / STILL_SHARE / 2);
}
