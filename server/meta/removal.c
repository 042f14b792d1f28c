/* removal.c - see removal.h. */
#include "server/meta/removal.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "server/meta/session_codec.h"
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

/* The next removed record that is done, or that is not. -ENOENT: there is none. */
static int next_removed(struct meta *m, uint64_t *id, bool done, struct volume *removed)
{
	int err;

	do
		err = volumes_next(m, id, removed);
	while (!err &&
		(!volumes_is_removed(removed) || (strcmp(removed->name, done_name) == 0) != done));
	return err;
}

int removal_count(struct meta *m, unsigned *n)
{
	struct volume removed;
	uint64_t id = 1;
	int err;

	*n = 0;
	while ((err = next_removed(m, &id, false, &removed)) == 0)
		++*n;
	return err == -ENOENT ? 0 : err;
}

/* ---- the transaction ------------------------------------------------------------------------- */

/* The export's next session at or after *at. -ENOENT: there is none. */
static int next_session(struct meta *m, uint16_t id, uint64_t *at, struct session_record *rec)
{
	int err;

	do
		err = session_codec_next(m, at, rec);
	while (!err && rec->export_id != id);
	return err;
}

static int count_sessions(struct meta *m, uint16_t id, unsigned *ended)
{
	struct session_record rec;
	uint64_t at = 0;
	int err;

	*ended = 0;
	while ((err = next_session(m, id, &at, &rec)) == 0) {
		if (!(rec.state & SESSION_ENDED))
			return -EBUSY;
		++*ended;
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

static int delete_sessions(struct meta *m, uint16_t id, unsigned *left)
{
	struct session_record rec = {0};
	uint64_t session, at = 0;
	int err = 0;

	while (!err && *left) {
		err = next_session(m, id, &at, &rec);
		session = rec.session.id;
		for (size_t i = 0; !err && i < ARRAY_SIZE(of_session); i++)
			err = delete_range(m, of_session[i], STORE_KEY(session), session, left);
		if (!err && *left)
			err = delete_range(m, STORE_SESSION, STORE_KEY(session), session, left);
	}
	return err == -ENOENT ? 0 : err;
}

/* Each of two that are done may go, if the other keeps the higher number. */
static int finish(struct meta *m, const struct volume *removed)
{
	struct volume done = *removed, other = {0};
	uint64_t id = 1;
	int err = next_removed(m, &id, true, &other);
	bool any = !err;

	if (err && err != -ENOENT)
		return err;
	m->now.removed--;
	if (any && other.now.next_ino >= done.now.next_ino)
		return store_del(m->store, STORE_META, STORE_KEY(done.id));
	snprintf(done.name, sizeof(done.name), "%s", done_name);
	done.now.inodes = 0;
	err = any ? store_del(m->store, STORE_META, STORE_KEY(other.id)) : 0;
	return err ? err : meta_save_volume(m, &done);
}

int removal_step(struct meta *m, unsigned nrecords, bool *more)
{
	struct volume removed = {0};
	uint64_t first, last, id = 1;
	int err = next_removed(m, &id, false, &removed);

	if (err == -ENOENT)
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
