#include "daemon/request/counters.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/util.h"

enum {
	FIRST_NS = 1024, /* the bound of bucket 0 */
	FIRST_SHIFT = 10,
	PER_SHIFT = 2,
};

static_assert(1 << FIRST_SHIFT == FIRST_NS && 1 << PER_SHIFT == LATENCY_PER_DOUBLING, "shifts");

/* ---- buckets --------------------------------------------------------------------------------- */

unsigned latency_bucket(uint64_t ns)
{
	unsigned doubling, part;

	if (ns < FIRST_NS)
		return 0;
	doubling = 63 - (unsigned)__builtin_clzll(ns) - FIRST_SHIFT;
	if (doubling >= LATENCY_DOUBLINGS)
		return LATENCY_BUCKETS - 1;
	part = (unsigned)(ns >> (doubling + FIRST_SHIFT - PER_SHIFT)) % LATENCY_PER_DOUBLING;
	return 1 + doubling * LATENCY_PER_DOUBLING + part;
}

uint64_t latency_bound_ns(unsigned bucket)
{
	unsigned doubling = bucket / LATENCY_PER_DOUBLING, part = bucket % LATENCY_PER_DOUBLING;

	if (bucket >= LATENCY_BUCKETS - 1)
		return UINT64_MAX;
	return (uint64_t)(LATENCY_PER_DOUBLING + part) << (doubling + FIRST_SHIFT - PER_SHIFT);
}

uint64_t latency_quantile_ns(const struct op_counters *c, unsigned permille)
{
	uint64_t all = 0, seen = 0, wanted;

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
		all += c->latency[i];
	if (!all)
		return 0;
	wanted = (all * permille + 999) / 1000;
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		seen += c->latency[i];
		if (seen >= wanted && seen)
			return latency_bound_ns(min_u64(i, LATENCY_BUCKETS - 2));
	}
	return latency_bound_ns(LATENCY_BUCKETS - 2);
}

/* ---- counting -------------------------------------------------------------------------------- */

static void grow(uint64_t *n, uint64_t by)
{
	__atomic_store_n(n, *n + by, __ATOMIC_RELAXED);
}

static uint64_t look(const uint64_t *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

void counters_add(struct counters *c, enum request_op op, int error, uint64_t bytes, int64_t ns)
{
	struct op_counters *o = &c->ops[op];
	uint64_t took = ns > 0 ? (uint64_t)ns : 0;

	grow(&o->n, 1);
	grow(&o->ns, took);
	grow(&o->latency[latency_bucket(took)], 1);
	if (error)
		grow(&o->errors, 1);
	else if (bytes)
		grow(&o->bytes, bytes);
	if (error == -ENOSPC)
		__atomic_store_n(&c->no_room_ms, (uint64_t)now_ms(), __ATOMIC_RELAXED);
}

uint64_t counters_no_room_ms(const struct counters *c)
{
	return look(&c->no_room_ms);
}

void counters_sum(struct op_counters *sum, const struct counters *c, enum request_op op)
{
	const struct op_counters *o = &c->ops[op];

	sum->n += look(&o->n);
	sum->errors += look(&o->errors);
	sum->bytes += look(&o->bytes);
	sum->ns += look(&o->ns);
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
		sum->latency[i] += look(&o->latency[i]);
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *request_op_name(enum request_op op)
{
	static const char *const names[OP_NOPS] = {
		[OP_LOOKUP] = "lookup",
		[OP_FORGET] = "forget",
		[OP_GETATTR] = "getattr",
		[OP_SETATTR] = "setattr",
		[OP_READLINK] = "readlink",
		[OP_SYMLINK] = "symlink",
		[OP_MKNOD] = "mknod",
		[OP_MKDIR] = "mkdir",
		[OP_UNLINK] = "unlink",
		[OP_RMDIR] = "rmdir",
		[OP_RENAME] = "rename",
		[OP_LINK] = "link",
		[OP_OPEN] = "open",
		[OP_READ] = "read",
		[OP_WRITE] = "write",
		[OP_STATFS] = "statfs",
		[OP_RELEASE] = "release",
		[OP_FSYNC] = "fsync",
		[OP_FLUSH] = "flush",
		[OP_OPENDIR] = "opendir",
		[OP_READDIR] = "readdir",
		[OP_RELEASEDIR] = "releasedir",
		[OP_FSYNCDIR] = "fsyncdir",
		[OP_CREATE] = "create",
		[OP_LSEEK] = "lseek",
		[OP_GETXATTR] = "getxattr",
		[OP_LISTXATTR] = "listxattr",
		[OP_SETXATTR] = "setxattr",
		[OP_REMOVEXATTR] = "removexattr",
		[OP_FALLOCATE] = "fallocate",
		[OP_COPY] = "copy",
		[OP_TMPFILE] = "tmpfile",
		[OP_STATX] = "statx",
		[OP_REMOUNT] = "remount",
		[OP_GETLK] = "getlk",
		[OP_SETLK] = "setlk",
	};

	return names[op];
}
