/* history.h - what the players of coherence did in one round. Each operation has its times, its
 * arguments and what it saw, in memory that all processes share.
 *
 * A round's history begins and ends at rest: no operation is in progress before or after it.
 *
 * OWNERSHIP  history_new() maps it before the players are forked; it lasts as long as the program.
 * THREADS    A log belongs to its player while the round lasts, and to the referee afterwards.
 */
#ifndef RMEMFS_TESTS_HISTORY_H
#define RMEMFS_TESTS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/stress/small.h"

enum {
	PLAYERS_MAX = 16,
	FILES_MAX = 16,
	LOGS = 2,
	FILE_BYTES_MAX = 1 << 20,
	LOG_BYTES_MAX = 1 << 20, /* of a log to which players append; it is emptied at the start */
	EVENTS_MAX = 1024,       /* of a player in one round */
	ARENA_BYTES = 24 << 20,  /* for the bytes that a player reads in one round */
	CELL_BYTES = 8,
	PAGE = 4096,
	NAME_DIRS = 3,  /* folders that come and go, besides the one they are in */
	NAME_FILES = 4, /* names of files in each */
	HELD_CELLS = 4, /* pages with a cell in a file that got a name */
};

enum op_kind {
	/* The files that all write, and their sizes. */
	OP_WRITE,
	OP_READ,
	OP_TRUNCATE,
	OP_PUNCH,
	OP_ALLOCATE,
	OP_STAT,
	/* The logs that all append to. */
	OP_APPEND,
	OP_TAIL,
	OP_LOG_STAT,
	/* The file that is replaced whole. */
	OP_PUBLISH,
	OP_FETCH,
	/* Files that stay open while their names go. */
	OP_HELD_WRITE,
	OP_HELD_READ,
	OP_HELD_STAT,
	/* Names. */
	OP_CREATE,
	OP_OPEN,
	OP_UNLINK,
	OP_RENAME,
	OP_LINK,
	OP_NAME_STAT,
	OP_LIST,
	OP_MKDIR,
	OP_RMDIR,
	OP_DIR_RENAME,
	OP_DIR_STAT,
	OP_KINDS,
};

static const uint64_t NO_END = UINT64_C(1) << 47;

/* How the bytes travel, and who answers. */
enum way { CACHED, WRITE_ONLY, DIRECT, MAPPED, SENT, WAYS };
enum asked { BY_FD, BY_PATH, BY_SEEK, ASKED };

/* dir 0 is the folder that holds the others. */
struct name {
	uint8_t dir, file;
};

/* Notes of the referee. */
enum {
	SHOWS_VALUE = 1,   /* the value is to be printed */
	LENIENT = 2,       /* the end that it saw is not judged */
	UNSURE = 4,        /* the bytes that it saw are not judged, either */
	MAY_BE_BEHIND = 8, /* the end that it tells may be behind the true one */
};

/* The result of a listing: the inode of each file's name, and the folders. */
struct listing {
	uint64_t ino[NAME_FILES]; /* 0: not there */
	uint32_t dirs;            /* bit d: folder d */
	uint32_t twice;           /* bits of names that came twice */
	char strange[32];         /* a name that nobody makes */
};

struct event {
	int64_t start, end; /* CLOCK_MONOTONIC, ns; end 0: not answered */
	int64_t wall;       /* CLOCK_REALTIME at the start */
	int64_t mtime;
	uint64_t off, len; /* of the range asked for */
	uint64_t n;        /* bytes read or written */
	uint64_t size, ino;
	uint64_t value; /* of the one cell that was written or read */
	size_t data;    /* where in its log's arena the read bytes are */
	uint32_t seq;   /* counts the player's operations that write */
	uint32_t nlink;
	int err;        /* 0 or errno */
	unsigned flags; /* of renameat2; or what the referee notes */
	uint8_t kind, player, way, file;
	struct name a, b;
};

struct log {
	uint32_t nevents;
	size_t used; /* of the arena */
	struct event events[EVENTS_MAX];
	uint8_t arena[ARENA_BYTES];
};

/* The state at rest of the files that all write, after the last round and the round before. The
 * referee found it, and players falsify from it. */
struct rest {
	uint64_t size[FILES_MAX], previous_size[FILES_MAX];
	uint64_t cells[FILES_MAX][FILE_BYTES_MAX / CELL_BYTES];
	uint64_t previous[FILES_MAX][FILE_BYTES_MAX / CELL_BYTES];
	uint64_t log_size[LOGS];
	uint64_t conf, previous_conf;
	uint64_t falsified; /* results that were falsified on purpose */
	uint64_t endless;   /* how often lseek(2) told NO_END */
	uint64_t stale;     /* openings that failed with ESTALE, and were tried again */
};

struct history {
	uint64_t seed;
	unsigned round, nplayers, nfiles;
	uint64_t file_bytes;          /* no file is longer */
	int64_t began;                /* CLOCK_MONOTONIC */
	int64_t go;                   /* when players begin */
	bool counts_folders;          /* a folder's link count counts the folders in it */
	const char *dir[PLAYERS_MAX]; /* the player's mount */
	uint64_t device[PLAYERS_MAX]; /* of it */
	uint32_t seq[PLAYERS_MAX];    /* of its last write, for the process that plays it next */
	bool strict;                  /* nothing is lenient */
	bool unmapped;                /* no player maps or sends a file */
	bool no_shared;               /* files could not be mapped with MAP_SHARED */
	struct rest rest;
	struct log logs[PLAYERS_MAX];
};

/* NULL: no memory. */
struct history *history_new(void);

static inline const void *event_data(const struct history *h, const struct event *e)
{
	return h->logs[e->player].arena + e->data;
}

/* Hashes the arguments that the seed decides, and not what was seen. Two come from the other
 * players: where reading of a log continues, and which files are held open. */
uint64_t event_hash(uint64_t hash, const struct event *e);

/* A write by stores into a mapping: it does not make the file longer. */
static inline bool is_store(const struct event *e)
{
	return e->kind == OP_WRITE && e->way == MAPPED;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A cell tells its writer and its place: the upper half is (player, seq), the lower half a check
 * over these, the file and the cell's number. 0 means that nobody has written it. */
enum { LOG_ID = 1000, CONF_ID = 2000 };

uint64_t cell_value(unsigned player, uint32_t seq, uint64_t file, uint64_t cell);
/* Whether some player may have written the value there. */
bool cell_valid(uint64_t value, uint64_t file, uint64_t cell);
unsigned cell_player(uint64_t value);
uint32_t cell_seq(uint64_t value);
enum { CELL_TEXT = 48 };
const char *cell_text(uint64_t value, char text[CELL_TEXT]);

/* The number of cells of a log's record, and of a version of the replaced file. */
unsigned record_cells(unsigned player, uint32_t seq);
unsigned conf_cells(unsigned player, uint32_t seq);

/* ---- telling --------------------------------------------------------------------------------- */

extern const char *const way_names[WAYS];
const char *op_name(enum op_kind kind);
void event_print(const struct history *h, const struct event *e, const char *mark);

/* Prints what is wrong, and then the events near the suspect for which `part` holds. At the end it
 * prints again what is wrong, since often only the end is kept. Every violation in a history ends
 * the program. */
_Noreturn void __attribute__((format(printf, 5, 6))) violation(const struct history *h,
	const struct event *suspect, bool (*part)(const struct event *e, const void *context),
	const void *context, const char *format, ...);

/* Called once, after a violation has been printed. */
extern void (*history_before_exit)(void);

#endif
