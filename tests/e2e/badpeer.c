/* badpeer.c - peers that are no rmemfs programs, for end-to-end tests, on raw sockets of tcp and
 * shm.
 *
 *     badpeer silent ADDRESS N               connections that say nothing, until the server has
 *                                            closed them all; says "ready" when all are there
 *     badpeer hello ADDRESS VERSION          prints the answer to a hello of that version
 *     badpeer garbage ADDRESS N SEED         connections with random bytes: as hello, as frames,
 *                                            as messages, or cut off in the middle
 *     badpeer session ADDRESS EXPORT N SEED  attaches and breaks a rule, N times; then says BYE
 *     badpeer greedy ADDRESS EXPORT          tcp: shares the export, and wants all of its first
 *                                            region RANGES times with one READ; says "ready" when
 *                                            that begins to come, and "done" when all is there
 *     badpeer name ADDRESS EXPORT NAME       attaches as a client of that name, and stays; says
 *                                            "ready"
 *     badpeer cut ADDRESS EXPORT REGION HOW  shm: shares the export, changes the length of that
 *                                            region's file (shorter, longer, hole), and stays; says
 *                                            "done"
 *     badpeer serve ADDRESS VERSION          a server that answers every hello by one of that
 *                                            version and then talks nonsense; of version 0
 *                                            closes each connection; says "ready"
 *     badpeer answer ADDRESS ERRNO TEXT      a server that answers the first request of each
 *                                            connection by this error and text; with 0 it answers
 *                                            STATUS by the text; says "ready"
 *
 * ADDRESS as with --listen. Before it attaches it proves the first key of the file in
 * RMEMFS_TEST_KEY, if that is set. Status 1 if something that should end does not within WAIT_S.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "common/auth/auth_key_file.h"
#include "common/auth/handshake.h"
#include "common/auth/record.h"
#include "common/transport/address.h"
#include "common/base/clock.h"
#include "common/rpc/rpc.h"
#include "common/transport/sock/frame.h"
#include "common/transport/transport_ops.h"
#include "common/base/util.h"

enum { WAIT_S = 30, MSG_BYTES = RPC_MSG_BYTES, RANGES = 64 };

static struct transport_address address;
static uint64_t random_state = 1;

/* The connection that a key has been proven on, and its records. There is one at a time. */
static struct {
	int fd; /* -1: none */
	struct record_out out;
	struct record_in in;
	uint8_t buf[4 * RECORD_BYTES_MAX];
} proven = {.fd = -1};

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void random_bytes(void *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)random_u64();
}

static int open_socket(void)
{
	int type = address.kind == TRANSPORT_SHM ? SOCK_SEQPACKET : SOCK_STREAM;
	struct timeval wait = {.tv_sec = WAIT_S};
	int fd = socket(address.addr.ss_family, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		err(1, "socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	return fd;
}

static int dial(void)
{
	int fd = open_socket();

	if (fd == proven.fd) /* that one is closed */
		proven.fd = -1;

	if (connect(fd, (const struct sockaddr *)&address.addr, address.addrlen) < 0)
		err(1, "connect");
	return fd;
}

/* Ignores errors: the server may have closed the connection. */
static void put(int fd, const void *data, size_t len)
{
	static uint8_t records[4 * RECORD_BYTES_MAX];
	struct iovec iov = {(void *)data, len};
	size_t taken;
	ssize_t n;

	if (fd != proven.fd) {
		(void)!send(fd, data, len, MSG_NOSIGNAL);
		return;
	}
	n = record_out_seal(&proven.out, &iov, 1, records, sizeof(records), &taken);
	if (n > 0)
		(void)!send(fd, records, (size_t)n, MSG_NOSIGNAL);
}

static size_t get_plain(int fd, void *data, size_t len, int flags)
{
	ssize_t n = recv(fd, data, len, flags);

	if (n < 0 && errno != ECONNRESET)
		err(1, "neither an answer nor an end");
	return n > 0 ? (size_t)n : 0;
}

static size_t get_proven(void *data, size_t len)
{
	size_t room, got = 0;

	while (got < len) {
		struct iovec iov = {(uint8_t *)data + got, len - got};
		ssize_t n = record_in_take(&proven.in, &iov, 1, RECORD_PRIVATE);

		if (n < 0)
			errx(1, "the server's bytes are not the server's: %zd", n);
		if (!n) {
			void *space = record_in_space(&proven.in, &room);
			size_t more = get_plain(proven.fd, space, room, 0);

			if (!more)
				break;
			record_in_fed(&proven.in, more);
		}
		got += (size_t)n;
	}
	return got;
}

/* Returns the bytes received; 0: closed. */
static size_t get(int fd, void *data, size_t len)
{
	if (fd == proven.fd)
		return get_proven(data, len);
	return get_plain(fd, data, len, address.kind == TRANSPORT_SHM ? 0 : MSG_WAITALL);
}

static void await_close(int fd)
{
	uint8_t bytes[4096];

	while (get(fd, bytes, sizeof(bytes)))
		continue;
	close(fd);
}

static uint8_t client_hello[TRANSPORT_HELLO_BYTES], server_hello[TRANSPORT_HELLO_BYTES];

static void put_hello(int fd, uint32_t version)
{
	struct transport_hello hello = {
		.version = version, .msg_bytes = MSG_BYTES, .nrecv = 64, .nwork = 64};
	uint8_t bytes[TRANSPORT_HELLO_BYTES];

	transport_hello_encode(&hello, bytes);
	memcpy(client_hello, bytes, sizeof(bytes));
	put(fd, bytes, sizeof(bytes));
}

static bool get_hello(int fd, struct transport_hello *hello)
{
	return get(fd, server_hello, sizeof(server_hello)) == sizeof(server_hello) &&
	       transport_hello_decode(server_hello, hello) == 0;
}

/* Sends a frame and its data, as one packet where the transport has packets. */
static void put_frame(int fd, const struct sock_frame *frame, const void *data, size_t len)
{
	uint8_t bytes[FRAME_BYTES + MSG_BYTES];

	sock_frame_encode(frame, bytes);
	memcpy(bytes + FRAME_BYTES, data, len);
	put(fd, bytes, FRAME_BYTES + len);
}

static void put_message(int fd, const void *data, size_t len)
{
	put_frame(fd, &(struct sock_frame){.type = FRAME_MESSAGE, .len = len}, data, len);
}

static void put_request(int fd, const struct rpc_request *req)
{
	uint8_t msg[MSG_BYTES];
	size_t len;

	if (rpc_request_encode(req, RMEMFS_WIRE_VERSION, msg, sizeof(msg), &len))
		errx(1, "can't encode");
	put_message(fd, msg, len);
}

/* Returns the bytes of one message's payload; 0: closed. */
static size_t get_message(int fd, uint8_t msg[FRAME_BYTES + MSG_BYTES])
{
	struct sock_frame frame;
	size_t n =
		get(fd, msg, address.kind == TRANSPORT_SHM ? FRAME_BYTES + MSG_BYTES : FRAME_BYTES);

	if (n < FRAME_BYTES || sock_frame_decode(msg, &frame) || frame.type != FRAME_MESSAGE)
		return 0;
	if (address.kind == TRANSPORT_SHM)
		return n - FRAME_BYTES;
	return get(fd, msg + FRAME_BYTES, frame.len);
}

/* ---- silent ---------------------------------------------------------------------------------- */

static void silent(unsigned n)
{
	int64_t until;
	int *fds = calloc((size_t)n + 1, sizeof(*fds));
	char byte;

	for (unsigned i = 0; fds && i < n; i++)
		fds[i] = dial();
	puts("ready");
	fflush(stdout);
	until = now_ms() + WAIT_S * 1000;
	for (unsigned i = 0; fds && i < n; i++) {
		if (now_ms() > until || get(fds[i], &byte, 1))
			errx(1, "connection %u is still open", i);
		close(fds[i]);
	}
	free(fds);
	printf("closed %u\n", n);
}

/* ---- hello ----------------------------------------------------------------------------------- */

static void hello(uint32_t version)
{
	struct transport_hello answer;
	int fd = dial();

	put_hello(fd, version);
	if (!get_hello(fd, &answer))
		errx(1, "no hello");
	printf("version %u status %d\n", answer.version, answer.status);
	if (version != RMEMFS_WIRE_VERSION)
		await_close(fd);
	else
		close(fd);
}

/* ---- garbage --------------------------------------------------------------------------------- */

/* Sends a hello, then a frame of any kind, a message of any bytes, or half a frame and the end. */
static void garbage_after_hello(int fd)
{
	uint8_t bytes[1024];
	struct transport_hello answer;

	put_hello(fd, RMEMFS_WIRE_VERSION);
	if (!get_hello(fd, &answer))
		return;
	random_bytes(bytes, sizeof(bytes));
	switch (random_u64() % 3) {
	case 0:
		put(fd, bytes, sizeof(bytes));
		break;
	case 1:
		put_message(fd, bytes, random_u64() % sizeof(bytes));
		break;
	default:
		put(fd, bytes, 7);
		shutdown(fd, SHUT_WR);
	}
}

static void garbage(unsigned n)
{
	uint8_t bytes[TRANSPORT_HELLO_BYTES];

	for (unsigned i = 0; i < n; i++) {
		int fd = dial();

		if (i % 2) {
			random_bytes(bytes, sizeof(bytes));
			put(fd, bytes, sizeof(bytes));
		} else {
			garbage_after_hello(fd);
		}
		await_close(fd);
	}
}

/* ---- session --------------------------------------------------------------------------------- */

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

static struct handshake *new_handshake(const char *path)
{
	static struct handshake_context *context; /* of all connections */
	struct auth_key_file keys = {0};
	struct handshake *h;
	char why[256];

	if (auth_key_file_read(path, &keys, why, sizeof(why)) ||
		(!context && handshake_context_new(HANDSHAKE_CLIENT, &context, why, sizeof(why))))
		errx(1, "%s", why);
	if (handshake_client_new(context, &keys.v[0], &h))
		errx(1, "no handshake");
	auth_key_file_free(&keys);
	return h;
}

/* All that follows is protected. */
static void protect(int fd, const struct handshake *h)
{
	struct channel_keys keys;

	record_out_fini(&proven.out);
	record_in_fini(&proven.in);
	if (handshake_keys(h, client_hello, server_hello, TRANSPORT_TCP, &keys) ||
		record_out_init(&proven.out, &keys.client) ||
		record_in_init(&proven.in, &keys.server, proven.buf, sizeof(proven.buf)))
		errx(1, "no keys");
	proven.fd = fd;
}

/* Takes the server's flight, answers it, and receives the reply. */
static void prove_step(int fd, struct handshake *h, uint8_t step, struct rpc_reply *rep)
{
	struct rpc_tail in = step == 1 ? (struct rpc_tail){0} : rep->auth.tail;
	struct rpc_request req = {.op = RPC_AUTH, .slot = RPC_NO_SLOT};
	static uint8_t msg[FRAME_BYTES + MSG_BYTES];
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	size_t len;

	if (handshake_step(h, in.data, in.len, flight, sizeof(flight), &len) == HANDSHAKE_REFUSED)
		errx(1, "%s", handshake_refusal(h));
	req.auth = (struct rpc_auth){step, {flight, (uint32_t)len}};
	put_request(fd, &req);
	if (step == 2)
		protect(fd, h);
	len = get_message(fd, msg);
	if (!len || rpc_reply_decode(rep, RMEMFS_WIRE_VERSION, msg + FRAME_BYTES, len) ||
		rep->status)
		errx(1, "the key is refused");
}

static void prove(int fd)
{
	const char *path = getenv("RMEMFS_TEST_KEY");
	struct handshake *h;
	struct rpc_reply rep;

	if (!path || address.kind == TRANSPORT_SHM)
		return;
	h = new_handshake(path);
	prove_step(fd, h, 1, &rep);
	prove_step(fd, h, 2, &rep);
	handshake_delete(h);
}

/* Always attaches as the same process, so the server ends its earlier session. */
static int attach_as(const char *client, const char *export, uint32_t flags)
{
	struct rpc_request req = {.op = RPC_ATTACH, .slot = RPC_NO_SLOT};
	uint8_t msg[FRAME_BYTES + MSG_BYTES];
	struct transport_hello answer;
	struct rpc_reply rep;
	int fd = dial();
	size_t len;

	put_hello(fd, RMEMFS_WIRE_VERSION);
	if (!get_hello(fd, &answer))
		errx(1, "no hello");
	prove(fd);
	req.attach = (struct rpc_attach){
		.owner = "badpeer",
		.instance = 1,
		.nchannels = 1,
		.flags = flags,
		.wait_ms = WAIT_S * 1000,
		.export_name = str(export),
		.client = str(client),
	};
	put_request(fd, &req);
	len = get_message(fd, msg);
	if (!len || rpc_reply_decode(&rep, RMEMFS_WIRE_VERSION, msg + FRAME_BYTES, len) ||
		rep.status)
		errx(1, "not attached");
	return fd;
}

static int attach(const char *export, uint32_t flags)
{
	return attach_as("badpeer", export, flags);
}

static struct rpc_request request(unsigned op, uint16_t slot, uint64_t seq)
{
	return (struct rpc_request){.op = (uint16_t)op, .slot = slot, .seq = seq};
}

/* Returns true if the server must answer or close the connection. */
static bool break_rule(int fd, unsigned rule)
{
	struct rpc_request req = request(RPC_MKDIR, 0, 1);
	uint8_t bytes[512];

	random_bytes(bytes, sizeof(bytes));
	req.create = (struct rpc_create){.parent = random_u64(), .mode = 040755, .name = str("x")};
	switch (rule) {
	case 0: /* no such slot */
		req.slot = (uint16_t)(16 + random_u64() % 60000);
		put_request(fd, &req);
		return true;
	case 1: /* no such inode; then an old sequence number */
		req.seq = 9;
		put_request(fd, &req);
		req.seq = 3;
		put_request(fd, &req);
		return true;
	case 2: /* extents that the server did not grant */
		req = request(RPC_COMMIT, 0, 1);
		req.commit = (struct rpc_commit){
			.ino = ROOT_INO, .size = random_u64(), .tail = {bytes, 480}};
		put_request(fd, &req);
		return true;
	case 3: /* the same */
		req = request(RPC_RETURN, 0, 1);
		req.ret.kind = 1 + random_u64() % 2;
		req.ret.tail = (struct rpc_tail){bytes, 240};
		put_request(fd, &req);
		return true;
	case 4: /* a good header, any body */
		memcpy(bytes,
			(uint8_t[]){(uint8_t)(16 + random_u64() % 28), 0, 0, 0, 0, 0, 0, 0, 1}, 9);
		memset(bytes + 9, 0, 7);
		put_message(fd, bytes, 16 + random_u64() % 400);
		return true;
	case 5: /* one slot, twice at once */
		req = request(RPC_GETATTR, 0, 1);
		for (unsigned i = 0; i < 30; i++)
			put_request(fd, &req);
		return true;
	case 6: /* memory without a key; tcp */
		put_frame(fd,
			&(struct sock_frame){.type = FRAME_READ,
				.count = 1,
				.rkey = 0,
				.addr = random_u64(),
				.len = 4096},
			"", 0);
		return true;
	default: /* half a message */
		put_frame(fd, &(struct sock_frame){.type = FRAME_MESSAGE, .len = 500}, bytes, 100);
		return false;
	}
}

/* Ends the session with BYE, so that the next client need not wait for it to expire. */
static void leave(const char *export)
{
	struct rpc_request req = request(RPC_BYE, RPC_NO_SLOT, 0);
	uint8_t msg[FRAME_BYTES + MSG_BYTES];
	int fd = attach(export, 0);

	put_request(fd, &req);
	if (!get_message(fd, msg))
		errx(1, "BYE is not answered");
	close(fd);
}

static void session(const char *export, unsigned n)
{
	uint8_t msg[FRAME_BYTES + MSG_BYTES];

	for (unsigned i = 0; i < n; i++) {
		int fd = attach(export, 0);

		if (break_rule(fd, i % 8))
			get_message(fd, msg);
		close(fd);
	}
	leave(export);
}

/* ---- greedy ---------------------------------------------------------------------------------- */

static struct rpc_region first_region(int fd)
{
	struct rpc_request req = request(RPC_REGIONS, RPC_NO_SLOT, 0);
	uint8_t msg[FRAME_BYTES + MSG_BYTES];
	struct rpc_region region;
	struct rpc_reply rep;
	struct wire_in in;
	size_t len;

	put_request(fd, &req);
	len = get_message(fd, msg);
	if (!len || rpc_reply_decode(&rep, RMEMFS_WIRE_VERSION, msg + FRAME_BYTES, len) ||
		rep.status)
		errx(1, "no regions");
	in = rpc_tail_reader(&rep.regions.tail);
	if (!rpc_get_region(&in, &region))
		errx(1, "no region");
	return region;
}

static void want(int fd, const struct rpc_region *region)
{
	uint8_t ranges[(RANGES - 1) * FRAME_RANGE_BYTES];
	struct sock_range range = {
		.addr = region->addr, .len = (uint32_t)region->len, .rkey = region->rkey};

	for (unsigned i = 0; i < RANGES - 1; i++)
		sock_range_encode(&range, ranges + i * FRAME_RANGE_BYTES);
	put_frame(fd,
		&(struct sock_frame){.type = FRAME_READ,
			.count = RANGES,
			.rkey = region->rkey,
			.addr = region->addr,
			.len = region->len},
		ranges, sizeof(ranges));
}

static void greedy(const char *export)
{
	static uint8_t bytes[1 << 20];
	int fd = attach(export, ATTACH_SHARED);
	struct rpc_region region = first_region(fd);
	uint64_t left = RANGES * region.len + FRAME_BYTES;

	want(fd, &region);
	for (bool begun = false; left; begun = true) {
		size_t got = get(fd, bytes, min_u64(left, sizeof(bytes)));

		if (!got)
			errx(1, "it was closed with %llu bytes left", (unsigned long long)left);
		left -= got;
		if (!begun)
			puts("ready");
		fflush(stdout);
	}
	puts("done");
}

/* ---- name ------------------------------------------------------------------------------------ */

static void stay_as(const char *export, const char *client)
{
	int fd = attach_as(client, export, 0);

	puts("ready");
	fflush(stdout);
	pause();
	close(fd);
}

/* ---- cut ------------------------------------------------------------------------------------- */

/* Receives one packet of shm; *fd: the descriptor that came with it, or -1. */
static void get_packet(int sock, struct sock_frame *frame, int *fd)
{
	uint8_t bytes[FRAME_BYTES + MSG_BYTES];
	struct iovec iov = {bytes, sizeof(bytes)};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *cmsg;

	if (recvmsg(sock, &mh, 0) < FRAME_BYTES || sock_frame_decode(bytes, frame))
		errx(1, "no frame");
	cmsg = CMSG_FIRSTHDR(&mh);
	*fd = -1;
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(cmsg), sizeof(*fd));
}

/* The descriptor of a region's file. All come before the answer to REGIONS. */
static int region_descriptor(int sock, unsigned region)
{
	struct rpc_request req = request(RPC_REGIONS, RPC_NO_SLOT, 0);
	struct sock_frame frame;
	int fd, found = -1;
	unsigned n = 0;

	put_request(sock, &req);
	do {
		get_packet(sock, &frame, &fd);
		if (fd >= 0 && n++ == region)
			found = fd;
	} while (frame.type != FRAME_MESSAGE);
	if (found < 0)
		errx(1, "no such region");
	return found;
}

static int change_file(int fd, const char *how)
{
	struct stat st;

	if (fstat(fd, &st))
		return -1;
	if (strcmp(how, "shorter") == 0)
		return ftruncate(fd, st.st_size / 2);
	if (strcmp(how, "longer") == 0)
		return ftruncate(fd, st.st_size + (1 << 20));
	if (strcmp(how, "hole") == 0)
		return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, st.st_size / 2);
	errx(2, "see badpeer.c");
}

static void cut(const char *export, unsigned region, const char *how)
{
	int sock = attach(export, ATTACH_SHARED);

	if (change_file(region_descriptor(sock, region), how))
		err(1, "%s", how);
	puts("done");
	fflush(stdout);
	pause();
	close(sock);
}

/* ---- serve ----------------------------------------------------------------------------------- */

static int begin_to_listen(void)
{
	int lfd = open_socket(), one = 1;

	setsockopt(lfd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(lfd, (const struct sockaddr *)&address.addr, address.addrlen) < 0 ||
		listen(lfd, 64) < 0)
		err(1, "listen");
	puts("ready");
	fflush(stdout);
	return lfd;
}

static void serve(uint32_t version)
{
	uint8_t bytes[FRAME_BYTES + MSG_BYTES];
	struct transport_hello theirs;
	int lfd = begin_to_listen();

	for (;;) {
		int fd = accept(lfd, NULL, NULL);

		if (fd < 0)
			continue;
		if (!version) {
			close(fd);
			continue;
		}
		if (get_hello(fd, &theirs))
			put_hello(fd, version);
		get_message(fd, bytes);
		random_bytes(bytes, sizeof(bytes));
		/* Answers the first request by a well-framed message of nonsense, or by bytes that
		 * are no frame. */
		if (random_u64() % 2)
			put_message(fd, bytes, 64);
		else
			put(fd, bytes, 1024);
		close(fd);
	}
}

/* ---- answer ---------------------------------------------------------------------------------- */

static void put_answer(int fd, const struct rpc_request *req, int status, const char *text)
{
	struct rpc_reply rep = {
		.op = req->op, .slot = req->slot, .seq = req->seq, .status = status};
	uint8_t msg[MSG_BYTES];
	size_t len;

	if (status) {
		rep.text = str(text);
	} else {
		rep.status_text.total = (uint32_t)strlen(text);
		rep.status_text.tail =
			(struct rpc_tail){(const uint8_t *)text, rep.status_text.total};
	}
	if (rpc_reply_encode(&rep, RMEMFS_WIRE_VERSION, msg, sizeof(msg), &len))
		errx(1, "can't encode");
	put_message(fd, msg, len);
}

static void answer(int status, const char *text)
{
	uint8_t msg[FRAME_BYTES + MSG_BYTES];
	struct transport_hello theirs;
	struct rpc_request req;
	int lfd = begin_to_listen();

	for (;;) {
		int fd = accept(lfd, NULL, NULL);
		size_t len = 0;

		if (fd < 0)
			continue;
		if (get_hello(fd, &theirs)) {
			put_hello(fd, RMEMFS_WIRE_VERSION);
			len = get_message(fd, msg);
		}
		if (len && !rpc_request_decode(&req, RMEMFS_WIRE_VERSION, msg + FRAME_BYTES, len)) {
			put_answer(fd, &req, status, text);
			/* The peer closes when it has read everything. */
			await_close(fd);
		} else {
			close(fd);
		}
	}
}

/* ---- main ------------------------------------------------------------------------------------ */

static unsigned number(const char *text)
{
	return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	char why[256];

	if (argc < 4)
		errx(2, "see badpeer.c");
	if (address_parse_listen(argv[2], &address, why, sizeof(why)))
		errx(2, "%s", why);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	random_state = 1 + number(argv[argc - 1]);
	if (strcmp(argv[1], "silent") == 0)
		silent(number(argv[3]));
	else if (strcmp(argv[1], "hello") == 0)
		hello(number(argv[3]));
	else if (strcmp(argv[1], "garbage") == 0)
		garbage(number(argv[3]));
	else if (strcmp(argv[1], "session") == 0 && argc > 5)
		session(argv[3], number(argv[4]));
	else if (strcmp(argv[1], "greedy") == 0)
		greedy(argv[3]);
	else if (strcmp(argv[1], "name") == 0 && argc > 4)
		stay_as(argv[3], argv[4]);
	else if (strcmp(argv[1], "cut") == 0 && argc > 5)
		cut(argv[3], number(argv[4]), argv[5]);
	else if (strcmp(argv[1], "answer") == 0 && argc > 4)
		answer(-(int)number(argv[3]), argv[4]);
	else if (strcmp(argv[1], "serve") == 0)
		serve(number(argv[3]));
	else
		errx(2, "see badpeer.c");
	return 0;
}
