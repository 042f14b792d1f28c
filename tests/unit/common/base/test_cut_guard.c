/* Accesses to mappings of files that were cut. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "common/base/cut_guard.h"
#include "common/base/map.h"
#include "common/base/util.h"
#include "tests/unit/take_sigbus.h"

enum { NPAGES = 64, LEN = NPAGES * PAGE_BYTES };

static struct fixture {
	int fd;
	uint8_t *at;
	struct cut_guard guard;
	atomic_bool also;
} fx;

/* Not a set-up of cmocka, which would take SIGBUS after it. */
static void begin(void)
{
	void *addr;

	fx = (struct fixture){.fd = memfd_create("cut", MFD_CLOEXEC)};
	assert_true(fx.fd >= 0);
	assert_int_equal(ftruncate(fx.fd, LEN), 0);
	assert_int_equal(map_file(fx.fd, LEN, PROT_READ | PROT_WRITE, &addr), 0);
	fx.at = addr;
	memset(fx.at, 0x5a, LEN);
	assert_int_equal(cut_guard_add(&fx.guard, fx.fd, fx.at, LEN, &fx.also), 0);
}

static int tear_down(void **state)
{
	cut_guard_remove(&fx.guard);
	munmap(fx.at, LEN);
	close(fx.fd);
	return 0;
}

static bool is_filled(const uint8_t *at, size_t len, uint8_t byte)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != byte)
			return false;
	return true;
}

static void cut_guard__leaves_a_whole_file_alone(void **state)
{
	begin();
	assert_true(is_filled(fx.at, LEN, 0x5a));
	assert_false(cut_guard_is_struck(&fx.guard));
	assert_false(fx.also);
}

static void cut_guard__reads_zeros_where_the_file_was_cut(void **state)
{
	static uint8_t copy[LEN];

	begin();
	assert_int_equal(ftruncate(fx.fd, LEN / 2), 0);
	assert_true(is_filled(fx.at, LEN / 2, 0x5a));
	assert_false(cut_guard_is_struck(&fx.guard));
	memcpy(copy, fx.at, LEN);
	assert_true(is_filled(copy, LEN / 2, 0x5a));
	assert_true(is_filled(copy + LEN / 2, LEN / 2, 0));
	assert_true(cut_guard_is_struck(&fx.guard));
	assert_true(fx.also);
}

static void cut_guard__writes_go_on_and_reach_no_file(void **state)
{
	uint8_t byte;

	begin();
	assert_int_equal(ftruncate(fx.fd, 0), 0);
	memset(fx.at, 1, LEN);
	assert_true(cut_guard_is_struck(&fx.guard));
	assert_int_equal(ftruncate(fx.fd, LEN), 0);
	assert_int_equal(pread(fx.fd, &byte, 1, LEN / 2), 1);
	assert_int_equal(byte, 0);
}

static void cut_guard__tells_mappings_apart(void **state)
{
	int fd = memfd_create("other", MFD_CLOEXEC);
	struct cut_guard other;
	void *at;

	begin();
	assert_int_equal(ftruncate(fd, LEN), 0);
	assert_int_equal(map_file(fd, LEN, PROT_READ, &at), 0);
	assert_int_equal(cut_guard_add(&other, fd, at, LEN, NULL), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(((volatile uint8_t *)at)[LEN - 1], 0);
	assert_true(cut_guard_is_struck(&other));
	assert_false(cut_guard_is_struck(&fx.guard));
	cut_guard_remove(&other);
	cut_guard_remove(&other);
	munmap(at, LEN);
	close(fd);
}

enum { NTHREADS = 4 };

/* Each thread has pages of its own, beside those of the others. */
static void *touch(void *first)
{
	for (uint8_t *page = first; page < fx.at + LEN; page += NTHREADS * PAGE_BYTES)
		*(volatile uint8_t *)page = 1;
	return NULL;
}

static void cut_guard__holds_for_several_threads_at_once(void **state)
{
	pthread_t threads[NTHREADS];

	begin();
	assert_int_equal(ftruncate(fx.fd, 0), 0);
	for (size_t i = 0; i < NTHREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, touch, fx.at + i * PAGE_BYTES), 0);
	for (size_t i = 0; i < NTHREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_true(cut_guard_is_struck(&fx.guard));
}

static void cut_guard__refuses_what_is_no_descriptor(void **state)
{
	struct cut_guard other = {.len = 0};

	begin();
	assert_int_equal(cut_guard_add(&other, -1, fx.at, LEN, NULL), -EBADF);
}

/* The status of a child that does this. */
static int child_does(void (*act)(void))
{
	struct rlimit none = {0};
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGBUS, SIG_DFL);
		take_sigbus();
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void touch_unguarded(void)
{
	cut_guard_remove(&fx.guard);
	if (ftruncate(fx.fd, 0) == 0)
		((volatile uint8_t *)fx.at)[0] = 1;
}

static void send_sigbus(void)
{
	raise(SIGBUS);
}

static void cut_guard__lets_any_other_sigbus_end_the_process(void **state)
{
	begin();
	assert_int_equal(WTERMSIG(child_does(touch_unguarded)), SIGBUS);
	assert_int_equal(WTERMSIG(child_does(send_sigbus)), SIGBUS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(cut_guard__leaves_a_whole_file_alone, tear_down),
		cmocka_unit_test_teardown(cut_guard__reads_zeros_where_the_file_was_cut, tear_down),
		cmocka_unit_test_teardown(cut_guard__writes_go_on_and_reach_no_file, tear_down),
		cmocka_unit_test_teardown(cut_guard__tells_mappings_apart, tear_down),
		cmocka_unit_test_teardown(cut_guard__holds_for_several_threads_at_once, tear_down),
		cmocka_unit_test_teardown(cut_guard__refuses_what_is_no_descriptor, tear_down),
		cmocka_unit_test_teardown(
			cut_guard__lets_any_other_sigbus_end_the_process, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
