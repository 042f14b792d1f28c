/* test_damage.c - a store of thousands of records is damaged in many ways. Each start either
 * refuses it and names the reason, or serves the old records, byte by byte.
 *
 * The damages are random, from seeds that each failure names: RMEMFS_SEED=N runs that one alone. */
#include "tests/unit/server/xattr_fixture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "common/base/namehash.h"
#include "server/store/store_verify.h"

enum {
	DAMAGES = 700,
	FILES = 3000,
	DIRS = 40,
	BIG_REPLY = 6000, /* on pages of its own */
	STORE_BYTES = 4 << 20,
};

static char path[128];
static uint8_t *image; /* the whole store's bytes */
static size_t image_len;
static uint64_t used_pages, content;

/* ---- the store ------------------------------------------------------------------------------- */

static uint64_t table_hash(enum store_table table)
{
	static const uint8_t seed[NAMEHASH_KEY_BYTES];
	uint64_t sum[4] = {table};
	struct store_key key;
	struct store_val val;
	int err = store_seek(fx.m->store, table, STORE_KEY(0), &key, &val);

	while (!err) {
		sum[1] = key.hi;
		sum[2] = key.lo;
		sum[3] = namehash(seed, val.data, val.len);
		sum[0] = namehash(seed, sum, sizeof(sum));
		err = store_next(fx.m->store, table, &key, &val);
	}
	assert_int_equal(err, -ENOENT);
	return sum[0];
}

/* Hashes every record. */
static uint64_t content_hash(void)
{
	uint64_t sum = 0;

	assert_int_equal(store_begin_read(fx.m->store), 0);
	for (int i = 0; i < STORE_TABLES; i++)
		sum = sum * 31 + table_hash((enum store_table)i);
	store_abort(fx.m->store);
	return sum;
}

static void put_reply(unsigned slot, size_t len)
{
	static uint8_t reply[BIG_REPLY];

	assert_true(len <= sizeof(reply));
	memset(reply, (int)slot, sizeof(reply));
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_reply_store(fx.m, fx.ctx.session, slot, 5, reply, len), 0);
	assert_int_equal(meta_commit(fx.m), 0);
}

/* Sets short values and long ones, and stages one. */
static void put_xattrs(uint64_t ino)
{
	static uint8_t data[20000];

	for (unsigned i = 0; i < 30; i++) {
		char name[16];

		snprintf(name, sizeof(name), "user.%u", i);
		fx_pattern(data, sizeof(data), i);
		assert_int_equal(fx_setxattr(ino, name, data, i % 10 ? 50 : 20000, 0), 0);
	}
	assert_int_equal(fx_stage(1, 0, data, 9000), 0);
}

/* All tables have records, the list of free pages too, and some trees have branches. */
static void build(void)
{
	uint64_t dirs[DIRS], file;
	char name[64];

	for (unsigned i = 0; i < DIRS; i++) {
		snprintf(name, sizeof(name), "dir%u", i);
		dirs[i] = fx_dir(ROOT_INO, name);
	}
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "a file of some length, number %u", i);
		fx_file(dirs[i % DIRS], name);
		if (i % 7 == 0)
			assert_int_equal(fx_name(RPC_UNLINK, dirs[i % DIRS], name), 0);
	}
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "symlink %u", i);
		assert_int_equal(fx_make(RPC_SYMLINK, dirs[0], name, S_IFLNK | 0777), 0);
	}
	file = fx_fragmented("fragmented", 300);
	assert_int_equal(fx_truncate(file, 20 * PAGE_BYTES), 0);
	put_xattrs(file);
	for (unsigned i = 0; i < 8; i++)
		put_reply(i, i % 2 ? 100 : BIG_REPLY);
}

static void read_image(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	image_len = (size_t)st.st_size;
	image = malloc(image_len);
	assert_int_equal(pread(fd, image, image_len, 0), (ssize_t)image_len);
	close(fd);
}

static int set_up(void **state)
{
	struct store_usage usage;

	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, STORE_BYTES);
	snprintf(path, sizeof(path), "%s/store.mdb", fx.dir);
	build();
	store_usage(fx.m->store, &usage);
	used_pages = usage.used_pages;
	content = content_hash();
	meta_close(fx.m);
	fx.m = NULL;
	read_image();
	return 0;
}

static int tear_down(void **state)
{
	free(image);
	image = NULL;
	return fx_tear_down(state);
}

/* ---- damages --------------------------------------------------------------------------------- */

static uint64_t seed, number; /* of the damage */

/* A failure must tell how to repeat it. */
static void expect(bool is, const char *what)
{
	if (!is)
		print_error("RMEMFS_SEED=%" PRIu64 ": %s (%s)\n", number, what, fx.why);
	assert_true(is);
}

static uint64_t draw(uint64_t below)
{
	uint64_t x = seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (x ^ x >> 31) % below;
}

static void scribble(uint8_t *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)draw(256);
}

/* bytes: a copy of the image. Returns the file's new length. */
static size_t inflict(uint8_t *bytes, char *what, size_t len)
{
	uint64_t page = draw(used_pages), other = draw(used_pages);
	uint8_t *at = bytes + page * PAGE_BYTES;
	size_t offset;

	switch (draw(8)) {
	case 0:
		snprintf(what, len, "page %" PRIu64 " zeroed", page);
		memset(at, 0, PAGE_BYTES);
		break;
	case 1:
		snprintf(what, len, "page %" PRIu64 " random", page);
		scribble(at, PAGE_BYTES);
		break;
	case 2:
		snprintf(what, len, "page %" PRIu64 " a copy of %" PRIu64, page, other);
		memmove(at, bytes + other * PAGE_BYTES, PAGE_BYTES);
		break;
	case 3:
		offset = draw(PAGE_BYTES * 8);
		snprintf(what, len, "page %" PRIu64 " bit %zu flipped", page, offset);
		at[offset / 8] ^= (uint8_t)(1 << offset % 8);
		break;
	case 4: /* of a header or of an offset to a node; of a meta page */
		page = draw(4) ? page : draw(2);
		offset = draw(page < 2 ? 20 : 6) * 8;
		snprintf(what, len, "page %" PRIu64 " word at %zu", page, offset);
		scribble(bytes + page * PAGE_BYTES + offset, 8);
		break;
	case 5: /* a number close to the right one */
		offset = draw(PAGE_BYTES / 2) * 2;
		snprintf(what, len, "page %" PRIu64 " byte at %zu", page, offset);
		at[offset] = (uint8_t)(at[offset] + 1 + draw(16));
		break;
	case 6:
		offset = draw(PAGE_BYTES - 64);
		snprintf(what, len, "page %" PRIu64 " 64 bytes at %zu", page, offset);
		scribble(at + offset, 64);
		break;
	default:
		offset = draw(2) ? draw(image_len - 1) + 1 : page * PAGE_BYTES + PAGE_BYTES;
		snprintf(what, len, "cut to %zu", offset);
		return offset;
	}
	return image_len;
}

static void write_store(const uint8_t *bytes, size_t len)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_int_equal(pwrite(fd, bytes, len, 0), (ssize_t)len);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	close(fd);
}

static void assert_unchanged(const uint8_t *bytes, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *have = malloc(len);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, len);
	assert_int_equal(pread(fd, have, len, 0), (ssize_t)len);
	assert_memory_equal(have, bytes, len);
	free(have);
	close(fd);
}

/* Returns whether the server refuses the store. */
static bool start_on(const uint8_t *bytes, size_t len)
{
	int err;

	write_store(bytes, len);
	err = fx_open();
	if (err) {
		expect(err == -EBADMSG, "refused by another error");
		expect(strstr(fx.why, "damaged: ") && strstr(fx.why, path), "refused unnamed");
		assert_unchanged(bytes, len);
		return true;
	}
	expect(content_hash() == content, "what is served is not what was there");
	fx_check();
	meta_close(fx.m);
	fx.m = NULL;
	return false;
}

static bool run_one(uint64_t n, bool tell)
{
	uint8_t *bytes = malloc(image_len);
	char what[96];
	bool refused;
	size_t len;

	memcpy(bytes, image, image_len);
	seed = number = n;
	len = inflict(bytes, what, sizeof(what));
	if (tell)
		print_message("%" PRIu64 ": %s\n", n, what);
	refused = start_on(bytes, len);
	if (tell)
		print_message("%s\n", refused ? fx.why : "served");
	free(bytes);
	return refused;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void open__damaged_anywhere_is_refused_or_whole(void **state)
{
	const char *one = getenv("RMEMFS_SEED");
	unsigned refused = 0;

	for (uint64_t i = 0; !one && i < DAMAGES; i++)
		refused += run_one(i, false);
	if (one)
		run_one(strtoull(one, NULL, 10), true);
	else
		print_message("%u of %u refused\n", refused, DAMAGES);
	/* Damages that are served hit unused bytes: on free pages, and between nodes. */
	assert_true(one || refused > DAMAGES / 2);
}

static void open__undamaged_is_served(void **state)
{
	char why[256];

	assert_int_equal(store_verify(path, why, sizeof(why)), 0);
	assert_false(start_on(image, image_len));
}

/* The value's bytes are found in their place; only its sum shows the damage. */
static void open__names_the_record_that_was_overwritten(void **state)
{
	static const char text[] = "over/there"; /* a symlink's target */
	uint8_t *at = memmem(image, image_len, text, sizeof(text) - 1);
	bool refused = false;

	while (at && !refused) { /* the first may be on a page that is free by now */
		at[3] ^= 1;
		refused = start_on(image, image_len);
		at[3] ^= 1;
		at = memmem(at + 1, image_len - (size_t)(at + 1 - image), text, sizeof(text) - 1);
	}
	assert_true(refused);
	assert_non_null(strstr(fx.why, "of table symlink was overwritten"));
}

static void open__shorter_than_it_was(void **state)
{
	assert_true(start_on(image, image_len - PAGE_BYTES));
	assert_non_null(strstr(fx.why, "cut short"));
	assert_true(start_on(image, 1));
	assert_non_null(strstr(fx.why, "cut short: 1 bytes"));
}

/* ---- kills ----------------------------------------------------------------------------------- */

enum { KILLS = 150, KILLED_STORE_BYTES = 2 << 20, KEYS = 1500 };

/* Puts and deletes in all tables, some values on pages of their own, until the store is nearly
 * full. */
static void change_until_killed(atomic_uint *commits)
{
	static uint8_t data[BIG_REPLY];
	struct store *s;
	bool is_new;

	if (store_open(path, KILLED_STORE_BYTES, &s, &is_new, fx.why, sizeof(fx.why)))
		_exit(1);
	for (;; atomic_fetch_add(commits, 1)) {
		uint64_t n = 1 + draw(40);

		if (store_begin(s))
			_exit(1);
		for (uint64_t i = 0; i < n && !store_room(s, 70, 20); i++) {
			enum store_table table = (enum store_table)draw(STORE_TABLES);
			struct store_key key = {1 + draw(KEYS), draw(2)}; /* 0: the superblock */

			if (draw(5) < 2)
				store_del(s, table, key);
			else
				store_put(s, table, key, data, draw(60) ? draw(300) : BIG_REPLY);
		}
		if (store_failed(s) || draw(10) == 0)
			store_abort(s);
		else if (store_commit(s))
			_exit(1);
	}
}

static void kill_at(atomic_uint *commits, unsigned n)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		change_until_killed(commits);
	while (atomic_load(commits) < n && waitpid(pid, &status, WNOHANG) == 0)
		;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status));
}

/* After each kill the store is whole, and many kills lose no page. */
static void verify__after_kills_is_whole(void **state)
{
	atomic_uint *commits = mmap(
		NULL, sizeof(*commits), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(commits, MAP_FAILED);
	assert_int_equal(unlink(path), 0);
	for (number = 0; number < KILLS; number++) {
		seed = number;
		atomic_store(commits, 0);
		kill_at(commits, (unsigned)draw(100));
		expect(store_verify(path, fx.why, sizeof(fx.why)) == 0, "not whole");
	}
	munmap(commits, sizeof(*commits));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(open__undamaged_is_served),
		CASE(open__damaged_anywhere_is_refused_or_whole),
		CASE(open__names_the_record_that_was_overwritten),
		CASE(open__shorter_than_it_was),
		CASE(verify__after_kills_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
