/* penalty.c - see penalty.h. */
#include "server/session/penalty.h"

#include <stdio.h>
#include <string.h>

#include "common/base/util.h"

struct penalty_client penalty_client_of(
	unsigned export_index, const char *holder, const uint8_t owner[OWNER_BYTES], bool keyed)
{
	struct penalty_client client = {.export_index = export_index};

	snprintf(client.holder, sizeof(client.holder), "%s", holder);
	if (!keyed)
		memcpy(client.owner, owner, OWNER_BYTES);
	return client;
}

static bool is_of(const struct penalty *one, const struct penalty_client *client)
{
	return one->wait_ms && one->client.export_index == client->export_index &&
	       strcmp(one->client.holder, client->holder) == 0 &&
	       memcmp(one->client.owner, client->owner, OWNER_BYTES) == 0;
}

/* The client's, or the one to replace. */
static struct penalty *place_of(struct penalties *p, const struct penalty_client *client)
{
	struct penalty *oldest = &p->v[0];

	for (unsigned i = 0; i < PENALTY_CLIENTS; i++) {
		struct penalty *one = &p->v[i];

		if (is_of(one, client))
			return one;
		if (oldest->wait_ms && (!one->wait_ms || one->ended_ms < oldest->ended_ms))
			oldest = one;
	}
	return oldest;
}

void penalty_add(
	struct penalties *p, const struct penalty_client *client, int64_t began_ms, int64_t now)
{
	struct penalty *one = place_of(p, client);

	if (!is_of(one, client) || now - one->ended_ms >= PENALTY_FORGET_MS)
		one->wait_ms = PENALTY_FIRST_MS;
	else if (began_ms >= one->ended_ms)
		one->wait_ms = min_i64(2 * one->wait_ms, PENALTY_MAX_MS);
	one->client = *client;
	one->ended_ms = now;
}

int64_t penalty_over_ms(const struct penalties *p, const struct penalty_client *client)
{
	for (unsigned i = 0; i < PENALTY_CLIENTS; i++)
		if (is_of(&p->v[i], client))
			return p->v[i].ended_ms + p->v[i].wait_ms;
	return INT64_MIN;
}
