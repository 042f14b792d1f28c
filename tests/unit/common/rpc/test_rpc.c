/* test_rpc.c - messages survive the wire; malformed ones are refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "common/rpc/rpc.h"
#include "common/base/util.h"
#include "tests/unit/common/rpc/samples.h"

enum { HEADER_BYTES = 16 };

/* It has all that the versions before it have. */
enum { VERSION = RMEMFS_WIRE_NEXT };

static uint8_t buf[RPC_MSG_BYTES];
static uint8_t again[RPC_MSG_BYTES];

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

/* Without the padding at its end. */
enum { ATTR_USED = offsetof(struct attr, flags) + sizeof(uint32_t) };

static int decode_request(const void *msg, size_t len)
{
	struct rpc_request q;

	return rpc_request_decode(&q, VERSION, msg, len);
}

static int decode_reply(const void *msg, size_t len)
{
	struct rpc_reply p;

	return rpc_reply_decode(&p, VERSION, msg, len);
}

static void op_info__unknown_ops_have_no_name(void **state)
{
	assert_null(rpc_op_info(0)->name);
	assert_null(rpc_op_info(RPC_LOG + 1)->name);
	assert_null(rpc_op_info(RPC_OP_MAX)->name);
	assert_null(rpc_op_info(UINT32_MAX)->name);
	assert_string_equal(rpc_op_info(RPC_RENAME)->name, "rename");
	assert_true(rpc_op_info(RPC_RENAME)->mutates);
	assert_false(rpc_op_info(RPC_STATFS)->mutates);
}

static void mutates__what_asks_for_leases(void **state)
{
	struct rpc_request lookup = {.op = RPC_LOOKUP}, getattr = {.op = RPC_GETATTR};

	assert_false(rpc_mutates(&lookup));
	assert_false(rpc_mutates(&getattr));
	lookup.name.look = LOOK_LEASE_DIR;
	getattr.ino.look = LOOK_LEASE;
	assert_true(rpc_mutates(&lookup));
	assert_true(rpc_mutates(&getattr));
	assert_true(rpc_mutates(&(struct rpc_request){.op = RPC_UNLINK}));
	assert_false(rpc_mutates(&(struct rpc_request){.op = RPC_READLINK, .ino.look = 1}));
}

static void request__comes_back_the_same(void **state)
{
	for_each_op_of(op, VERSION)
	{
		struct rpc_request in = request_of(op), out;
		size_t len, len_again;

		assert_int_equal(rpc_request_encode(&in, VERSION, buf, sizeof(buf), &len), 0);
		assert_int_equal(rpc_request_decode(&out, VERSION, buf, len), 0);
		assert_int_equal(
			rpc_request_encode(&out, VERSION, again, sizeof(again), &len_again), 0);
		assert_int_equal(len, len_again);
		assert_memory_equal(buf, again, len);
	}
}

static void request__fields_arrive_in_their_places(void **state)
{
	struct rpc_request in = request_of(RPC_RENAME), out;
	size_t len;

	assert_int_equal(rpc_request_encode(&in, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(rpc_request_decode(&out, VERSION, buf, len), 0);
	assert_int_equal(out.slot, 3);
	assert_int_equal(out.seq, 77);
	assert_int_equal(out.rename.new_parent, 2);
	assert_int_equal(out.rename.flags, RENAME_EXCHANGE);
	assert_int_equal(out.rename.uid, 3);
	assert_int_equal(out.rename.gid, 4);
	assert_int_equal(out.rename.expected.ino, 5);
	assert_true(out.rename.expected.exactly);
	assert_int_equal(out.rename.new_expected.ino, 6);
	assert_false(out.rename.new_expected.exactly);
	assert_memory_equal(out.rename.name.s, "old", 3);
	assert_memory_equal(out.rename.new_name.s, "new", 3);
}

static void request__rights_arrive_in_their_places(void **state)
{
	static const unsigned ops[] = {RPC_SETATTR, RPC_SETXATTR, RPC_REMOVEXATTR};

	for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
		struct rpc_request in = request_of(ops[i]), out;
		const struct rights *rights = i == 0   ? &out.setattr.rights
					      : i == 1 ? &out.setxattr.rights
						       : &out.removexattr.rights;
		size_t len;

		assert_int_equal(rpc_request_encode(&in, VERSION, buf, sizeof(buf), &len), 0);
		assert_int_equal(rpc_request_decode(&out, VERSION, buf, len), 0);
		assert_true(rights->bound);
		assert_int_equal(rights->owners.first, rights->owners.last);
		assert_int_equal(rights->groups.first, rights->owners.last + 1);
		assert_int_equal(rights->groups.last, UINT32_MAX);
	}
}

static void reply__comes_back_the_same(void **state)
{
	for_each_op_of(op, VERSION)
	{
		struct rpc_reply in = reply_of(op), out;
		size_t len, len_again;

		assert_int_equal(rpc_reply_encode(&in, VERSION, buf, sizeof(buf), &len), 0);
		assert_int_equal(rpc_reply_decode(&out, VERSION, buf, len), 0);
		assert_int_equal(
			rpc_reply_encode(&out, VERSION, again, sizeof(again), &len_again), 0);
		assert_int_equal(len, len_again);
		assert_memory_equal(buf, again, len);
	}
}

static void reply__fields_arrive_in_their_places(void **state)
{
	struct rpc_reply in = reply_of(RPC_CREATE), out;
	size_t len;

	assert_int_equal(rpc_reply_encode(&in, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(rpc_reply_decode(&out, VERSION, buf, len), 0);
	assert_memory_equal(&out.entry.attr, &in.entry.attr, ATTR_USED);
	assert_memory_equal(&out.entry.parent, &in.entry.parent, ATTR_USED);
	assert_int_equal(out.entry.lease.type, LEASE_EXCLUSIVE);
	assert_int_equal(out.entry.lease.number, UINT64_MAX);
	assert_true(out.entry.created);
	assert_int_equal(out.entry.grant[7].fpage, 107);
	assert_int_equal(out.entry.head[3].region, 2);
}

/* No op that lends numbers leaves them as they were in memory. */
static void replies__bring_what_is_lent(void **state)
{
	static const enum rpc_op ops[] = {RPC_CREATE, RPC_MKDIR, RPC_SYMLINK, RPC_LINK};

	for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
		struct rpc_reply in = reply_of(ops[i]), out;
		size_t len;

		memset(&out, 0x55, sizeof(out));
		assert_int_equal(rpc_reply_encode(&in, VERSION, buf, sizeof(buf), &len), 0);
		assert_int_equal(rpc_reply_decode(&out, VERSION, buf, len), 0);
		assert_int_equal(out.entry.lent.first, 70);
		assert_int_equal(out.entry.lent.n, 3);
	}
}

static void error_reply__carries_its_text(void **state)
{
	struct rpc_reply in = {.op = RPC_CREATE, .slot = 1, .seq = 2, .status = -ENOSPC};
	struct rpc_reply out;
	size_t len;

	in.text = str("no pages left");
	assert_int_equal(rpc_reply_encode(&in, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(rpc_reply_decode(&out, VERSION, buf, len), 0);
	assert_int_equal(out.status, -ENOSPC);
	assert_int_equal(out.text.len, in.text.len);
	assert_memory_equal(out.text.s, in.text.s, in.text.len);
}

static void error_reply__long_text_is_cut(void **state)
{
	struct rpc_reply in = {.op = RPC_CREATE, .slot = 1, .seq = 2, .status = -EIO}, out;
	char text[RPC_TEXT_MAX + 100];
	size_t len;

	memset(text, 'x', sizeof(text));
	in.text = (struct rpc_str){text, sizeof(text)};
	assert_int_equal(rpc_reply_encode(&in, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(rpc_reply_decode(&out, VERSION, buf, len), 0);
	assert_int_equal(out.text.len, RPC_TEXT_MAX);
}

static void reply__slot_and_sequence_follow_the_op(void **state)
{
	struct rpc_reply p[] = {reply_of(RPC_PING), reply_of(RPC_AUTH)};
	size_t len;

	p[0].slot = 0, p[1].seq = 1;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(rpc_reply_encode(&p[i], VERSION, buf, sizeof(buf), &len), 0);
		assert_int_equal(decode_reply(buf, len), -EPROTO);
	}
}

static void reply__positive_status_is_refused(void **state)
{
	struct rpc_reply p = {.op = RPC_PING, .slot = RPC_NO_SLOT, .status = 5};
	size_t len;

	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), -EPROTO);
	p.status = 0;
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	buf[4] = 5;
	assert_int_equal(decode_reply(buf, len), -EPROTO);
}

static void attach_reply__squash_out_of_range(void **state)
{
	static const struct squash bad[] = {
		{SQUASH_KINDS, 1, 1}, {UINT8_MAX, 1, 1}, {SQUASH_ROOT, 0, 1}, {SQUASH_ALL, 1, 0}};
	struct rpc_reply p = reply_of(RPC_ATTACH);
	size_t len;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		p.attach.squash = bad[i];
		assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
		assert_int_equal(decode_reply(buf, len), -EPROTO);
	}
	p.attach.squash = (struct squash){SQUASH_NONE, 0, 0};
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_reply(buf, len), 0);
}

static void squash__ids(void **state)
{
	struct squash none = {SQUASH_NONE, 5, 6}, root = {SQUASH_ROOT, 5, 6},
		      all = {SQUASH_ALL, 5, 6};

	assert_int_equal(squash_uid(&none, 0), 0);
	assert_int_equal(squash_uid(&root, 0), 5);
	assert_int_equal(squash_uid(&root, 1000), 1000);
	assert_int_equal(squash_gid(&root, 0), 6);
	assert_int_equal(squash_uid(&all, 1000), 5);
	assert_int_equal(squash_gid(&all, 0), 6);
}

static void reply__taken_back_is_no_answer(void **state)
{
	struct rpc_reply p = {.op = RPC_STATFS, .status = -ECANCELED};
	int32_t status = -ECANCELED;
	size_t len;

	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), -EPROTO);
	p.status = -EIO;
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	memcpy(buf + 4, &status, sizeof(status));
	assert_int_equal(decode_reply(buf, len), -EPROTO);
}

/* After a cut within a tail the rest may be well-formed: tails have no count. */
static size_t fixed_part(size_t tail_at, size_t len)
{
	return tail_at ? tail_at : len;
}

static void decode__truncated_anywhere(void **state)
{
	for_each_op_of(op, VERSION)
	{
		struct rpc_request q = request_of(op);
		struct rpc_reply p = reply_of(op);
		size_t len;

		assert_int_equal(rpc_request_encode(&q, VERSION, buf, sizeof(buf), &len), 0);
		for (size_t cut = 0; cut < fixed_part(rpc_request_tail_at(op, VERSION), len); cut++)
			assert_int_equal(decode_request(buf, cut), -EPROTO);
		assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
		for (size_t cut = 0; cut < fixed_part(rpc_reply_tail_at(op, VERSION), len); cut++)
			assert_int_equal(decode_reply(buf, cut), -EPROTO);
	}
}

static void decode__trailing_bytes(void **state)
{
	for_each_op_of(op, VERSION)
	{
		struct rpc_request q = request_of(op);
		struct rpc_reply p = reply_of(op);
		size_t len;

		assert_int_equal(rpc_request_encode(&q, VERSION, buf, sizeof(buf), &len), 0);
		if (op != RPC_STAGE && op != RPC_AUTH) /* their tails are any bytes */
			assert_int_equal(decode_request(buf, len + 1), -EPROTO);
		if (rpc_reply_tail_at(op, VERSION))
			continue;
		assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
		assert_int_equal(decode_reply(buf, len + 1), -EPROTO);
	}
}

static void encode__does_not_fit(void **state)
{
	for_each_op_of(op, VERSION)
	{
		struct rpc_request q = request_of(op);
		struct rpc_reply p = reply_of(op);
		size_t len, ignored;

		assert_int_equal(rpc_request_encode(&q, VERSION, buf, sizeof(buf), &len), 0);
		assert_int_equal(
			rpc_request_encode(&q, VERSION, buf, len - 1, &ignored), -EMSGSIZE);
		assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
		assert_int_equal(rpc_reply_encode(&p, VERSION, buf, len - 1, &ignored), -EMSGSIZE);
	}
}

static void encode__unknown_op(void **state)
{
	size_t len;

	assert_int_equal(rpc_request_encode(&(struct rpc_request){.op = RPC_LOG + 1}, VERSION, buf,
				 sizeof(buf), &len),
		-EPROTO);
	assert_int_equal(rpc_reply_encode(&(struct rpc_reply){.op = RPC_LOG + 1}, VERSION, buf,
				 sizeof(buf), &len),
		-EPROTO);
}

static void assert_refused(const struct rpc_request *q)
{
	size_t len;

	assert_int_equal(rpc_request_encode(q, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_request(buf, len), -EPROTO);
}

static void request__slot_and_sequence_follow_the_op(void **state)
{
	struct rpc_request q = request_of(RPC_LOOKUP);

	q.seq = 0;
	assert_refused(&q);
	q = request_of(RPC_LOOKUP);
	q.slot = RPC_NO_SLOT;
	assert_refused(&q);
	q = request_of(RPC_PING);
	q.slot = 0;
	assert_refused(&q);
	q = request_of(RPC_AUTH);
	q.seq = 1;
	assert_refused(&q);
}

static void request__names_out_of_range(void **state)
{
	static const char *const bad[] = {"", "a/b", "/", ".", ".."};
	char long_name[NAME_BYTES_MAX + 1];
	struct rpc_request q = request_of(RPC_UNLINK);

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		q.name.name = str(bad[i]);
		assert_refused(&q);
	}
	q.name.name = (struct rpc_str){"a\0b", 3};
	assert_refused(&q);
	memset(long_name, 'n', sizeof(long_name));
	q.name.name = (struct rpc_str){long_name, sizeof(long_name)};
	assert_refused(&q);
}

static void request__dots_are_looked_up_only(void **state)
{
	struct rpc_request q = request_of(RPC_LOOKUP);
	size_t len;

	q.name.name = str("..");
	assert_int_equal(rpc_request_encode(&q, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_request(buf, len), 0);
	q.name.name = str(".");
	assert_int_equal(rpc_request_encode(&q, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_request(buf, len), 0);
	q.name.name = str("");
	assert_refused(&q);
	q.name.name = str("./");
	assert_refused(&q);
	q.op = RPC_RMDIR;
	q.name.name = str(".");
	assert_refused(&q);
}

static void request__longest_name_passes(void **state)
{
	char name[NAME_BYTES_MAX];
	struct rpc_request q = request_of(RPC_UNLINK);
	size_t len;

	memset(name, 'n', sizeof(name));
	q.name.name = (struct rpc_str){name, sizeof(name)};
	assert_int_equal(rpc_request_encode(&q, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_request(buf, len), 0);
	q.name.name = str("...");
	assert_int_equal(rpc_request_encode(&q, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_request(buf, len), 0);
}

static void attach__out_of_range(void **state)
{
	char name[EXPORT_NAME_MAX + 1];
	struct rpc_request q = request_of(RPC_ATTACH);

	q.attach.channel = q.attach.nchannels;
	assert_refused(&q);
	q = request_of(RPC_ATTACH);
	q.attach.flags = ATTACH_ALL + 1;
	assert_refused(&q);
	q = request_of(RPC_ATTACH);
	memset(name, 'e', sizeof(name));
	q.attach.export_name = (struct rpc_str){name, sizeof(name)};
	assert_refused(&q);
}

static void auth__out_of_range(void **state)
{
	static const uint8_t flight[RPC_AUTH_FLIGHT_MAX + 1];
	struct rpc_request q = request_of(RPC_AUTH);
	struct rpc_reply p = reply_of(RPC_AUTH);
	size_t len;

	q.auth.step = 0;
	assert_refused(&q);
	q.auth.step = 3;
	assert_refused(&q);
	q.auth = (struct rpc_auth){1, {flight, 0}};
	assert_refused(&q);
	q.auth.tail.len = RPC_AUTH_FLIGHT_MAX + 1;
	assert_refused(&q);
	q.auth.tail.len = RPC_AUTH_FLIGHT_MAX;
	assert_int_equal(rpc_request_encode(&q, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_request(buf, len), 0);
	p.auth.tail = (struct rpc_tail){flight, RPC_AUTH_FLIGHT_MAX + 1};
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(rpc_reply_decode(&p, VERSION, buf, len), -EPROTO);
}

/* A file that is right; and a request with n - 1 such files before this one. */
static struct rpc_making sample_making(void)
{
	struct rpc_request q = request_of(RPC_MAKE);
	struct wire_in r = rpc_tail_reader(&q.makes.tail);
	struct rpc_making m;

	assert_true(rpc_get_making(&r, &m));
	return m;
}

static struct rpc_request makes_of(const struct rpc_making *m, unsigned n)
{
	static uint8_t bytes[1 << 17];
	struct rpc_request q = request_of(RPC_MAKE);
	struct rpc_making whole = sample_making();
	struct wire_out w;

	wire_out_init(&w, bytes, sizeof(bytes));
	for (unsigned i = 0; i < n; i++)
		assert_true(rpc_put_making(&w, i + 1 < n ? &whole : m));
	q.makes.tail = (struct rpc_tail){bytes, (uint32_t)wire_out_len(&w)};
	return q;
}

static void assert_making_refused(const struct rpc_making *m)
{
	for (unsigned n = 1; n <= MAKES_MAX; n += MAKES_MAX - 1) {
		struct rpc_request q = makes_of(m, n);

		assert_refused(&q);
	}
}

static void makes__have_their_number_and_length(void **state)
{
	struct rpc_making m = sample_making();
	struct rpc_request q = makes_of(&m, MAKES_MAX);
	uint32_t one = makes_of(&m, 1).makes.tail.len, all = q.makes.tail.len;
	size_t len;

	assert_int_equal(all, MAKES_MAX * one);
	/* Only whole files are taken. */
	for (uint32_t cut = 1; cut <= 2 * one; cut++) {
		q.makes.tail.len = cut;
		if (cut % one) {
			assert_refused(&q);
			continue;
		}
		assert_int_equal(rpc_request_encode(&q, VERSION, buf, sizeof(buf), &len), 0);
		assert_int_equal(decode_request(buf, len), 0);
	}
	q.makes.tail.len = 0;
	assert_refused(&q);
	q = makes_of(&m, MAKES_MAX + 1);
	assert_refused(&q);
	q = makes_of(&m, 1);
	q.makes.numbers = NUMBERS_ANEW + 1;
	assert_refused(&q);
}

static void makes__out_of_range(void **state)
{
	struct rpc_making m = sample_making();

	m.make.mode = S_IFDIR | 0755;
	assert_making_refused(&m);
	m.make.mode = 0644;
	assert_making_refused(&m);
	m = sample_making();
	m.make.name = (struct rpc_str){"a/b", 3};
	assert_making_refused(&m);
	m.make.name.len = 0;
	assert_making_refused(&m);
	m.make.name = (struct rpc_str){"..", 2};
	assert_making_refused(&m);
	m = sample_making();
	m.commit.flags = SET_CTIME;
	assert_making_refused(&m);
	m = sample_making();
	m.commit.size = (uint64_t)INT64_MAX + 1;
	assert_making_refused(&m);
	m = sample_making();
	m.commit.tail.len--;
	assert_making_refused(&m);
}

static void makes__reply_out_of_range(void **state)
{
	struct rpc_reply p = reply_of(RPC_MAKE);
	size_t len;

	p.makes.n = 0;
	p.makes.names = (struct rpc_names_reply){0};
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_reply(buf, len), -EPROTO);
	p.makes.n = MAKES_MAX + 1;
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), -EMSGSIZE);
	p.makes.n = 2;
	p.makes.status[1] = 5;
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_reply(buf, len), -EPROTO);
	p.makes.status[1] = -ECANCELED;
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_reply(buf, len), -EPROTO);
}

static void changes__out_of_range(void **state)
{
	struct rpc_request q = request_of(RPC_SETATTR);

	q.setattr.valid = SET_NO_PRIVILEGES << 1;
	assert_refused(&q);
	q = request_of(RPC_SETATTR);
	q.setattr.size = 1ull << 63;
	assert_refused(&q);
	q = request_of(RPC_RENAME);
	q.rename.flags = RENAME_NOREPLACE | RENAME_EXCHANGE;
	assert_refused(&q);
	q.rename.flags = RENAME_WHITEOUT | RENAME_EXCHANGE;
	assert_refused(&q);
	q = request_of(RPC_COMMIT);
	q.commit.flags = SET_ATIME_NOW;
	assert_refused(&q);
	q = request_of(RPC_COMMIT);
	q.commit.keep = LEASE_NONE;
	assert_refused(&q);
	q.commit.keep = LEASE_EXCLUSIVE;
	assert_refused(&q);
	q.commit.lease = 0;
	q.commit.keep = LEASE_SHARED; /* of nothing */
	assert_refused(&q);
	q = request_of(RPC_COMMIT);
	q.commit.size = UINT64_MAX;
	assert_refused(&q);
	q = request_of(RPC_RETURN);
	q.ret.kind = 0;
	assert_refused(&q);
	q.ret.kind = RETURN_INODES;
	q.ret.tail.len = 12;
	assert_refused(&q);
	q = request_of(RPC_RETURN);
	q.ret = (struct rpc_return){.kind = RETURN_LEASES, .answers = 1};
	assert_refused(&q);
	q.ret.kind = RETURN_INODES;
	assert_refused(&q);
	q.ret.kind = RETURN_ALL;
	assert_refused(&q);
	q = request_of(RPC_RETURN);
	q.ret.kind = RETURN_ALL;
	q.ret.answers = 0;
	assert_refused(&q);
}

/* `bound` is 0 or 1; ranges may be any. */
static void rights__out_of_range(void **state)
{
	static const struct {
		unsigned op;
		size_t at;
	} bound[] = {{RPC_SETATTR, 72}, {RPC_SETXATTR, 36}, {RPC_REMOVEXATTR, 35}};

	for (unsigned i = 0; i < ARRAY_SIZE(bound); i++) {
		struct rpc_request q = request_of(bound[i].op);
		size_t len;

		assert_int_equal(rpc_request_encode(&q, VERSION, buf, sizeof(buf), &len), 0);
		assert_int_equal(buf[bound[i].at], 1);
		buf[bound[i].at] = 0;
		assert_int_equal(decode_request(buf, len), 0);
		buf[bound[i].at] = 2;
		assert_int_equal(decode_request(buf, len), -EPROTO);
	}
}

static void xattr__out_of_range(void **state)
{
	struct rpc_request q = request_of(RPC_SETXATTR);

	q.setxattr.flags = SETXATTR_KILL_SGID << 1;
	assert_refused(&q);
	q = request_of(RPC_SETXATTR);
	q.setxattr.total = XATTR_VALUE_MAX + 1;
	assert_refused(&q);
	q = request_of(RPC_SETXATTR);
	q.setxattr.stage = 9; /* but no bytes for it */
	assert_refused(&q);
	q.setxattr.stage = 0;
	q.setxattr.total++; /* but the first byte is nowhere */
	assert_refused(&q);
	q.setxattr.total -= 2;
	assert_refused(&q);
	q = request_of(RPC_GETXATTR);
	q.getxattr.name = (struct rpc_str){"a\0b", 3};
	assert_refused(&q);
	q.getxattr.name.len = 0;
	assert_refused(&q);
	q = request_of(RPC_STAGE);
	q.stage.offset = XATTR_VALUE_MAX;
	assert_refused(&q);
	q.stage = (struct rpc_stage){0, 0, extents_tail()};
	assert_refused(&q);
	q.stage = (struct rpc_stage){.stage = 9, .offset = 12000}; /* no bytes */
	assert_refused(&q);
}

static void ranges__out_of_range(void **state)
{
	struct rpc_request q = request_of(RPC_FALLOCATE);

	q.fallocate.offset++;
	assert_refused(&q);
	q.fallocate.len = 0;
	assert_refused(&q);
	q = request_of(RPC_COPY);
	q.copy.src_offset = INT64_MAX;
	assert_refused(&q);
	q = request_of(RPC_COPY);
	q.copy.len = 0;
	assert_refused(&q);
	q = request_of(RPC_QUOTA);
	q.quota.kind = 0;
	assert_refused(&q);
	q = request_of(RPC_UNPROTECT);
	q.unprotect.tail.len--;
	assert_refused(&q);
	q = request_of(RPC_LEASE);
	q.lease.type = LEASE_LAYOUT;
	assert_refused(&q);
	q.lease.type = LEASE_NONE;
	q.lease.flags = LEASE_IF_FREE; /* without a pin it asks for nothing */
	assert_refused(&q);
	q = request_of(RPC_LEASE);
	q.lease.flags = 2 * LEASE_OR_LAYOUT;
	assert_refused(&q);
	q = request_of(RPC_CONVERT);
	q.convert.state = 0;
	assert_refused(&q);
	q.convert.state = CONVERT_NOT_NOW + 1;
	assert_refused(&q);
	q = request_of(RPC_LOCK);
	q.lock.kind = 0;
	assert_refused(&q);
	q.lock.kind = LOCK_KIND_FLOCK + 1;
	assert_refused(&q);
	q = request_of(RPC_LOCK);
	q.lock.type = LOCK_EXCLUSIVE + 1;
	assert_refused(&q);
	q = request_of(RPC_LOCK);
	q.lock.start = 6;
	q.lock.end = 5;
	assert_refused(&q);
	q.lock.end = LOCK_END_MAX + 1;
	assert_refused(&q);
	q = request_of(RPC_GETLK);
	q.lock.type = LOCK_FREE;
	assert_refused(&q);
	q = request_of(RPC_GETLK);
	q.lock.wait = 1;
	assert_refused(&q);
	q = request_of(RPC_SNAPSHOT);
	q.snapshot.command = SNAPSHOT_POLL; /* takes no directory */
	assert_refused(&q);
	q.snapshot.command = 0;
	assert_refused(&q);
	q = request_of(RPC_WHO);
	q.who.path.len = 0;
	assert_refused(&q);
}

static void symlink__target_out_of_range(void **state)
{
	static char target[SYMLINK_BYTES_MAX + 1];
	struct rpc_request q = request_of(RPC_SYMLINK);

	q.create.target.len = 0;
	assert_refused(&q);
	q.create.target = (struct rpc_str){"a\0b", 3};
	assert_refused(&q);
	memset(target, 't', sizeof(target));
	q.create.target = (struct rpc_str){target, sizeof(target)};
	assert_refused(&q);
	q = request_of(RPC_MKDIR);
	q.create.target = str("none of this");
	assert_refused(&q);
}

static void reply__counts_and_types_out_of_range(void **state)
{
	struct rpc_reply p = reply_of(RPC_GRANT);
	size_t len;

	p.grant.ngrant = GRANT_EXTENTS + 1;
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), -EMSGSIZE);
	p = reply_of(RPC_GRANT);
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	buf[HEADER_BYTES] = GRANT_EXTENTS + 1;
	assert_int_equal(decode_reply(buf, len), -EPROTO);
	p = reply_of(RPC_GRANT);
	p.grant.grant[0].npages = 0;
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_reply(buf, len), -EPROTO);
	p = reply_of(RPC_GETLK);
	p.getlk.type = LOCK_EXCLUSIVE + 1;
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_reply(buf, len), -EPROTO);
	p = reply_of(RPC_GETLK);
	p.getlk.end = LOCK_END_MAX + 1; /* the kernel would turn it into EIO */
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_reply(buf, len), -EPROTO);
	p = reply_of(RPC_LOOKUP);
	p.entry.lease.type = LEASE_EXCLUSIVE + 1;
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_reply(buf, len), -EPROTO);
}

static void tail__filled_in_place_is_not_copied(void **state)
{
	struct rpc_reply p = reply_of(RPC_EXTENTS), out;
	size_t at = rpc_reply_tail_at(RPC_EXTENTS, VERSION), len;
	struct extent e = extent_of(1), got;
	struct wire_in r;
	struct wire_out w;

	wire_out_init(&w, buf + at, sizeof(buf) - at);
	rpc_put_extent(&w, &e);
	p.extents.tail = (struct rpc_tail){buf + at, (uint32_t)wire_out_len(&w)};
	assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, at + RPC_EXTENT_BYTES);
	assert_int_equal(rpc_reply_decode(&out, VERSION, buf, len), 0);
	r = rpc_tail_reader(&out.extents.tail);
	assert_true(rpc_get_extent(&r, &got));
	assert_int_equal(got.page, e.page);
	assert_false(rpc_get_extent(&r, &got));
	assert_false(r.truncated);
}

static void tail_at__is_where_the_tail_lands(void **state)
{
	for_each_op_of(op, VERSION)
	{
		struct rpc_request q = request_of(op);
		struct rpc_reply p = reply_of(op);
		size_t len;

		assert_int_equal(rpc_request_encode(&q, VERSION, buf, sizeof(buf), &len), 0);
		if (rpc_request_tail_at(op, VERSION))
			assert_int_equal(len - rpc_request_tail_at(op, VERSION),
				op == RPC_MAKE ? q.makes.tail.len : SAMPLE_TAIL_BYTES);
		assert_int_equal(rpc_reply_encode(&p, VERSION, buf, sizeof(buf), &len), 0);
		if (rpc_reply_tail_at(op, VERSION))
			assert_int_equal(len - rpc_reply_tail_at(op, VERSION), SAMPLE_TAIL_BYTES);
	}
}

/* ---- versions -------------------------------------------------------------------------------- */

/* A server speaks two versions, and a message of each comes back as it was. */
static void versions__each_message_of_each(void **state)
{
	for (uint32_t version = RMEMFS_WIRE_FIRST; version <= RMEMFS_WIRE_NEXT; version++)
		for_each_op_of(op, version)
		{
			struct rpc_request q = request_of(op), got;
			struct rpc_reply p = reply_of(op), answer;
			size_t len, len_again;

			assert_int_equal(
				rpc_request_encode(&q, version, buf, sizeof(buf), &len), 0);
			assert_int_equal(rpc_request_decode(&got, version, buf, len), 0);
			assert_int_equal(rpc_reply_encode(&p, version, buf, sizeof(buf), &len), 0);
			assert_int_equal(rpc_reply_decode(&answer, version, buf, len), 0);
			assert_int_equal(rpc_reply_encode(&answer, version, again, sizeof(again),
						 &len_again),
				0);
			assert_int_equal(len, len_again);
			assert_memory_equal(buf, again, len);
		}
}

static void versions__an_op_is_unknown_before_its_own(void **state)
{
	struct rpc_request q = request_of(RPC_TRIAL);
	struct rpc_reply p = reply_of(RPC_TRIAL);
	size_t len;

	assert_int_equal(
		rpc_request_encode(&q, RMEMFS_WIRE_VERSION, buf, sizeof(buf), &len), -EPROTO);
	assert_int_equal(
		rpc_reply_encode(&p, RMEMFS_WIRE_VERSION, buf, sizeof(buf), &len), -EPROTO);
	assert_int_equal(rpc_request_encode(&q, RMEMFS_WIRE_NEXT, buf, sizeof(buf), &len), 0);
	assert_int_equal(rpc_request_decode(&q, RMEMFS_WIRE_NEXT, buf, len), 0);
	assert_int_equal(rpc_request_decode(&q, RMEMFS_WIRE_VERSION, buf, len), -EPROTO);
	assert_int_equal(rpc_reply_encode(&p, RMEMFS_WIRE_NEXT, buf, sizeof(buf), &len), 0);
	assert_int_equal(rpc_reply_decode(&p, RMEMFS_WIRE_NEXT, buf, len), 0);
	assert_int_equal(rpc_reply_decode(&p, RMEMFS_WIRE_VERSION, buf, len), -EPROTO);
}

/* Fields before and behind it arrive in their places. */
static void expect_trial(uint32_t version, uint32_t trial, size_t *len)
{
	struct rpc_reply p = reply_of(RPC_CREATE), out;

	memset(&out, 0xff, sizeof(out));
	assert_int_equal(rpc_reply_encode(&p, version, buf, sizeof(buf), len), 0);
	assert_int_equal(rpc_reply_decode(&out, version, buf, *len), 0);
	assert_int_equal(out.entry.trial, trial);
	assert_int_equal(out.entry.nextents, p.entry.nextents);
	assert_int_equal(out.entry.nhead, p.entry.nhead);
	assert_int_equal(out.entry.grant[0].fpage, p.entry.grant[0].fpage);
}

static void versions__a_field_is_absent_before_its_own(void **state)
{
	size_t len, longer;

	expect_trial(RMEMFS_WIRE_VERSION, 0, &len);
	expect_trial(RMEMFS_WIRE_NEXT, reply_of(RPC_CREATE).entry.trial, &longer);
	assert_int_equal(longer, len + sizeof(uint32_t));
	assert_int_equal(rpc_reply_decode(&(struct rpc_reply){0}, RMEMFS_WIRE_VERSION, buf, longer),
		-EPROTO);
}

static void versions__a_tail_is_behind_all_fields(void **state)
{
	struct rpc_reply p = reply_of(RPC_PING), out;
	size_t len;

	assert_int_equal(rpc_reply_tail_at(RPC_PING, RMEMFS_WIRE_NEXT),
		rpc_reply_tail_at(RPC_PING, RMEMFS_WIRE_VERSION) + sizeof(uint32_t));
	assert_int_equal(rpc_reply_encode(&p, RMEMFS_WIRE_VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(len - rpc_reply_tail_at(RPC_PING, RMEMFS_WIRE_VERSION), SAMPLE_TAIL_BYTES);
	assert_int_equal(rpc_reply_decode(&out, RMEMFS_WIRE_VERSION, buf, len), 0);
	assert_int_equal(out.ping.tail.version, RMEMFS_WIRE_VERSION);
	assert_int_equal(rpc_tail_reader(&out.ping.tail).version, RMEMFS_WIRE_VERSION);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions__each_message_of_each),
		cmocka_unit_test(versions__an_op_is_unknown_before_its_own),
		cmocka_unit_test(versions__a_field_is_absent_before_its_own),
		cmocka_unit_test(versions__a_tail_is_behind_all_fields),
		cmocka_unit_test(op_info__unknown_ops_have_no_name),
		cmocka_unit_test(mutates__what_asks_for_leases),
		cmocka_unit_test(request__comes_back_the_same),
		cmocka_unit_test(request__fields_arrive_in_their_places),
		cmocka_unit_test(request__rights_arrive_in_their_places),
		cmocka_unit_test(reply__comes_back_the_same),
		cmocka_unit_test(reply__fields_arrive_in_their_places),
		cmocka_unit_test(replies__bring_what_is_lent),
		cmocka_unit_test(error_reply__carries_its_text),
		cmocka_unit_test(error_reply__long_text_is_cut),
		cmocka_unit_test(reply__slot_and_sequence_follow_the_op),
		cmocka_unit_test(reply__positive_status_is_refused),
		cmocka_unit_test(attach_reply__squash_out_of_range),
		cmocka_unit_test(squash__ids),
		cmocka_unit_test(reply__taken_back_is_no_answer),
		cmocka_unit_test(decode__truncated_anywhere),
		cmocka_unit_test(decode__trailing_bytes),
		cmocka_unit_test(encode__does_not_fit),
		cmocka_unit_test(encode__unknown_op),
		cmocka_unit_test(request__slot_and_sequence_follow_the_op),
		cmocka_unit_test(request__names_out_of_range),
		cmocka_unit_test(request__dots_are_looked_up_only),
		cmocka_unit_test(request__longest_name_passes),
		cmocka_unit_test(attach__out_of_range),
		cmocka_unit_test(auth__out_of_range),
		cmocka_unit_test(makes__have_their_number_and_length),
		cmocka_unit_test(makes__out_of_range),
		cmocka_unit_test(makes__reply_out_of_range),
		cmocka_unit_test(changes__out_of_range),
		cmocka_unit_test(rights__out_of_range),
		cmocka_unit_test(xattr__out_of_range),
		cmocka_unit_test(ranges__out_of_range),
		cmocka_unit_test(symlink__target_out_of_range),
		cmocka_unit_test(reply__counts_and_types_out_of_range),
		cmocka_unit_test(tail__filled_in_place_is_not_copied),
		cmocka_unit_test(tail_at__is_where_the_tail_lands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
