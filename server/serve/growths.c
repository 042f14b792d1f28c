/* growths.c - see growths.h. */
#include "server/serve/growths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "common/conf/conf.h"
#include "server/memory/export_growth.h"
#include "server/session/client_session.h"
#include "server/session/conn.h"
#include "server/snapshot/snapshot.h"

static struct export *grower(const struct new_exports *new, unsigned i)
{
	const char *name = new->growths.v[i]->name;

	return exports_find(new->server->exports, &(struct rpc_str){name, (uint16_t)strlen(name)});
}

/* ---- what can be refused --------------------------------------------------------------------- */

/* Clients have keys to all of its regions, and over shm mappings, which can't be taken back. */
static int refuse_smaller(const struct export *export, uint64_t size, char *why, size_t whylen)
{
	char have[32], want[32];

	size_format(export->npages * PAGE_BYTES, have, sizeof(have));
	size_format(size, want, sizeof(want));
	snprintf(why, whylen,
		"export '%s' has %s and is configured with %s: it can't be made smaller while it is "
		"served, since clients reach all of its memory: add a smaller export and copy, or "
		"set %s again; a restart with %s makes it smaller, if no mount uses what is to go",
		export->name, have, want, have, want);
	return -EBUSY;
}

static int check_snapshot(
	const struct server *s, const struct export *export, char *why, size_t whylen)
{
	if (!snapshot_is_of(s, export))
		return 0;
	snprintf(why, whylen,
		"export '%s' can't grow while a snapshot of it is written: repeat this after its end",
		export->name);
	return -EBUSY;
}

/* It takes no more data, however large it is. */
static int check_whole(const struct export *export, char *why, size_t whylen)
{
	if (!atomic_load(&export->lost))
		return 0;
	snprintf(why, whylen,
		"export '%s' can't grow: a part of its memory is lost, so it takes no more data: "
		"copy what can still be read, and add another export",
		export->name);
	return -EIO;
}

static uint64_t count_channels(
	const struct server *s, const struct export *export, const struct port *port)
{
	uint64_t n = 0;

	list_for_each (pos, &s->conns) {
		const struct conn *c = list_entry(pos, struct conn, all);

		n += c->port == port && c->session && c->session->export == export;
	}
	return n;
}

static int check_keys(const struct server *s, const struct export *export, uint32_t nregions,
	char *why, size_t whylen)
{
	for (unsigned i = 0; i < s->nports; i++) {
		const struct port *port = &s->ports[i];
		uint64_t n = count_channels(s, export, port);
		uint64_t left = transport_keys_left(port->transport);

		if (n * nregions <= left)
			continue;
		snprintf(why, whylen,
			"export '%s' can't grow by %u regions: its %" PRIu64
			" channels over %s need a key to each, and the device has %" PRIu64
			" left: unmount it where it is not needed, or add another export, with a "
			"larger region_size",
			export->name, nregions, n, port->name, left);
		return -ENOSPC;
	}
	return 0;
}

int growths_plan(struct new_exports *new, struct export *export, const struct export_config *config,
	char *why, size_t whylen)
{
	int err;

	if (config->size < export->npages * PAGE_BYTES)
		return refuse_smaller(export, config->size, why, whylen);
	err = check_whole(export, why, whylen);
	if (!err)
		err = check_snapshot(new->server, export, why, whylen);
	if (!err)
		err = new_exports_plan_growth(new, export, config, why, whylen);
	return err ? err : growths_check(new, why, whylen);
}

int growths_check(const struct new_exports *new, char *why, size_t whylen)
{
	int err = 0;

	for (unsigned i = 0; !err && i < new->growths.n; i++) {
		const struct export *export = grower(new, i);

		err = check_snapshot(new->server, export, why, whylen);
		if (!err)
			err = check_keys(
				new->server, export, new->growths.v[i]->nregions, why, whylen);
	}
	return err;
}

/* ---- in force -------------------------------------------------------------------------------- */

int growths_reserve(const struct new_exports *new)
{
	int err = 0;

	for (unsigned i = 0; !err && i < new->growths.n; i++)
		err = export_growth_reserve(grower(new, i), new->growths.v[i]);
	return err;
}

void growths_describe(const struct new_exports *new, struct meta_export *exports)
{
	for (unsigned i = 0; i < new->growths.n; i++) {
		const struct export *served = grower(new, i), *growth = new->growths.v[i];
		struct meta_export *e = &exports[served->index];

		e->npages = served->npages + growth->npages;
		e->nregions = served->nregions + growth->nregions;
		e->bases = served->bases;
	}
}

void growths_take(struct server *s, struct new_exports *new, struct changes *changes)
{
	for (unsigned i = 0; i < new->growths.n; i++) {
		struct export *export = grower(new, i), *growth = new->growths.v[i];
		char by[32], size[32];

		size_format(growth->npages * PAGE_BYTES, by, sizeof(by));
		export_growth_take(export, growth);
		export_delete(growth);
		size_format(export->npages * PAGE_BYTES, size, sizeof(size));
		changes_tell(changes, export->name, "export '%s' has grown by %s, to %s",
			export->name, by, size);
		/* Requests that wait for pages run again. */
		s->reclaim = true;
	}
	new->growths.n = 0;
}
