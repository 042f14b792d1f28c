/* check_data.c - cells and sizes of the files that all write; see check.h. */
#include "tests/stress/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stress/search.h"

unsigned check_undecided;

static bool of_data(const struct event *e, const void *context)
{
	return e->kind <= OP_STAT && e->file == *(const unsigned *)context;
}

static void check_answers(struct history *h)
{
	for (unsigned i = 0; i < h->nplayers; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			const struct event *e = &h->logs[i].events[j];
			unsigned file = e->file;

			if (e->kind > OP_STAT)
				continue;
			if (e->err)
				violation(h, e, of_data, &file, "%s of data%u failed: %s",
					op_name(e->kind), file, strerror(e->err));
			if (e->kind == OP_WRITE && e->n != e->len && !is_store(e))
				violation(h, e, of_data, &file,
					"data%u: %" PRIu64 " of %" PRIu64 " bytes written", file,
					e->n, e->len);
			if (e->n % CELL_BYTES || e->n > e->len)
				violation(h, e, of_data, &file,
					"data%u: %s of %" PRIu64 " bytes, and no size is that",
					file, op_name(e->kind), e->n);
		}
	}
}

/* ---- leniency -------------------------------------------------------------------------------- */

static bool same_file(const struct event *a, const struct event *b)
{
	return a->file == b->file && (a->kind <= OP_STAT) == (b->kind <= OP_STAT);
}

static bool changes_size(const struct event *e)
{
	return (e->kind == OP_WRITE && !is_store(e)) || e->kind == OP_TRUNCATE ||
	       e->kind == OP_ALLOCATE || e->kind == OP_APPEND;
}

static bool is_seek(const struct event *e)
{
	return (e->kind == OP_STAT || e->kind == OP_LOG_STAT) && e->way == BY_SEEK;
}

static bool goes_by_kernel(const struct event *e)
{
	return e->kind == OP_READ || e->kind == OP_TAIL || is_seek(e) || is_store(e);
}

static bool goes_by_pages(const struct event *e)
{
	return e->kind == OP_READ && (e->way == MAPPED || e->way == SENT);
}

static bool changes_pages(const struct event *e)
{
	return changes_size(e) || e->kind == OP_PUNCH;
}

static bool meet(const struct event *a, const struct event *b)
{
	return same_file(a, b) && a->start <= b->end && b->start <= a->end;
}

/* While another player's write through the same FUSE mount is in progress, stat gets the new size
 * from the daemon. Reads and lseek use the kernel's size, which stays the old one until that write
 * is over; so do the kernel's cached pages.
 */
static unsigned leniency(const struct history *h, const struct event *e)
{
	unsigned flags = 0;

	for (unsigned i = 0; i < h->nplayers; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			const struct event *c = &h->logs[i].events[j];

			if (c->player == e->player || h->device[c->player] != h->device[e->player])
				break;
			if (is_seek(e) || (changes_size(c) && meet(c, e)))
				flags |= LENIENT;
			if (goes_by_pages(e) && changes_pages(c) && meet(c, e))
				flags |= UNSURE;
		}
	}
	return flags;
}

/* Whether pages of the file were requested through this mount by then. */
static bool was_paged(const struct history *h, const struct event *e)
{
	for (unsigned i = 0; i < h->nplayers; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			const struct event *c = &h->logs[i].events[j];

			if (h->device[c->player] != h->device[e->player])
				break;
			if (same_file(c, e) && (goes_by_pages(c) || is_store(c)) &&
				c->start <= e->end)
				return true;
		}
	}
	return false;
}

/* lseek(2) asks the daemon, and then looks at the kernel's pages. The two differ where pages of the
 * file are dropped just then, since others change it. The kernel then knows of no end, or takes a
 * page for the end that it has requested in vain: always behind the true end.
 */
static void note_overtaken(struct history *h, struct event *e)
{
	if (!is_seek(e))
		return;
	if (e->size == NO_END)
		h->rest.endless++;
	if (e->size == NO_END || (e->size % PAGE == 0 && was_paged(h, e)))
		e->flags |= MAY_BE_BEHIND;
}

void check_note_lenient(struct history *h)
{
	for (unsigned i = 0; i < h->nplayers && !h->strict; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			struct event *e = &h->logs[i].events[j];

			if (goes_by_kernel(e))
				e->flags |= leniency(h, e);
			note_overtaken(h, e);
		}
	}
}

/* ---- sizes ----------------------------------------------------------------------------------- */

struct size_object {
	uint64_t size;
	uint64_t writer; /* 1 + the player whose write makes it grow: others wait */
};

enum { SEEN_BELOW = 1, SEEN_ABOVE = 2 };

/* A read that ends early has met the end there or before; a read that has bytes, there or behind.
 * Both may be true at two moments, since a size is asked for page by page. */
static enum step observe_read_size(uint64_t size, struct cursor *c, const struct event *e)
{
	bool ends = e->n < e->len && !(e->flags & LENIENT);
	uint64_t want = (ends ? SEEN_BELOW : 0) | (e->n ? SEEN_ABOVE : 0);
	uint64_t seen = c->local[0];

	if (size <= e->off + e->n)
		seen |= SEEN_BELOW;
	if (size >= e->off + e->n)
		seen |= SEEN_ABOVE;
	if ((seen & want) == want)
		return STEP_DONE;
	if (seen == c->local[0])
		return STEP_NO;
	c->local[0] = seen;
	return STEP_MORE;
}

static enum step observe_size(
	const struct search *s, const void *object, struct cursor *c, const struct event *e)
{
	const struct size_object *o = object;

	if (e->flags & MAY_BE_BEHIND && e->size > o->size)
		return STEP_DONE;
	if (e->kind == OP_STAT)
		return o->size == e->size || e->flags & LENIENT ? STEP_DONE : STEP_NO;
	if (e->kind == OP_READ || is_store(e))
		return observe_read_size(o->size, c, e);
	return STEP_NO;
}

/* A growing write becomes visible page by page. */
static enum step grow(struct size_object *o, struct cursor *c, const struct event *e)
{
	uint64_t end = e->off + e->len, from = o->size > e->off ? o->size : e->off;
	uint64_t next = (from / PAGE + 1) * PAGE;

	if (end <= o->size) {
		o->writer = 0;
		return STEP_DONE;
	}
	o->size = next < end ? next : end;
	o->writer = o->size < end ? e->player + 1U : 0;
	c->step = 1;
	return o->writer ? STEP_MORE : STEP_DONE;
}

static enum step take_size(
	const struct search *s, void *object, struct cursor *c, const struct event *e)
{
	struct size_object *o = object;

	if (o->writer && o->writer != e->player + 1U)
		return STEP_NO;
	switch ((enum op_kind)e->kind) {
	case OP_WRITE:
		return is_store(e) ? STEP_NO : grow(o, c, e);
	case OP_TRUNCATE:
		o->size = e->len;
		return STEP_DONE;
	case OP_ALLOCATE:
		if (e->off + e->len > o->size)
			o->size = e->off + e->len;
		return STEP_DONE;
	default:
		return STEP_NO;
	}
}

static bool of_size(const struct event *e, const void *context)
{
	return of_data(e, context) && e->kind != OP_PUNCH && !(e->flags & UNSURE);
}

static void check_size(struct history *h, unsigned file)
{
	struct size_object o = {.size = h->rest.size[file]};
	struct search s = {.object_bytes = sizeof(o), .observe = observe_size, .take = take_size};
	const struct event *stuck;

	search_select(&s, h, of_size, &file);
	switch (search_run(&s, &o, &stuck)) {
	case SEARCH_IMPOSSIBLE:
		violation(h, stuck, of_size, &file,
			"data%u: no order of its operations explains the size that *%s* tells; before it, it could be %" PRIu64,
			file, stuck ? op_name(stuck->kind) : "", o.size);
	case SEARCH_UNDECIDED:
		check_undecided++;
		for (unsigned j = 0; j < h->logs[0].nevents; j++)
			if (of_size(&h->logs[0].events[j], &file) &&
				h->logs[0].events[j].kind == OP_STAT)
				o.size = h->logs[0].events[j].size;
		break;
	case SEARCH_EXPLAINED:
		break;
	}
	h->rest.previous_size[file] = h->rest.size[file];
	h->rest.size[file] = o.size;
}

/* ---- cells ----------------------------------------------------------------------------------- */

struct cell_context {
	struct history *h;
	unsigned file;
	uint64_t cell;
	const struct event *torn; /* a read of a value that nobody has written as a whole */
	uint32_t torn_who;        /* the writer that all reads of that value count for */
};

static uint64_t read_value(const struct history *h, const struct event *e, uint64_t cell)
{
	uint64_t at = cell * CELL_BYTES - e->off, value = 0;

	if (at < e->n)
		memcpy(&value, (const uint8_t *)event_data(h, e) + at, CELL_BYTES);
	return value;
}

static bool of_cell(const struct event *e, const void *context)
{
	const struct cell_context *c = context;
	uint64_t at = c->cell * CELL_BYTES;

	if (e->file != c->file || (e->kind == OP_READ && e->flags & UNSURE))
		return false;
	if (e->kind == OP_TRUNCATE)
		return e->len <= at;
	if (is_store(e) || (e->kind == OP_READ && e->flags & LENIENT))
		return e->off <= at && at < e->off + e->n;
	return (e->kind == OP_WRITE || e->kind == OP_READ || e->kind == OP_PUNCH) && e->off <= at &&
	       at < e->off + e->len;
}

/* The writer of a value: its upper half. Neighbours with the same history of writers are judged
 * once. */
static uint32_t who_of(const struct cell_context *c, const struct event *e)
{
	uint64_t value;

	if (e->kind == OP_WRITE)
		return (uint32_t)(cell_value(e->player, e->seq, 0, 0) >> 32);
	if (e->kind != OP_READ)
		return 0;
	value = read_value(c->h, e, c->cell);
	if (c->torn && value == read_value(c->h, c->torn, c->cell))
		return c->torn_who;
	return (uint32_t)(value >> 32);
}

static enum step observe_cell(
	const struct search *s, const void *object, struct cursor *c, const struct event *e)
{
	if (e->kind != OP_READ)
		return STEP_NO;
	return who_of(s->context, e) == *(const uint64_t *)object ? STEP_DONE : STEP_NO;
}

static enum step take_cell(
	const struct search *s, void *object, struct cursor *c, const struct event *e)
{
	if (e->kind == OP_READ)
		return STEP_NO;
	*(uint64_t *)object = who_of(s->context, e);
	return STEP_DONE;
}

/* Sets the value that each event saw in this cell. */
static void show_cell(const struct cell_context *c)
{
	for (unsigned i = 0; i < c->h->nplayers; i++) {
		for (unsigned j = 0; j < c->h->logs[i].nevents; j++) {
			struct event *e = &c->h->logs[i].events[j];

			if (e->kind != OP_READ || !of_cell(e, c))
				continue;
			e->value = read_value(c->h, e, c->cell);
			e->flags |= SHOWS_VALUE;
		}
	}
}

static uint64_t value_of_who(uint64_t who, unsigned file, uint64_t cell)
{
	return who ? cell_value((unsigned)(who >> 26), (uint32_t)who & 0x3ffffff, file, cell) : 0;
}

static _Noreturn void cell_violation(
	const struct cell_context *c, const struct event *suspect, uint64_t could_be)
{
	char seen[CELL_TEXT], could[CELL_TEXT], before[CELL_TEXT];
	uint64_t value = suspect ? read_value(c->h, suspect, c->cell) : 0;

	show_cell(c);
	if (!cell_valid(value, c->file, c->cell))
		violation(c->h, suspect, of_cell, c,
			"data%u: %#018" PRIx64 " at %" PRIu64
			" is nothing that anybody wrote there (%s?)",
			c->file, value, c->cell * CELL_BYTES, cell_text(value, seen));
	violation(c->h, suspect, of_cell, c,
		"data%u at %" PRIu64
		": no order of its operations explains %s; before that, it could be %s (when the round began: %s)",
		c->file, c->cell * CELL_BYTES, cell_text(value, seen),
		cell_text(could_be << 32, could),
		cell_text(c->h->rest.cells[c->file][c->cell], before));
}

/* Examines one such value; several of them in a cell and a round are no accident. */
static void note_torn(struct cell_context *c, const struct event *e)
{
	uint64_t value = read_value(c->h, e, c->cell);

	if (cell_valid(value, c->file, c->cell))
		return;
	if (c->torn && read_value(c->h, c->torn, c->cell) != value)
		cell_violation(c, e, 0);
	c->torn = e;
	c->torn_who = UINT32_MAX;
}

/* A cell's history as a row of words, to compare neighbours by; also finds damaged values. */
static size_t signature(struct cell_context *c, const struct search *s, uint64_t *words)
{
	size_t n = 0;

	c->torn = NULL;
	words[n++] = c->h->rest.cells[c->file][c->cell] >> 32;
	for (unsigned i = 0; i < s->nplayers; i++) {
		for (unsigned j = 0; j < s->nops[i]; j++) {
			const struct event *e = s->ops[i][j];

			if (!of_cell(e, c))
				continue;
			if (e->kind == OP_READ)
				note_torn(c, e);
			words[n++] = (uint64_t)(i * EVENTS_MAX + j) << 32 | who_of(c, e);
		}
	}
	return n;
}

/* At first *who is the writer before the round, then the one after it. */
static enum search_result explain_cell(
	struct cell_context *c, struct search *s, uint64_t *who, const struct event **stuck)
{
	*s = (struct search){.object_bytes = sizeof(*who),
		.context = c,
		.observe = observe_cell,
		.take = take_cell};
	search_select(s, c->h, of_cell, c);
	return search_run(s, who, stuck);
}

/* When all is at rest the first player reads all of every file. So the state after the round is
 * known. Without that read it would be the result of one of several possible orders. */
static void need_seen_at_rest(const struct cell_context *c, const struct search *s)
{
	if (s->nops[0] && s->ops[0][s->nops[0] - 1]->kind == OP_READ)
		return;
	fprintf(stderr, "coherence: nobody has looked at data%u at %" PRIu64 " at rest\n", c->file,
		c->cell * CELL_BYTES);
	exit(2);
}

static uint64_t judge_cell(struct cell_context *c)
{
	uint64_t who = c->h->rest.cells[c->file][c->cell] >> 32;
	const struct event *stuck;
	struct search s;
	enum search_result result = explain_cell(c, &s, &who, &stuck);

	need_seen_at_rest(c, &s);
	switch (result) {
	case SEARCH_IMPOSSIBLE:
		cell_violation(c, stuck, who);
	case SEARCH_UNDECIDED:
		check_undecided++;
		for (unsigned j = 0; j < s.nops[0]; j++)
			if (s.ops[0][j]->kind == OP_READ)
				who = who_of(c, s.ops[0][j]);
		break;
	case SEARCH_EXPLAINED:
		break;
	}
	return who;
}

/* ---- torn cells ------------------------------------------------------------------------------ */

static bool is_seam(const struct cell_context *c, uint32_t low, uint32_t high)
{
	uint64_t torn = read_value(c->h, c->torn, c->cell);
	uint64_t first = value_of_who(low, c->file, c->cell);
	uint64_t second = value_of_who(high, c->file, c->cell);

	for (unsigned bits = 8; bits < 64; bits += 8) {
		uint64_t behind = ~UINT64_C(0) << bits;

		if (((first & ~behind) | (second & behind)) == torn)
			return true;
	}
	return false;
}

static bool explains(struct cell_context *c, uint32_t torn_who, uint64_t *who)
{
	const struct event *stuck;
	struct search s;

	*who = c->h->rest.cells[c->file][c->cell] >> 32;
	c->torn_who = torn_who;
	return explain_cell(c, &s, who, &stuck) != SEARCH_IMPOSSIBLE;
}

/* Only bytes are promised. A copy that is interrupted in a cell, or a packet that ends there, shows
 * the first bytes of one value and the last bytes of another. Both values must have been there at
 * that time. */
static uint64_t judge_torn_cell(struct cell_context *c)
{
	static uint32_t writers[PLAYERS_MAX * EVENTS_MAX + 2];
	unsigned n = 0;
	uint64_t who;

	writers[n++] = 0;
	writers[n++] = (uint32_t)(c->h->rest.cells[c->file][c->cell] >> 32);
	for (unsigned i = 0; i < c->h->nplayers; i++)
		for (unsigned j = 0; j < c->h->logs[i].nevents; j++)
			if (c->h->logs[i].events[j].kind == OP_WRITE &&
				of_cell(&c->h->logs[i].events[j], c))
				writers[n++] = who_of(c, &c->h->logs[i].events[j]);
	for (unsigned low = 0; low < n; low++)
		for (unsigned high = 0; high < n; high++)
			if (is_seam(c, writers[low], writers[high]) &&
				explains(c, writers[high], &who) && explains(c, writers[low], &who))
				return who;
	cell_violation(c, c->torn, 0);
}

/* ---- all cells ------------------------------------------------------------------------------- */

static bool of_any_cell(const struct event *e, const void *context)
{
	return of_size(e, context) ? e->kind != OP_STAT
				   : of_data(e, context) && e->kind == OP_PUNCH;
}

static void check_cells(struct history *h, unsigned file)
{
	static uint64_t words[2][PLAYERS_MAX * EVENTS_MAX];
	static const struct event *ops[PLAYERS_MAX][EVENTS_MAX];
	struct cell_context c = {.h = h, .file = file};
	struct search all = {0};
	uint64_t *cells = h->rest.cells[file], *previous = h->rest.previous[file], who = 0;
	size_t n[2] = {0, 0};

	search_select(&all, h, of_any_cell, &file);
	for (unsigned i = 0; i < h->nplayers; i++) {
		memcpy(ops[i], all.ops[i], all.nops[i] * sizeof(ops[i][0]));
		all.ops[i] = ops[i];
	}
	for (c.cell = 0; c.cell < h->file_bytes / CELL_BYTES; c.cell++) {
		unsigned now = c.cell & 1;

		n[now] = signature(&c, &all, words[now]);
		if (c.torn)
			who = judge_torn_cell(&c);
		else if (n[0] != n[1] ||
			 memcmp(words[0], words[1], n[0] * sizeof(words[0][0])) != 0)
			who = judge_cell(&c);
		previous[c.cell] = cells[c.cell];
		cells[c.cell] = value_of_who(who, file, c.cell);
	}
}

void check_data(struct history *h)
{
	check_answers(h);
	for (unsigned file = 0; file < h->nfiles; file++) {
		check_size(h, file);
		check_cells(h, file);
	}
}

/* ---- times ----------------------------------------------------------------------------------- */

static bool has_mtime(const struct event *e)
{
	return (e->kind == OP_STAT || e->kind == OP_LOG_STAT) && e->mtime;
}

static bool of_same_file(const struct event *e, const void *context)
{
	return e->kind <= OP_LOG_STAT && same_file(e, context);
}

/* The lower bound that an earlier event, which had ended, gives for the time. */
static int64_t floor_of(const struct event *e, int64_t slack_ms)
{
	if (has_mtime(e))
		return e->mtime;
	if ((e->kind == OP_WRITE && !is_store(e)) || e->kind == OP_APPEND)
		return e->wall - slack_ms * 1000000;
	return 0;
}

static void check_mtime(struct history *h, const struct event *e, int64_t floor, int64_t slack_ms)
{
	for (unsigned i = 0; i < h->nplayers; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			const struct event *before = &h->logs[i].events[j];

			if (before->end < e->start && before->kind <= OP_LOG_STAT &&
				same_file(before, e) && floor_of(before, slack_ms) > floor)
				floor = floor_of(before, slack_ms);
		}
	}
	if (e->mtime < floor)
		violation(h, e, of_same_file, e,
			"the time of the last write is %" PRId64
			" ns older than what was known before",
			floor - e->mtime);
}

void check_mtimes(struct history *h, int64_t slack_ms)
{
	static int64_t floors[2][FILES_MAX], next[2][FILES_MAX];

	for (unsigned i = 0; i < h->nplayers; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			const struct event *e = &h->logs[i].events[j];
			bool log = e->kind > OP_STAT;

			if (!has_mtime(e))
				continue;
			check_mtime(h, e, floors[log][e->file], slack_ms);
			if (e->mtime > next[log][e->file])
				next[log][e->file] = e->mtime;
		}
	}
	memcpy(floors, next, sizeof(floors));
}
