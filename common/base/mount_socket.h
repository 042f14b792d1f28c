/* mount_socket.h - where a mount's daemon can be asked what it does: a Unix socket, by the number of
 * the kernel's FUSE connection, which is the minor device number of the mounted filesystem. So
 * nothing has to touch the mount to find it, and no two mounts of a machine have one name.
 *
 *     root's mounts    /run/rmemfs-mounts/NUMBER
 *     others'          $XDG_RUNTIME_DIR/rmemfs/NUMBER, which is /run/user/UID/rmemfs/NUMBER
 *
 * A question is one line, and the answer all that comes until the end: one JSON text. See
 * daemon/admin/control.h.
 */
#ifndef RMEMFS_COMMON_BASE_MOUNT_SOCKET_H
#define RMEMFS_COMMON_BASE_MOUNT_SOCKET_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#define MOUNT_SOCKETS_OF_ROOT "/run/rmemfs-mounts"

enum {
	MOUNT_QUESTION_BYTES = 64,
	MOUNT_SOCKET_BYTES = sizeof(((struct sockaddr_un *)0)->sun_path)
};

/* The folder of a user's sockets. For the caller's own it goes by $XDG_RUNTIME_DIR. -ENOENT: there
 * is no such variable. -ENAMETOOLONG. */
int mount_socket_folder(uid_t uid, char folder[MOUNT_SOCKET_BYTES]);
int mount_socket_path(uid_t uid, unsigned connection, char path[MOUNT_SOCKET_BYTES]);

/* A socket's file. The kernel may give the number of a mount that has gone to another one while the
 * daemon of the first is about to end: it must not remove the other's socket. All zeros: none. */
struct socket_id {
	dev_t dev;
	ino_t ino;
};

/* -errno of lstat(2). */
int mount_socket_id(const char *path, struct socket_id *id);
/* Removes the file if it is this one. */
void mount_socket_remove(const char *path, const struct socket_id *id);

#endif
