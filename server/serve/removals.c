/* removals.c - see removals.h. */
#include "server/serve/removals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "server/admin/status.h"
#include "server/config/config_files.h"
#include "server/recall/recall.h"
#include "server/session/client_session.h"
#include "server/snapshot/snapshot.h"

/* Sessions that a refusal names: an answer has no room for more. */
enum { USERS_NAMED = 2 };

static struct export *find(const struct server *s, const char *name)
{
	const struct rpc_str text = {name, (uint16_t)strlen(name)};

	return exports_find(s->exports, &text);
}

/* ---- a start --------------------------------------------------------------------------------- */

/* The built-in export would come instead of the last one. */
static int drop_one(struct server_config *config, const char *name, char *why, size_t whylen)
{
	const struct export_config *export = server_config_find(config, name);
	char other[512];

	if (!export || config->exports.n == 1 ||
		!config_files_is_alone(config, export, other, sizeof(other)))
		return 0;
	log_warning("export '%s' is not made: it was removed, and the command that did it was "
		    "killed: run 'rmemfsctl export remove %s --yes'; or, to have it again, remove "
		    "exports.d/.%s.remove and reload",
		name, name, name);
	return server_config_drop(config, name, why, whylen);
}

static int start_one(struct server_config *config, const struct memdir *dir, const char *name,
	bool look, char *why, size_t whylen)
{
	bool stored = false;
	int err = 0;

	if (dir->content == MEMDIR_KEPT)
		err = meta_stored(dir->store, name, &stored, why, whylen);
	if (err)
		return err;
	if (stored) {
		log_warning("export '%s' is not removed: the command that was to do it has ended "
			    "before: remove exports.d/.%s.remove, or run 'rmemfsctl export remove "
			    "%s --yes'",
			name, name, name);
		return 0;
	}
	if (!look && dir->content == MEMDIR_KEPT) {
		err = exports_remove_files(dir, name, 0);
		if (err)
			snprintf(why, whylen,
				"the memory of export '%s', which was removed, can't "
				"be given back: %s",
				name, errno_text(err));
	}
	return err ? err : drop_one(config, name, why, whylen);
}

int removals_start(
	struct server_config *config, const struct memdir *dir, bool look, char *why, size_t whylen)
{
	int err = 0;

	for (size_t i = 0; !err && i < config->marks.n; i++)
		err = start_one(config, dir, config->marks.v[i], look, why, whylen);
	return err;
}

/* ---- a reload -------------------------------------------------------------------------------- */

static int read_gone(
	struct server *s, struct server_config *config, const char *name, char *why, size_t whylen)
{
	bool stored;
	int err = meta_knows(s->meta, name, &stored);

	if (err)
		snprintf(why, whylen, "the store can't be read: %s", errno_text(err));
	if (err || stored)
		return err;
	return drop_one(config, name, why, whylen);
}

int removals_read(struct server *s, struct server_config *config, struct removals *out, char *why,
	size_t whylen)
{
	int err = 0;

	snprintf(why, whylen, "out of memory");
	out->v = calloc(config->marks.n + 1, sizeof(*out->v));
	if (!out->v)
		return -ENOMEM;
	for (size_t i = 0; !err && i < config->marks.n; i++) {
		const char *name = config->marks.v[i];
		struct export *export = find(s, name);

		if (!export)
			err = read_gone(s, config, name, why, whylen);
		else if (config->marks.lines[i] == MARK_WANTED)
			out->v[out->n++] = (struct removal){.export = export};
		else
			log_warning("export '%s' is not removed: nobody waits for that any more: "
				    "remove exports.d/.%s.remove, or run 'rmemfsctl export remove "
				    "%s --yes'",
				name, name, name);
	}
	return err;
}

bool removals_has(const struct removals *r, const struct export *export)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->v[i].export == export)
			return true;
	return false;
}

bool removals_users(const struct server *s, const struct export *export, char *text, size_t len)
{
	unsigned n = 0;
	size_t at = 0;

	*text = '\0';
	list_for_each (pos, &s->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);

		if (session->export != export)
			continue;
		if (n++ < USERS_NAMED && at < len)
			at += (size_t)snprintf(text + at, len - at,
				"%ssession %" PRIu64 " of %.60s (%s)", at ? ", " : "",
				session->stored.id, session->stored.client,
				status_state_name(session));
	}
	if (n > USERS_NAMED && at < len)
		snprintf(text + at, len - at, " and %u more", n - USERS_NAMED);
	if (!n && snapshot_is_of(s, export))
		snprintf(text, len, "a snapshot that is being written");
	return *text;
}

static int check_users(
	const struct server *s, const struct export *export, char *why, size_t whylen)
{
	char users[USERS_BYTES];

	if (!removals_users(s, export, users, sizeof(users)))
		return 0;
	snprintf(why, whylen,
		"export '%s' is in use by %s: unmount it there; 'rmemfsctl evict' ends a session "
		"without a client",
		export->name, users);
	return -EBUSY;
}

int removals_check_users(const struct server *s, const struct removals *r, char *why, size_t whylen)
{
	int err = 0;

	for (unsigned i = 0; !err && i < r->n; i++)
		err = check_users(s, r->v[i].export, why, whylen);
	return err;
}

static bool may_take_file(
	const struct server_config *config, const struct removal *removal, char *why, size_t whylen)
{
	const struct export_config *export = server_config_find(config, removal->export->name);

	return !export || config_files_is_alone(config, export, why, whylen);
}

/* Exports that are served or configured after the reload. */
static bool leaves_none(const struct server_config *config, const struct removals *r)
{
	size_t left = config->exports.n;

	for (unsigned i = 0; i < r->n; i++)
		left -= server_config_find(config, r->v[i].export->name) != NULL;
	return config->built_in || !left;
}

int removals_check(const struct server *s, const struct server_config *config,
	const struct removals *r, char *why, size_t whylen)
{
	int err = 0;

	for (unsigned i = 0; !err && i < r->n; i++)
		err = may_take_file(config, &r->v[i], why, whylen) ? 0 : -EINVAL;
	if (!err)
		err = removals_check_users(s, r, why, whylen);
	if (err || !r->n || !leaves_none(config, r))
		return err;
	snprintf(why, whylen,
		"export '%s' is the last one, and a configuration without exports has a built-in "
		"one: add another first",
		r->v[0].export->name);
	return -EINVAL;
}

int removals_drop(const struct removals *r, struct server_config *config, char *why, size_t whylen)
{
	int err = 0;

	for (unsigned i = 0; !err && i < r->n; i++)
		err = server_config_drop(config, r->v[i].export->name, why, whylen);
	return err;
}

void removals_count(struct server *s, struct removals *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		struct meta_usage u;

		meta_usage(s->meta, r->v[i].export->index, &u);
		r->v[i].files = u.inodes - min_u64(u.inodes, 1);
		r->v[i].bytes =
			(u.npages - u.free_pages - u.granted_pages - u.dirty_pages) * PAGE_BYTES;
	}
}

static void tell_removed(const struct removal *removal, struct changes *changes)
{
	const struct export *export = removal->export;
	char size[32], used[32];

	size_format(export->npages * PAGE_BYTES, size, sizeof(size));
	size_format(removal->bytes, used, sizeof(used));
	changes_tell(changes, export->name,
		"export '%s' is removed, with %" PRIu64
		" files and directories and %s of data; its "
		"memory of %s is given back",
		export->name, removal->files, used, size);
}

void removals_take(
	struct server *s, struct removals *r, struct exports *gone, struct changes *changes)
{
	/* Nobody waits at an inode of theirs any more: such entries go now, not in the next round.
	 */
	recalls_look(s);
	for (unsigned i = 0; i < r->n; i++) {
		struct export *export = r->v[i].export;

		exports_take(s->exports, export);
		snapshot_forget(s, export);
		rpc_counters_add(&s->ended, &export->ended);
		tell_removed(&r->v[i], changes);
		exports_append(gone, export);
	}
	if (r->n)
		s->reclaim = true;
	r->n = 0;
}

void removals_fini(struct removals *r)
{
	free(r->v);
	*r = (struct removals){0};
}
