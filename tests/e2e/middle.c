/* middle.c - a man in the middle: a proxy between clients and a server over tcp on this machine, for
 * end-to-end tests.
 *
 *     middle LISTEN SERVER pass [FILE]    passes everything. With FILE it writes the bytes of
 *                                         connection N to FILE.N.client and FILE.N.server, by
 *                                         who has sent them
 *     middle LISTEN SERVER HOW FROM FIRST LAST STEP
 *                                         does HOW to one byte of what FROM sends, `client` or
 *                                         `server`. Each connection gets an offset of its own:
 *                                         FIRST, FIRST + STEP and so on to LAST. An offset that
 *                                         a connection has not reached goes to another one.
 *                                         When all connections with such a byte have ended it
 *                                         says "done", and passes everything
 *     middle LISTEN SERVER often FROM N   flips a bit of every Nth byte, of all connections
 *                                         together; says "changed" for each
 *     middle LISTEN SERVER lower VERSION  tells the server that its client speaks that version of
 *                                         the protocol, and the client that the server speaks the
 *                                         client's
 *     middle LISTEN - play FILE           a server that sends the bytes of FILE to each client
 *     middle - SERVER play FILE           a client that sends the bytes of FILE, and prints how
 *                                         many bytes the server has answered until it closed
 *
 * LISTEN and SERVER are ports at 127.0.0.1. HOW: `flip` a bit, `drop` the byte, `double` it, or
 * `stop`: what FROM sends from there on never comes; `mixed`: the last three in turn. It says
 * "ready" when it listens. By SIGTERM it names the bytes that were not reached, or whose connection
 * lives.
 *
 * THREADS  Two for each connection, one for each direction. The lock guards offsets and ends.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/proxy.h"

enum { HELLO_BYTES = 32, HELLO_VERSION_AT = 8, CHUNK = 65536, OFFSETS_MAX = 65536 };
enum how { PASS, FLIP, DROP, DOUBLE, STOP, MIXED, OFTEN, LOWER, PLAY };
enum side { CLIENT, SERVER };
enum offset_state { TO_DO, TAKEN, ENDED };

static const char *const hows[] = {
	"pass", "flip", "drop", "double", "stop", "mixed", "often", "lower", "play"};
static const char *const sides[] = {"client", "server"};

static enum how how;
static enum side victim; /* its bytes are changed */
static uint64_t first, last, step = 1;
static const char *record;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t offsets[OFFSETS_MAX]; /* enum offset_state */
static size_t noffsets, nended;
static uint64_t passed; /* OFTEN: bytes of the victim */

struct connection {
	unsigned number;
	int fds[2], files[2]; /* by enum side; files: -1 where nothing is recorded */
	bool has_offset, changed;
	size_t index;    /* into offsets */
	uint8_t version; /* LOWER: the client's */
};

struct direction {
	struct connection *connection;
	enum side from;
	uint64_t at; /* bytes that have come */
};

/* ---- offsets --------------------------------------------------------------------------------- */

/* False: all are taken, and not all connections with one have ended. */
static bool take_offset(struct connection *c)
{
	size_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < noffsets && offsets[i] != TO_DO)
		i++;
	if (i < noffsets) {
		offsets[i] = TAKEN;
		c->has_offset = true;
		c->index = i;
	}
	i = nended;
	pthread_mutex_unlock(&lock);
	return c->has_offset || i == noffsets;
}

static void leave_offset(struct connection *c)
{
	pthread_mutex_lock(&lock);
	if (!c->changed) {
		offsets[c->index] = TO_DO;
	} else {
		offsets[c->index] = ENDED;
		if (++nended == noffsets) {
			puts("done");
			fflush(stdout);
		}
	}
	pthread_mutex_unlock(&lock);
}

/* ---- changing -------------------------------------------------------------------------------- */

/* Bytes before the one to change, of those that have come now; len: it is not among them. */
static size_t place_of(const struct direction *d, size_t len)
{
	const struct connection *c = d->connection;
	uint64_t offset = first + c->index * step;

	if (!c->has_offset || d->from != victim || offset < d->at || offset >= d->at + len)
		return len;
	return offset - d->at;
}

static void flip_often(uint8_t *bytes, size_t len)
{
	pthread_mutex_lock(&lock);
	for (size_t i = first - passed % first - 1; i < len; i += first) {
		bytes[i] ^= 0x10;
		puts("changed");
		fflush(stdout);
	}
	passed += len;
	pthread_mutex_unlock(&lock);
}

/* A hello comes as a whole. The server's is an answer to the client's. */
static void lower_version(struct direction *d, uint8_t *hello)
{
	uint8_t *version = hello + HELLO_VERSION_AT;

	pthread_mutex_lock(&lock);
	if (d->from == CLIENT) {
		d->connection->version = *version;
		*version = (uint8_t)first;
	} else {
		*version = d->connection->version;
	}
	pthread_mutex_unlock(&lock);
}

/* Changes what has come; one byte more has room behind it. Returns the length now; -1: the
 * connection is to stop here. */
static ssize_t change(struct direction *d, uint8_t *bytes, size_t len)
{
	size_t at = place_of(d, len);

	if (how == OFTEN && d->from == victim)
		flip_often(bytes, len);
	if (how == LOWER && !d->at && len >= HELLO_BYTES)
		lower_version(d, bytes);
	d->at += len;
	if (at == len)
		return (ssize_t)len;
	d->connection->changed = true;
	switch (how == MIXED ? (enum how)(DROP + d->connection->index % 3) : how) {
	case FLIP:
		bytes[at] ^= (uint8_t)(1 << (d->connection->index % 8));
		return (ssize_t)len;
	case DROP:
		memmove(bytes + at, bytes + at + 1, len - at - 1);
		return (ssize_t)len - 1;
	case DOUBLE:
		memmove(bytes + at + 1, bytes + at, len - at);
		return (ssize_t)len + 1;
	default:
		return -1;
	}
}

/* ---- connections ----------------------------------------------------------------------------- */

static void keep(int file, const uint8_t *bytes, size_t len)
{
	if (file >= 0 && write(file, bytes, len) != (ssize_t)len)
		err(1, "write");
}

/* Waits until a side gives up. */
static void await_end(const struct connection *c)
{
	struct pollfd fds[] = {{.fd = c->fds[CLIENT], .events = POLLRDHUP},
		{.fd = c->fds[SERVER], .events = POLLRDHUP}};

	poll(fds, 2, -1);
}

static void pass_direction(struct direction *d)
{
	struct connection *c = d->connection;
	uint8_t bytes[CHUNK + 1];
	ssize_t n;

	while ((n = recv(c->fds[d->from], bytes, CHUNK, 0)) > 0) {
		keep(c->files[d->from], bytes, (size_t)n);
		n = change(d, bytes, (size_t)n);
		if (n < 0)
			await_end(c);
		if (n < 0 || !proxy_put(c->fds[!d->from], bytes, (size_t)n))
			break;
	}
	shutdown(c->fds[CLIENT], SHUT_RDWR);
	shutdown(c->fds[SERVER], SHUT_RDWR);
}

static void *run_from_server(void *arg)
{
	pass_direction(&(struct direction){.connection = arg, .from = SERVER});
	return NULL;
}

static void close_connection(struct connection *c)
{
	for (enum side side = CLIENT; side <= SERVER; side++) {
		if (c->fds[side] >= 0)
			close(c->fds[side]);
		if (c->files[side] >= 0)
			close(c->files[side]);
	}
	free(c);
}

static void *run_connection(void *arg)
{
	struct connection *c = arg;
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_from_server, c))
		errx(1, "no thread");
	pass_direction(&(struct direction){.connection = c, .from = CLIENT});
	pthread_join(thread, NULL);
	if (c->has_offset)
		leave_offset(c);
	close_connection(c);
	return NULL;
}

static void open_files(struct connection *c)
{
	char path[4096];

	for (enum side side = CLIENT; side <= SERVER && record; side++) {
		snprintf(path, sizeof(path), "%s.%u.%s", record, c->number, sides[side]);
		c->files[side] = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (c->files[side] < 0)
			err(1, "%s", path);
	}
}

static void begin_connection(int fd, const char *server, unsigned number)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c)
		errx(1, "no memory");
	*c = (struct connection){
		.number = number, .fds = {fd, proxy_dial(server)}, .files = {-1, -1}};
	if (c->fds[SERVER] < 0 || !take_offset(c)) {
		close_connection(c);
		return;
	}
	open_files(c);
	proxy_thread(run_connection, c);
}

static void stand_between(const char *port, const char *server)
{
	int listener = proxy_listen(port);

	for (unsigned n = 0;; n++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			begin_connection(fd, server, n);
	}
}

/* ---- playing --------------------------------------------------------------------------------- */

/* Sends the file, and returns how many bytes come until the other side closes. A server's part
 * waits for the client's first request behind the hello. */
static size_t play_to(int fd, enum side to)
{
	uint8_t bytes[CHUNK];
	size_t answered = 0;
	int file = open(record, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	if (file < 0)
		err(1, "%s", record);
	if (to == CLIENT && read(file, bytes, HELLO_BYTES) == HELLO_BYTES)
		proxy_put(fd, bytes, HELLO_BYTES);
	while (to == CLIENT && answered <= HELLO_BYTES &&
		(n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		answered += (size_t)n;
	while ((n = read(file, bytes, sizeof(bytes))) > 0 && proxy_put(fd, bytes, (size_t)n))
		;
	close(file);
	while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		answered += (size_t)n;
	close(fd);
	return answered;
}

static void play_to_server(const char *port)
{
	int fd = proxy_dial(port);

	if (fd < 0)
		errx(1, "no server");
	printf("%zu\n", play_to(fd, SERVER));
}

static void play_to_clients(const char *port)
{
	int listener = proxy_listen(port);

	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			play_to(fd, CLIENT);
	}
}

/* ---- main ------------------------------------------------------------------------------------ */

/* Tells which connections live though they have a changed byte. */
static void tell_living(void)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < noffsets; i++)
		if (offsets[i] != ENDED)
			printf("byte %llu: %s\n", (unsigned long long)(first + i * step),
				offsets[i] == TAKEN ? "its connection lives" : "was not reached");
}

static int number_of(const char *name, const char *const *names, int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	errx(2, "see middle.c");
}

static uint64_t argument(int argc, char **argv, int i)
{
	if (i >= argc)
		errx(2, "see middle.c");
	return strtoull(argv[i], NULL, 10);
}

static void take_arguments(int argc, char **argv)
{
	if (argc < 4)
		errx(2, "see middle.c");
	how = (enum how)number_of(argv[3], hows, sizeof(hows) / sizeof(*hows));
	if (how == PASS || how == PLAY) {
		record = argv[4]; /* or NULL */
		return;
	}
	if (how == LOWER) {
		first = argument(argc, argv, 4);
		return;
	}
	if (argc < 6)
		errx(2, "see middle.c");
	victim = (enum side)number_of(argv[4], sides, 2);
	first = argument(argc, argv, 5);
	if (how == OFTEN)
		return;
	last = argument(argc, argv, 6);
	step = argument(argc, argv, 7);
	noffsets = (last - first) / step + 1;
	if (noffsets > OFFSETS_MAX)
		errx(2, "too many offsets");
}

int main(int argc, char **argv)
{
	take_arguments(argc, argv);
	if (how == PLAY && !record)
		errx(2, "see middle.c");
	if (how == PLAY && strcmp(argv[1], "-") == 0) {
		play_to_server(argv[2]);
		return 0;
	}
	proxy_await_signal(tell_living);
	if (how == PLAY)
		play_to_clients(argv[1]);
	stand_between(argv[1], argv[2]);
}
