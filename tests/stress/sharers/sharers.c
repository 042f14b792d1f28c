/* sharers.c - see sharers.h.
 *
 *     sharers make JOURNAL PLAYERS SEED DIRECTORY   begins: an empty directory of the filesystem
 *     sharers play JOURNAL N DIRECTORY              player N, by its own mount, until it leaves
 *     sharers strike JOURNAL N                      its operations from now on have open outcomes
 *     sharers leave JOURNAL [N]                     tells it, or all, to end
 *     sharers hold JOURNAL                          from now on all may wait for one of them,
 *     sharers go JOURNAL                            and from now on no more
 *     sharers pause JOURNAL                         the longest wait of a player that was not
 *                                                   struck, in ms, and its operation
 *     sharers check JOURNAL DIRECTORY               all have ended: checks that everything is there
 *
 * The same seed makes the same choices of each player; chance decides how they meet.
 *
 * Exit status: 0; 1 and what is wrong; 2 usage; 3 a struck player that learned of it by a failed
 * operation.
 */
#include "tests/stress/sharers/sharers.h"

#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"

enum { BEAT_NS = 5000000, LINGER_US = 2500 };

static const char *const operation_names[OP_KINDS] = {
	[OP_OPEN] = "open",
	[OP_READ] = "read",
	[OP_WRITE] = "write",
	[OP_SYNC] = "sync",
	[OP_CUT] = "truncate",
	[OP_NAME] = "name",
	[OP_LOCK] = "lock",
	[OP_UNLOCK] = "unlock",
};

/* NULL: this process plays nothing. */
static struct game *playing;

/* ---- chance ---------------------------------------------------------------------------------- */

uint64_t chance(struct game *g, uint64_t below)
{
	g->random += UINT64_C(0x9e3779b97f4a7c15);
	return mix(g->random) % below;
}

void fill(uint8_t *buf, size_t len, uint64_t what, uint64_t number)
{
	uint64_t x = mix(mix(what) + number);

	for (size_t at = 0; at < len; at += sizeof(x)) {
		uint64_t word = mix(x + at);

		memcpy(buf + at, &word, min_u64(sizeof(word), len - at));
	}
}

/* ---- strikes --------------------------------------------------------------------------------- */

bool is_struck(const struct game *g)
{
	return g->me->strikes != g->strikes;
}

bool was_struck(const struct journal *j, unsigned player, uint32_t strikes)
{
	return j->players[player].strikes != strikes;
}

static _Noreturn void end_struck(const char *what)
{
	printf("sharers: player %u was struck: %s: %s\n", playing->index, what, strerror(errno));
	fflush(stdout);
	_exit(EXIT_STRUCK);
}

_Noreturn void violation(const char *format, ...)
{
	va_list args;

	if (playing && is_struck(playing))
		end_struck(format);
	printf("sharers: VIOLATION: ");
	if (playing)
		printf("player %u: ", playing->index);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

void need(struct game *g, bool ok, const char *what)
{
	if (ok)
		return;
	if (is_struck(g))
		end_struck(what);
	violation("%s: %s", what, strerror(errno));
}

/* ---- time ------------------------------------------------------------------------------------ */

int64_t timing_begin(struct game *g, enum operation op)
{
	int64_t now = monotonic_ns();

	g->me->late_then_ns = g->me->late_ns;
	g->me->doing = op;
	g->me->since_ns = now;
	return now;
}

/* How long the player waited for what was promised. The time in which it did not run itself does
 * not count, nor the time of a player that stands still by permission. */
static int64_t waited_ns(
	const struct journal *j, const struct player *p, int64_t since, int64_t now)
{
	int64_t late = p->late_ns - p->late_then_ns;

	if (j->held)
		return 0;
	if (since < j->went_on_ns)
		since = j->went_on_ns;
	return now - since - late;
}

void timing_end(struct game *g, int64_t since_ns)
{
	int64_t waited = waited_ns(g->journal, g->me, since_ns, monotonic_ns());

	g->me->since_ns = 0;
	g->me->operations++;
	if (is_struck(g) || waited <= g->me->longest_ns)
		return;
	g->me->longest_ns = waited;
	g->me->longest_doing = g->me->doing;
}

/* Measures lost time. No other thread runs sooner on this machine: if this thread loses time, the
 * other thread and the programs that it waits for may lose it, too. */
static void *beat(void *arg)
{
	struct player *me = arg;
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		int64_t late;

		next.tv_nsec += BEAT_NS;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		late = monotonic_ns() - ((int64_t)next.tv_sec * 1000000000 + next.tv_nsec);
		if (late < BEAT_NS)
			continue;
		me->late_ns += late;
		clock_gettime(CLOCK_MONOTONIC, &next);
	}
	return NULL;
}

/* ---- the journal ----------------------------------------------------------------------------- */

static struct journal *map_journal(const char *path, int flags)
{
	autoclose int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
	struct journal *j;

	if (fd < 0 || (flags && ftruncate(fd, sizeof(*j)) != 0))
		err(2, "%s", path);
	j = mmap(NULL, sizeof(*j), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (j == MAP_FAILED)
		err(2, "%s", path);
	return j;
}

static unsigned number_of(const char *text, unsigned below)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || end == text || n >= below)
		errx(2, "'%s' is no number below %u", text, below);
	return (unsigned)n;
}

static void game_init(struct game *g, struct journal *j, unsigned index, const char *dir)
{
	static uint8_t buf[BUF_BYTES] __attribute__((aligned(PAGE_BYTES)));
	static uint8_t expected[BUF_BYTES];

	*g = (struct game){.journal = j,
		.me = &j->players[index],
		.index = index,
		.buf = buf,
		.expected = expected};
	g->strikes = g->me->strikes;
	g->random = mix(j->seed) + mix(index + PLAYERS_MAX * (uint64_t)g->strikes);
	if (chdir(dir) != 0)
		err(2, "%s", dir);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void make(char **args)
{
	struct journal *j = map_journal(args[0], O_CREAT | O_EXCL);
	struct game g;

	j->nplayers = number_of(args[1], PLAYERS_MAX);
	j->seed = strtoull(args[2], NULL, 10);
	game_init(&g, j, j->nplayers, args[3]);
	logs_make();
	registers_make(&g);
	spool_make();
}

static void step(struct game *g)
{
	uint64_t what = chance(g, 20);

	if (what < 7)
		log_append(g);
	else if (what < 8)
		log_empty(g);
	else if (what < 15)
		register_write(g);
	else if (what < 17)
		spool_put(g);
	else
		spool_take(g);
}

static void play(char **args)
{
	struct journal *j = map_journal(args[0], 0);
	struct game g;
	pthread_t thread;

	game_init(&g, j, number_of(args[1], j->nplayers), args[2]);
	playing = &g;
	g.me->leave = false;
	g.me->strikes_then = g.strikes;
	if (pthread_create(&thread, NULL, beat, g.me) || pthread_detach(thread))
		errx(2, "no thread");
	logs_open(&g);
	registers_open(&g);
	spool_sweep(&g);
	while (!g.me->leave) {
		step(&g);
		usleep((useconds_t)chance(&g, LINGER_US));
	}
}

static void strike(char **args)
{
	struct journal *j = map_journal(args[0], 0);

	j->players[number_of(args[1], j->nplayers)].strikes++;
}

static void leave_all(char **args)
{
	struct journal *j = map_journal(args[0], 0);

	for (unsigned i = 0; i < j->nplayers; i++)
		j->players[i].leave = true;
}

static void leave(char **args)
{
	struct journal *j = map_journal(args[0], 0);

	j->players[number_of(args[1], j->nplayers)].leave = true;
}

static void hold(char **args)
{
	map_journal(args[0], 0)->held = true;
}

static void go(char **args)
{
	struct journal *j = map_journal(args[0], 0);

	j->went_on_ns = monotonic_ns();
	j->held = false;
}

static void show_pause(char **args)
{
	struct journal *j = map_journal(args[0], 0);
	int64_t longest = 0, now = monotonic_ns();
	unsigned player = 0, doing = 0;

	for (unsigned i = 0; i < j->nplayers; i++) {
		const struct player *p = &j->players[i];
		int64_t since = p->since_ns, waited = 0;

		if (since && p->strikes == p->strikes_then)
			waited = waited_ns(j, p, since, now);
		if (p->longest_ns > longest) {
			longest = p->longest_ns;
			doing = p->longest_doing;
			player = i;
		}
		if (waited > longest) {
			longest = waited;
			doing = p->doing;
			player = i;
		}
	}
	printf("%" PRId64 " %s of player %u\n", longest / 1000000, operation_names[doing], player);
}

static void check(char **args)
{
	struct journal *j = map_journal(args[0], 0);
	uint64_t noperations = 0;
	struct game g;

	game_init(&g, j, j->nplayers, args[1]);
	logs_open(&g);
	registers_open(&g);
	logs_check(&g);
	registers_check(&g);
	spool_check(&g);
	for (unsigned i = 0; i < j->nplayers; i++)
		noperations += j->players[i].operations;
	printf("sharers: %" PRIu64 " operations, all is there\n", noperations);
}

static const struct command {
	const char *name;
	int nargs;
	void (*run)(char **args);
} commands[] = {
	{"make", 4, make},
	{"play", 3, play},
	{"strike", 2, strike},
	{"leave", 1, leave_all},
	{"leave", 2, leave},
	{"hold", 1, hold},
	{"go", 1, go},
	{"pause", 1, show_pause},
	{"check", 2, check},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(commands); i++) {
		if (strcmp(argv[1], commands[i].name) != 0 || argc - 2 != commands[i].nargs)
			continue;
		commands[i].run(argv + 2);
		return 0;
	}
	fprintf(stderr, "usage: sharers COMMAND JOURNAL ...: see the head of sharers.c\n");
	return 2;
}
