/* driver_mutations.c - every mutating RPC is executed exactly once, whatever is lost.
 *
 * The tests compare the server's state by a snapshot: the replies of reading RPCs, byte by byte. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "common/base/util.h"
#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"

enum { SLOT = 1, OTHER_SLOT = 2 };

static struct test_server server;
static struct rpc_client client;

/* ---- requests -------------------------------------------------------------------------------- */

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

static int call(struct rpc_request req, struct rpc_reply *rep)
{
	return client_call(&client, OTHER_SLOT, &req, rep);
}

static struct rpc_request create_request(unsigned op, const char *name, uint32_t type)
{
	return (struct rpc_request){.op = (uint16_t)op,
		.create = {.parent = ROOT_INO,
			.mode = type | 0644,
			.exclusive = true,
			.name = str(name),
			.target = op == RPC_SYMLINK ? str("target") : (struct rpc_str){0}}};
}

static struct rpc_request name_request(unsigned op, const char *name)
{
	return (struct rpc_request){.op = (uint16_t)op, .name = {ROOT_INO, str(name)}};
}

static uint64_t make_file(const char *name)
{
	struct rpc_reply rep;

	assert_int_equal(call(create_request(RPC_CREATE, name, S_IFREG), &rep), 0);
	return rep.entry.attr.ino;
}

static struct extent grant(uint32_t npages)
{
	struct rpc_reply rep;
	struct rpc_request req = {.op = RPC_GRANT, .grant = {npages, true}};

	assert_int_equal(call(req, &rep), 0);
	assert_int_equal(rep.grant.ngrant, 1);
	return rep.grant.grant[0];
}

static struct rpc_tail tail_of(uint8_t *buf, const struct extent *e)
{
	struct wire_out w;

	wire_out_init(&w, buf, RPC_EXTENT_BYTES);
	rpc_put_extent(&w, e);
	return (struct rpc_tail){buf, RPC_EXTENT_BYTES};
}

/* ---- attempts -------------------------------------------------------------------------------- */

static uint8_t tail_buf[RPC_EXTENT_BYTES];

static struct rpc_request try_setattr(void)
{
	return (struct rpc_request){.op = RPC_SETATTR,
		.setattr = {.ino = make_file("setattr"), .valid = SET_MODE, .mode = 0600}};
}

static struct rpc_request try_create(void)
{
	return create_request(RPC_CREATE, "create", S_IFREG);
}

static struct rpc_request try_mknod(void)
{
	return create_request(RPC_MKNOD, "mknod", S_IFIFO);
}

static struct rpc_request try_mkdir(void)
{
	return create_request(RPC_MKDIR, "mkdir", S_IFDIR);
}

static struct rpc_request try_symlink(void)
{
	return create_request(RPC_SYMLINK, "symlink", S_IFLNK);
}

static struct rpc_request try_link(void)
{
	return (struct rpc_request){
		.op = RPC_LINK, .link = {make_file("linked"), ROOT_INO, str("link")}};
}

static struct rpc_request try_unlink(void)
{
	make_file("unlink");
	return name_request(RPC_UNLINK, "unlink");
}

static struct rpc_request try_rmdir(void)
{
	struct rpc_reply rep;

	assert_int_equal(call(create_request(RPC_MKDIR, "rmdir", S_IFDIR), &rep), 0);
	return name_request(RPC_RMDIR, "rmdir");
}

static struct rpc_request try_rename(void)
{
	make_file("from");
	make_file("to");
	return (struct rpc_request){.op = RPC_RENAME,
		.rename = {ROOT_INO, ROOT_INO, RENAME_EXCHANGE, str("from"), str("to")}};
}

static struct rpc_request try_commit(void)
{
	struct rpc_request req = {.op = RPC_COMMIT,
		.commit = {.ino = make_file("commit"), .flags = COMMIT_SIZE, .size = 8192}};
	struct extent e = grant(2);

	req.commit.tail = tail_of(tail_buf, &e);
	return req;
}

/* The first of the inode numbers that come with a file. */
static uint64_t lend(const char *name)
{
	struct rpc_request req = create_request(RPC_CREATE, name, S_IFREG);
	struct rpc_reply rep;

	req.create.numbers = NUMBERS_ANEW;
	assert_int_equal(call(req, &rep), 0);
	assert_int_equal(rep.entry.lent.n, NUMBERS_LENT);
	return rep.entry.lent.first;
}

/* n files; every fourth has the name of the one before it. */
enum { TAKEN_EACH = 4 };

static struct rpc_request make_request(uint64_t first, unsigned n)
{
	static uint8_t tail[RPC_MSG_BYTES];
	struct wire_out w;
	char name[16];

	wire_out_init(&w, tail, sizeof(tail));
	for (unsigned i = 0; i < n; i++) {
		struct rpc_making m = {.commit.ino = first + i,
			.make = {.parent = ROOT_INO, .time = (int64_t)i, .mode = S_IFREG | 0644}};

		snprintf(name, sizeof(name), "made %u",
			i % TAKEN_EACH == TAKEN_EACH - 1 ? i - 1 : i);
		m.make.name = str(name);
		assert_true(rpc_put_making(&w, &m));
	}
	return (struct rpc_request){
		.op = RPC_MAKE, .makes = {NUMBERS_MORE, {tail, (uint32_t)wire_out_len(&w), 0}}};
}

static struct rpc_request try_make(void)
{
	return make_request(lend("lends"), MAKES_MAX);
}

/* A directory that is made, gets another mode, owner and times, and loses a file. */
static struct rpc_request try_names(void)
{
	static uint8_t tail[512];
	uint64_t ino = lend("lends names"), gone = make_file("gone");
	const struct rpc_name_change changes[] = {
		{ROOT_INO, ino, 5, .name = str("folder"), .kind = NAME_MKDIR, .mode = 0777},
		{ROOT_INO, gone, 6, .name = str("gone"), .kind = NAME_REMOVE},
		{.ino = ino,
			.time = 7,
			.kind = NAME_SET,
			.valid = NAME_SET_ALL,
			.mode = 02750,
			.uid = 8,
			.gid = 9,
			.atime = 10,
			.mtime = 11},
	};
	struct wire_out w;

	wire_out_init(&w, tail, sizeof(tail));
	for (unsigned i = 0; i < ARRAY_SIZE(changes); i++)
		assert_true(rpc_put_name_change(&w, &changes[i]));
	return (struct rpc_request){
		.op = RPC_NAMES, .names = {{tail, (uint32_t)wire_out_len(&w), 0}, NUMBERS_MORE}};
}

static struct rpc_request try_grant(void)
{
	return (struct rpc_request){.op = RPC_GRANT, .grant = {16, false}};
}

static struct rpc_request try_return_grants(void)
{
	struct extent e = grant(8);

	return (struct rpc_request){
		.op = RPC_RETURN, .ret = {RETURN_GRANTS, tail_of(tail_buf, &e)}};
}

static struct rpc_request try_return_inodes(void)
{
	uint64_t le = htole64(make_file("kept"));
	struct rpc_reply rep;

	assert_int_equal(call(name_request(RPC_UNLINK, "kept"), &rep), 0);
	memcpy(tail_buf, &le, sizeof(le));
	return (struct rpc_request){
		.op = RPC_RETURN, .ret = {RETURN_INODES, {tail_buf, sizeof(le)}}};
}

static struct rpc_request setxattr_request(uint64_t ino, uint32_t staged)
{
	static const char value[] = "a value in two parts";

	return (struct rpc_request){.op = RPC_SETXATTR,
		.setxattr = {.ino = ino,
			.stage = staged ? 1 : 0,
			.total = sizeof(value),
			.name = str("user.name"),
			.tail = {(const uint8_t *)value + staged,
				(uint32_t)sizeof(value) - staged}}};
}

static struct rpc_request try_setxattr(void)
{
	return setxattr_request(make_file("setxattr"), 0);
}

static struct rpc_request try_stage(void)
{
	return (struct rpc_request){.op = RPC_STAGE, .stage = {2, 0, {tail_buf, 4}}};
}

/* A second execution would not find its stage any more. */
static struct rpc_request try_setxattr_staged(void)
{
	struct rpc_reply rep;

	assert_int_equal(call((struct rpc_request){.op = RPC_STAGE,
				      .stage = {1, 0, {(const uint8_t *)"a value ", 8}}},
				 &rep),
		0);
	return setxattr_request(make_file("setxattr staged"), 8);
}

static struct rpc_request try_removexattr(void)
{
	uint64_t ino = make_file("removexattr");
	struct rpc_reply rep;

	assert_int_equal(call(setxattr_request(ino, 0), &rep), 0);
	return (struct rpc_request){.op = RPC_REMOVEXATTR, .removexattr = {ino, str("user.name")}};
}

static struct rpc_request try_refused(void)
{
	make_file("there");
	return create_request(RPC_MKDIR, "there", S_IFDIR);
}

/* Each function prepares the state for its request in another slot. */
static const struct attempt {
	const char *name;
	struct rpc_request (*request)(void);
	int status;
} attempts[] = {
	{"setattr", try_setattr},
	{"create", try_create},
	{"mknod", try_mknod},
	{"mkdir", try_mkdir},
	{"symlink", try_symlink},
	{"link", try_link},
	{"unlink", try_unlink},
	{"rmdir", try_rmdir},
	{"rename", try_rename},
	{"commit", try_commit},
	{"make", try_make},
	{"names", try_names},
	{"grant", try_grant},
	{"return grants", try_return_grants},
	{"return inodes", try_return_inodes},
	{"setxattr", try_setxattr},
	{"stage", try_stage},
	{"setxattr of a staged value", try_setxattr_staged},
	{"removexattr", try_removexattr},
	{"a refused mkdir", try_refused, -EEXIST},
};

/* ---- the server's state ---------------------------------------------------------------------- */

struct snapshot {
	uint8_t bytes[4 * RPC_MSG_BYTES];
	size_t len;
};

/* Skips the header, since its sequence number differs. */
static void add_reply(struct snapshot *s, struct rpc_request req)
{
	enum { HEADER_BYTES = 16 };
	struct rpc_reply rep;
	size_t len;

	assert_int_equal(call(req, &rep), 0);
	len = client.reply_len - HEADER_BYTES;
	assert_true(s->len + len <= sizeof(s->bytes));
	memcpy(s->bytes + s->len, client.reply + HEADER_BYTES, len);
	s->len += len;
}

static void take_snapshot(struct snapshot *s)
{
	s->len = 0;
	add_reply(s, (struct rpc_request){.op = RPC_STATFS});
	add_reply(s, (struct rpc_request){.op = RPC_GETATTR, .ino.ino = ROOT_INO});
	add_reply(s, (struct rpc_request){.op = RPC_READDIR,
			     .readdir = {.ino = ROOT_INO, .bytes = RPC_MSG_BYTES, .plus = true}});
}

static void assert_same(const struct snapshot *a, const struct snapshot *b)
{
	assert_int_equal(a->len, b->len);
	assert_memory_equal(a->bytes, b->bytes, a->len);
}

/* ---- losses ---------------------------------------------------------------------------------- */

static void restart(void)
{
	server_kill(&server);
	client_drop(&client);
	server_start(&server);
	client_resume(&client);
	assert_true(client.attached.resumed);
}

static void reconnect(void)
{
	client_drop(&client);
	client_resume(&client);
	assert_true(client.attached.resumed);
}

struct reply_bytes {
	uint8_t bytes[RPC_MSG_BYTES];
	size_t len;
};

static void keep_reply(struct reply_bytes *kept, int status)
{
	struct rpc_reply rep;

	client_receive(&client, &rep);
	assert_int_equal(rep.status, status);
	memcpy(kept->bytes, client.reply, client.reply_len);
	kept->len = client.reply_len;
}

/* Sends the request again: the server answers with the same bytes, and its state does not
 * change. */
static void assert_answered_from_store(
	const struct rpc_request *req, const struct reply_bytes *first, int status)
{
	static struct snapshot before, after;
	struct reply_bytes again;

	take_snapshot(&before);
	client_send(&client, req);
	keep_reply(&again, status);
	assert_int_equal(again.len, first->len);
	assert_memory_equal(again.bytes, first->bytes, first->len);
	take_snapshot(&after);
	assert_same(&before, &after);
}

static void mutation__is_answered_from_the_store_after_a_kill(void **state)
{
	for (unsigned i = 0; i < ARRAY_SIZE(attempts); i++) {
		struct rpc_request req = attempts[i].request();
		static struct snapshot before, after;
		struct reply_bytes first;

		client_number(&client, SLOT, &req);
		client_send(&client, &req);
		keep_reply(&first, attempts[i].status);
		take_snapshot(&before);
		restart();
		take_snapshot(&after);
		assert_same(&before, &after);
		assert_answered_from_store(&req, &first, attempts[i].status);
	}
}

static void mutation__is_executed_once_when_the_reply_is_dropped(void **state)
{
	for (unsigned i = 0; i < ARRAY_SIZE(attempts); i++) {
		struct rpc_request req = attempts[i].request();
		struct reply_bytes dropped;

		client_number(&client, SLOT, &req);
		client_send(&client, &req);
		keep_reply(&dropped, attempts[i].status);
		reconnect();
		assert_answered_from_store(&req, &dropped, attempts[i].status);
	}
}

static void mutation__is_executed_once_when_killed_before_the_reply(void **state)
{
	for (unsigned i = 0; i < ARRAY_SIZE(attempts); i++) {
		struct rpc_request req = attempts[i].request();
		struct reply_bytes first;

		client_number(&client, SLOT, &req);
		client_send(&client, &req);
		restart();
		client_send(&client, &req);
		keep_reply(&first, attempts[i].status);
		assert_answered_from_store(&req, &first, attempts[i].status);
	}
}

static uint64_t count_inodes(void)
{
	struct rpc_reply rep;

	assert_int_equal(call((struct rpc_request){.op = RPC_STATFS}, &rep), 0);
	return rep.statfs.inodes;
}

/* Whether or not the server had executed it before the kill, there is one inode more, with one
 * link. */
static void create__leaves_one_inode_when_killed_before_the_reply(void **state)
{
	struct rpc_request req = create_request(RPC_CREATE, "once", S_IFREG);
	uint64_t before = count_inodes();
	struct reply_bytes first;
	struct rpc_reply rep;

	client_number(&client, SLOT, &req);
	client_send(&client, &req);
	restart();
	client_send(&client, &req);
	keep_reply(&first, 0);
	assert_int_equal(count_inodes(), before + 1);
	assert_int_equal(call(name_request(RPC_LOOKUP, "once"), &rep), 0);
	assert_int_equal(rep.entry.attr.nlink, 1);
}

/* Each file is there or is not as its status says, and no other one. */
static void makes__are_told_one_by_one_when_killed_before_the_reply(void **state)
{
	uint64_t first = lend("lends"), before = count_inodes();
	struct rpc_request req = make_request(first, MAKES_MAX);
	struct reply_bytes bytes;
	struct rpc_reply rep;
	char name[16];

	client_number(&client, SLOT, &req);
	client_send(&client, &req);
	restart();
	client_send(&client, &req);
	keep_reply(&bytes, 0);
	assert_int_equal(rpc_reply_decode(&rep, RMEMFS_WIRE_VERSION, bytes.bytes, bytes.len), 0);
	assert_int_equal(rep.makes.n, MAKES_MAX);
	for (unsigned i = 0; i < MAKES_MAX; i++)
		assert_int_equal(
			rep.makes.status[i], i % TAKEN_EACH == TAKEN_EACH - 1 ? -EEXIST : 0);
	assert_int_equal(count_inodes(), before + MAKES_MAX - MAKES_MAX / TAKEN_EACH);
	for (unsigned i = 0; i < MAKES_MAX; i += TAKEN_EACH) {
		snprintf(name, sizeof(name), "made %u", i);
		assert_int_equal(call(name_request(RPC_LOOKUP, name), &rep), 0);
		assert_int_equal(rep.entry.attr.ino, first + i);
	}
}

/* All changes of a message have taken effect, once. */
static void names__are_changed_once_when_killed_before_the_reply(void **state)
{
	struct rpc_request req = try_names();
	uint64_t before = count_inodes();
	struct reply_bytes bytes;
	struct rpc_reply rep;

	client_number(&client, SLOT, &req);
	client_send(&client, &req);
	restart();
	client_send(&client, &req);
	keep_reply(&bytes, 0);
	assert_int_equal(rpc_reply_decode(&rep, RMEMFS_WIRE_VERSION, bytes.bytes, bytes.len), 0);
	assert_int_equal(rep.names.done, 3);
	assert_int_equal(rep.names.refused, 0);
	assert_int_equal(count_inodes(), before);
	assert_int_equal(call(name_request(RPC_LOOKUP, "gone"), &rep), -ENOENT);
	assert_int_equal(call(name_request(RPC_LOOKUP, "folder"), &rep), 0);
	assert_int_equal(rep.entry.attr.mode, S_IFDIR | 02750);
	assert_int_equal(rep.entry.attr.uid, 8);
	assert_int_equal(rep.entry.attr.gid, 9);
	assert_int_equal(rep.entry.attr.atime, 10);
	assert_int_equal(rep.entry.attr.mtime, 11);
	assert_int_equal(rep.entry.attr.ctime, 7);
}

/* The channel ends, and none of the files is made. */
static void assert_malformed(struct rpc_request req, uint64_t inodes)
{
	client_number(&client, SLOT, &req);
	client_send(&client, &req);
	client_wait_closed(&client);
	client.seq[SLOT]--;
	reconnect();
	assert_int_equal(count_inodes(), inodes);
}

static void makes__that_are_malformed_make_nothing(void **state)
{
	uint64_t first = lend("lends"), inodes = count_inodes();
	struct rpc_request req = make_request(first, MAKES_MAX + 1);
	struct rpc_reply rep;

	assert_malformed(req, inodes);
	req = make_request(first, MAKES_MAX);
	req.makes.tail.len = 0;
	assert_malformed(req, inodes);
	req = make_request(first, MAKES_MAX);
	req.makes.tail.len--;
	assert_malformed(req, inodes);
	req = make_request(first, MAKES_MAX);
	req.makes.numbers = UINT8_MAX;
	assert_malformed(req, inodes);
	req = make_request(first, 1);
	assert_int_equal(client_call(&client, SLOT, &req, &rep), 0);
	assert_int_equal(count_inodes(), inodes + 1);
}

static int set_up(void **state)
{
	server_init(&server, driver_kind);
	client_init(&client, &server, "mutations", 1);
	client_begin(&client);
	return 0;
}

static int tear_down(void **state)
{
	client_fini(&client);
	server_fini(&server);
	return 0;
}

int driver_run_mutations(void)
{
#define MUTATION_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		MUTATION_TEST(mutation__is_answered_from_the_store_after_a_kill),
		MUTATION_TEST(mutation__is_executed_once_when_the_reply_is_dropped),
		MUTATION_TEST(mutation__is_executed_once_when_killed_before_the_reply),
		MUTATION_TEST(create__leaves_one_inode_when_killed_before_the_reply),
		MUTATION_TEST(makes__are_told_one_by_one_when_killed_before_the_reply),
		MUTATION_TEST(names__are_changed_once_when_killed_before_the_reply),
		MUTATION_TEST(makes__that_are_malformed_make_nothing),
	};

	return cmocka_run_group_tests_name("mutations", tests, NULL, NULL);
}
