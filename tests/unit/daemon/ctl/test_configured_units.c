/* test_configured_units.c - units that systemd tells of. A peer that speaks D-Bus stands in the place of
 * systemd, which no test may touch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/ctl/configured.h"
#include "daemon/ctl/configured_units.h"
#include "daemon/ctl/json.h"

enum { LIMIT_MS = 10000, SHORT_MS = 50 };

static json_t *list;

static int set_up(void **state)
{
	list = json_array();
	return list ? 0 : -1;
}

static int tear_down(void **state)
{
	json_decref(list);
	return 0;
}

static void assert_listed(size_t i, const char *kind, const char *name, const char *state)
{
	const json_t *each = json_array_get(list, i);

	assert_string_equal(ctl_json_text(each, "kind"), kind);
	assert_string_equal(ctl_json_text(each, "name"), name);
	assert_string_equal(ctl_json_text(each, "state"), state);
	assert_true(json_is_true(json_object_get(each, "unit")));
}

/* ---- the judgement --------------------------------------------------------------------------- */

static void judge(const char *active, const char *sub, bool enabled, bool job, uint32_t restarts)
{
	json_t *made = configured_units_judge(&(struct configured_unit){.name = "rmemfs@a.service",
		.active = active,
		.sub = sub,
		.enabled = enabled,
		.job = job,
		.restarts = restarts});

	json_array_clear(list);
	if (made)
		json_array_append_new(list, made);
}

static void judge__each_state(void **state)
{
	judge("active", "running", true, false, 0);
	assert_int_equal(json_array_size(list), 0);
	judge("inactive", "dead", false, false, 0);
	assert_int_equal(json_array_size(list), 0);
	judge("inactive", "dead", true, false, 0);
	assert_listed(0, "mount", "rmemfs@a.service", "stopped");
	judge("inactive", "dead", true, true, 0);
	assert_listed(0, "mount", "rmemfs@a.service", "starting");
	judge("failed", "failed", false, false, 0);
	assert_listed(0, "mount", "rmemfs@a.service", "failed");
	judge("activating", "start", true, false, 0);
	assert_listed(0, "mount", "rmemfs@a.service", "starting");
	judge("activating", "start", true, false, 1);
	assert_listed(0, "mount", "rmemfs@a.service", "restarting");
	judge("activating", "auto-restart-queued", true, false, 0);
	assert_listed(0, "mount", "rmemfs@a.service", "restarting");
}

/* ---- questions ------------------------------------------------------------------------------- */

static const struct unit {
	const char *name, *load, *active, *sub, *path, *enabled, *result, *status;
	uint32_t restarts;
} units[] = {
	{"rmemfs@a.service", "loaded", "activating", "auto-restart", "/u/a", "enabled", "exit-code",
		"no server at 10.0.0.1", 3},
	{"rmemfs@b.service", "loaded", "active", "running", "/u/b", "enabled", "success", "", 0},
	{"rmemfs@c.service", "not-found", "inactive", "dead", "/u/c", "enabled", "success", "", 0},
	{"rmemfs@d.service", "loaded", "inactive", "dead", "/u/d", "disabled", "success", "", 0},
	{"rmemfs-server.service", "loaded", "inactive", "dead", "/u/s", "enabled", "success", "",
		0},
};

static int put_units(sd_bus_message *reply)
{
	sd_bus_message_open_container(reply, 'a', "(ssssssouso)");
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		sd_bus_message_append(reply, "(ssssssouso)", units[i].name, "a text", units[i].load,
			units[i].active, units[i].sub, "", units[i].path, 0, "", "/");
	return sd_bus_message_close_container(reply);
}

static int put_property(sd_bus_message *reply, const struct unit *u, const char *name)
{
	if (strcmp(name, "NRestarts") == 0)
		return sd_bus_message_append(reply, "v", "u", u->restarts);
	return sd_bus_message_append(reply, "v", "s",
		strcmp(name, "UnitFileState") == 0 ? u->enabled
		: strcmp(name, "Result") == 0      ? u->result
						   : u->status);
}

static int answer(sd_bus_message *m, void *data, sd_bus_error *error)
{
	const char *interface, *name;
	sd_bus_message *reply = NULL;

	if (sd_bus_message_new_method_return(m, &reply) < 0)
		return 0;
	if (sd_bus_message_is_method_call(
		    m, "org.freedesktop.systemd1.Manager", "ListUnitsByPatterns"))
		put_units(reply);
	else if (sd_bus_message_read(m, "ss", &interface, &name) > 0)
		for (size_t i = 0; i < ARRAY_SIZE(units); i++)
			if (strcmp(units[i].path, sd_bus_message_get_path(m)) == 0)
				put_property(reply, &units[i], name);
	sd_bus_send(sd_bus_message_get_bus(m), reply, NULL);
	sd_bus_message_unref(reply);
	return 1;
}

static void *serve(void *arg)
{
	int fd = *(int *)arg;
	sd_bus *bus;
	int r;

	sd_bus_new(&bus);
	sd_bus_set_fd(bus, fd, fd);
	sd_bus_set_server(bus, true, (sd_id128_t){.bytes = {1}});
	sd_bus_add_filter(bus, NULL, answer, NULL);
	r = sd_bus_start(bus);
	while (r >= 0) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
	}
	sd_bus_close_unref(bus);
	return NULL;
}

static sd_bus *begin(int fd)
{
	sd_bus *bus;

	assert_return_code(sd_bus_new(&bus), 0);
	assert_return_code(sd_bus_set_fd(bus, fd, fd), 0);
	assert_return_code(sd_bus_start(bus), 0);
	return bus;
}

static void ask__units_that_do_not_run(void **state)
{
	pthread_t thread;
	sd_bus *bus;
	int fds[2];

	assert_return_code(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), errno);
	assert_int_equal(pthread_create(&thread, NULL, serve, &fds[1]), 0);
	bus = begin(fds[0]);
	assert_int_equal(configured_units_ask(bus, LIMIT_MS, list), 0);
	sd_bus_close_unref(bus);
	pthread_join(thread, NULL);
	assert_int_equal(json_array_size(list), 2);
	assert_listed(0, "mount", "rmemfs@a.service", "restarting");
	assert_string_equal(ctl_json_text(json_array_get(list, 0), "result"), "exit-code");
	assert_string_equal(
		ctl_json_text(json_array_get(list, 0), "status"), "no server at 10.0.0.1");
	assert_listed(1, "server", "rmemfs-server.service", "stopped");
	assert_string_equal(ctl_json_text(json_array_get(list, 1), "result"), "");
	assert_int_equal(configured_count(list, "mount"), 1);
}

static void ask__nobody_answers(void **state)
{
	sd_bus *bus;
	int fds[2];

	assert_return_code(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), errno);
	bus = begin(fds[0]);
	assert_int_equal(configured_units_ask(bus, SHORT_MS, list), -ETIMEDOUT);
	sd_bus_close_unref(bus);
	close(fds[1]);
	assert_int_equal(json_array_size(list), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(judge__each_state),
		CASE(ask__units_that_do_not_run),
		CASE(ask__nobody_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
