/* address.h - parses the addresses that users write: HOST[:PORT], [IPv6]:PORT, /path/of/socket,
 * HOST:/EXPORT.
 *
 * ERRORS     0 or -errno; why gets one line for people, without the wrong text itself: "must be
 *            HOST:/EXPORT or /SOCKET:/EXPORT".
 */
#ifndef RMEMFS_COMMON_TRANSPORT_ADDRESS_H
#define RMEMFS_COMMON_TRANSPORT_ADDRESS_H

#include <stddef.h>

#include "common/transport/transport.h"

#define RMEMFS_DEFAULT_PORT   7470
#define RMEMFS_DEFAULT_SOCKET "/run/rmemfs/server.sock"

/* Parses what --listen takes: "verbs:HOST[:PORT]", "tcp:HOST[:PORT]", "shm:/PATH". Blocks for the
 * resolver. */
int address_parse_listen(const char *text, struct transport_address *out, char *why, size_t whylen);

/* Resolves a host name or address to an address of the given kind. For shm, host is a path.
 * port 0: the default. Blocks for the resolver. */
int address_resolve(enum transport_kind kind, const char *host, unsigned port,
	struct transport_address *out, char *why, size_t whylen);

/* Splits HOST:/EXPORT into its parts and removes brackets around IPv6. A host that begins with '/'
 * is a socket's path. host and export_name are NUL-terminated. */
struct source {
	char host[256];
	char export_name[64];
};
int address_parse_source(const char *text, struct source *out, char *why, size_t whylen);

/* Whether host (a name or an address) is an address of this machine. */
bool address_is_local(const struct transport_address *address);
/* 127.0.0.0/8, or ::1. */
bool address_is_loopback(const struct transport_address *address);
/* The network interface that has this address. False: none of this machine has it. */
enum { ADDRESS_INTERFACE_BYTES = 16 };
bool address_interface(const struct sockaddr_storage *address, char name[ADDRESS_INTERFACE_BYTES]);

/* The network that one peer may have many addresses of: the first 64 bits of an IPv6 address, and a
 * whole IPv4 address, which is the same mapped into IPv6 or not. Other families: all zeros. */
enum { ADDRESS_NETWORK_BYTES = 16 };
void address_network(
	const struct sockaddr_storage *address, uint8_t network[ADDRESS_NETWORK_BYTES]);

/* "127.0.0.1:7470", "[fe80::1]:7470", "/run/rmemfs/server.sock". */
void address_format(const struct transport_address *address, char *buf, size_t len);

#endif
