/* wire_version.c - see wire_version.h. */
#include "common/rpc/wire_version.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef RMEMFS_CRASH_POINTS

/* Not listed among the variables for users. */
#define VARIABLE "RMEMFS_WIRE"

uint32_t wire_version(void)
{
	const char *text = getenv(VARIABLE);

	return text ? (uint32_t)strtoul(text, NULL, 10) : RMEMFS_WIRE_VERSION;
}

#else

uint32_t wire_version(void)
{
	return RMEMFS_WIRE_VERSION;
}

#endif

uint32_t wire_version_oldest(uint32_t server)
{
	return server > RMEMFS_WIRE_FIRST ? server - 1 : server;
}

bool wire_version_is_spoken(uint32_t server, uint32_t client)
{
	return client >= wire_version_oldest(server) && client <= server;
}

/* "8", or "8 and 9". */
static void format_spoken(uint32_t server, char *text, size_t len)
{
	uint32_t oldest = wire_version_oldest(server);

	if (oldest == server)
		snprintf(text, len, "%" PRIu32, server);
	else
		snprintf(text, len, "%" PRIu32 " and %" PRIu32, oldest, server);
}

void wire_version_refused_client(uint32_t client, char text[WIRE_VERSION_TEXT_BYTES])
{
	uint32_t server = wire_version();
	char spoken[32];

	format_spoken(server, spoken, sizeof(spoken));
	snprintf(text, WIRE_VERSION_TEXT_BYTES,
		"it speaks version %" PRIu32 " of the protocol, this server %s: %s", client, spoken,
		client > server ? "upgrade this server first" : "upgrade that client");
}

void wire_version_refused_by_server(uint32_t server, char text[WIRE_VERSION_TEXT_BYTES])
{
	uint32_t client = wire_version();
	char spoken[32];

	format_spoken(server, spoken, sizeof(spoken));
	snprintf(text, WIRE_VERSION_TEXT_BYTES,
		wire_version_oldest(server) == server
			? "it speaks version %s of the protocol, this client %" PRIu32 ": %s"
			: "it speaks versions %s of the protocol, this client %" PRIu32 ": %s",
		spoken, client,
		client > server ? "upgrade the server first" : "upgrade this client");
}
