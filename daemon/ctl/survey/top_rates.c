#include "daemon/ctl/survey/top_rates.h"

#include <string.h>

#include "common/base/util.h"
#include "daemon/ctl/json.h"

static json_t *per_second(uint64_t n, int64_t interval_ms)
{
	return json_integer((json_int_t)((double)n * 1000 / (double)max_i64(interval_ms, 1)));
}

/* A daemon or a client that began anew counts from 0 on. */
static uint64_t since(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

/* The element whose member has the same number; NULL: none. */
static const json_t *counterpart(const json_t *list, const json_t *of, const char *key)
{
	const json_t *element;
	size_t i;

	json_array_foreach(list, i, element) if (json_equal(json_object_get(element, key),
							 json_object_get(of, key))) return element;
	return NULL;
}

/* ---- times of operations --------------------------------------------------------------------- */

/* The number of operations with this bound, in one of the pairs [bound, number]. */
static uint64_t count_at(const json_t *pairs, const json_t *bound)
{
	const json_t *pair;
	size_t i;

	json_array_foreach(pairs, i, pair) if (json_equal(json_array_get(pair, 0), bound)) return (
		uint64_t)max_i64(json_integer_value(json_array_get(pair, 1)), 0);
	return 0;
}

/* Numbers by bound, of all operations. A bound that is null is no limit, and counts as the largest
 * number. */
struct histogram {
	struct {
		uint64_t bound_ns, n;
	} v[1024];
	unsigned n;
	uint64_t sum;
};

static void add(struct histogram *h, uint64_t bound_ns, uint64_t n)
{
	unsigned i = h->n;

	while (i && h->v[i - 1].bound_ns > bound_ns)
		i--;
	if (!i || h->v[i - 1].bound_ns != bound_ns) {
		if (h->n == ARRAY_SIZE(h->v))
			return;
		memmove(&h->v[i + 1], &h->v[i], (h->n++ - i) * sizeof(h->v[0]));
		h->v[i].bound_ns = bound_ns;
		h->v[i++].n = 0;
	}
	h->v[i - 1].n += n;
	h->sum += n;
}

static void add_latency(struct histogram *h, const json_t *before, const json_t *now)
{
	const json_t *pair;
	size_t i;

	json_array_foreach(json_object_get(now, "latency_ns"), i, pair)
	{
		const json_t *bound = json_array_get(pair, 0);
		uint64_t n = (uint64_t)max_i64(json_integer_value(json_array_get(pair, 1)), 0);
		uint64_t was = count_at(json_object_get(before, "latency_ns"), bound);

		if (n > was)
			add(h,
				json_is_integer(bound) ? (uint64_t)json_integer_value(bound)
						       : INT64_MAX,
				n - was);
	}
}

/* Null: there was no operation. */
static json_t *quantile(const struct histogram *h, unsigned permille)
{
	uint64_t wanted = div_round_up(h->sum * permille, 1000), n = 0;

	for (unsigned i = 0; i < h->n; i++) {
		n += h->v[i].n;
		if (n >= wanted)
			return json_integer((json_int_t)h->v[i].bound_ns);
	}
	return json_null();
}

/* ---- mounts ---------------------------------------------------------------------------------- */

/* The sums over operations, of one mount or of several. */
struct sums {
	uint64_t operations, errors, read_bytes, write_bytes;
	struct histogram times;
};

static const char *const rate_names[] = {
	"operations", "errors", "read_bytes", "write_bytes", "p50_ns", "p99_ns"};

static void add_operation(struct sums *s, const char *name, const json_t *before, const json_t *now)
{
	uint64_t bytes = since(ctl_json_number(before, "bytes"), ctl_json_number(now, "bytes"));

	s->operations += since(ctl_json_number(before, "count"), ctl_json_number(now, "count"));
	s->errors += since(ctl_json_number(before, "errors"), ctl_json_number(now, "errors"));
	if (strcmp(name, "read") == 0)
		s->read_bytes += bytes;
	else
		s->write_bytes += bytes;
	add_latency(&s->times, before, now);
}

/* Of two answers of a daemon. only: one kind of operation; NULL: all. */
static void add_answer(struct sums *s, const json_t *before, const json_t *now, const char *only)
{
	const json_t *were = json_object_get(before, "operations");
	const char *name;
	json_t *op;

	json_object_foreach(json_object_get(now, "operations"), name, op)
	{
		if (!only || strcmp(name, only) == 0)
			add_operation(s, name, json_object_get(were, name), op);
	}
}

static void set_rates(json_t *to, const struct sums *s, int64_t interval_ms)
{
	json_object_set_new(to, "operations", per_second(s->operations, interval_ms));
	json_object_set_new(to, "errors", per_second(s->errors, interval_ms));
	json_object_set_new(to, "read_bytes", per_second(s->read_bytes, interval_ms));
	json_object_set_new(to, "write_bytes", per_second(s->write_bytes, interval_ms));
	json_object_set_new(to, "p50_ns", quantile(&s->times, 500));
	json_object_set_new(to, "p99_ns", quantile(&s->times, 990));
}

static void set_no_rates(json_t *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(rate_names); i++)
		json_object_set_new(to, rate_names[i], json_null());
}

/* The earlier answer of this mount's daemon. NULL: there is none, or it was another daemon: the
 * kernel gives a connection's number to another mount. */
static const json_t *answered_before(const json_t *before, const json_t *now)
{
	const json_t *answer = json_object_get(now, "answer");
	const json_t *was = json_object_get(counterpart(before, now, "connection"), "answer");

	return json_is_object(answer) && json_is_object(was) &&
			       json_equal(
				       json_object_get(answer, "pid"), json_object_get(was, "pid"))
		       ? was
		       : NULL;
}

static json_t *describe_mount(const json_t *before, const json_t *now, int64_t interval_ms)
{
	const json_t *answer = json_object_get(now, "answer");
	const json_t *was = answered_before(before, now);
	json_t *mount = json_pack("{s:O?, s:O?, s:O?, s:O?, s:O?}", "mountpoint",
		json_object_get(now, "mountpoint"), "source", json_object_get(now, "source"),
		"transport", json_object_get(answer, "transport"), "state",
		json_object_get(answer, "state"), "oldest_request_ms",
		json_object_get(answer, "oldest_request_ms"));
	struct sums s = {0};

	if (!was) {
		set_no_rates(mount);
		return mount;
	}
	add_answer(&s, was, answer, NULL);
	set_rates(mount, &s, interval_ms);
	return mount;
}

json_t *top_rates_mounts(const json_t *before, const json_t *now, int64_t interval_ms)
{
	json_t *mounts = json_array();
	const json_t *mount;
	size_t i;

	json_array_foreach(now, i, mount)
		json_array_append_new(mounts, describe_mount(before, mount, interval_ms));
	return mounts;
}

/* The rates of all mounts together. */
static json_t *describe_all(
	const json_t *before, const json_t *now, const char *only, int64_t interval_ms)
{
	json_t *all = json_object();
	const json_t *mount;
	struct sums s = {0};
	bool compared = false;
	size_t i;

	json_array_foreach(now, i, mount)
	{
		const json_t *was = answered_before(before, mount);

		if (was)
			add_answer(&s, was, json_object_get(mount, "answer"), only);
		compared |= was != NULL;
	}
	if (compared)
		set_rates(all, &s, interval_ms);
	else
		set_no_rates(all);
	return all;
}

json_t *top_rates_all(const json_t *before, const json_t *now, int64_t interval_ms)
{
	json_t *all = describe_all(before, now, NULL, interval_ms);

	json_object_set_new(all, "reads", describe_all(before, now, "read", interval_ms));
	json_object_set_new(all, "writes", describe_all(before, now, "write", interval_ms));
	return all;
}

/* ---- sessions and exports -------------------------------------------------------------------- */

static const char *const counter_names[] = {"reads", "writes", "read_bytes", "write_bytes", "rpcs"};

/* By the counters of two objects; before NULL: it counts from 0 on. */
static void set_counters(json_t *to, const json_t *before, const json_t *now, int64_t interval_ms)
{
	const json_t *were = json_object_get(before, "counters");
	const json_t *are = json_object_get(now, "counters");

	for (size_t i = 0; i < ARRAY_SIZE(counter_names); i++)
		json_object_set_new(to, counter_names[i],
			per_second(since(ctl_json_number(were, counter_names[i]),
					   ctl_json_number(are, counter_names[i])),
				interval_ms));
}

static json_t *describe_session(const json_t *before, const json_t *now, int64_t interval_ms)
{
	json_t *session = json_pack("{s:O?, s:O?, s:O?, s:O?, s:O?}", "id",
		json_object_get(now, "id"), "client", json_object_get(now, "client"), "export",
		json_object_get(now, "export"), "state", json_object_get(now, "state"), "silent_ms",
		json_object_get(now, "silent_ms"));

	set_counters(session, before, now, interval_ms);
	return session;
}

json_t *top_rates_sessions(const json_t *before, const json_t *now, int64_t interval_ms)
{
	const json_t *were = json_object_get(before, "sessions"), *session;
	json_t *sessions = json_array();
	size_t i;

	json_array_foreach(json_object_get(now, "sessions"), i, session) json_array_append_new(
		sessions, describe_session(counterpart(were, session, "id"), session, interval_ms));
	return sessions;
}

json_t *top_rates_exports(const json_t *before, const json_t *now, int64_t interval_ms)
{
	const json_t *were = json_object_get(before, "exports"), *export;
	bool anew = !json_equal(
		json_object_get(before, "incarnation"), json_object_get(now, "incarnation"));
	json_t *exports = json_array();
	size_t i;

	json_array_foreach(json_object_get(now, "exports"), i, export)
	{
		const json_t *was = counterpart(were, export, "name");
		json_t *rates = json_pack("{s:O?}", "name", json_object_get(export, "name"));

		if (was)
			set_counters(rates, anew ? NULL : was, export, interval_ms);
		for (size_t k = 0; !was && k < ARRAY_SIZE(counter_names); k++)
			json_object_set_new(rates, counter_names[k], json_null());
		json_array_append_new(exports, rates);
	}
	return exports;
}
