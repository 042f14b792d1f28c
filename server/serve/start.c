/* start.c - see start.h. */
#include "server/serve/start.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/base/progress.h"
#include "server/snapshot/restore.h"
#include "server/snapshot/snapshot_sets.h"

enum { WHY_BYTES = 512 };

/* ---- the store ------------------------------------------------------------------------------- */

/* The path of the first region that did not exist before this start, and its index; NULL: all
 * did. */
static const char *find_made(const struct export *export, uint32_t *index)
{
	for (*index = 0; *index < export->nregions; ++*index)
		if (!export->used[*index])
			return export->regions[*index]->path;
	return NULL;
}

static uint64_t mapped_pages(const struct export *export)
{
	uint64_t npages = export->npages;

	for (uint32_t i = 0; i < export->nsurplus; i++)
		npages += export->surplus[i].len / PAGE_BYTES;
	return npages;
}

void start_describe(
	const struct server_config *config, const struct export *e, struct meta_export *out)
{
	const struct export_config *ec = server_config_find(config, e->name);

	*out = (struct meta_export){
		.name = e->name,
		.npages = e->npages,
		.nregions = e->nregions,
		.region_pages = e->region_pages,
		.mapped_pages = mapped_pages(e),
		.bases = e->bases,
		.used = e->used,
		.lost = &e->lost,
		.max_inodes = ec->inodes,
		.metadata_bytes = ec->share,
		.quotas = ec->limits,
		.nquotas = (unsigned)ec->quotas.n,
	};
	out->missing = find_made(e, &out->missing_region);
	out->holed_region = e->holed;
	if (e->holed < e->nregions)
		out->holed = e->regions[e->holed]->path;
}

/* ---- snapshot_dir ---------------------------------------------------------------------------- */

int start_open_sets(struct server *s)
{
	const struct server_config *config = s->config;
	char why[WHY_BYTES];
	int err;

	if (!config->snapshot_on_stop && !config->restore_on_start)
		return 0;
	s->sets = calloc(1, sizeof(*s->sets));
	if (!s->sets)
		return -ENOMEM;
	err = snapshot_sets_open(s->sets, config->snapshot_dir, config->snapshot_on_stop,
		&(struct image_why){why, sizeof(why)});
	if (err)
		log_error("snapshot_dir: %s", why);
	return err;
}

void start_close_sets(struct server *s)
{
	if (s->sets)
		snapshot_sets_close(s->sets);
	free(s->sets);
	s->sets = NULL;
}

/* ---- choosing snapshots ---------------------------------------------------------------------- */

static int start_add(struct start_plan *plan, const char *dir, const char *name)
{
	char path[SNAPSHOT_DIR_BYTES + EXPORT_NAME_MAX + 2];

	snprintf(path, sizeof(path), "%s%s%s", dir, name ? "/" : "", name ? name : "");
	return conf_add_string(&plan->dirs, path, 0);
}

static bool is_configured(const struct server *s, const char *name)
{
	return exports_find(s->exports, &(struct rpc_str){name, (uint16_t)strlen(name)});
}

static int add_set(const struct server *s, struct start_plan *plan, const char *set)
{
	struct dirent *entry;
	DIR *d = opendir(set);
	int err = 0;

	if (!d)
		return -errno;
	while (!err && (entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		if (is_configured(s, entry->d_name))
			err = start_add(plan, set, entry->d_name);
		else
			log_warning("%s/%s is not restored: no export '%s' is configured", set,
				entry->d_name, entry->d_name);
	}
	closedir(d);
	return err;
}

static void tell_missing(const struct server *s, const char *set)
{
	char path[SNAPSHOT_DIR_BYTES];

	for (unsigned i = 0; i < s->exports->n; i++) {
		snprintf(path, sizeof(path), "%s/%s", set, s->exports->v[i]->name);
		if (access(path, F_OK) != 0)
			log_warning("export '%s' begins empty: there is no %s",
				s->exports->v[i]->name, path);
	}
}

static void tell_remedy(const struct server *s)
{
	log_error("nothing is served, and nothing in %s was changed. To begin with other files, "
		  "restore another snapshot by --restore; to begin empty, move %s away or set "
		  "restore_on_start = false",
		s->sets->dir, s->sets->dir);
}

static int plan_latest(struct server *s, struct start_plan *plan)
{
	char set[SNAPSHOT_SET_PATH_BYTES], why[WHY_BYTES];
	bool newer;
	int err = snapshot_sets_latest(s->sets, set, &newer, &(struct image_why){why, sizeof(why)});

	if (err == -ENOENT) {
		log_notice("there is no snapshot in %s: starting empty", s->sets->dir);
		return 0;
	}
	if (err) {
		log_error("can't restore the exports: %s", why);
		tell_remedy(s);
		return err;
	}
	if (newer)
		log_warning("beside %s there is a newer set of snapshots that was not completed: "
			    "what is restored is older",
			set);
	tell_missing(s, set);
	err = add_set(s, plan, set);
	if (err)
		log_error("can't read %s: %s", set, errno_text(err));
	/* The mark comes before there is a store. */
	return err ? err : memdir_begin_restore(&s->dir);
}

int start_plan_restore(struct server *s, struct start_plan *plan)
{
	const struct conf_strings *asked = &s->config->restore;
	int err = 0;

	for (size_t i = 0; !err && i < asked->n; i++)
		err = start_add(plan, asked->v[i], NULL);
	if (!asked->n && s->config->restore_on_start && memdir_is_new(&s->dir)) {
		plan->is_latest = true;
		err = plan_latest(s, plan);
	}
	CRASH_POINT("restore.planned");
	return err;
}

void start_plan_fini(struct start_plan *plan)
{
	conf_strings_free(&plan->dirs);
}

/* ---- restoring ------------------------------------------------------------------------------- */

struct tick {
	struct progress progress;
	char what[128];
};

/* Signals are blocked and wait for the loop, which does not run yet. */
static bool told_to_end(void)
{
	sigset_t set, ends = signals_to_end();

	return sigpending(&set) == 0 && sigandset(&set, &set, &ends) == 0 && !sigisemptyset(&set);
}

static int on_tick(void *arg, uint64_t done, uint64_t total)
{
	struct tick *t = arg;

	progress_tell(&t->progress, t->what, done, total);
	return told_to_end() ? -EINTR : 0;
}

static int restore_into(struct server *s, struct image_reader *image, const struct image_why *why)
{
	const struct marker_facts *facts = image_facts(image);
	struct rpc_str name = {facts->name, (uint16_t)strlen(facts->name)};
	const struct export *export = exports_find(s->exports, &name);
	struct tick tick = {0};
	const struct restore_watch watch = {on_tick, &tick};
	int err;

	if (!export)
		return image_fail(
			why, -ENOENT, "it is of export '%s', which is not configured", facts->name);
	snprintf(tick.what, sizeof(tick.what), "checking the snapshot of export '%s'", facts->name);
	err = restore_check(s->meta, export->index, image, &watch, why);
	if (!err)
		err = memdir_begin_restore(&s->dir);
	CRASH_POINT("restore.begun");
	snprintf(tick.what, sizeof(tick.what), "restoring export '%s'", facts->name);
	if (!err)
		err = restore_export(s->meta, export->index, image, &watch, why);
	return err;
}

static void tell_restored(const struct image_reader *image, const char *dir)
{
	char at[CLOCK_TEXT_BYTES];

	log_notice("export '%s' is restored from %s, taken at %s: %llu pages of files",
		image_facts(image)->name, dir, clock_format(image_time(image), -1, at),
		(unsigned long long)image_totals(image)->pages);
}

static int start_restore_one(struct server *s, const char *dir, bool first)
{
	char text[WHY_BYTES] = "see above";
	const struct image_why why = {text, sizeof(text)};
	struct image_reader *image = NULL;
	int err = first ? restore_may_begin(s->meta, &why) : 0;

	if (!err)
		err = image_open(dir, &image, &why);
	if (!err)
		err = restore_into(s, image, &why);
	if (!err)
		tell_restored(image, dir);
	image_close(image);
	if (err == -EINTR)
		log_notice("told to end: %s is not restored, and nothing was served", dir);
	else if (err)
		log_error("can't restore %s: %s", dir, text);
	return err;
}

int start_restore(struct server *s, const struct start_plan *plan)
{
	size_t n = plan->dirs.n;
	int err = 0;

	for (size_t i = 0; !err && i < n; i++)
		err = start_restore_one(s, plan->dirs.v[i], i == 0);
	if (err && plan->is_latest && err != -EINTR)
		tell_remedy(s);
	if (err || !memdir_is_restoring(&s->dir))
		return err;
	CRASH_POINT("restore.done");
	err = memdir_end_restore(&s->dir);
	CRASH_POINT("restore.ended");
	return err;
}
