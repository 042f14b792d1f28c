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

enum { HEADER_BYTES = 16 };

static uint8_t buf[RPC_MSG_BYTES];
static uint8_t again[RPC_MSG_BYTES];
static uint8_t tail_bytes[4 * RPC_EXTENT_BYTES];

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

/* Without the padding at its end. */
enum { ATTR_USED = offsetof(struct attr, flags) + sizeof(uint32_t) };

static struct attr attr_of(uint64_t ino)
{
	return (struct attr){
		.ino = ino,
		.size = ino << 40,
		.npages = 7,
		.atime = -1,
		.mtime = INT64_MAX,
		.ctime = INT64_MIN,
		.btime = 4,
		.mode = 0100644,
		.nlink = 2,
		.uid = UINT32_MAX,
		.gid = 1000,
		.rdev = 0x801,
		.generation = 9,
		.flags = ATTR_FLAGS_ALL,
	};
}

static struct extent extent_of(uint64_t fpage)
{
	return (struct extent){.fpage = fpage, .npages = 3, .page = 5, .target = 0, .region = 2};
}

static struct rpc_tail extents_tail(void)
{
	struct wire_out w;

	wire_out_init(&w, tail_bytes, sizeof(tail_bytes));
	for (unsigned i = 0; i < 4; i++)
		rpc_put_extent(&w, &(struct extent){.fpage = i, .npages = 1, .page = i});
	return (struct rpc_tail){tail_bytes, (uint32_t)wire_out_len(&w)};
}

static struct rights rights_of(uint32_t owner)
{
	return (struct rights){true, {owner, owner}, {owner + 1, UINT32_MAX}};
}

/* A request of op with every field set. */
static struct rpc_request request_of(unsigned op)
{
	bool slotted = rpc_op_info(op)->slotted;
	struct rpc_request q = {.op = (uint16_t)op, .slot = slotted ? 3 : RPC_NO_SLOT};

	q.seq = op == RPC_AUTH ? 0 : 77;
	switch ((enum rpc_op)op) {
	case RPC_ATTACH:
		q.attach = (struct rpc_attach){.owner = "0123456789abcde",
			.instance = 5,
			.session = 6,
			.store_id = (const uint8_t *)"fedcba987654321",
			.ended = 4,
			.channel = 1,
			.nchannels = 2,
			.flags = ATTACH_READ_ONLY | ATTACH_EXCLUSIVE,
			.wait_ms = 5000,
			.export_name = str("default"),
			.token = (const uint8_t *)"a token of bytes",
			.client = str("host:/mnt/rmem (pid 311)")};
		break;
	case RPC_AUTH:
		q.auth = (struct rpc_auth){2, extents_tail()};
		break;
	case RPC_REGIONS:
		q.regions.first = 8;
		break;
	case RPC_PING:
		q.ping = (struct rpc_counters){1, 2, 3, 4, 5, 6};
		break;
	case RPC_BYE:
		q.bye = (struct rpc_bye){{1, 2, 3, 4, 5, 6}, true};
		break;
	case RPC_CANCEL:
		q.cancel = (struct rpc_cancel){17, 1ull << 40};
		break;
	case RPC_STATUS:
		q.status.offset = 4096;
		break;
	case RPC_WHO:
		q.who = (struct rpc_who){4096, str("default"), str("/a/file")};
		break;
	case RPC_LOOKUP:
	case RPC_UNLINK:
	case RPC_RMDIR:
		q.name = (struct rpc_name_request){
			1, str("name"), LOOK_LEASE | LOOK_LEASE_DIR, {77, true}};
		break;
	case RPC_GETATTR:
	case RPC_READLINK:
		q.ino = (struct rpc_ino_request){44, LOOK_LEASE};
		break;
	case RPC_READDIR:
		q.readdir = (struct rpc_readdir){1, UINT64_MAX, 8192, true};
		break;
	case RPC_EXTENTS:
		q.extents = (struct rpc_extents){9, 1ull << 40};
		break;
	case RPC_SETATTR:
		q.setattr = (struct rpc_setattr){
			3, SET_MODE | SET_CTIME, 0644, 1, 2, INT64_MAX, -1, 2, 3, rights_of(4)};
		break;
	case RPC_CREATE:
	case RPC_MKNOD:
	case RPC_MKDIR:
	case RPC_SYMLINK:
		q.create = (struct rpc_create){.parent = 1,
			.mode = 0100600,
			.umask = 022,
			.uid = 1,
			.gid = 2,
			.rdev = 3,
			.want_pages = 256,
			.exclusive = true,
			.name = str("n"),
			.target = op == RPC_SYMLINK ? str("../a/target") : (struct rpc_str){0}};
		break;
	case RPC_LINK:
		q.link = (struct rpc_link){4, 1, str("again")};
		break;
	case RPC_RENAME:
		q.rename = (struct rpc_rename){
			1, 2, RENAME_EXCHANGE, str("old"), str("new"), 3, 4, {5, true}, {6, false}};
		break;
	case RPC_COMMIT:
		q.commit = (struct rpc_commit){5, COMMIT_SIZE | COMMIT_MTIME, 4097, -5, -6, -7,
			0100640, 8, 9, 12, 77, LEASE_SHARED, extents_tail()};
		break;
	case RPC_GRANT:
		q.grant = (struct rpc_grant){256, true};
		break;
	case RPC_RETURN:
		q.ret = (struct rpc_return){RETURN_GRANTS, extents_tail(), 5};
		break;
	case RPC_SNAPSHOT:
		q.snapshot = (struct rpc_snapshot){SNAPSHOT_START, str("default"), str("/srv/s")};
		break;
	case RPC_GETXATTR:
		q.getxattr = (struct rpc_getxattr){3, 12000, 7, str("user.a/b")};
		break;
	case RPC_LISTXATTR:
		q.listxattr = (struct rpc_listxattr){3, UINT64_MAX};
		break;
	case RPC_FROZEN:
		q.frozen.snapshot = 1ull << 50;
		break;
	case RPC_UNPROTECT:
		q.unprotect.tail = extents_tail();
		break;
	case RPC_TMPFILE:
		q.create = (struct rpc_create){.parent = 1,
			.mode = 0100600,
			.umask = 077,
			.uid = 1,
			.gid = 2,
			.want_pages = 256};
		break;
	case RPC_SETXATTR:
		q.setxattr = (struct rpc_setxattr){3, SETXATTR_CREATE, 0, sizeof(tail_bytes),
			rights_of(1000), str("user.name"), extents_tail()};
		break;
	case RPC_REMOVEXATTR:
		q.removexattr = (struct rpc_removexattr){3, str("trusted.x"), rights_of(1)};
		break;
	case RPC_STAGE:
		q.stage = (struct rpc_stage){9, 12000, extents_tail()};
		break;
	case RPC_FALLOCATE:
		q.fallocate = (struct rpc_fallocate){3, 1, 4096, INT64_MAX - 4096};
		break;
	case RPC_COPY:
		q.copy = (struct rpc_copy){3, 1ull << 33, 4, 5, 1ull << 32};
		break;
	case RPC_LEASE:
		q.lease = (struct rpc_lease){44, LEASE_EXCLUSIVE, LEASE_PIN};
		break;
	case RPC_LOCK:
		q.lock = (struct rpc_lock){
			44, 1ull << 60, 7, 5, LOCK_END_MAX, 4711, LOCK_KIND_FLOCK, LOCK_FREE};
		break;
	case RPC_GETLK:
		q.lock = (struct rpc_lock){
			44, 1ull << 60, 0, 5, 5, 4711, LOCK_KIND_POSIX, LOCK_SHARED};
		break;
	case RPC_QUOTA:
		q.quota = (struct rpc_quota){QUOTA_GROUP, UINT32_MAX, 4096, true};
		break;
	case RPC_STATFS:
	case RPC_RELOAD:
	case RPC_OP_MAX:
		break;
	}
	return q;
}

static void fill_entry(struct rpc_entry_reply *entry)
{
	*entry = (struct rpc_entry_reply){.attr = attr_of(3),
		.parent = attr_of(1),
		.lease = {LEASE_EXCLUSIVE, 10000, UINT64_MAX},
		.created = true,
		.nextents = 9,
		.nhead = INLINE_EXTENTS,
		.ngrant = GRANT_EXTENTS};
	for (unsigned i = 0; i < INLINE_EXTENTS; i++)
		entry->head[i] = extent_of(i);
	for (unsigned i = 0; i < GRANT_EXTENTS; i++)
		entry->grant[i] = extent_of(100 + i);
}

static struct rpc_reply reply_of(unsigned op)
{
	bool slotted = rpc_op_info(op)->slotted;
	struct rpc_reply p = {.op = (uint16_t)op, .slot = slotted ? 3 : RPC_NO_SLOT};

	p.seq = op == RPC_AUTH ? 0 : 77;
	switch ((enum rpc_op)op) {
	case RPC_ATTACH:
		p.attach = (struct rpc_attach_reply){.session = 1,
			.token = "a token of bytes",
			.store_id = "sixteen bytes..",
			.incarnation = 2,
			.resumed = true,
			.nslots = 16,
			.nreserved = 2,
			.lease_ms = 10000,
			.lease_limit = 65536,
			.peer_timeout_ms = 5000,
			.server_time = -3,
			.nregions = 4,
			.npages = 5,
			.quotas = true,
			.snapshot = 6,
			.squash = {SQUASH_ROOT, 65533, 65532},
			.root = attr_of(1)};
		break;
	case RPC_AUTH:
		p.auth = (struct rpc_auth_reply){extents_tail()};
		break;
	case RPC_REGIONS:
		p.regions = (struct rpc_regions_reply){1, 9, extents_tail()};
		break;
	case RPC_PING:
		p.ping = (struct rpc_ping_reply){INT64_MAX, 7, true, 6, extents_tail()};
		break;
	case RPC_STATUS:
	case RPC_WHO:
		p.status_text = (struct rpc_status_reply){99, extents_tail()};
		break;
	case RPC_LOOKUP:
	case RPC_CREATE:
	case RPC_TMPFILE:
	case RPC_MKNOD:
	case RPC_MKDIR:
	case RPC_SYMLINK:
	case RPC_LINK:
	case RPC_LEASE:
		fill_entry(&p.entry);
		break;
	case RPC_GETATTR:
	case RPC_SETATTR:
	case RPC_COMMIT:
	case RPC_SETXATTR:
	case RPC_REMOVEXATTR:
		p.attr = (struct rpc_attr_reply){
			attr_of(8), {LEASE_SHARED, 9, 10}, 1, {extent_of(0)}};
		break;
	case RPC_UNLINK:
	case RPC_RMDIR:
		p.remove = (struct rpc_remove_reply){attr_of(8), attr_of(1), 77};
		break;
	case RPC_RENAME:
		p.rename =
			(struct rpc_rename_reply){attr_of(1), attr_of(2), attr_of(3), attr_of(4)};
		break;
	case RPC_READLINK:
		p.readlink.target = str("/some/where");
		break;
	case RPC_READDIR:
		p.readdir = (struct rpc_readdir_reply){1, true, extents_tail()};
		break;
	case RPC_EXTENTS:
		p.extents = (struct rpc_extents_reply){true, extents_tail()};
		break;
	case RPC_STATFS:
		p.statfs = (struct rpc_statfs_reply){1, 2, 3, 4};
		break;
	case RPC_GRANT:
		p.grant = (struct rpc_grant_reply){2, {extent_of(1), extent_of(2)}, 9};
		break;
	case RPC_SNAPSHOT:
		p.snapshot = (struct rpc_snapshot_reply){SNAPSHOT_FAILED, 1, 2, 3, str("why")};
		break;
	case RPC_GETXATTR:
		p.getxattr = (struct rpc_getxattr_reply){65536, 5, extents_tail()};
		break;
	case RPC_LISTXATTR:
		p.listxattr = (struct rpc_listxattr_reply){true, extents_tail()};
		break;
	case RPC_FALLOCATE:
	case RPC_COPY:
		p.progress = (struct rpc_progress_reply){attr_of(4), 1ull << 32};
		break;
	case RPC_QUOTA:
		p.quota.npages = QUOTA_UNLIMITED;
		break;
	case RPC_GETLK:
		p.getlk = (struct rpc_getlk_reply){LOCK_EXCLUSIVE, 4711, 5, LOCK_END_MAX};
		break;
	case RPC_BYE:
	case RPC_CANCEL:
	case RPC_RELOAD:
	case RPC_RETURN:
	case RPC_STAGE:
	case RPC_FROZEN:
	case RPC_UNPROTECT:
	case RPC_LOCK:
	case RPC_OP_MAX:
		break;
	}
	return p;
}

static int decode_request(const void *msg, size_t len)
{
	struct rpc_request q;

	return rpc_request_decode(&q, msg, len);
}

static int decode_reply(const void *msg, size_t len)
{
	struct rpc_reply p;

	return rpc_reply_decode(&p, msg, len);
}

#define for_each_op(op)                              \
	for (unsigned op = 0; op < RPC_OP_MAX; op++) \
		if (rpc_op_info(op)->name)

static void op_info__unknown_ops_have_no_name(void **state)
{
	assert_null(rpc_op_info(0)->name);
	assert_null(rpc_op_info(RPC_AUTH + 1)->name);
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
	for_each_op(op)
	{
		struct rpc_request in = request_of(op), out;
		size_t len, len_again;

		assert_int_equal(rpc_request_encode(&in, buf, sizeof(buf), &len), 0);
		assert_int_equal(rpc_request_decode(&out, buf, len), 0);
		assert_int_equal(rpc_request_encode(&out, again, sizeof(again), &len_again), 0);
		assert_int_equal(len, len_again);
		assert_memory_equal(buf, again, len);
	}
}

static void request__fields_arrive_in_their_places(void **state)
{
	struct rpc_request in = request_of(RPC_RENAME), out;
	size_t len;

	assert_int_equal(rpc_request_encode(&in, buf, sizeof(buf), &len), 0);
	assert_int_equal(rpc_request_decode(&out, buf, len), 0);
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

		assert_int_equal(rpc_request_encode(&in, buf, sizeof(buf), &len), 0);
		assert_int_equal(rpc_request_decode(&out, buf, len), 0);
		assert_true(rights->bound);
		assert_int_equal(rights->owners.first, rights->owners.last);
		assert_int_equal(rights->groups.first, rights->owners.last + 1);
		assert_int_equal(rights->groups.last, UINT32_MAX);
	}
}

static void reply__comes_back_the_same(void **state)
{
	for_each_op(op)
	{
		struct rpc_reply in = reply_of(op), out;
		size_t len, len_again;

		assert_int_equal(rpc_reply_encode(&in, buf, sizeof(buf), &len), 0);
		assert_int_equal(rpc_reply_decode(&out, buf, len), 0);
		assert_int_equal(rpc_reply_encode(&out, again, sizeof(again), &len_again), 0);
		assert_int_equal(len, len_again);
		assert_memory_equal(buf, again, len);
	}
}

static void reply__fields_arrive_in_their_places(void **state)
{
	struct rpc_reply in = reply_of(RPC_CREATE), out;
	size_t len;

	assert_int_equal(rpc_reply_encode(&in, buf, sizeof(buf), &len), 0);
	assert_int_equal(rpc_reply_decode(&out, buf, len), 0);
	assert_memory_equal(&out.entry.attr, &in.entry.attr, ATTR_USED);
	assert_memory_equal(&out.entry.parent, &in.entry.parent, ATTR_USED);
	assert_int_equal(out.entry.lease.type, LEASE_EXCLUSIVE);
	assert_int_equal(out.entry.lease.number, UINT64_MAX);
	assert_true(out.entry.created);
	assert_int_equal(out.entry.grant[7].fpage, 107);
	assert_int_equal(out.entry.head[3].region, 2);
}

static void error_reply__carries_its_text(void **state)
{
	struct rpc_reply in = {.op = RPC_CREATE, .slot = 1, .seq = 2, .status = -ENOSPC};
	struct rpc_reply out;
	size_t len;

	in.text = str("no pages left");
	assert_int_equal(rpc_reply_encode(&in, buf, sizeof(buf), &len), 0);
	assert_int_equal(rpc_reply_decode(&out, buf, len), 0);
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
	assert_int_equal(rpc_reply_encode(&in, buf, sizeof(buf), &len), 0);
	assert_int_equal(rpc_reply_decode(&out, buf, len), 0);
	assert_int_equal(out.text.len, RPC_TEXT_MAX);
}

static void reply__slot_and_sequence_follow_the_op(void **state)
{
	struct rpc_reply p[] = {reply_of(RPC_PING), reply_of(RPC_AUTH)};
	size_t len;

	p[0].slot = 0, p[1].seq = 1;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(rpc_reply_encode(&p[i], buf, sizeof(buf), &len), 0);
		assert_int_equal(decode_reply(buf, len), -EPROTO);
	}
}

static void reply__positive_status_is_refused(void **state)
{
	struct rpc_reply p = {.op = RPC_PING, .slot = RPC_NO_SLOT, .status = 5};
	size_t len;

	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), -EPROTO);
	p.status = 0;
	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
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
		assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
		assert_int_equal(decode_reply(buf, len), -EPROTO);
	}
	p.attach.squash = (struct squash){SQUASH_NONE, 0, 0};
	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
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

	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), -EPROTO);
	p.status = -EIO;
	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
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
	for_each_op(op)
	{
		struct rpc_request q = request_of(op);
		struct rpc_reply p = reply_of(op);
		size_t len;

		assert_int_equal(rpc_request_encode(&q, buf, sizeof(buf), &len), 0);
		for (size_t cut = 0; cut < fixed_part(rpc_request_tail_at(op), len); cut++)
			assert_int_equal(decode_request(buf, cut), -EPROTO);
		assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
		for (size_t cut = 0; cut < fixed_part(rpc_reply_tail_at(op), len); cut++)
			assert_int_equal(decode_reply(buf, cut), -EPROTO);
	}
}

static void decode__trailing_bytes(void **state)
{
	for_each_op(op)
	{
		struct rpc_request q = request_of(op);
		struct rpc_reply p = reply_of(op);
		size_t len;

		assert_int_equal(rpc_request_encode(&q, buf, sizeof(buf), &len), 0);
		if (op != RPC_STAGE && op != RPC_AUTH) /* their tails are any bytes */
			assert_int_equal(decode_request(buf, len + 1), -EPROTO);
		if (rpc_reply_tail_at(op))
			continue;
		assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
		assert_int_equal(decode_reply(buf, len + 1), -EPROTO);
	}
}

static void encode__does_not_fit(void **state)
{
	for_each_op(op)
	{
		struct rpc_request q = request_of(op);
		struct rpc_reply p = reply_of(op);
		size_t len, ignored;

		assert_int_equal(rpc_request_encode(&q, buf, sizeof(buf), &len), 0);
		assert_int_equal(rpc_request_encode(&q, buf, len - 1, &ignored), -EMSGSIZE);
		assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
		assert_int_equal(rpc_reply_encode(&p, buf, len - 1, &ignored), -EMSGSIZE);
	}
}

static void encode__unknown_op(void **state)
{
	size_t len;

	assert_int_equal(rpc_request_encode(
				 &(struct rpc_request){.op = RPC_AUTH + 1}, buf, sizeof(buf), &len),
		-EPROTO);
	assert_int_equal(
		rpc_reply_encode(&(struct rpc_reply){.op = RPC_AUTH + 1}, buf, sizeof(buf), &len),
		-EPROTO);
}

static void assert_refused(const struct rpc_request *q)
{
	size_t len;

	assert_int_equal(rpc_request_encode(q, buf, sizeof(buf), &len), 0);
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
	assert_int_equal(rpc_request_encode(&q, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_request(buf, len), 0);
	q.name.name = str(".");
	assert_int_equal(rpc_request_encode(&q, buf, sizeof(buf), &len), 0);
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
	assert_int_equal(rpc_request_encode(&q, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_request(buf, len), 0);
	q.name.name = str("...");
	assert_int_equal(rpc_request_encode(&q, buf, sizeof(buf), &len), 0);
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
	assert_int_equal(rpc_request_encode(&q, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_request(buf, len), 0);
	p.auth.tail = (struct rpc_tail){flight, RPC_AUTH_FLIGHT_MAX + 1};
	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
	assert_int_equal(rpc_reply_decode(&p, buf, len), -EPROTO);
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

		assert_int_equal(rpc_request_encode(&q, buf, sizeof(buf), &len), 0);
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
	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), -EMSGSIZE);
	p = reply_of(RPC_GRANT);
	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
	buf[HEADER_BYTES] = GRANT_EXTENTS + 1;
	assert_int_equal(decode_reply(buf, len), -EPROTO);
	p = reply_of(RPC_GRANT);
	p.grant.grant[0].npages = 0;
	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_reply(buf, len), -EPROTO);
	p = reply_of(RPC_GETLK);
	p.getlk.type = LOCK_EXCLUSIVE + 1;
	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_reply(buf, len), -EPROTO);
	p = reply_of(RPC_GETLK);
	p.getlk.end = LOCK_END_MAX + 1; /* the kernel would turn it into EIO */
	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_reply(buf, len), -EPROTO);
	p = reply_of(RPC_LOOKUP);
	p.entry.lease.type = LEASE_EXCLUSIVE + 1;
	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_reply(buf, len), -EPROTO);
}

static void tail__filled_in_place_is_not_copied(void **state)
{
	struct rpc_reply p = reply_of(RPC_EXTENTS), out;
	size_t at = rpc_reply_tail_at(RPC_EXTENTS), len;
	struct extent e = extent_of(1), got;
	struct wire_in r;
	struct wire_out w;

	wire_out_init(&w, buf + at, sizeof(buf) - at);
	rpc_put_extent(&w, &e);
	p.extents.tail = (struct rpc_tail){buf + at, (uint32_t)wire_out_len(&w)};
	assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, at + RPC_EXTENT_BYTES);
	assert_int_equal(rpc_reply_decode(&out, buf, len), 0);
	r = rpc_tail_reader(&out.extents.tail);
	assert_true(rpc_get_extent(&r, &got));
	assert_int_equal(got.page, e.page);
	assert_false(rpc_get_extent(&r, &got));
	assert_false(r.truncated);
}

static void tail_at__is_where_the_tail_lands(void **state)
{
	for_each_op(op)
	{
		struct rpc_request q = request_of(op);
		struct rpc_reply p = reply_of(op);
		size_t len;

		assert_int_equal(rpc_request_encode(&q, buf, sizeof(buf), &len), 0);
		if (rpc_request_tail_at(op))
			assert_int_equal(len - rpc_request_tail_at(op), sizeof(tail_bytes));
		assert_int_equal(rpc_reply_encode(&p, buf, sizeof(buf), &len), 0);
		if (rpc_reply_tail_at(op))
			assert_int_equal(len - rpc_reply_tail_at(op), sizeof(tail_bytes));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(op_info__unknown_ops_have_no_name),
		cmocka_unit_test(mutates__what_asks_for_leases),
		cmocka_unit_test(request__comes_back_the_same),
		cmocka_unit_test(request__fields_arrive_in_their_places),
		cmocka_unit_test(request__rights_arrive_in_their_places),
		cmocka_unit_test(reply__comes_back_the_same),
		cmocka_unit_test(reply__fields_arrive_in_their_places),
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
