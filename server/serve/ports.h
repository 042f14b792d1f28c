/* ports.h - the addresses where the server listens. Each address of `listen` has a transport, with
 * the regions of all exports registered, and a listener.
 *
 * OWNERSHIP  ports_open() makes server.ports; ports_close() closes them, also after a failure.
 * THREADS    The metadata thread, but where said.
 * ERRORS     0 or -errno; the reason, and what can be done, is logged.
 */
#ifndef RMEMFS_SERVER_SERVE_PORTS_H
#define RMEMFS_SERVER_SERVE_PORTS_H

#include "server/session/context.h"

int ports_open(struct server *s);
void ports_close(struct server *s);

/* Registers the regions of one more export with all ports; seconds for large ones. Any thread:
 * nobody else knows the export. After an error ports_deregister() takes back what was done; it is
 * also for an export that no channel has keys to any more. */
int ports_register(const struct server *s, struct export *export);
void ports_deregister(const struct server *s, const struct export *export);

/* The TCP ports of all addresses of tcp, in host byte order: at most config->listen.n. Returns
 * their number. */
size_t ports_of_tcp(const struct server_config *config, uint16_t *ports);

/* Checks whether all of them could be opened, and leaves none open. Logs each problem as
 * ports_open() would, and returns the first. nregions: of all exports. */
struct ports_look {
	uint32_t nregions;
	bool restart;    /* a running server may have the addresses, and ends before the start */
	const char *dir; /* systemd makes it; or NULL */
};
int ports_look(const struct server_config *config, const struct ports_look *look);

#endif
