/* reload.c - see reload.h.
 *
 *     idle --read--> clients renewed --> exports applied or refused --------------> finished
 *                                  `--> the thread makes memory --> applied or refused --> the
 *                                       thread has ended (after it took back what is refused, and
 *                                       freed what was removed) --------------------------------^
 */
#include "server/serve/reload.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/service.h"
#include "common/base/util.h"
#include "server/access/access_current.h"
#include "server/access/access_report.h"
#include "server/base/exit_status.h"
#include "server/config/options.h"
#include "server/serve/changes.h"
#include "server/serve/growths.h"
#include "server/serve/new_exports.h"
#include "server/serve/removals.h"
#include "server/serve/start.h"
#include "server/session/permit.h"

struct reload {
	bool working;
	bool again;   /* another one was asked for meanwhile */
	bool clients; /* the new table is in force */
	struct server_config config;
	struct new_exports new;
	struct removals removals;
	bool settled; /* the thread has made all, and this is in force or was refused */
	int err;      /* of that, and why */
	char why[RPC_TEXT_MAX];
	struct changes changes;
	struct list asking, later; /* client_request: of this reload, and of the next */
};

int reload_new(struct server *s)
{
	struct reload *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	list_init(&r->asking);
	list_init(&r->later);
	r->new.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (r->new.fd < 0) {
		int err = -errno;

		free(r);
		return err;
	}
	s->reload = r;
	return 0;
}

int reload_fd(const struct server *s)
{
	return s->reload->new.fd;
}

/* Frees all that was read and made, and is not in force. */
static void drop(struct reload *r)
{
	new_exports_drop(&r->new);
	removals_fini(&r->removals);
	server_config_fini(&r->config);
	changes_fini(&r->changes);
	r->working = r->clients = r->settled = false;
}

void reload_delete(struct server *s)
{
	struct reload *r = s->reload;

	if (!r)
		return;
	if (r->working)
		drop(r);
	close(r->new.fd);
	free(r);
	s->reload = NULL;
}

/* ---- clients --------------------------------------------------------------------------------- */

/* A served export that no file has any more stays, and with it its clients. */
static int make_table(
	struct server *s, const char **names, struct access_table **out, char *why, size_t whylen)
{
	const struct server_config *config = &s->reload->config;
	struct access_table *before = access_current_get(&s->access);
	struct access_kept kept = {before, names, 0};
	int err;

	for (unsigned i = 0; i < s->exports->n; i++)
		if (!server_config_find(config, s->exports->v[i]->name))
			names[kept.n++] = s->exports->v[i]->name;
	err = access_table_new(config, &kept, out, why, whylen);
	access_table_put(before);
	return err;
}

/* Of exports that have gone: their keys don't count any more. */
static void renew_after_removal(struct server *s)
{
	autofree const char **names = calloc(s->exports->n + 1, sizeof(*names));
	struct access_table *table;
	char why[RPC_TEXT_MAX] = "out of memory";

	if (!names || make_table(s, names, &table, why, sizeof(why)) || permit_renew(s, table) < 0)
		log_warning("keys of removed exports count until the next reload: %s", why);
}

/* Takes rights away at once, whatever becomes of the exports. */
static int renew_clients(struct server *s, char *why, size_t whylen)
{
	autofree const char **names = calloc(s->exports->n + 1, sizeof(*names));
	struct access_table *table;
	size_t nkeys;
	int err, closed;

	if (!names)
		return -ENOMEM;
	err = make_table(s, names, &table, why, whylen);
	if (err)
		return err;
	nkeys = table->nkeys;
	access_report_warn(table, &s->reload->config);
	closed = permit_renew(s, table);
	if (closed < 0) {
		snprintf(why, whylen, "out of memory");
		return closed;
	}
	s->reload->clients = true;
	changes_tell(&s->reload->changes, NULL,
		"reloaded the clients of the exports, with %zu key%s; %d channel%s closed", nkeys,
		nkeys == 1 ? "" : "s", closed, closed == 1 ? "" : "s");
	return 0;
}

/* ---- exports: what is to change -------------------------------------------------------------- */

static int refuse_missing(
	const struct server *s, const struct export *export, char *why, size_t whylen)
{
	char size[32], users[USERS_BYTES];

	size_format(export->npages * PAGE_BYTES, size, sizeof(size));
	if (s->config->built_in && server_config_find(s->config, export->name))
		snprintf(why, whylen,
			"export '%s' is the built-in one of a configuration without exports, and "
			"another would end it: write it down first ('rmemfsctl export add %s %s'), "
			"or restart the server without it",
			export->name, export->name, size);
	else if (removals_users(s, export, users, sizeof(users)))
		snprintf(why, whylen,
			"export '%s' is served, and no configuration has it any more: put it back: "
			"it is in use by %s",
			export->name, users);
	else
		snprintf(why, whylen,
			"export '%s' is served, and no configuration has it any more: put it back, "
			"or run 'rmemfsctl export remove %s --yes', which ends it with all files",
			export->name, export->name);
	return -EBUSY;
}

/* Its size may have changed. */
static int plan_served(const struct server *s, struct export *export, char *why, size_t whylen)
{
	const struct export_config *config = server_config_find(&s->reload->config, export->name);

	if (!config)
		return refuse_missing(s, export, why, whylen);
	if (config->size == export->npages * PAGE_BYTES)
		return 0;
	return growths_plan(&s->reload->new, export, config, why, whylen);
}

static int plan_new(struct reload *r, char *why, size_t whylen)
{
	struct exports *served = r->new.server->exports;
	int err = 0;

	for (size_t i = 0; !err && i < r->config.exports.n; i++) {
		const struct export_config *config = server_config_export(&r->config, i);
		const struct rpc_str name = {config->name, (uint16_t)strlen(config->name)};

		if (!exports_find(served, &name))
			err = new_exports_plan(&r->new, config, why, whylen);
	}
	return err;
}

/* Also larger shares of the metadata do. Removed exports give it back, which takes as long. */
static bool takes_memory(struct server *s)
{
	struct meta_usage usage;

	meta_usage(s->meta, 0, &usage);
	return s->reload->new.exports.n || s->reload->new.growths.n || s->reload->removals.n ||
	       usage.store_bytes < server_config_store_bytes(&s->reload->config);
}

static unsigned count_indexes(const struct exports *exports, unsigned n)
{
	for (unsigned i = 0; i < exports->n; i++)
		n = exports->v[i]->index < n ? n : exports->v[i]->index + 1;
	return n;
}

/* By their indexes in the store. Those that go, or went before, have no name. NULL: no memory. */
static struct meta_export *describe_all(struct server *s, struct meta_config *config)
{
	struct reload *r = s->reload;
	struct meta_export *exports;
	unsigned n;

	for (unsigned i = 0; i < r->new.exports.n; i++)
		exports_set_index(r->new.exports.v[i], s->exports, &r->new.exports);
	n = count_indexes(&r->new.exports, count_indexes(s->exports, meta_nexports(s->meta)));
	exports = calloc(n + 1, sizeof(*exports));
	for (unsigned i = 0; exports && i < s->exports->n; i++) {
		const struct export *export = s->exports->v[i];

		if (!removals_has(&r->removals, export))
			start_describe(&r->config, export, &exports[export->index]);
	}
	for (unsigned i = 0; exports && i < r->new.exports.n; i++)
		start_describe(
			&r->config, r->new.exports.v[i], &exports[r->new.exports.v[i]->index]);
	*config = (struct meta_config){
		.store_bytes = server_config_store_bytes(&r->config),
		.exports = exports,
		.nexports = n,
	};
	return exports;
}

/* Refuses all that can be told before there is memory. */
static int plan_exports(struct server *s, char *why, size_t whylen)
{
	autofree struct meta_export *exports = NULL;
	struct meta_config config;
	struct reload *r = s->reload;
	int err = removals_check(s, &r->config, &r->removals, why, whylen);

	for (unsigned i = 0; !err && i < s->exports->n; i++)
		if (!removals_has(&r->removals, s->exports->v[i]))
			err = plan_served(s, s->exports->v[i], why, whylen);
	if (!err)
		err = plan_new(r, why, whylen);
	if (!err)
		err = removals_drop(&r->removals, &r->config, why, whylen);
	if (err)
		return err;
	exports = describe_all(s, &config);
	return exports ? meta_may_reconfigure(s->meta, &config, why, whylen) : -ENOMEM;
}

/* ---- exports: what changes ------------------------------------------------------------------- */

static int reconfigure(struct server *s, char *why, size_t whylen)
{
	struct reload *r = s->reload;
	struct meta_config config;
	autofree struct meta_export *exports = describe_all(s, &config);

	if (!exports || exports_reserve(s->exports, r->new.exports.n) ||
		exports_reserve(&r->new.gone, r->removals.n) || growths_reserve(&r->new)) {
		snprintf(why, whylen, "out of memory");
		return -ENOMEM;
	}
	growths_describe(&r->new, exports);
	return meta_reconfigure(s->meta, &config, &r->new.growth, why, whylen);
}

/* The store can't be used any more. Everything acknowledged is in it. */
static void reload_give_up(const char *why)
{
	log_error("%s: the server ends, and its next start goes on with all files", why);
	_exit(SERVER_FAILED);
}

static const char *name_limit(uint64_t limit, char buf[32])
{
	snprintf(buf, 32, "%" PRIu64, limit);
	return limit ? buf : "no limit";
}

static void set_inodes(struct changes *changes, struct export *export, uint64_t inodes)
{
	char before[32], after[32];

	if (inodes != export->max_inodes)
		changes_tell(changes, export->name, "export '%s': inodes: %s -> %s", export->name,
			name_limit(export->max_inodes, before), name_limit(inodes, after));
	export->max_inodes = inodes;
}

static void serve_new(struct server *s)
{
	struct reload *r = s->reload;
	char size[32];

	for (unsigned i = 0; i < s->exports->n; i++) {
		const struct export_config *config =
			server_config_find(&r->config, s->exports->v[i]->name);

		set_inodes(&r->changes, s->exports->v[i], config->inodes);
		export_set_file(s->exports->v[i], config->path);
	}
	for (unsigned i = 0; i < r->new.exports.n; i++) {
		struct export *export = r->new.exports.v[i];

		exports_append(s->exports, export);
		size_format(export->npages * PAGE_BYTES, size, sizeof(size));
		changes_tell(&r->changes, export->name, "export '%s' is added, with %s",
			export->name, size);
	}
	r->new.exports.n = 0;
}

static bool is_stopping(const struct server *s)
{
	return s->leaving || s->stopping;
}

/* No answer has -ECANCELED: see rpc_reply.c. */
static int refuse_stopping(char *why, size_t whylen)
{
	snprintf(why, whylen, "the server is stopping");
	return -ESHUTDOWN;
}

static void put_in_force(struct server *s)
{
	struct reload *r = s->reload;
	bool removes = r->removals.n;

	removals_take(s, &r->removals, &r->new.gone, &r->changes);
	growths_take(s, &r->new, &r->changes);
	serve_new(s);
	if (removes)
		renew_after_removal(s);
}

static int apply(struct server *s, char *why, size_t whylen)
{
	int err;

	if (is_stopping(s))
		return refuse_stopping(why, whylen);
	err = removals_check_users(s, &s->reload->removals, why, whylen);
	if (!err)
		err = growths_check(&s->reload->new, why, whylen);
	if (err)
		return err;
	removals_count(s, &s->reload->removals);
	err = reconfigure(s, why, whylen);
	if (err == -ENOTRECOVERABLE)
		reload_give_up(why);
	CRASH_POINT("reload.stored");
	if (!err)
		put_in_force(s);
	return err;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static void tell_refused(const struct reload *r, const char *why, char text[RPC_TEXT_MAX])
{
	const char *left = r->clients ? "the clients and keys are reloaded, the exports are not"
				      : "nothing is reloaded";

	/* An answer has no room for more. */
	snprintf(text, RPC_TEXT_MAX, "%s: %.*s", left, (int)(RPC_TEXT_MAX - strlen(left) - 3), why);
}

/* text: the reason, or what has changed; NULL: that can't be told. An admin's channel has time to
 * close from the answer on, since a reload may take longer than a channel may be without a session.
 */
static void answer_all(struct list *asking, int err, const char *text)
{
	struct rpc_reply rep = {0};

	if (text) {
		rep.status_text.total = rep.status_text.tail.len = (uint32_t)strlen(text);
		rep.status_text.tail.data = (const uint8_t *)text;
	}
	for (struct list *pos; (pos = list_pop(asking));) {
		struct client_request *req = list_entry(pos, struct client_request, link);

		list_init(&req->link);
		req->conn->since_ms = now_ms();
		if (err)
			client_request_deny(req, err, "see the line before", text);
		else
			client_request_answer(req, &rep);
	}
}

static void finish(struct server *s, int err, const char *why)
{
	struct reload *r = s->reload;
	autofree char *changed = err ? NULL : changes_text(&r->changes);
	char text[RPC_TEXT_MAX];

	if (err) {
		tell_refused(r, why, text);
		log_event(LOG_LEVEL_ERROR, &(struct log_fields){.event = "reload", .reason = why},
			"%s", text);
	}
	drop(r);
	if (!is_stopping(s))
		service_ready();
	/* control_tick() tells how much is served. */
	s->nsessions_told = UINT_MAX;
	answer_all(&r->asking, err, err ? text : changed);
	if (!r->again)
		return;
	r->again = false;
	list_splice_tail(&r->asking, &r->later);
	reload_begin(s);
}

/* True: the thread works on, and reload_event() follows. */
static bool reload_step(struct server *s, int *err, char *why, size_t whylen)
{
	struct reload *r = s->reload;

	snprintf(why, whylen, "out of memory");
	*err = server_options_again(s->config, &r->config, why, whylen);
	if (!*err)
		*err = removals_read(s, &r->config, &r->removals, why, whylen);
	if (!*err)
		*err = renew_clients(s, why, whylen);
	if (!*err)
		*err = plan_exports(s, why, whylen);
	if (!*err && takes_memory(s)) {
		*err = new_exports_begin(&r->new, why, whylen);
		return !*err;
	}
	if (!*err)
		*err = apply(s, why, whylen);
	return false;
}

void reload_begin(struct server *s)
{
	struct reload *r = s->reload;
	char why[RPC_TEXT_MAX];
	int err;

	if (r->working) {
		r->again = true;
		return;
	}
	r->working = true;
	r->new.server = s;
	r->new.config = &r->config;
	server_config_init(&r->config);
	if (is_stopping(s)) {
		finish(s, refuse_stopping(why, sizeof(why)), why);
		return;
	}
	service_reloading();
	if (!reload_step(s, &err, why, sizeof(why)))
		finish(s, err, why);
}

void reload_event(struct server *s)
{
	struct reload *r = s->reload;
	eventfd_t n;
	int err;

	eventfd_read(r->new.fd, &n);
	switch (atomic_load(&r->new.state)) {
	case NEW_EXPORTS_MADE:
		if (r->settled)
			return;
		r->err = apply(s, r->why, sizeof(r->why));
		r->settled = true;
		new_exports_settle(&r->new);
		return;
	case NEW_EXPORTS_ENDED:
		err = new_exports_end(&r->new, r->why, sizeof(r->why));
		finish(s, err ? err : r->err, r->why);
		return;
	default:
		return;
	}
}

/* A change that is not in force now will never be. So all that wait get their answer before the
 * channels close, and the thread takes its time. */
void reload_stop(struct server *s)
{
	struct reload *r = s->reload;
	char why[RPC_TEXT_MAX], text[RPC_TEXT_MAX];
	int err;

	if (!r->working)
		return;
	new_exports_cancel(&r->new);
	err = refuse_stopping(why, sizeof(why));
	tell_refused(r, why, text);
	if (!r->settled)
		answer_all(&r->asking, err, text);
	answer_all(&r->later, err, text);
	r->again = false;
}

void reload_request(struct client_request *req)
{
	struct server *s = req->conn->server;

	if (!conn_is_admin(req->conn)) {
		client_request_refuse(req, -EPERM,
			"a reload is for root and the server's user, by the socket on the "
			"server's machine");
		return;
	}
	list_add_tail(s->reload->working ? &s->reload->later : &s->reload->asking, &req->link);
	reload_begin(s);
}
