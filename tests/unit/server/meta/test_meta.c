/* test_meta.c - opening, batches, stored replies and sessions, and a store that is full. */
#include "tests/unit/server/meta_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "server/store/store_format.h"

enum { FILE_MODE = S_IFREG | 0644 };

/* ---- opening --------------------------------------------------------------------------------- */

static void open__again_shows_the_same(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), ino = fx_file(dir, "file"), next;
	uint8_t id[STORE_ID_BYTES];
	struct attr before;

	fx_fill(ino, 7, 9);
	before = fx_attr(ino);
	memcpy(id, meta_store_id(fx.m), sizeof(id));
	fx_reopen();
	assert_false(meta_is_new(fx.m));
	assert_memory_equal(id, meta_store_id(fx.m), sizeof(id));
	assert_int_equal(fx_lookup(dir, "file"), 0);
	fx_assert_same(&fx.rep.entry.attr, &before);
	assert_int_equal(fx.rep.entry.head[0].fpage, 7);
	assert_int_equal(fx_usage().free_pages, FX_PAGES - 9);
	assert_int_equal(fx_name(RPC_UNLINK, dir, "file"), 0);
	assert_int_equal(fx_return_inode(ino), 0);
	next = fx_file(dir, "other");
	assert_true(next > ino);
}

static void open__refuses_another_size(void **state)
{
	meta_close(fx.m);
	fx.m = NULL;
	fx.exports[0].npages--;
	assert_int_equal(fx_open(), -EINVAL);
	assert_non_null(strstr(fx.why, "default"));
	assert_non_null(strstr(fx.why, "it can have 4MiB or "));
	fx.exports[0].npages++;
	assert_int_equal(fx_open(), 0);
}

/* Closes the store and opens it for an export of n pages. */
static int open_with(uint64_t npages, const char *missing, uint32_t missing_region)
{
	meta_close(fx.m);
	fx.m = NULL;
	fx.exports[0].npages = npages;
	fx.exports[0].nregions = (uint32_t)div_round_up(npages, FX_REGION_PAGES);
	fx.exports[0].missing = missing;
	fx.exports[0].missing_region = missing_region;
	return fx_open();
}

static void open__grows_by_whole_regions(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), free_pages = fx_usage().free_pages;

	assert_int_not_equal(ino, 0);
	assert_int_equal(open_with(FX_REGION_PAGES + 1, NULL, 0), -EINVAL);
	assert_non_null(strstr(fx.why, "it can have 4MiB or 8MiB, by whole regions of 4MiB"));
	assert_int_equal(open_with(2 * FX_REGION_PAGES, "region", 0), -EBADMSG);
	assert_int_equal(open_with(2 * FX_REGION_PAGES, "region", 1), 0);
	assert_int_equal(fx_usage().npages, 2 * FX_REGION_PAGES);
	assert_int_equal(fx_usage().free_pages, free_pages + FX_REGION_PAGES);
	fx_check();
	assert_int_equal(open_with(2 * FX_REGION_PAGES, "region", 1), -EBADMSG);
	assert_int_equal(open_with(2 * FX_REGION_PAGES, NULL, 0), 0);
	assert_int_equal(fx_usage().free_pages, free_pages + FX_REGION_PAGES);
}

static void open__keeps_exports_that_are_not_configured(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	fx_fill(ino, 0, 5);
	meta_close(fx.m);
	fx.exports[0].name = "second";
	assert_int_equal(fx_open(), 0);
	assert_int_equal(fx_lookup(ROOT_INO, "file"), -ENOENT);
	fx_file(ROOT_INO, "another");
	fx_check();
	meta_close(fx.m);
	fx.exports[0].name = "default";
	assert_int_equal(fx_open(), 0);
	assert_int_equal(fx_lookup(ROOT_INO, "file"), 0);
	assert_int_equal(fx_lookup(ROOT_INO, "another"), -ENOENT);
}

static void open__refuses_impossible_exports(void **state)
{
	meta_close(fx.m);
	fx.m = NULL;
	fx.exports[0].name = "x";
	fx.exports[0].nregions = 1;
	assert_int_equal(fx_open(), -EINVAL);
	assert_non_null(strstr(fx.why, "export x"));
}

static int store_fd(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/store.mdb", fx.dir);
	return open(path, O_RDWR | O_CLOEXEC);
}

static void open__refuses_a_damaged_store(void **state)
{
	static const char junk[8192] = "this is no store";
	int fd = store_fd();

	meta_close(fx.m);
	fx.m = NULL;
	assert_int_equal(pwrite(fd, junk, sizeof(junk), 0), sizeof(junk));
	close(fd);
	assert_int_equal(fx_open(), -EBADMSG);
	assert_non_null(strstr(fx.why, "damaged"));
}

static void put_super(const void *data, size_t len)
{
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(store_put(fx.m->store, STORE_META, STORE_KEY(0), data, len), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	meta_close(fx.m);
	fx.m = NULL;
}

static void open__refuses_a_damaged_superblock(void **state)
{
	put_super("garbage, not a superblock at all, but some bytes", 48);
	assert_int_equal(fx_open(), -EBADMSG);
	assert_non_null(strstr(fx.why, "damaged"));
}

static void open__refuses_another_version(void **state)
{
	put_super("rmemfsM\0\x63\0\0\0", 12);
	assert_int_equal(fx_open(), -EPROTONOSUPPORT);
	assert_non_null(strstr(fx.why, "version 99; this server reads 4 and 5"));
}

/* Returns the version in which the superblock is stored. */
static uint32_t stored_version(void)
{
	struct store_val val;
	uint32_t version;

	assert_int_equal(store_begin_read(fx.m->store), 0);
	assert_int_equal(store_get(fx.m->store, STORE_META, STORE_KEY(0), &val), 0);
	memcpy(&version, (const char *)val.data + STORE_MAGIC_BYTES, sizeof(version));
	store_abort(fx.m->store);
	return version;
}

static void open__goes_on_with_the_former_version(void **state)
{
	assert_int_equal(stored_version(), 5);
	assert_int_equal(fx_usage().offset_bits, 31);
	fx_make_wide();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(stored_version(), 4);
		assert_int_equal(fx_usage().offset_bits, 63);
		fx_new_session(); /* saves the superblock */
		fx_reopen();
	}
}

/* A later version may have a table that this one does not know. */
static void rename_table(void)
{
	static const char name[] = "xvalue"; /* the last table, before and after */
	int fd = store_fd();
	struct stat st;
	char *map, *at;

	assert_int_equal(fstat(fd, &st), 0);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	at = memmem(map, (size_t)st.st_size, name, strlen(name));
	assert_non_null(at);
	for (; at; at = memmem(at, (size_t)(map + st.st_size - at), name, strlen(name)))
		at[strlen(name) - 1] = 'x';
	munmap(map, (size_t)st.st_size);
	close(fd);
}

static void open__refuses_another_version_with_other_tables(void **state)
{
	put_super("rmemfsM\0\x63\0\0\0", 12);
	rename_table();
	assert_int_equal(fx_open(), -EPROTONOSUPPORT);
	assert_non_null(strstr(fx.why, "version 99; this server reads 4 and 5"));
}

static void open__refuses_other_tables(void **state)
{
	meta_close(fx.m);
	fx.m = NULL;
	rename_table();
	assert_int_equal(fx_open(), -EBADMSG);
	assert_non_null(strstr(fx.why, "one that is none of ours"));
}

static void open__names_the_memory_that_is_missing(void **state)
{
	meta_close(fx.m);
	fx.m = NULL;
	fx.config.store_bytes = UINT64_C(1) << 46;
	assert_int_equal(fx_open(), -ENOSPC);
	assert_non_null(strstr(fx.why, ": needed "));
}

static void open__without_a_directory(void **state)
{
	struct meta *m;
	struct meta_config config = fx.config;

	config.dir = "/nonexistent";
	assert_int_equal(meta_open(&config, &m, fx.why, sizeof(fx.why)), -ENOENT);
	assert_non_null(strstr(fx.why, "/nonexistent"));
}

/* ---- batches --------------------------------------------------------------------------------- */

static int in_batch(uint16_t op, uint64_t parent, const char *name)
{
	struct rpc_request req = {.op = op};

	if (op == RPC_UNLINK)
		req.name = (struct rpc_name_request){parent, fx_str(name)};
	else
		req.create = (struct rpc_create){.parent = parent,
			.name = fx_str(name),
			.mode = FILE_MODE,
			.want_pages = 30};
	return fx_execute(&req);
}

static void commit__takes_many_requests(void **state)
{
	char name[16];

	assert_int_equal(meta_begin(fx.m), 0);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		assert_int_equal(in_batch(RPC_CREATE, ROOT_INO, name), 0);
	}
	assert_int_equal(in_batch(RPC_UNLINK, ROOT_INO, "f7"), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	assert_int_equal(fx_lookup(ROOT_INO, "f7"), -ENOENT);
	assert_int_equal(fx_lookup(ROOT_INO, "f8"), 0);
	assert_int_equal(fx_usage().granted_pages, 600);
}

static void abort__undoes_everything(void **state)
{
	uint64_t kept = fx_file(ROOT_INO, "kept"), freed;
	struct extent e = fx_fill(kept, 0, 40);
	struct meta_session s = {0};
	struct meta_usage before, after;
	bool more;

	assert_int_equal(fx_return_grants((struct extent[]){fx_grant_run(10)}, 1), 0);
	before = fx_usage();
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(in_batch(RPC_CREATE, ROOT_INO, "new"), 0);
	assert_int_equal(in_batch(RPC_MKDIR, ROOT_INO, "newdir"), 0);
	assert_int_equal(in_batch(RPC_UNLINK, ROOT_INO, "kept"), 0);
	assert_int_equal(fx_execute(&(struct rpc_request){.op = RPC_SETATTR,
				 .setattr = {.ino = kept, .valid = SET_SIZE, .size = 0}}),
		0);
	assert_int_equal(
		fx_execute(&(struct rpc_request){.op = RPC_GRANT, .grant = {500, false}}), 0);
	assert_int_equal(meta_session_new(fx.m, &s), 0);
	assert_int_equal(meta_session_end(fx.m, 0, fx.ctx.session), 0);
	assert_int_equal(meta_reclaim(fx.m, &more, &freed), 0);
	meta_abort(fx.m);
	meta_abort(fx.m);

	after = fx_usage();
	assert_memory_equal(&before, &after, offsetof(struct meta_usage, store_used_bytes));
	assert_int_equal(fx_lookup(ROOT_INO, "new"), -ENOENT);
	assert_int_equal(fx_lookup(ROOT_INO, "newdir"), -ENOENT);
	assert_int_equal(fx_attr(kept).npages, 40);
	assert_int_equal(fx_attr(ROOT_INO).nlink, 2);
	assert_int_equal(fx_new_session(), s.id);
	fx_check();
	fx_settle();
	assert_int_equal(fx_usage().free_pages, FX_PAGES - 40);
	assert_int_equal(e.npages, 40);
}

/* ---- stored replies -------------------------------------------------------------------------- */

static void reply__is_kept_with_the_change(void **state)
{
	char big[RPC_MSG_BYTES] = "begin";
	const void *msg;
	uint64_t seq;
	size_t len;

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_reply_find(fx.m, 1, 5, &seq, &msg, &len), -ENOENT);
	assert_int_equal(meta_reply_store(fx.m, 1, 5, 17, "first", 5), 0);
	assert_int_equal(meta_reply_store(fx.m, 1, 6, 3, "other", 5), 0);
	assert_int_equal(meta_reply_store(fx.m, 1, 7, 1, big, sizeof(big)), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_reply_store(fx.m, 1, 6, 4, "lost", 4), 0);
	meta_abort(fx.m);
	fx_reopen();
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_reply_find(fx.m, 1, 5, &seq, &msg, &len), 0);
	assert_int_equal(seq, 17);
	assert_int_equal(len, 5);
	assert_memory_equal(msg, "first", 5);
	assert_int_equal(meta_reply_find(fx.m, 1, 6, &seq, &msg, &len), 0);
	assert_int_equal(seq, 3);
	assert_int_equal(meta_reply_find(fx.m, 1, 7, &seq, &msg, &len), 0);
	assert_int_equal(len, sizeof(big));
	assert_int_equal(meta_reply_find(fx.m, 2, 5, &seq, &msg, &len), -ENOENT);
	meta_abort(fx.m);
}

/* ---- sessions -------------------------------------------------------------------------------- */

struct seen {
	unsigned n;
	struct meta_session last;
};

static void see(const struct meta_session *session, void *arg)
{
	struct seen *seen = arg;

	seen->n++;
	seen->last = *session;
}

static void session__is_stored(void **state)
{
	struct meta_session s = {.flags = ATTACH_READ_ONLY,
		.owner = "me, myself and I",
		.instance = 99,
		.nchannels = 4,
		.holder = "web",
		.token = "sixteen of them.",
		.wire_version = 300,
		.client = "host:/mnt/rmem (pid 311)"};
	struct seen seen = {0};
	bool more;

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_new(fx.m, &s), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_reopen();
	assert_int_equal(meta_session_each(fx.m, see, &seen), 0);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.last.id, s.id);
	assert_int_equal(seen.last.export_index, 0);
	assert_int_equal(seen.last.flags, ATTACH_READ_ONLY);
	assert_int_equal(seen.last.instance, 99);
	assert_int_equal(seen.last.nchannels, 4);
	assert_memory_equal(seen.last.owner, s.owner, OWNER_BYTES);
	assert_string_equal(seen.last.holder, "web");
	assert_memory_equal(seen.last.token, s.token, TOKEN_BYTES);
	assert_int_equal(seen.last.wire_version, 300);
	assert_string_equal(seen.last.client, s.client);

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_set_flags(fx.m, s.id, ATTACH_EXCLUSIVE), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_reopen();
	assert_int_equal(meta_session_each(fx.m, see, &seen), 0);
	assert_int_equal(seen.last.flags, ATTACH_EXCLUSIVE);
	assert_int_equal(seen.last.instance, 99);
	assert_string_equal(seen.last.holder, "web");
	assert_string_equal(seen.last.client, s.client);

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, s.id), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	seen.n = 0;
	assert_int_equal(meta_session_each(fx.m, see, &seen), 0);
	assert_int_equal(seen.n, 1);
	fx_reclaim(&more);
	assert_true(fx_new_session() > s.id);
}

/* Takes the version out of the session's record: so it was when there was one version. */
static void strip_version(uint64_t session, const char *holder)
{
	enum { STATE_WITH_VERSION = 8 };
	size_t at = 1 + 2 + 4 + OWNER_BYTES + 8 + 2 + 1 + strlen(holder) + TOKEN_BYTES;
	uint8_t record[256];
	struct store_val val;

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(store_get(fx.m->store, STORE_SESSION, STORE_KEY(session), &val), 0);
	assert_in_range(val.len, at + 2, sizeof(record));
	memcpy(record, val.data, val.len);
	record[0] &= (uint8_t)~STATE_WITH_VERSION;
	memmove(record + at, record + at + 2, val.len - at - 2);
	assert_int_equal(
		store_put(fx.m->store, STORE_SESSION, STORE_KEY(session), record, val.len - 2), 0);
	assert_int_equal(meta_commit(fx.m), 0);
}

static void session__stored_without_a_version_is_of_the_first(void **state)
{
	struct meta_session s = {
		.nchannels = 1, .holder = "web", .wire_version = 300, .client = "host:/mnt/rmem"};
	struct seen seen = {0};

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_new(fx.m, &s), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	strip_version(s.id, s.holder);
	assert_int_equal(meta_session_each(fx.m, see, &seen), 0);
	assert_int_equal(seen.last.wire_version, RMEMFS_WIRE_FIRST);
	assert_string_equal(seen.last.holder, "web");
	assert_string_equal(seen.last.client, s.client);
}

/* Stores the reply as a session of this version gets it. */
static void store_reply(
	uint64_t session, unsigned slot, const struct rpc_reply *rep, uint32_t version)
{
	uint8_t msg[RPC_MSG_BYTES];
	size_t len;

	assert_int_equal(rpc_reply_encode(rep, version, msg, sizeof(msg), &len), 0);
	assert_int_equal(meta_reply_store(fx.m, session, slot, 7, msg, len), 0);
}

/* Returns its trial, and demands that the rest is as it was. */
static uint32_t stored_trial(uint64_t session, unsigned slot, uint32_t version)
{
	struct rpc_reply rep;
	const void *msg;
	uint64_t seq;
	size_t len;

	assert_int_equal(meta_reply_find(fx.m, session, slot, &seq, &msg, &len), 0);
	assert_int_equal(seq, 7);
	assert_int_equal(rpc_reply_decode(&rep, version, msg, len), 0);
	assert_int_equal(rep.entry.attr.ino, 42 + slot);
	assert_int_equal(rep.entry.nextents, 5);
	return rep.entry.trial;
}

/* Each reply of the session changes with its version, and no other session's. */
static void session__of_another_version_has_its_replies_in_it(void **state)
{
	struct rpc_reply rep = {.op = RPC_CREATE, .seq = 7, .entry = {.nextents = 5, .trial = 9}};
	struct rpc_reply unknown = {.op = RPC_TRIAL, .slot = RPC_NO_SLOT, .seq = 7};
	struct meta_session s = {.nchannels = 1, .wire_version = RMEMFS_WIRE_NEXT};
	struct meta_session other = s;
	const void *msg;
	uint64_t seq;
	size_t len;

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_new(fx.m, &s), 0);
	assert_int_equal(meta_session_new(fx.m, &other), 0);
	for (unsigned slot = 0; slot < 3; slot++) {
		rep.entry.attr.ino = 42 + slot;
		store_reply(s.id, slot, &rep, RMEMFS_WIRE_NEXT);
		store_reply(other.id, slot, &rep, RMEMFS_WIRE_NEXT);
	}
	store_reply(s.id, 3, &unknown, RMEMFS_WIRE_NEXT);
	assert_int_equal(meta_session_set_version(fx.m, s.id, RMEMFS_WIRE_VERSION), 0);
	for (unsigned slot = 0; slot < 3; slot++) {
		assert_int_equal(stored_trial(s.id, slot, RMEMFS_WIRE_VERSION), 0);
		assert_int_equal(stored_trial(other.id, slot, RMEMFS_WIRE_NEXT), 9);
	}
	/* A client of this version can't ask for it. */
	assert_int_equal(meta_reply_find(fx.m, s.id, 3, &seq, &msg, &len), -ENOENT);
	assert_int_equal(meta_session_set_version(fx.m, s.id, RMEMFS_WIRE_NEXT), 0);
	assert_int_equal(stored_trial(s.id, 2, RMEMFS_WIRE_NEXT), 0);
	assert_int_equal(meta_commit(fx.m), 0);
}

static void session__of_another_process(void **state)
{
	struct meta_session s = {.nchannels = 1, .client = "host:/mnt (pid 1)"};
	struct seen seen = {0};

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_new(fx.m, &s), 0);
	assert_int_equal(meta_session_set_client(fx.m, s.id, "host:/mnt (pid 222)"), 0);
	assert_int_equal(meta_session_set_client(fx.m, s.id + 1, "another"), -ENOENT);
	assert_int_equal(meta_commit(fx.m), 0);
	assert_int_equal(meta_session_each(fx.m, see, &seen), 0);
	assert_string_equal(seen.last.client, "host:/mnt (pid 222)");
	assert_int_equal(seen.last.nchannels, 1);
}

/* A stored reply can't be read in the version before: the store is damaged there, and the session
 * stays as it is. */
static void session__with_a_reply_that_is_none_keeps_its_version(void **state)
{
	struct meta_session s = {.nchannels = 1, .wire_version = RMEMFS_WIRE_VERSION};
	struct seen seen = {0};

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_new(fx.m, &s), 0);
	assert_int_equal(meta_reply_store(fx.m, s.id, 0, 1, "no reply", 8), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_set_version(fx.m, s.id, RMEMFS_WIRE_NEXT), -EBADMSG);
	meta_abort(fx.m);
	assert_int_equal(meta_session_each(fx.m, see, &seen), 0);
	assert_int_equal(seen.last.wire_version, RMEMFS_WIRE_VERSION);
}

/* ---- killed ---------------------------------------------------------------------------------- */

/* Makes files, and reports each when it is committed. */
static _Noreturn void make_files(int fd)
{
	char name[16];

	if (fx_open())
		_exit(1);
	for (unsigned i = 0;; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		fx_fill(fx_file(ROOT_INO, name), i % 3, 1);
		if (write(fd, "", 1) != 1)
			_exit(2);
		if (i % 4 == 3) {
			fx_name(RPC_UNLINK, ROOT_INO, name);
			fx_return_inode(fx.rep.remove.child.ino);
		}
	}
}

static void kill__loses_nothing_acknowledged(void **state)
{
	unsigned acknowledged = 0;
	char byte, name[16];
	int fds[2];
	pid_t pid;

	meta_close(fx.m);
	fx.m = NULL;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0)
		make_files(fds[1]);
	close(fds[1]);
	while (acknowledged < 500 && read(fds[0], &byte, 1) == 1)
		acknowledged++;
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	while (read(fds[0], &byte, 1) == 1)
		acknowledged++;
	close(fds[0]);
	assert_true(acknowledged >= 500);

	assert_int_equal(fx_open(), 0);
	fx_check();
	for (unsigned i = 0; i < acknowledged; i++) {
		if (i % 4 == 3)
			continue;
		snprintf(name, sizeof(name), "f%u", i);
		assert_int_equal(fx_lookup(ROOT_INO, name), 0);
		assert_int_equal(fx.rep.entry.attr.npages, 1);
	}
}

/* ---- a full store ---------------------------------------------------------------------------- */

static int small_store(void **state)
{
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, 4 << 20);
	return 0;
}

static unsigned fill_store(void)
{
	char name[NAME_BYTES_MAX];
	unsigned n = 0;
	int status;

	for (;; n++) {
		snprintf(name, sizeof(name), "a-name-of-some-length-%0100u", n);
		status = fx_make(RPC_CREATE, ROOT_INO, name, FILE_MODE);
		if (status)
			break;
	}
	assert_int_equal(status, -ENOSPC);
	assert_true(fx.rep.text.len > 0);
	return n;
}

static void full_store__still_deletes_and_commits(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "data");
	struct extent e = fx_grant_run(200);
	char name[NAME_BYTES_MAX];
	unsigned n = fill_store();

	assert_true(n > 1000);
	/* All granted pages become extents of one page each. */
	for (unsigned i = 0; i < 200; i++) {
		struct extent one = {
			.fpage = 2 * i, .npages = 1, .page = e.page + i, .region = e.region};

		assert_int_equal(fx_commit(ino, &one, 1, 2 * i * PAGE_BYTES), 0);
	}
	assert_int_equal(fx_truncate(ino, PAGE_BYTES), 0);
	for (unsigned i = 0; i < n; i++) {
		uint64_t gone;

		snprintf(name, sizeof(name), "a-name-of-some-length-%0100u", i);
		assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, name), 0);
		gone = fx.rep.remove.child.ino;
		assert_int_equal(fx_return_inode(gone), 0);
	}
	fx_settle();
	assert_int_equal(fx_usage().inodes, 2);
	assert_true(fill_store() >= n - n / 20);
}

/* A request that finds no room because of earlier ones in its batch must not be refused. The batch
 * fails as a whole, and the request runs again alone. */
static void full_store__in_a_batch_is_tried_alone(void **state)
{
	char name[32];
	int status = 0;
	unsigned n = 0;

	assert_int_equal(meta_begin(fx.m), 0);
	for (; status == 0; n++) {
		snprintf(name, sizeof(name), "b%u", n);
		status = in_batch(RPC_MKDIR, ROOT_INO, name);
	}
	assert_int_equal(fx.result, -EAGAIN);
	assert_int_equal(meta_commit(fx.m), -EAGAIN);
	assert_int_equal(fx_lookup(ROOT_INO, "b0"), -ENOENT);
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "b%u", i);
		fx_dir(ROOT_INO, name);
	}
}

static int one_region(void **state)
{
	fx_set_up_sized(FX_REGION_PAGES, FX_REGION_PAGES, (uint64_t)FX_STORE_MIB << 20);
	return 0;
}

#define CASE(f)        cmocka_unit_test_setup_teardown(f, fx_set_up, fx_tear_down)
#define REGION_CASE(f) cmocka_unit_test_setup_teardown(f, one_region, fx_tear_down)
#define SMALL_CASE(f)  cmocka_unit_test_setup_teardown(f, small_store, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(open__again_shows_the_same),
		CASE(open__refuses_another_size),
		REGION_CASE(open__grows_by_whole_regions),
		CASE(open__keeps_exports_that_are_not_configured),
		CASE(open__refuses_impossible_exports),
		CASE(open__refuses_a_damaged_store),
		CASE(open__refuses_a_damaged_superblock),
		CASE(open__refuses_another_version),
		CASE(open__goes_on_with_the_former_version),
		CASE(open__refuses_another_version_with_other_tables),
		CASE(open__refuses_other_tables),
		CASE(open__names_the_memory_that_is_missing),
		CASE(open__without_a_directory),
		CASE(commit__takes_many_requests),
		CASE(abort__undoes_everything),
		CASE(reply__is_kept_with_the_change),
		CASE(session__is_stored),
		CASE(session__stored_without_a_version_is_of_the_first),
		CASE(session__of_another_version_has_its_replies_in_it),
		CASE(session__of_another_process),
		CASE(session__with_a_reply_that_is_none_keeps_its_version),
		CASE(kill__loses_nothing_acknowledged),
		SMALL_CASE(full_store__still_deletes_and_commits),
		SMALL_CASE(full_store__in_a_batch_is_tried_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
