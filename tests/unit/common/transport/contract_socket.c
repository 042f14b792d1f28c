/* contract_socket.c - peers on tcp and shm that break the protocol; they are raw sockets here. */
#include "tests/unit/common/transport/contract.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/transport/sock/frame.h"
#include "common/transport/transport_ops.h"
#include "common/rpc/wire_version.h"
#include "tests/unit/take_sigbus.h"

static int socket_type(void)
{
	return contract_kind == TRANSPORT_SHM ? SOCK_SEQPACKET : SOCK_STREAM;
}

static int raw_connect(const struct fixture *f)
{
	int fd = socket(f->address.addr.ss_family, socket_type() | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(
		connect(fd, (const struct sockaddr *)&f->address.addr, f->address.addrlen), 0);
	return fd;
}

static void raw_send(int fd, const void *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

static struct transport_hello good_hello(void)
{
	return (struct transport_hello){
		.version = RMEMFS_WIRE_VERSION,
		.msg_bytes = MSG_BYTES,
		.nrecv = NRECV,
		.nwork = NWORK,
	};
}

static void raw_hello(int fd, struct transport_hello hello)
{
	uint8_t bytes[TRANSPORT_HELLO_BYTES];

	transport_hello_encode(&hello, bytes);
	raw_send(fd, bytes, sizeof(bytes));
}

/* Waits until the server sends bytes or closes; meanwhile its queue runs and must give no
 * events. */
static ssize_t raw_recv(const struct fixture *f, int fd, void *data, size_t len)
{
	struct pollfd pfds[2] = {
		{.fd = fd, .events = POLLIN},
		{.fd = evq_fd(f->q), .events = POLLIN},
	};
	struct event event;

	while (!pfds[0].revents) {
		assert_int_equal(evq_arm(f->q), 0);
		assert_int_equal(evq_poll(f->q, &event, 1), 0);
		assert_true(poll(pfds, 2, WAIT_MS) > 0);
	}
	return recv(fd, data, len, 0);
}

static struct channel *raw_channel(struct fixture *f, int fd)
{
	uint8_t bytes[TRANSPORT_HELLO_BYTES];
	struct transport_hello hello;
	struct channel *ch;

	raw_hello(fd, good_hello());
	ch = expect_event(f->q, EV_INCOMING, 0).channel;
	assert_int_equal(channel_accept(ch), 0);
	expect_event(f->q, EV_OPEN, 0);
	assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_WAITALL), (ssize_t)sizeof(bytes));
	assert_int_equal(transport_hello_decode(bytes, &hello), 0);
	assert_int_equal(hello.status, 0);
	return ch;
}

/* ---- hello ----------------------------------------------------------------------------------- */

static void hello__wrong_version(void **state)
{
	struct fixture *f = *state;
	struct transport_hello hello = good_hello();
	uint8_t answer[TRANSPORT_HELLO_BYTES];
	int fd = raw_connect(f);

	hello.version++;
	raw_hello(fd, hello);
	assert_int_equal(raw_recv(f, fd, answer, sizeof(answer)), (ssize_t)sizeof(answer));
	assert_int_equal(transport_hello_decode(answer, &hello), 0);
	assert_int_equal(hello.status, -EPROTO);
	assert_int_equal(hello.version, RMEMFS_WIRE_VERSION);
	assert_int_equal(raw_recv(f, fd, answer, sizeof(answer)), 0);
	close(fd);
}

static void hello__garbage(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[TRANSPORT_HELLO_BYTES] = "GET / HTTP/1.1\r\nHost: memory\r\n";
	int fd = raw_connect(f);

	raw_send(fd, bytes, sizeof(bytes));
	assert_true(raw_recv(f, fd, bytes, sizeof(bytes)) <= 0);
	close(fd);
}

static void hello__of_impossible_sizes(void **state)
{
	struct fixture *f = *state;
	struct transport_hello hello = good_hello();
	int fd = raw_connect(f);
	struct channel *ch;

	hello.nwork = 0;
	raw_hello(fd, hello);
	ch = expect_event(f->q, EV_INCOMING, 0).channel;
	assert_int_equal(channel_accept(ch), 0);
	expect_event(f->q, EV_CLOSED, -EPROTO);
	fence_delete(f, ch);
	close(fd);
}

/* A server answers like this; the client must close with this status. */
static void answer_client(void **state, const void *answer, size_t len, int status)
{
	struct fixture *f = *state;
	int lfd = socket(f->address.addr.ss_family, socket_type() | SOCK_CLOEXEC, 0);
	struct sockaddr *addr = (struct sockaddr *)&f->address.addr;
	uint8_t hello[TRANSPORT_HELLO_BYTES];
	int fd;

	assert_int_equal(bind(lfd, addr, f->address.addrlen), 0);
	assert_int_equal(getsockname(lfd, addr, &f->address.addrlen), 0);
	assert_int_equal(listen(lfd, 1), 0);
	assert_int_equal(channel_connect(f->q, &f->address, &f->ch), 0);
	fd = accept(lfd, NULL, NULL);
	assert_true(fd >= 0);
	expect_silence(f->q, 20);
	assert_int_equal(recv(fd, hello, sizeof(hello), MSG_WAITALL), (ssize_t)sizeof(hello));
	raw_send(fd, answer, len);
	expect_event(f->q, EV_CLOSED, status);
	close(fd);
	close(lfd);
	if (contract_kind == TRANSPORT_SHM)
		unlink(((struct sockaddr_un *)addr)->sun_path);
}

static void client__server_of_another_version(void **state)
{
	struct transport_hello hello = good_hello();
	uint8_t bytes[TRANSPORT_HELLO_BYTES];

	hello.version++;
	transport_hello_encode(&hello, bytes);
	answer_client(state, bytes, sizeof(bytes), -EPROTO);
}

static void client__server_speaks_garbage(void **state)
{
	uint8_t bytes[TRANSPORT_HELLO_BYTES] = "220 mail.example.org ESMTP ready";

	answer_client(state, bytes, sizeof(bytes), -EPROTO);
}

static void client__server_asks_for_more(void **state)
{
	struct transport_hello hello = good_hello();
	uint8_t bytes[TRANSPORT_HELLO_BYTES];

	hello.msg_bytes++;
	transport_hello_encode(&hello, bytes);
	answer_client(state, bytes, sizeof(bytes), -EPROTO);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void expect_protocol_error(void **state, const struct sock_frame *frame)
{
	struct fixture *f = *state;
	uint8_t header[FRAME_BYTES];
	int fd = raw_connect(f);
	struct channel *ch = raw_channel(f, fd);

	sock_frame_encode(frame, header);
	raw_send(fd, header, sizeof(header));
	expect_event(f->q, EV_CLOSED, -EPROTO);
	assert_true(raw_recv(f, fd, header, sizeof(header)) <= 0);
	fence_delete(f, ch);
	close(fd);
}

static void frame__of_no_type(void **state)
{
	expect_protocol_error(state, &(struct sock_frame){.type = 99});
	expect_protocol_error(state, &(struct sock_frame){.type = 0});
	expect_protocol_error(state, &(struct sock_frame){.type = FRAME_MESSAGE, .flags = 2});
}

static void frame__not_for_a_server(void **state)
{
	expect_protocol_error(state, &(struct sock_frame){.type = FRAME_DONE});
	expect_protocol_error(state, &(struct sock_frame){.type = FRAME_REGION, .len = 1});
}

static void frame__message_too_long(void **state)
{
	expect_protocol_error(
		state, &(struct sock_frame){.type = FRAME_MESSAGE, .len = MSG_BYTES + 1});
	expect_protocol_error(
		state, &(struct sock_frame){.type = FRAME_MESSAGE, .len = UINT64_MAX});
}

static void frame__request_of_bad_count(void **state)
{
	expect_protocol_error(state, &(struct sock_frame){.type = FRAME_READ, .len = 1});
	expect_protocol_error(
		state, &(struct sock_frame){.type = FRAME_WRITE, .count = NWORK + 1, .len = 1});
	expect_protocol_error(
		state, &(struct sock_frame){.type = FRAME_READ, .count = 1, .len = 1ULL << 32});
}

static void frame__bye_of_nonsense(void **state)
{
	expect_protocol_error(state, &(struct sock_frame){.type = FRAME_BYE, .arg = 12345});
}

/* ---- many ------------------------------------------------------------------------------------ */

/* Endless silent connections, more than there are descriptors: a real client still gets in. */
static void listen__out_of_descriptors(void **state)
{
	enum { LIMIT = 400, SILENT = 900 };
	struct fixture *f = *state;
	struct rlimit before, few;
	int silent[SILENT], memory[NREGIONS];
	struct event event;
	struct channel *ch;

	for (int i = 0; i < NREGIONS; i++)
		memory[i] = f->memory[i].fd;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	for (int i = 0; i < SILENT; i++) {
		silent[i] = raw_connect(f);
		few.rlim_cur = (rlim_t)silent[0] + LIMIT;
		/* Limit the server's own descriptors, not those of the test. */
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		assert_int_equal(evq_poll(f->q, &event, 1), 0);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	}
	peer_start(&f->peer, ROLE_CLIENT, memory, &f->address);
	ch = expect_event(f->q, EV_INCOMING, 0).channel;
	assert_int_equal(channel_accept(ch), 0);
	expect_event(f->q, EV_OPEN, 0);
	peer_expect(&f->peer, PEER_OPEN);
	fence_delete(f, ch);
	for (int i = 0; i < SILENT; i++)
		close(silent[i]);
}

/* Another process cuts a region's file. The transfer ends in error, as does the channel, and nobody
 * waits for bytes that can't come. */
static void expect_cut_off(struct fixture *f, enum io_dir dir)
{
	take_sigbus();
	assert_int_equal(ftruncate(f->memory[0].fd, PAGE_BYTES), 0);
	do_one(f, dir, 0, PAGE_BYTES, 0, 0);
	assert_int_equal(post_one(f, dir, 0, 1 << 20, 0, 0, NULL), 0);
	assert_null(channel_mapped(f->ch, dir, 0, 0, PAGE_BYTES));
	assert_int_not_equal(next_event(f->q).status, 0);
	assert_int_equal(next_event(f->q).type, EV_CLOSED);
}

static void read__of_bytes_that_were_cut(void **state)
{
	expect_cut_off(*state, IO_READ);
}

static void write__of_bytes_that_were_cut(void **state)
{
	expect_cut_off(*state, IO_WRITE);
}

static const struct CMUnitTest tests[] = {
	CHANNEL_CASE(read__of_bytes_that_were_cut),
	CHANNEL_CASE(write__of_bytes_that_were_cut),
	SERVER_CASE(hello__wrong_version),
	SERVER_CASE(hello__garbage),
	SERVER_CASE(hello__of_impossible_sizes),
	CLIENT_CASE(client__server_of_another_version),
	CLIENT_CASE(client__server_speaks_garbage),
	CLIENT_CASE(client__server_asks_for_more),
	SERVER_CASE(frame__of_no_type),
	SERVER_CASE(frame__not_for_a_server),
	SERVER_CASE(frame__message_too_long),
	SERVER_CASE(frame__request_of_bad_count),
	SERVER_CASE(frame__bye_of_nonsense),
	SERVER_CASE(listen__out_of_descriptors),
};

const struct cases socket_cases = {"socket", tests, ARRAY_SIZE(tests), SOCKET_KINDS};
