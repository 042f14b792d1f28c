/* check_names.c - names and the files behind them; see check.h.
 *
 * All names are one object, so a rename must be seen to happen at once. A path is walked in steps,
 * each at a moment of its own, as in any kernel: a folder that was found can be gone before an
 * operation in it.
 *
 * Even on local filesystems some operations happen in two moments. A listing misses a name that can
 * still be looked up. A link count changes before the name does. A folder takes no new names before
 * its own name is gone. So a listing's names, and link counts, are judged exactly only if no
 * operation in progress could change them, and removing a folder takes two steps.
 */
#include "tests/stress/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stress/search.h"

enum { DIRS = 1 + NAME_DIRS };
enum { DYING = 1U << 31 }; /* of a folder's id: its name is about to go */

struct names {
	uint32_t dir[DIRS]; /* id of the folder of this name; 0: none. dir[0] is always there */
	uint64_t ino[DIRS][NAME_FILES];
};

static struct names rest_names = {.dir = {1}};

/* A LINK that proves nothing (may_be_told_gone()) is left out. */
static bool of_names(const struct event *e, const void *context)
{
	return e->kind >= OP_HELD_STAT && !(e->kind == OP_LINK && e->value);
}

/* ---- what was on its way --------------------------------------------------------------------- */

static bool overlaps(const struct event *a, const struct event *b)
{
	return a->start <= b->end && b->start <= a->end;
}

static bool changes_names(const struct event *e)
{
	return !e->err && (e->kind == OP_CREATE || e->kind == OP_UNLINK || e->kind == OP_RENAME ||
				  e->kind == OP_LINK);
}

static bool changes_dirs(const struct event *e)
{
	return !e->err && (e->kind == OP_MKDIR || e->kind == OP_RMDIR || e->kind == OP_DIR_RENAME);
}

/* Notes as bits the names of the listing, files first, that concurrent operations may have changed,
 * and how many operations might have changed a link count. */
static void note_changes(const struct history *h, struct event *e)
{
	unsigned nchanges = 0;
	uint32_t bits = 0;

	for (unsigned i = 0; i < h->nplayers; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			const struct event *c = &h->logs[i].events[j];

			if (!overlaps(c, e))
				continue;
			if (changes_names(c))
				bits |= 1U << c->a.file | 1U << c->b.file;
			if (changes_dirs(c))
				bits |= 1U << (NAME_FILES + c->a.dir) |
					1U << (NAME_FILES + c->b.dir);
			nchanges += e->kind == OP_DIR_STAT ? changes_dirs(c) : changes_names(c);
		}
	}
	e->flags = e->kind == OP_LIST ? bits : nchanges;
}

static bool renames(const struct event *e)
{
	return !e->err && (e->kind == OP_RENAME || e->kind == OP_DIR_RENAME) &&
	       e->flags != RENAME_NOREPLACE;
}

/* Whether another player renamed during the event. */
static bool meets_rename(const struct history *h, const struct event *e)
{
	for (unsigned i = 0; i < h->nplayers; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents && i != e->player; j++) {
			const struct event *c = &h->logs[i].events[j];

			if (c->kind == e->kind && !c->err && overlaps(c, e))
				return true;
		}
	}
	return false;
}

/* A kernel decrements a file's link count when it has removed a name. If it has learned the count
 * by another name meanwhile, the result is too low, perhaps 0; then it makes no links.
 */
static bool may_be_told_gone(const struct history *h, const struct event *e)
{
	for (unsigned i = 0; i < h->nplayers && !h->strict; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			const struct event *c = &h->logs[i].events[j];

			if (i == e->player || h->device[i] != h->device[e->player])
				break;
			if (!c->err && (c->kind == OP_UNLINK || c->kind == OP_RENAME) &&
				overlaps(c, e))
				return true;
		}
	}
	return false;
}

static bool is_judged_calm(const struct event *e)
{
	return e->kind == OP_LIST || e->kind == OP_NAME_STAT || e->kind == OP_HELD_STAT ||
	       e->kind == OP_DIR_STAT;
}

static void prepare(struct history *h)
{
	for (unsigned i = 0; i < h->nplayers; i++) {
		for (unsigned j = 0; j < h->logs[i].nevents; j++) {
			struct event *e = &h->logs[i].events[j];
			const struct listing *l = event_data(h, e);

			if (is_judged_calm(e))
				note_changes(h, e);
			if (renames(e))
				e->value = meets_rename(h, e);
			if (e->kind == OP_LINK && e->err == ENOENT)
				e->value = may_be_told_gone(h, e);
			if (e->kind != OP_LIST || e->err)
				continue;
			if (l->strange[0])
				violation(h, e, of_names, NULL,
					"a listing shows '%s', which nobody made", l->strange);
			if (l->twice & ~e->flags)
				violation(h, e, of_names, NULL, "a listing shows one name twice");
		}
	}
}

/* ---- the object ------------------------------------------------------------------------------ */

static int slot_of(const struct names *n, uint64_t id)
{
	for (int d = 0; d < DIRS; d++)
		if (n->dir[d] == id)
			return d;
	return -1; /* removed, or DYING */
}

/* The entry of a file's name; NULL: its folder is gone. */
static uint64_t *name_in(struct names *n, uint64_t id, unsigned file)
{
	int slot = slot_of(n, id);

	return slot < 0 ? NULL : &n->ino[slot][file];
}

static unsigned links_of(const struct names *n, uint64_t ino)
{
	unsigned count = 0;

	for (unsigned d = 0; d < DIRS; d++)
		for (unsigned f = 0; f < NAME_FILES; f++)
			count += n->ino[d][f] == ino;
	return count;
}

static unsigned folders_of(const struct names *n)
{
	unsigned count = 0;

	for (unsigned d = 1; d < DIRS; d++)
		count += n->dir[d] != 0;
	return count;
}

static bool is_empty(const struct names *n, unsigned d)
{
	for (unsigned f = 0; f < NAME_FILES; f++)
		if (n->ino[d][f])
			return false;
	return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Whether the operation could have got this answer now. */
static enum step answer(const struct event *e, int err)
{
	return e->err == err ? STEP_DONE : STEP_NO;
}

static bool close_to(unsigned told, unsigned count, unsigned tolerance)
{
	return told + tolerance >= count && told <= count + tolerance;
}

/* Finds the folder of a name, in a step of its own unless it is the permanent one. Returns whether
 * the operation is beyond that; otherwise *result is the result of the step. */
static bool is_in_folder(const struct names *n, struct cursor *c, const struct event *e,
	unsigned dir, unsigned step, enum step *result)
{
	if (c->step > 2 * step)
		return true;
	if (dir && !n->dir[dir]) {
		*result = answer(e, ENOENT);
		return false;
	}
	c->local[step] = n->dir[dir] & ~DYING;
	c->step = 2 * step + 1;
	*result = STEP_MORE;
	return !dir;
}

static enum step observe_listing(
	const struct search *s, const struct names *n, struct cursor *c, const struct event *e)
{
	const struct listing *l = event_data(s->history, e);
	int slot = slot_of(n, c->local[0]);
	uint64_t seen = c->local[1], all = 0;

	if (e->err)
		return slot < 0 ? answer(e, ENOENT) : STEP_NO;
	for (unsigned f = 0; f < NAME_FILES; f++) {
		all |= 1U << f;
		if ((slot < 0 ? 0 : n->ino[slot][f]) == l->ino[f])
			seen |= 1U << f;
	}
	for (unsigned d = 1; e->a.dir == 0 && d < DIRS; d++) {
		all |= 1U << (NAME_FILES + d);
		if ((n->dir[d] != 0) == !!(l->dirs & 1U << d))
			seen |= 1U << (NAME_FILES + d);
	}
	if (((seen | e->flags) & all) == all)
		return STEP_DONE;
	if (seen == c->local[1])
		return STEP_NO;
	c->local[1] = seen;
	return STEP_MORE;
}

/* Its folder is known. */
static enum step observe_stat(const struct names *n, struct cursor *c, const struct event *e)
{
	int slot = slot_of(n, c->local[0]);
	uint64_t ino = slot < 0 ? 0 : n->ino[slot][e->a.file];

	if (c->step < 2) {
		if (!ino)
			return answer(e, ENOENT);
		if (e->err || e->ino != ino)
			return STEP_NO;
		if (e->kind == OP_OPEN)
			return STEP_DONE;
		c->step = 2;
		return STEP_MORE;
	}
	return close_to(e->nlink, links_of(n, e->ino), e->flags) ? STEP_DONE : STEP_NO;
}

/* A rename whose source was found, and that waits until its target is the same file: see
 * take_found. */
static enum step observe_rename(const struct names *n, struct cursor *c, const struct event *e)
{
	int slot = slot_of(n, c->local[1]);
	uint64_t target;

	if (e->kind == OP_DIR_RENAME)
		target = n->dir[e->b.dir] & ~DYING;
	else
		target = slot < 0 ? 0 : n->ino[slot][e->b.file];
	return c->local[2] && target == c->local[2] ? STEP_DONE : STEP_NO;
}

static enum step observe_names(
	const struct search *s, const void *object, struct cursor *c, const struct event *e)
{
	const struct names *n = object;

	switch ((enum op_kind)e->kind) {
	case OP_HELD_STAT:
		if (e->err)
			return STEP_NO;
		return close_to(e->nlink, links_of(n, e->ino), e->flags) ? STEP_DONE : STEP_NO;
	case OP_DIR_STAT:
		if (!n->dir[e->a.dir])
			return answer(e, ENOENT);
		if (e->err || e->a.dir || !s->history->counts_folders)
			return answer(e, 0);
		return close_to(e->nlink, 2 + folders_of(n), e->flags) ? STEP_DONE : STEP_NO;
	case OP_NAME_STAT:
	case OP_OPEN:
	case OP_LIST:
		if (e->a.dir == 0 && c->step == 0) {
			c->local[0] = 1;
			c->step = 1;
		}
		if (c->step == 0)
			return n->dir[e->a.dir] ? STEP_NO : answer(e, ENOENT);
		return e->kind == OP_LIST ? observe_listing(s, n, c, e) : observe_stat(n, c, e);
	case OP_RENAME:
	case OP_DIR_RENAME:
		return observe_rename(n, c, e);
	default:
		return STEP_NO;
	}
}

static enum step take_create(struct names *n, struct cursor *c, const struct event *e)
{
	uint64_t *at = name_in(n, c->local[0], e->a.file);

	if (!at)
		return answer(e, ENOENT);
	if (*at)
		return answer(e, EEXIST);
	if (!e->err)
		*at = e->ino;
	return answer(e, 0);
}

static enum step take_unlink(struct names *n, struct cursor *c, const struct event *e)
{
	uint64_t *at = name_in(n, c->local[0], e->a.file);

	if (!at || !*at)
		return answer(e, ENOENT);
	if (!e->err)
		*at = 0;
	return answer(e, 0);
}

static void swap(uint64_t *a, uint64_t *b)
{
	uint64_t old = *a;

	*a = *b;
	*b = old;
}

static enum step take_rename(struct names *n, struct cursor *c, const struct event *e)
{
	uint64_t *from = name_in(n, c->local[0], e->a.file);
	uint64_t *to = name_in(n, c->local[1], e->b.file);
	bool noreplace = e->flags == RENAME_NOREPLACE, exchange = e->flags == RENAME_EXCHANGE;

	if (!from || !to || !*from || (exchange && !*to))
		return e->err == EEXIST && to && *to && noreplace ? STEP_DONE : answer(e, ENOENT);
	if (noreplace && *to)
		return answer(e, EEXIST);
	if (e->err)
		return STEP_NO;
	if (exchange) {
		swap(from, to);
	} else if (*from != *to) {
		*to = *from;
		*from = 0;
	}
	return STEP_DONE;
}

static enum step take_link_at(struct names *n, const struct cursor *c, const struct event *e)
{
	uint64_t *at = name_in(n, c->local[1], e->b.file);
	bool gone = !links_of(n, c->local[0]);

	if (!at)
		return answer(e, ENOENT);
	if (*at && answer(e, EEXIST) == STEP_DONE)
		return STEP_DONE;
	if (gone)
		return answer(e, ENOENT);
	if (*at || e->err)
		return STEP_NO;
	*at = c->local[0];
	return STEP_DONE;
}

/* The operation finds its file by one name, and adds the other name in another step. */
static enum step take_link(struct names *n, struct cursor *c, const struct event *e)
{
	enum step result;

	if (!is_in_folder(n, c, e, e->a.dir, 0, &result))
		return result;
	if (c->step == 1) {
		const uint64_t *at = name_in(n, c->local[0], e->a.file);

		if (!at || !*at)
			return answer(e, ENOENT);
		c->local[0] = *at;
		c->step = 2;
		return STEP_MORE;
	}
	if (!is_in_folder(n, c, e, e->b.dir, 1, &result))
		return result;
	return take_link_at(n, c, e);
}

static enum step take_mkdir(struct names *n, const struct cursor *c, const struct event *e)
{
	uint32_t *dir = &n->dir[e->a.dir];

	if (*dir & DYING)
		return STEP_NO;
	if (*dir)
		return answer(e, EEXIST);
	if (!e->err)
		*dir = (e->player + 1U) << 16 | c->at;
	return answer(e, 0);
}

static enum step take_rmdir(struct names *n, struct cursor *c, const struct event *e)
{
	uint32_t *dir = &n->dir[e->a.dir];

	if (c->step == 1) {
		*dir = 0;
		return STEP_DONE;
	}
	if (*dir & DYING)
		return STEP_NO;
	if (!*dir)
		return answer(e, ENOENT);
	if (!is_empty(n, e->a.dir))
		return answer(e, ENOTEMPTY);
	if (e->err)
		return STEP_NO;
	*dir |= DYING;
	c->step = 1;
	return STEP_MORE;
}

static enum step take_dir_rename(struct names *n, struct cursor *c, const struct event *e)
{
	uint32_t *from = &n->dir[e->a.dir], *to = &n->dir[e->b.dir];

	if (*from & DYING || (c->step == 0 && *to & DYING))
		return STEP_NO;
	if (!*from)
		return answer(e, ENOENT);
	if (*to && !is_empty(n, e->b.dir))
		return answer(e, ENOTEMPTY);
	if (e->err)
		return STEP_NO;
	if (*to && c->step == 0) {
		*to |= DYING;
		c->step = 1;
		return STEP_MORE;
	}
	*to = *from;
	*from = 0;
	memcpy(n->ino[e->b.dir], n->ino[e->a.dir], sizeof(n->ino[0]));
	memset(n->ino[e->a.dir], 0, sizeof(n->ino[0]));
	return STEP_DONE;
}

/* Operations that find their folders first; looking up a folder took a step. */
static enum step take_in_folders(struct names *n, struct cursor *c, const struct event *e)
{
	enum step result;

	if (!is_in_folder(n, c, e, e->a.dir, 0, &result))
		return result;
	if (e->kind == OP_RENAME && !is_in_folder(n, c, e, e->b.dir, 1, &result))
		return result;
	switch ((enum op_kind)e->kind) {
	case OP_CREATE:
		return take_create(n, c, e);
	case OP_UNLINK:
		return take_unlink(n, c, e);
	case OP_RENAME:
		return take_rename(n, c, e);
	default:
		return STEP_NO; /* continues by observing */
	}
}

static enum step take_names(
	const struct search *s, void *object, struct cursor *c, const struct event *e)
{
	struct names *n = object;

	if (c->local[2])
		return STEP_NO;
	switch ((enum op_kind)e->kind) {
	case OP_CREATE:
	case OP_UNLINK:
	case OP_RENAME:
		return take_in_folders(n, c, e);
	case OP_OPEN:
	case OP_NAME_STAT:
	case OP_LIST:
		return c->step == 0 ? take_in_folders(n, c, e) : STEP_NO;
	case OP_LINK:
		return take_link(n, c, e);
	case OP_MKDIR:
		return take_mkdir(n, c, e);
	case OP_RMDIR:
		return take_rmdir(n, c, e);
	case OP_DIR_RENAME:
		return take_dir_rename(n, c, e);
	default:
		return STEP_NO;
	}
}

/* Kernels find both names before they rename, and do nothing if both are one file. If another mount
 * makes the same rename between the two lookups, both names seem to be one file. So the second of
 * two players that make the same rename gets success, too. */
static enum step take_found(
	const struct search *s, void *object, struct cursor *c, const struct event *e)
{
	struct names *n = object;
	const uint64_t *from;

	if (!e->value || c->local[2])
		return STEP_NO;
	if (e->kind == OP_DIR_RENAME) {
		if (c->step)
			return STEP_NO;
		c->local[2] = n->dir[e->a.dir] & ~DYING;
		return c->local[2] ? STEP_MORE : STEP_NO;
	}
	if ((e->a.dir && c->step < 1) || (e->b.dir && c->step < 3))
		return STEP_NO;
	from = name_in(n, e->a.dir ? c->local[0] : 1, e->a.file);
	if (!from || !*from)
		return STEP_NO;
	c->local[1] = e->b.dir ? c->local[1] : 1;
	c->local[2] = *from;
	return STEP_MORE;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void print_state(const struct names *n)
{
	printf("coherence: where most is explained, there is:");
	for (unsigned d = 0; d < DIRS; d++) {
		if (n->dir[d] && d)
			printf(" d%u%s", d, n->dir[d] & DYING ? " (going)" : "");
		for (unsigned f = 0; f < NAME_FILES; f++)
			if (n->ino[d][f])
				printf(" d%u/f%u=%" PRIu64, d, f, n->ino[d][f]);
	}
	printf("\n");
}

/* Takes what one player saw last, when all was at rest. */
static void take_last_seen(const struct history *h, struct names *n)
{
	for (unsigned j = 0; j < h->logs[0].nevents; j++) {
		const struct event *e = &h->logs[0].events[j];

		if (e->kind == OP_DIR_STAT)
			n->dir[e->a.dir] = e->err ? 0 : e->a.dir + 1U;
		if (e->kind == OP_NAME_STAT)
			n->ino[e->a.dir][e->a.file] = e->err ? 0 : e->ino;
	}
}

void check_names(struct history *h)
{
	struct names n = rest_names;
	struct search s = {.object_bytes = sizeof(n),
		.observe = observe_names,
		.take = take_names,
		.take_other = h->strict ? NULL : take_found};
	const struct event *stuck;

	prepare(h);
	search_select(&s, h, of_names, NULL);
	switch (search_run(&s, &n, &stuck)) {
	case SEARCH_IMPOSSIBLE:
		print_state(&n);
		violation(h, stuck, of_names, NULL,
			"names: no order of the operations explains all that is seen, here *%s*",
			stuck ? op_name(stuck->kind) : "");
	case SEARCH_UNDECIDED:
		check_undecided++;
		take_last_seen(h, &n);
		break;
	case SEARCH_EXPLAINED:
		break;
	}
	for (unsigned d = 0; d < DIRS; d++)
		if (n.dir[d])
			n.dir[d] = d + 1;
	rest_names = n;
}
