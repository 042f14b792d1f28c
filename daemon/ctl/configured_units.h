/* configured_units.h - services of rmemfs that are to run, and do not, as systemd tells by D-Bus.
 * See configured.h for the list.
 *
 * root asks systemd by its own socket, which needs no bus; other users by the system's bus.
 *
 * THREADS    Any; a bus belongs to its caller.
 * ERRORS     0 or -errno; -ETIMEDOUT after limit_ms.
 * SOURCE     org.freedesktop.systemd1(5)
 */
#ifndef RMEMFS_DAEMON_CTL_CONFIGURED_UNITS_H
#define RMEMFS_DAEMON_CTL_CONFIGURED_UNITS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct sd_bus;

/* A unit, as systemd describes it. */
struct configured_unit {
	const char *name, *active, *sub; /* "rmemfs@data.service", "activating", "auto-restart" */
	bool job;                        /* systemd is about to start or stop it */
	bool enabled;
	uint32_t restarts; /* without an administrator */
	const char *result, *status;
};

/* Its object of the list; NULL: it runs, or need not. */
json_t *configured_units_judge(const struct configured_unit *unit);
/* Appends to the list. 0 where systemd does not run. */
int configured_units_list(unsigned limit_ms, json_t *list);
/* The same by a bus that was started. */
int configured_units_ask(struct sd_bus *bus, unsigned limit_ms, json_t *list);

#endif
