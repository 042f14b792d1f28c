/* player.h - one of the processes that work on the filesystem at once, each by its own mount. It
 * records what it does and sees in its log, and judges nothing.
 *
 * Its next operation depends only on the seed, the round and its number. Two things depend on what
 * it has seen: which files it holds open, and where it reads on in a log.
 */
#ifndef RMEMFS_TESTS_PLAYER_H
#define RMEMFS_TESTS_PLAYER_H

#include <errno.h>
#include <sys/types.h>

#include "tests/stress/history.h"

enum {
	HELD = 3, /* files that a player keeps open */
	IO_MAX = 64 << 10,
	SECTOR = 512,
	NAMES_VARY = 9,
};

/* Results that a player falsifies now and then, to test whether the referee notices. */
enum falsify {
	HONEST,
	STALE_READ,
	STALE_BYTES,
	STALE_MAPPED,
	STALE_SENT,
	LOST_STORE,
	LOST_PAGES,
	GARBAGE,
	LOST_WRITE,
	LOST_TRUNCATE,
	STALE_SIZE,
	STALE_MTIME,
	LOST_APPEND,
	DOUBLE_APPEND,
	ZERO_TAIL,
	SHORT_TAIL,
	STALE_LOG_SIZE,
	STALE_CONF,
	TORN_CONF,
	MISSING_CONF,
	LOST_HELD,
	STALE_HELD,
	MISSING_NAME,
	GHOST_NAME,
	CREATED_TWICE,
	UNLINKED_TWICE,
	LOST_RENAME,
	STALE_LINKS,
	LIST_MISSING,
	LIST_GHOST,
	FALSIFY_KINDS,
};

extern const char *const falsify_names[FALSIFY_KINDS];

struct held_file {
	int fd; /* -1: none */
	uint64_t ino;
};

/* How a player uses one of the files that all write, for some rounds. */
struct manner {
	bool whole_pages; /* by all mounts: its size stays, or becomes a multiple of PAGE */
	bool stores;      /* players store into its mapping */
	bool calls;       /* system calls write and truncate it */
	bool may_store;   /* it is open so that a mapping of it may be stored into */
};

struct player {
	struct history *h;
	struct log *log;
	unsigned index;
	uint64_t seed, random;
	uint32_t seq;
	enum falsify falsify;
	uint64_t falsify_random;
	bool reads_all; /* when all is at rest */
	bool no_direct, no_punch, no_allocate, no_exchange;
	bool no_shared;  /* files can't be mapped with MAP_SHARED */
	unsigned nhot;   /* files that are used in this round */
	unsigned names;  /* so many of eight operations are about names, or NAMES_VARY */
	unsigned nnames; /* in this round */
	struct manner manner[FILES_MAX];
	int fd[FILES_MAX][WAYS];
	uint8_t *map[FILES_MAX]; /* by fd[][MAPPED], all that the file can have; NULL: none */
	int pipe[2];
	int append[LOGS], tail[LOGS];
	uint64_t tail_at[LOGS];
	struct held_file held[HELD];
	uint8_t *buf; /* IO_MAX bytes, aligned for direct I/O */
};

/* The player's process: plays the rounds that `control` gives, until it is closed. */
_Noreturn void player_run(struct player *p, const char *folder, unsigned operations, int control);

/* ---- for the operations ---------------------------------------------------------------------- */

uint64_t chance(struct player *p, uint64_t below);

/* A new event of the player; NULL: there is no room in the log for it, or for room bytes of data.
 */
struct event *event_new(struct player *p, enum op_kind kind, size_t room);

static inline void *event_room(struct player *p, const struct event *e)
{
	return p->log->arena + e->data;
}

/* Makes one call, with its times, and takes its error. */
#define TIMED(e, call)                               \
	({                                           \
		long long result_;                   \
		int errno_;                          \
		(e)->start = monotonic_ns();         \
		result_ = (call);                    \
		errno_ = errno;                      \
		(e)->end = monotonic_ns();           \
		(e)->err = result_ < 0 ? errno_ : 0; \
		result_;                             \
	})

/* Whether it is time to falsify a result in this way. */
bool falsifies(struct player *p, enum falsify how);
/* A result was falsified. */
void falsified(struct player *p);
/* Ends the program if an operation failed that must never fail for an honest player. */
void need(const struct player *p, bool ok, const char *what);

/* open(), tried again if the name's file is gone before it is open and another file has the name.
 * Kernels try that once themselves before they answer ESTALE. */
int open_again(struct player *p, const char *path, int flags);

/* ways.c: the files that all write */
void ways_begin(struct player *p);
/* Closes the handles that do not fit the new round's manner. */
void ways_round(struct player *p);
/* Returns a way that the file's manner allows. */
enum way way_draw(struct player *p, unsigned file, bool reads);
/* A handle, which stays open; mapped, if that is the way. */
int way_open(struct player *p, unsigned file, enum way way);
/* Returns a handle that can truncate the file. */
int way_open_to_change(struct player *p, unsigned file);
void way_forget(struct player *p, unsigned file, enum way way);
/* Between the file and p->buf; bytes, or -1 and errno. A mapped or sent range ends at the file's
 * end, as fstat(2) says first, and where a page no longer exists. */
ssize_t way_read(struct player *p, unsigned file, enum way way, uint64_t off, uint64_t len);
ssize_t way_write(struct player *p, unsigned file, enum way way, uint64_t off, uint64_t len);
/* play_data.c */
void data_begin(struct player *p);
void data_round(struct player *p);
void data_step(struct player *p);
void data_rest(struct player *p);
/* play_names.c */
void names_begin(struct player *p);
void names_step(struct player *p);
void names_rest(struct player *p);

#endif
