/* auth_budget.c - see auth_budget.h. A debt is a time: each handshake adds its price to it, and time
 * pays it off (the generic cell rate algorithm, ITU-T I.371). */
#include "server/session/auth_budget.h"

#include <string.h>

#include "common/base/util.h"

enum { ALL_US = 1000000 / AUTH_BUDGET_ALL, ADDRESS_US = 1000000 / AUTH_BUDGET_ADDRESS };

/* -1: it is not there. */
static int find(const struct auth_budget *b, const uint8_t network[ADDRESS_NETWORK_BYTES])
{
	for (int i = 0; i < AUTH_BUDGET_ADDRESSES; i++)
		if (b->v[i].paid_us && memcmp(b->v[i].network, network, ADDRESS_NETWORK_BYTES) == 0)
			return i;
	return -1;
}

static bool is_known(const struct auth_debtor *d, int64_t now)
{
	return d->known_until_ms > now;
}

bool auth_budget_knows(
	const struct auth_budget *b, const uint8_t network[ADDRESS_NETWORK_BYTES], int64_t now)
{
	int at = find(b, network);

	return at >= 0 && is_known(&b->v[at], now);
}

/* Strangers go before those that are known. */
static struct auth_debtor *cheapest(struct auth_budget *b, int64_t now)
{
	struct auth_debtor *best = &b->v[0];

	for (unsigned i = 1; i < AUTH_BUDGET_ADDRESSES; i++) {
		struct auth_debtor *d = &b->v[i];
		bool better = d->paid_us < best->paid_us;

		if (is_known(d, now) != is_known(best, now))
			better = is_known(best, now);
		if (better)
			best = d;
	}
	return best;
}

static struct auth_debtor *debtor_of(
	struct auth_budget *b, const struct sockaddr_storage *address, int64_t now)
{
	uint8_t network[ADDRESS_NETWORK_BYTES];
	struct auth_debtor *d;
	int at;

	address_network(address, network);
	at = find(b, network);
	if (at >= 0)
		return &b->v[at];
	d = cheapest(b, now);
	*d = (struct auth_debtor){.paid_us = 1};
	memcpy(d->network, network, sizeof(network));
	return d;
}

/* When a debt has room for another price; in the past: now. */
static int64_t room_at_us(int64_t paid_us, int64_t price_us)
{
	return paid_us - (AUTH_BUDGET_BURST - 1) * price_us;
}

bool auth_budget_take(struct auth_budget *b, const struct sockaddr_storage *address, int64_t now,
	int64_t *again_ms)
{
	struct auth_debtor *d = debtor_of(b, address, now);
	int64_t now_us = now * 1000, at_us = room_at_us(d->paid_us, ADDRESS_US);

	if (!is_known(d, now))
		at_us = max_i64(at_us, room_at_us(b->paid_us, ALL_US));
	if (at_us > now_us) {
		*again_ms = at_us / 1000 + 1;
		return false;
	}
	d->paid_us = max_i64(d->paid_us, now_us) + ADDRESS_US;
	b->paid_us = max_i64(b->paid_us, now_us) + ALL_US;
	return true;
}

void auth_budget_give_back(
	struct auth_budget *b, const struct sockaddr_storage *address, int64_t now)
{
	struct auth_debtor *d = debtor_of(b, address, now);

	d->paid_us = max_i64(1, d->paid_us - ADDRESS_US);
	d->known_until_ms = now + AUTH_BUDGET_KNOWN_MS;
	b->paid_us -= ALL_US;
}
