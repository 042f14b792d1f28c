/* recall.c - see recall.h. */
#include "server/recall/recall.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/probes.h"
#include "common/base/util.h"
#include "server/record/lease.h"
#include "server/recall/recall_private.h"
#include "server/session/session.h"

enum { LOG_MS = 1000 };

static void types_add(struct types *t, uint8_t type, uint64_t session)
{
	uint8_t bit = lease_bit(type);

	if (!(t->any & bit))
		t->session[type] = session;
	else if (t->session[type] != session)
		t->several |= bit;
	t->any |= bit;
}

static uint8_t types_but(const struct types *t, uint64_t session)
{
	uint8_t types = t->any;

	for (unsigned i = LEASE_LAYOUT; i < LEASE_TYPES; i++)
		if (t->session[i] == session && !(t->several & lease_bit((uint8_t)i)))
			types &= (uint8_t)~lease_bit((uint8_t)i);
	return types;
}

/* The overhead of malloc(3). A path comes on top. */
enum { MALLOC_BYTES = 32 };
_Static_assert(sizeof(struct contested) + MALLOC_BYTES <= RECALL_INODE_BYTES, "as it is said");
_Static_assert(sizeof(struct recall) + MALLOC_BYTES <= RECALL_SESSION_BYTES, "as it is said");

int recalls_new(struct server *s)
{
	struct recalls *rs = calloc(1, sizeof(*rs));

	if (!rs)
		return -ENOMEM;
	for (unsigned i = 0; i < RECALL_BUCKETS; i++)
		list_init(&rs->buckets[i]);
	list_init(&rs->changed);
	list_init(&rs->parked);
	list_init(&rs->late.searched);
	s->recalls = rs;
	return 0;
}

/* ---- inodes that are waited for -------------------------------------------------------------- */

static struct list *recall_bucket_of(struct recalls *rs, uint64_t ino)
{
	return &rs->buckets[ino % RECALL_BUCKETS];
}

static struct contested *recall_find_contested(
	struct recalls *rs, const struct export *export, uint64_t ino)
{
	list_for_each (pos, recall_bucket_of(rs, ino)) {
		struct contested *at = list_entry(pos, struct contested, link);

		if (at->export == export && at->ino == ino)
			return at;
	}
	return NULL;
}

static struct contested *find_or_make(struct recalls *rs, struct export *export, uint64_t ino)
{
	struct contested *at = recall_find_contested(rs, export, ino);

	if (at)
		return at;
	at = calloc(1, sizeof(*at));
	if (!at)
		return NULL;
	at->export = export;
	at->ino = ino;
	list_init(&at->changed);
	list_init(&at->waiters);
	list_init(&at->recalls);
	list_init(&at->searched);
	list_add_tail(recall_bucket_of(rs, ino), &at->link);
	return at;
}

static void note_change(struct recalls *rs, struct contested *at)
{
	list_del(&at->changed);
	list_add_tail(&rs->changed, &at->changed);
}

static void drop_recall(struct recall *r)
{
	PROBE(rmemfs_server, recall_end, r->session->stored.id, &r->session->stored.client[0],
		r->at->ino);
	recall_tell_untold(r);
	recall_note_end(r);
	list_del(&r->of_inode);
	list_del(&r->of_session);
	free(r);
}

static void contested_delete(struct recalls *rs, struct contested *at)
{
	list_for_each_safe (pos, &at->recalls)
		drop_recall(list_entry(pos, struct recall, of_inode));
	list_del(&at->link);
	list_del(&at->changed);
	recall_forget_path(rs, at);
	free(at);
}

void recalls_delete(struct server *s)
{
	for (unsigned i = 0; s->recalls && i < RECALL_BUCKETS; i++)
		list_for_each_safe (pos, &s->recalls->buckets[i])
			contested_delete(s->recalls, list_entry(pos, struct contested, link));
	free(s->recalls);
	s->recalls = NULL;
}

/* ---- requests that wait ---------------------------------------------------------------------- */

static struct lease_place *place_of(struct list *pos)
{
	return list_entry(pos, struct lease_place, link);
}

/* The place at which it waits; NULL: none. */
static struct lease_place *waits_at(struct client_request *req)
{
	return req->wait.n ? &req->wait.places[req->wait.n - 1] : NULL;
}

static struct lease_place *recall_find_place(
	const struct client_request *req, const struct contested *at)
{
	for (unsigned i = 0; i < req->wait.n; i++)
		if (req->wait.places[i].at == at)
			return (struct lease_place *)&req->wait.places[i];
	return NULL;
}

static uint64_t session_id(const struct client_request *req)
{
	return req->conn->session->stored.id;
}

/* Leaves the last of its places. */
static void leave_place(struct client_request *req)
{
	struct lease_place *place = &req->wait.places[--req->wait.n];

	list_del(&place->link);
	note_change(req->conn->server->recalls, place->at);
}

void recall_leave(struct client_request *req)
{
	while (req->wait.n)
		leave_place(req);
	req->wait.parked = false;
}

/* Leaves the places of higher inode numbers, and keeps the others. If the request has a place at
 * this inode already, it was woken, and another session has taken the lease again. */
static struct lease_place *take_place(struct client_request *req, struct contested *at)
{
	struct lease_wait *wait = &req->wait;
	struct lease_place *place;

	while (wait->n && wait->places[wait->n - 1].at->ino > at->ino)
		leave_place(req);
	place = recall_find_place(req, at);
	if (place)
		return place;
	if (wait->n == LEASE_PLACES)
		leave_place(req);
	place = &wait->places[wait->n++];
	*place = (struct lease_place){.req = req, .at = at, .since_ms = now_ms()};
	list_add_tail(&at->waiters, &place->link);
	return place;
}

void recall_wait(struct client_request *req)
{
	struct recalls *rs = req->conn->server->recalls;
	struct contested *at = find_or_make(rs, req->conn->session->export, req->wants.ino);
	struct lease_place *place;

	if (!at) {
		client_request_refuse(req, -ENOMEM, "the server is out of memory");
		return;
	}
	place = take_place(req, at);
	PROBE(rmemfs_server, request_wait, req, &req->conn->session->stored.client[0], at->ino,
		req->wants.type);
	place->type = req->wants.type;
	req->wait.parked = true;
	types_add(&at->wanted, place->type, session_id(req));
	list_add_tail(&rs->parked, &req->link);
	note_change(rs, at);
}

bool recall_waits(const struct client_request *req)
{
	return req->wait.n && req->wait.parked;
}

/* A waiting LEASE is in the way of a lease that its own session would get unasked, for which it
 * would wait then. It is not in the way of another LEASE of its session. */
static uint8_t wanted_before(const struct client_request *req, const struct types *before)
{
	return req->rpc.op == RPC_LEASE ? types_but(before, session_id(req)) : before->any;
}

uint8_t recall_wanted(const struct client_request *req, uint64_t ino)
{
	const struct contested *at =
		recall_find_contested(req->conn->server->recalls, req->conn->session->export, ino);

	const struct lease_place *place = at ? recall_find_place(req, at) : NULL;

	if (!at)
		return 0;
	return place ? place->before : wanted_before(req, &at->wanted);
}

bool recall_is_restless(const struct client_request *req, uint64_t ino)
{
	return damping_is_on(&req->conn->server->recalls->damping,
		req->conn->session->export->index, ino, now_ms());
}

/* ---- a look ---------------------------------------------------------------------------------- */

static struct recall *find_recall(const struct contested *at, uint64_t session)
{
	list_for_each (pos, &at->recalls) {
		struct recall *r = list_entry(pos, struct recall, of_inode);

		if (r->session->stored.id == session)
			return r;
	}
	return NULL;
}

/* NULL: the session has ended, which gives everything back; or there is no memory. */
static struct recall *make_recall(struct contested *at, struct server *s, uint64_t id)
{
	struct client_session *session = client_session_find(s, id);
	struct recall *r = session ? calloc(1, sizeof(*r)) : NULL;

	if (!r)
		return NULL;
	r->at = at;
	r->session = session;
	r->keep = LEASE_EXCLUSIVE;
	r->since_ms = now_ms();
	list_add_tail(&at->recalls, &r->of_inode);
	list_add_tail(&session->recalls, &r->of_session);
	at->export->recalled++;
	return r;
}

struct look {
	struct server *server;
	struct contested *at;
	struct types has; /* the types that sessions have */
};

static void recall(struct look *look, const struct lease_record *record, uint8_t keep)
{
	struct recall *r = find_recall(look->at, record->session);
	bool news;

	if (!r)
		r = make_recall(look->at, look->server, record->session);
	if (!r)
		return;
	news = keep != r->keep || record->number != r->number;
	if (news && keep < LEASE_SHARED)
		damping_recalled(&look->server->recalls->damping, look->at->export->index,
			look->at->ino, now_ms());
	r->wanted = true;
	r->number = record->number;
	r->keep = keep;
	r->told &= !news;
	if (!news)
		return;
	PROBE(rmemfs_server, recall_begin, record->session, &r->session->stored.client[0],
		look->at->ino, keep);
	client_session_ring(r->session);
}

/* Called for each session that has something of the inode. */
static void look_at_holder(const struct lease_record *record, void *arg)
{
	struct look *look = arg;
	uint8_t wanted = types_but(&look->at->wanted, record->session);

	types_add(&look->has, record->type, record->session);
	if (lease_conflicts(record->type, wanted))
		recall(look, record, lease_beside(record->type, wanted));
}

static void look_at_waiters(struct contested *at)
{
	at->wanted = (struct types){0};
	list_for_each (pos, &at->waiters) {
		struct lease_place *place = place_of(pos);

		place->before = wanted_before(place->req, &at->wanted);
		types_add(&at->wanted, place->type, session_id(place->req));
	}
}

/* Only a LEASE is behind earlier requests: other requests that wait take nothing. */
static bool is_behind(const struct lease_place *place)
{
	return place->req->rpc.op == RPC_LEASE && lease_conflicts(place->type, place->before);
}

static bool is_blocked(const struct look *look, const struct lease_place *place)
{
	return lease_conflicts(place->type, types_but(&look->has, session_id(place->req)));
}

/* Whether the request waits at this place. */
static bool is_waiting(const struct lease_place *place)
{
	return place->req->wait.parked && place == waits_at(place->req);
}

static void recall_wake(const struct look *look)
{
	struct list woken;

	list_init(&woken);
	list_for_each (pos, &look->at->waiters) {
		struct lease_place *place = place_of(pos);
		struct client_request *req = place->req;

		if (!is_waiting(place) || is_blocked(look, place) || is_behind(place))
			continue;
		req->wait.parked = false;
		list_del(&req->link);
		list_add_tail(&woken, &req->link);
	}
	list_splice_tail(&woken, &look->server->ready);
	list_splice_tail(&look->server->ready, &woken);
}

static void recall_look_at(struct server *s, struct contested *at)
{
	static struct log_ratelimit limit;
	struct look look = {.server = s, .at = at};
	int err;

	list_for_each (pos, &at->recalls)
		list_entry(pos, struct recall, of_inode)->wanted = false;
	look_at_waiters(at);
	err = meta_leases(s->meta, at->export->index, at->ino, look_at_holder, &look);
	/* A waiting request finds the same error when it runs, and is answered with it. */
	if (err && log_ratelimit_ok(&limit, LOG_MS))
		log_error("export '%s': the holders of inode %" PRIu64 " can't be read: %s",
			at->export->name, at->ino, errno_text(err));
	list_for_each_safe (pos, &at->recalls) {
		struct recall *r = list_entry(pos, struct recall, of_inode);

		if (!r->wanted)
			drop_recall(r);
	}
	recall_wake(&look);
}

bool recalls_look(struct server *s)
{
	struct recalls *rs = s->recalls;
	bool any = !list_empty(&rs->changed);

	for (struct list *pos; (pos = list_pop(&rs->changed));) {
		struct contested *at = list_entry(pos, struct contested, changed);

		if (list_empty(&at->waiters))
			contested_delete(rs, at);
		else
			recall_look_at(s, at);
	}
	return any;
}

/* ---- what changes ---------------------------------------------------------------------------- */

static void changed(const struct client_request *req, uint64_t ino)
{
	struct recalls *rs = req->conn->server->recalls;
	struct contested *at = recall_find_contested(rs, req->conn->session->export, ino);

	if (at)
		note_change(rs, at);
}

static void returned(const struct client_request *req)
{
	struct wire_in r = rpc_tail_reader(&req->rpc.ret.tail);
	struct rpc_returned one;

	if (req->rpc.ret.kind == RETURN_INODES)
		while (wire_in_left(&r))
			changed(req, wire_get_u64(&r));
	else if (req->rpc.ret.kind == RETURN_LEASES)
		while (rpc_get_returned(&r, &one))
			changed(req, one.ino);
}

void recall_changed(const struct client_request *req)
{
	if (!(req->conn->session->stored.flags & ATTACH_SHARED))
		return;
	if (req->rpc.op == RPC_LEASE)
		changed(req, req->rpc.lease.ino);
	else if (req->rpc.op == RPC_COMMIT && req->rpc.commit.lease)
		changed(req, req->rpc.commit.ino);
	else if (req->rpc.op == RPC_RETURN)
		returned(req);
	else if (req->pinned)
		changed(req, req->pinned);
}

void recall_look_again(struct server *s)
{
	for (unsigned i = 0; i < RECALL_BUCKETS; i++)
		list_for_each (pos, &s->recalls->buckets[i])
			note_change(s->recalls, list_entry(pos, struct contested, link));
}

void recall_lost_session(struct client_session *session)
{
	list_for_each_safe (pos, &session->recalls) {
		struct recall *r = list_entry(pos, struct recall, of_session);

		note_change(session->server->recalls, r->at);
		drop_recall(r);
	}
}

/* ---- what holders are told ------------------------------------------------------------------- */

static bool are_told(const struct client_session *session)
{
	list_for_each (pos, &session->recalls)
		if (!list_entry(pos, struct recall, of_session)->told)
			return false;
	return true;
}

/* Recalls that are told go to the end. */
bool recalls_put(struct client_session *session, struct wire_out *w)
{
	for (unsigned left = recalls_of(session); left; left--) {
		struct recall *r = list_entry(session->recalls.next, struct recall, of_session);

		if (wire_out_room(w) < RPC_RECALL_BYTES)
			return are_told(session);
		rpc_put_recall(w, &(struct rpc_recall){r->at->ino, r->number, r->keep});
		r->told = true;
		list_del(&r->of_session);
		list_add_tail(&session->recalls, &r->of_session);
	}
	return true;
}

void recalls_untold(struct client_session *session)
{
	list_for_each (pos, &session->recalls)
		list_entry(pos, struct recall, of_session)->told = false;
}

unsigned recalls_of(const struct client_session *session)
{
	unsigned n = 0;

	list_for_each (pos, &session->recalls)
		n++;
	return n;
}

unsigned recalls_waiting(const struct server *s, const struct export *export)
{
	unsigned n = 0;

	list_for_each (pos, &s->recalls->parked)
		n += list_entry(pos, struct client_request, link)->conn->session->export == export;
	return n;
}

void recalls_each(const struct server *s, const struct export *export,
	void (*fn)(const struct recall_view *view, void *arg), void *arg)
{
	for (unsigned i = 0; i < RECALL_BUCKETS; i++)
		list_for_each (pos, &s->recalls->buckets[i]) {
			const struct contested *at = list_entry(pos, struct contested, link);
			struct recall_view view = {.ino = at->ino, .path = at->path};

			if (at->export != export || list_empty(&at->waiters))
				continue;
			view.since_ms = place_of(at->waiters.next)->since_ms;
			list_for_each (each, &at->waiters)
				view.waiting++;
			list_for_each (each, &at->recalls)
				view.recalls++;
			fn(&view, arg);
		}
}

void recalls_each_waiter(const struct server *s, const struct export *export, uint64_t ino,
	void (*fn)(const struct lease_place *place, void *arg), void *arg)
{
	const struct contested *at = recall_find_contested(s->recalls, export, ino);

	if (!at)
		return;
	list_for_each (pos, &at->waiters)
		fn(place_of(pos), arg);
}

bool recall_find(const struct server *s, const struct export *export, uint64_t ino,
	uint64_t session, int64_t *since_ms, uint8_t *keep)
{
	const struct contested *at = recall_find_contested(s->recalls, export, ino);
	const struct recall *r = at ? find_recall(at, session) : NULL;

	if (!r)
		return false;
	*since_ms = r->since_ms;
	*keep = r->keep;
	return true;
}
