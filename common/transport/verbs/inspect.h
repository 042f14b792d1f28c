/* inspect.h - what a user may want to know of this machine's RDMA devices, and of the way from one
 * of them to an address. It opens no transport, and changes nothing.
 *
 * OWNERSHIP  The caller's structs are filled; nothing is kept.
 * THREADS    Any.
 * ERRORS     0 or -errno. librdmacm and the providers may write to standard error.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_VERBS_INSPECT_H
#define RMEMFS_COMMON_TRANSPORT_VERBS_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/transport.h"

enum { VERBS_DEVICES_MAX = 16, VERBS_PORTS_MAX = 2, VERBS_NAME_BYTES = 64 };

struct verbs_port {
	bool ethernet;       /* RoCE; else InfiniBand */
	char state[16];      /* "active", "down", "init", "armed", or "unknown" */
	uint32_t active_mtu; /* bytes; 0: unknown */
	uint32_t max_mtu;    /* bytes */
	uint32_t mbit;       /* the link's rate: 25000; 0: unknown */
	unsigned ngids;      /* filled entries of the GID table */
	unsigned nroce_v2;   /* of these: RoCE v2 */
	unsigned nrouted;    /* of these: RoCE v2 made of an address, not of the link alone */
	unsigned interface;  /* index of the GIDs' network interface; 0: none */
	char gid[48];        /* a GID that a connection may use, as an IPv6 address; "": none */
};

struct verbs_device {
	char name[VERBS_NAME_BYTES];
	int err; /* -errno: it can't be opened or asked, and all below is zero */
	uint64_t guid;
	char firmware[64];
	bool iwarp;
	bool adapter; /* a channel adapter, as rmemfs needs it */
	bool windows; /* type 2 memory windows: a key for each channel without a registration */
	bool odp;     /* registration without locking the memory */
	unsigned nports;
	struct verbs_port ports[VERBS_PORTS_MAX];
};

/* Fills up to `max` devices; *n is the number of all. */
int verbs_inspect_devices(struct verbs_device *devices, unsigned max, unsigned *n);

/* librdmacm complains on standard error if there is no device, so ask first. */
bool verbs_any_device(void);

/* The steps of the connection manager before a connection. */
enum verbs_step { VERBS_STEP_MANAGER, VERBS_STEP_ADDRESS, VERBS_STEP_ROUTE, VERBS_STEP_DONE };

struct verbs_path {
	enum verbs_step step; /* the one that failed */
	char device[VERBS_NAME_BYTES];
	unsigned port;
	uint32_t mtu; /* of the path, in bytes; 0: unknown */
};

/* Resolves a peer's address and the route to it. Blocks up to timeout_ms for each. -ENODEV: no
 * device leads there. path is filled as far as it came. */
int verbs_inspect_path(
	const struct transport_address *address, int timeout_ms, struct verbs_path *path);

#endif
