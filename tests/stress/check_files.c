/* check_files.c - the file that is replaced whole, and files that are open while their names come
 * and go; see check.h. Both are registers: of versions, and of the cells of each inode.
 */
#include "tests/stress/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stress/search.h"

static enum step observe_value(
	const struct search *s, const void *object, struct cursor *c, const struct event *e)
{
	if (e->kind != OP_FETCH && e->kind != OP_HELD_READ)
		return STEP_NO;
	return e->value == *(const uint64_t *)object ? STEP_DONE : STEP_NO;
}

static enum step take_value(
	const struct search *s, void *object, struct cursor *c, const struct event *e)
{
	if (e->kind != OP_PUBLISH && e->kind != OP_HELD_WRITE)
		return STEP_NO;
	*(uint64_t *)object = e->value;
	return STEP_DONE;
}

/* Returns the value in the register afterwards. */
static uint64_t judge(struct history *h, uint64_t value,
	bool (*part)(const struct event *e, const void *context), const void *context,
	const char *what)
{
	struct search s = {
		.object_bytes = sizeof(value), .observe = observe_value, .take = take_value};
	uint64_t now = value;
	const struct event *stuck;
	char seen[CELL_TEXT], could[CELL_TEXT], before[CELL_TEXT];

	search_select(&s, h, part, context);
	switch (search_run(&s, &now, &stuck)) {
	case SEARCH_IMPOSSIBLE:
		violation(h, stuck, part, context,
			"%s: no order of its operations explains %s; before that, it could be %s (when the round began: %s)",
			what, cell_text(stuck ? stuck->value : 0, seen), cell_text(now, could),
			cell_text(value, before));
	case SEARCH_UNDECIDED:
		check_undecided++;
		for (unsigned j = 0; j < s.nops[0]; j++)
			now = s.ops[0][j]->value;
		break;
	case SEARCH_EXPLAINED:
		break;
	}
	return now;
}

/* ---- the file that is replaced --------------------------------------------------------------- */

static bool of_conf(const struct event *e, const void *context)
{
	return e->kind == OP_PUBLISH || e->kind == OP_FETCH;
}

/* Checks that the event saw one version, and all of it. */
static void check_whole(struct history *h, struct event *e)
{
	const uint64_t *cells = event_data(h, e);
	uint64_t first = e->n >= CELL_BYTES ? cells[0] : 0;
	unsigned player = cell_player(first);
	uint32_t seq = cell_seq(first);
	char a[CELL_TEXT], b[CELL_TEXT];

	if (!first || e->n != conf_cells(player, seq) * (uint64_t)CELL_BYTES)
		violation(h, e, of_conf, NULL,
			"the file that is replaced is not whole: %" PRIu64 " bytes of %s", e->n,
			cell_text(first, a));
	for (unsigned k = 0; k < conf_cells(player, seq); k++)
		if (cells[k] != cell_value(player, seq, CONF_ID, k))
			violation(h, e, of_conf, NULL,
				"the file that is replaced is mixed: it begins with %s, and cell %u is %s",
				cell_text(first, a), k, cell_text(cells[k], b));
	e->value = first;
}

void check_conf(struct history *h)
{
	uint64_t value;

	for (unsigned i = 0; i < h->nplayers; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			struct event *e = &h->logs[i].events[j];

			if (!of_conf(e, NULL))
				continue;
			if (e->err)
				violation(h, e, of_conf, NULL, "%s failed: %s", op_name(e->kind),
					strerror(e->err));
			if (e->kind == OP_FETCH)
				check_whole(h, e);
		}
	}
	value = judge(h, h->rest.conf, of_conf, NULL, "the file that is replaced");
	h->rest.previous_conf = h->rest.conf;
	h->rest.conf = value;
}

/* ---- files that are held open ---------------------------------------------------------------- */

struct held {
	uint64_t ino;
	uint64_t cells[HELD_CELLS];
};

/* The files that a player has seen in this round, and in the one before. */
static struct held *seen, *known;
static size_t seen_count, known_count;

struct held_cell {
	uint64_t ino, cell;
};

static bool of_held(const struct event *e, const void *context)
{
	const struct held_cell *c = context;

	return (e->kind == OP_HELD_WRITE || e->kind == OP_HELD_READ) && e->ino == c->ino &&
	       e->off == c->cell;
}

/* The cells before the round; zeros for a file that this round has made. */
static struct held before_round(uint64_t ino)
{
	for (size_t i = 0; i < known_count; i++)
		if (known[i].ino == ino)
			return known[i];
	return (struct held){.ino = ino};
}

static bool is_seen(uint64_t ino)
{
	for (size_t i = 0; i < seen_count; i++)
		if (seen[i].ino == ino)
			return true;
	return false;
}

static void judge_held(struct history *h, uint64_t ino)
{
	struct held file = before_round(ino);

	if (is_seen(ino))
		return;
	for (unsigned cell = 0; cell < HELD_CELLS; cell++) {
		struct held_cell c = {.ino = ino, .cell = cell};
		char what[64];

		snprintf(what, sizeof(what), "inode %" PRIu64 ", cell %u", ino, cell);
		file.cells[cell] = judge(h, file.cells[cell], of_held, &c, what);
	}
	seen[seen_count++] = file;
}

static void check_held_answer(struct history *h, const struct event *e)
{
	struct held_cell c = {.ino = e->ino, .cell = e->off};

	if (e->err)
		violation(h, e, of_held, &c, "%s of inode %" PRIu64 " failed: %s", op_name(e->kind),
			e->ino, strerror(e->err));
	if (e->kind == OP_HELD_READ && !cell_valid(e->value, e->ino, e->off))
		violation(h, e, of_held, &c,
			"inode %" PRIu64 ", cell %" PRIu64 ": %#018" PRIx64
			" is nothing that anybody wrote there",
			e->ino, e->off, e->value);
}

void check_held(struct history *h)
{
	struct held *old = known;

	if (!seen) {
		seen = calloc(PLAYERS_MAX * EVENTS_MAX, sizeof(*seen));
		known = calloc(PLAYERS_MAX * EVENTS_MAX, sizeof(*known));
		old = known;
	}
	if (!seen || !known)
		abort();
	for (unsigned i = 0; i < h->nplayers; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			const struct event *e = &h->logs[i].events[j];

			if (e->kind != OP_HELD_WRITE && e->kind != OP_HELD_READ)
				continue;
			check_held_answer(h, e);
			judge_held(h, e->ino);
		}
	}
	known = seen;
	known_count = seen_count;
	seen = old;
	seen_count = 0;
}
