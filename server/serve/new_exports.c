/* new_exports.c - see new_exports.h.
 *
 * THREADS  new_exports_begin() starts one thread, and new_exports_end() or new_exports_drop() joins
 *          it. It starts the workers of regions.h.
 */
#include "server/serve/new_exports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/memory/export_growth.h"
#include "server/serve/ports.h"

/* ---- planning -------------------------------------------------------------------------------- */

static void plan_begin(struct new_exports *new)
{
	task_begin(&new->task);
	task_enter(&new->task);
}

static void plan_end(struct new_exports *new, int err, char *why, size_t whylen)
{
	task_enter(NULL);
	if (err)
		task_why(&new->task, err, why, whylen);
	task_end(&new->task);
}

static int keep(struct exports *exports, struct export *export)
{
	int err = exports_add(exports, export);

	if (err)
		export_delete(export);
	return err;
}

/* Nobody has files of this name: those that are there go before it gets its own. */
static int plan(
	struct new_exports *new, const struct export_config *config, char *why, size_t whylen)
{
	const struct server *s = new->server;
	struct memdir dir = s->dir;
	struct export *export = NULL;
	int err;

	dir.content = MEMDIR_NEW;
	plan_begin(new);
	err = export_plan(new->config, &dir, config, s->nports, &export);
	plan_end(new, err, why, whylen);
	if (err)
		return err;
	export->reuse_allowed = true;
	return keep(&new->exports, export);
}

int new_exports_plan_growth(struct new_exports *new, struct export *served,
	const struct export_config *config, char *why, size_t whylen)
{
	const struct server *s = new->server;
	struct export *growth;
	int err;

	plan_begin(new);
	err = export_growth_plan(&s->dir, config->size, s->nports, served, &growth);
	plan_end(new, err, why, whylen);
	return err ? err : keep(&new->growths, growth);
}

int new_exports_plan(
	struct new_exports *new, const struct export_config *config, char *why, size_t whylen)
{
	const struct server *s = new->server;
	bool knows = false;
	int err = meta_knows(s->meta, config->name, &knows);

	if (!err && !knows)
		return plan(new, config, why, whylen);
	if (err) {
		snprintf(why, whylen, "the store can't be read: %s", errno_text(err));
		return err;
	}
	snprintf(why, whylen,
		"export '%s' is in %s since an earlier start: to serve it again, write it into the "
		"configuration and restart the server",
		config->name, s->dir.path);
	return -EEXIST;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void undo_all(const struct server *s, struct exports *exports)
{
	for (unsigned i = 0; i < exports->n; i++) {
		struct export *export = exports->v[i];

		ports_deregister(s, export);
		export_discard_new(export);
		export_delete(export);
	}
	exports->n = 0;
}

static void undo(struct new_exports *new)
{
	undo_all(new->server, &new->exports);
	undo_all(new->server, &new->growths);
	meta_grow_cancel(new->server->meta, &new->growth);
}

/* The bytes of what is mapped, or registered, are freed with that. */
static void give_back_gone(struct new_exports *new)
{
	for (unsigned i = 0; i < new->gone.n; i++) {
		struct export *export = new->gone.v[i];

		export_remove_files(export);
		ports_deregister(new->server, export);
		export_delete(export);
	}
	new->gone.n = 0;
}

static int make_one(const struct new_exports *new, struct export *export)
{
	const struct server *s = new->server;
	int err = task_is_cancelled() ? -ECANCELED : 0;

	if (!err)
		err = exports_remove_files(&s->dir, export->name, export->first);
	if (!err)
		err = export_prepare(export, new->config, &s->dir);
	return err ? err : ports_register(s, export);
}

static int make(struct new_exports *new)
{
	const struct server *s = new->server;
	char why[RPC_TEXT_MAX] = "";
	int err = 0;

	for (unsigned i = 0; !err && i < new->exports.n; i++)
		err = make_one(new, new->exports.v[i]);
	for (unsigned i = 0; !err && i < new->growths.n; i++)
		err = make_one(new, new->growths.v[i]);
	CRASH_POINT("exports.registered");
	if (err)
		return err;
	err = meta_grow_prepare(
		s->meta, server_config_store_bytes(new->config), &new->growth, why, sizeof(why));
	if (err && err != -ECANCELED)
		log_error("%s", why);
	return err;
}

static void pass_to(struct new_exports *new, enum new_exports_state state)
{
	atomic_store(&new->state, state);
	eventfd_write(new->fd, 1);
}

static void *run(void *arg)
{
	struct new_exports *new = arg;

	task_enter(&new->task);
	new->err = make(new);
	if (!new->err) {
		pass_to(new, NEW_EXPORTS_MADE);
		while (sem_wait(&new->settled) != 0)
			;
	}
	undo(new);
	give_back_gone(new);
	pass_to(new, NEW_EXPORTS_ENDED);
	return NULL;
}

int new_exports_begin(struct new_exports *new, char *why, size_t whylen)
{
	int err;

	sem_init(&new->settled, 0, 0);
	task_begin(&new->task);
	atomic_store(&new->state, NEW_EXPORTS_MAKING);
	err = -pthread_create(&new->thread, NULL, run, new);
	if (!err)
		return 0;
	atomic_store(&new->state, NEW_EXPORTS_IDLE);
	task_end(&new->task);
	sem_destroy(&new->settled);
	snprintf(why, whylen, "can't start a thread: %s", errno_text(err));
	return err;
}

void new_exports_cancel(struct new_exports *new)
{
	if (atomic_load(&new->state) != NEW_EXPORTS_IDLE)
		task_cancel(&new->task);
}

void new_exports_settle(struct new_exports *new)
{
	sem_post(&new->settled);
}

int new_exports_end(struct new_exports *new, char *why, size_t whylen)
{
	pthread_join(new->thread, NULL);
	atomic_store(&new->state, NEW_EXPORTS_IDLE);
	if (new->err == -ECANCELED)
		snprintf(why, whylen, "the server is stopping");
	else if (new->err)
		task_why(&new->task, new->err, why, whylen);
	task_end(&new->task);
	sem_destroy(&new->settled);
	return new->err;
}

void new_exports_drop(struct new_exports *new)
{
	char why[RPC_TEXT_MAX];

	if (atomic_load(&new->state) != NEW_EXPORTS_IDLE) {
		new_exports_cancel(new);
		new_exports_settle(new);
		new_exports_end(new, why, sizeof(why));
	}
	undo(new); /* those that were planned, and never begun */
	free(new->exports.v);
	free(new->growths.v);
	free(new->gone.v);
	new->exports = new->growths = new->gone = (struct exports){0};
}
