/* coherence.c - tests whether a filesystem that is mounted at several places is one filesystem:
 *
 *     coherence [OPTION]... DIRECTORY DIRECTORY...
 *
 * Players are processes; each works by one of the directories. They do random operations on the
 * same few files and names, and record what they see and when. Rounds are short, and between them
 * all is at rest. The referee asks of each round whether an order of its operations, each at a
 * moment between its start and its end, explains what all players saw:
 *
 *   data      cells of 8 bytes that name their writer: written, stored into mappings, read,
 *             direct, mapped, sent, truncated, punched; sizes; times       check_data.c
 *   logs      appended to by all: records whole, once, in order; tailed    check_logs.c
 *   conf      a file that is replaced by rename, and read                  check_files.c
 *   held      files that are open while they are unlinked                  check_files.c
 *   names     O_EXCL, unlink, rename, link, folders, listings, links       check_names.c
 *
 * At the end of each round every mount's view of everything must be explained, too. The same seed
 * makes the same operations of each player; chance decides how they meet.
 *
 * With --stage FILE the last directory is a visitor, which comes and goes (stage.h).
 *
 * Exit status: 0; 1 with the unexplained history on standard output; 2 if the fault is not the
 * filesystem's; 3 if nothing is wrong, but too many rounds remained undecided. With --break a
 * player falsifies what it sees, and the expected status is 1.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/util.h"
#include "tests/stress/check.h"
#include "tests/stress/player.h"
#include "tests/stress/search.h"
#include "tests/stress/stage.h"

enum {
	DIRECTORIES_MAX = 8,
	CONF_PLAYER = 63, /* the writer of the replaced file's first version */
	LOG_FULL = LOG_BYTES_MAX / 2,
	ROUND_MAX = 500,
	UNDECIDED_FEW = 5,     /* so many rounds may be undecided, in a run of any length */
	UNDECIDED_SHARE = 100, /* and one of so many */
};

static struct options {
	uint64_t seed, operations;
	unsigned seconds, players, files, round, timeout, names;
	uint64_t size;
	int64_t slack_ms;
	enum falsify falsify;
	bool verbose, keep, strict, unmapped;
	const char *stage; /* path of stage.h; NULL: all play all the time */
	const char *dirs[DIRECTORIES_MAX];
	unsigned ndirs;
} options = {.seconds = 10,
	.players = 1,
	.files = 3,
	.round = 60,
	.names = NAMES_VARY,
	.timeout = 120,
	.size = 128 << 10,
	.slack_ms = 100};

static struct {
	struct history *h;
	pid_t pid[PLAYERS_MAX];
	int control[PLAYERS_MAX]; /* -1: it does not play */
	char folder[32];          /* in each directory */
	int at[DIRECTORIES_MAX];  /* the folder in each; -1: it is not mounted */
	enum stage stage;
	uint64_t count[OP_KINDS], good[OP_KINDS];
	uint64_t by_way[2][WAYS];  /* reads and writes */
	unsigned undecided;        /* rounds */
	uint64_t did[PLAYERS_MAX]; /* a hash over the operations of each, in order */
} game;

static _Noreturn void __attribute__((format(printf, 1, 2))) give_up(const char *format, ...);

/* ---- players --------------------------------------------------------------------------------- */

static void kill_players(void)
{
	for (unsigned i = 0; game.h && i < game.h->nplayers; i++)
		if (game.pid[i] > 0)
			kill(game.pid[i], SIGKILL);
}

static void give_up(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "coherence: seed %" PRIu64 ": ", options.seed);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	kill_players();
	exit(2);
}

static _Noreturn void become_player(unsigned index, int control)
{
	struct player *p = calloc(1, sizeof(*p));
	char path[4096];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < game.h->nplayers; i++)
		if (i != index && game.control[i] >= 0)
			close(game.control[i]);
	for (unsigned i = 0; i < options.ndirs; i++)
		if (game.at[i] >= 0)
			close(game.at[i]);
	if (!p)
		_exit(2);
	p->h = game.h;
	p->index = index;
	p->log = &game.h->logs[index];
	p->seed = options.seed;
	p->seq = game.h->seq[index];
	p->falsify = options.falsify;
	p->names = options.names;
	p->reads_all = index < options.ndirs;
	snprintf(path, sizeof(path), "%s/%s", game.h->dir[index], game.folder);
	player_run(p, path, options.round, control);
}

static void start_player(unsigned i)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		give_up("socketpair: %s", strerror(errno));
	game.pid[i] = fork();
	if (game.pid[i] < 0)
		give_up("fork: %s", strerror(errno));
	if (!game.pid[i]) {
		close(pair[0]);
		become_player(i, pair[1]);
	}
	close(pair[1]);
	game.control[i] = pair[0];
}

static void end_player(unsigned i)
{
	if (game.control[i] < 0)
		return;
	close(game.control[i]);
	waitpid(game.pid[i], NULL, 0);
	game.control[i] = -1;
	game.pid[i] = 0;
}

static bool is_unanswered(const struct event *e, const void *context)
{
	return !e->end;
}

static void await(unsigned player)
{
	struct pollfd poll_fd = {.fd = game.control[player], .events = POLLIN};
	char done;
	int status = 0;

	if (poll(&poll_fd, 1, (int)options.timeout * 1000) == 0)
		violation(game.h, NULL, is_unanswered, NULL, "player %u hangs, for %u s or more",
			player, options.timeout);
	if (read(game.control[player], &done, 1) == 1)
		return;
	waitpid(game.pid[player], &status, 0);
	game.pid[player] = 0;
	give_up("player %u on %s has ended with status %#x", player, game.h->dir[player],
		(unsigned)status);
}

static void all_do(char command)
{
	__atomic_store_n(&game.h->go, monotonic_ns() + 300000, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < game.h->nplayers; i++)
		if (game.control[i] >= 0 && write(game.control[i], &command, 1) != 1)
			give_up("player %u is gone", i);
	for (unsigned i = 0; i < game.h->nplayers; i++)
		if (game.control[i] >= 0)
			await(i);
}

static void end_players(void)
{
	for (unsigned i = 0; i < game.h->nplayers; i++)
		end_player(i);
	game.h->nplayers = 0;
}

/* ---- the field ------------------------------------------------------------------------------- */

static void make_file(const char *name, const void *bytes, size_t len)
{
	autoclose int fd = openat(game.at[0], name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		give_up("%s/%s/%s: %s", options.dirs[0], game.folder, name, strerror(errno));
}

static void make_conf(void)
{
	static uint64_t cells[IO_MAX / CELL_BYTES];
	unsigned n = conf_cells(CONF_PLAYER, 1);

	for (unsigned k = 0; k < n; k++)
		cells[k] = cell_value(CONF_PLAYER, 1, CONF_ID, k);
	make_file("conf", cells, n * sizeof(cells[0]));
	game.h->rest.conf = cells[0];
}

static void make_folders(void)
{
	struct stat before, after;

	if (mkdirat(game.at[0], "names", 0700) || fstatat(game.at[0], "names", &before, 0) ||
		mkdirat(game.at[0], "names/d1", 0700) || fstatat(game.at[0], "names", &after, 0) ||
		unlinkat(game.at[0], "names/d1", AT_REMOVEDIR))
		give_up("%s/%s/names: %s", options.dirs[0], game.folder, strerror(errno));
	game.h->counts_folders = before.st_nlink == 2 && after.st_nlink == 3;
}

/* The other mounts must see it at once, and as the same folder. */
static void open_folder(unsigned i)
{
	struct stat first, st;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", options.dirs[i], game.folder);
	game.at[i] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (game.at[i] < 0 || fstat(game.at[i], &st) || fstat(game.at[0], &first))
		give_up("%s: %s", path, strerror(errno));
	if (st.st_ino != first.st_ino)
		give_up("%s and %s are not the same filesystem", options.dirs[0], options.dirs[i]);
	for (unsigned player = i; player < PLAYERS_MAX; player += options.ndirs)
		game.h->device[player] = st.st_dev;
}

static bool is_visitor(unsigned dir)
{
	return options.stage && dir == options.ndirs - 1;
}

static void open_folders(void)
{
	for (unsigned i = 0; i < options.ndirs; i++)
		if (is_visitor(i))
			game.at[i] = -1;
		else
			open_folder(i);
}

static void make_field(void)
{
	char path[4096], name[16];

	snprintf(path, sizeof(path), "%s/coherence.XXXXXX", options.dirs[0]);
	if (!mkdtemp(path))
		give_up("%s: %s", path, strerror(errno));
	snprintf(game.folder, sizeof(game.folder), "%s", strrchr(path, '/') + 1);
	open_folders();
	for (unsigned i = 0; i < options.files; i++) {
		snprintf(name, sizeof(name), "data%u", i);
		make_file(name, "", 0);
	}
	for (unsigned i = 0; i < LOGS; i++) {
		snprintf(name, sizeof(name), "log%u", i);
		make_file(name, "", 0);
	}
	make_conf();
	make_folders();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void clear_field(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", options.dirs[0], game.folder);
	if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
		give_up("%s can't be removed: %s", path, strerror(errno));
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* The referee uses another mount each time. */
static int folder_in_turn(void)
{
	unsigned ndirs = options.ndirs - (game.stage != STAGE_ALL);

	assert(ndirs);
	return game.at[game.h->round % ndirs];
}

static void empty_logs(void)
{
	int at = folder_in_turn();
	bool full = false;

	for (unsigned i = 0; i < LOGS; i++)
		full = full || game.h->rest.log_size[i] > LOG_FULL;
	if (!full)
		return;
	for (unsigned i = 0; i < LOGS; i++) {
		char name[16];
		autoclose int fd = -1;

		snprintf(name, sizeof(name), "log%u", i);
		fd = openat(at, name, O_WRONLY | O_TRUNC | O_CLOEXEC);
		if (fd < 0)
			violation(game.h, NULL, is_unanswered, NULL, "log%u can't be emptied: %s",
				i, strerror(errno));
	}
	check_logs_emptied(game.h);
}

static void count_round(int64_t began)
{
	unsigned n = 0;

	for (unsigned i = 0; i < game.h->nplayers; i++) {
		for (unsigned j = 0; j < game.h->logs[i].nevents; j++, n++) {
			const struct event *e = &game.h->logs[i].events[j];

			game.count[e->kind]++;
			game.good[e->kind] += e->err == 0;
			if (e->kind == OP_READ || e->kind == OP_WRITE)
				game.by_way[e->kind == OP_WRITE][e->way]++;
		}
	}
	if (options.verbose)
		printf("coherence: round %u: %u operations, %.1f ms, %" PRIu64
		       " configurations until now\n",
			game.h->round, n, (double)(monotonic_ns() - began) / 1e6,
			search_configurations);
}

/* Call it before the referee makes its own notes. */
static void hash_round(void)
{
	for (unsigned i = 0; i < game.h->nplayers; i++)
		for (unsigned j = 0; j < game.h->logs[i].nevents; j++)
			game.did[i] = event_hash(game.did[i], &game.h->logs[i].events[j]);
}

static void play_round(void)
{
	struct history *h = game.h;
	int64_t began = monotonic_ns();
	unsigned undecided = check_undecided;

	for (unsigned i = 0; i < h->nplayers; i++) {
		h->logs[i].nevents = 0;
		h->logs[i].used = 0;
	}
	all_do('p');
	hash_round();
	all_do('r');
	check_note_lenient(h);
	check_mtimes(h, options.slack_ms);
	check_data(h);
	check_logs(h, folder_in_turn());
	check_conf(h);
	check_held(h);
	check_names(h);
	game.undecided += check_undecided != undecided;
	count_round(began);
	empty_logs();
}

/* ---- stages ---------------------------------------------------------------------------------- */

static bool plays(unsigned player, enum stage stage)
{
	return stage == STAGE_ALL || (stage == STAGE_FIRST && !is_visitor(player % options.ndirs));
}

static void change_folder(unsigned i, bool wanted)
{
	if (wanted && game.at[i] < 0)
		open_folder(i);
	else if (!wanted && game.at[i] >= 0)
		close(steal_fd(&game.at[i]));
}

static void take_stage(enum stage stage)
{
	for (unsigned i = 0; i < game.h->nplayers; i++)
		if (!plays(i, stage))
			end_player(i);
	for (unsigned i = 0; i < options.ndirs; i++)
		change_folder(i, plays(i, stage));
	for (unsigned i = 0; i < game.h->nplayers; i++)
		if (plays(i, stage) && game.control[i] < 0)
			start_player(i);
	game.stage = stage;
	if (options.stage && stage_tell(options.stage, stage))
		give_up("%s.now can't be written", options.stage);
}

/* False: the run is over. */
static bool change_stage(void)
{
	int64_t until = monotonic_ns() + (int64_t)options.timeout * 1000000000;

	do {
		enum stage wanted = game.stage;

		if (stage_read(options.stage, &wanted))
			give_up("%s can't be read", options.stage);
		if (wanted != game.stage)
			take_stage(wanted);
		else if (game.stage == STAGE_REST)
			usleep(10000);
		if (monotonic_ns() > until)
			give_up("all rest for %u s", options.timeout);
	} while (game.stage == STAGE_REST);
	return game.stage != STAGE_END;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void play_rounds(void)
{
	uint64_t nrounds = div_round_up(options.operations, options.round);
	int64_t until = monotonic_ns() + (int64_t)options.seconds * 1000000000;

	for (game.h->round = 1;; game.h->round++) {
		if (options.stage && !change_stage())
			return;
		play_round();
		if (nrounds ? game.h->round == nrounds : monotonic_ns() >= until)
			return;
	}
}

static bool too_many_undecided(void)
{
	return game.undecided > UNDECIDED_FEW && game.undecided > game.h->round / UNDECIDED_SHARE;
}

/* The exit status. */
static int conclude(void)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < OP_KINDS; i++) {
		total += game.count[i];
		if (options.verbose)
			printf("coherence: %8" PRIu64 " %-13s of which %8" PRIu64 " succeeded\n",
				game.count[i], op_name(i), game.good[i]);
	}
	for (enum way way = 0; way < WAYS && options.verbose; way++)
		printf("coherence: %8" PRIu64 " reads and %8" PRIu64 " writes %s\n",
			game.by_way[0][way], game.by_way[1][way], way_names[way]);
	for (unsigned i = 0; i < options.ndirs * options.players && options.verbose; i++)
		printf("coherence: player %u was to do %016" PRIx64 "\n", i, game.did[i]);
	printf("coherence: consistent: %u rounds, %" PRIu64
	       " operations, %u searches undecided in %u rounds\n",
		game.h->round, total, check_undecided, game.undecided);
	if (game.h->no_shared)
		printf("coherence: nothing was stored into mappings: MAP_SHARED fails with ENODEV\n");
	if (game.h->rest.endless)
		printf("coherence: %" PRIu64 " times lseek told no end\n", game.h->rest.endless);
	if (game.h->rest.stale)
		printf("coherence: %" PRIu64 " times a file was opened again after ESTALE\n",
			game.h->rest.stale);
	if (game.h->rest.falsified)
		printf("coherence: %" PRIu64 " falsified results were not noticed\n",
			game.h->rest.falsified);
	if (!too_many_undecided())
		return 0;
	printf("coherence: UNDECIDED: in %u of %u rounds of seed %" PRIu64
	       " searches were given up, and what happened there is not judged\n",
		game.undecided, game.h->round, options.seed);
	return 3;
}

/* ---- options --------------------------------------------------------------------------------- */

static _Noreturn void usage(void)
{
	fprintf(stderr,
		"usage: coherence [OPTION]... DIRECTORY DIRECTORY...\n"
		"  --seed N       the same operations as the run that printed it (default: the time)\n"
		"  --seconds N    how long (default 10)\n"
		"  --ops N        instead: how many operations of each player\n"
		"  --players N    by each directory (default 1)\n"
		"  --files N      that all write (default 3, at most %d)\n"
		"  --size BYTES   of these, at most (default 131072)\n"
		"  --round N      operations of a player until all rest (default 60, at most %d)\n"
		"  --names N      of eight operations, how many are about names (default: it varies)\n"
		"  --timeout N    seconds after which a player hangs (default 120)\n"
		"  --slack MS     by which times may be behind this machine's clock (default 100)\n"
		"  --break HOW    falsify results: HOW is one of --break list\n"
		"  --strict       no leniency with those who share a mount: for local filesystems\n"
		"  --unmapped     no player maps a file, or sends one\n"
		"  --stage FILE   the last directory is a visitor: FILE says who plays\n"
		"  --keep         leave the files\n"
		"  --limit N      configurations after which a search is given up (default and at most %d)\n"
		"  --verbose      tell of each round, and count operations\n"
		"Exit status: 0 consistent, 1 not, 2 could not be tried, 3 undecided in more than %d rounds\n"
		"and more than one of %d.\n",
		FILES_MAX, ROUND_MAX, SEARCH_MAX, UNDECIDED_FEW, UNDECIDED_SHARE);
	exit(2);
}

static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (*end || end == text || n < least || n > most) {
		fprintf(stderr,
			"coherence: '%s' is no number between %" PRIu64 " and %" PRIu64 "\n", text,
			least, most);
		usage();
	}
	return n;
}

static enum falsify falsify_of(const char *text)
{
	for (unsigned i = HONEST + 1; i < FALSIFY_KINDS; i++) {
		if (strcmp(text, "list") == 0)
			puts(falsify_names[i]);
		else if (strcmp(text, falsify_names[i]) == 0)
			return i;
	}
	if (strcmp(text, "list") == 0)
		exit(0);
	usage();
}

enum {
	OPT_SEED = 256,
	OPT_SECONDS,
	OPT_OPS,
	OPT_PLAYERS,
	OPT_FILES,
	OPT_SIZE,
	OPT_ROUND,
	OPT_TIMEOUT,
	OPT_NAMES,
	OPT_SLACK,
	OPT_BREAK,
	OPT_STRICT,
	OPT_UNMAPPED,
	OPT_KEEP,
	OPT_STAGE,
	OPT_LIMIT,
	OPT_VERBOSE
};

static void take_option(int option, const char *value)
{
	switch (option) {
	case OPT_SEED:
		options.seed = number(value, 0, UINT64_MAX);
		break;
	case OPT_SECONDS:
		options.seconds = (unsigned)number(value, 1, 1000000);
		break;
	case OPT_OPS:
		options.operations = number(value, 1, UINT32_MAX);
		break;
	case OPT_PLAYERS:
		options.players = (unsigned)number(value, 1, PLAYERS_MAX);
		break;
	case OPT_FILES:
		options.files = (unsigned)number(value, 1, FILES_MAX);
		break;
	case OPT_SIZE:
		options.size = number(value, PAGE, FILE_BYTES_MAX) & ~(uint64_t)(PAGE - 1);
		break;
	case OPT_ROUND:
		options.round = (unsigned)number(value, 1, ROUND_MAX);
		break;
	case OPT_TIMEOUT:
		options.timeout = (unsigned)number(value, 1, 100000);
		break;
	case OPT_NAMES:
		options.names = (unsigned)number(value, 0, 8);
		break;
	case OPT_SLACK:
		options.slack_ms = (int64_t)number(value, 0, 1000000);
		break;
	case OPT_BREAK:
		options.falsify = falsify_of(value);
		break;
	case OPT_STRICT:
		options.strict = true;
		break;
	case OPT_UNMAPPED:
		options.unmapped = true;
		break;
	case OPT_STAGE:
		options.stage = value;
		break;
	case OPT_KEEP:
		options.keep = true;
		break;
	case OPT_LIMIT:
		search_limit = (unsigned)number(value, 1, SEARCH_MAX);
		break;
	case OPT_VERBOSE:
		options.verbose = true;
		break;
	default:
		usage();
	}
}

static void take_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{"seed", required_argument, NULL, OPT_SEED},
		{"seconds", required_argument, NULL, OPT_SECONDS},
		{"ops", required_argument, NULL, OPT_OPS},
		{"players", required_argument, NULL, OPT_PLAYERS},
		{"files", required_argument, NULL, OPT_FILES},
		{"size", required_argument, NULL, OPT_SIZE},
		{"round", required_argument, NULL, OPT_ROUND},
		{"timeout", required_argument, NULL, OPT_TIMEOUT},
		{"names", required_argument, NULL, OPT_NAMES},
		{"slack", required_argument, NULL, OPT_SLACK},
		{"break", required_argument, NULL, OPT_BREAK},
		{"strict", no_argument, NULL, OPT_STRICT},
		{"unmapped", no_argument, NULL, OPT_UNMAPPED},
		{"stage", required_argument, NULL, OPT_STAGE},
		{"keep", no_argument, NULL, OPT_KEEP},
		{"limit", required_argument, NULL, OPT_LIMIT},
		{"verbose", no_argument, NULL, OPT_VERBOSE},
		{0},
	};
	int option;

	options.seed = (uint64_t)time(NULL) * 1000 + (unsigned)getpid() % 1000;
	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1)
		take_option(option, optarg);
	for (; optind < argc; optind++) {
		if (options.ndirs == DIRECTORIES_MAX)
			usage();
		options.dirs[options.ndirs++] = argv[optind];
	}
	if (options.ndirs < 1u + !!options.stage || options.ndirs * options.players > PLAYERS_MAX)
		usage();
}

static void begin(void)
{
	struct history *h = history_new();

	if (!h)
		give_up("no memory");
	game.h = h;
	h->seed = options.seed;
	h->began = monotonic_ns();
	h->nfiles = options.files;
	h->file_bytes = options.size;
	make_field();
	history_before_exit = kill_players;
	h->nplayers = options.ndirs * options.players;
	h->strict = options.strict;
	h->unmapped = options.unmapped;
	for (unsigned i = 0; i < h->nplayers; i++) {
		h->dir[i] = options.dirs[i % options.ndirs];
		game.control[i] = -1;
	}
	take_stage(options.stage ? STAGE_FIRST : STAGE_ALL);
}

int main(int argc, char **argv)
{
	take_options(argc, argv);
	printf("coherence: seed %" PRIu64 ", %u directories, %u players each\n", options.seed,
		options.ndirs, options.players);
	fflush(stdout);
	signal(SIGPIPE, SIG_IGN);
	begin();
	play_rounds();
	end_players();
	if (!options.keep)
		clear_field();
	return conclude();
}
