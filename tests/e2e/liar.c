/* liar.c - a hostile server, for end-to-end tests: a proxy over tcp that changes replies of a real
 * server, before a client that proves no key gets them.
 *
 *     liar LISTEN SERVER EVERY FIRST
 *
 * LISTEN and SERVER are ports at 127.0.0.1. It changes one byte of one reply in EVERY, by chance.
 * From one such reply of an operation to the next the byte moves on, and so does the kind of
 * change; FIRST is where it begins. It says "ready" when it listens. By SIGTERM it prints
 * "OPERATION COUNT" for each operation, the number of changed replies.
 *
 * THREADS  Two for each connection, one for each direction. The lock guards the counts.
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/util.h"
#include "common/rpc/rpc.h"
#include "common/transport/sock/frame.h"
#include "common/transport/transport.h"

enum { CHUNK = 1 << 16 };

struct connection {
	int client, server;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned every, seed = 1;
static unsigned changes[RPC_OP_MAX], places[RPC_OP_MAX];

/* ---- sockets --------------------------------------------------------------------------------- */

static int new_socket(const char *port, struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		err(1, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*address = (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(port)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return fd;
}

static bool put(int fd, const uint8_t *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

static bool get(int fd, uint8_t *bytes, size_t len)
{
	return !len || recv(fd, bytes, len, MSG_WAITALL) == (ssize_t)len;
}

/* ---- replies --------------------------------------------------------------------------------- */

static uint8_t changed(uint8_t byte, unsigned change)
{
	static const uint8_t flips[] = {1, 0x80};

	if (change < ARRAY_SIZE(flips))
		return byte ^ flips[change];
	return change == 2 ? 0 : UINT8_MAX;
}

static void change_reply(uint8_t *msg, size_t len)
{
	unsigned op = msg[0] | (unsigned)msg[1] << 8, place;

	if (op >= RPC_OP_MAX)
		return;
	pthread_mutex_lock(&lock);
	if (rand_r(&seed) % (int)every == 0) {
		place = places[op]++;
		msg[place % len] = changed(msg[place % len], (place / len + place) % 4);
		changes[op]++;
	}
	pthread_mutex_unlock(&lock);
}

/* Passes one frame of the server. */
static bool pass_frame(const struct connection *c)
{
	uint8_t header[FRAME_BYTES];
	static _Thread_local uint8_t bytes[CHUNK];
	struct sock_frame frame;

	if (!get(c->server, header, sizeof(header)) || sock_frame_decode(header, &frame) ||
		!put(c->client, header, sizeof(header)))
		return false;
	for (uint64_t left = frame.len; left;) {
		size_t n = (size_t)min_u64(left, CHUNK);

		if (!get(c->server, bytes, n))
			return false;
		if (frame.type == FRAME_MESSAGE && n > sizeof(uint16_t))
			change_reply(bytes, n);
		if (!put(c->client, bytes, n))
			return false;
		left -= n;
	}
	return true;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void hang_up(const struct connection *c)
{
	shutdown(c->client, SHUT_RDWR);
	shutdown(c->server, SHUT_RDWR);
}

static void *pass_replies(void *arg)
{
	struct connection *c = arg;
	uint8_t hello[CHANNEL_HELLO_BYTES];

	if (get(c->server, hello, sizeof(hello)) && put(c->client, hello, sizeof(hello)))
		while (pass_frame(c))
			continue;
	hang_up(c);
	return NULL;
}

static void *pass_requests(void *arg)
{
	struct connection *c = arg;
	uint8_t bytes[CHUNK];
	pthread_t replies;
	ssize_t n;

	if (pthread_create(&replies, NULL, pass_replies, c))
		errx(1, "no thread");
	while ((n = recv(c->client, bytes, sizeof(bytes), 0)) > 0)
		if (!put(c->server, bytes, (size_t)n))
			break;
	hang_up(c);
	pthread_join(replies, NULL);
	close(c->client);
	close(c->server);
	free(c);
	return NULL;
}

static void begin_connection(int client, const char *port)
{
	struct connection *c = malloc(sizeof(*c));
	struct sockaddr_in address;
	pthread_t thread;

	if (!c)
		errx(1, "no memory");
	*c = (struct connection){client, new_socket(port, &address)};
	/* If no server is there, the threads find the end of both sockets. */
	if (connect(c->server, (struct sockaddr *)&address, sizeof(address)))
		hang_up(c);
	if (pthread_create(&thread, NULL, pass_requests, c) || pthread_detach(thread))
		errx(1, "no thread");
}

/* ---- main ------------------------------------------------------------------------------------ */

static void *end_on_signal(void *arg)
{
	int signal;

	sigwait(arg, &signal);
	pthread_mutex_lock(&lock);
	for (unsigned op = 0; op < RPC_OP_MAX; op++)
		if (changes[op])
			printf("%s %u\n", rpc_op_info(op)->name, changes[op]);
	exit(0);
}

static void await_signal(void)
{
	static sigset_t set;
	pthread_t thread;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (pthread_create(&thread, NULL, end_on_signal, &set))
		errx(1, "no thread");
}

int main(int argc, char **argv)
{
	struct sockaddr_in address;
	int listener;

	if (argc != 5 || atoi(argv[3]) < 1)
		errx(2, "see liar.c");
	every = (unsigned)atoi(argv[3]);
	for (unsigned op = 0; op < RPC_OP_MAX; op++)
		places[op] = (unsigned)atoi(argv[4]);
	await_signal();
	listener = new_socket(argv[1], &address);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 128))
		err(1, "listen");
	puts("ready");
	fflush(stdout);
	for (;;) {
		int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (client >= 0)
			begin_connection(client, argv[2]);
	}
}
