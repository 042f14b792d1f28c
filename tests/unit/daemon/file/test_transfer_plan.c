/* The planner: every byte exactly once, at its place, within all limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/util.h"
#include "daemon/file/transfer_plan.h"

struct piece {
	uint32_t region;
	uint64_t offset;
	uint32_t at, len;
};

struct plan_case {
	const char *name;
	struct plan_limits limits;
	struct piece pieces[4];
	uint32_t nworks, nsges;
};

#define KIB(n) ((n)*1024u)

static const struct plan_case cases[] = {
	{"one page", {30, KIB(1024), 1}, {{0, 4096, 0, 4096}}, 1, 1},
	{"inside a page", {30, KIB(1024), 1}, {{0, 5000, 0, 100}}, 1, 1},
	{"over a page's end", {30, KIB(1024), 1}, {{0, 4000, 0, 200}}, 1, 2},
	{"1 MiB by pages", {30, KIB(1024), 1}, {{2, 0, 0, KIB(1024)}}, 9, 256},
	{"1 MiB unaligned", {30, KIB(1024), 1}, {{2, 512, 0, KIB(1024)}}, 9, 257},
	{"1 MiB merged by 8", {30, KIB(1024), 8}, {{2, 0, 0, KIB(1024)}}, 2, 32},
	{"1 MiB merged whole", {30, KIB(1024), 256}, {{2, 0, 0, KIB(1024)}}, 1, 1},
	{"1 MiB merged whole, unaligned", {30, KIB(1024), 257}, {{2, 1, 0, KIB(1024)}}, 1, 1},
	{"work bytes", {30, KIB(256), 256}, {{0, 0, 0, KIB(1024)}}, 4, 4},
	{"work bytes, unaligned", {30, KIB(256), 256}, {{0, 100, 0, KIB(512)}}, 3, 3},
	{"one SGE a work", {1, KIB(1024), 1}, {{0, 0, 0, KIB(64)}}, 16, 16},
	{"extents that adjoin", {30, KIB(1024), 256}, {{0, 0, 0, 8192}, {0, 8192, 8192, 4096}}, 1,
		1},
	{"extents apart", {30, KIB(1024), 256}, {{0, 0, 0, 8192}, {0, 16384, 8192, 4096}}, 2, 2},
	{"regions", {30, KIB(1024), 256}, {{0, 4096, 0, 4096}, {1, 8192, 4096, 4096}}, 2, 2},
	{"a hole between, remotely adjoining", {30, KIB(1024), 256},
		{{0, 0, 0, 4096}, {0, 4096, 12288, 4096}}, 1, 2},
	{"nothing", {30, KIB(1024), 1}, {{0}}, 0, 0},
};

static struct data_buffer *new_buffer(void)
{
	struct data_buffer *buf = calloc(1, sizeof(*buf));

	assert_non_null(buf);
	buf->data = aligned_alloc(PAGE_BYTES, IO_BYTES_MAX);
	assert_non_null(buf->data);
	return buf;
}

static void free_buffer(struct data_buffer *buf)
{
	free(buf->data);
	free(buf);
}

static uint32_t work_len(const struct work *work)
{
	uint32_t len = 0;

	for (uint32_t i = 0; i < work->nsge; i++)
		len += work->sge[i].len;
	return len;
}

/* Finds where the plan puts the byte at `at` of the buffer; returns how often it is planned. */
static unsigned find_byte(const struct plan *plan, uint32_t at, uint32_t *region, uint64_t *offset)
{
	unsigned times = 0;

	for (uint32_t w = 0; w < plan->nworks; w++) {
		const struct work *work = &plan->buf->works[w];
		uint64_t pos = work->offset;

		for (uint32_t i = 0; i < work->nsge; i++) {
			uint32_t start = (uint32_t)((uint8_t *)work->sge[i].addr - plan->buf->data);

			if (at >= start && at - start < work->sge[i].len) {
				times++;
				*region = work->region;
				*offset = pos + (at - start);
			}
			pos += work->sge[i].len;
		}
	}
	return times;
}

static void check_limits(const struct plan *plan)
{
	uint32_t nsges = 0;

	for (uint32_t w = 0; w < plan->nworks; w++) {
		const struct work *work = &plan->buf->works[w];

		assert_in_range(work->nsge, 1, plan->limits.max_sge);
		assert_in_range(work_len(work), 1, plan->limits.max_work_bytes);
		nsges += work->nsge;
		for (uint32_t i = 0; i < work->nsge; i++)
			assert_in_range(work->sge[i].len, 1, plan->limits.merge_pages * PAGE_BYTES);
	}
	assert_int_equal(nsges, plan->nsges);
}

/* Checks all bytes near the edges of pieces and pages, and some between. */
static void check_piece(const struct plan *plan, const struct piece *piece)
{
	for (uint32_t i = 0; i < piece->len; i += i % PAGE_BYTES == PAGE_BYTES - 1 ? 1 : 97) {
		uint32_t region = UINT32_MAX;
		uint64_t offset = 0;

		assert_int_equal(find_byte(plan, piece->at + i, &region, &offset), 1);
		assert_int_equal(region, piece->region);
		assert_int_equal(offset, piece->offset + i);
	}
}

static void plan__table(void **state)
{
	struct data_buffer *buf = new_buffer();

	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		const struct plan_case *tc = &cases[c];
		struct plan plan;

		transfer_plan_init(&plan, buf, &tc->limits);
		for (size_t i = 0; i < ARRAY_SIZE(tc->pieces) && tc->pieces[i].len; i++)
			transfer_plan_add(&plan, tc->pieces[i].region, tc->pieces[i].offset,
				tc->pieces[i].at, tc->pieces[i].len);
		if (plan.nworks != tc->nworks || plan.nsges != tc->nsges)
			fail_msg("%s: %u works, %u SGEs", tc->name, plan.nworks, plan.nsges);
		check_limits(&plan);
		for (size_t i = 0; i < ARRAY_SIZE(tc->pieces) && tc->pieces[i].len; i++)
			check_piece(&plan, &tc->pieces[i]);
	}
	free_buffer(buf);
}

/* The worst request of 1 MiB: unaligned, each page elsewhere. */
static void plan__every_page_elsewhere__fits(void **state)
{
	const struct plan_limits limits = {1, PAGE_BYTES, 1};
	struct data_buffer *buf = new_buffer();
	uint32_t at = 0, in_page = 100;
	struct plan plan;

	transfer_plan_init(&plan, buf, &limits);
	for (uint32_t page = 0; at < IO_BYTES_MAX; page += 2) {
		uint32_t len = PAGE_BYTES - in_page;

		if (len > IO_BYTES_MAX - at)
			len = IO_BYTES_MAX - at;
		transfer_plan_add(&plan, 0, ((uint64_t)page << PAGE_SHIFT) + in_page, at, len);
		at += len;
		in_page = 0;
	}
	assert_int_equal(plan.nworks, 257);
	check_limits(&plan);
	free_buffer(buf);
}

static void plan__random__every_byte_once(void **state)
{
	struct data_buffer *buf = new_buffer();
	unsigned seed = 815;

	for (int round = 0; round < 60; round++) {
		const struct plan_limits limits = {1 + (uint32_t)rand_r(&seed) % 32,
			PAGE_BYTES * (1 + (uint32_t)rand_r(&seed) % 64),
			1 + (uint32_t)rand_r(&seed) % 16};
		struct piece pieces[16];
		uint32_t at = 0, n = 0;
		struct plan plan;

		transfer_plan_init(&plan, buf, &limits);
		for (; n < ARRAY_SIZE(pieces) && at < KIB(256); n++) {
			pieces[n] = (struct piece){(uint32_t)rand_r(&seed) % 2,
				(uint64_t)rand_r(&seed) % KIB(1024), at,
				1 + (uint32_t)rand_r(&seed) % KIB(32)};
			transfer_plan_add(
				&plan, pieces[n].region, pieces[n].offset, at, pieces[n].len);
			at += pieces[n].len + (uint32_t)rand_r(&seed) % 2 * 5000;
		}
		check_limits(&plan);
		for (uint32_t i = 0; i < n; i++)
			check_piece(&plan, &pieces[i]);
	}
	free_buffer(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan__table),
		cmocka_unit_test(plan__every_page_elsewhere__fits),
		cmocka_unit_test(plan__random__every_byte_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
