/* The memory that messages are read into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <sys/mman.h>

#include "common/base/util.h"
#include "daemon/fuse/decode.h"
#include "daemon/request/io_thread_private.h"

enum { PAGE = 4096, NBUFFERS = 2, PAGES_MAX = FUSE_MESSAGE_BYTES_MAX / PAGE + 2 };

static struct io_thread_private priv;
static struct request_shared shared;
static struct io_thread thread = {.priv = &priv, .shared = &shared};

static int setup(void **state)
{
	priv = (struct io_thread_private){0};
	shared = (struct request_shared){0};
	list_init(&priv.free_requests);
	list_init(&priv.used_requests);
	return request_pools_init(&thread, NBUFFERS);
}

static int teardown(void **state)
{
	request_pools_fini(&thread);
	return 0;
}

/* Whether the kernel can copy the longest message there without getting a page first. */
static bool is_present(const uint8_t *msg)
{
	uintptr_t from = (uintptr_t)msg / PAGE * PAGE;
	size_t len = (uintptr_t)msg + FUSE_MESSAGE_BYTES_MAX - from;
	unsigned char pages[PAGES_MAX];

	assert_int_equal(mincore((void *)from, len, pages), 0);
	for (size_t i = 0; i < div_round_up(len, PAGE); i++)
		if (!(pages[i] & 1))
			return false;
	return true;
}

static void room__of_a_revivable_mount__is_there(void **state)
{
	shared.revivable = true;
	for (unsigned i = 0; i < NBUFFERS; i++) {
		priv.recv = NULL;
		assert_true(request_refill_recv(&priv));
		assert_ptr_equal(request_room(&thread), priv.recv->data - PAYLOAD_HEAD_BYTES);
		assert_true(is_present(request_room(&thread)));
	}
	priv.recv = NULL;
	assert_false(request_refill_recv(&priv));
	assert_ptr_equal(request_room(&thread), priv.spare - PAYLOAD_HEAD_BYTES);
	assert_true(is_present(request_room(&thread)));
}

static void room__is_touched_once(void **state)
{
	uint8_t *msg;

	shared.revivable = true;
	assert_true(request_refill_recv(&priv));
	msg = request_room(&thread);
	msg[0] = 1;
	priv.recv->data[0] = 2;
	assert_int_equal(request_room(&thread)[0], 1);
	assert_int_equal(priv.recv->data[0], 2);
}

/* Others take memory only as they need it. */
static void room__of_another_mount__is_as_it_was(void **state)
{
	assert_true(request_refill_recv(&priv));
	assert_false(is_present(request_room(&thread)));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			room__of_a_revivable_mount__is_there, setup, teardown),
		cmocka_unit_test_setup_teardown(room__is_touched_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			room__of_another_mount__is_as_it_was, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
