/* The messages between two daemons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/handover/talk.h"

static int ends[2];

static int setup(void **state)
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

static int teardown(void **state)
{
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static void receive__what_was_sent(void **state)
{
	static char text[100000];
	struct talk_message m;

	memset(text, 'x', sizeof(text));
	assert_int_equal(talk_send(ends[0], TALK_READY, text, sizeof(text), NULL, 0), 0);
	assert_int_equal(talk_send(ends[0], TALK_GO, NULL, 0, NULL, 0), 0);
	assert_int_equal(talk_receive(ends[1], 1000, &m), 0);
	assert_int_equal(m.kind, TALK_READY);
	assert_int_equal(m.len, sizeof(text));
	assert_memory_equal(m.data, text, sizeof(text));
	assert_int_equal(m.data[sizeof(text)], 0);
	assert_int_equal(m.nfds, 0);
	talk_fini(&m);
	assert_int_equal(talk_receive(ends[1], 1000, &m), 0);
	assert_int_equal(m.kind, TALK_GO);
	assert_int_equal(m.len, 0);
	talk_fini(&m);
}

static void receive__descriptors_of_the_same_files(void **state)
{
	struct talk_message m;
	struct stat a, b;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(talk_send(ends[0], TALK_STATE, "s", 1, fds, 2), 0);
	assert_int_equal(talk_receive(ends[1], 1000, &m), 0);
	assert_int_equal(m.nfds, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(fstat(fds[i], &a), 0);
		assert_int_equal(fstat(m.fds[i], &b), 0);
		assert_int_equal(a.st_ino, b.st_ino);
		assert_true(fcntl(m.fds[i], F_GETFD) & FD_CLOEXEC);
		close(fds[i]);
	}
	/* One is taken out of the message, the other one goes with it. */
	fds[0] = steal_fd(&m.fds[0]);
	fds[1] = m.fds[1];
	talk_fini(&m);
	assert_int_equal(fstat(fds[0], &a), 0);
	assert_int_equal(fstat(fds[1], &b), -1);
	close(fds[0]);
}

static void receive__nothing__times_out(void **state)
{
	struct talk_message m;

	assert_int_equal(talk_receive(ends[1], 10, &m), -ETIMEDOUT);
	assert_int_equal(send(ends[0], "\1OHR", 4, 0), 4);
	assert_int_equal(talk_receive(ends[1], 10, &m), -ETIMEDOUT);
}

static void receive__the_end(void **state)
{
	struct talk_message m;

	assert_int_equal(send(ends[0], "\1OHR", 4, 0), 4);
	shutdown(ends[0], SHUT_WR);
	assert_int_equal(talk_receive(ends[1], 1000, &m), -ECONNRESET);
	assert_int_equal(talk_receive(ends[1], -1, &m), -ECONNRESET);
}

static void receive__malformed__is_refused(void **state)
{
	static const uint32_t heads[][2] = {
		{0, 0},
		{TALK_OFFER - 1, 0},
		{TALK_FAILED + 1, 0},
		{TALK_OFFER, TALK_BYTES_MAX + 1},
		{TALK_OFFER, UINT32_MAX},
	};
	struct talk_message m;

	for (unsigned i = 0; i < ARRAY_SIZE(heads); i++) {
		assert_int_equal(send(ends[0], heads[i], 8, 0), 8);
		assert_int_equal(talk_receive(ends[1], 1000, &m), -EPROTO);
	}
}

/* A daemon that knows of no hand-over. */
static void receive__an_error_in_json__is_a_failure(void **state)
{
	static const char text[] = "{\"error\":\"not known\"}";
	struct talk_message m;

	assert_int_equal(send(ends[0], text, strlen(text), 0), strlen(text));
	shutdown(ends[0], SHUT_WR);
	assert_int_equal(talk_receive(ends[1], 1000, &m), 0);
	assert_int_equal(m.kind, TALK_FAILED);
	assert_string_equal((const char *)m.data, "not known");
	talk_fini(&m);
}

static void receive__other_json__is_malformed(void **state)
{
	static const char text[] = "{\"mountpoint\":\"/mnt\"}";
	struct talk_message m;

	assert_int_equal(send(ends[0], text, strlen(text), 0), strlen(text));
	shutdown(ends[0], SHUT_WR);
	assert_int_equal(talk_receive(ends[1], 1000, &m), -EPROTO);
}

static void send__too_much__is_refused(void **state)
{
	const int fds[TALK_FDS_MAX + 1] = {0};

	assert_int_equal(
		talk_send(ends[0], TALK_OFFER, NULL, TALK_BYTES_MAX + 1, NULL, 0), -EMSGSIZE);
	assert_int_equal(talk_send(ends[0], TALK_OFFER, NULL, 0, fds, TALK_FDS_MAX + 1), -EMSGSIZE);
}

static void send__to_nobody__fails(void **state)
{
	close(ends[1]);
	assert_int_equal(talk_send_failed(ends[0], "why"), -EPIPE);
	ends[1] = dup(ends[0]);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(receive__what_was_sent),
		CASE(receive__descriptors_of_the_same_files),
		CASE(receive__nothing__times_out),
		CASE(receive__the_end),
		CASE(receive__malformed__is_refused),
		CASE(receive__an_error_in_json__is_a_failure),
		CASE(receive__other_json__is_malformed),
		CASE(send__too_much__is_refused),
		CASE(send__to_nobody__fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
