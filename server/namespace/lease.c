/* lease.c - LEASE, the return of leases, and the leases that other operations of shared sessions
 * need. */
#include <errno.h>

#include "common/base/util.h"
#include "server/meta/share.h"
#include "server/record/lease.h"
#include "server/namespace/ns.h"

/* So many records for each page of the reserve can be made even when all but the reserve is full.
 * Else nobody could open a file any more, to read it. The last eighth of them is not for leases
 * that are only kept. */
enum { LEASES_PER_PAGE = 16, LEASES_IN_USE = 8 };

/* A client may ask for leases that it needs before its returns of others have arrived. So it has
 * too many only from twice its limit, and some, on. */
enum { LEASES_SOME = 1024 };

/* A RETURN that more inodes go with leaves these to the reaper. */
enum { RETURN_AT_ONCE = 16, ROOM_PAGES_PER_LATER = 3 };

/* Records on a page of the store, at least, where pages are half full. */
enum { RECORDS_PER_PAGE = 32 };

static int ns_lease_refuse(struct ns_call *c, int err, const char *text)
{
	c->rep->text = (struct rpc_str){text, (uint16_t)strlen(text)};
	return err;
}

static int wait_for(struct ns_call *c, const struct stored_inode *i, uint8_t type)
{
	c->m->wait = (struct meta_wait){i->attr.ino, type};
	return NS_WAIT;
}

/* ---- what other operations need -------------------------------------------------------------- */

/* *known: no other session is changing the inode. */
int ns_is_known(struct ns_call *c, const struct stored_inode *i, bool *known)
{
	struct lease_others others;
	int err;

	*known = true;
	if (!c->ctx->shared || !S_ISREG(i->attr.mode))
		return 0;
	err = lease_look(c->v, i->key, c->ctx->session, &others);
	*known = !lease_conflicts(LEASE_SHARED, others.types);
	return err;
}

int ns_check_known(struct ns_call *c, const struct stored_inode *i)
{
	bool known;
	int err = ns_is_known(c, i, &known);

	return err || known ? err : wait_for(c, i, LEASE_SHARED);
}

int ns_check_unknown(struct ns_call *c, const struct stored_inode *const *inodes, unsigned n)
{
	const struct stored_inode *known = NULL;

	for (unsigned i = 0; c->ctx->shared && i < n; i++) {
		struct lease_others others;
		int err = lease_look(c->v, inodes[i]->key, c->ctx->session, &others);

		if (err)
			return err;
		if (others.types && (!known || inodes[i]->attr.ino < known->attr.ino))
			known = inodes[i];
	}
	return known ? wait_for(c, known, LEASE_EXCLUSIVE) : 0;
}

int ns_check_one_unknown(struct ns_call *c, const struct stored_inode *i)
{
	return ns_check_unknown(c, &i, 1);
}

static int check_includes(struct ns_call *c, uint8_t own, uint8_t type)
{
	if (lease_includes(own, type))
		return 0;
	return ns_lease_refuse(c, -ESTALE, "the session has no lease of the file that allows this");
}

int ns_check_lease(struct ns_call *c, const struct stored_inode *i, uint8_t type)
{
	struct lease_record own;
	int err;

	if (!c->ctx->shared)
		return 0;
	err = lease_get(c->v, i->key, c->ctx->session, &own);
	return err ? err : check_includes(c, own.type, type);
}

int ns_check_commit_lease(struct ns_call *c, const struct stored_inode *i)
{
	const struct rpc_commit *req = &c->req->commit;
	bool more = req->flags & ~(uint32_t)(COMMIT_ATIME | COMMIT_MTIME) || req->tail.len;
	struct lease_record own;
	int err;

	if (!c->ctx->shared || (!more && !(req->flags & COMMIT_MTIME)))
		return 0;
	err = lease_get(c->v, i->key, c->ctx->session, &own);
	return err ? err : check_includes(c, own.type, more ? LEASE_EXCLUSIVE : LEASE_OVERWRITE);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static uint64_t always_possible(const struct ns_call *c)
{
	return share_reserve(c->m, c->v) * LEASES_PER_PAGE;
}

bool ns_lease_grows(const struct ns_call *c)
{
	return c->ctx->shared && c->v->now.leases.records >= always_possible(c);
}

static uint64_t own_leases(const struct ns_call *c)
{
	struct holder_counts own = holders_of(&c->v->holders, c->ctx->session);

	return own.layouts + own.shared + own.exclusive;
}

/* Whether the session may have one more lease that it only keeps. */
static bool may_keep(const struct ns_call *c)
{
	uint64_t always = always_possible(c);

	return own_leases(c) < c->ctx->lease_limit &&
	       c->v->now.leases.records < always - always / LEASES_IN_USE;
}

static bool has_too_many(const struct ns_call *c)
{
	return own_leases(c) >= 2 * (uint64_t)c->ctx->lease_limit + LEASES_SOME;
}

/* ---- pins ------------------------------------------------------------------------------------ */

static int put_anew(struct ns_call *c, struct lease_record *record)
{
	record->number = ++c->m->now.lease_number;
	return lease_put(c->v, record);
}

static void ns_lease_tell(struct ns_call *c, const struct lease_record *record)
{
	c->rep->entry.lease = (struct lease){.type = record->type, .number = record->number};
}

int ns_pin(struct ns_call *c, const struct stored_inode *i, bool made)
{
	struct lease_record own;
	int err;

	if (!c->ctx->shared)
		return 0;
	err = lease_get(c->v, i->key, c->ctx->session, &own);
	own.pinned = true;
	own.nameless |= c->req->op == RPC_TMPFILE;
	if (made && may_keep(c))
		own.type = LEASE_EXCLUSIVE;
	if (!err)
		err = put_anew(c, &own);
	ns_lease_tell(c, &own);
	return err;
}

static int pin(struct ns_call *c, const struct stored_inode *i, uint64_t *number)
{
	struct lease_record own;
	int err = lease_get(c->v, i->key, c->ctx->session, &own);

	own.pinned = true;
	if (!err)
		err = own.number ? lease_put(c->v, &own) : put_anew(c, &own);
	*number = own.number;
	return err;
}

static int keep_orphan(struct ns_call *c, uint64_t key)
{
	static const uint8_t nothing;

	return store_put(c->m->store, STORE_ORPHAN, STORE_KEY(c->ctx->session, key), &nothing,
		sizeof(nothing));
}

int ns_keep(struct ns_call *c, const struct stored_inode *i, uint64_t *number)
{
	struct lease_others all = {.any = true};
	int err = c->ctx->shared ? 0 : lease_look(c->v, i->key, 0, &all);

	*number = 0;
	if (err)
		return err;
	return all.any ? pin(c, i, number) : keep_orphan(c, i->key);
}

int ns_keeps(struct ns_call *c, const struct stored_inode *i)
{
	struct lease_record own;
	struct store_val val;
	int err = store_get(c->m->store, STORE_ORPHAN, STORE_KEY(c->ctx->session, i->key), &val);

	if (err != -ENOENT)
		return err;
	err = lease_get(c->v, i->key, c->ctx->session, &own);
	return err || (c->ctx->shared ? own.nameless : own.pinned) ? err : -ENOENT;
}

int ns_named(struct ns_call *c, const struct stored_inode *i)
{
	struct lease_record own = {0};
	int err = store_del(c->m->store, STORE_ORPHAN, STORE_KEY(c->ctx->session, i->key));

	if (err == -ENOENT)
		err = lease_get(c->v, i->key, c->ctx->session, &own);
	if (err || !own.nameless)
		return err;
	own.nameless = false;
	return lease_put(c->v, &own);
}

/* ---- RETURN ---------------------------------------------------------------------------------- */

/* The session's record of a returned lease. number 0: there is none, or a newer one, so this lease
 * was returned before. */
static int find_returned(struct ns_call *c, const struct rpc_returned *r, struct lease_record *own)
{
	int err;

	*own = (struct lease_record){0};
	if (r->ino >> INO_BITS)
		return 0;
	err = lease_get(c->v, inode_key(c->v, r->ino), c->ctx->session, own);
	if (own->number > r->number)
		own->number = 0;
	return err;
}

/* Takes what is returned off the record. A session with a lease needs no pin, but of an inode
 * without a name: others would free that. So the pin stays with the lease. True: the record was
 * pinned, and is no more. */
static bool reduce(struct lease_record *own, const struct rpc_returned *r)
{
	bool pinned = own->pinned;

	own->type = lease_common(own->type, r->keep);
	if (r->pin == RETURN_PIN)
		own->pinned = true;
	else if (r->pin == RETURN_UNPIN && own->type == LEASE_NONE)
		own->pinned = false;
	return pinned && !own->pinned;
}

static int return_orphan(struct ns_call *c, uint64_t ino, bool at_once)
{
	int err = ns_orphan_return(c, ino, at_once);

	return err == -ENOENT ? 0 : err;
}

static int ns_lease_give_back(struct ns_call *c, const struct rpc_returned *r, bool at_once)
{
	struct lease_record own;
	bool unpinned;
	int err = find_returned(c, r, &own);

	if (err)
		return err;
	if (!own.number)
		return r->pin == RETURN_UNPIN ? return_orphan(c, r->ino, at_once) : 0;
	unpinned = reduce(&own, r);
	err = lease_put(c->v, &own);
	return err || !unpinned ? err : lease_unpinned(c->v, own.key, !at_once);
}

int ns_commit_lowers_lease(struct ns_call *c)
{
	const struct rpc_commit *req = &c->req->commit;
	const struct rpc_returned r = {.ino = req->ino, .number = req->lease, .keep = req->keep};

	return ns_lease_give_back(c, &r, true);
}

int ns_return_pin(struct ns_call *c, uint64_t ino, bool at_once)
{
	const struct rpc_returned all = {.ino = ino, .number = UINT64_MAX, .pin = RETURN_UNPIN};

	return ns_lease_give_back(c, &all, at_once);
}

/* Whether the inode may go with this return. */
static int may_reap(struct ns_call *c, const struct rpc_returned *r, bool *reaps)
{
	struct lease_record own;
	struct stored_inode inode;
	int err = find_returned(c, r, &own);

	*reaps = false;
	if (!err && !own.number && r->pin == RETURN_UNPIN)
		return ns_orphan_has(c, r->ino, reaps);
	if (err || !own.number || !reduce(&own, r))
		return err;
	err = inode_load(c->v, r->ino, &inode);
	*reaps = !err && !inode.attr.nlink;
	return err;
}

/* How many inodes may go with the request; changes nothing. -EINVAL: malformed. */
static int count_reaped(struct ns_call *c, size_t *n)
{
	struct wire_in r = rpc_tail_reader(&c->req->ret.tail);
	struct rpc_returned returned;
	bool reaps;

	*n = 0;
	while (rpc_get_returned(&r, &returned)) {
		int err = may_reap(c, &returned, &reaps);

		if (err)
			return err;
		*n += reaps;
	}
	return r.truncated ? -EINVAL : 0;
}

/* No more pages than the table has: a RETURN must be possible when the store is full. */
static uint64_t room_for_records(const struct ns_call *c, size_t n)
{
	return min_u64(
		n * ROOM_PAGES_PER_LEASE, ROOM_PAGES + c->v->now.leases.records / RECORDS_PER_PAGE);
}

int ns_return_leases(struct ns_call *c)
{
	struct wire_in r = rpc_tail_reader(&c->req->ret.tail);
	struct rpc_returned returned;
	size_t n = wire_in_left(&r) / RPC_RETURNED_BYTES, nreaped;
	bool at_once;
	int err = count_reaped(c, &nreaped);

	if (err)
		return err;
	at_once = nreaped <= RETURN_AT_ONCE;
	err = ns_room(c,
		ROOM_PAGES + room_for_records(c, n) +
			nreaped * (at_once ? ROOM_PAGES_PER_REAPED : ROOM_PAGES_PER_LATER),
		false);
	while (!err && rpc_get_returned(&r, &returned))
		err = ns_lease_give_back(c, &returned, at_once);
	return err;
}

/* ---- a session that is alone ----------------------------------------------------------------- */

/* Where sessions that have ended have left records of it, a pin goes on to keep it
 * (record/lease.h). */
static int give_up(struct ns_call *c, struct lease_record *own)
{
	struct lease_others others;
	struct stored_inode inode;
	int err = inode_load(c->v, ino_of_key(own->key), &inode);

	if (err)
		return err == -ESTALE ? store_damaged(c->m->store, STORE_LEASE,
						STORE_KEY(own->key, own->session))
				      : err;
	err = lease_look(c->v, own->key, own->session, &others);
	own->type = LEASE_NONE;
	own->pinned = !inode.attr.nlink && others.any;
	if (!err)
		err = lease_put(c->v, own);
	return err || inode.attr.nlink || others.any ? err : keep_orphan(c, own->key);
}

int ns_give_up_leases(struct ns_call *c)
{
	struct holder_counts counts = holders_of(&c->v->holders, c->ctx->session);
	size_t n = counts.layouts + counts.shared + counts.exclusive + counts.pins;
	struct lease_record record;
	uint64_t key = inode_key(c->v, 0);
	int err;

	if (n > CONVERT_ALONE_MAX)
		return -EBUSY;
	err = ns_room(c, ROOM_PAGES + 2 * room_for_records(c, n), false);
	if (err)
		return err;
	while (!(err = lease_next(c->v, key, c->ctx->session, &record))) {
		key = record.key;
		if (record.session == c->ctx->session)
			err = give_up(c, &record);
		if (err)
			return err;
		key += record.session >= c->ctx->session;
	}
	return err == -ENOENT ? 0 : err;
}

/* ---- LEASE ----------------------------------------------------------------------------------- */

/* The leases that earlier requests of others wait for: this one must not make them wait longer. */
static uint8_t ns_lease_wanted(const struct ns_call *c, const struct stored_inode *i)
{
	const struct meta_ctx *ctx = c->ctx;

	return ctx->wanted ? ctx->wanted(ctx->asker, i->attr.ino) : 0;
}

/* The next smaller lease that will do. A session that writes beside others has no use for SHARED,
 * which would be in their way. */
static uint8_t next_less(const struct rpc_lease *req, uint8_t type)
{
	bool layout = req->flags & LEASE_OR_LAYOUT;

	switch (type) {
	case LEASE_EXCLUSIVE:
		return layout ? LEASE_OVERWRITE : LEASE_SHARED;
	case LEASE_OVERWRITE:
	case LEASE_SHARED:
		return layout ? LEASE_LAYOUT : LEASE_NONE;
	default:
		return LEASE_NONE;
	}
}

/* The least lease that a request which waits can do with. */
static uint8_t least(const struct rpc_lease *req)
{
	return req->flags & LEASE_OR_LAYOUT ? next_less(req, req->type) : req->type;
}

/* Chooses the lease that can be had beside others; NS_WAIT: nothing less will do. A session that
 * does not wait keeps what it has, even in the way of others. */
static int ns_lease_choose(
	struct ns_call *c, const struct stored_inode *i, uint8_t own, uint8_t others, uint8_t *type)
{
	const struct rpc_lease *req = &c->req->lease;

	others |= ns_lease_wanted(c, i);
	for (*type = req->type; lease_conflicts(*type, others); *type = next_less(req, *type)) {
		if (!(req->flags & LEASE_IF_FREE) && *type == least(req))
			return wait_for(c, i, *type);
	}
	if (req->flags & LEASE_IF_FREE && !lease_includes(*type, own))
		*type = own;
	return 0;
}

/* Applies the bounds, for a session that has no lease of the inode yet. One that begins to share
 * needs leases of all that it has open. */
static int limit(struct ns_call *c, uint8_t *type, bool *passing)
{
	*passing = false;
	if (*type == LEASE_NONE || may_keep(c))
		return 0;
	*passing = true;
	if (c->req->lease.flags & LEASE_IF_FREE)
		*type = LEASE_NONE;
	else if (!(c->ctx->flags & SESSION_FORGETS) && has_too_many(c))
		return ns_lease_refuse(c, -ENFILE, "the session has too many leases");
	return 0;
}

/* A session that is to wait loses the lease that it has got by looking meanwhile, and may not know
 * of. Else those that it waits for might wait for that. */
static int wait_without(struct ns_call *c, struct lease_record *own)
{
	int err = own->type ? ns_room(c, ROOM_PAGES, false) : 0;

	own->type = LEASE_NONE;
	if (!err && own->number)
		err = lease_put(c->v, own);
	return err ? err : NS_WAIT;
}

static int ns_lease_load(struct ns_call *c, struct stored_inode *i)
{
	int err;

	if (!c->ctx->shared)
		return ns_lease_refuse(c, -EINVAL, "leases are for sessions at a shared export");
	err = inode_load(c->v, c->req->lease.ino, i);
	return !err && !S_ISREG(i->attr.mode) ? -EINVAL : err;
}

/* Whether the session took the file's last name while it had the export for itself: then this LEASE
 * makes what it keeps a pin. */
static int was_orphan(
	struct ns_call *c, const struct stored_inode *i, struct lease_record *own, bool *orphan)
{
	int err;

	*orphan = false;
	if (i->attr.nlink || own->pinned)
		return 0;
	err = ns_orphan_has(c, i->attr.ino, orphan);
	own->pinned = own->nameless = *orphan;
	return err;
}

static int put_leased(
	struct ns_call *c, const struct stored_inode *i, struct lease_record *own, bool orphan)
{
	int err = orphan ? ns_orphan_end(c, i->attr.ino) : 0;

	return err ? err : put_anew(c, own);
}

int ns_lease(struct ns_call *c)
{
	const struct rpc_lease *req = &c->req->lease;
	struct lease_others others = {0};
	struct lease_record own = {0};
	struct stored_inode inode;
	bool passing = false, orphan = false;
	uint8_t type;
	int err = ns_lease_load(c, &inode);

	if (!err)
		err = lease_look(c->v, inode.key, c->ctx->session, &others);
	if (!err)
		err = lease_get(c->v, inode.key, c->ctx->session, &own);
	if (!err)
		err = was_orphan(c, &inode, &own, &orphan);
	/* Only a session that isn't shared keeps it: then it is nobody else's. */
	if (!err && !inode.attr.nlink && !own.pinned && !others.pinned)
		err = -ESTALE;
	if (!err)
		err = ns_lease_choose(c, &inode, own.type, others.types, &type);
	if (err == NS_WAIT)
		return wait_without(c, &own);
	if (!err && own.type == LEASE_NONE)
		err = limit(c, &type, &passing);
	if (!err)
		err = ns_room(c, ROOM_PAGES, ns_lease_grows(c));
	if (err)
		return err;
	if (req->type != LEASE_NONE)
		own.type = type;
	own.pinned |= req->flags & LEASE_PIN || (own.type != LEASE_NONE && !inode.attr.nlink);
	ns_fill_entry(c, &inode, NULL);
	err = put_leased(c, &inode, &own, orphan);
	ns_lease_tell(c, &own);
	c->rep->entry.lease.passing = passing && own.type != LEASE_NONE;
	return err;
}

/* ---- leases by looking ----------------------------------------------------------------------- */

/* An operation asks the store once. */
static bool has_room(struct ns_call *c, struct ns_look_room *room)
{
	if (!room->asked)
		room->there = !ns_room(c, ROOM_PAGES + ROOM_PAGES_PER_LEASE, ns_lease_grows(c));
	room->asked = true;
	return room->there;
}

/* The caller has made sure that no other session is changing the inode. */
static bool may_look(struct ns_call *c, const struct stored_inode *i, struct ns_look_room *room)
{
	const struct meta_ctx *ctx = c->ctx;

	return ctx->shared && i->attr.nlink &&
	       !lease_conflicts(LEASE_SHARED, ns_lease_wanted(c, i)) &&
	       !(ctx->restless && ctx->restless(ctx->asker, i->attr.ino)) && may_keep(c) &&
	       has_room(c, room);
}

int ns_look(struct ns_call *c, const struct stored_inode *i, struct ns_look_room *room,
	struct lease *lease)
{
	struct lease_record own;
	int err = lease_get(c->v, i->key, c->ctx->session, &own);

	if (!err && own.type == LEASE_NONE && may_look(c, i, room)) {
		own.type = LEASE_SHARED;
		err = put_anew(c, &own);
	}
	*lease = (struct lease){.type = own.type, .number = own.number};
	return err;
}
