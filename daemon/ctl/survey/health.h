/* health.h - `rmemfsctl health`: one answer for monitoring, whether this machine's mounts and its
 * server are well.
 *
 * Nothing touches a mount, and nothing waits for long: a second for each mount, 3 s for the server,
 * the resolver's time aside, 3 s for the way of a mount's verbs, and 2 s for systemd.
 */
#ifndef RMEMFS_DAEMON_CTL_SURVEY_HEALTH_H
#define RMEMFS_DAEMON_CTL_SURVEY_HEALTH_H

#include <stdbool.h>

struct health_wish {
	const char *where;    /* a server, or a place where rmemfs is mounted: that alone; NULL: all
				 of this machine */
	const char *key_file; /* NULL: none */
	unsigned snapshot_max; /* hours; 0: snapshots may have any age */
	bool json;
};

/* Prints the findings, the worst first. Returns an exit status: CTL_HEALTH_OK and so on (args.h).
 */
int health_run(const struct health_wish *wish);

#endif
