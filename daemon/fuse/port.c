#include "daemon/fuse/port.h"

#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/nodump.h"
#include "common/base/util.h"
#include "daemon/fuse/decode.h"
#include "daemon/fuse/private.h"
#include "daemon/request/request.h"

/* libfuse reports only by its log function, which has no argument of ours. This is its last line,
 * written while main mounts. */
static char libfuse_said[512];

__attribute__((format(printf, 2, 0))) static void keep_message(
	enum fuse_log_level level, const char *format, va_list args)
{
	size_t len;

	vsnprintf(libfuse_said, sizeof(libfuse_said), format, args);
	len = strlen(libfuse_said);
	if (len && libfuse_said[len - 1] == '\n')
		libfuse_said[len - 1] = '\0';
}

/* libfuse begins with nosuid,nodev for everybody, and lets no other user in. The first is right: a
 * user who trusts the server can say otherwise. A mount by root is for all users, like mount(8)'s
 * mounts of other filesystems. For other users fusermount3 insists on nosuid,nodev, and lets others
 * in only if the system allows it. */
static const char *first_options(void)
{
	return geteuid() == 0 ? "subtype=rmemfs,default_permissions,allow_other"
			      : "subtype=rmemfs,default_permissions";
}

/* Adds "-o" and its value. fsname may hold commas, which fuse_opt_add_opt_escaped hides. */
static int build_args(struct fuse_args *args, const char *source, const char *options)
{
	autofree char *fsname = NULL;
	char *list = NULL;
	int failed;

	if (asprintf(&fsname, "fsname=%s", source) < 0)
		return -ENOMEM;
	failed = fuse_opt_add_opt_escaped(&list, fsname) ||
		 fuse_opt_add_opt(&list, first_options()) ||
		 (options[0] && fuse_opt_add_opt(&list, options)) ||
		 fuse_opt_add_arg(args, "rmemfs") || fuse_opt_add_arg(args, "-o") ||
		 fuse_opt_add_arg(args, list);
	free(list);
	return failed ? -ENOMEM : 0;
}

/* libfuse never sees a request, so its session needs no operations. */
static int new_session(const char *source, const char *options, struct fuse_session **out)
{
	static const struct fuse_lowlevel_ops no_ops;
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *session = NULL;
	int err;

	err = build_args(&args, source, options);
	if (!err) {
		session = fuse_session_new(&args, &no_ops, sizeof(no_ops), NULL);
		err = session ? 0 : -EINVAL;
	}
	fuse_opt_free_args(&args);
	*out = session;
	return err;
}

/* The first line that fusermount3 has written. */
static void read_said(int fd)
{
	ssize_t len = pread(fd, libfuse_said, sizeof(libfuse_said) - 1, 0);

	if (len <= 0)
		return;
	libfuse_said[len] = '\0';
	libfuse_said[strcspn(libfuse_said, "\n")] = '\0';
}

/* fusermount3 tells its reasons on standard error, which it has from us. They are held back, to be
 * logged once. */
static int session_mount(struct fuse_session *session, const char *mountpoint)
{
	autoclose int said = memfd_create("fusermount3", MFD_CLOEXEC);
	autoclose int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	int failed;

	if (said < 0 || kept < 0)
		return -errno;
	dup2(said, STDERR_FILENO);
	failed = fuse_session_mount(session, mountpoint);
	dup2(kept, STDERR_FILENO);
	read_said(said);
	return failed ? -EIO : 0;
}

int fuse_port_mount(const char *source, const char *mountpoint, const char *options,
	struct fuse_port **out, char *why, size_t whylen)
{
	struct fuse_port *port = calloc(1, sizeof(*port));
	int err;

	if (!port)
		return -ENOMEM;
	libfuse_said[0] = '\0';
	fuse_set_log_func(keep_message);
	err = new_session(source, options, &port->session);
	if (err)
		goto err_port;
	err = session_mount(port->session, mountpoint);
	if (err)
		goto err_session;
	if (libfuse_said[0])
		log_warning("%s: %s", mountpoint, libfuse_said);
	/* The session closes its own descriptor before it unmounts, when notifications may be under
	 * way. */
	port->fd = fcntl(fuse_session_fd(port->session), F_DUPFD_CLOEXEC, 3);
	if (port->fd < 0) {
		err = -errno;
		goto err_mounted;
	}
	port->mountpoint = mountpoint;
	port->mounted = true;
	*out = port;
	return 0;

err_mounted:
	fuse_session_unmount(port->session);
err_session:
	fuse_session_destroy(port->session);
err_port:
	snprintf(why, whylen, "%s: cannot mount: %s", mountpoint,
		libfuse_said[0] ? libfuse_said : errno_text(err));
	free(port);
	return err;
}

int fuse_port_adopt(int fd, const char *mountpoint, struct fuse_port **out)
{
	struct fuse_port *port = calloc(1, sizeof(*port));

	if (!port) {
		close(fd);
		return -ENOMEM;
	}
	port->fd = fd;
	port->mountpoint = mountpoint;
	port->mounted = true;
	*out = port;
	return 0;
}

int fuse_port_fd(const struct fuse_port *port)
{
	return port->fd;
}

int fuse_port_clone(struct fuse_port *port, int *out)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	uint32_t master = (uint32_t)port->fd;
	int err;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, FUSE_DEV_IOC_CLONE, &master) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	*out = fd;
	return 0;
}

/* libfuse takes a session for unmounted if its descriptor has an error, as the end of a pipe
 * without a reader has. Then it frees its path, and leaves mounts alone. */
static void session_forget_mount(struct fuse_session *session)
{
	int ends[2];

	if (!session || pipe2(ends, O_CLOEXEC))
		return;
	close(ends[0]);
	dup3(ends[1], fuse_session_fd(session), O_CLOEXEC);
	close(ends[1]);
	fuse_session_unmount(session);
}

/* For root libfuse may run umount(8), which the sandbox forbids: from 3.15 on, and before that
 * where /etc/mtab is a file. A mount that is disconnected has gone already, and another one may be
 * there.
 */
static void unmount_as_root(struct fuse_port *port)
{
	if (!fuse_port_disconnected(port, 0) &&
		umount2(port->mountpoint, MNT_DETACH | UMOUNT_NOFOLLOW))
		log_warning("%s: cannot unmount: %s", port->mountpoint, errno_text(-errno));
	session_forget_mount(port->session);
}

/* As libfuse does it for a mount that it has made. */
static void unmount_as_user(struct fuse_port *port)
{
	const char *const argv[] = {"fusermount3", "-u", "-q", "-z", "--", port->mountpoint, NULL};
	posix_spawnattr_t attr;
	sigset_t none;
	int err, status;
	pid_t child;

	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	err = posix_spawnp(&child, argv[0], NULL, &attr, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attr);
	if (err || waitpid(child, &status, 0) != child || status)
		log_warning("%s: fusermount3 has not unmounted it", port->mountpoint);
}

void fuse_port_unmount(struct fuse_port *port)
{
	if (!port->mounted)
		return;
	port->mounted = false;
	if (geteuid() == 0)
		unmount_as_root(port);
	else if (port->session)
		fuse_session_unmount(port->session);
	else if (!fuse_port_disconnected(port, 0))
		unmount_as_user(port);
}

void fuse_port_leave(struct fuse_port *port)
{
	port->mounted = false;
	session_forget_mount(port->session);
}

bool fuse_port_disconnected(struct fuse_port *port, int timeout_ms)
{
	struct pollfd pfd = {.fd = port->fd};

	return poll(&pfd, 1, timeout_ms) == 1 && (pfd.revents & POLLERR);
}

bool fuse_port_gone(const struct fuse_port *port)
{
	return __atomic_load_n(&port->gone, __ATOMIC_ACQUIRE);
}

void fuse_port_set_gone(struct fuse_port *port)
{
	__atomic_store_n(&port->gone, true, __ATOMIC_RELEASE);
}

void fuse_port_delete(struct fuse_port *port)
{
	fuse_port_unmount(port);
	close(port->fd);
	if (port->session)
		fuse_session_destroy(port->session);
	free(port);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* FORGET and INTERRUPT have no answer: the kernel refuses one. */
static void refuse(int fd, const struct fuse_in_header *in)
{
	struct fuse_out_header out = {.len = sizeof(out), .error = -EIO, .unique = in->unique};

	if (write(fd, &out, sizeof(out)) < 0 && errno != ENOENT && errno != EINVAL)
		log_error("fuse: cannot refuse a request: %s", errno_text(errno));
}

/* False: the connection is gone. */
static bool refuse_next(int fd, void *msg)
{
	ssize_t n = read(fd, msg, FUSE_MESSAGE_BYTES_MAX);

	if (n >= (ssize_t)sizeof(struct fuse_in_header))
		refuse(fd, msg);
	return n >= 0 || (errno != ENODEV && errno != ECONNABORTED);
}

void fuse_port_refuse_until(struct fuse_port *port, int done_fd)
{
	void *msg = nodump_map(FUSE_MESSAGE_BYTES_MAX);
	struct pollfd fds[2] = {{.fd = done_fd, .events = POLLIN}, {.fd = -1, .events = POLLIN}};

	/* Without a connection no caller waits for an answer. */
	if (!msg || fuse_port_clone(port, &fds[1].fd) != 0) {
		nodump_unmap(msg, FUSE_MESSAGE_BYTES_MAX);
		return;
	}
	while (!(fds[0].revents & POLLIN)) {
		if (poll(fds, 2, -1) > 0 && fds[1].revents && !refuse_next(fds[1].fd, msg))
			break;
	}
	close(fds[1].fd);
	nodump_unmap(msg, FUSE_MESSAGE_BYTES_MAX);
}

/* ---- notifications --------------------------------------------------------------------------- */

/* A message with unique 0, whose error carries its kind. */
static int notify(struct fuse_port *port, int code, const void *body, size_t bodylen,
	const char *name, size_t namelen)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + bodylen + namelen),
		.error = code,
	};
	struct iovec iov[3] = {
		{&out, sizeof(out)},
		{(void *)body, bodylen},
		{(void *)name, namelen},
	};

	return writev(port->fd, iov, namelen ? 3 : bodylen ? 2 : 1) < 0 ? -errno : 0;
}

#ifndef FUSE_HAS_RESEND /* 7.40, Linux 6.9 */
#define FUSE_NOTIFY_RESEND 7
#define FUSE_UNIQUE_RESEND (1ULL << 63)
#endif

int fuse_port_resend(struct fuse_port *port)
{
	static_assert(REQUEST_RESENT == FUSE_UNIQUE_RESEND, "the kernel's bit");

	return notify(port, FUSE_NOTIFY_RESEND, NULL, 0, NULL, 0);
}

int fuse_port_inval_inode(struct fuse_port *port, uint64_t node, int64_t off, int64_t len)
{
	struct fuse_notify_inval_inode_out out = {.ino = node, .off = off, .len = len};

	return notify(port, FUSE_NOTIFY_INVAL_INODE, &out, sizeof(out), NULL, 0);
}

/* The kernel does not keep a page of which it gets one byte, but takes the byte for the file's
 * end. */
int fuse_port_raise_size(struct fuse_port *port, uint64_t node, uint64_t size)
{
	struct fuse_notify_store_out out = {.nodeid = node, .offset = size - 1, .size = 1};
	int r = notify(port, FUSE_NOTIFY_STORE, &out, sizeof(out), "", 1);

	return r ? r : fuse_port_inval_inode(port, node, (int64_t)(size - PAGE_BYTES), PAGE_BYTES);
}

int fuse_port_expire_entry(struct fuse_port *port, uint64_t parent, const char *name)
{
	size_t len = strlen(name);
	/* Kernels that do not know the flag ignore it. */
	struct fuse_notify_inval_entry_out out = {
		.parent = parent, .namelen = (uint32_t)len, .flags = FUSE_EXPIRE_ONLY};

	return notify(port, FUSE_NOTIFY_INVAL_ENTRY, &out, sizeof(out), name, len + 1);
}
