/* holders.c - see holders.h. */
#include "server/record/holders.h"

#include <stdlib.h>

#include "common/base/util.h"

struct holder {
	struct holder *next;         /* of its bucket */
	struct holder *next_changed; /* in this batch */
	bool is_changed;
	uint64_t session;
	struct holder_counts now, saved;
};

static struct holder **holders_bucket_of(struct holders *h, uint64_t session)
{
	return &h->buckets[session % HOLDER_BUCKETS];
}

static struct holder *holders_find(const struct holders *h, uint64_t session)
{
	struct holder *one = h->buckets[session % HOLDER_BUCKETS];

	while (one && one->session != session)
		one = one->next;
	return one;
}

static struct holder *holders_make(struct holders *h, uint64_t session)
{
	struct holder **bucket = holders_bucket_of(h, session), *one = calloc(1, sizeof(*one));

	if (!one)
		return NULL;
	one->session = session;
	one->next = *bucket;
	*bucket = one;
	return one;
}

struct holder_counts *holders_change(struct holders *h, uint64_t session)
{
	struct holder *one = holders_find(h, session);

	if (!one)
		one = holders_make(h, session);
	if (!one)
		return NULL;
	if (!one->is_changed) {
		one->is_changed = true;
		one->saved = one->now;
		one->next_changed = h->changed;
		h->changed = one;
	}
	return &one->now;
}

static bool has_nothing(const struct holder_counts *n)
{
	return !n->layouts && !n->shared && !n->exclusive && !n->pins && !n->locks;
}

static void holders_drop(struct holders *h, struct holder *one)
{
	struct holder **at = holders_bucket_of(h, one->session);

	while (*at != one)
		at = &(*at)->next;
	*at = one->next;
	free(one);
}

static void holders_settle(struct holders *h, bool keep)
{
	struct holder *one;

	while ((one = h->changed)) {
		h->changed = one->next_changed;
		one->is_changed = false;
		if (!keep)
			one->now = one->saved;
		if (has_nothing(&one->now))
			holders_drop(h, one);
	}
}

void holders_commit(struct holders *h)
{
	holders_settle(h, true);
}

void holders_abort(struct holders *h)
{
	holders_settle(h, false);
}

struct holder_counts holders_of(const struct holders *h, uint64_t session)
{
	const struct holder *one = holders_find(h, session);

	return one ? one->now : (struct holder_counts){0};
}

void holders_fini(struct holders *h)
{
	for (unsigned i = 0; i < HOLDER_BUCKETS; i++)
		while (h->buckets[i])
			holders_drop(h, h->buckets[i]);
}
