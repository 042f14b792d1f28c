/* places.c - see places.h. */
#include "server/session/places.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/transport/address.h"

/* A channel without an answer to its hello. */
struct visitor {
	struct list link; /* server.visitors, the newest first */
	struct port *port;
	struct channel *channel;
	uint8_t network[ADDRESS_NETWORK_BYTES];
	int64_t since_ms;
};

static void tell_refused(const struct channel *ch, const char *why)
{
	static struct log_ratelimit limit = {.burst = STRANGERS_LOG_BURST};

	if (log_ratelimit_ok(&limit, CONN_LOG_MS))
		log_warning("%s: refused: %s", channel_peer(ch), why);
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool is_of(const struct conn *c, const uint8_t *network)
{
	return memcmp(c->network, network, ADDRESS_NETWORK_BYTES) == 0;
}

static bool has_place(const struct conn *c)
{
	return conn_is_stranger(c) && !c->has_proof;
}

/* network NULL: of all. */
static unsigned count_places(const struct server *s, const uint8_t *network)
{
	unsigned n = 0;

	list_for_each (pos, &s->unattached) {
		const struct conn *c = list_entry(pos, struct conn, link);

		n += has_place(c) && (!network || is_of(c, network));
	}
	return n;
}

/* When the peer's time for its step is over; INT64_MAX: the step is the server's. */
static int64_t over_ms(const struct conn *c)
{
	return has_place(c) && conn_owes_step(c) ? c->step_ms + PLACE_MS : INT64_MAX;
}

/* The oldest slow channel of the network; NULL: none is. */
static struct conn *find_slow_of(const struct server *s, const uint8_t *network, int64_t now)
{
	list_for_each (pos, &s->unattached) {
		struct conn *c = list_entry(pos, struct conn, link);

		if (is_of(c, network) && over_ms(c) <= now)
			return c;
	}
	return NULL;
}

/* The oldest slow channel of the network that has most, if that are more than n. */
static struct conn *find_slow_of_many(const struct server *s, unsigned n, int64_t now)
{
	struct conn *found = NULL;

	list_for_each (pos, &s->unattached) {
		struct conn *c = list_entry(pos, struct conn, link);
		unsigned its = over_ms(c) <= now ? count_places(s, c->network) : 0;

		if (its > n) {
			n = its;
			found = c;
		}
	}
	return found;
}

/* A network that has all of its places gives one of its own. */
static bool make_place(struct server *s, const uint8_t *network, int64_t now)
{
	unsigned own = count_places(s, network);
	struct conn *slow;

	if (own < PLACES_OF_ADDRESS && count_places(s, NULL) < PLACES)
		return true;
	slow = own < PLACES_OF_ADDRESS ? find_slow_of_many(s, own, now)
				       : find_slow_of(s, network, now);
	if (slow)
		conn_breach(slow, slow->state == CONN_CLOSING
					  ? "it was refused and stays, and others wait"
					  : "it has proven no key in time, and others wait");
	return slow;
}

/* ---- those that wait ------------------------------------------------------------------------- */

/* Reads the limit each time, since others may change that of a running process. */
static unsigned queue_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return PLACES_QUEUE;
	return (unsigned)max_u64(1, min_u64(limit.rlim_cur / PLACES_QUEUE_SHARE, PLACES_QUEUE));
}

static struct channel *visitor_end(struct server *s, struct visitor *v)
{
	struct channel *ch = v->channel;

	list_del(&v->link);
	s->nvisitors--;
	free(v);
	return ch;
}

static void refuse(struct server *s, struct visitor *v, const char *why)
{
	struct channel *ch = visitor_end(s, v);

	tell_refused(ch, why);
	channel_reject(ch);
}

static struct visitor *oldest_visitor(const struct server *s)
{
	return list_entry(s->visitors.prev, struct visitor, link);
}

/* The network of more than half of those that wait, if there is one: the majority vote of Boyer and
 * Moore. Else any network. */
static const uint8_t *network_of_most(const struct server *s)
{
	const uint8_t *network = NULL;
	unsigned n = 0;

	list_for_each (pos, &s->visitors) {
		const struct visitor *v = list_entry(pos, struct visitor, link);

		if (!n)
			network = v->network;
		n += n && memcmp(v->network, network, sizeof(v->network)) != 0 ? -1U : 1;
	}
	return network;
}

/* The one that has waited longest: of a crowd that is most of those that wait, or of all. */
static struct visitor *visitor_to_refuse(const struct server *s)
{
	const uint8_t *network = network_of_most(s);
	struct visitor *oldest = NULL;
	unsigned n = 0;

	list_for_each (pos, &s->visitors) {
		struct visitor *v = list_entry(pos, struct visitor, link);

		if (memcmp(v->network, network, sizeof(v->network)) != 0)
			continue;
		oldest = v;
		n++;
	}
	return n > s->nvisitors / 2 ? oldest : oldest_visitor(s);
}

static void let_wait(struct port *port, struct channel *ch, const uint8_t *network, int64_t now)
{
	struct server *s = port->server;
	struct visitor *v = calloc(1, sizeof(*v));

	if (!v) {
		tell_refused(ch, "out of memory");
		channel_reject(ch);
		return;
	}
	*v = (struct visitor){.port = port, .channel = ch, .since_ms = now};
	memcpy(v->network, network, sizeof(v->network));
	list_add_head(&s->visitors, &v->link);
	/* It was tried just now, and those before it were when they came. */
	if (s->nvisitors++ == 0)
		s->visitors_ms = 0;
	while (s->nvisitors > queue_max())
		refuse(s, visitor_to_refuse(s), "too many channels wait");
}

void places_incoming(struct port *port, struct channel *ch)
{
	struct sockaddr_storage address;
	struct server *s = port->server;
	uint8_t network[ADDRESS_NETWORK_BYTES];
	int64_t now = now_ms();

	if (s->stopping) {
		channel_reject(ch);
	} else if (!channel_peer_address(ch, &address)) {
		conn_admit(port, ch, now);
	} else {
		address_network(&address, network);
		if (make_place(s, network, now))
			conn_admit(port, ch, now);
		else
			let_wait(port, ch, network, now);
	}
}

/* ---- time ------------------------------------------------------------------------------------ */

static void drop_late(struct server *s, int64_t now)
{
	while (!list_empty(&s->visitors) && now >= oldest_visitor(s)->since_ms + UNATTACHED_MS)
		refuse(s, oldest_visitor(s), "no place has become free for it in time");
}

/* Whether its network comes before others: a client of it was let in before, or none of it is here.
 */
static bool comes_first(const struct server *s, const struct visitor *v, unsigned own, int64_t now)
{
	return !own || auth_budget_knows(&s->auth_budget, v->network, now);
}

/* Whether nobody that waits can get a place: all are taken, and none by a peer that is slow. */
static bool is_full(const struct server *s, int64_t now)
{
	return count_places(s, NULL) >= PLACES && !find_slow_of_many(s, 0, now);
}

/* Networks of which one got no place in this look: the next ones of them get none either. Fewer
 * than four can have all of their places while some are free, so no more are remembered. */
struct passed_over {
	const uint8_t *networks[PLACES / PLACES_OF_ADDRESS];
	unsigned n;
};

static bool was_passed_over(const struct passed_over *p, const struct visitor *v)
{
	for (unsigned i = 0; i < min_u64(p->n, ARRAY_SIZE(p->networks)); i++)
		if (memcmp(p->networks[i], v->network, sizeof(v->network)) == 0)
			return true;
	return false;
}

static void pass_over(struct passed_over *p, const struct visitor *v)
{
	p->networks[p->n++ % ARRAY_SIZE(p->networks)] = v->network;
}

/* One look at those that wait, or only at those that come first. A network that has as many places
 * as one that got none of the others' gets none of them either. */
static void let_in(struct server *s, bool first, int64_t now)
{
	unsigned least = PLACES_OF_ADDRESS;
	struct passed_over passed = {.n = 0};

	list_for_each_safe (pos, &s->visitors) {
		struct visitor *v = list_entry(pos, struct visitor, link);
		struct port *port = v->port;
		int64_t since_ms = v->since_ms;
		unsigned own;

		if (was_passed_over(&passed, v))
			continue;
		own = count_places(s, v->network);
		if ((own < PLACES_OF_ADDRESS && own >= least) ||
			(first && !comes_first(s, v, own, now))) {
			pass_over(&passed, v);
		} else if (make_place(s, v->network, now)) {
			conn_admit(port, visitor_end(s, v), since_ms);
		} else {
			least = own < least ? own : least;
			pass_over(&passed, v);
		}
	}
}

/* One that is slow already was of no use to those that wait. */
static int64_t next_look_ms(const struct server *s, int64_t now)
{
	int64_t next = oldest_visitor(s)->since_ms + UNATTACHED_MS;

	list_for_each (pos, &s->unattached) {
		int64_t over = over_ms(list_entry(pos, struct conn, link));

		if (over > now)
			next = min_i64(next, over);
	}
	return next;
}

int64_t places_tick(struct server *s, int64_t now)
{
	if (list_empty(&s->visitors))
		return -1;
	if (now < s->visitors_ms)
		return s->visitors_ms;
	drop_late(s, now);
	for (int first = 1; first >= 0 && !is_full(s, now); first--)
		let_in(s, first, now);
	if (list_empty(&s->visitors))
		return -1;
	/* A place that becomes free meanwhile resets it: conn.c. */
	s->visitors_ms = max_i64(next_look_ms(s, now), now + 1);
	return s->visitors_ms;
}

void places_close(struct server *s)
{
	while (!list_empty(&s->visitors))
		channel_reject(visitor_end(s, oldest_visitor(s)));
}
