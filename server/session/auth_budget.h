/* auth_budget.h - how many handshakes the peers of an address, and all together, may ask for.
 *
 * A handshake that fails has cost the server a third of a millisecond at most, and its peer
 * nothing. So each one is charged when it begins, and given back if it succeeds: AUTH_BUDGET_BURST
 * at once, and AUTH_BUDGET_ADDRESS a second of one address (IPv6: of a network of 64 bits),
 * AUTH_BUDGET_ALL a second of all. An address that was let in within a day counts for itself alone.
 * So a crowd of strangers can't keep it out.
 *
 * Only so many addresses are remembered. The one that owes least is forgotten first.
 *
 * THREADS    The metadata thread. Nothing here allocates.
 */
#ifndef RMEMFS_SERVER_SESSION_AUTH_BUDGET_H
#define RMEMFS_SERVER_SESSION_AUTH_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/transport/address.h"

enum {
	AUTH_BUDGET_BURST = 64,
	AUTH_BUDGET_ADDRESS = 20, /* a second */
	AUTH_BUDGET_ALL = 200,    /* a second */
	AUTH_BUDGET_KNOWN_MS = 24 * 3600 * 1000,
	AUTH_BUDGET_ADDRESSES = 256,
};

/* Times are now_ms(). A debt is paid at that time; one of the past is none. */
struct auth_debtor {
	uint8_t network[ADDRESS_NETWORK_BYTES];
	int64_t paid_us;        /* 0: nobody's */
	int64_t known_until_ms; /* it was let in; 0: never */
};

struct auth_budget {
	int64_t paid_us; /* of all together */
	struct auth_debtor v[AUTH_BUDGET_ADDRESSES];
};

/* Charges a handshake. False: it has to wait; ask again at *again_ms. */
bool auth_budget_take(struct auth_budget *b, const struct sockaddr_storage *address, int64_t now,
	int64_t *again_ms);
/* Whether a client of the network (address.h) was let in within a day. */
bool auth_budget_knows(
	const struct auth_budget *b, const uint8_t network[ADDRESS_NETWORK_BYTES], int64_t now);
/* A handshake that was charged has succeeded. */
void auth_budget_give_back(
	struct auth_budget *b, const struct sockaddr_storage *address, int64_t now);

#endif
