/* xattr_fixture.h - requests on extended attributes in one line, on top of meta_fixture.h. */
#ifndef RMEMFS_TESTS_XATTR_FIXTURE_H
#define RMEMFS_TESTS_XATTR_FIXTURE_H

#include "tests/unit/server/meta_fixture.h"

#include "server/record/inode.h"

/* The most bytes of a value that a message holds; the rest is staged. */
enum { FX_LAST_BYTES = 12000, FX_STAGE_BYTES = 16000 };

static uint8_t fx_value[XATTR_VALUE_MAX]; /* of the last fx_getxattr */

/* Fills data with bytes that depend on the seed. */
static inline void fx_pattern(uint8_t *data, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)((i * 131 + seed * 7919) >> 3);
}

static inline int fx_stage(uint32_t stage, uint32_t offset, const void *data, uint32_t len)
{
	return FX_RUN(.op = RPC_STAGE, .stage = {stage, offset, {data, len}});
}

/* Sends one message; `staged` bytes of the value are at the server already. */
static inline int fx_setxattr_staged(uint64_t ino, const char *name, const void *data, uint32_t len,
	uint32_t flags, uint32_t stage, uint32_t staged)
{
	return FX_RUN(.op = RPC_SETXATTR,
		.setxattr = {.ino = ino,
			.flags = flags,
			.stage = stage,
			.total = len,
			.name = fx_str(name),
			.tail = {(const uint8_t *)data + staged, len - staged}});
}

/* Sends the value in as many messages as needed. */
static inline int fx_setxattr(
	uint64_t ino, const char *name, const void *data, uint32_t len, uint32_t flags)
{
	uint32_t at = 0;

	while (len - at > FX_LAST_BYTES) {
		uint32_t bytes = (uint32_t)min_u64(len - at, FX_STAGE_BYTES);
		int status = fx_stage(1, at, (const uint8_t *)data + at, bytes);

		if (status)
			return status;
		at += bytes;
	}
	return fx_setxattr_staged(ino, name, data, len, flags, at ? 1 : 0, at);
}

static inline int fx_set(uint64_t ino, const char *name, const char *value)
{
	return fx_setxattr(ino, name, value, (uint32_t)strlen(value), 0);
}

static inline int fx_removexattr(uint64_t ino, const char *name)
{
	return FX_RUN(.op = RPC_REMOVEXATTR, .removexattr = {ino, fx_str(name)});
}

/* Returns the length, with the value in fx_value, or the status. */
static inline int64_t fx_getxattr(uint64_t ino, const char *name)
{
	struct rpc_request req = {
		.op = RPC_GETXATTR, .getxattr = {.ino = ino, .name = fx_str(name)}};
	uint64_t sum = 0;

	for (;;) {
		const struct rpc_getxattr_reply *rep = &fx.rep.getxattr;
		int status = fx_run(&req);

		if (status)
			return status;
		if (req.getxattr.offset)
			assert_int_equal(rep->sum, sum);
		sum = rep->sum;
		assert_true(range_within(req.getxattr.offset, rep->tail.len, rep->total));
		if (rep->tail.len)
			memcpy(fx_value + req.getxattr.offset, rep->tail.data, rep->tail.len);
		req.getxattr.offset += rep->tail.len;
		if (req.getxattr.offset == rep->total)
			return rep->total;
		assert_true(rep->tail.len > 0);
	}
}

static inline void fx_expect_value(uint64_t ino, const char *name, const void *data, size_t len)
{
	assert_int_equal(fx_getxattr(ino, name), len);
	assert_memory_equal(fx_value, data, len);
}

static inline uint32_t fx_flags(uint64_t ino)
{
	return fx_attr(ino).flags;
}

#endif
