#include "daemon/serve/readers.h"

#include "common/base/util.h"

enum {
	PERIOD_MS = 20, /* rates are measured over periods of at least this */
	PERIOD_MAX_MS = 250,
	PERIOD_REQUESTS = 50, /* fewer requests tell nothing before PERIOD_MAX_MS */
	WAIT_MIN_MS = 100,    /* from one try to the next */
	WAIT_MAX_MS = 1000,
	SHORT_MS = 250, /* two ticks and more */
};

/* The gain that keeps one more reader, and the rate that one fewer must keep. Rates of equal
 * periods differ by some percent. */
static const double more_gains = 1.12, fewer_keeps = 0.95;

void readers_init(struct readers *readers, unsigned max)
{
	*readers = (struct readers){
		.max = max, .n = 1, .more_wait = WAIT_MIN_MS, .fewer_wait = WAIT_MIN_MS};
}

unsigned readers_now(const struct readers *readers)
{
	return __atomic_load_n(&readers->n, __ATOMIC_RELAXED);
}

bool readers_has(const struct readers *readers, unsigned index)
{
	return index < readers_now(readers);
}

static unsigned add_one(struct readers *readers)
{
	unsigned n = readers_now(readers);

	if (n == readers->max || !__atomic_compare_exchange_n(&readers->n, &n, n + 1, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return 0;
	return n;
}

static void remove_one(struct readers *readers)
{
	unsigned n = readers_now(readers);

	/* If readers_stand_in() was faster, the reader is needed. */
	if (n > 1)
		__atomic_compare_exchange_n(
			&readers->n, &n, n - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static unsigned longer(unsigned wait_ms)
{
	return (unsigned)min_u64(2 * wait_ms, WAIT_MAX_MS);
}

static void end_try_more(struct readers *readers, int64_t now, double rate)
{
	if (rate < readers->rate * more_gains) {
		remove_one(readers);
		readers->more_wait = longer(readers->more_wait);
	} else {
		readers->more_wait = WAIT_MIN_MS;
	}
	readers->more_at = now + readers->more_wait;
	readers->fewer_at = now + readers->fewer_wait;
}

static unsigned end_try_fewer(struct readers *readers, int64_t now, double rate)
{
	unsigned added = 0;

	if (rate < readers->rate * fewer_keeps) {
		added = add_one(readers);
		readers->fewer_wait = longer(readers->fewer_wait);
	} else {
		readers->fewer_wait = WAIT_MIN_MS;
	}
	readers->fewer_at = now + readers->fewer_wait;
	return added;
}

static unsigned begin_try(struct readers *readers, int64_t now, bool behind)
{
	unsigned n = readers_now(readers);

	if (behind && n < readers->max && now >= readers->more_at) {
		readers->phase = READERS_TRY_MORE;
		return add_one(readers);
	}
	if (n > 1 && now >= readers->fewer_at &&
		now - __atomic_load_n(&readers->short_at, __ATOMIC_RELAXED) >= SHORT_MS) {
		readers->phase = READERS_TRY_FEWER;
		remove_one(readers);
	}
	return 0;
}

bool readers_review_due(const struct readers *readers, int64_t now)
{
	return now - readers->since >= PERIOD_MS;
}

/* Ends the period and returns its rate. */
static double next_period(struct readers *readers, int64_t now, uint64_t served, uint64_t behind)
{
	double rate = (double)(served - readers->served) / (double)(now - readers->since);

	readers->since = now;
	readers->served = served;
	readers->behind = behind;
	return rate;
}

unsigned readers_review(struct readers *readers, int64_t now, uint64_t served, uint64_t behind)
{
	uint64_t done = served - readers->served;
	bool late = behind - readers->behind > done / 2;
	unsigned added = 0;
	double rate;

	if (readers->phase != READERS_NONE &&
		(!readers_review_due(readers, now) ||
			(done < PERIOD_REQUESTS && now - readers->since < PERIOD_MAX_MS)))
		return 0;
	rate = next_period(readers, now, served, behind);
	switch (readers->phase) {
	case READERS_NONE:
		readers->phase = READERS_STEADY;
		break;
	case READERS_STEADY:
		added = begin_try(readers, now, late);
		break;
	case READERS_TRY_MORE:
		end_try_more(readers, now, rate);
		readers->phase = READERS_STEADY;
		break;
	case READERS_TRY_FEWER:
		added = end_try_fewer(readers, now, rate);
		readers->phase = READERS_STEADY;
		break;
	}
	readers->rate = rate;
	return added;
}

unsigned readers_stand_in(struct readers *readers, int64_t now)
{
	__atomic_store_n(&readers->short_at, now, __ATOMIC_RELAXED);
	return add_one(readers);
}
