/* spool.c - messages that one player makes and another takes; see sharers.h.
 *
 * A message is closed before it gets its name in new/, so it is whole for every reader. A player
 * that has renamed it into cur/ is the only one to have it. Its pages belong to other messages
 * afterwards. */
#include "tests/stress/sharers/sharers.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"

enum { SPOOL_ID = 2000, PATH_BYTES = 64, LOOKED_AT = 1000 };

struct message {
	unsigned player;
	uint32_t seq;
	unsigned taker; /* in cur/ */
};

static size_t message_len(const struct message *m)
{
	uint64_t x = mix(SPOOL_ID + m->player + ((uint64_t)m->seq << 16));

	return 1 + (size_t)(x >> 8) % (x & 3 ? 5000 : MESSAGE_BYTES_MAX);
}

static void make_message(uint8_t *buf, const struct message *m)
{
	fill(buf, message_len(m), SPOOL_ID + m->player, m->seq);
}

/* name: PLAYER.NUMBER, and in cur .TAKER */
static bool parse(const struct game *g, const char *name, bool taken, struct message *m)
{
	char rest;
	int n = sscanf(name, "%u.%" SCNu32 ".%u%c", &m->player, &m->seq, &m->taker, &rest);

	return n == 2 + taken && m->player < g->journal->nplayers && m->seq < MESSAGES_MAX;
}

static _Atomic uint8_t *state_of(const struct game *g, const struct message *m)
{
	return &g->journal->players[m->player].message[m->seq];
}

void spool_make(void)
{
	if (mkdir("tmp", 0700) != 0 || mkdir("new", 0700) != 0 || mkdir("cur", 0700) != 0)
		violation("the spool can't be made: %s", strerror(errno));
}

/* ---- listings -------------------------------------------------------------------------------- */

/* Calls fn for each message of a folder. No message of others is seen in part. */
static void each(struct game *g, const char *folder,
	void (*fn)(struct game *g, const char *path, const struct message *m))
{
	bool taken = strcmp(folder, "cur") == 0;
	DIR *d = TIMED(g, OP_OPEN, opendir(folder));
	const struct dirent *entry;

	need(g, d, folder);
	while (errno = 0, (entry = TIMED(g, OP_READ, readdir(d))) != NULL) {
		char path[PATH_BYTES];
		struct message m = {0};

		if (entry->d_name[0] == '.')
			continue;
		if (!parse(g, entry->d_name, taken, &m))
			violation("%s/%s: nobody made that name", folder, entry->d_name);
		snprintf(path, sizeof(path), "%.8s/%.40s", folder, entry->d_name);
		fn(g, path, &m);
	}
	need(g, errno == 0, folder);
	closedir(d);
}

static void check_whole(struct game *g, const char *path, const struct message *m)
{
	size_t len = message_len(m);
	autoclose int fd = TIMED(g, OP_OPEN, open(path, O_RDONLY | O_CLOEXEC));
	ssize_t n;

	need(g, fd >= 0, path);
	n = TIMED(g, OP_READ, read(fd, g->buf, MESSAGE_BYTES_MAX + 1));
	need(g, n >= 0, path);
	make_message(g->expected, m);
	if ((size_t)n != len || memcmp(g->buf, g->expected, len) != 0)
		violation("%s: not the %zu bytes that it had when it was closed, but %zd", path,
			len, n);
}

/* ---- playing --------------------------------------------------------------------------------- */

static unsigned outstanding(const struct game *g)
{
	unsigned n = 0;

	for (uint32_t i = 0, last = g->me->messages; i < last && i < LOOKED_AT && n < OUTSTANDING;
		i++)
		n += g->me->message[last - i] == DONE;
	return n;
}

void spool_put(struct game *g)
{
	struct message m = {.player = g->index, .seq = g->me->messages + 1};
	char tmp[PATH_BYTES], new[PATH_BYTES];
	size_t len;
	int fd;

	if (outstanding(g) == OUTSTANDING)
		return;
	if (m.seq == MESSAGES_MAX)
		violation("player %u has no numbers left for messages", g->index);
	g->me->messages = m.seq;
	*state_of(g, &m) = BEGUN;
	snprintf(tmp, sizeof(tmp), "tmp/%u.%" PRIu32, m.player, m.seq);
	snprintf(new, sizeof(new), "new/%u.%" PRIu32, m.player, m.seq);
	fd = TIMED(g, OP_NAME, open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	need(g, fd >= 0, tmp);
	len = message_len(&m);
	make_message(g->buf, &m);
	need(g, TIMED(g, OP_WRITE, write(fd, g->buf, len)) == (ssize_t)len, tmp);
	need(g, TIMED(g, OP_SYNC, close(fd)) == 0, tmp);
	need(g, TIMED(g, OP_NAME, rename(tmp, new)) == 0, new);
	/* Another player may have taken it already. */
	atomic_compare_exchange_strong(state_of(g, &m), &(uint8_t){BEGUN}, DONE);
}

/* Chooses one of those that are there, each with the same chance. */
static unsigned nseen;
static char chosen[PATH_BYTES];
static struct message chosen_message;

static void choose(struct game *g, const char *path, const struct message *m)
{
	if (chance(g, ++nseen) != 0)
		return;
	snprintf(chosen, sizeof(chosen), "%s", path);
	chosen_message = *m;
}

void spool_take(struct game *g)
{
	char cur[PATH_BYTES];

	nseen = 0;
	each(g, "new", choose);
	if (!nseen)
		return;
	snprintf(cur, sizeof(cur), "cur/%.40s.%u", chosen + strlen("new/"), g->index);
	if (TIMED(g, OP_NAME, rename(chosen, cur)) != 0) {
		need(g, errno == ENOENT, cur);
		return;
	}
	if (atomic_exchange(state_of(g, &chosen_message), TAKEN) == TAKEN)
		violation("%s is taken a second time, by player %u", chosen, g->index);
	check_whole(g, cur, &chosen_message);
	need(g, TIMED(g, OP_NAME, unlink(cur)) == 0, cur);
}

static void sweep_tmp(struct game *g, const char *path, const struct message *m)
{
	if (m->player == g->index)
		need(g, TIMED(g, OP_NAME, unlink(path)) == 0, path);
}

static void sweep_cur(struct game *g, const char *path, const struct message *m)
{
	if (m->taker != g->index)
		return;
	check_whole(g, path, m);
	*state_of(g, m) = TAKEN;
	need(g, TIMED(g, OP_NAME, unlink(path)) == 0, path);
}

void spool_sweep(struct game *g)
{
	each(g, "tmp", sweep_tmp);
	each(g, "cur", sweep_cur);
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool found[PLAYERS_MAX][MESSAGES_MAX];

static void check_waiting(struct game *g, const char *path, const struct message *m)
{
	check_whole(g, path, m);
	if (*state_of(g, m) == TAKEN)
		violation("%s is there, and was taken", path);
	found[m->player][m->seq] = true;
}

static void check_none(struct game *g, const char *path, const struct message *m)
{
	violation("%s is there, and all have ended", path);
}

void spool_check(struct game *g)
{
	each(g, "new", check_waiting);
	each(g, "tmp", check_none);
	each(g, "cur", check_none);
	for (unsigned player = 0; player < g->journal->nplayers; player++) {
		const struct player *p = &g->journal->players[player];

		for (uint32_t seq = 1; seq <= p->messages; seq++)
			if (p->message[seq] == DONE && !found[player][seq])
				violation("message %" PRIu32 " of player %u is lost", seq, player);
	}
}
