/* who.c - see who.h. */
#include "server/admin/who.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "server/session/conn.h"
#include "server/record/lease.h"
#include "server/meta/lock_waits.h"
#include "server/namespace/path_search.h"
#include "server/recall/recall.h"
#include "server/session/session.h"
#include "server/admin/status.h"
#include "server/admin/status_text.h"

struct who {
	struct server *server;
	const struct export *export;
	uint64_t ino;
	int64_t now;
	json_t *list;
};

static const char *lease_state_name(uint8_t type)
{
	switch ((enum lease_type)type) {
	case LEASE_NONE:
		break;
	case LEASE_LAYOUT:
		return "layout";
	case LEASE_OVERWRITE:
		return "overwrite";
	case LEASE_SHARED:
		return "shared";
	case LEASE_EXCLUSIVE:
		return "exclusive";
	}
	return "none";
}

static const char *lock_state_name(uint8_t type)
{
	return type == LOCK_EXCLUSIVE ? "exclusive" : "shared";
}

static const char *kind_state_name(uint8_t kind)
{
	return kind == LOCK_KIND_FLOCK ? "flock" : "fcntl";
}

static const char *inode_state_name(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	}
	return "special";
}

/* A session's number and client; "" if the session has ended. */
static json_t *describe_owner(const struct who *w, uint64_t id)
{
	const struct client_session *session = client_session_find(w->server, id);

	return json_pack("{s:I s:o}", "session", (json_int_t)id, "client",
		status_text_string(session ? session->stored.client : ""));
}

/* ---- leases ---------------------------------------------------------------------------------- */

static json_t *describe_recall(const struct who *w, uint64_t session)
{
	int64_t since_ms;
	uint8_t keep;

	if (!recall_find(w->server, w->export, w->ino, session, &since_ms, &keep))
		return json_null();
	return json_pack(
		"{s:s s:I}", "keep", lease_state_name(keep), "ms", (json_int_t)(w->now - since_ms));
}

static void add_holder(const struct lease_record *record, void *arg)
{
	struct who *w = arg;
	const struct client_session *session = client_session_find(w->server, record->session);
	json_t *object = describe_owner(w, record->session);

	json_object_set_new(object, "state", json_string(status_state_name(session)));
	json_object_set_new(object, "waits_for", status_waits_for(session));
	json_object_set_new(object, "lease", json_string(lease_state_name(record->type)));
	json_object_set_new(object, "pin", json_boolean(record->pinned));
	json_object_set_new(object, "since", json_integer(record->since));
	json_object_set_new(object, "recall", describe_recall(w, record->session));
	json_array_append_new(w->list, object);
}

static void add_waiter(const struct lease_place *place, void *arg)
{
	const struct client_request *req = place->req;
	struct who *w = arg;
	json_t *object = describe_owner(w, req->conn->session->stored.id);

	json_object_set_new(object, "request", json_string(rpc_op_info(req->rpc.op)->name));
	json_object_set_new(object, "lease", json_string(lease_state_name(place->type)));
	json_object_set_new(object, "ms", json_integer(w->now - place->since_ms));
	json_array_append_new(w->list, object);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static json_t *describe_lock(const struct who *w, const struct lock *lock)
{
	json_t *object = describe_owner(w, lock->session);

	json_object_set_new(object, "kind", json_string(kind_state_name(lock->kind)));
	json_object_set_new(object, "lock", json_string(lock_state_name(lock->type)));
	json_object_set_new(object, "read_only", json_boolean(lock->read_only));
	json_object_set_new(object, "start", json_integer((json_int_t)lock->start));
	json_object_set_new(object, "end", json_integer((json_int_t)min_u64(lock->end, INT64_MAX)));
	json_object_set_new(object, "pid", json_integer(lock->pid));
	return object;
}

static bool add_lock(const struct lock *lock, void *arg)
{
	struct who *w = arg;

	json_array_append_new(w->list, describe_lock(w, lock));
	return true;
}

static void add_lock_wait(const struct lock_waiter *wait, void *arg)
{
	struct who *w = arg;
	json_t *object = describe_lock(w, &wait->want);

	json_object_set_new(object, "ms", json_integer(w->now - wait->came_ms));
	json_array_append_new(w->list, object);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void begin_list(struct who *w, json_t *root, const char *key)
{
	w->list = json_array();
	json_object_set_new(root, key, w->list);
}

static bool is_shared(const struct who *w)
{
	list_for_each (pos, &w->server->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);

		if (session->export == w->export && session->stored.flags & ATTACH_SHARED)
			return true;
	}
	return false;
}

/* path is empty if the request named an inode number. */
static int who_describe(struct who *w, const struct attr *attr, const char *path, json_t **root)
{
	unsigned index = w->export->index;
	struct meta *m = w->server->meta;
	int err;

	*root = json_pack("{s:s s:b s:I s:o s:I s:s}", "export", w->export->name, "shared",
		(int)is_shared(w), "lease_ms", (json_int_t)w->server->lease_ms, "path",
		*path ? status_text_string(path) : json_null(), "inode", (json_int_t)w->ino, "type",
		inode_state_name(attr->mode));
	begin_list(w, *root, "holders");
	err = meta_leases(m, index, w->ino, add_holder, w);
	begin_list(w, *root, "waiting");
	recalls_each_waiter(w->server, w->export, w->ino, add_waiter, w);
	begin_list(w, *root, "locks");
	if (!err)
		err = meta_locks(m, index, w->ino, add_lock, w);
	begin_list(w, *root, "lock_waits");
	meta_lock_waits(m, index, w->ino, add_lock_wait, w);
	return err;
}

static int refuse_lookup(struct client_request *req, int err)
{
	const struct rpc_who *q = &req->rpc.who;

	if ((err == -ENOENT || err == -ENOTDIR) && *q->path.s == '/')
		client_request_refuse(req, err,
			"export '%.*s' has no file %.*s (from the export's root, without the "
			"mount point; links are not followed)",
			q->export_name.len, q->export_name.s, q->path.len, q->path.s);
	else if (err == -ENOENT)
		client_request_refuse(req, err, "export '%.*s' has no inode %.*s",
			q->export_name.len, q->export_name.s, q->path.len, q->path.s);
	else if (err == -EINVAL)
		client_request_refuse(req, err,
			"a path begins with / at the root of the export; else it is the number of "
			"an inode");
	else
		client_request_refuse(req, err, "it can't be looked up: %s", errno_text(err));
	return err;
}

/* Writes the text, or refuses the request. */
static int who_look(struct client_request *req, const struct export *export)
{
	const struct rpc_str *path = &req->rpc.who.path;
	struct who w = {.server = req->conn->server, .export = export, .now = now_ms()};
	autofree char *text = strndup(path->s, *path->s == '/' ? path->len : 0);
	json_t *root = NULL;
	struct attr attr;
	int err = text ? path_search_find(w.server->meta, export->index, path, &attr) : -ENOMEM;

	if (err)
		return refuse_lookup(req, err);
	w.ino = attr.ino;
	err = who_describe(&w, &attr, text, &root);
	if (err)
		json_decref(root);
	else
		err = status_text_take(req->conn, root);
	return err ? refuse_lookup(req, err) : 0;
}

void who_answer(struct client_request *req)
{
	const struct rpc_who *q = &req->rpc.who;
	const struct export *export;

	if (!conn_is_admin(req->conn)) {
		client_request_refuse(req, -EPERM,
			"only root and the server's user may ask this, by the socket on the "
			"server's machine");
		return;
	}
	export = client_request_export(req, &q->export_name);
	if (export && (q->offset || !who_look(req, export)))
		status_text_put(req, q->offset);
}
