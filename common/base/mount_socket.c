#include "common/base/mount_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder is /run/user/UID wherever systemd-logind makes it; see pam_systemd(8). */
int mount_socket_folder(uid_t uid, char folder[MOUNT_SOCKET_BYTES])
{
	const char *runtime = uid && uid == geteuid() ? getenv("XDG_RUNTIME_DIR") : NULL;
	int len;

	if (uid == 0)
		len = snprintf(folder, MOUNT_SOCKET_BYTES, "%s", MOUNT_SOCKETS_OF_ROOT);
	else if (uid != geteuid())
		len = snprintf(folder, MOUNT_SOCKET_BYTES, "/run/user/%u/rmemfs", uid);
	else if (runtime && *runtime == '/')
		len = snprintf(folder, MOUNT_SOCKET_BYTES, "%s/rmemfs", runtime);
	else
		return -ENOENT;
	return len < (int)MOUNT_SOCKET_BYTES ? 0 : -ENAMETOOLONG;
}

int mount_socket_path(uid_t uid, unsigned connection, char path[MOUNT_SOCKET_BYTES])
{
	char folder[MOUNT_SOCKET_BYTES];
	int err = mount_socket_folder(uid, folder);

	if (err)
		return err;
	return snprintf(path, MOUNT_SOCKET_BYTES, "%s/%u", folder, connection) <
			       (int)MOUNT_SOCKET_BYTES
		       ? 0
		       : -ENAMETOOLONG;
}

int mount_socket_id(const char *path, struct socket_id *id)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	*id = (struct socket_id){st.st_dev, st.st_ino};
	return 0;
}

void mount_socket_remove(const char *path, const struct socket_id *id)
{
	struct socket_id there;

	if (id->ino && mount_socket_id(path, &there) == 0 && there.dev == id->dev &&
		there.ino == id->ino)
		unlink(path);
}
