/* The messages to a service manager, and that nothing waits for one that does not read. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/service.h"

enum { HANG_S = 20 };

static struct manager {
	struct sockaddr_un address;
	int fd;
} manager;

static int manager_begin(void **state)
{
	manager.address.sun_family = AF_UNIX;
	snprintf(manager.address.sun_path, sizeof(manager.address.sun_path),
		"/tmp/rmemfs-unit.%d.manager", (int)getpid());
	manager.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	setenv("NOTIFY_SOCKET", manager.address.sun_path, 1);
	alarm(HANG_S);
	return bind(manager.fd, (struct sockaddr *)&manager.address, sizeof(manager.address));
}

static int manager_end(void **state)
{
	alarm(0);
	service_close();
	close(manager.fd);
	unlink(manager.address.sun_path);
	return 0;
}

/* The manager's next message is this; NULL: there is none. */
static void assert_said(const char *expected)
{
	char text[2048] = "";
	ssize_t n = recv(manager.fd, text, sizeof(text) - 1, 0);

	if (expected)
		assert_string_equal(text, expected);
	else
		assert_int_equal(n, -1);
}

/* How many messages of one more sender the manager's queue takes. */
static unsigned send_many(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	unsigned n = 0;

	while (sendto(fd, "x", 1, 0, (struct sockaddr *)&manager.address,
		       sizeof(manager.address)) == 1)
		n++;
	assert_int_equal(errno, EAGAIN);
	close(fd);
	return n;
}

/* Other services have filled the manager's queue. A long one (net.unix.max_dgram_qlen) takes more
 * than the send buffer of one of them. */
static void fill_queue(void)
{
	while (send_many())
		continue;
}

static void empty_queue(void)
{
	char text[2048];
	ssize_t n;

	while ((n = recv(manager.fd, text, sizeof(text), 0)) > 0)
		assert_int_equal(n, 1);
}

static void watchdog(const char *usec, int pid)
{
	char text[16];

	setenv("WATCHDOG_USEC", usec, 1);
	snprintf(text, sizeof(text), "%d", pid);
	setenv("WATCHDOG_PID", text, 1);
}

static void open__without_a_manager(void **state)
{
	unsetenv("NOTIFY_SOCKET");
	assert_false(service_open());
	setenv("NOTIFY_SOCKET", "vsock:2:1", 1);
	assert_false(service_open());
	setenv("NOTIFY_SOCKET", "relative", 1);
	assert_false(service_open());
	service_ready();
	service_status("a");
	service_progress("b");
	service_failed(-EIO, "c");
	assert_int_equal(service_tick(now_ms(), true), -1);
	assert_said(NULL);
}

static void open__an_abstract_socket(void **state)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(un);
	char name[32];
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	char text[32] = "";

	/* The kernel chooses the name. */
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&un, &len), 0);
	snprintf(
		name, sizeof(name), "@%.*s", (int)(len - sizeof(sa_family_t) - 1), un.sun_path + 1);
	setenv("NOTIFY_SOCKET", name, 1);
	assert_true(service_open());
	service_ready();
	assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "READY=1");
	close(fd);
}

static void say__states_at_once(void **state)
{
	char text[128] = "";

	assert_true(service_open());
	service_ready();
	assert_said("READY=1");
	service_reloading();
	assert_true(recv(manager.fd, text, sizeof(text) - 1, 0) > 0);
	assert_memory_equal(text, "RELOADING=1\nMONOTONIC_USEC=", 27);
	service_ready();
	service_stopping("all %s", "ends");
	assert_said("READY=1");
	assert_said("STOPPING=1\nSTATUS=all ends");
	service_failed(-ENOENT, "no such\nthing");
	assert_said("STATUS=no such?thing\nERRNO=2");
	assert_int_equal(service_tick(now_ms(), true), -1);
}

static void status__once_a_second_and_the_last_one(void **state)
{
	int64_t now = now_ms(), due;

	assert_true(service_open());
	service_status("one");
	service_status("two");
	service_status("three %d", 3);
	assert_said("STATUS=one");
	assert_said(NULL);
	due = service_tick(now, true);
	assert_true(due >= now + 1000);
	assert_said(NULL);
	assert_int_equal(service_tick(due, true), -1);
	assert_said("STATUS=three 3");
	service_status("three 3");
	assert_int_equal(service_tick(due + 1000, true), -1);
	assert_said(NULL);
}

static void status__goes_along_with_a_state(void **state)
{
	assert_true(service_open());
	service_status("one");
	service_status("two");
	service_ready();
	assert_said("STATUS=one");
	assert_said("READY=1\nSTATUS=two");
	service_stopping("two");
	assert_said("STOPPING=1");
}

static void progress__asks_for_time(void **state)
{
	assert_true(service_open());
	service_progress("1 of %d", 2);
	service_progress("1 of %d", 2);
	assert_said("STATUS=1 of 2\nEXTEND_TIMEOUT_USEC=60000000");
	assert_said("EXTEND_TIMEOUT_USEC=60000000");
	assert_said(NULL);
}

static void say__never_waits_for_room(void **state)
{
	int64_t due;

	assert_true(service_open());
	fill_queue();
	service_ready();
	service_status("one");
	service_progress("two");
	service_status("three");
	due = service_tick(now_ms(), true);
	assert_true(due > 0);
	/* Still none. */
	due = service_tick(due, true);
	assert_true(due > 0);
	empty_queue();
	assert_int_equal(service_tick(due, true), -1);
	assert_said("READY=1\nSTATUS=three\nEXTEND_TIMEOUT_USEC=60000000");
	assert_said(NULL);
}

static void say__survives_a_manager_that_is_away(void **state)
{
	int64_t due;

	assert_true(service_open());
	close(manager.fd);
	unlink(manager.address.sun_path);
	service_ready();
	due = service_tick(now_ms(), true);
	assert_int_equal(manager_begin(NULL), 0);
	assert_int_equal(service_tick(due, true), -1);
	assert_said("READY=1");
}

static void tick__signs_of_life_while_all_is_well(void **state)
{
	int64_t now = now_ms();

	watchdog("8000000", getpid());
	assert_true(service_open());
	assert_int_equal(service_limit_ms(), 8000);
	assert_int_equal(service_tick(now, true), now + 2000);
	assert_said("WATCHDOG=1");
	assert_int_equal(service_tick(now + 1999, true), now + 2000);
	assert_said(NULL);
	assert_int_equal(service_tick(now + 2000, true), now + 4000);
	assert_said("WATCHDOG=1");
	/* A thread stands still. */
	assert_int_equal(service_tick(now + 4000, false), now + 5000);
	assert_int_equal(service_tick(now + 5000, false), now + 6000);
	assert_said(NULL);
	assert_int_equal(service_tick(now + 6000, true), now + 8000);
	assert_said("WATCHDOG=1");
	service_progress("works");
	assert_said("STATUS=works\nEXTEND_TIMEOUT_USEC=60000000\nWATCHDOG=1");
}

static void tick__no_signs_of_life_for_another_process(void **state)
{
	watchdog("8000000", getpid() + 1);
	assert_true(service_open());
	assert_int_equal(service_limit_ms(), 0);
	assert_int_equal(service_tick(now_ms(), true), -1);
	assert_said(NULL);
	service_progress("works");
	assert_said("STATUS=works\nEXTEND_TIMEOUT_USEC=60000000");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, manager_begin, manager_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(open__without_a_manager),
		TEST(open__an_abstract_socket),
		TEST(say__states_at_once),
		TEST(status__once_a_second_and_the_last_one),
		TEST(status__goes_along_with_a_state),
		TEST(progress__asks_for_time),
		TEST(say__never_waits_for_room),
		TEST(say__survives_a_manager_that_is_away),
		TEST(tick__signs_of_life_while_all_is_well),
		TEST(tick__no_signs_of_life_for_another_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
