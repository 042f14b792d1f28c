/* steward [-n TIMES] [-k] [-c] NAME COMMAND...
 *
 * Runs the command as a service manager runs a service: with NOTIFY_SOCKET, which is bound at NAME,
 * and a store of descriptors. When the command dies, or ends with a status other than 0, it is run
 * again, TIMES times at most (0 if not given). It gets the descriptors that it has stored then
 * (sd_listen_fds(3)). RMEMFS_CRASH_AT is for the first run alone, unless -c is given. At the end
 * the store is closed; with -k it is kept open until SIGTERM. Prints what happens:
 *
 *     run PID        told LINE        stored NAME COUNT        dropped NAME        ended STATUS
 *
 * It does not look at the descriptors, as FDPOLL=0 demands. SIGTERM is passed on. Ends with the
 * last status of the command; 128 and a signal's number for a death. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STORE_MAX = 64, AGAIN_MS = 100 };

static struct {
	int fd;
	char name[64];
} store[STORE_MAX];
static unsigned nstore;

static void die(const char *what)
{
	perror(what);
	exit(99);
}

/* ---- the store ------------------------------------------------------------------------------- */

static void forget(unsigned i)
{
	close(store[i].fd);
	store[i] = store[--nstore];
}

static void drop_name(const char *name)
{
	for (unsigned i = nstore; i-- > 0;)
		if (strcmp(store[i].name, name) == 0)
			forget(i);
	printf("dropped %s\n", name);
}

static void keep(const char *name, const int *fds, unsigned n)
{
	for (unsigned i = 0; i < n && nstore < STORE_MAX; i++) {
		store[nstore].fd = fds[i];
		snprintf(store[nstore++].name, sizeof(store[0].name), "%s", name);
	}
	printf("stored %s %u\n", name, n);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void take(char *text, const int *fds, unsigned n)
{
	bool stores = false, removes = false;
	char name[64] = "stored";

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		stores |= strcmp(line, "FDSTORE=1") == 0;
		removes |= strcmp(line, "FDSTOREREMOVE=1") == 0;
		if (strncmp(line, "FDNAME=", 7) == 0)
			snprintf(name, sizeof(name), "%s", line + 7);
		printf("told %s\n", line);
	}
	if (stores)
		keep(name, fds, n);
	else
		for (unsigned i = 0; i < n; i++)
			close(fds[i]);
	if (removes)
		drop_name(name);
}

static bool receive(int notify)
{
	char text[4096];
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(STORE_MAX * sizeof(int))];
	} control;
	struct iovec iov = {text, sizeof(text) - 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t len = recvmsg(notify, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct cmsghdr *c = len >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	int fds[STORE_MAX];
	unsigned n = 0;

	if (len < 0)
		return false;
	text[len] = '\0';
	if (c && c->cmsg_type == SCM_RIGHTS) {
		n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	}
	take(text, fds, n);
	return true;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void become(char **command, const char *notify_path)
{
	char text[32], names[STORE_MAX * 64] = "";
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (unsigned i = 0; i < nstore; i++)
		if ((store[i].fd = fcntl(store[i].fd, F_DUPFD, 200)) < 0)
			die("fcntl");
	for (unsigned i = 0; i < nstore; i++) {
		if (dup2(store[i].fd, 3 + (int)i) < 0)
			die("dup2");
		close(store[i].fd);
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ":" : "",
			store[i].name);
	}
	snprintf(text, sizeof(text), "%d", (int)getpid());
	setenv("LISTEN_PID", text, 1);
	snprintf(text, sizeof(text), "%u", nstore);
	if (nstore) {
		setenv("LISTEN_FDS", text, 1);
		setenv("LISTEN_FDNAMES", names, 1);
	}
	setenv("NOTIFY_SOCKET", notify_path, 1);
	execvp(command[0], command);
	die(command[0]);
}

static pid_t run(char **command, const char *notify_path, int *pidfd)
{
	pid_t child = fork();

	if (child == 0)
		become(command, notify_path);
	if (child < 0 || (*pidfd = pidfd_open(child, 0)) < 0)
		die("fork");
	printf("run %d\n", (int)child);
	return child;
}

static int status_of(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		die("waitpid");
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Returns how it has ended. *told: SIGTERM came. */
static int watch(pid_t child, int pidfd, int notify, int signals, bool *told)
{
	struct pollfd fds[3] = {{.fd = notify, .events = POLLIN}, {.fd = signals, .events = POLLIN},
		{.fd = pidfd, .events = POLLIN}};
	struct signalfd_siginfo info;
	int status;

	while (!(fds[2].revents & POLLIN)) {
		poll(fds, 3, -1);
		while (receive(notify))
			continue;
		if (fds[1].revents & POLLIN && read(signals, &info, sizeof(info)) > 0) {
			*told = true;
			kill(child, SIGTERM);
		}
	}
	close(pidfd);
	status = status_of(child);
	while (receive(notify))
		continue;
	printf("ended %d\n", status);
	return status;
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct signalfd_siginfo info;
	int option, times = 0, status, notify, signals, pidfd;
	bool keeps = false, everywhere = false, told = false;
	sigset_t term;
	pid_t child;

	while ((option = getopt(argc, argv, "+n:kc")) != -1) {
		if (option == 'n')
			times = atoi(optarg);
		keeps |= option == 'k';
		everywhere |= option == 'c';
	}
	if (argc - optind < 2)
		return 98;
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[optind]);
	notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (notify < 0 || bind(notify, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("bind");
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	signals = signalfd(-1, &term, SFD_CLOEXEC);
	do {
		child = run(argv + optind + 1, argv[optind], &pidfd);
		status = watch(child, pidfd, notify, signals, &told);
		if (!everywhere)
			unsetenv("RMEMFS_CRASH_AT");
		poll(NULL, 0, AGAIN_MS);
	} while (status && !told && times-- > 0);
	if (keeps && !told)
		while (read(signals, &info, sizeof(info)) < 0)
			continue;
	return status;
}
