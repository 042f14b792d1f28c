/* player.c - see player.h. */
#include "tests/stress/player.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/base/util.h"

const char *const falsify_names[FALSIFY_KINDS] = {
	[HONEST] = "nothing",
	[STALE_READ] = "stale-read",
	[STALE_BYTES] = "stale-bytes",
	[STALE_MAPPED] = "stale-mapped",
	[STALE_SENT] = "stale-sent",
	[LOST_STORE] = "lost-store",
	[LOST_PAGES] = "lost-pages",
	[GARBAGE] = "garbage",
	[LOST_WRITE] = "lost-write",
	[LOST_TRUNCATE] = "lost-truncate",
	[STALE_SIZE] = "stale-size",
	[STALE_MTIME] = "stale-mtime",
	[LOST_APPEND] = "lost-append",
	[DOUBLE_APPEND] = "double-append",
	[ZERO_TAIL] = "zero-tail",
	[SHORT_TAIL] = "short-tail",
	[STALE_LOG_SIZE] = "stale-log-size",
	[STALE_CONF] = "stale-conf",
	[TORN_CONF] = "torn-conf",
	[MISSING_CONF] = "missing-conf",
	[LOST_HELD] = "lost-held",
	[STALE_HELD] = "stale-held",
	[MISSING_NAME] = "missing-name",
	[GHOST_NAME] = "ghost-name",
	[CREATED_TWICE] = "created-twice",
	[UNLINKED_TWICE] = "unlinked-twice",
	[LOST_RENAME] = "lost-rename",
	[STALE_LINKS] = "stale-links",
	[LIST_MISSING] = "list-missing",
	[LIST_GHOST] = "list-ghost",
};

/* Reserves a part of a log for the time at rest: 19 events for each file, and 124 others. */
enum { REST_EVENTS = 440 };

uint64_t chance(struct player *p, uint64_t below)
{
	p->random += UINT64_C(0x9e3779b97f4a7c15);
	return mix(p->random) % below;
}

struct event *event_new(struct player *p, enum op_kind kind, size_t room)
{
	struct timespec ts;
	struct event *e = &p->log->events[p->log->nevents];

	if (p->log->nevents == EVENTS_MAX || room > ARENA_BYTES - p->log->used)
		return NULL;
	clock_gettime(CLOCK_REALTIME, &ts);
	*e = (struct event){.kind = (uint8_t)kind,
		.player = (uint8_t)p->index,
		.wall = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec,
		.start = monotonic_ns(),
		.data = p->log->used};
	p->log->used += (room + 7) & ~(size_t)7;
	__atomic_store_n(&p->log->nevents, p->log->nevents + 1, __ATOMIC_RELEASE);
	return e;
}

bool falsifies(struct player *p, enum falsify how)
{
	p->falsify_random += UINT64_C(0x9e3779b97f4a7c15);
	return p->falsify == how && mix(p->falsify_random) % 8 == 0;
}

void falsified(struct player *p)
{
	__atomic_add_fetch(&p->h->rest.falsified, 1, __ATOMIC_RELAXED);
}

void need(const struct player *p, bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "coherence: player %u on %s: %s: %s\n", p->index, p->h->dir[p->index], what,
		strerror(errno));
	_exit(2);
}

int open_again(struct player *p, const char *path, int flags)
{
	for (unsigned tries = 0;; tries++) {
		int fd = open(path, flags);

		if (fd >= 0 || errno != ESTALE || tries == 20 || p->h->strict)
			return fd;
		__atomic_add_fetch(&p->h->rest.stale, 1, __ATOMIC_RELAXED);
	}
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Makes many players meet at one file at some times, and each be alone at others. A mount keeps
 * what it has for a while, or loses it at once. */
static void linger(struct player *p)
{
	uint64_t what = chance(p, 64);

	if (what < 8)
		usleep((useconds_t)chance(p, 300));
	else if (what == 8)
		usleep(1000 + (useconds_t)chance(p, 3000));
}

static void plan(struct player *p)
{
	p->random = mix(p->seed + p->h->round);
	p->nhot = 1 + (unsigned)chance(p, p->h->nfiles);
	p->nnames = p->names == NAMES_VARY ? 1 + (unsigned)chance(p, 6) : p->names;
}

/* The same for its arena. A step before may still have taken IO_MAX of that, and listings are
 * small. */
static size_t rest_bytes(const struct player *p)
{
	uint64_t reads_of_file = div_round_up(p->h->file_bytes + PAGE, IO_MAX);

	return (p->h->nfiles * reads_of_file + LOGS + 3) * IO_MAX;
}

static void play(struct player *p, unsigned operations)
{
	plan(p);
	data_round(p);
	while (monotonic_ns() < __atomic_load_n(&p->h->go, __ATOMIC_ACQUIRE))
		;
	for (unsigned i = 0; i < operations; i++) {
		p->random = mix(mix(p->seed + p->h->round) + p->index * 1000003 + i);
		linger(p);
		if (p->log->nevents + REST_EVENTS > EVENTS_MAX ||
			p->log->used + rest_bytes(p) > ARENA_BYTES)
			return;
		if (chance(p, 8) < p->nnames)
			names_step(p);
		else
			data_step(p);
	}
}

static void look_at_all(struct player *p)
{
	p->random = mix(mix(p->seed + p->h->round) + p->index * 1000003 + 999999);
	data_rest(p);
	names_rest(p);
}

void player_run(struct player *p, const char *folder, unsigned operations, int control)
{
	char command;

	need(p, chdir(folder) == 0, folder);
	p->buf = mmap(NULL, IO_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(p, p->buf != MAP_FAILED, "mmap");
	p->falsify_random = mix(p->seed ^ mix(p->index + 1));
	data_begin(p);
	names_begin(p);
	while (read(control, &command, 1) == 1) {
		if (command == 'p')
			play(p, operations);
		else
			look_at_all(p);
		p->h->seq[p->index] = p->seq;
		need(p, write(control, &command, 1) == 1, "control");
	}
	_exit(0);
}
