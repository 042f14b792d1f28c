/* Every kernel request: well-formed, cut at each length, too long, out of range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common/rpc/rpc.h"
#include "common/base/util.h"
#include "daemon/serve/fs.h"
#include "daemon/fuse/decode.h"
#include "daemon/fuse/private.h"
#include "daemon/fuse/statx.h"
#include "daemon/barrier/remount.h"

enum { UNIQUE = 4242, NODE = 77 };

/* A message under construction. */
struct message {
	_Alignas(16) uint8_t bytes[16384];
	size_t len;
};

static void begin(struct message *m, uint32_t opcode)
{
	struct fuse_in_header h = {
		.opcode = opcode,
		.unique = UNIQUE,
		.nodeid = NODE,
		.uid = 1,
		.gid = 2,
		.pid = 3,
	};

	memset(m, 0, sizeof(*m));
	memcpy(m->bytes, &h, sizeof(h));
	m->len = sizeof(h);
}

static void put(struct message *m, const void *data, size_t len)
{
	assert_true(m->len + len <= sizeof(m->bytes));
	memcpy(m->bytes + m->len, data, len);
	m->len += len;
}

static void put_name(struct message *m, const char *name)
{
	put(m, name, strlen(name) + 1);
}

/* A copy of exactly len bytes, so that the sanitizer sees a read beyond them. */
static int decode_cut(const struct message *m, size_t len, struct request *req)
{
	void *exact = aligned_alloc(16, (len + 15) / 16 * 16);
	struct fuse_in_header *header = exact;
	int err;

	memcpy(exact, m->bytes, len);
	header->len = (uint32_t)len;
	memset(req, 0, sizeof(*req));
	err = fuse_decode(exact, len, req);
	if (!err && !fuse_decode_has_payload(header->opcode))
		fuse_decode_keep(req, exact, len);
	free(exact);
	return err;
}

static int decode(const struct message *m, struct request *req)
{
	return decode_cut(m, m->len, req);
}

/* ---- one well-formed message of each kind ---------------------------------------------------- */

struct sample {
	uint32_t opcode;
	enum request_op op;
	size_t fixed; /* bytes of the struct that comes first */
	const char *name, *name2;
	size_t payload;
};

static const struct sample samples[] = {
	{FUSE_LOOKUP, OP_LOOKUP, 0, "file", NULL, 0},
	{FUSE_GETATTR, OP_GETATTR, sizeof(struct fuse_getattr_in), NULL, NULL, 0},
	{FUSE_SETATTR, OP_SETATTR, sizeof(struct fuse_setattr_in), NULL, NULL, 0},
	{FUSE_READLINK, OP_READLINK, 0, NULL, NULL, 0},
	{FUSE_SYMLINK, OP_SYMLINK, 0, "link", "../some/target", 0},
	{FUSE_MKNOD, OP_MKNOD, sizeof(struct fuse_mknod_in), "node", NULL, 0},
	{FUSE_MKDIR, OP_MKDIR, sizeof(struct fuse_mkdir_in), "dir", NULL, 0},
	{FUSE_UNLINK, OP_UNLINK, 0, "gone", NULL, 0},
	{FUSE_RMDIR, OP_RMDIR, 0, "gone", NULL, 0},
	{FUSE_RENAME, OP_RENAME, sizeof(struct fuse_rename_in), "old", "new", 0},
	{FUSE_RENAME2, OP_RENAME, sizeof(struct fuse_rename2_in), "old", "new", 0},
	{FUSE_LINK, OP_LINK, sizeof(struct fuse_link_in), "name", NULL, 0},
	{FUSE_OPEN, OP_OPEN, sizeof(struct fuse_open_in), NULL, NULL, 0},
	{FUSE_READ, OP_READ, sizeof(struct fuse_read_in), NULL, NULL, 0},
	{FUSE_WRITE, OP_WRITE, sizeof(struct fuse_write_in), NULL, NULL, 100},
	{FUSE_STATFS, OP_STATFS, 0, NULL, NULL, 0},
	{FUSE_RELEASE, OP_RELEASE, sizeof(struct fuse_release_in), NULL, NULL, 0},
	{FUSE_FSYNC, OP_FSYNC, sizeof(struct fuse_fsync_in), NULL, NULL, 0},
	{FUSE_FLUSH, OP_FLUSH, sizeof(struct fuse_flush_in), NULL, NULL, 0},
	{FUSE_OPENDIR, OP_OPENDIR, sizeof(struct fuse_open_in), NULL, NULL, 0},
	{FUSE_READDIR, OP_READDIR, sizeof(struct fuse_read_in), NULL, NULL, 0},
	{FUSE_READDIRPLUS, OP_READDIR, sizeof(struct fuse_read_in), NULL, NULL, 0},
	{FUSE_RELEASEDIR, OP_RELEASEDIR, sizeof(struct fuse_release_in), NULL, NULL, 0},
	{FUSE_FSYNCDIR, OP_FSYNCDIR, sizeof(struct fuse_fsync_in), NULL, NULL, 0},
	{FUSE_CREATE, OP_CREATE, sizeof(struct fuse_create_in), "made", NULL, 0},
	{FUSE_LSEEK, OP_LSEEK, sizeof(struct fuse_lseek_in), NULL, NULL, 0},
	{FUSE_FALLOCATE, OP_FALLOCATE, sizeof(struct fuse_fallocate_in), NULL, NULL, 0},
	{FUSE_COPY_FILE_RANGE, OP_COPY, sizeof(struct fuse_copy_file_range_in), NULL, NULL, 0},
	{FUSE_TMPFILE, OP_TMPFILE, sizeof(struct fuse_create_in), "/", NULL, 0},
	{FUSE_STATX, OP_STATX, sizeof(struct fuse_statx_in), NULL, NULL, 0},
	{FUSE_GETLK, OP_GETLK, sizeof(struct fuse_lk_in), NULL, NULL, 0},
	{FUSE_SETLK, OP_SETLK, sizeof(struct fuse_lk_in), NULL, NULL, 0},
	{FUSE_SETLKW, OP_SETLK, sizeof(struct fuse_lk_in), NULL, NULL, 0},
	{FUSE_GETXATTR, OP_GETXATTR, sizeof(struct fuse_getxattr_in), "user.x", NULL, 0},
	{FUSE_LISTXATTR, OP_LISTXATTR, sizeof(struct fuse_getxattr_in), NULL, NULL, 0},
	{FUSE_SETXATTR, OP_SETXATTR, sizeof(struct fuse_setxattr_in), "user.x", NULL, 100},
	{FUSE_REMOVEXATTR, OP_REMOVEXATTR, 0, "user.x", NULL, 0},
};

static void put_fixed(struct message *m, const struct sample *s)
{
	uint8_t zeros[128] = {0};
	struct fuse_write_in write = {.size = (uint32_t)s->payload};
	struct fuse_lseek_in lseek = {.whence = SEEK_DATA};
	struct fuse_fallocate_in fallocate = {.length = 1};
	struct fuse_setxattr_in setxattr = {
		.size = (uint32_t)s->payload,
		.setxattr_flags = FUSE_SETXATTR_ACL_KILL_SGID,
	};

	if (s->opcode == FUSE_WRITE)
		put(m, &write, sizeof(write));
	else if (s->opcode == FUSE_LSEEK)
		put(m, &lseek, sizeof(lseek));
	else if (s->opcode == FUSE_FALLOCATE)
		put(m, &fallocate, sizeof(fallocate));
	else if (s->opcode == FUSE_SETXATTR)
		put(m, &setxattr, sizeof(setxattr));
	else
		put(m, zeros, s->fixed);
}

static void build(struct message *m, const struct sample *s)
{
	uint8_t payload[128];

	memset(payload, 'x', sizeof(payload));
	begin(m, s->opcode);
	put_fixed(m, s);
	if (s->name)
		put_name(m, s->name);
	if (s->name2)
		put_name(m, s->name2);
	put(m, payload, s->payload);
}

static void fuse_decode__well_formed(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		const struct sample *s = &samples[i];
		struct message m;
		struct request req;

		build(&m, s);
		assert_int_equal(decode(&m, &req), 0);
		assert_int_equal(req.op, s->op);
		assert_int_equal(req.unique, UNIQUE);
		assert_int_equal(req.node, NODE);
		assert_int_equal(req.uid, 1);
		assert_int_equal(req.gid, 2);
		assert_int_equal(req.pid, 3);
		/* The names were copied out of the message, which is gone. */
		if (fuse_decode_has_payload(s->opcode) || s->op == OP_TMPFILE)
			continue;
		if (s->name)
			assert_string_equal(req.args.name, s->name);
		if (s->name2)
			assert_string_equal(req.args.name2, s->name2);
	}
}

static void fuse_decode__cut_anywhere(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct message m;
		struct request req;

		build(&m, &samples[i]);
		for (size_t len = sizeof(struct fuse_in_header); len < m.len; len++)
			assert_int_equal(decode_cut(&m, len, &req), -EIO);
	}
}

static void fuse_decode__too_long(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct message m;
		struct request req;

		build(&m, &samples[i]);
		put(&m, "\0\0\0\0\0\0\0", 8);
		assert_int_equal(decode(&m, &req), -EIO);
	}
}

static void fuse_decode__extensions_are_skipped(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct message m;
		struct request req;

		build(&m, &samples[i]);
		put(&m, "12345678abcdefgh", 16);
		((struct fuse_in_header *)(void *)m.bytes)->total_extlen = 2;
		assert_int_equal(decode(&m, &req), 0);
		((struct fuse_in_header *)(void *)m.bytes)->total_extlen = UINT16_MAX;
		assert_int_equal(decode(&m, &req), -EIO);
	}
}

static void fuse_decode__unknown_operation(void **state)
{
	static const uint32_t opcodes[] = {
		0, FUSE_BMAP, FUSE_ACCESS, FUSE_POLL, FUSE_SYNCFS, 53, 4096, UINT32_MAX};
	struct message m;
	struct request req;

	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		begin(&m, opcodes[i]);
		assert_int_equal(decode(&m, &req), -ENOSYS);
		assert_int_equal(req.unique, UNIQUE);
	}
}

static int decode_ioctl(uint64_t node, uint32_t cmd, uint64_t arg, struct request *req)
{
	struct fuse_ioctl_in in = {.cmd = cmd, .arg = arg, .flags = FUSE_IOCTL_DIR};
	struct message m;

	begin(&m, FUSE_IOCTL);
	((struct fuse_in_header *)(void *)m.bytes)->nodeid = node;
	put(&m, &in, sizeof(in));
	return decode(&m, req);
}

static void fuse_decode__one_ioctl_of_the_root(void **state)
{
	struct message m;
	struct request req;

	assert_int_equal(decode_ioctl(ROOT_INO, REMOUNT_IOCTL, MS_RDONLY | MS_NODEV, &req), 0);
	assert_int_equal(req.op, OP_REMOUNT);
	assert_int_equal(req.args.flags, MS_RDONLY);
	assert_int_equal(decode_ioctl(NODE, REMOUNT_IOCTL, MS_RDONLY, &req), -ENOSYS);
	assert_int_equal(decode_ioctl(ROOT_INO, REMOUNT_IOCTL + 1, MS_RDONLY, &req), -ENOSYS);
	begin(&m, FUSE_IOCTL);
	assert_int_equal(decode(&m, &req), -EIO);
}

/* ---- names ----------------------------------------------------------------------------------- */

static int decode_lookup(const char *name)
{
	struct message m;
	struct request req;

	begin(&m, FUSE_LOOKUP);
	put_name(&m, name);
	return decode(&m, &req);
}

static void fuse_decode__names(void **state)
{
	char name[NAME_BYTES_MAX + 2];

	memset(name, 'n', sizeof(name));
	name[NAME_BYTES_MAX] = '\0';
	assert_int_equal(decode_lookup(name), 0);
	name[NAME_BYTES_MAX] = 'n';
	name[NAME_BYTES_MAX + 1] = '\0';
	assert_int_equal(decode_lookup(name), -ENAMETOOLONG);
	assert_int_equal(decode_lookup(""), -EINVAL);
	assert_int_equal(decode_lookup("a/b"), -EINVAL);
	assert_int_equal(decode_lookup("\xff\xfe"), 0);
}

static void fuse_decode__longest_symlink(void **state)
{
	char name[NAME_BYTES_MAX + 1], target[SYMLINK_BYTES_MAX + 2];
	struct message m;
	struct request req;

	memset(name, 'n', sizeof(name));
	name[NAME_BYTES_MAX] = '\0';
	memset(target, '/', sizeof(target));
	target[SYMLINK_BYTES_MAX] = '\0';
	begin(&m, FUSE_SYMLINK);
	put_name(&m, name);
	put_name(&m, target);
	assert_int_equal(decode(&m, &req), 0);
	assert_string_equal(req.args.name, name);
	assert_string_equal(req.args.name2, target);

	target[SYMLINK_BYTES_MAX] = '/';
	target[SYMLINK_BYTES_MAX + 1] = '\0';
	begin(&m, FUSE_SYMLINK);
	put_name(&m, name);
	put_name(&m, target);
	assert_int_equal(decode(&m, &req), -ENAMETOOLONG);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void fuse_decode__setattr(void **state)
{
	struct fuse_setattr_in in = {
		.valid = FATTR_MODE | FATTR_SIZE | FATTR_ATIME | FATTR_ATIME_NOW | FATTR_MTIME |
			 FATTR_FH | FATTR_KILL_SUIDGID,
		.fh = 9,
		.size = UINT64_C(5) << 32,
		.mode = 0640,
		.mtime = (uint64_t)-2,
		.mtimensec = 5,
		.ctime = (uint64_t)INT64_MAX,
		.atime = (uint64_t)INT64_MIN,
	};
	struct message m;
	struct request req;

	begin(&m, FUSE_SETATTR);
	put(&m, &in, sizeof(in));
	assert_int_equal(decode(&m, &req), 0);
	assert_int_equal(req.args.set.valid, SET_MODE | SET_SIZE | SET_ATIME_NOW | SET_MTIME);
	assert_int_equal(req.args.set.size, UINT64_C(5) << 32);
	assert_int_equal(req.args.set.mode, 0640);
	assert_true(req.args.set.mtime == -1999999995);
	assert_true(req.args.set.ctime == INT64_MAX);
	assert_true(req.args.set.atime == INT64_MIN);
	assert_true(req.args.has_fh && req.args.fh == 9 && req.args.kill_priv);

	in.size = UINT64_C(1) << 63;
	begin(&m, FUSE_SETATTR);
	put(&m, &in, sizeof(in));
	assert_int_equal(decode(&m, &req), -EFBIG);
}

static void fuse_decode__fallocate(void **state)
{
	struct fuse_fallocate_in in = {.fh = 5, .offset = 7, .length = INT64_MAX - 7, .mode = 3};
	struct message m;
	struct request req;

	begin(&m, FUSE_FALLOCATE);
	put(&m, &in, sizeof(in));
	assert_int_equal(decode(&m, &req), 0);
	assert_int_equal(req.args.offset, 7);
	assert_true(req.args.len == (uint64_t)INT64_MAX - 7);
	assert_int_equal(req.args.mode, 3);
	in.offset++;
	begin(&m, FUSE_FALLOCATE);
	put(&m, &in, sizeof(in));
	assert_int_equal(decode(&m, &req), -EFBIG);
	in.length = 0;
	begin(&m, FUSE_FALLOCATE);
	put(&m, &in, sizeof(in));
	assert_int_equal(decode(&m, &req), -EINVAL);
}

static void fuse_decode__copy(void **state)
{
	struct fuse_copy_file_range_in in = {
		.fh_in = 5, .off_in = 7, .nodeid_out = 8, .off_out = 9, .len = UINT64_MAX};
	struct message m;
	struct request req;

	begin(&m, FUSE_COPY_FILE_RANGE);
	put(&m, &in, sizeof(in));
	assert_int_equal(decode(&m, &req), 0);
	assert_int_equal(req.args.offset, 7);
	assert_int_equal(req.args.node2, 8);
	assert_int_equal(req.args.offset2, 9);
	assert_true(req.args.len == (uint64_t)INT64_MAX - 9);
	in.off_in = INT64_MAX;
	begin(&m, FUSE_COPY_FILE_RANGE);
	put(&m, &in, sizeof(in));
	assert_int_equal(decode(&m, &req), -EFBIG);
	in.flags = 1;
	begin(&m, FUSE_COPY_FILE_RANGE);
	put(&m, &in, sizeof(in));
	assert_int_equal(decode(&m, &req), -EINVAL);
}

static void fuse_decode__write(void **state)
{
	struct fuse_write_in in = {
		.fh = 5,
		.offset = UINT64_C(6) << 32,
		.size = 3,
		.write_flags = FUSE_WRITE_CACHE | FUSE_WRITE_KILL_SUIDGID,
		.flags = O_WRONLY | O_DSYNC,
	};
	struct message m;
	struct request req;

	begin(&m, FUSE_WRITE);
	put(&m, &in, sizeof(in));
	assert_int_equal(m.len, PAYLOAD_HEAD_BYTES);
	put(&m, "abc", 3);
	assert_int_equal(decode(&m, &req), 0);
	assert_int_equal(req.args.offset, UINT64_C(6) << 32);
	assert_int_equal(req.args.size, 3);
	assert_int_equal(req.args.flags, O_WRONLY | O_DSYNC);
	assert_true(req.args.cached && req.args.kill_priv && req.args.has_fh);
}

static void fuse_decode__read_for_the_cache(void **state)
{
	struct fuse_read_in in = {.fh = 5, .offset = 6, .size = 7, .flags = O_RDWR | O_DIRECT};
	struct message m;
	struct request req;

	begin(&m, FUSE_READ);
	put(&m, &in, sizeof(in));
	assert_int_equal(decode(&m, &req), 0);
	assert_true(req.args.cached);
	in.read_flags = FUSE_READ_LOCKOWNER;
	begin(&m, FUSE_READ);
	put(&m, &in, sizeof(in));
	assert_int_equal(decode(&m, &req), 0);
	assert_false(req.args.cached);
}

static int decode_range(uint32_t opcode, uint64_t offset, uint32_t size)
{
	struct fuse_read_in in = {.offset = offset, .size = size};
	struct message m;
	struct request req;
	int err;

	begin(&m, opcode);
	put(&m, &in, sizeof(in));
	err = decode(&m, &req);
	assert_true(err || req.args.size <= IO_BYTES_MAX);
	return err;
}

static void fuse_decode__ranges(void **state)
{
	assert_int_equal(decode_range(FUSE_READ, 0, IO_BYTES_MAX), 0);
	assert_int_equal(decode_range(FUSE_READ, 0, IO_BYTES_MAX + 1), -EINVAL);
	assert_int_equal(decode_range(FUSE_READ, INT64_MAX - 4096, 4096), 0);
	assert_int_equal(decode_range(FUSE_READ, INT64_MAX - 4095, 4096), -EFBIG);
	assert_int_equal(decode_range(FUSE_READ, UINT64_MAX, 1), -EFBIG);
	/* A cookie is any number, and only a part of a long directory buffer is used. */
	assert_int_equal(decode_range(FUSE_READDIR, UINT64_MAX, UINT32_MAX), 0);
	assert_int_equal(decode_range(FUSE_READDIRPLUS, UINT64_MAX, UINT32_MAX), 0);
}

static void fuse_decode__rename_flags(void **state)
{
	static const struct {
		uint32_t flags;
		int err;
	} cases[] = {
		{0, 0},
		{RENAME_NOREPLACE, 0},
		{RENAME_EXCHANGE, 0},
		{RENAME_WHITEOUT, 0},
		{RENAME_WHITEOUT | RENAME_NOREPLACE, 0},
		{RENAME_WHITEOUT | RENAME_EXCHANGE, -EINVAL},
		{8, -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fuse_rename2_in in = {.newdir = 8, .flags = cases[i].flags};
		struct message m;
		struct request req;

		begin(&m, FUSE_RENAME2);
		put(&m, &in, sizeof(in));
		put_name(&m, "a");
		put_name(&m, "b");
		assert_int_equal(decode(&m, &req), cases[i].err);
		assert_int_equal(req.args.flags, cases[i].flags);
		assert_int_equal(req.args.node2, 8);
	}
}

static void fuse_decode__lseek_whence(void **state)
{
	for (uint32_t whence = 0; whence < 8; whence++) {
		struct fuse_lseek_in in = {.offset = 1, .whence = whence};
		struct message m;
		struct request req;

		begin(&m, FUSE_LSEEK);
		put(&m, &in, sizeof(in));
		assert_int_equal(
			decode(&m, &req), whence == SEEK_DATA || whence == SEEK_HOLE ? 0 : -EINVAL);
	}
}

static int decode_setxattr(size_t head, uint32_t size, const char *name, struct request *req)
{
	struct fuse_setxattr_in in = {
		.size = size,
		.flags = XATTR_CREATE,
		.setxattr_flags = FUSE_SETXATTR_ACL_KILL_SGID,
	};
	static struct message m;

	begin(&m, FUSE_SETXATTR);
	put(&m, &in, head);
	put_name(&m, name);
	put(&m, "value", 5);
	memset(req, 0, sizeof(*req));
	return fuse_decode(m.bytes, m.len, req);
}

static void fuse_decode__setxattr_of_both_lengths(void **state)
{
	struct request req;

	assert_int_equal(decode_setxattr(sizeof(struct fuse_setxattr_in), 5, "user.n", &req), 0);
	assert_string_equal(req.args.name, "user.n");
	assert_memory_equal(req.args.value, "value", 5);
	assert_int_equal(req.args.size, 5);
	assert_int_equal(req.args.flags, SETXATTR_CREATE | SETXATTR_KILL_SGID);

	assert_int_equal(decode_setxattr(FUSE_COMPAT_SETXATTR_IN_SIZE, 5, "user.n", &req), 0);
	assert_string_equal(req.args.name, "user.n");
	assert_memory_equal(req.args.value, "value", 5);
	assert_int_equal(req.args.flags, SETXATTR_CREATE);
}

static void fuse_decode__setxattr_out_of_range(void **state)
{
	size_t head = sizeof(struct fuse_setxattr_in);
	char name[NAME_BYTES_MAX + 2];
	struct request req;

	assert_int_equal(decode_setxattr(head, 4, "user.n", &req), -EIO);
	assert_int_equal(decode_setxattr(head, 6, "user.n", &req), -EIO);
	assert_int_equal(decode_setxattr(head, UINT32_MAX, "user.n", &req), -EIO);
	memset(name, 'n', sizeof(name));
	name[NAME_BYTES_MAX + 1] = '\0';
	assert_int_equal(decode_setxattr(head, 5, name, &req), -ERANGE);
	name[NAME_BYTES_MAX] = '\0';
	assert_int_equal(decode_setxattr(head, 5, name, &req), 0);
}

static void fuse_decode__setxattr_value_too_long(void **state)
{
	struct fuse_setxattr_in in = {.size = XATTR_VALUE_MAX + 1};
	size_t len = sizeof(struct fuse_in_header) + sizeof(in) + 7 + in.size;
	uint8_t *msg = calloc(1, len);
	struct message head;
	struct request req;

	begin(&head, FUSE_SETXATTR);
	put(&head, &in, sizeof(in));
	put_name(&head, "user.n");
	memcpy(msg, head.bytes, head.len);
	assert_int_equal(fuse_decode(msg, len, &req), -E2BIG);
	free(msg);
}

static void fuse_decode__getxattr_room(void **state)
{
	struct fuse_getxattr_in in = {.size = UINT32_MAX};
	struct message m;
	struct request req;

	begin(&m, FUSE_GETXATTR);
	put(&m, &in, sizeof(in));
	put_name(&m, "user.n");
	assert_int_equal(decode(&m, &req), 0);
	assert_int_equal(req.args.size, XATTR_VALUE_MAX);
}

/* ---- FORGET, INTERRUPT ----------------------------------------------------------------------- */

static void fuse_decode_forget__single(void **state)
{
	struct fuse_forget_in in = {.nlookup = 6};
	struct forget forget;
	struct message m;
	uint32_t n;

	begin(&m, FUSE_FORGET);
	put(&m, &in, sizeof(in));
	assert_int_equal(fuse_decode_nforgets(m.bytes, m.len, &n), 0);
	assert_int_equal(n, 1);
	fuse_decode_forget(m.bytes, 0, &forget);
	assert_int_equal(forget.node, NODE);
	assert_int_equal(forget.nlookup, 6);
	assert_int_equal(fuse_decode_nforgets(m.bytes, m.len - 1, &n), -EIO);
}

static void fuse_decode_forget__batch(void **state)
{
	struct fuse_batch_forget_in in = {.count = 3};
	struct fuse_forget_one ones[3] = {{10, 1}, {11, 2}, {12, 3}};
	struct forget forget;
	struct message m;
	uint32_t n;

	begin(&m, FUSE_BATCH_FORGET);
	put(&m, &in, sizeof(in));
	put(&m, ones, sizeof(ones));
	assert_int_equal(fuse_decode_nforgets(m.bytes, m.len, &n), 0);
	assert_int_equal(n, 3);
	fuse_decode_forget(m.bytes, 2, &forget);
	assert_int_equal(forget.node, 12);
	assert_int_equal(forget.nlookup, 3);
	for (size_t len = sizeof(struct fuse_in_header); len < m.len; len++)
		assert_int_equal(fuse_decode_nforgets(m.bytes, len, &n), -EIO);
}

static void fuse_decode_forget__count_beyond_message(void **state)
{
	struct fuse_batch_forget_in in = {.count = UINT32_MAX};
	struct message m;
	uint32_t n;

	begin(&m, FUSE_BATCH_FORGET);
	put(&m, &in, sizeof(in));
	assert_int_equal(fuse_decode_nforgets(m.bytes, m.len, &n), -EIO);
}

static void fuse_decode_interrupt__lengths(void **state)
{
	struct fuse_interrupt_in in = {.unique = 99};
	struct message m;
	uint64_t unique;

	begin(&m, FUSE_INTERRUPT);
	put(&m, &in, sizeof(in));
	assert_int_equal(fuse_decode_interrupt(m.bytes, m.len, &unique), 0);
	assert_int_equal(unique, 99);
	assert_int_equal(fuse_decode_interrupt(m.bytes, m.len - 1, &unique), -EIO);
	assert_int_equal(fuse_decode_interrupt(m.bytes, m.len + 1, &unique), -EIO);
}

/* ---- INIT ------------------------------------------------------------------------------------ */

static const struct fuse_init_in init_61 = {
	.major = 7,
	.minor = 37,
	.max_readahead = 131072,
	.flags = UINT32_MAX & ~(uint32_t)FUSE_INIT_RESERVED,
	.flags2 = 3,
};

static const struct fuse_wishes none, sharing = {.sharing = true}, ids = {.ids = true};

static void fuse_init_negotiate__takes_offered_only(void **state)
{
	struct fuse_init_in in = init_61;
	struct fs_features features;
	struct fuse_init_out out;

	assert_int_equal(fuse_init_negotiate(&in, sizeof(in), &none, &out, &features), 0);
	assert_int_equal(out.flags & ~in.flags, 0);
	assert_int_equal(out.flags2 & ~in.flags2, 0);
	assert_int_equal(out.max_write, IO_BYTES_MAX);
	assert_int_equal(out.max_pages, IO_PAGES_MAX);
	assert_int_equal(out.flags & FUSE_AUTO_INVAL_DATA, 0);
	assert_int_equal(out.flags & FUSE_WRITEBACK_CACHE, 0);
	assert_true(out.flags & FUSE_PARALLEL_DIROPS);
	assert_true(out.flags & FUSE_POSIX_ACL);
	assert_true(out.flags & FUSE_DONT_MASK);
	assert_true(out.flags & FUSE_SETXATTR_EXT);
	assert_false(features.direct_io_allow_mmap);
	assert_false(features.parallel_direct_writes);
	assert_false(features.evictions_seen);
	assert_false(features.resend);
	assert_true(features.handle_killpriv_v2);
}

static void fuse_init_negotiate__newer_kernel(void **state)
{
	struct fuse_init_in in = init_61;
	struct fs_features features;
	struct fuse_init_out out;

	in.minor = 45;
	in.flags2 = UINT32_MAX;
	assert_int_equal(fuse_init_negotiate(&in, sizeof(in) + 64, &none, &out, &features), 0);
	assert_int_equal(out.flags2, 1 << (36 - 32) | 1 << (39 - 32) | 1 << (40 - 32));
	assert_true(features.resend);
	assert_true(features.direct_io_allow_mmap);
	assert_true(features.parallel_direct_writes);
	assert_true(features.evictions_seen);
}

/* A mount that is alone can go on after its daemon was killed, also if it may share later. */
static void fuse_init_negotiate__requests_come_again_also_where_others_may_come(void **state)
{
	struct fuse_init_in in = init_61;
	struct fs_features features;
	struct fuse_init_out out;

	in.flags2 = UINT32_MAX;
	assert_int_equal(fuse_init_negotiate(&in, sizeof(in), &sharing, &out, &features), 0);
	assert_true(out.flags2 & 1 << (39 - 32));
	assert_true(features.resend);
}

/* The kernel ends a connection that maps ids and lets the daemon check permissions. */
static void fuse_init_negotiate__maps_no_ids_without_lists(void **state)
{
	struct fuse_init_in in = init_61;
	struct fs_features features;
	struct fuse_init_out out;

	in.flags &= ~(uint32_t)FUSE_POSIX_ACL;
	in.flags2 = UINT32_MAX;
	assert_int_equal(fuse_init_negotiate(&in, sizeof(in), &sharing, &out, &features), 0);
	assert_false(out.flags2 & 1 << (40 - 32));
}

/* Squashed users are told apart by the ids of each request. */
static void fuse_init_negotiate__maps_no_ids_where_users_are_squashed(void **state)
{
	struct fuse_init_in in = init_61;
	struct fs_features features;
	struct fuse_init_out out;

	in.minor = 45;
	in.flags2 = UINT32_MAX;
	assert_int_equal(fuse_init_negotiate(&in, sizeof(in), &ids, &out, &features), 0);
	assert_int_equal(out.flags2, 1 << (36 - 32) | 1 << (39 - 32));
	assert_true(out.flags & FUSE_POSIX_ACL);
}

static void fuse_init_negotiate__without_max_pages(void **state)
{
	struct fuse_init_in in = init_61;
	struct fs_features features;
	struct fuse_init_out out;

	in.flags &= ~(uint32_t)(FUSE_MAX_PAGES | FUSE_INIT_EXT);
	assert_int_equal(fuse_init_negotiate(&in, offsetof(struct fuse_init_in, flags2), &none,
				 &out, &features),
		0);
	assert_int_equal(out.max_write, 131072);
	assert_int_equal(out.flags2, 0);
}

static void fuse_init_negotiate__too_old_or_short(void **state)
{
	struct fuse_init_in in = init_61;
	struct fs_features features;
	struct fuse_init_out out;

	assert_int_equal(fuse_init_negotiate(&in, 15, &none, &out, &features), -EPROTO);
	in.minor = 22;
	assert_int_equal(fuse_init_negotiate(&in, sizeof(in), &none, &out, &features), -EPROTO);
	in = init_61;
	in.major = 8;
	assert_int_equal(fuse_init_negotiate(&in, sizeof(in), &none, &out, &features), -EPROTO);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static int decode_lk(uint32_t opcode, struct fuse_lk_in in, struct request *req)
{
	struct message m;

	begin(&m, opcode);
	put(&m, &in, sizeof(in));
	return decode(&m, req);
}

static void locks__what_is_asked_for(void **state)
{
	struct fuse_lk_in in = {.fh = 5,
		.owner = UINT64_MAX,
		.lk = {.start = 7, .end = INT64_MAX, .type = F_WRLCK, .pid = 4711}};
	struct request req;

	assert_int_equal(decode_lk(FUSE_SETLK, in, &req), 0);
	assert_int_equal(req.args.fh, 5);
	assert_true(req.args.lock_owner == UINT64_MAX);
	assert_int_equal(req.args.lock.kind, LOCK_KIND_POSIX);
	assert_int_equal(req.args.lock.type, LOCK_EXCLUSIVE);
	assert_int_equal(req.args.lock.start, 7);
	assert_int_equal(req.args.lock.end, INT64_MAX);
	assert_int_equal(req.args.lock.pid, 4711);
	assert_false(req.args.lock.wait);
	in.lk.type = F_RDLCK;
	in.lk_flags = FUSE_LK_FLOCK;
	assert_int_equal(decode_lk(FUSE_SETLKW, in, &req), 0);
	assert_int_equal(req.args.lock.kind, LOCK_KIND_FLOCK);
	assert_int_equal(req.args.lock.type, LOCK_SHARED);
	assert_true(req.args.lock.wait);
	in.lk.type = F_UNLCK;
	assert_int_equal(decode_lk(FUSE_SETLK, in, &req), 0);
	assert_int_equal(req.args.lock.type, LOCK_FREE);
	assert_int_equal(decode_lk(FUSE_GETLK, in, &req), -EINVAL);
	in.lk.type = 77;
	assert_int_equal(decode_lk(FUSE_SETLK, in, &req), -EINVAL);
	in.lk.type = F_RDLCK;
	in.lk.start = 9;
	in.lk.end = 8;
	assert_int_equal(decode_lk(FUSE_SETLK, in, &req), -EINVAL);
	in.lk.end = UINT64_MAX;
	assert_int_equal(decode_lk(FUSE_SETLK, in, &req), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fuse_decode__well_formed),
		cmocka_unit_test(fuse_decode__cut_anywhere),
		cmocka_unit_test(fuse_decode__too_long),
		cmocka_unit_test(fuse_decode__extensions_are_skipped),
		cmocka_unit_test(fuse_decode__unknown_operation),
		cmocka_unit_test(fuse_decode__one_ioctl_of_the_root),
		cmocka_unit_test(fuse_decode__names),
		cmocka_unit_test(fuse_decode__longest_symlink),
		cmocka_unit_test(fuse_decode__setattr),
		cmocka_unit_test(fuse_decode__fallocate),
		cmocka_unit_test(fuse_decode__copy),
		cmocka_unit_test(fuse_decode__write),
		cmocka_unit_test(fuse_decode__read_for_the_cache),
		cmocka_unit_test(fuse_decode__ranges),
		cmocka_unit_test(fuse_decode__rename_flags),
		cmocka_unit_test(fuse_decode__lseek_whence),
		cmocka_unit_test(fuse_decode__setxattr_of_both_lengths),
		cmocka_unit_test(fuse_decode__setxattr_out_of_range),
		cmocka_unit_test(fuse_decode__setxattr_value_too_long),
		cmocka_unit_test(fuse_decode__getxattr_room),
		cmocka_unit_test(fuse_decode_forget__single),
		cmocka_unit_test(fuse_decode_forget__batch),
		cmocka_unit_test(fuse_decode_forget__count_beyond_message),
		cmocka_unit_test(fuse_decode_interrupt__lengths),
		cmocka_unit_test(fuse_init_negotiate__takes_offered_only),
		cmocka_unit_test(fuse_init_negotiate__newer_kernel),
		cmocka_unit_test(
			fuse_init_negotiate__requests_come_again_also_where_others_may_come),
		cmocka_unit_test(fuse_init_negotiate__maps_no_ids_without_lists),
		cmocka_unit_test(fuse_init_negotiate__maps_no_ids_where_users_are_squashed),
		cmocka_unit_test(fuse_init_negotiate__without_max_pages),
		cmocka_unit_test(fuse_init_negotiate__too_old_or_short),
		cmocka_unit_test(locks__what_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
