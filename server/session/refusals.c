#include "server/session/refusals.h"

#include <stdio.h>
#include <string.h>

/* "tcp 10.0.0.1:39376" without the port. */
static void name_host(const char *peer, char *host, size_t len)
{
	char *port;

	snprintf(host, len, "%s", peer);
	port = strrchr(host, ':');
	if (port && port[1] && strspn(port + 1, "0123456789") == strlen(port + 1))
		*port = '\0';
}

static bool is_same(const struct refusal *a, const struct refusal *b)
{
	return strcmp(a->key, b->key) == 0 && strcmp(a->host, b->host) == 0 &&
	       strcmp(a->reason, b->reason) == 0;
}

/* A free place, or that of the one that is to be forgotten. */
static struct refusal *take_place(struct refusals *r)
{
	struct refusal *oldest = &r->v[0];

	if (r->n < REFUSALS_MAX)
		return &r->v[r->n++];
	for (unsigned i = 1; i < r->n; i++)
		if (r->v[i].last_ms < oldest->last_ms)
			oldest = &r->v[i];
	return oldest;
}

static struct refusal *find_or_make(struct refusals *r, const struct refusal *wanted)
{
	struct refusal *place;

	for (unsigned i = 0; i < r->n; i++)
		if (is_same(&r->v[i], wanted))
			return &r->v[i];
	place = take_place(r);
	*place = *wanted;
	return place;
}

const struct refusal *refusals_add(struct refusals *r, const struct refusal *refusal,
	const char *peer, int64_t now, uint64_t *untold)
{
	struct refusal wanted = *refusal, *at;

	name_host(peer, wanted.host, sizeof(wanted.host));
	wanted.count = wanted.told = 0;
	wanted.recent = (struct recent){0};
	at = find_or_make(r, &wanted);
	at->count++;
	at->last_ms = now;
	recent_add(&at->recent, now);
	if (at->told && now < at->told_ms + REFUSALS_TELL_MS)
		return NULL;
	*untold = at->count - at->told - 1;
	at->told = at->count;
	at->told_ms = now;
	return at;
}
