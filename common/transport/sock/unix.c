/* unix.c - see unix.h. */
#include "common/transport/sock/unix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "common/base/util.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static const char *path_of(const struct transport_address *address)
{
	return ((const struct sockaddr_un *)&address->addr)->sun_path;
}

/* 0: the file is a socket that nobody listens on. Our own live listeners have another socket type
 * (EPROTOTYPE), so the check does not disturb them. */
static int check_stale(const struct transport_address *address)
{
	autoclose int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (lstat(path_of(address), &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	if (!connect(fd, (const struct sockaddr *)&address->addr, address->addrlen))
		return -EADDRINUSE;
	return errno == ECONNREFUSED ? 0 : -EADDRINUSE;
}

int sock_unix_bind(int fd, const struct transport_address *address, dev_t *dev, ino_t *ino)
{
	const struct sockaddr *addr = (const struct sockaddr *)&address->addr;
	struct stat st;
	int err;

	/* The file gets the descriptor's mode, so it is never open to all, not even for a moment.
	 */
	if (fchmod(fd, 0600) < 0)
		return -errno;
	if (bind(fd, addr, address->addrlen) < 0) {
		if (errno != EADDRINUSE)
			return -errno;
		err = check_stale(address);
		if (err)
			return err;
		if (unlink(path_of(address)) < 0 && errno != ENOENT)
			return -errno;
		if (bind(fd, addr, address->addrlen) < 0)
			return -errno;
	}
	if (lstat(path_of(address), &st) < 0)
		return -errno;
	*dev = st.st_dev;
	*ino = st.st_ino;
	return 0;
}

int sock_unix_probe(const struct transport_address *address)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;
	int err = check_stale(address);

	if (err && err != -ENOENT)
		return err;
	snprintf(dir, sizeof(dir), "%s", path_of(address));
	slash = strrchr(dir, '/');
	slash[slash == dir] = '\0';
	return faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) ? -errno : 0;
}

void sock_unix_unbind(const struct transport_address *address, dev_t dev, ino_t ino)
{
	struct stat st;

	if (!lstat(path_of(address), &st) && st.st_dev == dev && st.st_ino == ino)
		unlink(path_of(address));
}

int sock_unix_peer(int fd, int *pid, uid_t *uid, int *pidfd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int made = -1;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	len = sizeof(made);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &made, &len) < 0)
		made = (int)syscall(SYS_pidfd_open, cred.pid, 0);
	if (made < 0)
		return -errno;
	*pid = cred.pid;
	*uid = cred.uid;
	*pidfd = made;
	return 0;
}
