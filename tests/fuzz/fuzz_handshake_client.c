/* fuzz_handshake_client.c - any bytes as a server's flight, or a real one with changes. The client's
 * end is DONE after the unchanged flight alone.
 *
 * The first byte of an input decides: 0: the rest is the flight; else the rest are changes. */
#include "tests/fuzz/flight.h"

static struct handshake_context *client_context, *server_context;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	client_context = fuzz_context(HANDSHAKE_CLIENT);
	server_context = fuzz_context(HANDSHAKE_SERVER);
	return 0;
}

static void try(
	struct handshake *client, struct handshake *server, const uint8_t *data, size_t size)
{
	static struct flight begin, first, answer, second;
	uint8_t how = *data++;
	bool changed = true;

	size--;
	demand(flight_step(client, &begin, &first) == HANDSHAKE_MORE);
	demand(flight_step(server, &first, &answer) == HANDSHAKE_MORE);
	if (how)
		changed = flight_change(&answer, &data, &size, UINT8_MAX);
	else
		flight_raw(&answer, data, size);
	demand((flight_step(client, &answer, &second) == HANDSHAKE_DONE) == !changed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct handshake *client, *server;

	if (!size)
		return 0;
	demand(handshake_client_new(client_context, &fuzz_key, &client) == 0);
	demand(handshake_server_new(server_context, find_fuzz_key, NULL, &server) == 0);
	try(client, server, data, size);
	handshake_delete(client);
	handshake_delete(server);
	return 0;
}
