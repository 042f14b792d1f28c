/* ports.h - where the server listens: for each address of `listen` a transport, with all regions
 * registered, and a listener.
 *
 * OWNERSHIP  ports_open() makes server.ports, ports_close() closes them; also after a failure.
 * THREADS    The metadata thread.
 * ERRORS     0 or -errno; the reason, and what can be done, is logged.
 */
#ifndef RMEMFS_SERVER_SERVE_PORTS_H
#define RMEMFS_SERVER_SERVE_PORTS_H

#include "server/session/context.h"

int ports_open(struct server *s);
void ports_close(struct server *s);

/* Whether all of them could be opened, and nothing is: what is in the way is logged, each as
 * ports_open() would; returns the first. nregions: of all exports. */
struct ports_look {
	uint32_t nregions;
	bool restart;    /* a server runs that may have the addresses, and ends before */
	const char *dir; /* made by who starts the server; or NULL */
};
int ports_look(const struct server_config *config, const struct ports_look *look);

/* A warning for each address that others can reach than those who may open a socket file. */
void ports_warn_exposed(const struct server_config *config);

#endif
