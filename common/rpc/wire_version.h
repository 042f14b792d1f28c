/* wire_version.h - the versions of the wire protocol, and which programs can speak with each other.
 *
 * A server speaks its own version and the one before. A client speaks its own alone. So servers are
 * upgraded first, and their mounts go on meanwhile. The client's hello says its version. The server
 * answers with the same one, and both speak it as long as the channel lasts; or it refuses, and its
 * answer has the server's own version. Both hellos are bound to the channel's keys, so nobody
 * between can change the version unseen.
 *
 * Messages differ by version in one place each: `since` in the table of rpc.c says from which
 * version on there is an operation, and the third argument of a field (rpc_fields.h) says it of
 * that field. The lists of all versions that a server speaks, or has in its store, stay.
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_COMMON_RPC_WIRE_VERSION_H
#define RMEMFS_COMMON_RPC_WIRE_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Any change of a message, a frame or a hello raises it, once in each release that has one. */
enum { RMEMFS_WIRE_VERSION = 8 };
enum {
	/* The first one that was released. Nobody speaks those before it. */
	RMEMFS_WIRE_FIRST = 8,
	/* The version after this one, for tests. It has RPC_TRIAL and a word more in the replies to
	 * PING and of entries. Programs speak it only with RMEMFS_WIRE in their environment. */
	RMEMFS_WIRE_NEXT = RMEMFS_WIRE_VERSION + 1,
};

/* The version of this program: RMEMFS_WIRE_VERSION. In a build with RMEMFS_CRASH_POINTS (see
 * crash_point.h) a test can set another one, by RMEMFS_WIRE in the environment: the program then is
 * that of an earlier or a later release to its peers. */
uint32_t wire_version(void);

/* The earliest version that a server of version `server` speaks. */
uint32_t wire_version_oldest(uint32_t server);
/* Whether such a server speaks with a client of version `client`. */
bool wire_version_is_spoken(uint32_t server, uint32_t client);

enum { WIRE_VERSION_TEXT_BYTES = 128 };

/* Why the two can't talk, with both versions and the one to upgrade: "it speaks version 9 of the
 * protocol, this server 8: upgrade this server first". The first function is for the server's log,
 * the second for the client's user. */
void wire_version_refused_client(uint32_t client, char text[WIRE_VERSION_TEXT_BYTES]);
void wire_version_refused_by_server(uint32_t server, char text[WIRE_VERSION_TEXT_BYTES]);

#endif
