/* history.c - see history.h. */
#include "tests/stress/history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PRINTED_MAX = 80 };

void (*history_before_exit)(void);

struct history *history_new(void)
{
	void *at = mmap(NULL, sizeof(struct history), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static uint64_t hash_name(struct name name)
{
	return (uint64_t)name.dir << 8 | name.file;
}

uint64_t event_hash(uint64_t hash, const struct event *e)
{
	if (e->kind == OP_HELD_WRITE || e->kind == OP_HELD_READ || e->kind == OP_HELD_STAT)
		return hash;
	hash = mix(hash + e->kind);
	hash = mix(hash + ((uint64_t)e->way << 8 | e->file));
	hash = mix(hash + (e->kind == OP_TAIL ? 0 : e->off));
	hash = mix(hash + e->len);
	return mix(hash + ((uint64_t)e->flags << 32 | hash_name(e->a) << 16 | hash_name(e->b)));
}

/* ---- values ---------------------------------------------------------------------------------- */

static uint32_t cell_check(uint32_t who, uint64_t file, uint64_t cell)
{
	return (uint32_t)mix(mix(file + 1) + cell * UINT64_C(0x9e3779b97f4a7c15) + who);
}

uint64_t cell_value(unsigned player, uint32_t seq, uint64_t file, uint64_t cell)
{
	uint32_t who = player << 26 | (seq & 0x3ffffff);

	return (uint64_t)who << 32 | cell_check(who, file, cell);
}

bool cell_valid(uint64_t value, uint64_t file, uint64_t cell)
{
	return !value || (uint32_t)value == cell_check((uint32_t)(value >> 32), file, cell);
}

unsigned cell_player(uint64_t value)
{
	return (unsigned)(value >> 58);
}

uint32_t cell_seq(uint64_t value)
{
	return (uint32_t)(value >> 32) & 0x3ffffff;
}

const char *cell_text(uint64_t value, char text[CELL_TEXT])
{
	if (value)
		snprintf(text, CELL_TEXT, "#%u of player %u", cell_seq(value), cell_player(value));
	else
		snprintf(text, CELL_TEXT, "zeros");
	return text;
}

unsigned record_cells(unsigned player, uint32_t seq)
{
	uint64_t x = mix(((uint64_t)player << 32) + seq + 1);

	return 1 + (unsigned)(x >> 8) % (x & 7 ? 24 : 1500);
}

unsigned conf_cells(unsigned player, uint32_t seq)
{
	uint64_t x = mix(((uint64_t)player << 32) + seq + 77);

	return 1 + (unsigned)(x >> 8) % (x & 3 ? 100 : 4000);
}

/* ---- telling --------------------------------------------------------------------------------- */

static const char *const names[OP_KINDS] = {
	[OP_WRITE] = "write",
	[OP_READ] = "read",
	[OP_TRUNCATE] = "truncate",
	[OP_PUNCH] = "punch",
	[OP_ALLOCATE] = "allocate",
	[OP_STAT] = "stat",
	[OP_APPEND] = "append",
	[OP_TAIL] = "tail",
	[OP_LOG_STAT] = "stat",
	[OP_PUBLISH] = "publish",
	[OP_FETCH] = "fetch",
	[OP_HELD_WRITE] = "held write",
	[OP_HELD_READ] = "held read",
	[OP_HELD_STAT] = "held stat",
	[OP_CREATE] = "create",
	[OP_OPEN] = "open",
	[OP_UNLINK] = "unlink",
	[OP_RENAME] = "rename",
	[OP_LINK] = "link",
	[OP_NAME_STAT] = "stat",
	[OP_LIST] = "list",
	[OP_MKDIR] = "mkdir",
	[OP_RMDIR] = "rmdir",
	[OP_DIR_RENAME] = "rename folder",
	[OP_DIR_STAT] = "stat folder",
};

const char *const way_names[WAYS] = {"cached", "write-only", "direct", "mapped", "sent"};
static const char *const asked_names[ASKED] = {"fd", "path", "seek"};

const char *op_name(enum op_kind kind)
{
	return names[kind];
}

static void print_name(struct name name)
{
	if (name.dir)
		printf(" d%u/f%u", name.dir, name.file);
	else
		printf(" f%u", name.file);
}

static void print_stat(const struct event *e)
{
	printf(" by %s: size %" PRIu64, asked_names[e->way], e->size);
	if (e->mtime)
		printf(" mtime %" PRId64 ".%09" PRId64, e->mtime / 1000000000,
			e->mtime % 1000000000);
}

static void print_listing(const struct listing *l)
{
	for (unsigned i = 0; i < NAME_FILES; i++)
		if (l->ino[i])
			printf(" f%u=%" PRIu64, i, l->ino[i]);
	for (unsigned d = 1; d <= NAME_DIRS; d++)
		if (l->dirs & 1U << d)
			printf(" d%u", d);
	if (l->twice)
		printf(" (twice: %#x)", l->twice);
	if (l->strange[0])
		printf(" '%s'", l->strange);
}

static void print_data(const struct event *e)
{
	char text[CELL_TEXT];

	switch ((enum op_kind)e->kind) {
	case OP_WRITE:
	case OP_READ:
	case OP_PUNCH:
	case OP_ALLOCATE:
		printf(" data%u %" PRIu64 "+%" PRIu64, e->file, e->off, e->len);
		if (e->kind == OP_READ || e->kind == OP_WRITE)
			printf(" %s", way_names[e->way]);
		if (e->kind == OP_READ)
			printf(": %" PRIu64 " bytes%s%s", e->n,
				e->flags & SHOWS_VALUE ? ", there " : "",
				e->flags & SHOWS_VALUE ? cell_text(e->value, text) : "");
		else if (e->kind == OP_WRITE)
			printf(" #%u: %" PRIu64 " bytes", e->seq, e->n);
		break;
	case OP_TRUNCATE:
		printf(" data%u to %" PRIu64, e->file, e->len);
		break;
	case OP_STAT:
		printf(" data%u", e->file);
		print_stat(e);
		break;
	case OP_APPEND:
		printf(" log%u #%u, %" PRIu64 " bytes", e->file, e->seq, e->len);
		break;
	case OP_TAIL:
		printf(" log%u %" PRIu64 "+%" PRIu64 " %s: %" PRIu64 " bytes", e->file, e->off,
			e->len, way_names[e->way], e->n);
		break;
	case OP_LOG_STAT:
		printf(" log%u", e->file);
		print_stat(e);
		break;
	case OP_PUBLISH:
		printf(" #%u", e->seq);
		break;
	case OP_FETCH:
		printf(": %s, %" PRIu64 " bytes", cell_text(e->value, text), e->n);
		break;
	default:
		break;
	}
}

static void print_names(const struct history *h, const struct event *e)
{
	char text[CELL_TEXT];

	switch ((enum op_kind)e->kind) {
	case OP_HELD_WRITE:
	case OP_HELD_READ:
		printf(" inode %" PRIu64 " cell %" PRIu64 ": %s", e->ino, e->off,
			cell_text(e->value, text));
		break;
	case OP_HELD_STAT:
		printf(" inode %" PRIu64 ": %u links", e->ino, e->nlink);
		break;
	case OP_CREATE:
	case OP_OPEN:
	case OP_NAME_STAT:
		print_name(e->a);
		if (!e->err)
			printf(": inode %" PRIu64, e->ino);
		if (e->kind == OP_NAME_STAT && !e->err)
			printf(", %u links", e->nlink);
		break;
	case OP_RENAME:
	case OP_LINK:
		print_name(e->a);
		print_name(e->b);
		if (e->flags)
			printf(" %s", e->flags == RENAME_NOREPLACE ? "noreplace" : "exchange");
		break;
	case OP_UNLINK:
		print_name(e->a);
		break;
	case OP_LIST:
		printf(" d%u:", e->a.dir);
		if (!e->err)
			print_listing(event_data(h, e));
		break;
	case OP_DIR_RENAME:
		printf(" d%u d%u", e->a.dir, e->b.dir);
		break;
	case OP_MKDIR:
	case OP_RMDIR:
		printf(" d%u", e->a.dir);
		break;
	case OP_DIR_STAT:
		printf(" d%u: %u links", e->a.dir, e->nlink);
		break;
	default:
		break;
	}
}

void event_print(const struct history *h, const struct event *e, const char *mark)
{
	printf("%s%12.6f", mark, (double)(e->start - h->began) / 1e9);
	if (e->end)
		printf(" %12.6f", (double)(e->end - h->began) / 1e9);
	else
		printf(" %12s", "unanswered");
	printf("  player %-2u %s", e->player, op_name(e->kind));
	if (e->kind < OP_HELD_WRITE)
		print_data(e);
	else
		print_names(h, e);
	printf("%s%s  (%s)\n", e->err ? ": " : "", e->err ? strerror(e->err) : "",
		h->dir[e->player]);
}

static int by_start(const void *a, const void *b)
{
	const struct event *x = *(const struct event *const *)a;
	const struct event *y = *(const struct event *const *)b;

	return (x->start > y->start) - (x->start < y->start);
}

static void print_part(const struct history *h, const struct event *suspect,
	bool (*part)(const struct event *e, const void *context), const void *context)
{
	static const struct event *chosen[PLAYERS_MAX * EVENTS_MAX];
	size_t n = 0, first = 0, last;

	for (unsigned i = 0; i < h->nplayers; i++)
		for (unsigned j = 0; j < h->logs[i].nevents; j++)
			if (!part || part(&h->logs[i].events[j], context))
				chosen[n++] = &h->logs[i].events[j];
	qsort(chosen, n, sizeof(const struct event *), by_start);
	for (size_t i = 0; suspect && i < n && chosen[i]->start <= suspect->start; i++)
		first = i;
	first = first > PRINTED_MAX * 3 / 4 ? first - PRINTED_MAX * 3 / 4 : 0;
	last = n - first > PRINTED_MAX ? first + PRINTED_MAX : n;
	for (size_t i = first; i < last && chosen[i]; i++)
		event_print(h, chosen[i], chosen[i] == suspect ? "* " : "  ");
}

static void print_wrong(const struct history *h, const char *what)
{
	printf("coherence: VIOLATION in round %u of seed %" PRIu64 ": %s\n", h->round, h->seed,
		what);
}

_Noreturn void violation(const struct history *h, const struct event *suspect,
	bool (*part)(const struct event *e, const void *context), const void *context,
	const char *format, ...)
{
	char what[512];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	print_wrong(h, what);
	printf("  %12s %12s  operations, each from its start to its end, in seconds:\n", "start",
		"end");
	print_part(h, suspect, part, context);
	if (part) {
		printf("  ... and all that was done then:\n");
		print_part(h, suspect, NULL, NULL);
	}
	print_wrong(h, what);
	if (h->rest.falsified)
		printf("coherence: %" PRIu64 " results were falsified on purpose\n",
			h->rest.falsified);
	fflush(stdout);
	if (history_before_exit)
		history_before_exit();
	exit(1);
}
