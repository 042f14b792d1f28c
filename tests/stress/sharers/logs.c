/* logs.c - logs that all append to; see sharers.h.
 *
 * A player that appends holds the log's flock shared; a player that empties it holds it
 * exclusively. So at that time players that were not struck have nothing in progress, and it is
 * known which records are missing, or still to come. */
#include "tests/stress/sharers/sharers.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_FULL = 1 << 20 };

/* In front of a record's bytes. */
struct record {
	uint32_t player, seq, len, check;
};

static const char *log_name(unsigned log)
{
	static const char *const names[LOGS] = {"log0", "log1"};

	return names[log];
}

static uint64_t record_id(unsigned log, unsigned player)
{
	return 1000 + log * PLAYERS_MAX + player;
}

static uint32_t record_check(const struct record *r, unsigned log)
{
	return (uint32_t)mix(mix(record_id(log, r->player)) + ((uint64_t)r->seq << 32) + r->len);
}

/* Mostly short records, and some of several pages. */
static uint32_t record_len(unsigned log, unsigned player, uint32_t seq)
{
	uint64_t x = mix(record_id(log, player) + ((uint64_t)seq << 20));

	return (uint32_t)sizeof(struct record) +
	       (uint32_t)(x >> 8) % (x & 7 ? 600 : RECORD_BYTES_MAX - sizeof(struct record));
}

static uint32_t make_record(uint8_t *buf, unsigned log, unsigned player, uint32_t seq)
{
	struct record r = {player, seq, record_len(log, player, seq), 0};

	r.check = record_check(&r, log);
	memcpy(buf, &r, sizeof(r));
	fill(buf + sizeof(r), r.len - sizeof(r), record_id(log, player), seq);
	return r.len;
}

void logs_make(void)
{
	for (unsigned log = 0; log < LOGS; log++) {
		int fd = open(log_name(log), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		if (fd < 0 || close(fd) != 0)
			violation("%s can't be made: %s", log_name(log), strerror(errno));
	}
}

void logs_open(struct game *g)
{
	for (unsigned log = 0; log < LOGS; log++) {
		g->log[log] = TIMED(g, OP_OPEN, open(log_name(log), O_RDWR | O_APPEND | O_CLOEXEC));
		need(g, g->log[log] >= 0, log_name(log));
		g->unsynced[log] = g->me->records[log] + 1;
	}
}

static void sync_log(struct game *g, unsigned log)
{
	need(g, TIMED(g, OP_SYNC, fsync(g->log[log])) == 0, "fsync of a log");
	for (; g->unsynced[log] <= g->me->records[log]; g->unsynced[log]++)
		g->me->record[log][g->unsynced[log]] = SAFE;
}

void log_append(struct game *g)
{
	unsigned log = (unsigned)chance(g, LOGS);
	uint32_t seq, len;

	need(g, TIMED(g, OP_LOCK, flock(g->log[log], LOCK_SH)) == 0, "flock, shared");
	if (g->me->records[log] + 1 == RECORDS_MAX)
		violation("player %u has no numbers left for records", g->index);
	seq = ++g->me->records[log];
	len = make_record(g->buf, log, g->index, seq);
	g->me->record[log][seq] = BEGUN;
	need(g, TIMED(g, OP_WRITE, write(g->log[log], g->buf, len)) == (ssize_t)len, "append");
	g->me->record[log][seq] = DONE;
	if (chance(g, 4) == 0)
		sync_log(g, log);
	need(g, TIMED(g, OP_UNLOCK, flock(g->log[log], LOCK_UN)) == 0, "unlock of a log");
}

/* ---- checking -------------------------------------------------------------------------------- */

struct reading {
	unsigned log;
	uint32_t end[PLAYERS_MAX];  /* at most so many records can be there */
	uint32_t last[PLAYERS_MAX]; /* the last record that was found */
	uint32_t strikes[PLAYERS_MAX];
	bool struck[PLAYERS_MAX]; /* struck since the log was emptied, or now */
	bool old; /* a record from before the last cut is there, so the cut has not happened */
};

static ssize_t read_log(struct game *g, unsigned log)
{
	ssize_t len = 0, n;

	do {
		n = TIMED(g, OP_READ,
			pread(g->log[log], g->buf + len, (size_t)(BUF_BYTES - len), len));
		need(g, n >= 0, "read of a log");
		len += n;
	} while (n > 0 && len < BUF_BYTES);
	return len;
}

/* Reports the records that must be there and are missing, up to the next one that is there. */
static void check_missing(struct game *g, const struct reading *in, unsigned player, uint32_t from,
	uint32_t to, bool struck)
{
	const struct player *p = &g->journal->players[player];

	for (uint32_t seq = from; seq < to; seq++)
		if (p->record[in->log][seq] == SAFE || (!struck && p->record[in->log][seq] != NONE))
			violation("%s: record %" PRIu32 " of player %u is lost%s",
				log_name(in->log), seq, player,
				struck ? ", which was struck, but had synced it" : "");
}

static uint32_t take_record(struct game *g, struct reading *in, size_t at, size_t len)
{
	const struct log_state *state = &g->journal->logs[in->log];
	struct record r = {0};
	uint32_t n;

	if (len - at >= sizeof(r))
		memcpy(&r, g->buf + at, sizeof(r));
	if (len - at < sizeof(r) || r.player >= g->journal->nplayers || !r.seq ||
		r.check != record_check(&r, in->log))
		violation("%s at %zu of %zu: no record begins there", log_name(in->log), at, len);
	n = make_record(g->expected, in->log, r.player, r.seq);
	if (n > len - at || memcmp(g->expected, g->buf + at, n) != 0)
		violation("%s at %zu of %zu: record %" PRIu32 " of player %u is damaged",
			log_name(in->log), at, len, r.seq, r.player);
	if (r.seq <= state->emptied[r.player] || r.seq > in->end[r.player])
		violation("%s at %zu: record %" PRIu32 " of player %u has come late: %" PRIu32
			  " to %" PRIu32 " may be there",
			log_name(in->log), at, r.seq, r.player, state->emptied[r.player] + 1,
			in->end[r.player]);
	if (r.seq <= in->last[r.player])
		violation("%s at %zu: record %" PRIu32 " of player %u stands behind %" PRIu32,
			log_name(in->log), at, r.seq, r.player, in->last[r.player]);
	in->old |= r.seq <= state->emptying[r.player];
	in->last[r.player] = r.seq;
	return n;
}

static void note_strikes(const struct game *g, struct reading *in, unsigned player)
{
	const struct player *p = &g->journal->players[player];

	in->strikes[player] = p->strikes;
	in->struck[player] = in->strikes[player] != p->strikes_then ||
			     in->strikes[player] != g->journal->logs[in->log].strikes[player];
}

/* Checks that all appended records of each player are there, except those that a strike may have
 * lost. A first reading finds out whether a cut has happened during which its player was struck. */
static void check_log(struct game *g, unsigned log, struct reading *in)
{
	struct log_state *state = &g->journal->logs[log];
	size_t len, at;

	*in = (struct reading){.log = log};
	for (unsigned p = 0; p < g->journal->nplayers; p++)
		in->end[p] = g->journal->players[p].records[log];
	len = (size_t)read_log(g, log);
	for (unsigned p = 0; p < g->journal->nplayers; p++)
		note_strikes(g, in, p);
	for (at = 0; at < len;)
		at += take_record(g, in, at, len);
	if (!in->old)
		memcpy(state->emptied, state->emptying, sizeof(state->emptied));
	/* Again, now that the first record of each player is known. */
	memcpy(in->last, state->emptied, sizeof(in->last));
	for (at = 0; at < len;) {
		struct record r;

		memcpy(&r, g->buf + at, sizeof(r));
		check_missing(g, in, r.player, in->last[r.player] + 1, r.seq, in->struck[r.player]);
		in->last[r.player] = r.seq;
		at += r.len;
	}
	for (unsigned p = 0; p < g->journal->nplayers; p++)
		check_missing(g, in, p, in->last[p] + 1, in->end[p] + 1, in->struck[p]);
}

static bool is_full(struct game *g, unsigned log)
{
	struct stat st;

	need(g, TIMED(g, OP_READ, fstat(g->log[log], &st)) == 0, "stat of a log");
	return st.st_size >= LOG_FULL;
}

void log_empty(struct game *g)
{
	unsigned log = (unsigned)chance(g, LOGS);
	struct log_state *state = &g->journal->logs[log];
	struct reading in;

	if (chance(g, 8) && !is_full(g, log))
		return;
	need(g, TIMED(g, OP_LOCK, flock(g->log[log], LOCK_EX)) == 0, "flock, alone");
	check_log(g, log, &in);
	memcpy(state->emptying, in.end, sizeof(state->emptying));
	need(g, TIMED(g, OP_CUT, ftruncate(g->log[log], 0)) == 0, "cut of a log");
	memcpy(state->emptied, in.end, sizeof(state->emptied));
	for (unsigned p = 0; p < g->journal->nplayers; p++)
		if (in.strikes[p] == g->journal->players[p].strikes_then)
			state->strikes[p] = in.strikes[p];
	need(g, TIMED(g, OP_UNLOCK, flock(g->log[log], LOCK_UN)) == 0, "unlock of a log");
}

void logs_check(struct game *g)
{
	struct reading in;

	for (unsigned log = 0; log < LOGS; log++)
		check_log(g, log, &in);
}
