/* test_landing.c - payloads that are received into granted pages: the destination of the bytes and
 * the pages, and the pages that return to the pool. The memory of the only region is this
 * program's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/request/io_thread.h"
#include "daemon/pages/landing.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/remote/remote.h"
#include "daemon/serve/fs_block.h"
#include "daemon/pages/grant_refill.h"

enum { REGION_PAGES = 1024 };

struct fixture {
	uint8_t *memory;
	bool maps, writable;
	uint64_t written; /* counted bytes */
	int lent;
	struct fs fs;
	struct fs_parts parts;
	struct io_thread thread;
	struct io_thread_private priv; /* no request of it is in its lists */
	struct request req;
	struct data_buffer buf;
};

static struct fixture *f;

/* ---- what the connection and the pool's keeper would be -------------------------------------- */

bool io_maps(const struct io_thread *thread)
{
	return f->maps;
}

void *io_mapped(
	struct io_thread *thread, enum io_dir dir, uint32_t region, uint64_t offset, uint32_t len)
{
	assert_int_equal(dir, IO_WRITE);
	assert_true(range_within(offset, len, (uint64_t)REGION_PAGES * PAGE_BYTES));
	return f->writable ? f->memory + offset : NULL;
}

void io_count_mapped(struct io_thread *thread, enum io_dir dir, uint64_t bytes)
{
	assert_int_equal(dir, IO_WRITE);
	f->written += bytes;
}

void grant_refill_lend_begin(struct fs *fs)
{
	f->lent++;
}

void grant_refill_lend_end(struct fs *fs)
{
	f->lent--;
}

/* ---- helpers --------------------------------------------------------------------------------- */

static void lend(uint32_t page, uint32_t npages)
{
	struct extent run = {.page = page, .npages = npages};

	grants_add(f->fs.grants, &run);
}

static int setup(void **state)
{
	f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->memory = calloc(REGION_PAGES, PAGE_BYTES);
	f->buf.data = calloc(1, IO_BYTES_MAX);
	assert_true(f->memory && f->buf.data);
	f->maps = f->writable = true;
	fs_wire(&f->fs, &f->parts);
	f->thread.fs = &f->fs;
	f->thread.shared = &f->fs.requests;
	f->thread.priv = &f->priv;
	list_init(&f->priv.used_requests);
	f->req.thread = &f->thread;
	f->req.buf = &f->buf;
	grants_init(f->fs.grants);
	lend(0, REGION_PAGES);
	for (int i = 0; i < 2; i++)
		landing_expect(&f->thread, true);
	return 0;
}

/* Between messages no page is lent, and the pool's pages are zero. */
static int teardown(void **state)
{
	struct extent run;

	assert_int_equal(f->lent, 0);
	while (grants_take(f->fs.grants, 1, NULL, &run))
		for (int i = 0; i < PAGE_BYTES; i++)
			assert_int_equal(f->memory[(size_t)run.page * PAGE_BYTES + i], 0);
	grants_fini(f->fs.grants);
	free(f->memory);
	free(f->buf.data);
	free(f);
	return 0;
}

static uint8_t *open_landing(void)
{
	uint8_t *at = landing_open(&f->thread);

	assert_non_null(at);
	assert_int_equal(f->lent, 1);
	return at;
}

/* Receives a message with so many bytes of payload. */
static uint8_t *receive(uint32_t len, uint8_t byte)
{
	uint8_t *at = open_landing();

	memset(at, byte, len);
	landing_arrived(&f->thread, f->buf.data, len, true);
	return at;
}

static void assert_bytes(const uint8_t *at, uint8_t byte, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(at[i], byte);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void take__keeps_the_pages(void **state)
{
	uint32_t len = 5 * PAGE_BYTES + 100;
	uint8_t *at = receive(len, 7);
	struct extent run;

	assert_true(landing_holds(&f->req));
	landing_peek(&f->req, &run);
	assert_int_equal(run.npages, 6);
	assert_ptr_equal(f->memory + (size_t)run.page * PAGE_BYTES, at);
	landing_take(&f->req);
	assert_false(landing_holds(&f->req));
	landing_done(&f->thread, 0);
	assert_int_equal(grants_count(f->fs.grants), REGION_PAGES - 6);
	assert_bytes(at, 7, len);
	assert_bytes(at + len, 0, PAGE_BYTES - 100);
	assert_bytes(f->buf.data, 0, len);
	assert_int_equal(f->written, len);
}

static void take__the_next_pages_follow(void **state)
{
	uint8_t *first = receive(IO_BYTES_MAX, 1), *second;

	landing_take(&f->req);
	landing_done(&f->thread, 0);
	second = receive(IO_BYTES_MAX, 2);
	landing_take(&f->req);
	landing_done(&f->thread, 0);
	assert_ptr_equal(second, first + IO_BYTES_MAX);
	assert_bytes(first, 1, IO_BYTES_MAX);
}

static void fetch__moves_the_bytes_home(void **state)
{
	uint32_t len = IO_BYTES_MAX;
	uint8_t *at = receive(len, 9);

	landing_fetch(&f->thread);
	assert_false(landing_holds(&f->req));
	assert_bytes(f->buf.data, 9, len);
	assert_bytes(at, 0, len);
	landing_done(&f->thread, 0);
	assert_int_equal(grants_count(f->fs.grants), REGION_PAGES);
	assert_int_equal(f->written, 0);
}

static void close__nobody_wanted_it(void **state)
{
	uint8_t *at = receive(70000, 3);

	landing_done(&f->thread, 0);
	assert_bytes(at, 0, 70000);
	assert_int_equal(grants_count(f->fs.grants), REGION_PAGES);
}

static void holds__not_for_another_request(void **state)
{
	struct data_buffer other = {.data = f->buf.data + PAGE_BYTES};
	struct request req = {.thread = &f->thread};

	receive(PAGE_BYTES, 1);
	assert_false(landing_holds(&req));
	req.buf = &other;
	assert_false(landing_holds(&req));
	landing_done(&f->thread, 0);
}

/* Its caller was killed while we read: some of the bytes may be there. */
static void arrived__in_part(void **state)
{
	uint8_t *at = open_landing();

	memset(at, 5, IO_BYTES_MAX / 2);
	landing_arrived(&f->thread, NULL, -ENOENT, true);
	landing_done(&f->thread, 0);
	assert_bytes(at, 0, IO_BYTES_MAX);
	assert_int_equal(grants_count(f->fs.grants), REGION_PAGES);
}

static void arrived__nothing(void **state)
{
	open_landing();
	landing_arrived(&f->thread, NULL, -EAGAIN, true);
	landing_done(&f->thread, 0);
	assert_int_equal(grants_count(f->fs.grants), REGION_PAGES);
}

/* Such pages are of no use to any request. */
static void arrived__no_memory_there(void **state)
{
	open_landing();
	landing_arrived(&f->thread, NULL, -EFAULT, true);
	landing_done(&f->thread, 0);
	assert_int_equal(grants_count(f->fs.grants), REGION_PAGES - IO_PAGES_MAX);
	assert_null(landing_open(&f->thread));
}

static void open__not_expected(void **state)
{
	landing_expect(&f->thread, false);
	assert_null(landing_open(&f->thread));
	landing_expect(&f->thread, true);
	assert_null(landing_open(&f->thread));
	landing_expect(&f->thread, true);
	open_landing();
	landing_done(&f->thread, 0);
}

static void open__expected_in_vain(void **state)
{
	int tries = 0;

	receive(IO_BYTES_MAX, 0);
	landing_take(&f->req);
	landing_done(&f->thread, 0);
	while (landing_open(&f->thread)) {
		landing_arrived(&f->thread, f->buf.data, 10, true);
		landing_fetch(&f->thread);
		landing_done(&f->thread, 0);
		assert_in_range(++tries, 1, 100);
	}
	assert_true(tries > 5);
}

static void open__nothing_mapped(void **state)
{
	f->maps = false;
	assert_null(landing_open(&f->thread));
}

/* As in a read-only session. */
static void open__not_to_be_written(void **state)
{
	f->writable = false;
	assert_null(landing_open(&f->thread));
	assert_int_equal(grants_count(f->fs.grants), REGION_PAGES);
}

static void open__no_run_is_long_enough(void **state)
{
	struct extent run;

	while (grants_take(f->fs.grants, UINT32_MAX, NULL, &run))
		;
	assert_null(landing_open(&f->thread));
	lend(10, IO_PAGES_MAX - 1);
	assert_null(landing_open(&f->thread));
	assert_int_equal(grants_count(f->fs.grants), IO_PAGES_MAX - 1);
	lend(400, IO_PAGES_MAX);
	open_landing();
	landing_done(&f->thread, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(take__keeps_the_pages),
		CASE(take__the_next_pages_follow),
		CASE(fetch__moves_the_bytes_home),
		CASE(close__nobody_wanted_it),
		CASE(holds__not_for_another_request),
		CASE(arrived__in_part),
		CASE(arrived__nothing),
		CASE(arrived__no_memory_there),
		CASE(open__not_expected),
		CASE(open__expected_in_vain),
		CASE(open__nothing_mapped),
		CASE(open__not_to_be_written),
		CASE(open__no_run_is_long_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
