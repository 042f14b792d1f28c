#include "daemon/ctl/configured_units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"

enum { US_PER_MS = 1000 };

#define MANAGER      "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define UNIT         "(ssssssouso)"

struct asking {
	sd_bus *bus;
	int64_t until_ms;
	const char *path; /* of the unit that is looked at */
};

/* ---- the judgement --------------------------------------------------------------------------- */

/* NULL: it runs, or need not. */
static const char *state_of(const struct configured_unit *u)
{
	if (strcmp(u->active, "failed") == 0)
		return "failed";
	if (strcmp(u->active, "activating") == 0)
		return u->restarts || strncmp(u->sub, "auto-restart", 12) == 0 ? "restarting"
									       : "starting";
	if (strcmp(u->active, "inactive") == 0 && u->enabled)
		return u->job ? "starting" : "stopped";
	return NULL;
}

/* systemd's word for a start that did not fail. */
static const char *reason(const char *result)
{
	return result && strcmp(result, "success") != 0 ? result : "";
}

json_t *configured_units_judge(const struct configured_unit *u)
{
	const char *state = state_of(u);

	if (!state)
		return NULL;
	return json_pack("{s:s, s:s, s:b, s:s, s:s, s:s}", "kind",
		strchr(u->name, '@') ? "mount" : "server", "name", u->name, "unit", 1, "state",
		state, "result", reason(u->result), "status", u->status ? u->status : "");
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Each question has what is left of the time. */
static int limit(const struct asking *a)
{
	int64_t left = a->until_ms - now_ms();

	if (left <= 0)
		return -ETIMEDOUT;
	return sd_bus_set_method_call_timeout(a->bus, (uint64_t)left * US_PER_MS);
}

static int await_ready(const struct asking *a)
{
	int r = sd_bus_is_ready(a->bus);

	while (r == 0) {
		int64_t left = a->until_ms - now_ms();

		if (left <= 0)
			return -ETIMEDOUT;
		r = sd_bus_process(a->bus, NULL);
		if (r == 0)
			r = sd_bus_wait(a->bus, (uint64_t)left * US_PER_MS);
		if (r >= 0 || r == -EINTR)
			r = sd_bus_is_ready(a->bus);
	}
	return r < 0 ? r : 0;
}

/* The caller frees it; NULL: not told. */
static char *text_of(const struct asking *a, const char *interface, const char *name)
{
	char *text = NULL;

	if (limit(a) >= 0)
		sd_bus_get_property_string(a->bus, MANAGER, a->path, interface, name, NULL, &text);
	return text;
}

static uint32_t restarts_of(const struct asking *a)
{
	uint32_t n = 0;

	if (limit(a) >= 0)
		sd_bus_get_property_trivial(
			a->bus, MANAGER, a->path, MANAGER ".Service", "NRestarts", NULL, 'u', &n);
	return n;
}

static bool runs(const struct configured_unit *u)
{
	return strcmp(u->active, "activating") != 0 && strcmp(u->active, "failed") != 0 &&
	       strcmp(u->active, "inactive") != 0;
}

static int look(const struct asking *a, struct configured_unit *u, json_t *list)
{
	autofree char *enabled = text_of(a, MANAGER ".Unit", "UnitFileState");
	autofree char *result = text_of(a, MANAGER ".Service", "Result");
	autofree char *status = text_of(a, MANAGER ".Service", "StatusText");
	json_t *object;

	u->enabled = enabled && strncmp(enabled, "enabled", 7) == 0;
	u->restarts = restarts_of(a);
	u->result = result;
	u->status = status;
	object = configured_units_judge(u);
	if (object)
		json_array_append_new(list, object);
	return now_ms() < a->until_ms ? 0 : -ETIMEDOUT;
}

static int look_at_all(struct asking *a, sd_bus_message *units, json_t *list)
{
	const char *text, *load, *object;
	struct configured_unit u = {0};
	uint32_t job;
	int r = sd_bus_message_enter_container(units, 'a', UNIT);

	while (r >= 0) {
		r = sd_bus_message_read(units, UNIT, &u.name, &text, &load, &u.active, &u.sub,
			&text, &a->path, &job, &text, &object);
		if (r <= 0)
			break;
		u.job = job != 0;
		if (strcmp(load, "loaded") == 0 && !runs(&u))
			r = look(a, &u, list);
	}
	return r < 0 ? r : 0;
}

int configured_units_ask(sd_bus *bus, unsigned limit_ms, json_t *list)
{
	struct asking a = {.bus = bus, .until_ms = now_ms() + limit_ms};
	sd_bus_message *units = NULL;
	int r = await_ready(&a);

	if (r >= 0)
		r = limit(&a);
	if (r >= 0)
		r = sd_bus_call_method(bus, MANAGER, MANAGER_PATH, MANAGER ".Manager",
			"ListUnitsByPatterns", NULL, &units, "asas", 0, 2, "rmemfs@*.service",
			"rmemfs-server.service");
	if (r >= 0)
		r = look_at_all(&a, units, list);
	sd_bus_message_unref(units);
	return r < 0 ? r : 0;
}

/* ---- the bus --------------------------------------------------------------------------------- */

static int open_private(sd_bus **bus)
{
	int r = sd_bus_new(bus);

	if (r >= 0)
		r = sd_bus_set_address(*bus, "unix:path=/run/systemd/private");
	if (r >= 0)
		r = sd_bus_start(*bus);
	if (r < 0)
		*bus = sd_bus_close_unref(*bus);
	return r;
}

int configured_units_list(unsigned limit_ms, json_t *list)
{
	sd_bus *bus = NULL;
	int r = -EACCES;

	if (sd_booted() <= 0)
		return 0;
	if (geteuid() == 0)
		r = open_private(&bus);
	if (r < 0)
		r = sd_bus_open_system(&bus);
	if (r < 0)
		return r;
	r = configured_units_ask(bus, limit_ms, list);
	sd_bus_close_unref(bus);
	return r;
}
