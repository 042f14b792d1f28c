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
#include <err.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/util.h"
#include "common/rpc/rpc.h"
#include "common/transport/sock/frame.h"
#include "common/transport/transport.h"
#include "tests/changed_byte.h"
#include "tests/e2e/proxy.h"

enum { CHUNK = 1 << 16 };

struct connection {
	int client, server;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned every, seed = 1;
static unsigned changes[RPC_OP_MAX], places[RPC_OP_MAX];

static bool get(int fd, uint8_t *bytes, size_t len)
{
	return !len || recv(fd, bytes, len, MSG_WAITALL) == (ssize_t)len;
}

/* ---- replies --------------------------------------------------------------------------------- */

static void change_reply(uint8_t *msg, size_t len)
{
	unsigned op = msg[0] | (unsigned)msg[1] << 8, place;

	if (op >= RPC_OP_MAX)
		return;
	pthread_mutex_lock(&lock);
	if (rand_r(&seed) % (int)every == 0) {
		place = places[op]++;
		msg[place % len] =
			changed_byte(msg[place % len], (place / len + place) % BYTE_CHANGES);
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
		!proxy_put(c->client, header, sizeof(header)))
		return false;
	for (uint64_t left = frame.len; left;) {
		size_t n = (size_t)min_u64(left, CHUNK);

		if (!get(c->server, bytes, n))
			return false;
		if (frame.type == FRAME_MESSAGE && n > sizeof(uint16_t))
			change_reply(bytes, n);
		if (!proxy_put(c->client, bytes, n))
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

	if (get(c->server, hello, sizeof(hello)) && proxy_put(c->client, hello, sizeof(hello)))
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
		if (!proxy_put(c->server, bytes, (size_t)n))
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

	if (!c)
		errx(1, "no memory");
	*c = (struct connection){client, proxy_dial(port)};
	if (c->server < 0) {
		close(client);
		free(c);
		return;
	}
	proxy_thread(pass_requests, c);
}

/* ---- main ------------------------------------------------------------------------------------ */

static void tell_changes(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned op = 0; op < RPC_OP_MAX; op++)
		if (changes[op])
			printf("%s %u\n", rpc_op_info(op)->name, changes[op]);
}

int main(int argc, char **argv)
{
	int listener;

	if (argc != 5 || atoi(argv[3]) < 1)
		errx(2, "see liar.c");
	every = (unsigned)atoi(argv[3]);
	for (unsigned op = 0; op < RPC_OP_MAX; op++)
		places[op] = (unsigned)atoi(argv[4]);
	proxy_await_signal(tell_changes);
	listener = proxy_listen(argv[1]);
	for (;;) {
		int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (client >= 0)
			begin_connection(client, argv[2]);
	}
}
