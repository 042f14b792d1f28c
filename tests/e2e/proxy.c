/* proxy.c - see proxy.h. */
#include "tests/e2e/proxy.h"

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in address_of(const char *port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(port)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		err(1, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int proxy_listen(const char *port)
{
	struct sockaddr_in address = address_of(port);
	int fd = new_socket();

	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 128))
		err(1, "listen");
	puts("ready");
	fflush(stdout);
	return fd;
}

int proxy_dial(const char *port)
{
	struct sockaddr_in address = address_of(port);
	int fd = new_socket();

	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

bool proxy_put(int fd, const uint8_t *bytes, size_t len)
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

void proxy_thread(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, arg) || pthread_detach(thread))
		errx(1, "no thread");
}

static sigset_t signals;
static void (*tell_at_end)(void);

static void *end_on_signal(void *arg)
{
	int signal;

	sigwait(&signals, &signal);
	tell_at_end();
	exit(0);
}

void proxy_await_signal(void (*tell)(void))
{
	tell_at_end = tell;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	proxy_thread(end_on_signal, NULL);
}
