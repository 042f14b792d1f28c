/* test_nodump.c - memory that core dumps leave out, and the heap in it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/base/sanitized.h"
#include "tests/unit/dumped.h"

enum { PATTERN_BYTES = 32 };

/* Makes random bytes at p, which lie nowhere else. */
static void make_pattern(uint8_t *p)
{
	assert_int_equal(getentropy(p, PATTERN_BYTES), 0);
}

static void nodump_map__is_not_dumped(void **state)
{
	uint8_t *p = nodump_map(2 * PAGE_BYTES);

	for (size_t i = 0; i < 2 * PAGE_BYTES; i++)
		assert_int_equal(p[i], 0);
	make_pattern(p + PAGE_BYTES);
	assert_null(dumped_where(p + PAGE_BYTES, PATTERN_BYTES));
	nodump_unmap(p, 2 * PAGE_BYTES);
	nodump_unmap(NULL, 0);
}

/* dumped_where() finds what is dumped. */
static void malloc__is_dumped(void **state)
{
	uint8_t *p = nodump_map(PAGE_BYTES), *copy = malloc(PATTERN_BYTES);

	make_pattern(p);
	memcpy(copy, p, PATTERN_BYTES);
	assert_non_null(dumped_where(p, PATTERN_BYTES));
	explicit_bzero(copy, PATTERN_BYTES);
	assert_null(dumped_where(p, PATTERN_BYTES));
	free(copy);
	nodump_unmap(p, PAGE_BYTES);
}

static void nodump_exclude__private_mapping(void **state)
{
	uint8_t *p =
		mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	nodump_exclude(p, PAGE_BYTES);
	make_pattern(p);
	assert_null(dumped_where(p, PATTERN_BYTES));
	munmap(p, PAGE_BYTES);
}

/* The heap of a sanitizer takes the place of ours, for the sake of its checks. */
#if !IS_SANITIZED

static void nodump_alloc__no_size_is_dumped(void **state)
{
	for (size_t bytes = PATTERN_BYTES; bytes <= 1 << 18; bytes = bytes * 3 + 1) {
		uint8_t *p = nodump_alloc(bytes);

		make_pattern(p + bytes - PATTERN_BYTES);
		assert_null(dumped_where(p + bytes - PATTERN_BYTES, PATTERN_BYTES));
		explicit_bzero(p, bytes);
		nodump_free(p);
	}
}

static void nodump_alloc__edges(void **state)
{
	assert_null(nodump_alloc(0));
	assert_null(nodump_alloc(SIZE_MAX));
	assert_null(nodump_alloc(SIZE_MAX - 8));
	assert_null(nodump_zalloc(0));
	assert_null(nodump_realloc(NULL, 0));
	nodump_free(NULL);
}

#endif

/* Many blocks of random sizes, each filled with a byte of its own. */
static void churn(unsigned seed)
{
	enum { BLOCKS = 200, ROUNDS = 5000 };
	struct {
		uint8_t *p;
		size_t bytes;
	} blocks[BLOCKS] = {0};

	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned i = (unsigned)rand_r(&seed) % BLOCKS;
		uint8_t mark = (uint8_t)i;
		size_t bytes = (size_t)rand_r(&seed) % (round % 50 ? 3000 : 70000);
		size_t kept = min_u64(bytes, blocks[i].bytes);
		uint8_t *p;

		for (size_t at = 0; at < blocks[i].bytes; at += 61)
			assert_int_equal(blocks[i].p[at], mark);
		p = nodump_realloc(blocks[i].p, bytes);
		assert_true(!p == !bytes && (uintptr_t)p % _Alignof(max_align_t) == 0);
		for (size_t at = 0; at < kept; at += 61)
			assert_int_equal(p[at], mark);
		if (p)
			memset(p, mark, bytes);
		blocks[i].p = p;
		blocks[i].bytes = bytes;
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		nodump_free(blocks[i].p);
}

static void *churn_thread(void *arg)
{
	churn((unsigned)(uintptr_t)arg);
	return NULL;
}

static void nodump_realloc__blocks_keep_their_bytes(void **state)
{
	enum { THREADS = 3 };
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, churn_thread, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void nodump_zalloc__zeros_what_was_used(void **state)
{
	uint8_t *p = nodump_alloc(100);

	memset(p, 0xff, 100);
	nodump_free(p);
	p = nodump_zalloc(100);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(p[i], 0);
	nodump_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodump_map__is_not_dumped),
		cmocka_unit_test(malloc__is_dumped),
		cmocka_unit_test(nodump_exclude__private_mapping),
#if !IS_SANITIZED
		cmocka_unit_test(nodump_alloc__no_size_is_dumped),
		cmocka_unit_test(nodump_alloc__edges),
#endif
		cmocka_unit_test(nodump_realloc__blocks_keep_their_bytes),
		cmocka_unit_test(nodump_zalloc__zeros_what_was_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
