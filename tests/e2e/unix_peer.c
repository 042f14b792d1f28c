/* unix_peer.c - a peer of a Unix socket that misbehaves.
 *
 *     unix_peer silent SOCKET   connects, sends nothing, and waits until the other side closes
 *     unix_peer ask SOCKET      sends standard input, and prints what comes until the end
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	strcpy(address.sun_path, path);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

static void copy(int from, int to, int (*put)(int fd, const void *buf, size_t len))
{
	char buf[4096];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0 && put(to, buf, (size_t)n) == 0)
		continue;
}

/* The other side may close before it has read all. */
static int put_socket(int fd, const void *buf, size_t len)
{
	return send(fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1;
}

static int put_file(int fd, const void *buf, size_t len)
{
	return write(fd, buf, len) == (ssize_t)len ? 0 : -1;
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? connect_to(argv[2]) : -1;

	if (fd < 0) {
		fprintf(stderr, "usage: unix_peer silent|ask SOCKET, where a program listens\n");
		return 2;
	}
	if (strcmp(argv[1], "ask") == 0)
		copy(STDIN_FILENO, fd, put_socket);
	copy(fd, STDOUT_FILENO, put_file);
	return 0;
}
