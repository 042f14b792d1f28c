/* contract_shm.c - specific to shm: the socket's file, and false REGION frames. */
#include "tests/unit/common/transport/contract.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/transport/sock/frame.h"
#include "common/transport/transport_ops.h"
#include "common/rpc/wire_version.h"

static const char *socket_path(const struct fixture *f)
{
	return ((const struct sockaddr_un *)&f->address.addr)->sun_path;
}

static int bind_socket(const struct fixture *f)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(
		bind(fd, (const struct sockaddr *)&f->address.addr, f->address.addrlen), 0);
	return fd;
}

static void listen__replaces_a_stale_socket(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	close(bind_socket(f));
	assert_int_equal(transport_listen(f->q, &f->address, &f->l), 0);
	assert_int_equal(stat(socket_path(f), &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	listener_delete(f->l);
	f->l = NULL;
	assert_int_equal(access(socket_path(f), F_OK), -1);
}

static void listen__spares_other_files(void **state)
{
	struct fixture *f = *state;
	int fd = open(socket_path(f), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(transport_listen(f->q, &f->address, &f->l), -EEXIST);
	assert_int_equal(unlink(socket_path(f)), 0);
}

/* A replaced listener removes only its own file. */
static void listener_delete__spares_a_successor(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(transport_listen(f->q, &f->address, &f->l), 0);
	assert_int_equal(unlink(socket_path(f)), 0);
	close(bind_socket(f));
	listener_delete(f->l);
	f->l = NULL;
	assert_int_equal(unlink(socket_path(f)), 0);
}

static void listen__in_no_directory(void **state)
{
	struct fixture *f = *state;
	struct transport_address address = f->address;
	struct sockaddr_un *un = (struct sockaddr_un *)&address.addr;

	strcpy(un->sun_path, "/nonexistent/socket");
	assert_int_equal(transport_listen(f->q, &address, &f->l), -ENOENT);
}

static void send_region(int fd, const struct sock_frame *frame, int region_fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	uint8_t header[FRAME_BYTES];
	struct iovec iov = {.iov_base = header, .iov_len = sizeof(header)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cmsg;

	sock_frame_encode(frame, header);
	if (region_fd >= 0) {
		mh.msg_control = control.bytes;
		mh.msg_controllen = sizeof(control.bytes);
		cmsg = CMSG_FIRSTHDR(&mh);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &region_fd, sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &mh, MSG_NOSIGNAL), FRAME_BYTES);
}

/* A server of our own opens the channel and then publishes this region. */
static void expect_region_refused(void **state, const struct sock_frame *frame, int region_fd)
{
	struct fixture *f = *state;
	struct transport_hello hello = {
		.version = RMEMFS_WIRE_VERSION,
		.msg_bytes = MSG_BYTES,
		.nrecv = NRECV,
		.nwork = NWORK,
	};
	uint8_t bytes[TRANSPORT_HELLO_BYTES];
	int lfd = bind_socket(f), fd;

	assert_int_equal(listen(lfd, 1), 0);
	assert_int_equal(channel_connect(f->q, &f->address, &f->ch), 0);
	fd = accept(lfd, NULL, NULL);
	assert_true(fd >= 0);
	transport_hello_encode(&hello, bytes);
	assert_int_equal(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), (ssize_t)sizeof(bytes));
	expect_event(f->q, EV_OPEN, 0);
	send_region(fd, frame, region_fd);
	expect_event(f->q, EV_CLOSED, -EPROTO);
	channel_delete(f->ch);
	f->ch = NULL;
	close(fd);
	close(lfd);
	assert_int_equal(unlink(socket_path(f)), 0);
}

static void region__longer_than_its_file(void **state)
{
	struct fixture *f = *state;
	struct sock_frame frame = {
		.type = FRAME_REGION,
		.arg = REGION_READ,
		.rkey = 1,
		.len = REGION_BYTES + 1,
	};

	expect_region_refused(state, &frame, f->memory[0].fd);
}

static void region__without_descriptor(void **state)
{
	struct sock_frame frame = {
		.type = FRAME_REGION,
		.arg = REGION_READ,
		.rkey = 1,
		.len = PAGE_BYTES,
	};

	expect_region_refused(state, &frame, -1);
}

static void region_register__file_too_short(void **state)
{
	struct fixture *f = *state;
	struct memory *memory = &f->memory[0];
	struct region *r;

	assert_int_equal(
		region_register(f->t, memory->fd, memory->rofd, memory->addr, REGION_BYTES + 1, &r),
		-EINVAL);
	assert_int_equal(region_register(f->t, -1, -1, memory->addr, REGION_BYTES, &r), -EBADF);
}

static const struct CMUnitTest tests[] = {
	CLIENT_CASE(listen__replaces_a_stale_socket),
	CLIENT_CASE(listen__spares_other_files),
	CLIENT_CASE(listener_delete__spares_a_successor),
	CLIENT_CASE(listen__in_no_directory),
	CLIENT_CASE(region__longer_than_its_file),
	CLIENT_CASE(region__without_descriptor),
	CLIENT_CASE(region_register__file_too_short),
};

const struct cases shm_cases = {"shm", tests, ARRAY_SIZE(tests), 1 << TRANSPORT_SHM};
