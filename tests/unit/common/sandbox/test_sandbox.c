/* test_sandbox.c - what a program in the sandbox can do, and what it can't. Each test runs in a child
 * process, since nothing leaves the sandbox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/sanitized.h"
#include "common/base/util.h"
#include "common/sandbox/landlock.h"
#include "common/sandbox/sandbox.h"
#include "common/sandbox/syscall_filter.h"
#include "tests/unit/emulated.h"

/* In a child: the first that does not hold is told, and is the exit status. */
#define DEMAND(condition)                                                             \
	do {                                                                          \
		if (!(condition)) {                                                   \
			fprintf(stderr, "# line %d: %s (%s)\n", __LINE__, #condition, \
				strerror(errno));                                     \
			_exit(1);                                                     \
		}                                                                     \
	} while (0)
/* The call fails with the error. */
#define FAILS(call, error) DEMAND((errno = 0, (call) == -1 && errno == (error)))

static void in_child(void (*body)(void))
{
	pid_t child;
	int status;

	if (IS_SANITIZED)
		return;
	fflush(NULL);
	child = fork();
	if (!child) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void executes_nothing(int error)
{
	char name[] = "true", *const argv[] = {name, NULL}, *const none[] = {NULL};
	int fd = open("/bin/true", O_PATH | O_CLOEXEC);

	FAILS(execve("/bin/true", argv, none), error);
	FAILS(fexecve(fd, argv, none), error);
	close(fd);
}

/* "Seccomp:\t2" */
static int status_of(const char *name)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	int value = -1;

	while (value < 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			value = atoi(line + strlen(name));
	fclose(f);
	return value;
}

/* ---- system calls ---------------------------------------------------------------------------- */

static void *run_thread(void *arg)
{
	*(int *)arg = 1;
	return NULL;
}

static void threads_still_start(void)
{
	pthread_t thread;
	int ran = 0;

	DEMAND(pthread_create(&thread, NULL, run_thread, &ran) == 0);
	DEMAND(pthread_join(thread, NULL) == 0 && ran == 1);
}

static void sockets_are_few(void)
{
	static const int allowed[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

	for (int family = 0; family < 60; family++) {
		bool is_allowed = false;
		int fd = socket(family, family == AF_NETLINK ? SOCK_RAW : SOCK_STREAM, 0);

		for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
			is_allowed |= allowed[i] == family;
		DEMAND(is_allowed ? fd >= 0 : fd < 0 && errno == EPERM);
		if (fd >= 0)
			close(fd);
	}
	/* The kernel looks at 32 bits of the family. */
	FAILS(syscall(SYS_socket, 1ULL << 32 | AF_PACKET, SOCK_RAW, 0), EPERM);
}

static void memory_becomes_no_code(void)
{
	void *page =
		mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	DEMAND(page != MAP_FAILED);
	FAILS(mprotect(page, PAGE_BYTES, PROT_READ | PROT_EXEC), EPERM);
	DEMAND(mprotect(page, PAGE_BYTES, PROT_READ) == 0);
	DEMAND(mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
		errno == EPERM);
	/* As libraries are loaded. */
	DEMAND(mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	close(fd);
}

static void namespaces_stay(void)
{
	FAILS(unshare(CLONE_NEWNS), EPERM);
	FAILS(unshare(CLONE_NEWUSER), EPERM);
	FAILS(syscall(SYS_clone, SIGCHLD | CLONE_NEWUSER, 0, 0, 0, 0), EPERM);
	FAILS(syscall(SYS_clone3, NULL, 0), ENOSYS);
	FAILS(setns(0, 0), EPERM);
}

static void in_filter(bool may_unmount)
{
	DEMAND(syscall_filter_enter(may_unmount) == 0);
	DEMAND(status_of("Seccomp:") == 2 && status_of("NoNewPrivs:") == 1);
	executes_nothing(EPERM);
	FAILS(ptrace(PTRACE_TRACEME, 0, NULL, NULL), EPERM);
	FAILS(mount("none", "/nowhere", "tmpfs", 0, NULL), EPERM);
	FAILS(umount2("/nowhere", MNT_DETACH), may_unmount ? ENOENT : EPERM);
	FAILS(syscall(SYS_bpf, 0, NULL, 0), EPERM);
	FAILS(syscall(SYS_keyctl, 0, 0, 0, 0, 0), EPERM);
	FAILS(syscall(SYS_io_uring_setup, 1, NULL), EPERM);
	FAILS(setuid(getuid()), EPERM);
	FAILS(ioctl(0, 0x5412 /* TIOCSTI */, "x"), EPERM);
	namespaces_stay();
	sockets_are_few();
	memory_becomes_no_code();
	threads_still_start();
}

static void in_filter_of_server(void)
{
	in_filter(false);
}

static void in_filter_of_mount(void)
{
	in_filter(true);
}

static void syscall_filter__server(void **state)
{
	skip_if_emulated();
	in_child(in_filter_of_server);
}

static void syscall_filter__mount_may_unmount(void **state)
{
	skip_if_emulated();
	in_child(in_filter_of_mount);
}

static pthread_barrier_t entered;

static void *execute_later(void *arg)
{
	pthread_barrier_wait(&entered);
	executes_nothing(EPERM);
	return NULL;
}

static void with_thread(void)
{
	pthread_t thread;

	pthread_barrier_init(&entered, NULL, 2);
	DEMAND(pthread_create(&thread, NULL, execute_later, NULL) == 0);
	DEMAND(syscall_filter_enter(true) == 0);
	pthread_barrier_wait(&entered);
	DEMAND(pthread_join(thread, NULL) == 0);
}

static void syscall_filter__holds_for_threads_that_run(void **state)
{
	skip_if_emulated();
	in_child(with_thread);
}

/* ---- Landlock -------------------------------------------------------------------------------- */

static int tcp_bind(uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r = bind(fd, (struct sockaddr *)&in, sizeof(in));
	close(fd);
	return r;
}

static int tcp_connect(uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r = connect(fd, (struct sockaddr *)&in, sizeof(in));
	close(fd);
	return r;
}

static void files_are_usable(const char *dir)
{
	char from[64], to[64], path[64];

	snprintf(from, sizeof(from), "%s/a", dir);
	snprintf(to, sizeof(to), "%s/b", dir);
	DEMAND(mkdir(from, 0700) == 0 && mkdir(to, 0700) == 0);
	snprintf(path, sizeof(path), "%s/a/file", dir);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	snprintf(to, sizeof(to), "%s/b/file", dir);
	DEMAND(rename(path, to) == 0);
	DEMAND(link(to, path) == 0);
	DEMAND(unlink(to) == 0 && unlink(path) == 0);
	snprintf(to, sizeof(to), "%s/device", dir);
	FAILS(mknod(to, S_IFCHR | 0600, makedev(1, 3)), geteuid() ? EPERM : EACCES);
	snprintf(to, sizeof(to), "%s/b", dir);
	DEMAND(rmdir(from) == 0 && rmdir(to) == 0);
}

/* Two ports that can be had: their sockets hold them until both are known. */
static void free_ports(uint16_t ports[2])
{
	int fds[2];

	for (int i = 0; i < 2; i++) {
		struct sockaddr_in in = {.sin_family = AF_INET};
		socklen_t len = sizeof(in);

		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		DEMAND(bind(fds[i], (struct sockaddr *)&in, len) == 0);
		DEMAND(getsockname(fds[i], (struct sockaddr *)&in, &len) == 0);
		ports[i] = ntohs(in.sin_port);
	}
	close(fds[0]);
	close(fds[1]);
}

static void in_landlock(void)
{
	unsigned version = landlock_version();
	char dir[] = "/tmp/rmemfs-unit.XXXXXX";
	uint16_t ports[2];

	free_ports(ports);
	DEMAND(mkdtemp(dir));
	DEMAND(landlock_enter(version, ports, 1) == 0);
	executes_nothing(EACCES);
	files_are_usable(dir);
	rmdir(dir);
	if (version >= 4) {
		DEMAND(tcp_bind(ports[0]) == 0);
		FAILS(tcp_bind(ports[1]), EACCES);
		FAILS(tcp_connect(ports[1]), EACCES);
	}
	if (version >= 6)
		FAILS(kill(getppid(), 0), EPERM);
	DEMAND(kill(getpid(), 0) == 0);
}

static void landlock_enter__what_holds(void **state)
{
	if (landlock_version() < 2)
		assert_int_equal(landlock_enter(landlock_version(), NULL, 0), -ENOSYS);
	else
		in_child(in_landlock);
}

/* ---- both ------------------------------------------------------------------------------------ */

static void enter_switched_off(void)
{
	setenv("RMEMFS_SANDBOX", "off", 1);
	sandbox_enter_server(NULL, 0);
	sandbox_enter_mount();
	DEMAND(status_of("Seccomp:") == 0 && status_of("NoNewPrivs:") == 0);
	execl("/bin/true", "true", NULL);
	_exit(1);
}

static void sandbox_enter__switched_off(void **state)
{
	in_child(enter_switched_off);
}

static void enter_server(void)
{
	sandbox_enter_server(NULL, 0);
	executes_nothing(EPERM);
	threads_still_start();
}

static void sandbox_enter_server__executes_nothing(void **state)
{
	in_child(enter_server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syscall_filter__server),
		cmocka_unit_test(syscall_filter__mount_may_unmount),
		cmocka_unit_test(syscall_filter__holds_for_threads_that_run),
		cmocka_unit_test(landlock_enter__what_holds),
		cmocka_unit_test(sandbox_enter__switched_off),
		cmocka_unit_test(sandbox_enter_server__executes_nothing),
	};

	unsetenv("RMEMFS_SANDBOX");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
