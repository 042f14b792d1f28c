/* Records against the kernel's TLS, over a TCP connection on the loopback: one end is the kernel's,
 * the other one ours. A kernel without TLS (module tls) skips all; the guest of tests/vm has it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "tests/unit/common/auth/records.h"

#ifndef SOL_TLS
#define SOL_TLS 282
#endif

enum { BUFFER = 4 * RECORD_BYTES_MAX, LARGE = 100000 };

static uint8_t buffer[BUFFER], plain[LARGE], stream[2 * LARGE], opened[LARGE + 1];
static int kernel = -1, ours = -1;
static struct record_in in;
static struct record_out out;

/* ---- a connection ---------------------------------------------------------------------------- */

static void connect_both(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval limit = {.tv_sec = 10};
	socklen_t len = sizeof(address);
	autoclose int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	ours = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(ours, (struct sockaddr *)&address, len), 0);
	kernel = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(kernel >= 0);
	/* No test hangs. */
	setsockopt(ours, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(kernel, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

static int begin(void **state)
{
	struct direction_key key = a_key(1);

	fill(plain, sizeof(plain), 9);
	connect_both();
	assert_int_equal(record_out_init(&out, &key), 0);
	assert_int_equal(record_in_init(&in, &key, buffer, sizeof(buffer)), 0);
	return 0;
}

static int end(void **state)
{
	record_out_fini(&out);
	record_in_fini(&in);
	close(kernel);
	close(ours);
	return 0;
}

static void arm(int direction)
{
	struct tls12_crypto_info_aes_gcm_256 info;
	struct direction_key key = a_key(1);

	if (setsockopt(kernel, SOL_TCP, TCP_ULP, "tls", sizeof("tls")) < 0) {
		print_message("# the kernel has no TLS: %s\n", strerror(errno));
		skip();
	}
	record_kernel_info(&key, &info);
	assert_int_equal(setsockopt(kernel, SOL_TLS, direction, &info, sizeof(info)), 0);
}

/* ---- to the kernel --------------------------------------------------------------------------- */

static void send_stream(size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = send(ours, stream + at, len - at, MSG_NOSIGNAL);

		assert_true(n > 0);
		at += (size_t)n;
	}
}

static size_t seal(size_t at, size_t len)
{
	const struct iovec iov = {.iov_base = plain + at, .iov_len = len};
	size_t taken;
	ssize_t n = record_out_seal(&out, &iov, 1, stream, sizeof(stream), &taken);

	assert_int_equal(taken, len);
	return (size_t)n;
}

static void kernel__reads_our_records(void **state)
{
	static const size_t lens[] = {1, 32, RECORD_CONTENT_MAX, 60000, 1};
	size_t at = 0;

	arm(TLS_RX);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++, at += lens[i - 1]) {
		send_stream(seal(at, lens[i]));
		assert_int_equal(recv(kernel, opened, lens[i], MSG_WAITALL), lens[i]);
		assert_memory_equal(opened, plain + at, lens[i]);
	}
}

static void kernel__reads_our_padding(void **state)
{
	struct direction_key key = a_key(1);
	uint8_t inner[200] = {0};

	arm(TLS_RX);
	memcpy(inner, plain, 100);
	inner[100] = 23;
	send_stream(forge(&key, 0, inner, sizeof(inner), stream));
	assert_int_equal(recv(kernel, opened, 100, MSG_WAITALL), 100);
	assert_memory_equal(opened, plain, 100);
}

/* The header of a frame has a record of its own, so the data behind it can go into a pipe. */
static void kernel__splices_our_records(void **state)
{
	size_t got = 0;
	int pipes[2];

	arm(TLS_RX);
	assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	send_stream(seal(0, 32));
	send_stream(seal(32, 60000));
	assert_int_equal(recv(kernel, opened, 32, MSG_WAITALL), 32);
	while (got < 60000) {
		ssize_t n = splice(kernel, NULL, pipes[1], NULL, 60000 - got, 0);

		assert_true(n > 0);
		assert_int_equal(read(pipes[0], opened + 32 + got, (size_t)n), n);
		got += (size_t)n;
	}
	assert_memory_equal(opened, plain, 32 + 60000);
	close(pipes[0]);
	close(pipes[1]);
}

/* Nor does it write bytes that are not proven to the memory. It would with TLS_RX_EXPECT_NO_PAD. */
static void kernel__refuses_a_flipped_bit(void **state)
{
	size_t len = seal(0, RECORD_CONTENT_MAX);
	static uint8_t before[RECORD_CONTENT_MAX];

	arm(TLS_RX);
	stream[500] ^= 1;
	send_stream(len);
	memset(opened, 0x5a, sizeof(before));
	memset(before, 0x5a, sizeof(before));
	assert_int_equal(recv(kernel, opened, sizeof(before), MSG_WAITALL), -1);
	assert_int_equal(errno, EBADMSG);
	assert_memory_equal(opened, before, sizeof(before));
}

/* ---- from the kernel ------------------------------------------------------------------------- */

static void receive_all(size_t len, enum record_memory memory)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = take(&in, opened + got, len - got, memory);
		size_t room;
		void *space;

		assert_true(n >= 0);
		got += (size_t)n;
		if (n)
			continue;
		space = record_in_space(&in, &room);
		n = recv(ours, space, room, 0);
		assert_true(n > 0);
		record_in_fed(&in, (size_t)n);
	}
}

static void we__read_the_kernels_records(void **state)
{
	static const size_t lens[] = {1, 32, RECORD_CONTENT_MAX, 60000, 1};
	size_t at = 0;

	arm(TLS_TX);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++, at += lens[i - 1]) {
		assert_int_equal(send(kernel, plain + at, lens[i], MSG_NOSIGNAL), lens[i]);
		receive_all(lens[i], i % 2 ? RECORD_SHARED : RECORD_PRIVATE);
		assert_memory_equal(opened, plain + at, lens[i]);
	}
	assert_false(record_in_ready(&in));
}

static void kernels_alert__ends_the_channel(void **state)
{
	uint8_t alert[2] = {1, 0}, control[CMSG_SPACE(1)] = {0};
	struct iovec iov = {.iov_base = alert, .iov_len = sizeof(alert)};
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *type = CMSG_FIRSTHDR(&mh);
	ssize_t n;

	arm(TLS_TX);
	type->cmsg_level = SOL_TLS;
	type->cmsg_type = TLS_SET_RECORD_TYPE;
	type->cmsg_len = CMSG_LEN(1);
	*CMSG_DATA(type) = 21;
	assert_int_equal(sendmsg(kernel, &mh, MSG_NOSIGNAL), 2);
	n = recv(ours, stream, sizeof(stream), 0);
	assert_true(n > 0);
	feed(&in, stream, (size_t)n);
	assert_int_equal(take(&in, opened, 100, RECORD_SHARED), -EPROTO);
}

#define kernel_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kernel_test(kernel__reads_our_records),
		kernel_test(kernel__reads_our_padding),
		kernel_test(kernel__splices_our_records),
		kernel_test(kernel__refuses_a_flipped_bit),
		kernel_test(we__read_the_kernels_records),
		kernel_test(kernels_alert__ends_the_channel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
