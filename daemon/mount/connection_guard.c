/* The thread that makes the child is started by connection_guard_start() and ended by
 * connection_guard_stop(). */
#include "daemon/mount/connection_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mount_socket.h"
#include "common/base/util.h"
#include "daemon/record/record.h"

/* No other sender uses this signal. */
enum { DEATH_SIGNAL = SIGUSR1, LOOK_MS = 100 };

/* A message of the daemon to its child. */
struct guarded {
	unsigned connection;
	struct socket_id socket;
	bool ends;  /* in order */
	bool keeps; /* a descriptor of the record comes along */
};

/* ---- the child ------------------------------------------------------------------------------- */

/* Mounts the kernel's files that control connections, for this process alone. */
static int mount_controls(void)
{
	autoclose int config = fsopen("fusectl", FSOPEN_CLOEXEC);
	int fd;

	if (config < 0 || fsconfig(config, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(config, FSMOUNT_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static int open_abort_at(int controls, unsigned connection)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "%u/abort", connection);
	fd = openat(controls, path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Mostly these files are mounted already, and then root's privilege is not needed. */
static int open_abort(unsigned connection)
{
	autoclose int mounted =
		open("/sys/fs/fuse/connections", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclose int own = -1;
	int fd = mounted < 0 ? -errno : open_abort_at(mounted, connection);

	if (fd != -ENOENT)
		return fd;
	own = mount_controls();
	return own < 0 ? own : open_abort_at(own, connection);
}

/* systemd counts a process whose name begins with '(' as a helper, as its own "(sd-pam)". It warns
 * of all others that are left when a unit has stopped or starts, and this one lives for a moment
 * longer than a daemon that was killed. */
static const char process_name[] = "(rmemfs-guard)";

/* ps(1) shows the daemon's arguments for both processes otherwise. The arguments lie one behind the
 * other, and argv[0] comes first. */
static void take_name(pid_t daemon)
{
	char args[4096];
	autoclose int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, args, sizeof(args));

	prctl(PR_SET_NAME, process_name);
	if (len <= 0 || strncmp(args, program_invocation_name, (size_t)len) != 0)
		return;
	memset(program_invocation_name, 0, (size_t)len);
	snprintf(program_invocation_name, (size_t)len, "%s of process %d", process_name,
		(int)daemon);
}

/* The child must not keep the descriptors of the daemon's caller, or its directory, for longer than
 * the daemon does. It leaves the process group, which may be killed as a whole. */
static void connection_guard_leave(int fd, pid_t daemon)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; null >= 0 && i <= STDERR_FILENO; i++)
		dup2(null, i);
	if (fd > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned)fd - 1, 0);
	close_range((unsigned)fd + 1, ~0U, 0);
	if (chdir("/") < 0)
		_exit(1);
	setsid();
	take_name(daemon);
}

/* Signals that end the daemon in order are for the daemon alone. */
static int catch_death(void)
{
	sigset_t all, death;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&death);
	sigaddset(&death, DEATH_SIGNAL);
	if (prctl(PR_SET_PDEATHSIG, DEATH_SIGNAL) < 0)
		return -errno;
	return signalfd(-1, &death, SFD_CLOEXEC);
}

/* The signal tells which process has died. */
static bool has_died(int signals, pid_t daemon)
{
	struct signalfd_siginfo info;

	return read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info) &&
	       (pid_t)info.ssi_pid == daemon;
}

/* The state of the child. */
struct guarding {
	pid_t pid;           /* the daemon's */
	int daemon;          /* a descriptor that stands for it */
	int abort;           /* -1: nothing is to be aborted */
	int record;          /* -1: no successor is expected */
	unsigned generation; /* of the record */
};

/* The part of the record that says whether a successor has come. */
static int read_record(int fd, struct record_head *head)
{
	size_t len = offsetof(struct record_head, generation) + sizeof(head->generation);

	return pread(fd, head, len, 0) == (ssize_t)len ? 0 : -EIO;
}

static ssize_t receive_guarded(int fd, struct guarded *guarded, int *with)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {guarded, sizeof(*guarded)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	*with = -1;
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(with, CMSG_DATA(c), sizeof(int));
	return n;
}

static void replace_record(struct guarding *g, int fd)
{
	struct record_head *head = fd < 0 ? NULL : malloc(sizeof(*head));

	if (g->record >= 0)
		close(g->record);
	g->record = fd;
	g->generation = head && !read_record(fd, head) ? atomic_load(&head->generation) : 0;
	free(head);
}

/* False: the daemon asks no more. */
static bool obey(int fd, struct guarded *guarded, struct guarding *g)
{
	struct socket_id socket = guarded->socket;
	int *abort = &g->abort;
	int err, with;

	if (receive_guarded(fd, guarded, &with) != (ssize_t)sizeof(*guarded) || guarded->ends)
		return false;
	if (guarded->keeps)
		guarded->socket = socket;
	if (guarded->keeps || !guarded->connection)
		replace_record(g, with);
	if (!guarded->connection && *abort >= 0)
		close(steal_fd(abort));
	if (guarded->connection && *abort < 0)
		*abort = open_abort(guarded->connection);
	err = guarded->connection && *abort < 0 ? *abort : 0;
	return send(fd, &err, sizeof(err), MSG_NOSIGNAL) == (ssize_t)sizeof(err);
}

static void remove_socket(const struct guarded *guarded)
{
	char path[MOUNT_SOCKET_BYTES];

	if (mount_socket_path(geteuid(), guarded->connection, path) == 0)
		mount_socket_remove(path, &guarded->socket);
}

/* It takes as long as its core is written. */
static bool is_dumping(pid_t daemon)
{
	char path[32], text[4096];
	ssize_t len = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)daemon);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[len < 0 ? 0 : len] = '\0';
	return strstr(text, "\nCoreDumping:\t1");
}

static bool await_end(const struct guarding *g)
{
	struct pollfd pfd = {.fd = g->daemon, .events = POLLIN};
	int64_t began = now_ms(), passed;

	if (g->daemon < 0)
		return false;
	while (poll(&pfd, 1, LOOK_MS) != 1) {
		passed = now_ms() - began;
		if (passed >= GUARD_SUCCESSOR_MS || (passed >= GUARD_END_MS && !is_dumping(g->pid)))
			return false;
	}
	return true;
}

/* The daemon was killed. Whether a successor has the mount; it has a child of its own then. */
static bool successor_comes(const struct guarding *g)
{
	struct record_head *head = g->record < 0 ? NULL : malloc(sizeof(*head));
	int64_t until;

	if (!head || !await_end(g))
		return false;
	for (until = now_ms() + GUARD_SUCCESSOR_MS; now_ms() < until; poll(NULL, 0, LOOK_MS)) {
		if (read_record(g->record, head))
			return false;
		/* This comes first: a successor may have begun to share, which nobody goes on
		 * with. */
		if (atomic_load(&head->generation) != g->generation)
			return true;
		if (!record_can_go_on(head))
			return false;
	}
	return false;
}

/* While a thread of the daemon is left, the daemon's end of the socket stays open, and only the
 * signal tells that the daemon was killed. Where its last thread is the one that made this child,
 * the socket's end comes before the signal. */
_Noreturn static void outlive(int fd, pid_t daemon)
{
	struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLIN}};
	struct guarded guarded = {0};
	struct guarding g = {.abort = -1, .record = -1};

	connection_guard_leave(fd, daemon);
	g.pid = daemon;
	g.daemon = pidfd_open(daemon, 0);
	fds[0].fd = catch_death();
	fds[1].fd = fd;
	while (fds[0].fd >= 0 && poll(fds, 2, -1) > 0) {
		if (fds[0].revents && has_died(fds[0].fd, daemon)) {
			remove_socket(&guarded);
			break;
		}
		if (fds[1].revents && !obey(fd, &guarded, &g)) {
			if (!guarded.ends)
				remove_socket(&guarded);
			break;
		}
	}
	if (!guarded.ends && successor_comes(&g))
		_exit(0);
	if (g.abort >= 0 && write(g.abort, "1", 1) < 0)
		_exit(1);
	_exit(0);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static void *connection_guard_make(void *arg)
{
	struct survivor *s = arg;
	pid_t daemon = getpid();

	s->child = fork();
	if (!s->child)
		outlive(s->its_fd, daemon);
	if (s->child < 0)
		s->child = -errno;
	sem_post(&s->made);
	while (sem_wait(&s->end) < 0)
		continue;
	return NULL;
}

static void close_both(struct survivor *s)
{
	close(s->fd);
	close(s->its_fd);
	s->fd = s->its_fd = -1;
}

int connection_guard_start(struct survivor *s)
{
	int fds[2], r;

	*s = (struct survivor){.fd = -1, .its_fd = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return s->child = -errno;
	s->fd = fds[0];
	s->its_fd = fds[1];
	sem_init(&s->made, 0, 0);
	sem_init(&s->end, 0, 0);
	r = pthread_create(&s->maker, NULL, connection_guard_make, s);
	if (r) {
		close_both(s);
		return s->child = -r;
	}
	while (sem_wait(&s->made) < 0)
		continue;
	close(steal_fd(&s->its_fd));
	return s->child < 0 ? s->child : 0;
}

int connection_guard_watch(struct survivor *s, unsigned connection, const struct socket_id *socket)
{
	struct guarded guarded = {.connection = connection};
	int err;

	if (s->child < 0)
		return s->child;
	if (socket)
		guarded.socket = *socket;
	if (send(s->fd, &guarded, sizeof(guarded), MSG_NOSIGNAL) < 0)
		return -errno;
	/* The child may have been killed. */
	return recv(s->fd, &err, sizeof(err), 0) == (ssize_t)sizeof(err) ? err : -ESRCH;
}

int connection_guard_keep(struct survivor *s, unsigned connection, int record)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct guarded guarded = {.connection = connection, .keeps = true};
	struct iovec iov = {&guarded, sizeof(guarded)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	int err;

	if (s->child < 0)
		return s->child;
	*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &record, sizeof(int));
	if (sendmsg(s->fd, &msg, MSG_NOSIGNAL) < 0)
		return -errno;
	return recv(s->fd, &err, sizeof(err), 0) == (ssize_t)sizeof(err) ? err : -ESRCH;
}

int connection_guard_abort(unsigned connection)
{
	autoclose int fd = open_abort(connection);

	if (fd < 0)
		return fd;
	return write(fd, "1", 1) < 0 ? -errno : 0;
}

void connection_guard_stop(struct survivor *s)
{
	const struct guarded last = {.ends = true};

	if (s->fd < 0)
		return;
	send(s->fd, &last, sizeof(last), MSG_NOSIGNAL);
	close_both(s);
	if (s->child > 0)
		waitpid(s->child, NULL, 0);
	sem_post(&s->end);
	pthread_join(s->maker, NULL);
	sem_destroy(&s->made);
	sem_destroy(&s->end);
}
