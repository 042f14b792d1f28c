/* registers.c - blocks of one file, which players overwrite one after the other; see sharers.h.
 *
 * A player that holds the register's record lock reads the version of the player before it, and
 * writes a version of its own. A version may be lost, or be there in part, only if its writer was
 * struck before another player has seen it and before the writer had synced it. No such bytes may
 * arrive while another player holds the lock. */
#include "tests/stress/sharers/sharers.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { REGISTERS_ID = 1 };

static off_t offset_of(unsigned i)
{
	return (off_t)i * REGISTER_BYTES;
}

static void make_version(uint8_t *buf, unsigned i, uint64_t number)
{
	fill(buf, REGISTER_BYTES, REGISTERS_ID + i, number);
}

void registers_make(struct game *g)
{
	int fd = open("registers", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	for (unsigned i = 0; fd >= 0 && i < REGISTERS; i++) {
		make_version(g->buf, i, 0);
		if (pwrite(fd, g->buf, REGISTER_BYTES, offset_of(i)) != REGISTER_BYTES)
			violation("registers can't be made: %s", strerror(errno));
		g->journal->registers[i].nversions = 1;
	}
	if (fd < 0 || fsync(fd) != 0 || close(fd) != 0)
		violation("registers can't be made: %s", strerror(errno));
}

/* Never close either before the process ends: that would give up its record locks. */
void registers_open(struct game *g)
{
	g->registers = TIMED(g, OP_OPEN, open("registers", O_RDWR | O_CLOEXEC));
	need(g, g->registers >= 0, "open of the registers");
	g->registers_direct = TIMED(g, OP_OPEN, open("registers", O_RDWR | O_DIRECT | O_CLOEXEC));
	need(g, g->registers_direct >= 0, "open of the registers, direct");
}

static int descriptor(struct game *g)
{
	return chance(g, 2) ? g->registers : g->registers_direct;
}

/* ---- the lock -------------------------------------------------------------------------------- */

static uint64_t holder_of(unsigned player, uint32_t strikes)
{
	return (uint64_t)(player + 1) << 32 | strikes;
}

static int record_lock(struct game *g, unsigned i, short type, enum operation op)
{
	struct flock lock = {.l_type = type, .l_start = offset_of(i), .l_len = REGISTER_BYTES};

	return TIMED(g, op, fcntl(g->registers, F_SETLKW, &lock));
}

static void lock(struct game *g, unsigned i)
{
	struct register_state *r = &g->journal->registers[i];
	uint64_t before;

	need(g, record_lock(g, i, F_WRLCK, OP_LOCK) == 0, "record lock");
	before = atomic_exchange(&r->holder, holder_of(g->index, g->strikes));
	if (before && !was_struck(g->journal, (unsigned)(before >> 32) - 1, (uint32_t)before))
		violation("register %u: player %u has its lock, and player %u got it", i,
			(unsigned)(before >> 32) - 1, g->index);
}

/* A struck player may have lost the lock: then it leaves all as it is. */
static void need_lock(struct game *g, unsigned i)
{
	if (g->journal->registers[i].holder != holder_of(g->index, g->strikes))
		violation(
			"register %u: player %u had its lock, and another one has it", i, g->index);
}

static void unlock(struct game *g, unsigned i)
{
	need_lock(g, i);
	atomic_store(&g->journal->registers[i].holder, 0);
	need(g, record_lock(g, i, F_UNLCK, OP_UNLOCK) == 0, "unlock of a record");
}

/* ---- what is there --------------------------------------------------------------------------- */

static const struct version *newest(const struct register_state *r)
{
	return &r->versions[r->nversions - 1];
}

static bool is_open(const struct game *g, const struct register_state *r)
{
	for (unsigned k = 1; k < r->nversions; k++)
		if (was_struck(g->journal, r->versions[k].player, r->versions[k].strikes))
			return true;
	return false;
}

/* Makes version v in g->expected, and clears left[] for the bytes of g->buf that it explains.
 * Returns how many are left. */
static size_t explain(struct game *g, unsigned i, const struct version *v, bool left[])
{
	size_t n = 0;

	make_version(g->expected, i, v->number);
	for (size_t at = 0; at < REGISTER_BYTES; at++) {
		left[at] = left[at] && g->buf[at] != g->expected[at];
		n += left[at];
	}
	return n;
}

/* Compares byte by byte: a write in progress when its writer was struck may be there in part. */
static void check_open(struct game *g, unsigned i)
{
	const struct register_state *r = &g->journal->registers[i];
	static bool left[REGISTER_BYTES];
	size_t n = REGISTER_BYTES;

	memset(left, 1, sizeof(left));
	for (unsigned k = r->nversions; n && k-- > 0;)
		n = explain(g, i, &r->versions[k], left);
	if (n)
		violation("register %u: %zu bytes are none of the %u versions up to %" PRIu64
			  " that may be there",
			i, n, r->nversions, newest(r)->number);
}

static void check_newest(struct game *g, unsigned i)
{
	const struct version *v = newest(&g->journal->registers[i]);
	size_t at = 0;

	make_version(g->expected, i, v->number);
	while (at < REGISTER_BYTES && g->buf[at] == g->expected[at])
		at++;
	if (at < REGISTER_BYTES)
		violation("register %u: byte %zu is not that of version %" PRIu64 " of player %u",
			i, at, v->number, v->player);
}

/* True: the register's present version is not known. */
static bool check(struct game *g, unsigned i)
{
	const struct register_state *r = &g->journal->registers[i];
	bool open;

	need(g,
		TIMED(g, OP_READ, pread(descriptor(g), g->buf, REGISTER_BYTES, offset_of(i))) ==
			REGISTER_BYTES,
		"read of a register");
	open = is_open(g, r);
	if (open)
		check_open(g, i);
	else
		check_newest(g, i);
	return open;
}

/* ---- what is written ------------------------------------------------------------------------- */

static void sync_registers(struct game *g, unsigned i)
{
	struct register_state *r = &g->journal->registers[i];

	need(g, TIMED(g, OP_SYNC, fdatasync(g->registers)) == 0, "fdatasync of the registers");
	need_lock(g, i);
	r->versions[0] = *newest(r);
	r->nversions = 1;
}

static void write_version(struct game *g, unsigned i)
{
	struct register_state *r = &g->journal->registers[i];
	uint64_t number = ++g->journal->version;

	need_lock(g, i);
	if (r->nversions == VERSIONS_MAX)
		violation("register %u: too many were struck one after the other", i);
	r->versions[r->nversions] = (struct version){number, g->index, g->strikes};
	r->nversions++;
	make_version(g->buf, i, number);
	need(g,
		TIMED(g, OP_WRITE, pwrite(descriptor(g), g->buf, REGISTER_BYTES, offset_of(i))) ==
			REGISTER_BYTES,
		"write of a register");
}

void register_write(struct game *g)
{
	unsigned i = (unsigned)chance(g, REGISTERS);
	struct register_state *r = &g->journal->registers[i];
	bool open;

	lock(g, i);
	open = check(g, i);
	need_lock(g, i);
	/* The version of another player has been seen, so it stays. */
	if (!open && newest(r)->player != g->index) {
		r->versions[0] = *newest(r);
		r->nversions = 1;
	}
	write_version(g, i);
	if (open || r->nversions >= VERSIONS_OPEN || chance(g, 8) == 0)
		sync_registers(g, i);
	unlock(g, i);
}

void registers_check(struct game *g)
{
	for (unsigned i = 0; i < REGISTERS; i++)
		check(g, i);
}
