/* trouble.c - see trouble.h. */
#include "server/admin/trouble.h"

#include "common/base/clock.h"
#include "common/base/process_state.h"
#include "server/admin/status_text.h"
#include "server/session/conn.h"

/* The process at the other end of its channels over shm; 0: it has none. */
static int pid_of(const struct client_session *session)
{
	list_for_each (pos, &session->conns) {
		int pid = channel_peer_pid(list_entry(pos, struct conn, link)->channel);

		if (pid)
			return pid;
	}
	return 0;
}

void trouble_describe_session(const struct client_session *session, json_t *object)
{
	const struct late_recalls *late = &session->late;
	int64_t now = now_ms();
	int pid = pid_of(session);

	json_object_set_new(object, "pid", json_integer(pid));
	json_object_set_new(object, "stopped", json_boolean(process_state_is_stopped(pid)));
	json_object_set_new(object, "key", json_string(session->key));
	json_object_set_new(object, "reconnects",
		json_pack("{s:I s:I}", "count", (json_int_t)session->nreconnects, "recent",
			(json_int_t)recent_count(&session->reconnects, now)));
	json_object_set_new(object, "late_recalls",
		json_pack("{s:I s:I s:I}", "count", (json_int_t)late->count, "recent",
			(json_int_t)recent_count(&late->recent, now), "longest_ms",
			(json_int_t)late->longest_ms));
}

json_t *trouble_describe_refusals(const struct server *s)
{
	json_t *list = json_array();
	int64_t now = now_ms();

	for (unsigned i = 0; i < s->refusals.n; i++) {
		const struct refusal *r = &s->refusals.v[i];

		json_array_append_new(
			list, json_pack("{s:s s:o s:s s:b s:I s:I s:I}", "key", r->key, "host",
				      status_text_string(r->host), "reason", r->reason, "known",
				      (int)r->known, "count", (json_int_t)r->count, "recent",
				      (json_int_t)recent_count(&r->recent, now), "ms",
				      (json_int_t)(now - r->last_ms)));
	}
	return list;
}

json_t *trouble_describe_cpu(const struct server *s)
{
	struct cpu_wait_view view;

	cpu_wait_look(&s->cpu, now_ms(), &view);
	return json_pack("{s:I s:o s:o s:I s:b s:b s:I s:I s:I}", "span_ms",
		(json_int_t)view.span_ms, "wait_ms",
		view.known ? json_integer(view.wait_ms) : json_null(), "total_wait_ms",
		view.known ? json_integer(view.total_wait_ms) : json_null(), "late_ms",
		(json_int_t)view.late_ms, "throttled", (int)view.throttled, "starved",
		(int)view.starved, "pauses", (json_int_t)view.npauses, "recent_pauses",
		(json_int_t)view.recent_pauses, "longest_pause_ms",
		(json_int_t)view.longest_pause_ms);
}
