/* test_store.c - records, positions and transactions; the hash of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "common/base/util.h"
#include "common/base/namehash.h"
#include "server/store/store.h"
#include "server/store/store_format.h"
#include "tests/unit/memory_dir.h"

static char dir[64], path[96], why[256];
static struct store *store;

static int set_up(void **state)
{
	bool is_new;

	memory_dir(dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/store", dir);
	assert_int_equal(store_open(path, 4 << 20, &store, &is_new, why, sizeof(why)), 0);
	assert_true(is_new);
	assert_int_equal(store_begin(store), 0);
	return 0;
}

static int tear_down(void **state)
{
	store_close(store);
	unlink(path);
	rmdir(dir);
	return 0;
}

static void put(enum store_table table, struct store_key key, const char *text)
{
	assert_int_equal(store_put(store, table, key, text, strlen(text)), 0);
}

static void expect(enum store_table table, struct store_key key, const char *text)
{
	struct store_val val;

	assert_int_equal(store_get(store, table, key, &val), 0);
	assert_int_equal(val.len, strlen(text));
	assert_memory_equal(val.data, text, val.len);
}

static void get__finds_what_was_put(void **state)
{
	struct store_val val;

	put(STORE_INODE, STORE_KEY(5), "one");
	put(STORE_INODE, STORE_KEY(5), "other");
	put(STORE_DIRENT, STORE_KEY(5, 1), "pair");
	expect(STORE_INODE, STORE_KEY(5), "other");
	expect(STORE_DIRENT, STORE_KEY(5, 1), "pair");
	assert_int_equal(store_get(store, STORE_INODE, STORE_KEY(6), &val), -ENOENT);
	assert_int_equal(store_get(store, STORE_DIRENT, STORE_KEY(5, 2), &val), -ENOENT);
	assert_int_equal(store_del(store, STORE_INODE, STORE_KEY(5)), 0);
	assert_int_equal(store_del(store, STORE_INODE, STORE_KEY(5)), -ENOENT);
	assert_int_equal(store_failed(store), 0);
}

static void append__takes_keys_in_any_order(void **state)
{
	static const uint64_t keys[] = {5, 9, 7, 9, 1, 1000};

	for (unsigned i = 0; i < ARRAY_SIZE(keys); i++)
		assert_int_equal(
			store_append(store, STORE_INODE, STORE_KEY(keys[i]), &keys[i], 8), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(keys); i++) {
		struct store_val val;

		assert_int_equal(store_get(store, STORE_INODE, STORE_KEY(keys[i]), &val), 0);
		assert_memory_equal(val.data, &keys[i], 8);
	}
}

static void seek__goes_to_the_neighbours(void **state)
{
	static const enum store_table tables[] = {STORE_SPACE, STORE_EXTENT};
	const uint64_t big = UINT64_C(1) << 40;

	for (unsigned i = 0; i < ARRAY_SIZE(tables); i++) {
		enum store_table t = tables[i];
		struct store_key at;

		assert_int_equal(store_seek(store, t, STORE_KEY(0), &at, NULL), -ENOENT);
		assert_int_equal(store_seek_back(store, t, STORE_KEY(9), &at, NULL), -ENOENT);
		put(t, STORE_KEY(10), "a");
		put(t, STORE_KEY(300), "b");
		put(t, STORE_KEY(big), "c");
		assert_int_equal(store_seek(store, t, STORE_KEY(10), &at, NULL), 0);
		assert_int_equal(at.hi, 10);
		assert_int_equal(store_seek(store, t, STORE_KEY(11), &at, NULL), 0);
		assert_int_equal(at.hi, 300);
		assert_int_equal(store_next(store, t, &at, NULL), 0);
		assert_int_equal(at.hi, big);
		assert_int_equal(store_next(store, t, &at, NULL), -ENOENT);
		assert_int_equal(store_seek(store, t, STORE_KEY(big + 1), &at, NULL), -ENOENT);
		assert_int_equal(store_seek_back(store, t, STORE_KEY(9), &at, NULL), -ENOENT);
		assert_int_equal(store_seek_back(store, t, STORE_KEY(300), &at, NULL), 0);
		assert_int_equal(at.hi, 300);
		assert_int_equal(store_seek_back(store, t, STORE_KEY(299), &at, NULL), 0);
		assert_int_equal(at.hi, 10);
		assert_int_equal(store_seek_back(store, t, STORE_KEY(UINT64_MAX), &at, NULL), 0);
		assert_int_equal(at.hi, big);
	}
}

static void pairs__are_ordered_by_both_halves(void **state)
{
	struct store_key at;

	put(STORE_EXTENT, STORE_KEY(1, 300), "x");
	put(STORE_EXTENT, STORE_KEY(2, 5), "y");
	assert_int_equal(store_seek(store, STORE_EXTENT, STORE_KEY(1, 301), &at, NULL), 0);
	assert_int_equal(at.hi, 2);
	assert_int_equal(at.lo, 5);
	assert_int_equal(store_seek_back(store, STORE_EXTENT, STORE_KEY(2, 4), &at, NULL), 0);
	assert_int_equal(at.hi, 1);
	assert_int_equal(at.lo, 300);
}

/* A start may be killed before its first record is there; the next start begins anew. */
static void open__without_records_is_new(void **state)
{
	bool is_new = false;

	store_close(store);
	assert_int_equal(store_open(path, 4 << 20, &store, &is_new, why, sizeof(why)), 0);
	assert_true(is_new);
	assert_int_equal(store_begin(store), 0);
	put(STORE_INODE, STORE_KEY(1), "a record");
	assert_int_equal(store_commit(store), 0);
	store_close(store);
	assert_int_equal(store_open(path, 4 << 20, &store, &is_new, why, sizeof(why)), 0);
	assert_false(is_new);
	assert_int_equal(store_begin(store), 0);
}

static void abort__forgets(void **state)
{
	struct store_val val;

	put(STORE_INODE, STORE_KEY(1), "kept");
	assert_int_equal(store_commit(store), 0);
	assert_int_equal(store_begin(store), 0);
	put(STORE_INODE, STORE_KEY(2), "lost");
	store_abort(store);
	assert_false(store_in_transaction(store));
	assert_int_equal(store_begin_read(store), 0);
	expect(STORE_INODE, STORE_KEY(1), "kept");
	assert_int_equal(store_get(store, STORE_INODE, STORE_KEY(2), &val), -ENOENT);
}

static void failed__can_only_be_aborted(void **state)
{
	struct store_val val;

	put(STORE_INODE, STORE_KEY(1), "x");
	assert_int_equal(store_damaged(store, STORE_INODE, STORE_KEY(1)), -EBADMSG);
	assert_int_equal(store_failed(store), -EBADMSG);
	assert_int_equal(store_commit(store), -EBADMSG);
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_failed(store), 0);
	assert_int_equal(store_get(store, STORE_INODE, STORE_KEY(1), &val), -ENOENT);
}

static int store_next_of_first(struct store_val *val)
{
	assert_int_equal(store_seek(store, STORE_EXTENT, STORE_KEY(0), NULL, NULL), 0);
	return store_next(store, STORE_EXTENT, NULL, val);
}

/* The memory is overwritten while the store is in use. */
static void get__never_finds_a_damaged_value(void **state)
{
	static const char text[] = "a value to be found and changed";
	int fd = open(path, O_RDWR | O_CLOEXEC);
	static uint8_t bytes[4 << 20];
	struct store_val val;
	uint8_t *at;

	put(STORE_EXTENT, STORE_KEY(1, 1), "before it");
	put(STORE_EXTENT, STORE_KEY(1, 2), text);
	assert_int_equal(store_commit(store), 0);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	at = memmem(bytes, sizeof(bytes), text, strlen(text));
	assert_non_null(at);
	assert_int_equal(pwrite(fd, "A", 1, at - bytes), 1);
	close(fd);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(store_begin(store), 0);
		expect(STORE_EXTENT, STORE_KEY(1, 1), "before it");
		assert_int_equal(store_failed(store), 0);
		assert_int_equal(
			i == 0   ? store_get(store, STORE_EXTENT, STORE_KEY(1, 2), &val)
			: i == 1 ? store_seek(store, STORE_EXTENT, STORE_KEY(1, 2), NULL, &val)
			: i == 2 ? store_seek_back(store, STORE_EXTENT, STORE_KEY(9), NULL, &val)
				 : store_next_of_first(&val),
			-EBADMSG);
		assert_int_equal(store_failed(store), -EBADMSG);
		store_abort(store);
	}
	assert_int_equal(store_begin(store), 0);
	put(STORE_EXTENT, STORE_KEY(1, 2), "anew");
	expect(STORE_EXTENT, STORE_KEY(1, 2), "anew");
}

/* A correct value under another key or in another table is wrong. */
static void sum__knows_the_place(void **state)
{
	struct store_key key = {1, 2}, other = {1, 3};

	assert_true(store_sum(STORE_EXTENT, &key, "x", 1) == store_sum(STORE_EXTENT, &key, "x", 1));
	assert_true(store_sum(STORE_EXTENT, &key, "x", 1) != store_sum(STORE_DIRENT, &key, "x", 1));
	assert_true(
		store_sum(STORE_EXTENT, &key, "x", 1) != store_sum(STORE_EXTENT, &other, "x", 1));
	assert_true(store_sum(STORE_EXTENT, &key, "x", 1) != store_sum(STORE_EXTENT, &key, "y", 1));
	assert_true(store_sum(STORE_EXTENT, &key, "x", 1) != store_sum(STORE_EXTENT, &key, "x", 2));
}

static void room__ends_before_the_map_does(void **state)
{
	static const char record[990];
	uint64_t n = 0;

	store_abort(store);
	for (;; n++) {
		int err;

		assert_int_equal(store_begin(store), 0);
		err = store_room(store, 8, 100);
		if (err) {
			assert_int_equal(err, -ENOSPC);
			assert_int_equal(store_failed(store), 0);
			break;
		}
		assert_int_equal(
			store_append(store, STORE_INODE, STORE_KEY(n), record, sizeof(record)), 0);
		assert_int_equal(store_commit(store), 0);
	}
	assert_true(n > 3000); /* 4 a page, of 1,024 pages */
	/* A request that may use the reserve goes on; one that may not is sent away to try
	 * alone. */
	assert_int_equal(store_room(store, 8, 0), 0);
	assert_int_equal(store_room(store, 8, 100), -EAGAIN);
	assert_int_equal(store_failed(store), -EAGAIN);
}

static void usage__counts_pages(void **state)
{
	struct store_usage before, after;

	store_usage(store, &before);
	assert_int_equal(before.npages, 1024);
	for (uint64_t i = 0; i < 1000; i++)
		put(STORE_INODE, STORE_KEY(i), "some bytes of text");
	store_usage(store, &after);
	assert_true(after.used_pages > before.used_pages + 5);
}

static void namehash__is_siphash(void **state)
{
	uint8_t key[NAMEHASH_KEY_BYTES], data[15];

	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)i;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	/* The paper's own example, and the empty string. */
	assert_true(namehash(key, data, 15) == UINT64_C(0xa129ca6149be45e5));
	assert_true(namehash(key, data, 0) == UINT64_C(0x726fdb47dd0e0e31));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(get__finds_what_was_put),
		CASE(append__takes_keys_in_any_order),
		CASE(seek__goes_to_the_neighbours),
		CASE(pairs__are_ordered_by_both_halves),
		CASE(open__without_records_is_new),
		CASE(abort__forgets),
		CASE(failed__can_only_be_aborted),
		CASE(get__never_finds_a_damaged_value),
		cmocka_unit_test(sum__knows_the_place),
		CASE(room__ends_before_the_map_does),
		CASE(usage__counts_pages),
		cmocka_unit_test(namehash__is_siphash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
