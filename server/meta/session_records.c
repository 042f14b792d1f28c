/* session_records.c - the stored sessions, their end, and the replies kept for them. */
#include "server/meta/meta_internal.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "server/meta/session_codec.h"
#include "server/meta/share.h"
#include "server/record/inode.h"
#include "server/record/lease.h"
#include "server/record/lock.h"
#include "server/record/quota.h"
#include "server/record/reaper.h"
#include "server/record/stage.h"

/* Records that one step of an ended session deletes, at most. */
enum { DRAIN_ORPHANS = 16, DRAIN_REPLIES = 32, DRAIN_QUOTAS = 32, DRAIN_STAGED = 8 };
/* Records that a step looks at; leases and locks that it ends. */
enum { DRAIN_LOOK = 1024, DRAIN_LEASES = 16, DRAIN_LOCKS = 4 };

static int index_of(const struct meta *m, uint16_t export_id)
{
	for (unsigned i = 0; i < m->nvolumes; i++) {
		if (m->volumes[i]->id == export_id)
			return (int)i;
	}
	return -ENOENT;
}

static void charge_export(struct meta *m, uint16_t export_id)
{
	int index = index_of(m, export_id);

	if (index >= 0)
		volume_charge(m->volumes[index]);
}

/* The next session at or after *id that belongs to one of our exports, with its index set. */
static int next_session(struct meta *m, uint64_t *id, struct session_record *rec)
{
	int index = -ENOENT, err = 0;

	while (!err && index < 0) {
		err = session_codec_next(m, id, rec);
		if (!err)
			index = index_of(m, rec->export_id);
	}
	if (!err)
		rec->session.export_index = (uint32_t)index;
	return err;
}

int meta_session_new(struct meta *m, struct meta_session *session)
{
	struct volume *v = m->volumes[session->export_index];
	struct session_record rec = {.session = *session};
	int err = share_room(v, ROOM_PAGES, false);

	if (!err)
		err = meta_room(m, ROOM_PAGES, false);
	if (err)
		return err;
	volume_charge(v);
	rec.export_id = v->id;
	rec.session.id = m->now.next_session++;
	err = session_codec_put(m, &rec);
	if (!err)
		err = meta_save_super(m);
	if (!err)
		session->id = rec.session.id;
	return err;
}

/* The record, to be changed; what the change takes is its export's. */
static int session_to_change(struct meta *m, uint64_t session, struct session_record *rec)
{
	struct store_val val;
	int err = meta_room(m, ROOM_PAGES, false);

	if (!err)
		err = store_get(m->store, STORE_SESSION, STORE_KEY(session), &val);
	if (!err)
		err = session_codec_get(m, STORE_KEY(session), &val, rec);
	if (!err)
		charge_export(m, rec->export_id);
	return err;
}

int meta_session_set_client(struct meta *m, uint64_t session, const char *client)
{
	struct session_record rec;
	int err = session_to_change(m, session, &rec);

	if (err)
		return err;
	snprintf(rec.session.client, sizeof(rec.session.client), "%s", client);
	return session_codec_put(m, &rec);
}

int meta_session_set_flags(struct meta *m, uint64_t session, uint32_t flags)
{
	struct session_record rec;
	int err = session_to_change(m, session, &rec);

	if (err)
		return err;
	rec.session.flags = flags;
	lock_waits_ask_again(&m->lock_waits, session);
	return session_codec_put(m, &rec);
}

int meta_session_each(
	struct meta *m, void (*fn)(const struct meta_session *session, void *arg), void *arg)
{
	struct session_record rec;
	uint64_t id = 0;
	int err = store_begin_read(m->store);

	while (!err) {
		err = next_session(m, &id, &rec);
		if (!err && !(rec.state & SESSION_ENDED))
			fn(&rec.session, arg);
	}
	store_abort(m->store);
	return err == -ENOENT ? 0 : err;
}

int meta_count_ended(struct meta *m, unsigned *n)
{
	struct session_record rec;
	uint64_t id = 0;
	int err = 0;

	*n = 0;
	while (!err) {
		err = next_session(m, &id, &rec);
		if (!err && (rec.state & SESSION_ENDED))
			++*n;
	}
	return err == -ENOENT ? 0 : err;
}

/* ---- end ------------------------------------------------------------------------------------- */

static int end_session(struct meta *m, unsigned export_index, uint64_t session, uint8_t state)
{
	struct store_key key = STORE_KEY(session);
	struct store_val val;
	struct session_record rec;
	int err = meta_room(m, ROOM_PAGES, false);

	if (!err)
		err = store_get(m->store, STORE_SESSION, key, &val);
	if (err)
		return err == -ENOENT ? 0 : err;
	err = session_codec_get(m, key, &val, &rec);
	if (err || (rec.state & SESSION_ENDED) || index_of(m, rec.export_id) != (int)export_index)
		return err;
	volume_charge(m->volumes[export_index]);
	rec.state |= state;
	m->now.nending++;
	lock_waits_drop_session(&m->lock_waits, session);
	return session_codec_put(m, &rec);
}

int meta_session_end(struct meta *m, unsigned export_index, uint64_t session)
{
	return end_session(m, export_index, session, SESSION_ENDED);
}

int meta_session_leave(struct meta *m, unsigned export_index, uint64_t session)
{
	return end_session(m, export_index, session, SESSION_ENDED | SESSION_CLEAN);
}

/* The table is sorted by inodes, so the steps walk through all of it. */
static int drain_leases(
	struct meta *m, struct volume *v, const struct session_record *rec, bool *done)
{
	struct store_key *at = &m->ending_lease;
	struct lease_record record;
	int64_t now = realtime_ns();
	unsigned ended = 0;
	int err = 0;

	*done = false;
	for (unsigned i = 0; i < DRAIN_LOOK && ended < DRAIN_LEASES; i++) {
		err = lease_next(v, max_u64(at->hi, inode_key(v, 0)), at->lo, &record);
		if (err)
			break;
		*at = STORE_KEY(record.key, record.session + 1);
		if (record.session != rec->session.id)
			continue;
		err = lease_end(v, &record, rec->state & SESSION_CLEAN, now);
		if (err)
			return err;
		m->now.leases_ended++;
		ended++;
	}
	if (err && err != -ENOENT)
		return err;
	*done = err == -ENOENT;
	return 0;
}

/* The same for the table of locks. */
static int drain_locks(struct meta *m, struct volume *v, uint64_t session, bool *done)
{
	struct store_key *at = &m->ending_lock, key;
	unsigned ended = 0;
	int err = 0;

	*done = false;
	for (unsigned i = 0; i < DRAIN_LOOK && ended < DRAIN_LOCKS; i++) {
		err = lock_next(v, max_u64(at->hi, inode_key(v, 0)), at->lo, &key);
		if (err)
			break;
		*at = STORE_KEY(key.hi, key.lo + 1);
		if (key.lo != session)
			continue;
		err = lock_end(v, key);
		if (err)
			return err;
		lock_waits_changed(&m->lock_waits, key.hi);
		ended++;
	}
	if (err && err != -ENOENT)
		return err;
	*done = err == -ENOENT;
	return 0;
}

/* Frees unlinked inodes that the session kept. */
static int drain_orphans(struct meta *m, struct volume *v, uint64_t session, bool *done)
{
	struct store_key start = STORE_KEY(session, inode_key(v, 0)), key;
	struct stored_inode inode;
	int err = 0;

	*done = false;
	for (unsigned i = 0; i < DRAIN_ORPHANS; i++) {
		err = store_seek(m->store, STORE_ORPHAN, start, &key, NULL);
		if (!err && key.hi != session)
			err = -ENOENT;
		if (err)
			break;
		err = store_del(m->store, STORE_ORPHAN, key);
		if (!err)
			err = inode_load(v, ino_of_key(key.lo), &inode);
		if (!err)
			err = reaper_inode(v, &inode);
		if (err)
			return err == -ESTALE ? store_damaged(m->store, STORE_ORPHAN, key) : err;
	}
	if (err && err != -ENOENT)
		return err;
	*done = err == -ENOENT;
	return 0;
}

static int drain_replies(struct meta *m, uint64_t session, bool *done)
{
	struct store_key key;
	int err = 0;

	*done = false;
	for (unsigned i = 0; !err && i < DRAIN_REPLIES; i++) {
		err = store_seek(m->store, STORE_REPLY, STORE_KEY(session), &key, NULL);
		if (!err && key.hi != session)
			err = -ENOENT;
		if (!err)
			err = store_del(m->store, STORE_REPLY, key);
	}
	if (err && err != -ENOENT)
		return err;
	*done = err == -ENOENT;
	return 0;
}

/* Locks and leases first: others wait for them. */
static int drain(struct meta *m, struct volume *v, const struct session_record *rec, bool *done)
{
	uint64_t session = rec->session.id;
	int err;

	if (m->ending_session != session) {
		m->ending_session = session;
		m->ending_position = 0;
		m->ending_lease = m->ending_lock = STORE_KEY(0);
	}
	err = drain_locks(m, v, session, done);
	if (!err && *done)
		err = drain_leases(m, v, rec, done);
	if (!err && *done)
		err = space_end_session(&v->space, session, &m->ending_position, done);
	if (!err && *done)
		err = drain_orphans(m, v, session, done);
	if (!err && *done)
		err = drain_replies(m, session, done);
	if (!err && *done)
		err = quota_end_session(v, session, DRAIN_QUOTAS, done);
	if (!err && *done)
		err = stage_drain(m->store, session, DRAIN_STAGED, done);
	return err;
}

int meta_drain_session(struct meta *m, bool *more)
{
	struct session_record rec;
	uint64_t id = 0;
	bool done;
	int err;

	do {
		err = next_session(m, &id, &rec);
		if (err == -ENOENT)
			return store_damaged(m->store, STORE_SESSION, STORE_KEY(id));
		if (err)
			return err;
	} while (!(rec.state & SESSION_ENDED));
	volume_charge(m->volumes[rec.session.export_index]);
	err = drain(m, m->volumes[rec.session.export_index], &rec, &done);
	if (!err && done) {
		err = store_del(m->store, STORE_SESSION, STORE_KEY(rec.session.id));
		m->now.nending--;
	}
	*more = m->now.nending > 0;
	return err;
}

/* ---- replies --------------------------------------------------------------------------------- */

int meta_reply_find(struct meta *m, uint64_t session, unsigned slot, uint64_t *seq,
	const void **msg, size_t *len)
{
	struct store_key key = STORE_KEY(session, slot);
	struct store_val val;
	struct wire_in r;
	uint64_t stored;
	int err = store_get(m->store, STORE_REPLY, key, &val);

	if (err)
		return err;
	wire_in_init(&r, val.data, val.len);
	stored = wire_get_u64(&r);
	if (r.truncated)
		return store_damaged(m->store, STORE_REPLY, key);
	*seq = stored;
	*len = wire_in_left(&r);
	*msg = r.pos;
	return 0;
}

int meta_reply_store(
	struct meta *m, uint64_t session, unsigned slot, uint64_t seq, const void *msg, size_t len)
{
	uint8_t buf[8 + RPC_MSG_BYTES];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u64(&w, seq);
	wire_put(&w, msg, len);
	if (w.overflow)
		return -EMSGSIZE;
	return store_put(m->store, STORE_REPLY, STORE_KEY(session, slot), buf, wire_out_len(&w));
}

/* An answer that the version does not have is dropped: no client of that version asks for it. */
static int recode_reply(struct meta *m, struct store_key key, const struct store_val *val,
	uint32_t from, uint32_t to)
{
	uint8_t msg[RPC_MSG_BYTES];
	struct rpc_reply rep;
	struct wire_in r;
	uint64_t seq;
	size_t len;

	wire_in_init(&r, val->data, val->len);
	seq = wire_get_u64(&r);
	if (r.truncated || rpc_reply_decode(&rep, from, r.pos, wire_in_left(&r)))
		return store_damaged(m->store, STORE_REPLY, key);
	if (rpc_reply_encode(&rep, to, msg, sizeof(msg), &len))
		return store_del(m->store, STORE_REPLY, key);
	return meta_reply_store(m, key.hi, (unsigned)key.lo, seq, msg, len);
}

static int recode_replies(struct meta *m, uint64_t session, uint32_t from, uint32_t to)
{
	struct store_key key = STORE_KEY(session);
	struct store_val val;
	int err;

	for (;;) {
		err = store_seek(m->store, STORE_REPLY, key, &key, &val);
		if (!err && key.hi != session)
			err = -ENOENT;
		if (!err)
			err = recode_reply(m, key, &val, from, to);
		if (err)
			return err == -ENOENT ? 0 : err;
		key.lo++;
	}
}

int meta_session_set_version(struct meta *m, uint64_t session, uint16_t version)
{
	struct session_record rec;
	int err = session_to_change(m, session, &rec);

	if (err)
		return err;
	err = recode_replies(m, session, rec.session.wire_version, version);
	rec.session.wire_version = version;
	return err ? err : session_codec_put(m, &rec);
}
