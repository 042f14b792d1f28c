/* check_sessions.c - sessions, and the inodes and replies that are kept for them. */
#include "server/check/check_internal.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/util.h"
#include "server/session/context.h"

/* ---- of one export --------------------------------------------------------------------------- */

/* A number that is lent and used would make two files one. */
static int check_lent_number(struct check *c, uint64_t session, uint64_t ino)
{
	struct stored_inode i;
	int err = inode_load_any(c->v, ino, &i);

	if (!err)
		check_problem(c,
			"session %" PRIu64 " was lent the number %" PRIu64 ", which an inode has",
			session, ino);
	return err == -ESTALE || err == -EBADMSG ? 0 : err;
}

static int check_lent(struct check *c, uint64_t session, const struct lent_window *w)
{
	uint64_t end = c->v->now.next_ino;
	int err = 0;

	if (w->left && (!w->first || end < NUMBERS_LENT || w->first > end - NUMBERS_LENT)) {
		check_problem(c,
			"session %" PRIu64 " was lent numbers from %" PRIu64
			" on, which were not given out",
			session, w->first);
		return 0;
	}
	for (unsigned n = 0; !err && n < NUMBERS_LENT; n++)
		if (w->left >> n & 1)
			err = check_lent_number(c, session, w->first + n);
	return err;
}

static int collect_session(struct check *c, struct store_key key, const struct store_val *val)
{
	struct meta_session session;
	uint16_t export_id;
	int err = meta_session_decode(c->m, key, val, &session, &export_id);

	if (err == -EBADMSG)
		return 0; /* check_session() reports it */
	if (err || export_id != c->v->id)
		return err;
	for (unsigned i = 0; !err && i < LENT_WINDOWS; i++)
		err = check_lent(c, key.hi, &session.lent[i]);
	return err ? err : check_list_add(&c->sessions, key.hi);
}

int check_collect_sessions(struct check *c)
{
	return check_each(c, STORE_SESSION, 0, UINT64_MAX, collect_session);
}

static int check_orphan(struct check *c, struct store_key key, const struct store_val *val)
{
	uint64_t ino = ino_of_key(key.lo);
	struct stored_inode i;
	int err;

	if (key.lo >> INO_BITS != c->v->id)
		return 0;
	if (!check_list_has(&c->sessions, key.hi))
		check_problem(c,
			"unlinked inode %" PRIu64 " is kept for session %" PRIu64
			", which is not there",
			ino, key.hi);
	err = inode_load(c->v, ino, &i);
	if (err == -ESTALE)
		check_problem(c,
			"session %" PRIu64 " keeps unlinked inode %" PRIu64 ", which is not there",
			key.hi, ino);
	if (err)
		return err == -ESTALE || err == -EBADMSG ? 0 : err;
	if (i.attr.nlink)
		check_problem(c,
			"session %" PRIu64 " keeps inode %" PRIu64
			" as an unlinked one, and it has links",
			key.hi, ino);
	return check_list_add(&c->kept, ino);
}

int check_orphans(struct check *c)
{
	int err = check_each(c, STORE_ORPHAN, 0, UINT64_MAX, check_orphan);

	check_list_sort(&c->kept);
	return err;
}

/* ---- of all ---------------------------------------------------------------------------------- */

static int check_session(struct check *c, struct store_key key, const struct store_val *val)
{
	struct meta_session session;
	struct store_val record;
	uint16_t export_id;
	int err = meta_session_decode(c->m, key, val, &session, &export_id);

	if (err)
		return err;
	if (key.hi >= c->m->now.next_session || !key.hi)
		check_problem(c, "session %" PRIu64 " has a number that was not given out", key.hi);
	if (!export_id ||
		store_get(c->m->store, STORE_META, STORE_KEY(export_id), &record) == -ENOENT)
		check_problem(c, "session %" PRIu64 " is at export %u, which is not there", key.hi,
			export_id);
	return 0;
}

static int check_reply(struct check *c, struct store_key key, const struct store_val *val)
{
	struct meta_session session;
	struct store_val record;
	uint16_t export_id;
	int err = store_get(c->m->store, STORE_SESSION, STORE_KEY(key.hi), &record);

	if (err == -ENOENT)
		check_problem(
			c, "a reply is kept for session %" PRIu64 ", which is not there", key.hi);
	if (!err)
		err = meta_session_decode(c->m, STORE_KEY(key.hi), &record, &session, &export_id);
	if (err)
		return err == -ENOENT || err == -EBADMSG ? 0 : err;
	if (key.lo >= session.nchannels * (uint64_t)CHANNEL_SLOTS)
		check_problem(c,
			"a reply is kept for slot %" PRIu64 " of session %" PRIu64
			", which it has not",
			key.lo, key.hi);
	return val->len < sizeof(uint64_t) ? -EBADMSG : 0;
}

/* The second half of an orphan's key has the export. */
static int check_orphan_export(struct check *c, struct store_key key, const struct store_val *val)
{
	uint64_t id = key.lo >> INO_BITS;
	struct store_val record;

	if (!id || store_get(c->m->store, STORE_META, STORE_KEY(id), &record) == -ENOENT)
		check_problem(c,
			"session %" PRIu64 " keeps an inode of export %" PRIu64
			", which is not there",
			key.hi, id);
	return 0;
}

int check_sessions(struct check *c)
{
	int err;

	check_progress(c, "sessions");
	err = check_each(c, STORE_SESSION, 0, UINT64_MAX, check_session);
	if (!err)
		err = check_each(c, STORE_REPLY, 0, UINT64_MAX, check_reply);
	if (!err)
		err = check_stages(c);
	if (!err)
		err = check_each(c, STORE_ORPHAN, 0, UINT64_MAX, check_orphan_export);
	return err ? err : check_each(c, STORE_HELD, 0, UINT64_MAX, check_held_exports);
}

/* ---- holders --------------------------------------------------------------------------------- */

int check_holder(
	struct check *c, uint64_t ino, const char *held, uint64_t id, uint32_t flags, bool *ended)
{
	struct meta_session session;
	struct store_val val;
	uint16_t export_id;
	int err;

	if (ended)
		*ended = false;
	if (!check_list_has(&c->sessions, id)) {
		check_problem(c, "inode %" PRIu64 " is %s session %" PRIu64 ", which is not there",
			ino, held, id);
		return 0;
	}
	err = store_get(c->m->store, STORE_SESSION, STORE_KEY(id), &val);
	if (!err)
		err = meta_session_decode(c->m, STORE_KEY(id), &val, &session, &export_id);
	if (!err && ended)
		*ended = meta_session_has_ended(&val);
	if (!err && flags && !(session.flags & flags))
		check_problem(c, "inode %" PRIu64 " is %s session %" PRIu64 ", which is not shared",
			ino, held, id);
	return err == -EBADMSG ? 0 : err;
}
