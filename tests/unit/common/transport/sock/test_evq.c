/* test_evq.c - the event queue of the socket transports: no notification is lost in a sleep. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/transport/sock/evq.h"

struct fixture {
	struct evq *base;
	struct sock_source one, other;
	unsigned npolls;
	bool one_notifies;
};

static int poll_one(struct sock_source *s, struct event *events, int max)
{
	struct fixture *fx = container_of(s, struct fixture, one);

	if (fx->one_notifies)
		sock_source_notify(&fx->other);
	return 0;
}

static int poll_other(struct sock_source *s, struct event *events, int max)
{
	container_of(s, struct fixture, other)->npolls++;
	return 0;
}

static int setup(void **state)
{
	static struct fixture fx;
	struct sock_evq *q;

	fx = (struct fixture){0};
	assert_int_equal(sock_evq_new(NULL, &fx.base), 0);
	q = container_of(fx.base, struct sock_evq, base);
	sock_source_init(&fx.one, q, poll_one);
	sock_source_init(&fx.other, q, poll_other);
	*state = &fx;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;

	sock_source_fini(&fx->one);
	sock_source_fini(&fx->other);
	sock_evq_delete(fx->base);
	return 0;
}

static bool readable(struct fixture *fx)
{
	struct pollfd pfd = {.fd = sock_evq_fd(fx->base), .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

static int poll_queue(struct fixture *fx)
{
	struct event events[4];

	return sock_evq_poll(fx->base, events, 4);
}

static void notify__wakes_an_armed_queue(void **state)
{
	struct fixture *fx = *state;

	sock_evq_arm(fx->base);
	assert_false(readable(fx));
	sock_source_notify(&fx->other);
	assert_true(readable(fx));
	poll_queue(fx);
	assert_int_equal(fx->npolls, 1);
}

static void arm__makes_the_queue_quiet_again(void **state)
{
	struct fixture *fx = *state;

	for (int i = 0; i < 3; i++) {
		sock_evq_arm(fx->base);
		assert_int_equal(poll_queue(fx), 0);
		assert_false(readable(fx));
		sock_source_notify(&fx->other);
		sock_source_notify(&fx->one);
		assert_true(readable(fx));
	}
}

/* A notification comes when the poll between arming and sleeping has looked for notifications
 * already. */
static void notify__in_the_middle_of_a_poll_is_not_slept_through(void **state)
{
	struct fixture *fx = *state;

	sock_evq_arm(fx->base);
	fx->one_notifies = true;
	sock_source_pend(&fx->one);
	assert_int_equal(poll_queue(fx), 0);
	assert_int_equal(fx->npolls, 0);
	assert_true(readable(fx));
	fx->one_notifies = false;
	poll_queue(fx);
	assert_int_equal(fx->npolls, 1);
}

static void notify__of_an_unarmed_queue_is_found_by_the_poll_after_arming(void **state)
{
	struct fixture *fx = *state;

	sock_source_notify(&fx->other);
	assert_false(readable(fx));
	sock_evq_arm(fx->base);
	poll_queue(fx);
	assert_int_equal(fx->npolls, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(notify__wakes_an_armed_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(arm__makes_the_queue_quiet_again, setup, teardown),
		cmocka_unit_test_setup_teardown(
			notify__in_the_middle_of_a_poll_is_not_slept_through, setup, teardown),
		cmocka_unit_test_setup_teardown(
			notify__of_an_unarmed_queue_is_found_by_the_poll_after_arming, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
