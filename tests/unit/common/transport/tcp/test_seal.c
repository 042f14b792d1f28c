/* test_seal.c - bytes that can't be sealed. The contract suite tests all else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/transport/tcp/seal.h"

/* A peer that waits for the bytes must learn that they don't come. */
static void send__key_is_used_up__shuts_the_socket_down(void **state)
{
	struct direction_key key = {0};
	struct tcp_seal_out out = {0};
	char bytes[] = "bytes";
	struct iovec iov = {bytes, 5};
	char byte;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	/* A unix socket has no TLS by the kernel. */
	assert_int_equal(tcp_seal_out_begin(&out, fds[0], &key), 0);
	assert_int_equal(out.kind, TCP_SEAL_USER);
	assert_int_equal(tcp_seal_send(&out, fds[0], &iov, 1), 5);
	out.records.aead.blocks = AEAD_END_BLOCKS;
	assert_int_equal(tcp_seal_send(&out, fds[0], &iov, 1), -EKEYEXPIRED);
	for (size_t i = 0; i < 5 + RECORD_OVERHEAD; i++)
		assert_int_equal(read(fds[1], &byte, 1), 1);
	assert_int_equal(recv(fds[1], &byte, 1, MSG_DONTWAIT), 0);
	tcp_seal_out_fini(&out);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__key_is_used_up__shuts_the_socket_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
