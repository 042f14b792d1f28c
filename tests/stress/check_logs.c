/* check_logs.c - the logs that all append to; see check.h.
 *
 * The bytes in a log after the round never change again. So every byte that a player saw during the
 * round is compared with them. The places of the records give the order of the appends.
 */
#include "tests/stress/check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/util.h"

static struct {
	uint64_t size;
	uint64_t cells[LOG_BYTES_MAX / CELL_BYTES];
} now[LOGS];

static bool of_log(const struct event *e, const void *context)
{
	return e->kind >= OP_APPEND && e->kind <= OP_LOG_STAT &&
	       e->file == *(const unsigned *)context;
}

/* Calls what with each of the log's events. */
static void for_each(struct history *h, unsigned log,
	void (*what)(struct history *h, unsigned log, struct event *e))
{
	for (unsigned i = 0; i < h->nplayers; i++)
		for (unsigned j = 0; j < h->logs[i].nevents; j++)
			if (of_log(&h->logs[i].events[j], &log))
				what(h, log, &h->logs[i].events[j]);
}

static void check_answer(struct history *h, unsigned log, struct event *e)
{
	if (e->err)
		violation(h, e, of_log, &log, "%s of log%u failed: %s", op_name(e->kind), log,
			strerror(e->err));
	if (e->kind == OP_APPEND && e->n != e->len)
		violation(h, e, of_log, &log, "log%u: %" PRIu64 " of %" PRIu64 " bytes appended",
			log, e->n, e->len);
	if (e->kind == OP_APPEND)
		e->off = UINT64_MAX; /* found below */
}

static void read_now(struct history *h, unsigned log, int at)
{
	char name[16];
	autoclose int fd = -1;
	ssize_t n;

	snprintf(name, sizeof(name), "log%u", log);
	fd = openat(at, name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : pread(fd, now[log].cells, LOG_BYTES_MAX, 0);
	if (n < 0)
		violation(h, NULL, of_log, &log, "log%u: %s", log, strerror(errno));
	now[log].size = (uint64_t)n;
}

/* ---- records --------------------------------------------------------------------------------- */

static struct event *find_append(struct history *h, unsigned log, unsigned player, uint32_t seq)
{
	if (player >= h->nplayers)
		return NULL;
	for (unsigned j = 0; j < h->logs[player].nevents; j++) {
		struct event *e = &h->logs[player].events[j];

		if (e->kind == OP_APPEND && e->file == log && e->seq == seq)
			return e;
	}
	return NULL;
}

/* Checks the record that begins with this cell; returns its number of cells. */
static uint64_t take_record(struct history *h, unsigned log, uint64_t first)
{
	const uint64_t *cells = now[log].cells + first;
	uint64_t left = now[log].size / CELL_BYTES - first, at = first * CELL_BYTES;
	unsigned player = cell_player(cells[0]);
	uint32_t seq = cell_seq(cells[0]);
	struct event *e = find_append(h, log, player, seq);
	char text[CELL_TEXT];
	unsigned n;

	if (!cell_valid(cells[0], LOG_ID + log, 0) || !e)
		violation(h, e, of_log, &log,
			"log%u at %" PRIu64 ": %#018" PRIx64
			" (%s?) begins no record of this round",
			log, at, cells[0], cell_text(cells[0], text));
	if (e->off != UINT64_MAX)
		violation(h, e, of_log, &log,
			"log%u: one record stands at %" PRIu64 " and at %" PRIu64, log, e->off, at);
	n = record_cells(player, seq);
	for (unsigned k = 0; k < n; k++)
		if (k >= left || cells[k] != cell_value(player, seq, LOG_ID + log, k))
			violation(h, e, of_log, &log,
				"log%u at %" PRIu64
				": the record of %u cells is broken in cell %u: %s",
				log, at, n, k,
				k < left ? cell_text(cells[k], text) : "the file ends");
	e->off = at;
	return n;
}

static void check_found(struct history *h, unsigned log, struct event *e)
{
	if (e->kind == OP_APPEND && e->off == UINT64_MAX)
		violation(h, e, of_log, &log, "log%u: a record is lost", log);
}

/* An append that ended before another began must stand in front of it. */
static void check_order(struct history *h, unsigned log, const struct event **ordered, size_t n)
{
	const struct event *latest = NULL;

	for (size_t i = 0; i < n; i++) {
		if (latest && ordered[i]->end < latest->start)
			violation(h, ordered[i], of_log, &log,
				"log%u: this record stands at %" PRIu64
				", behind #%u of player %u, which was begun after it had been answered",
				log, ordered[i]->off, latest->seq, latest->player);
		if (!latest || ordered[i]->start > latest->start)
			latest = ordered[i];
	}
}

static void check_records(struct history *h, unsigned log)
{
	static const struct event *ordered[PLAYERS_MAX * EVENTS_MAX];
	uint64_t cell = h->rest.log_size[log] / CELL_BYTES;
	size_t n = 0;

	if (now[log].size < h->rest.log_size[log] || now[log].size % CELL_BYTES)
		violation(h, NULL, of_log, &log,
			"log%u has %" PRIu64 " bytes; before the round it had %" PRIu64, log,
			now[log].size, h->rest.log_size[log]);
	while (cell < now[log].size / CELL_BYTES) {
		unsigned player = cell_player(now[log].cells[cell]);
		uint32_t seq = cell_seq(now[log].cells[cell]);

		cell += take_record(h, log, cell);
		ordered[n++] = find_append(h, log, player, seq);
	}
	for_each(h, log, check_found);
	check_order(h, log, ordered, n);
}

/* ---- what was seen --------------------------------------------------------------------------- */

/* The least and the greatest size of the log during the event. */
static void bounds(struct history *h, const struct event *e, uint64_t *least, uint64_t *most)
{
	*least = h->rest.log_size[e->file];
	*most = now[e->file].size;
	for (unsigned i = 0; i < h->nplayers; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			const struct event *a = &h->logs[i].events[j];

			if (a->kind != OP_APPEND || a->file != e->file)
				continue;
			if (a->end < e->start && a->off + a->len > *least)
				*least = a->off + a->len;
			if (a->start > e->end && a->off < *most)
				*most = a->off;
		}
	}
}

/* The size that an event has seen the log reach; 0: none. */
static uint64_t reached(const struct event *e)
{
	if (e->kind == OP_LOG_STAT)
		return e->flags & (LENIENT | MAY_BE_BEHIND) ? 0 : e->size;
	return e->kind == OP_TAIL && e->n ? e->off + e->n : 0;
}

/* The size that the event has seen the log not exceed; UINT64_MAX: none. */
static uint64_t ended(const struct event *e)
{
	if (e->flags & LENIENT)
		return UINT64_MAX;
	if (e->kind == OP_LOG_STAT)
		return e->size;
	return e->kind == OP_TAIL && e->n < e->len ? e->off + e->n : UINT64_MAX;
}

static void check_bytes(struct history *h, unsigned log, const struct event *e)
{
	const uint8_t *seen = event_data(h, e), *there = (const uint8_t *)now[log].cells;

	for (uint64_t i = 0; i < e->n; i++)
		if (e->off + i >= now[log].size || seen[i] != there[e->off + i])
			violation(h, e, of_log, &log,
				"log%u: byte %" PRIu64 " was seen as %#x, and is %#x", log,
				e->off + i, seen[i],
				e->off + i < now[log].size ? there[e->off + i] : 0);
}

static void check_seen(struct history *h, unsigned log, struct event *e)
{
	uint64_t least, most;

	if (e->kind == OP_APPEND)
		return;
	if (e->kind == OP_TAIL)
		check_bytes(h, log, e);
	bounds(h, e, &least, &most);
	if (ended(e) < least)
		violation(h, e, of_log, &log,
			"log%u seemed to end at %" PRIu64 "; before that it had %" PRIu64 " bytes",
			log, ended(e), least);
	if (reached(e) > most)
		violation(h, e, of_log, &log,
			"log%u seemed to have %" PRIu64 " bytes, and never had more than %" PRIu64
			" then",
			log, reached(e), most);
	for (unsigned i = 0; i < h->nplayers; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			const struct event *before = &h->logs[i].events[j];

			if (of_log(before, &log) && before->end < e->start &&
				reached(before) > ended(e))
				violation(h, e, of_log, &log,
					"log%u seemed to shrink: to %" PRIu64 " from %" PRIu64
					" that player %u had seen",
					log, ended(e), reached(before), before->player);
		}
	}
}

void check_logs(struct history *h, int at)
{
	for (unsigned log = 0; log < LOGS; log++) {
		for_each(h, log, check_answer);
		read_now(h, log, at);
		check_records(h, log);
		for_each(h, log, check_seen);
		h->rest.log_size[log] = now[log].size;
	}
}

void check_logs_emptied(struct history *h)
{
	memset(h->rest.log_size, 0, sizeof(h->rest.log_size));
}
