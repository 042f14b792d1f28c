/* removal.c - see removal.h. */
#include "server/meta/removal.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "server/meta/volumes.h"

/* The name of a removed record that has no others any more. */
static const char done_name[] = ".";

/* Tables whose keys begin with the export. */
static const enum store_table of_export[] = {STORE_LOCK, STORE_LEASE, STORE_DIRENT, STORE_EXTENT,
	STORE_XATTR, STORE_XVALUE, STORE_SYMLINK, STORE_REAP, STORE_QUOTA, STORE_SPACE,
	STORE_INODE};
/* Tables whose keys begin with a session. */
static const enum store_table of_session[] = {STORE_ORPHAN, STORE_REPLY, STORE_HELD, STORE_STAGE};

/* ---- the records of exports ------------------------------------------------------------------ */

/* Calls fn for each removed record, until it returns true. */
static int each_removed(
	struct meta *m, bool (*fn)(const struct volume *removed, void *arg), void *arg)
{
	struct store_key key;
	struct store_val val;
	struct volume found;
	int err = store_seek(m->store, STORE_META, STORE_KEY(1), &key, &val);

	while (!err) {
		err = volumes_decode(m, key, &val, &found);
		if (!err && volumes_is_removed(&found) && fn(&found, arg))
			return 0;
		if (!err)
			err = store_next(m->store, STORE_META, &key, &val);
	}
	return err == -ENOENT ? 0 : err;
}

static bool is_done(const struct volume *removed)
{
	return strcmp(removed->name, done_name) == 0;
}

static bool count_one(const struct volume *removed, void *arg)
{
	*(unsigned *)arg += !is_done(removed);
	return false;
}

int removal_count(struct meta *m, unsigned *n)
{
	*n = 0;
	return each_removed(m, count_one, n);
}

/* ---- the transaction ------------------------------------------------------------------------- */

static int count_sessions(struct meta *m, uint16_t id, unsigned *ended)
{
	struct meta_session session;
	struct store_key key;
	struct store_val val;
	uint16_t export_id;
	int err = store_seek(m->store, STORE_SESSION, STORE_KEY(0), &key, &val);

	*ended = 0;
	while (!err) {
		err = meta_session_decode(m, key, &val, &session, &export_id);
		if (!err && export_id == id && !meta_session_has_ended(&val))
			return -EBUSY;
		if (err)
			return err;
		*ended += export_id == id;
		err = store_next(m->store, STORE_SESSION, &key, &val);
	}
	return err == -ENOENT ? 0 : err;
}

int removal_store(struct meta *m, const struct volume *v, unsigned *ended)
{
	struct volume removed = {.id = v->id, .now = v->now};
	int err = count_sessions(m, v->id, ended);

	if (err)
		return err;
	removed.space.npages = v->space.npages;
	removed.space.nregions = v->space.nregions;
	removed.space.region_pages = v->space.region_pages;
	snprintf(removed.name, sizeof(removed.name), ".%.*s", EXPORT_NAME_MAX - 1, v->name);
	return meta_save_volume(m, &removed);
}

static void forget_jobs(struct meta *m, unsigned export_index)
{
	unsigned n = 0;

	scrub_forget(m->scrub, export_index);
	for (unsigned i = 0; i < m->ndone; i++)
		if (m->done[i].export_index != export_index)
			m->done[n++] = m->done[i];
	m->ndone = n;
}

void removal_forget(struct meta *m, unsigned export_index, unsigned ended)
{
	struct volume *v = m->volumes[export_index];

	forget_jobs(m, export_index);
	m->now.nending -= min_u64(m->now.nending, ended);
	m->ending_session = 0;
	m->now.removed++;
	m->now.removed_pages += v->now.store_pages;
	retry_now(&m->removal_retry);
	volumes_close(v);
	scrub_kick(m->scrub);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool find_one(const struct volume *removed, void *arg)
{
	if (is_done(removed))
		return false;
	*(struct volume *)arg = *removed;
	return true;
}

/* Deletes records from the key `from` to the last one with hi. Values are not read, so a damaged
 * one goes, too. */
static int delete_range(
	struct meta *m, enum store_table table, struct store_key from, uint64_t hi, unsigned *left)
{
	struct store_key key;
	int err = 0;

	while (*left) {
		err = store_seek(m->store, table, from, &key, NULL);
		if (err == -ENOENT || (!err && key.hi > hi))
			return 0;
		if (!err)
			err = store_del(m->store, table, key);
		if (err)
			return err;
		--*left;
	}
	return 0;
}

/* The export's next session. -ENOENT: there is none. */
static int find_session(struct meta *m, uint16_t id, uint64_t *session)
{
	struct meta_session found;
	struct store_key key;
	struct store_val val;
	uint16_t export_id;
	int err = store_seek(m->store, STORE_SESSION, STORE_KEY(0), &key, &val);

	while (!err) {
		err = meta_session_decode(m, key, &val, &found, &export_id);
		if (!err && export_id == id) {
			*session = key.hi;
			return 0;
		}
		if (!err)
			err = store_next(m->store, STORE_SESSION, &key, &val);
	}
	return err;
}

static int delete_sessions(struct meta *m, uint16_t id, unsigned *left)
{
	uint64_t session;
	int err = 0;

	while (!err && *left) {
		err = find_session(m, id, &session);
		for (size_t i = 0; !err && i < ARRAY_SIZE(of_session); i++)
			err = delete_range(m, of_session[i], STORE_KEY(session), session, left);
		if (!err && *left)
			err = delete_range(m, STORE_SESSION, STORE_KEY(session), session, left);
	}
	return err == -ENOENT ? 0 : err;
}

/* Each of two that are done may go, if the other keeps the higher number. */
static bool find_other_done(const struct volume *removed, void *arg)
{
	struct volume *other = arg;

	if (!is_done(removed))
		return false;
	*other = *removed;
	return true;
}

static int finish(struct meta *m, const struct volume *removed)
{
	struct volume done = *removed, other = {0};
	int err = each_removed(m, find_other_done, &other);

	if (err)
		return err;
	m->now.removed--;
	if (other.id && other.now.next_ino >= done.now.next_ino)
		return store_del(m->store, STORE_META, STORE_KEY(done.id));
	snprintf(done.name, sizeof(done.name), "%s", done_name);
	done.now.inodes = 0;
	if (other.id)
		err = store_del(m->store, STORE_META, STORE_KEY(other.id));
	return err ? err : meta_save_volume(m, &done);
}

int removal_step(struct meta *m, unsigned nrecords, bool *more)
{
	struct volume removed = {0};
	uint64_t first, last;
	int err = each_removed(m, find_one, &removed);

	if (!err && !removed.id)
		return store_damaged(m->store, STORE_META, STORE_KEY(0));
	store_charge(m->store, &m->now.removed_pages);
	first = inode_key(&removed, 0);
	last = first | ((UINT64_C(1) << INO_BITS) - 1);
	if (!err)
		err = delete_sessions(m, removed.id, &nrecords);
	for (size_t i = 0; !err && i < ARRAY_SIZE(of_export); i++)
		err = delete_range(m, of_export[i], STORE_KEY(first), last, &nrecords);
	if (!err && nrecords)
		err = finish(m, &removed);
	CRASH_POINT("removal.step");
	*more |= m->now.removed > 0;
	return err;
}
