/* start_check.c - see start_check.h. */
#include "server/serve/start_check.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "server/access/access_report.h"
#include "server/memory/exports.h"
#include "server/snapshot/image.h"
#include "server/snapshot/restore.h"
#include "server/memory/memdir.h"
#include "server/meta/meta.h"
#include "server/serve/ports.h"
#include "server/serve/removals.h"
#include "server/serve/start.h"
#include "server/base/refusal.h"
#include "server/snapshot/snapshot_sets.h"

/* As in rmemfs-server.service and sysusers.d. */
#define UNIT_USER      "rmemfs"
#define UNIT_MEMORY    "/dev/shm"
#define UNIT_SNAPSHOTS "/var/lib/rmemfs"
#define UNIT_SOCKETS   "/run/rmemfs"

enum { WHY_BYTES = 512 };

struct start_check {
	struct server_config *config;
	bool unit; /* the unit would start the server */
	struct memdir dir;
	char holder[MEMDIR_HOLDER_TEXT];
	struct exports *exports;
	uint64_t used;  /* pages in files, if the store could be read */
	bool has_files; /* likewise: or pages of a session */
	bool fails, is_refused;
};

/* Notes an error whose reason is logged. */
static void note(struct start_check *c, int err)
{
	if (!err)
		return;
	c->fails = true;
	c->is_refused |= refusal_status(err) == SERVER_REFUSED;
}

static bool start_check_is_running(const struct start_check *c)
{
	return c->holder[0];
}

/* ---- the unit's user ------------------------------------------------------------------------- */

static bool become_unit_user(const struct server_config *config)
{
	const struct passwd *user = geteuid() == 0 ? getpwnam(UNIT_USER) : NULL;
	struct stat st;

	return user && user->pw_uid && stat(config->memory_dir, &st) == 0 &&
	       st.st_uid == user->pw_uid && setgroups(0, NULL) == 0 && setegid(user->pw_gid) == 0 &&
	       seteuid(user->pw_uid) == 0;
}

static bool is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static void tell_drop_in(const char *key, const char *path, const char *allowed)
{
	if (!is_below(path, allowed))
		log_warning(
			"%s: the unit lets the server write to %s only with ReadWritePaths=%s in "
			"a drop-in (systemctl edit rmemfs-server)",
			key, path, path);
}

static void check_readable(struct start_check *c, const char *path)
{
	if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0)
		return;
	log_error(
		"%s: user %s can't read it, and the unit runs the server as that user: %s: chmod a+r it",
		path, UNIT_USER, errno_text(errno));
	note(c, -EACCES);
}

static void check_unit(struct start_check *c)
{
	const struct server_config *config = c->config;

	printf("looked at as user %s, as whom the unit runs it\n", UNIT_USER);
	tell_drop_in("memory_dir", config->memory_dir, UNIT_MEMORY);
	if (config->snapshot_on_stop)
		tell_drop_in("snapshot_dir", config->snapshot_dir, UNIT_SNAPSHOTS);
	if (config->path)
		check_readable(c, config->path);
	for (size_t i = 0; i < config->files.n; i++)
		check_readable(c, config->files.v[i]);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const char *content_text(enum memdir_content content)
{
	switch (content) {
	case MEMDIR_KEPT:
		return "it holds a store, and a start goes on with that";
	case MEMDIR_EARLIER_BOOT:
		return "it is of an earlier boot of this machine, and a start begins empty";
	case MEMDIR_UNRESTORED:
		return "it holds a part of a snapshot, and a start begins empty";
	default:
		return "it is new, and a start begins empty";
	}
}

static bool start_check_directory(struct start_check *c)
{
	int err = memdir_look(c->config->memory_dir, &c->dir, c->holder);

	note(c, err);
	if (start_check_is_running(c))
		printf("%s: a server is running on it, process %s: after its end a start goes on "
		       "with what is there, which can't be looked at now\n",
			c->dir.path, c->holder);
	else if (!err)
		printf("%s: %s\n", c->dir.path, content_text(c->dir.content));
	return !err;
}

static uint64_t bytes_there(const struct export *e)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < e->nregions; i++)
		sum += e->used[i] ? e->regions[i]->len : 0;
	for (uint32_t i = 0; i < e->nsurplus; i++)
		sum += e->surplus[i].len;
	return sum;
}

static void tell_export(const struct start_check *c, const struct export *e)
{
	uint64_t have = bytes_there(e), want = e->npages * PAGE_BYTES;
	uint64_t share = server_config_find(c->config, e->name)->share;
	char from[32], to[32], metadata[32];

	size_format(have, from, sizeof(from));
	size_format(want, to, sizeof(to));
	size_format(share, metadata, sizeof(metadata));
	if (!have)
		printf("export '%s': new, %s", e->name, to);
	else if (have == want)
		printf("export '%s': there, %s", e->name, to);
	else
		printf("export '%s': %s from %s to %s", e->name, have < want ? "grows" : "shrinks",
			from, to);
	if (share)
		printf("; its share of the metadata is %s", metadata);
	putchar('\n');
}

static void check_store(struct start_check *c)
{
	unsigned n = c->exports->n;
	autofree struct meta_export *exports = calloc(n + 1, sizeof(*exports));
	autofree struct meta_look *looks = calloc(n + 1, sizeof(*looks));
	const struct meta_config config = {.dir = c->dir.store, .exports = exports, .nexports = n};
	uint8_t id[META_STORE_ID_BYTES];
	char why[4096] = "";
	int err = exports && looks ? 0 : -ENOMEM;

	for (unsigned i = 0; !err && i < n; i++)
		start_describe(c->config, c->exports->v[i], &exports[i]);
	if (!err)
		err = meta_look(&config, looks, id, why, sizeof(why));
	if (err == -ENOENT)
		return;
	if (!err)
		err = memdir_check_store_id(&c->dir, id, sizeof(id), why, sizeof(why));
	if (err) {
		log_error("%s", why[0] ? why : errno_text(err));
		memdir_tell_remedy(&c->dir, err);
		note(c, err);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		c->used += looks[i].used;
		c->has_files |= looks[i].has_files;
		if (looks[i].err)
			log_error("%s", looks[i].why);
		note(c, looks[i].err);
	}
}

/* Without the lock a start goes on, but RDMA does not. */
static void check_memlock(struct start_check *c)
{
	uint64_t bytes = server_config_store_bytes(c->config);
	bool verbs = false;
	char limit[32];

	for (unsigned i = 0; i < c->exports->n; i++)
		bytes += c->exports->v[i]->npages * PAGE_BYTES;
	for (size_t i = 0; i < c->config->listen.n; i++)
		verbs |= c->config->addresses[i].kind == TRANSPORT_VERBS;
	if (c->unit || regions_can_lock(bytes, limit, sizeof(limit)))
		return;
	log_line(verbs ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
		"the memory can't be locked%s: RLIMIT_MEMLOCK is %s; set LimitMEMLOCK=infinity or "
		"ulimit -l unlimited",
		verbs ? ", as RDMA takes" : " and may be swapped out", limit);
	note(c, verbs ? -ENOMEM : 0);
}

static void check_removals(struct start_check *c)
{
	char why[WHY_BYTES] = "";
	int err = removals_start(c->config, &c->dir, true, why, sizeof(why));

	if (err)
		log_error("%s", why[0] ? why : errno_text(err));
	note(c, err);
}

static void check_memory(struct start_check *c)
{
	if (!start_check_directory(c))
		return;
	if (!start_check_is_running(c))
		check_removals(c);
	note(c, exports_plan(c->config, &c->dir, &c->exports));
	if (!c->exports)
		return;
	for (unsigned i = 0; i < c->exports->n; i++)
		tell_export(c, c->exports->v[i]);
	if (!start_check_is_running(c) && c->dir.content == MEMDIR_KEPT)
		check_store(c);
	check_memlock(c);
}

/* ---- clients --------------------------------------------------------------------------------- */

static void check_access(struct start_check *c)
{
	struct access_table *table;
	char why[WHY_BYTES];
	int err = access_table_new(c->config, NULL, &table, why, sizeof(why));

	note(c, err);
	if (err) {
		log_error("%s", why);
		return;
	}
	access_report_print(table, stdout);
	access_report_warn(table, c->config);
	access_table_put(table);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static void check_latest(struct start_check *c, const struct snapshot_sets *sets)
{
	char set[SNAPSHOT_SET_PATH_BYTES], why[WHY_BYTES];
	bool newer;
	int err;

	if (!c->config->restore_on_start || c->config->restore.n || start_check_is_running(c) ||
		c->dir.content == MEMDIR_KEPT)
		return;
	err = snapshot_sets_latest(sets, set, &newer, &(struct image_why){why, sizeof(why)});
	if (err == -ENOENT) {
		printf("%s: no snapshot is there, and a start begins empty\n", sets->dir);
	} else if (err) {
		log_error("can't restore the exports: %s", why);
		note(c, err);
	} else {
		printf("%s: a start restores it\n", set);
	}
}

static void warn_of_room(const struct start_check *c, const struct snapshot_sets *sets)
{
	uint64_t used = c->used * PAGE_BYTES, room;
	char need[32], have[32];
	struct statvfs fs;

	if (!c->config->snapshot_on_stop || fstatvfs(sets->fd, &fs) != 0)
		return;
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (used <= room)
		return;
	size_format(used, need, sizeof(need));
	size_format(room, have, sizeof(have));
	log_warning("snapshot_dir: %s has %s free, and the exports' files have %s: a stop may have "
		    "no room for its snapshots",
		sets->dir, have, need);
}

static void check_snapshots(struct start_check *c)
{
	const struct server_config *config = c->config;
	struct snapshot_sets sets = {.fd = -1};
	char why[WHY_BYTES];
	int err;

	if (!config->snapshot_on_stop && !config->restore_on_start)
		return;
	if (c->unit && strcmp(config->snapshot_dir, UNIT_SNAPSHOTS) == 0 &&
		access(config->snapshot_dir, F_OK) != 0)
		return; /* StateDirectory= makes it */
	err = snapshot_sets_look(&sets, config->snapshot_dir, config->snapshot_on_stop,
		start_check_is_running(c), &(struct image_why){why, sizeof(why)});
	if (err)
		log_error("snapshot_dir: %s", why);
	note(c, err);
	if (!err) {
		check_latest(c, &sets);
		warn_of_room(c, &sets);
	}
	if (sets.fd >= 0)
		close(sets.fd);
}

/* For --restore. Opens the images only: to check their contents it would have to read them all. */
static void check_images(struct start_check *c)
{
	if (c->config->restore.n && c->has_files) {
		log_error("can't restore %s: %s", c->config->restore.v[0], restore_into_files);
		note(c, -EEXIST);
	} else if (c->config->restore.n && start_check_is_running(c)) {
		printf("not checked while the server runs: whether its exports are without files, as "
		       "--restore needs\n");
	}
	for (size_t i = 0; i < c->config->restore.n; i++) {
		const char *dir = c->config->restore.v[i];
		struct image_reader *image = NULL;
		char why[WHY_BYTES];
		int err = image_open(dir, &image, &(struct image_why){why, sizeof(why)});

		if (err)
			log_error("can't restore %s: %s", dir, why);
		note(c, err);
		image_close(image);
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum server_status conclude(const struct start_check *c)
{
	const char *what = start_check_is_running(c) ? "restart" : "start";

	if (c->fails)
		printf("a %s would %s\n", what, c->is_refused ? "be refused" : "fail now");
	else
		printf("a %s would succeed\n", what);
	if (c->is_refused)
		return SERVER_REFUSED;
	return fflush(stdout) != 0 || c->fails ? SERVER_FAILED : SERVER_DONE;
}

enum server_status start_check(struct server_config *config)
{
	struct start_check c = {.config = config, .dir = {.lock_fd = -1}};
	enum server_status status;

	c.unit = become_unit_user(config);
	if (c.unit)
		check_unit(&c);
	check_memory(&c);
	check_access(&c);
	check_snapshots(&c);
	check_images(&c);
	note(&c, ports_look(config, &(struct ports_look){
					    .nregions = c.exports ? exports_nregions(c.exports) : 0,
					    .restart = start_check_is_running(&c),
					    .dir = c.unit ? UNIT_SOCKETS : NULL,
				    }));
	exports_delete(c.exports);
	if (c.dir.lock_fd >= 0)
		close(c.dir.lock_fd);
	status = conclude(&c);
	return status;
}
