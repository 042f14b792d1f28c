/* idmap.c - users and mounts with mapped ids:
 *
 *     idmap mount SOURCE TARGET FIRST   another mount of SOURCE at TARGET: there id N of the
 *                                       filesystem is FIRST + N
 *     idmap run FIRST COMMAND...        as root of a user namespace: its id N is FIRST + N here
 *
 * Exit status 0, or COMMAND's; or 1 with the errno's name on standard error.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/util.h"

enum { COUNT = 65536 };

static int put_map(pid_t pid, const char *name, const char *first)
{
	char path[64], text[64];
	autoclose int fd = -1;
	int len = snprintf(text, sizeof(text), "0 %s %d", first, COUNT);

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, text, (size_t)len) != len ? -errno : 0;
}

static int become_root_and(int mapped, char **command)
{
	eventfd_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (eventfd_read(mapped, &n) || n != 1)
		return 1;
	if (!command) {
		pause();
		return 0;
	}
	if (setgroups(0, NULL) || setresgid(0, 0, 0) || setresuid(0, 0, 0))
		return 1;
	execvp(command[0], command);
	perror(command[0]);
	return 127;
}

/* Starts a process in such a namespace. It runs the command, or waits if that is NULL. -errno. */
static pid_t start(const char *first, char **command)
{
	int mapped = eventfd(0, EFD_CLOEXEC);
	pid_t pid = mapped < 0 ? -1
			       : (pid_t)syscall(
					 SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0);
	int err;

	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(become_root_and(mapped, command));
	err = put_map(pid, "uid_map", first);
	if (!err)
		err = put_map(pid, "gid_map", first);
	eventfd_write(mapped, err ? 2 : 1);
	close(mapped);
	return err ? err : pid;
}

static int run(const char *first, char **command)
{
	pid_t pid = start(first, command);
	int status;

	if (pid < 0)
		return pid;
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int mount_by(int ns, const char *source, const char *target)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)ns};
	autoclose int tree =
		(int)syscall(SYS_open_tree, AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0)
		return -errno;
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)))
		return -errno;
	return syscall(SYS_move_mount, tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) ? -errno
											    : 0;
}

static int mount_mapped(const char *source, const char *target, const char *first)
{
	pid_t pid = start(first, NULL);
	char path[64];
	autoclose int ns = -1;
	int err;

	if (pid < 0)
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	err = ns < 0 ? -errno : mount_by(ns, source, target);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return err;
}

int main(int argc, char **argv)
{
	int err = -EINVAL;

	if (argc == 5 && strcmp(argv[1], "mount") == 0)
		err = mount_mapped(argv[2], argv[3], argv[4]);
	else if (argc > 3 && strcmp(argv[1], "run") == 0)
		err = run(argv[2], argv + 3);
	if (err)
		fprintf(stderr, "idmap: %s\n", strerrorname_np(-err));
	return err ? 1 : 0;
}
