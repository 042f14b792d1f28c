#include "daemon/mount/background.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/mount/exit_status.h"

/* The child writes this alone, or the reason why there is no mount. */
static const char ready_word[] = "\n";

void background_hold_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* ---- the parent ------------------------------------------------------------------------------ */

static size_t read_report(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size - 1) {
		n = read(fd, text + len, size - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
		/* The pipe may stay open in other processes of the daemon: a newline ends the
		 * report. */
		if (text[len - 1] == '\n')
			break;
	}
	text[len] = '\0';
	return len;
}

static int wait_for_child(int fd, pid_t child)
{
	char text[1024];
	size_t len = read_report(fd, text, sizeof(text));
	int status;

	if (strcmp(text, ready_word) == 0)
		return MOUNT_DONE;
	if (len) {
		text[strcspn(text, "\n")] = '\0';
		log_complaint("rmemfs", text);
		return MOUNT_FAILED;
	}
	if (waitpid(child, &status, 0) == child && WIFSIGNALED(status))
		snprintf(text, sizeof(text),
			"ended by signal %d before the mount was usable: see 'journalctl -t rmemfs'",
			WTERMSIG(status));
	else
		snprintf(text, sizeof(text),
			"ended before the mount was usable: see 'journalctl -t rmemfs'");
	log_complaint("rmemfs", text);
	return MOUNT_FAILED;
}

/* Closes the descriptors that the caller left open. A pipe's reader would wait as long as the mount
 * lives. */
static void close_others(int report)
{
	if (report > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned)report - 1, 0);
	close_range((unsigned)report + 1, ~0U, 0);
}

int background_fork(void)
{
	int fds[2];
	pid_t child;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (child < 0) {
		int err = -errno;

		close(fds[0]);
		close(fds[1]);
		return err;
	}
	if (child > 0) {
		close(fds[1]);
		exit(wait_for_child(fds[0], child));
	}
	close_others(fds[1]);
	return fds[1];
}

/* ---- the child ------------------------------------------------------------------------------- */

static void report_text(int fd, const char *text)
{
	/* A parent that was killed reads no report. */
	if (write(fd, text, strlen(text)) < 0)
		log_debug("nobody waits for the mount: %s", errno_text(errno));
	close(fd);
}

/* Only a file is kept: a pipe's reader would wait as long as the daemon lives, and a terminal goes
 * away. */
static bool stderr_is_file(void)
{
	struct stat st;

	return fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode);
}

static void redirect(bool keep_file)
{
	autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	autoclose int journal = -1;

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	if (keep_file && stderr_is_file())
		return;
	journal = sd_journal_stream_fd("rmemfs", LOG_LEVEL_INFO, 1);
	if (journal >= 0)
		dup2(journal, STDERR_FILENO);
	else if (null >= 0)
		dup2(null, STDERR_FILENO);
	log_set_journal(journal >= 0);
}

void background_leave_files_on(unsigned number)
{
	autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct stat st;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fstat(fd, &st) == 0 && major(st.st_dev) == 0 && minor(st.st_dev) == number &&
			null >= 0)
			dup2(null, fd);
}

void background_leave(bool keep_file)
{
	setsid();
	if (chdir("/") < 0)
		log_warning("cannot leave the working directory: %s", errno_text(errno));
	redirect(keep_file);
}

void background_ready(int report)
{
	report_text(report, ready_word);
}

void background_failed(int report, const char *why)
{
	char text[1024];

	snprintf(text, sizeof(text), "%.*s\n", (int)sizeof(text) - 2, why);
	report_text(report, text);
}
