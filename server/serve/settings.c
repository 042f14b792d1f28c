/* settings.c - see settings.h. */
#include "server/serve/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "server/serve/start.h"
#include "server/snapshot/snapshot_sets.h"

/* The last two are taken elsewhere: by the clients, and by exports that are made from now on. */
static const char *const taken_keys[] = {"log_level", "snapshot_dir", "snapshot_on_stop",
	"restore_on_start", "local_access", "region_size"};

static bool is_taken(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(taken_keys); i++)
		if (strcmp(taken_keys[i], name) == 0)
			return true;
	return false;
}

static bool has_changed(
	const struct server *s, const struct server_config *config, const char *name)
{
	return !conf_equal(conf_find(server_config_keys, name), s->config, config);
}

/* ---- snapshot_dir ---------------------------------------------------------------------------- */

int settings_read(struct server *s, const struct server_config *config, struct settings_plan *out,
	char *why, size_t whylen)
{
	char text[512];
	int err;

	out->reopens = has_changed(s, config, "snapshot_dir") ||
		       has_changed(s, config, "snapshot_on_stop") ||
		       has_changed(s, config, "restore_on_start");
	if (!out->reopens || (!config->snapshot_on_stop && !config->restore_on_start))
		return 0;
	out->sets = calloc(1, sizeof(*out->sets));
	if (!out->sets) {
		snprintf(why, whylen, "out of memory");
		return -ENOMEM;
	}
	err = snapshot_sets_reopen(out->sets, s->sets, config->snapshot_dir,
		config->snapshot_on_stop, &(struct image_why){text, sizeof(text)});
	if (err)
		snprintf(why, whylen, "snapshot_dir: %s", text);
	return err;
}

void settings_drop(struct settings_plan *plan)
{
	if (plan->sets)
		snapshot_sets_close(plan->sets);
	free(plan->sets);
	*plan = (struct settings_plan){0};
}

static void tell_snapshots(const struct server_config *config, struct changes *changes)
{
	if (config->snapshot_on_stop)
		changes_tell(changes, NULL, "a stop writes snapshots of all exports to %s",
			config->snapshot_dir);
	else
		changes_tell(changes, NULL,
			"a stop writes no snapshots: a reboot loses all files since the last ones");
	if (config->restore_on_start)
		changes_tell(changes, NULL,
			"a start without memory of before begins with the latest snapshots");
	else
		changes_tell(changes, NULL, "a start without memory of before begins empty");
}

static void take_snapshots(struct server *s, struct server_config *config,
	struct settings_plan *plan, struct changes *changes)
{
	char *dir = s->config->snapshot_dir;

	start_close_sets(s);
	s->sets = plan->sets;
	plan->sets = NULL;
	s->config->snapshot_dir = config->snapshot_dir;
	config->snapshot_dir = dir;
	s->config->snapshot_on_stop = config->snapshot_on_stop;
	s->config->restore_on_start = config->restore_on_start;
	tell_snapshots(s->config, changes);
}

/* ---- the others ------------------------------------------------------------------------------ */

/* `rmemfsctl log` may have set another one meanwhile: that stays, if the file's has not changed. */
static void take_log_level(
	struct server *s, const struct server_config *config, struct changes *changes)
{
	s->config->log_level = config->log_level;
	log_set_level(config->log_level);
	changes_tell(changes, NULL, "log level: %s", log_level_name(config->log_level));
}

/* The exports take a larger one. */
static bool reserve_shrinks(struct server *s, const struct server_config *config)
{
	struct meta_usage usage;

	meta_usage(s->meta, 0, &usage);
	return server_config_store_bytes(config) < usage.store_bytes;
}

static bool is_later(
	struct server *s, const struct server_config *config, const struct conf_key *key)
{
	if (key->type == CONF_GROUPS || is_taken(key->name) || conf_equal(key, s->config, config))
		return false;
	return strcmp(key->name, "metadata_reserve") != 0 || reserve_shrinks(s, config);
}

static void tell_later(
	struct server *s, const struct server_config *config, struct changes *changes)
{
	s->later.n = 0;
	for (const struct conf_key *key = server_config_keys; key->name; key++) {
		if (!is_later(s, config, key))
			continue;
		s->later.v[s->later.n++] = key->name;
		changes_tell(changes, NULL,
			"%s has changed, and counts from the server's next start on: systemctl "
			"restart rmemfs-server",
			key->name);
	}
}

void settings_take(struct server *s, struct server_config *config, struct settings_plan *plan,
	struct changes *changes)
{
	if (has_changed(s, config, "log_level"))
		take_log_level(s, config, changes);
	if (plan->reopens)
		take_snapshots(s, config, plan, changes);
	tell_later(s, config, changes);
}
