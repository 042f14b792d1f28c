/* Pages that a snapshot protects, given up and taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "server/base/bits.h"
#include "server/space/protect.h"

enum { REGION_PAGES = 300, PAGES = 500, ASIDE_PAGES = PROTECT_TAKE_PAGES };

static struct {
	struct space space;
	uint8_t *memory[2];
	void *bases[2];
	struct protect *p;
	int fd;
	uint8_t buf[PROTECT_TAKE_PAGES * PAGE_BYTES];
} fx;

static uint8_t pattern(struct page_run run, uint32_t i)
{
	return (uint8_t)(run.region * 91 + (run.page + i) * 7 + 1);
}

static int set_up(void **state)
{
	fx.space = (struct space){.nregions = 2, .npages = PAGES, .region_pages = REGION_PAGES};
	fx.space.in_file = bits_new(PAGES);
	assert_non_null(fx.space.in_file);
	bits_assign(fx.space.in_file, 0, PAGES, true);
	for (uint16_t r = 0; r < 2; r++) {
		fx.memory[r] = malloc((size_t)REGION_PAGES * PAGE_BYTES);
		fx.bases[r] = fx.memory[r];
		for (uint32_t i = 0; i < REGION_PAGES; i++)
			memset(fx.memory[r] + (size_t)i * PAGE_BYTES,
				pattern((struct page_run){r, 0, 0}, i), PAGE_BYTES);
	}
	fx.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fx.p = protect_new(&fx.space, fx.bases);
	assert_non_null(fx.p);
	return 0;
}

static int tear_down(void **state)
{
	protect_end(fx.p);
	protect_delete(fx.p);
	free(fx.space.in_file);
	free(fx.memory[0]);
	free(fx.memory[1]);
	close(fx.fd);
	return 0;
}

static void begin(void)
{
	assert_int_equal(protect_begin(fx.p, ASIDE_PAGES * PAGE_BYTES, fx.fd), 0);
}

static int give_up(uint16_t region, uint32_t page, uint32_t npages)
{
	return protect_give_up(fx.p, (struct page_run){region, page, npages});
}

static void check_bytes(struct page_run run)
{
	for (uint32_t i = 0; i < run.npages; i++)
		for (uint32_t b = 0; b < PAGE_BYTES; b += 511)
			assert_int_equal(fx.buf[i * PAGE_BYTES + b], pattern(run, i));
}

/* Takes all pages that are left; returns their number. */
static uint32_t take_all(uint8_t *seen)
{
	struct page_run run;
	uint32_t n = 0;

	while (protect_take_aside(fx.p, fx.buf, &run) || protect_take_next(fx.p, fx.buf, &run)) {
		check_bytes(run);
		for (uint32_t i = 0; i < run.npages; i++)
			assert_int_equal(seen[run.region * REGION_PAGES + run.page + i]++, 0);
		n += run.npages;
	}
	return n;
}

static void take__every_protected_page_once(void **state)
{
	uint8_t seen[PAGES + 1] = {0};
	uint64_t done, total;

	bits_assign(fx.space.in_file, 3, 100, false);
	bits_assign(fx.space.in_file, 499, 1, false);
	fx.space.now.free = 100;
	fx.space.now.dirty = 1;
	begin();
	assert_int_equal(take_all(seen), PAGES - 101);
	assert_int_equal(seen[3], 0);
	assert_int_equal(seen[102], 0);
	assert_int_equal(seen[499], 0);
	assert_int_equal(seen[498], 1);
	protect_progress(fx.p, &done, &total);
	assert_int_equal(done, PAGES - 101);
	assert_int_equal(total, PAGES - 101);
}

static void give_up__bytes_of_before_are_taken(void **state)
{
	uint8_t seen[PAGES + 1] = {0};

	begin();
	assert_int_equal(give_up(0, 298, 2), 0);
	memset(fx.memory[0] + 298 * PAGE_BYTES, 0xee, (size_t)2 * PAGE_BYTES);
	assert_int_equal(take_all(seen), PAGES);
}

static void give_up__no_room_says_so_and_later(void **state)
{
	uint8_t seen[PAGES + 1] = {0};
	eventfd_t n;

	begin();
	assert_int_equal(give_up(0, 0, ASIDE_PAGES), 0);
	assert_int_equal(give_up(0, 0, ASIDE_PAGES), 0);
	assert_int_equal(give_up(1, 5, 1), -EAGAIN);
	assert_int_equal(eventfd_read(fx.fd, &n), -1);
	assert_int_equal(take_all(seen), PAGES);
	assert_int_equal(eventfd_read(fx.fd, &n), 0);
	assert_int_equal(give_up(1, 5, 1), 0);
}

static void end__what_was_not_taken_is_lost(void **state)
{
	uint8_t seen[PAGES + 1] = {0};

	begin();
	assert_int_equal(take_all(seen), PAGES);
	protect_end(fx.p);
	assert_false(protect_lost(fx.p));
	begin();
	assert_false(protect_lost(fx.p));
	assert_int_equal(give_up(0, 7, 1), 0);
	protect_end(fx.p);
	assert_true(protect_lost(fx.p));
}

static void give_up__nothing_outside_of_a_snapshot(void **state)
{
	struct page_run run;

	assert_int_equal(give_up(0, 0, 300), 0);
	begin();
	protect_end(fx.p);
	assert_int_equal(give_up(0, 0, 300), 0);
	assert_false(protect_take_aside(fx.p, fx.buf, &run));
	assert_false(protect_take_next(fx.p, fx.buf, &run));
}

static void give_up__more_than_there_is_room_for_in_turns(void **state)
{
	uint8_t seen[PAGES + 1] = {0};
	struct page_run run;
	unsigned refused = 0;

	begin();
	assert_true(protect_has_room(fx.p));
	for (; give_up(0, 0, 300) == -EAGAIN; refused++) {
		assert_false(protect_has_room(fx.p));
		assert_true(protect_refused_ms(fx.p));
		while (protect_take_aside(fx.p, fx.buf, &run)) {
			check_bytes(run);
			memset(seen + run.page, 1, run.npages);
		}
		assert_true(protect_has_room(fx.p));
		assert_false(protect_refused_ms(fx.p));
	}
	assert_int_equal(refused, 300 / ASIDE_PAGES);
	take_all(seen);
	for (unsigned i = 0; i < PAGES; i++)
		assert_int_equal(seen[i], 1);
}

static void refused__tells_since_when(void **state)
{
	int64_t before = now_ms(), since;
	uint8_t seen[PAGES + 1] = {0};

	begin();
	assert_int_equal(give_up(0, 0, ASIDE_PAGES), 0);
	assert_int_equal(protect_refused_ms(fx.p), 0);
	assert_int_equal(give_up(1, 5, 1), -EAGAIN);
	since = protect_refused_ms(fx.p);
	assert_in_range(since, before, now_ms());
	usleep(3000);
	assert_int_equal(give_up(1, 5, 1), -EAGAIN);
	assert_false(protect_has_room(fx.p));
	assert_int_equal(protect_refused_ms(fx.p), since);
	take_all(seen);
	assert_int_equal(protect_refused_ms(fx.p), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(take__every_protected_page_once),
		CASE(give_up__bytes_of_before_are_taken),
		CASE(give_up__no_room_says_so_and_later),
		CASE(end__what_was_not_taken_is_lost),
		CASE(give_up__nothing_outside_of_a_snapshot),
		CASE(give_up__more_than_there_is_room_for_in_turns),
		CASE(refused__tells_since_when),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
