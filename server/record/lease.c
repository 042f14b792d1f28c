/* lease.c - see lease.h. The record, little-endian: type 1, pin 1, number 8, since 4. */
#include "server/record/lease.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "common/rpc/change_time.h"
#include "common/rpc/wire.h"
#include "server/record/inode.h"
#include "server/record/reaper.h"

enum { LEASE_BYTES = 14 };

enum pin { PIN_NONE, PIN, PIN_NAMELESS };

int lease_decode(struct volume *v, struct store_key key, const struct store_val *val,
	struct lease_record *out)
{
	struct wire_in r;
	uint8_t pin;

	*out = (struct lease_record){.key = key.hi, .session = key.lo};
	wire_in_init(&r, val->data, val->len);
	out->type = wire_get_u8(&r);
	pin = wire_get_u8(&r);
	out->pinned = pin != PIN_NONE;
	out->nameless = pin == PIN_NAMELESS;
	out->number = wire_get_u64(&r);
	out->since = wire_get_u32(&r);
	if (r.truncated || wire_in_left(&r) || out->type > LEASE_EXCLUSIVE || pin > PIN_NAMELESS)
		return store_damaged(v->store, STORE_LEASE, key);
	return 0;
}

static void lease_count(struct volume *v, struct holder_counts *holder,
	const struct lease_record *record, uint64_t by)
{
	struct lease_counts *n = &v->now.leases;
	bool layout = record->type == LEASE_LAYOUT || record->type == LEASE_OVERWRITE;
	uint64_t layouts = layout ? by : 0;
	uint64_t shared = record->type == LEASE_SHARED ? by : 0;
	uint64_t exclusive = record->type == LEASE_EXCLUSIVE ? by : 0;
	uint64_t pins = record->pinned ? by : 0;

	if (record->type == LEASE_NONE && !record->pinned)
		return;
	n->records += by;
	n->layouts += layouts;
	n->shared += shared;
	n->exclusive += exclusive;
	n->pins += pins;
	holder->layouts += layouts;
	holder->shared += shared;
	holder->exclusive += exclusive;
	holder->pins += pins;
}

int lease_get(struct volume *v, uint64_t key, uint64_t session, struct lease_record *out)
{
	struct store_key at = STORE_KEY(key, session);
	struct store_val val;
	int err;

	*out = (struct lease_record){.key = key, .session = session};
	if (!v->now.leases.records)
		return 0;
	err = store_get(v->store, STORE_LEASE, at, &val);
	if (err)
		return err == -ENOENT ? 0 : err;
	return lease_decode(v, at, &val, out);
}

static uint8_t pin_of(const struct lease_record *record)
{
	if (!record->pinned)
		return PIN_NONE;
	return record->nameless ? PIN_NAMELESS : PIN;
}

static uint32_t since(const struct lease_record *before, const struct lease_record *record)
{
	if (before->type == record->type && before->pinned == record->pinned)
		return before->since;
	return (uint32_t)(realtime_ns() / 1000000000);
}

int lease_put(struct volume *v, const struct lease_record *record)
{
	struct store_key at = STORE_KEY(record->key, record->session);
	struct holder_counts *holder;
	struct lease_record before;
	uint8_t buf[LEASE_BYTES];
	struct wire_out w;
	int err = lease_get(v, record->key, record->session, &before);

	if (err)
		return err;
	holder = holders_change(&v->holders, record->session);
	if (!holder)
		return store_fail(v->store, -ENOMEM);
	if (record->type == LEASE_NONE && !record->pinned) {
		err = store_del(v->store, STORE_LEASE, at);
		if (err == -ENOENT)
			err = 0;
	} else {
		wire_out_init(&w, buf, sizeof(buf));
		wire_put_u8(&w, record->type);
		wire_put_u8(&w, pin_of(record));
		wire_put_u64(&w, record->number);
		wire_put_u32(&w, since(&before, record));
		err = store_put(v->store, STORE_LEASE, at, buf, sizeof(buf));
	}
	if (err)
		return err;
	lease_count(v, holder, &before, (uint64_t)-1);
	lease_count(v, holder, record, 1);
	return 0;
}

int lease_next(struct volume *v, uint64_t key, uint64_t session, struct lease_record *out)
{
	struct store_key found;
	struct store_val val;
	int err = v->now.leases.records
			  ? store_seek(v->store, STORE_LEASE, STORE_KEY(key, session), &found, &val)
			  : -ENOENT;

	if (!err && found.hi >> INO_BITS != v->id)
		err = -ENOENT;
	return err ? err : lease_decode(v, found, &val, out);
}

int lease_look(struct volume *v, uint64_t key, uint64_t session, struct lease_others *out)
{
	struct lease_record record;
	uint64_t from = 0;
	int err;

	*out = (struct lease_others){0};
	while (!(err = lease_next(v, key, from, &record)) && record.key == key) {
		from = record.session + 1;
		if (record.session == session)
			continue;
		out->any = true;
		out->pinned |= record.pinned;
		out->types |= lease_bit(record.type);
	}
	return err == -ENOENT ? 0 : err;
}

/* ---- inodes without a name ------------------------------------------------------------------- */

static int forget_all(struct volume *v, uint64_t key)
{
	struct lease_record record;
	int err;

	while (!(err = lease_next(v, key, 0, &record)) && record.key == key) {
		record.type = LEASE_NONE;
		record.pinned = false;
		err = lease_put(v, &record);
		if (err)
			break;
	}
	return err == -ENOENT ? 0 : err;
}

int lease_unpinned(struct volume *v, uint64_t key, bool later)
{
	struct lease_others all;
	struct stored_inode inode;
	int err = inode_load(v, ino_of_key(key), &inode);

	if (err)
		return err == -ESTALE ? store_damaged(v->store, STORE_LEASE, STORE_KEY(key)) : err;
	if (inode.attr.nlink)
		return 0;
	err = lease_look(v, key, 0, &all);
	if (err || all.pinned)
		return err;
	err = forget_all(v, key);
	if (err)
		return err;
	return later ? reaper_inode_later(v, &inode) : reaper_inode(v, &inode);
}

static int touch(struct volume *v, uint64_t key, int64_t now)
{
	struct stored_inode inode;
	int err = inode_load(v, ino_of_key(key), &inode);

	if (err)
		return err == -ESTALE ? store_damaged(v->store, STORE_LEASE, STORE_KEY(key)) : err;
	inode.attr.mtime = change_time(inode.attr.mtime, now);
	inode.attr.ctime = change_time(inode.attr.ctime, now);
	return inode_save(v, &inode);
}

int lease_end(struct volume *v, const struct lease_record *record, bool clean, int64_t now)
{
	struct lease_record none = {.key = record->key, .session = record->session};
	int err = lease_put(v, &none);

	if (!err && lease_includes(record->type, LEASE_OVERWRITE) && !clean)
		err = touch(v, record->key, now);
	if (!err && record->pinned)
		err = lease_unpinned(v, record->key, false);
	return err;
}

int lease_open(struct volume *v)
{
	struct holder_counts *holder;
	struct store_key key;
	struct store_val val;
	struct lease_record record;
	int err = store_seek(v->store, STORE_LEASE, STORE_KEY(inode_key(v, 0)), &key, &val);

	v->now.leases = (struct lease_counts){0};
	while (!err && key.hi >> INO_BITS == v->id) {
		err = lease_decode(v, key, &val, &record);
		if (err)
			return err;
		holder = holders_change(&v->holders, record.session);
		if (!holder)
			return -ENOMEM;
		lease_count(v, holder, &record, 1);
		err = store_next(v->store, STORE_LEASE, &key, &val);
	}
	return err == -ENOENT ? 0 : err;
}
