/* test_receives.c - the accounts of shared receives, against a model of a device whose queue pairs
 * take receives along when they die. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/transport/verbs/receives.h"
#include "common/base/util.h"

enum { SLOTS = 24, PAIRS = 6, SPARE = 8, NONE = SLOTS };

struct fifo {
	uint32_t slots[SLOTS], n;
};

struct pair {
	bool lives;
	struct receives_user user;
	uint32_t taken; /* for a message that is arriving; NONE */
	struct fifo completed;
};

struct device {
	struct receives books;
	struct fifo queue;
	struct pair pairs[PAIRS];
	unsigned nlost, nfound, nanew;
};

static void push(struct fifo *f, uint32_t slot)
{
	assert_true(f->n < SLOTS);
	f->slots[f->n++] = slot;
}

static uint32_t pop(struct fifo *f)
{
	uint32_t slot = f->slots[0];

	assert_true(f->n > 0);
	f->n--;
	memmove(f->slots, f->slots + 1, f->n * sizeof(*f->slots));
	return slot;
}

static bool has(const struct fifo *f, uint32_t slot)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->slots[i] == slot)
			return true;
	return false;
}

static int setup(void **state)
{
	struct device *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	assert_int_equal(receives_init(&d->books, SLOTS), 0);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct device *d = *state;

	receives_fini(&d->books);
	free(d);
	return 0;
}

/* A message may still arrive in memory that the device has: that must not be posted twice. */
static bool is_somewhere(const struct device *d, uint32_t slot)
{
	bool found = has(&d->queue, slot);

	for (int i = 0; i < PAIRS; i++)
		found |= d->pairs[i].lives &&
			 (d->pairs[i].taken == slot || has(&d->pairs[i].completed, slot));
	return found;
}

static void post(struct device *d, uint32_t slot)
{
	assert_false(is_somewhere(d, slot));
	receives_posted(&d->books, slot);
	push(&d->queue, slot);
}

static void add(struct device *d, unsigned n)
{
	while (n--)
		post(d, receives_add(&d->books));
}

static struct pair *join(struct device *d, int i)
{
	d->pairs[i] = (struct pair){.lives = true, .taken = NONE};
	receives_join(&d->books, &d->pairs[i].user);
	return &d->pairs[i];
}

static bool take(struct device *d, struct pair *p)
{
	if (p->taken != NONE || !d->queue.n)
		return false;
	p->taken = pop(&d->queue);
	return true;
}

static void complete(struct pair *p)
{
	if (p->taken != NONE)
		push(&p->completed, p->taken);
	p->taken = NONE;
}

static void completed(struct device *d, struct pair *p, uint32_t slot)
{
	bool over = receives_completed(&d->books, &p->user, slot);

	post(d, slot);
	if (!over)
		return;
	slot = receives_lost(&d->books, 0);
	for (; slot < d->books.n; slot = receives_lost(&d->books, slot + 1)) {
		d->nfound++;
		post(d, slot);
	}
	receives_next_round(&d->books);
}

/* Reports up to n completions. */
static void tell(struct device *d, struct pair *p, unsigned n)
{
	while (n-- && p->completed.n)
		completed(d, p, pop(&p->completed));
	if (!p->completed.n)
		receives_emptied(&d->books, &p->user);
}

static void message(struct device *d, struct pair *p)
{
	assert_true(take(d, p));
	complete(p);
	tell(d, p, SLOTS);
}

/* flushes: the device completes all receives that the queue pair had, and says so. */
static void die(struct device *d, struct pair *p, bool flushes)
{
	if (flushes)
		complete(p);
	tell(d, p, SLOTS);
	d->nlost += p->taken != NONE;
	p->lives = false;
	receives_leave(&d->books, &p->user, flushes);
}

/* No queue pair is left to find lost receives: they go with the queue. */
static void begin_anew(struct device *d)
{
	receives_clear(&d->books);
	d->queue.n = 0;
	d->nfound = d->nlost;
	d->nanew++;
}

static void messages(struct device *d, struct pair *p, unsigned n)
{
	while (n--)
		message(d, p);
}

static void leave__sure_starts_no_search(void **state)
{
	struct device *d = *state;
	struct pair *p = join(d, 0);

	add(d, 8);
	join(d, 1);
	take(d, p);
	die(d, p, true);
	assert_int_equal(receives_doubts(&d->books), 0);
	assert_int_equal(d->queue.n, 8);
}

static void lost__is_found_when_all_others_have_spoken(void **state)
{
	struct device *d = *state;
	struct pair *p = join(d, 0), *q = join(d, 1), *r = join(d, 2);

	add(d, 8);
	take(d, p);
	die(d, p, false);
	assert_int_equal(receives_doubts(&d->books), 1);
	messages(d, q, 100);
	assert_int_equal(d->queue.n, 7);
	assert_int_not_equal(receives_doubts(&d->books), 0);
	messages(d, r, 2);
	messages(d, q, 3);
	messages(d, r, 2);
	messages(d, q, 3);
	assert_int_equal(d->nfound, 1);
	assert_int_equal(d->queue.n, 8);
	messages(d, q, 30);
	messages(d, r, 2);
	messages(d, q, 2);
	messages(d, r, 2);
	messages(d, q, 2);
	assert_int_equal(receives_doubts(&d->books), 0);
}

/* One message has been arriving for so long that all others have passed it by many times. */
static void lost__is_not_what_a_slow_one_has(void **state)
{
	struct device *d = *state;
	struct pair *p = join(d, 0), *q = join(d, 1), *r = join(d, 2);

	add(d, 8);
	take(d, p);
	take(d, r);
	die(d, p, false);
	for (int i = 0; i < 200; i++)
		message(d, q);
	assert_int_equal(d->nfound, 0);
	/* Its completion was there before it was seen empty, so it proves nothing yet. */
	complete(r);
	tell(d, r, SLOTS);
	assert_int_equal(d->nfound, 0);
	messages(d, q, 20);
	messages(d, r, 3);
	messages(d, q, 20);
	messages(d, r, 3);
	messages(d, q, 1);
	assert_int_equal(d->nfound, 1);
	assert_int_equal(d->queue.n, 8);
}

/* It reports an older message first, which was complete before the search began. */
static void lost__is_not_what_is_taken_by_who_tells_late(void **state)
{
	struct device *d = *state;
	struct pair *p = join(d, 0), *q = join(d, 1), *r = join(d, 2);

	add(d, 8);
	take(d, r);
	complete(r);
	take(d, r);
	messages(d, q, 100);
	die(d, p, false);
	tell(d, r, SLOTS);
	messages(d, q, 100);
	assert_int_equal(d->nfound, 0);
	assert_int_not_equal(receives_doubts(&d->books), 0);
}

static void lost__is_found_when_the_slow_one_dies(void **state)
{
	struct device *d = *state;
	struct pair *p = join(d, 0), *q = join(d, 1), *r = join(d, 2);

	add(d, 8);
	take(d, p);
	take(d, r);
	die(d, p, false);
	messages(d, q, 100);
	assert_int_equal(d->nfound, 0);
	die(d, r, false);
	messages(d, q, 100);
	assert_int_equal(d->nfound, 2);
	assert_int_equal(receives_doubts(&d->books), 0);
}

static void lost__is_found_when_there_was_nobody(void **state)
{
	struct device *d = *state;
	struct pair *p = join(d, 0);

	add(d, 8);
	take(d, p);
	die(d, p, false);
	messages(d, join(d, 1), 100);
	assert_int_equal(d->nfound, 1);
	assert_int_equal(receives_doubts(&d->books), 0);
}

/* Each new queue pair is gone, with its receive, before the next one comes. The one that stays has
 * completed less by then than a search needs. */
static void search__ends_while_others_come_and_go(void **state)
{
	struct device *d = *state;
	struct pair *p, *q = join(d, 0);

	add(d, SLOTS);
	for (int i = 0; i < 100; i++) {
		p = join(d, 1);
		assert_true(take(d, p));
		die(d, p, false);
		messages(d, q, SLOTS / 3);
		assert_true(receives_doubts(&d->books) <= 8);
	}
	assert_true(d->nfound >= 100 - 8);
	messages(d, q, 3 * SLOTS);
	assert_int_equal(d->nfound, 100);
	assert_int_equal(d->queue.n, SLOTS);
	assert_int_equal(receives_doubts(&d->books), 0);
}

static void search__is_over_before_that_for_who_went_meanwhile(void **state)
{
	struct device *d = *state;
	struct pair *p = join(d, 0), *q = join(d, 1), *r = join(d, 2);

	add(d, 8);
	take(d, p);
	die(d, p, false);
	messages(d, q, 7);
	take(d, r);
	die(d, r, false);
	assert_int_equal(receives_doubts(&d->books), 2);
	messages(d, q, 2);
	assert_int_equal(d->nfound, 1);
	assert_int_equal(receives_doubts(&d->books), 1);
	messages(d, q, 12);
	assert_int_equal(d->nfound, 2);
	assert_int_equal(receives_doubts(&d->books), 0);
}

/* Each queue pair that goes has taken one receive. Those that stay still have enough, and none may
 * join that would leave less. */
static void fits__while_enough_are_left_for_the_others(void **state)
{
	struct device *d = *state;
	unsigned n = 0;

	add(d, SLOTS);
	join(d, 0);
	while (receives_fits(&d->books, SPARE)) {
		struct pair *p = join(d, 1);

		assert_true(take(d, p));
		die(d, p, false);
		n++;
	}
	assert_int_equal(n, SLOTS - SPARE - 1);
	assert_int_equal(receives_doubts(&d->books), n);
	assert_int_equal(d->queue.n, SPARE + 1);
	messages(d, &d->pairs[0], 4 * SLOTS);
	assert_int_equal(d->nfound, n);
	assert_true(receives_fits(&d->books, SPARE));
}

static void fits__who_is_there_counts_too(void **state)
{
	struct device *d = *state;

	join(d, 0);
	join(d, 1);
	assert_true(receives_fits(&d->books, SLOTS - 3));
	assert_false(receives_fits(&d->books, SLOTS - 2));
	die(d, &d->pairs[0], false);
	assert_true(receives_fits(&d->books, SLOTS - 3));
	assert_false(receives_fits(&d->books, SLOTS - 2));
	die(d, &d->pairs[1], true);
	assert_true(receives_fits(&d->books, SLOTS - 2));
}

static void abandoned__nobody_is_left_and_something_may_be_lost(void **state)
{
	struct device *d = *state;

	add(d, 8);
	assert_false(receives_abandoned(&d->books));
	die(d, join(d, 0), true);
	assert_false(receives_abandoned(&d->books));
	join(d, 0);
	join(d, 1);
	take(d, &d->pairs[0]);
	die(d, &d->pairs[0], false);
	assert_false(receives_abandoned(&d->books));
	die(d, &d->pairs[1], true);
	assert_true(receives_abandoned(&d->books));
}

static void clear__all_is_as_in_the_beginning(void **state)
{
	struct device *d = *state;

	for (int i = 0; i < 3; i++) {
		struct pair *p = join(d, 0);

		add(d, SLOTS);
		messages(d, p, 5);
		take(d, p);
		die(d, p, false);
		begin_anew(d);
		assert_int_equal(d->books.n, 0);
		assert_int_equal(receives_doubts(&d->books), 0);
		assert_false(receives_abandoned(&d->books));
	}
	assert_int_equal(d->books.posted[receives_add(&d->books)], 0);
	receives_clear(&d->books);
	/* As if it had never lost any: nothing is to be found. */
	add(d, 8);
	messages(d, join(d, 0), 100);
	assert_int_equal(d->nfound, d->nlost);
	assert_int_equal(d->queue.n, 8);
}

static void random_step(struct device *d)
{
	struct pair *p = &d->pairs[rand() % PAIRS];
	int chance;

	if (!p->lives) {
		/* Now and then all are gone. */
		if (rand() % 16 == 0 && receives_fits(&d->books, SPARE))
			join(d, (int)(p - d->pairs));
		return;
	}
	chance = rand() % 32;
	if (chance == 0) {
		die(d, p, rand() % 2);
		if (receives_abandoned(&d->books)) {
			begin_anew(d);
			add(d, SLOTS);
		}
	} else if (chance <= 12)
		take(d, p);
	else if (chance <= 22)
		complete(p);
	else
		tell(d, p, (unsigned)(1 + rand() % 4));
}

static void random__never_twice_and_none_for_ever(void **state)
{
	struct device *d = *state;

	srand(17);
	add(d, SLOTS);
	for (int i = 0; i < 300000; i++) {
		random_step(d);
		assert_true(d->nlost - d->nfound <= receives_doubts(&d->books));
	}
	assert_true(d->nlost > 1000);
	assert_true(d->nanew > 10);
	for (int i = 0; i < PAIRS; i++) {
		if (!d->pairs[i].lives)
			join(d, i);
		complete(&d->pairs[i]);
		tell(d, &d->pairs[i], SLOTS);
	}
	for (int i = 0; i < 200; i++)
		for (int j = 0; j < PAIRS; j++)
			message(d, &d->pairs[j]);
	assert_int_equal(d->nfound, d->nlost);
	assert_int_equal(d->queue.n, SLOTS);
	assert_int_equal(receives_doubts(&d->books), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(leave__sure_starts_no_search),
		CASE(lost__is_found_when_all_others_have_spoken),
		CASE(lost__is_not_what_a_slow_one_has),
		CASE(lost__is_not_what_is_taken_by_who_tells_late),
		CASE(lost__is_found_when_the_slow_one_dies),
		CASE(lost__is_found_when_there_was_nobody),
		CASE(search__ends_while_others_come_and_go),
		CASE(search__is_over_before_that_for_who_went_meanwhile),
		CASE(fits__while_enough_are_left_for_the_others),
		CASE(fits__who_is_there_counts_too),
		CASE(abandoned__nobody_is_left_and_something_may_be_lost),
		CASE(clear__all_is_as_in_the_beginning),
		CASE(random__never_twice_and_none_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
