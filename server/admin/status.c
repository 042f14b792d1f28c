/* status.c - the server's state as one JSON text. */
#include "server/admin/status.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "server/base/squash_text.h"
#include "server/base/tick.h"
#include "server/session/conn.h"
#include "server/memory/region_loss.h"
#include "server/record/holders.h"
#include "server/meta/lock_waits.h"
#include "server/session/peers.h"
#include "server/session/permit.h"
#include "server/record/quota.h"
#include "server/recall/recall.h"
#include "server/session/session.h"
#include "server/snapshot/snapshot.h"
#include "server/admin/keys.h"
#include "server/admin/status_text.h"
#include "server/admin/trouble.h"

static json_t *json_u64(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *describe_counters(const struct rpc_counters *n)
{
	return json_pack("{s:I s:I s:I s:I s:I s:I}", "reads", (json_int_t)n->reads, "writes",
		(json_int_t)n->writes, "read_bytes", (json_int_t)n->read_bytes, "write_bytes",
		(json_int_t)n->write_bytes, "rpcs", (json_int_t)n->rpcs, "rpc_data_bytes",
		(json_int_t)n->rpc_data_bytes);
}

/* The sum over ended and present sessions. export NULL: of all exports. */
static struct rpc_counters sum_counters(const struct server *s, const struct export *export)
{
	struct rpc_counters sum = {0};

	if (!export)
		sum = s->ended;
	for (unsigned i = 0; i < s->exports->n; i++)
		if (!export || export == s->exports->v[i])
			rpc_counters_add(&sum, &s->exports->v[i]->ended);
	list_for_each (pos, &s->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);

		if (!export || export == session->export)
			rpc_counters_add(&sum, &session->counters);
	}
	return sum;
}

/* Limit on the owners that are listed for one export: each file may have another owner. */
enum { QUOTAS_LISTED = 4096 };

struct quota_list {
	json_t *array;
	uint64_t unlisted;
};

static void add_quota(const struct quota_entry *e, void *arg)
{
	struct quota_list *list = arg;

	if (json_array_size(list->array) == QUOTAS_LISTED) {
		list->unlisted++;
		return;
	}
	json_array_append_new(list->array,
		json_pack("{s:I s:b s:I s:I s:I s:I s:I}",
			e->limit.kind == QUOTA_USER ? "user" : "group", (json_int_t)e->limit.id,
			"everybody", (int)e->limit.everybody, "used",
			(json_int_t)(e->usage.npages * PAGE_BYTES), "reserved",
			(json_int_t)(e->usage.held * PAGE_BYTES), "limit",
			(json_int_t)(e->limit.npages * PAGE_BYTES), "inodes",
			(json_int_t)e->usage.inodes, "max_inodes", (json_int_t)e->limit.inodes));
}

static void describe_quotas(const struct server *s, const struct export *export, json_t *to)
{
	struct quota_list list = {.array = json_array()};

	if (list.array && meta_quotas(s->meta, export->index, add_quota, &list))
		log_warning("export %s: its quotas can't be read", export->name);
	json_object_set_new(to, "quotas", list.array);
	json_object_set_new(to, "unlisted", json_u64(list.unlisted));
}

static json_t *describe_snapshot(const struct server *s, const struct export *export, json_t *to)
{
	static const char *const names[] = {[SNAPSHOT_FREEZING] = "freezing",
		[SNAPSHOT_COPYING] = "copying",
		[SNAPSHOT_DONE] = "done",
		[SNAPSHOT_FAILED] = "failed"};
	struct snapshot_view view;

	snapshot_look(s, export, &view);
	json_object_set_new(to, "last_snapshot",
		view.completed ? json_pack("{s:I s:o}", "completed", (json_int_t)view.completed,
					 "dir", status_text_string(view.completed_dir))
			       : json_null());
	if (view.state == SNAPSHOT_NONE)
		return json_null();
	return json_pack("{s:s s:o s:I s:I s:I}", "state", names[view.state], "dir",
		status_text_string(view.dir), "done", (json_int_t)(view.done * PAGE_BYTES), "total",
		(json_int_t)(view.total * PAGE_BYTES), "pause_ns", (json_int_t)view.pause_ns);
}

static json_t *describe_leases(
	const struct server *s, const struct export *export, const struct meta_usage *u)
{
	return json_pack("{s:I s:I s:I s:I s:i s:I s:I s:i}", "layouts", (json_int_t)u->layouts,
		"shared", (json_int_t)u->shared, "exclusive", (json_int_t)u->exclusive, "pins",
		(json_int_t)u->pins, "waiting", (int)recalls_waiting(s, export), "recalled",
		(json_int_t) export->recalled, "locks", (json_int_t)u->locks, "lock_waits",
		(int)u->lock_waits);
}

/* Limit on the inodes that are listed for one export: those that most requests wait for. */
enum { CONTESTED_LISTED = 32 };

struct contested_list {
	struct recall_view v[CONTESTED_LISTED];
	unsigned n;
};

static bool is_more_contested(const struct recall_view *a, const struct recall_view *b)
{
	return a->waiting != b->waiting ? a->waiting > b->waiting : a->since_ms < b->since_ms;
}

static void add_contested(const struct recall_view *view, void *arg)
{
	struct contested_list *list = arg;
	unsigned i = list->n;

	if (list->n < CONTESTED_LISTED)
		list->n++;
	else if (!is_more_contested(view, &list->v[--i]))
		return;
	for (; i && is_more_contested(view, &list->v[i - 1]); i--)
		list->v[i] = list->v[i - 1];
	list->v[i] = *view;
}

/* names: the caller may see names of files. */
static json_t *describe_contested(const struct server *s, const struct export *export, bool names)
{
	struct contested_list list = {.n = 0};
	json_t *array = json_array();
	int64_t now = now_ms();

	recalls_each(s, export, add_contested, &list);
	for (unsigned i = 0; i < list.n; i++) {
		const struct recall_view *view = &list.v[i];
		json_t *path = names && view->path ? status_text_string(view->path) : json_null();

		json_array_append_new(array,
			json_pack("{s:I s:o s:i s:i s:I}", "inode", (json_int_t)view->ino, "path",
				path, "waiting", (int)view->waiting, "recalls", (int)view->recalls,
				"ms", (json_int_t)(now - view->since_ms)));
	}
	return array;
}

static void add_locked(const struct lock_waited *waited, void *arg)
{
	const struct recall_view view = {
		.ino = waited->ino, .waiting = waited->waits, .since_ms = waited->since_ms};

	add_contested(&view, arg);
}

static json_t *describe_locked(const struct server *s, const struct export *export)
{
	struct contested_list list = {.n = 0};
	json_t *array = json_array();
	int64_t now = now_ms();

	meta_locks_waited(s->meta, export->index, add_locked, &list);
	for (unsigned i = 0; i < list.n; i++)
		json_array_append_new(
			array, json_pack("{s:I s:i s:I}", "inode", (json_int_t)list.v[i].ino,
				       "waiting", (int)list.v[i].waiting, "ms",
				       (json_int_t)(now - list.v[i].since_ms)));
	return array;
}

/* The part that a mount of the export can find out by itself, too. */
static json_t *describe_space(
	struct server *s, const struct export *export, const struct meta_usage *u)
{
	uint64_t used = u->npages - u->free_pages - u->granted_pages - u->dirty_pages;
	json_t *object;

	object = json_pack("{s:s s:I s:I s:I s:I s:I s:I s:I s:i s:i}", "name", export->name,
		"bytes", (json_int_t)(u->npages * PAGE_BYTES), "used",
		(json_int_t)(used * PAGE_BYTES), "free", (json_int_t)(u->free_pages * PAGE_BYTES),
		"granted", (json_int_t)(u->granted_pages * PAGE_BYTES), "dirty",
		(json_int_t)(u->dirty_pages * PAGE_BYTES), "files", (json_int_t)u->inodes,
		"max_inodes", (json_int_t) export->max_inodes, "regions", (int)export->nregions,
		"lost_regions", (int)region_loss_count(export));
	json_object_set_new(
		object, "protection", json_string(protection_name(permit_protection(s, export))));
	json_object_set_new(object, "metadata",
		json_pack("{s:I s:I s:I}", "bytes", (json_int_t)u->share_bytes, "used",
			(json_int_t)u->share_used_bytes, "left", (json_int_t)u->share_left_bytes));
	return object;
}

static json_t *describe_export(struct server *s, const struct export *export, bool names)
{
	struct rpc_counters sum = sum_counters(s, export);
	struct meta_usage u = {0};
	json_t *object;

	meta_usage(s->meta, export->index, &u);
	object = describe_space(s, export, &u);
	json_object_set_new(object, "counters", describe_counters(&sum));
	if (object)
		json_object_set_new(object, "snapshot", describe_snapshot(s, export, object));
	json_object_set_new(object, "leases", describe_leases(s, export, &u));
	json_object_set_new(object, "contested", describe_contested(s, export, names));
	json_object_set_new(object, "contested_locks", describe_locked(s, export));
	if (names && export->file)
		json_object_set_new(object, "config_file", status_text_string(export->file));
	describe_quotas(s, export, object);
	return object;
}

static json_t *describe_regions(const struct server *s)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < s->exports->n; i++) {
		const struct export *export = s->exports->v[i];

		for (uint32_t j = 0; j < export->nregions; j++) {
			const struct region_file *file = export->regions[j];

			json_array_append_new(list,
				json_pack("{s:s s:i s:I s:o s:b}", "export", export->name, "index",
					(int)j, "bytes", (json_int_t)file->len, "file",
					status_text_string(file->path), "lost", (int)file->lost));
		}
	}
	return list;
}

static const char *conn_state_name(const struct conn *c)
{
	switch (c->state) {
	case CONN_OPENING:
		return "opening";
	case CONN_OPEN:
		return "open";
	case CONN_CLOSING:
		return "closing";
	case CONN_FENCING:
		return "fencing";
	}
	return "unknown";
}

static json_t *describe_channel(const struct conn *c)
{
	const char *transport = transport_kind_name(transport_kind_of(c->port->transport));

	return json_pack("{s:i s:s s:s s:s s:s s:i s:s s:s}", "index", (int)c->index, "transport",
		transport, "device", transport_device(c->port->transport), "peer",
		channel_peer(c->channel), "state", conn_state_name(c), "keys", (int)c->nkeys, "key",
		c->has_proof ? c->proof.id : "", "protection",
		channel_protection_name(channel_protection(c->channel)));
}

static void add_pid(json_t *pids, int pid)
{
	size_t i;
	json_t *there;

	json_array_foreach(pids, i, there) if (json_integer_value(there) == pid) return;
	json_array_append_new(pids, json_integer(pid));
}

static void add_peer(int pid, void *arg)
{
	add_pid(arg, pid);
}

const char *status_state_name(const struct client_session *session)
{
	if (!session)
		return "ended";
	if (session->ending || session->said_bye)
		return "ending";
	if (session->restored)
		return "restored";
	return list_empty(&session->conns) ? "disconnected" : "active";
}

static json_t *describe_holder(const struct client_session *session)
{
	struct holder_counts n =
		meta_holder(session->server->meta, session->export->index, session->stored.id);

	return json_pack("{s:I s:I s:I s:I s:I}", "layouts", (json_int_t)n.layouts, "shared",
		(json_int_t)n.shared, "exclusive", (json_int_t)n.exclusive, "pins",
		(json_int_t)n.pins, "locks", (json_int_t)n.locks);
}

/* A session that is to end does so when no process of it can reach memory. */
json_t *status_waits_for(const struct client_session *session)
{
	json_t *pids = json_array();

	if (!session || (!session->ending && !session->said_bye))
		return pids;
	list_for_each (pos, &session->conns) {
		int pid = channel_peer_pid(list_entry(pos, struct conn, link)->channel);

		if (pid)
			add_pid(pids, pid);
	}
	peers_each(session->server, session->stored.id, add_peer, pids);
	return pids;
}

/* Null: its client has not come back since the server was started, so it is not known. */
static json_t *describe_squash(const struct client_session *session)
{
	const struct squash *squash = &session->squash;

	if (session->restored)
		return json_null();
	return json_pack("{s:s s:I s:I}", "kind", squash_text_kind(squash), "anonuid",
		(json_int_t)squash->anonuid, "anongid", (json_int_t)squash->anongid);
}

/* It is asked each second, as long as another client waits. */
enum { KEEPS_OUT_MS = 3000 };

static bool keeps_out(const struct client_session *session)
{
	return session->not_now_ms && now_ms() - session->not_now_ms < KEEPS_OUT_MS;
}

static json_t *describe_session(const struct client_session *session)
{
	json_t *object;
	json_t *channels = json_array();

	list_for_each (pos, &session->conns)
		json_array_append_new(
			channels, describe_channel(list_entry(pos, struct conn, link)));
	object = json_pack("{s:I s:s s:o s:s s:s s:i s:b s:b s:b s:o s:o s:i s:I s:I s:o s:o s:o}",
		"id", (json_int_t)session->stored.id, "holder", session->stored.holder, "client",
		status_text_string(session->stored.client), "export", session->export->name,
		"state", status_state_name(session), "wire_version",
		(int)session->stored.wire_version, "read_only",
		(session->stored.flags & ATTACH_READ_ONLY) != 0, "exclusive",
		(session->stored.flags & ATTACH_EXCLUSIVE) != 0, "shared",
		(session->stored.flags & ATTACH_SHARED) != 0, "squash", describe_squash(session),
		"leases", describe_holder(session), "recalls", (int)recalls_of(session),
		"silent_ms", (json_int_t)(now_ms() - session->heard_ms), "requests",
		(json_int_t)session->requests, "channels", channels, "counters",
		describe_counters(&session->counters), "waits_for", status_waits_for(session));
	json_object_set_new(object, "keeps_out", json_boolean(keeps_out(session)));
	if (object)
		trouble_describe_session(session, object);
	return object;
}

static json_t *describe_identity(const struct server *s)
{
	const uint8_t *id = meta_store_id(s->meta);
	char hex[33], incarnation[24];

	for (unsigned i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	/* A string: readers that keep 53 bits would round the number. */
	snprintf(incarnation, sizeof(incarnation), "%" PRIu64, s->incarnation);
	return json_pack("{s:s s:i s:i s:s s:s s:I s:I s:o}", "version", RMEMFS_VERSION,
		"wire_version", (int)wire_version(), "pid", (int)getpid(), "incarnation",
		incarnation, "store_id", hex, "uptime_ms", (json_int_t)(now_ms() - s->start_ms),
		"lease_ms", (json_int_t)s->lease_ms, "memory_dir", status_text_string(s->dir.path));
}

static json_t *describe_store(const struct server *s)
{
	struct meta_usage u = {0};

	meta_usage(s->meta, 0, &u);
	return json_pack("{s:I s:I s:I s:i}", "bytes", (json_int_t)u.store_bytes, "used",
		(json_int_t)u.store_used_bytes, "transactions", (json_int_t)u.transactions,
		"directory_offset_bits", (int)u.offset_bits);
}

static uint64_t sum_refused(const struct server *s)
{
	uint64_t n = s->refused;

	list_for_each (pos, &s->conns)
		n += channel_refused(list_entry(pos, struct conn, all)->channel);
	return n;
}

static json_t *describe_later(const struct server *s)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < s->later.n; i++)
		json_array_append_new(list, json_string(s->later.v[i]));
	return list;
}

/* names: for an admin, who may know paths. */
static void describe_settings(const struct server *s, bool names, json_t *to)
{
	json_object_set_new(to, "snapshot_on_stop", json_boolean(s->config->snapshot_on_stop));
	json_object_set_new(to, "restore_on_start", json_boolean(s->config->restore_on_start));
	json_object_set_new(to, "snapshot_dir",
		names ? status_text_string(s->config->snapshot_dir) : json_null());
	json_object_set_new(to, "restart_for", describe_later(s));
}

static json_t *status_describe(struct server *s, bool names)
{
	json_t *root = describe_identity(s);
	json_t *listen = json_array(), *exports = json_array(), *sessions = json_array();
	struct rpc_counters sum = sum_counters(s, NULL);

	for (unsigned i = 0; i < s->nports; i++)
		json_array_append_new(listen, status_text_string(s->ports[i].name));
	for (unsigned i = 0; i < s->exports->n; i++)
		json_array_append_new(exports, describe_export(s, s->exports->v[i], names));
	list_for_each (pos, &s->sessions)
		json_array_append_new(
			sessions, describe_session(list_entry(pos, struct client_session, link)));
	json_object_set_new(root, "listen", listen);
	json_object_set_new(root, "store", describe_store(s));
	json_object_set_new(root, "exports", exports);
	json_object_set_new(root, "regions", describe_regions(s));
	json_object_set_new(root, "sessions", sessions);
	json_object_set_new(root, "totals", describe_counters(&sum));
	json_object_set_new(root, "channels", json_u64(s->nconns));
	json_object_set_new(root, "refused", json_u64(sum_refused(s)));
	json_object_set_new(root, "cpu", trouble_describe_cpu(s));
	json_object_set_new(root, "refused_keys", trouble_describe_refusals(s));
	json_object_set_new(root, "keys", keys_describe(s, names));
	describe_settings(s, names, root);
	return root;
}

/* ---- clients --------------------------------------------------------------------------------- */

static void add_sessions(
	const struct server *s, const struct export *export, const char *holder, json_t *sessions)
{
	list_for_each (pos, &s->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);

		if (session->export == export &&
			(!holder || strcmp(session->stored.holder, holder) == 0))
			json_array_append_new(sessions, describe_session(session));
	}
}

/* True: the channel may see all of the export. */
static bool add_visible(
	const struct conn *c, const struct export *export, json_t *exports, json_t *sessions)
{
	char holder[CLIENT_NAME_MAX + 1];
	struct meta_usage u = {0};

	switch (permit_view(c, export, holder)) {
	case ACCESS_SEES_NOTHING:
		break;
	case ACCESS_SEES_OWN:
		meta_usage(c->server->meta, export->index, &u);
		json_array_append_new(exports, describe_space(c->server, export, &u));
		add_sessions(c->server, export, holder, sessions);
		break;
	case ACCESS_SEES_ALL:
		json_array_append_new(exports, describe_export(c->server, export, false));
		add_sessions(c->server, export, NULL, sessions);
		return true;
	}
	return false;
}

/* A peer that may see all of all exports may see the server's own state, too. */
static json_t *describe_for_client(const struct conn *c)
{
	struct server *s = c->server;
	json_t *exports = json_array(), *sessions = json_array();
	bool all = true;

	for (unsigned i = 0; i < s->exports->n; i++)
		all = add_visible(c, s->exports->v[i], exports, sessions) && all;
	if (all) {
		json_decref(exports);
		json_decref(sessions);
		return status_describe(s, false);
	}
	return json_pack("{s:s s:i s:I s:I s:s s:o s:o s:o}", "version", RMEMFS_VERSION,
		"wire_version", (int)wire_version(), "uptime_ms",
		(json_int_t)(now_ms() - s->start_ms), "lease_ms", (json_int_t)s->lease_ms, "key",
		c->has_proof ? c->proof.id : "", "exports", exports, "sessions", sessions, "cpu",
		trouble_describe_cpu(s));
}

/* ---- over tcp and verbs ---------------------------------------------------------------------- */

/* When the next one may be answered: after a pause, the answers of a second at once, and then each
 * at its time. */
static int64_t next_answer_ms(const struct status_queue *q, int64_t now)
{
	return max_i64(q->told_until_ms, now - 1000) + 1000 / STATUS_PER_S;
}

static void tell_stranger(struct client_request *req)
{
	char text[128];
	int len = snprintf(text, sizeof(text), "{\"version\":\"%s\",\"wire_version\":%d}",
		RMEMFS_VERSION, (int)wire_version());
	uint64_t offset = min_u64(req->rpc.status.offset, (uint64_t)len);
	struct rpc_reply rep = {.status_text.total = (uint32_t)len};

	rep.status_text.tail.data = (const uint8_t *)text + offset;
	rep.status_text.tail.len = (uint32_t)(len - offset);
	client_request_answer(req, &rep);
}

/* Answers with the first piece of the text. */
static void tell(struct client_request *req, json_t *root)
{
	if (status_text_take(req->conn, root))
		client_request_refuse(req, -ENOMEM, "the server is out of memory");
	else
		status_text_put(req, 0);
}

static void tell_client(struct client_request *req)
{
	tell(req, describe_for_client(req->conn));
}

static int64_t queue_tick(
	struct status_queue *q, void (*answer)(struct client_request *req), int64_t now)
{
	while (!list_empty(&q->waiting)) {
		int64_t at = next_answer_ms(q, now);

		if (at > now)
			return at;
		q->told_until_ms = at;
		answer(list_entry(list_pop(&q->waiting), struct client_request, link));
	}
	return -1;
}

int64_t status_tick(struct server *s, int64_t now)
{
	int64_t strangers = queue_tick(&s->strangers, tell_stranger, now);
	int64_t clients = queue_tick(&s->clients, tell_client, now);

	return tick_sooner(strangers, clients);
}

/* Peers without a key count as one holder; all strangers are such. */
static bool are_of_one_key(const struct conn *a, const struct conn *b)
{
	return a->has_proof == b->has_proof &&
	       (!a->has_proof || strcmp(a->proof.id, b->proof.id) == 0);
}

static bool too_many(const struct status_queue *q, const struct conn *c)
{
	unsigned n = 0, of_key = 0;

	list_for_each (pos, &q->waiting) {
		n++;
		of_key += are_of_one_key(list_entry(pos, struct client_request, link)->conn, c);
	}
	return n >= STATUS_WAITING || (q == &c->server->clients && of_key >= STATUS_WAITING_OF_KEY);
}

static void wait_for_turn(struct client_request *req, struct status_queue *q)
{
	if (too_many(q, req->conn)) {
		conn_breach(req->conn, "too many ask for the status");
		return;
	}
	list_del(&req->link);
	list_add_tail(&q->waiting, &req->link);
	status_tick(req->conn->server, now_ms());
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool may_see_something(const struct conn *c)
{
	char holder[CLIENT_NAME_MAX + 1];

	for (unsigned i = 0; i < c->server->exports->n; i++)
		if (permit_view(c, c->server->exports->v[i], holder) != ACCESS_SEES_NOTHING)
			return true;
	return false;
}

void status_answer(struct client_request *req)
{
	struct conn *c = req->conn;
	uint32_t offset = req->rpc.status.offset;

	if (conn_is_stranger(c) && !may_see_something(c))
		wait_for_turn(req, &c->server->strangers);
	else if (offset)
		status_text_put(req, offset);
	else if (conn_is_stranger(c))
		wait_for_turn(req, &c->server->clients);
	else
		tell(req, status_describe(c->server, conn_is_admin(c)));
}
