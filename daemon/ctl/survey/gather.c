/* gather.c - the table of sections, and the text that they make. */
#include "daemon/ctl/survey/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mountinfo.h"
#include "common/base/printable.h"
#include "common/base/util.h"
#include "daemon/ctl/bounded.h"
#include "daemon/ctl/check.h"
#include "daemon/ctl/mount_ask.h"
#include "daemon/ctl/survey/gather_show.h"
#include "daemon/ctl/survey/redact.h"

enum { ARGUMENTS_MAX = 20, SECTION_BYTES = 256 << 10 };

/* ---- the table ------------------------------------------------------------------------------- */

#define OUR_PROCESSES "rmemfs,rmemfs-server,rmemfs-metrics"

static const struct section {
	const char *title;  /* NULL: the command is its own title */
	void (*show)(void); /* NULL: a command */
	int limit_ms;
	const char *argv[ARGUMENTS_MAX];
} sections[] = {
	{"this program", gather_show_program, 5000, {NULL}},
	{NULL, NULL, 5000, {"rmemfs", "--version"}},
	{NULL, NULL, 5000, {"rmemfs-server", "--version"}},
	{"libraries of this program", gather_show_libraries, 5000, {NULL}},
	{"packages", NULL, 10000,
		{"dpkg-query", "-W", "-f=${binary:Package} ${Version} ${db:Status-Status}\\n",
			"rmemfs*", "libfuse3-*", "libibverbs*", "librdmacm*", "ibverbs-providers",
			"libssl3*", "liblmdb*", "libjansson*", "libmicrohttpd*", "libc6",
			"systemd"}},
	{NULL, NULL, 5000, {"uname", "-a"}},
	{"system", gather_show_system, 5000, {NULL}},
	{"health", gather_show_health, 40000, {NULL}},
	{"mounts", gather_show_mounts, 30000, {NULL}},
	{"server", gather_show_server, 30000, {NULL}},
	{"doctor", gather_show_doctor, 60000, {NULL}},
	{"processes", NULL, 5000,
		{"ps", "-ww", "-L", "-o", "pid,tid,user,stat,etime,rss,wchan:24,comm,args", "-C",
			OUR_PROCESSES}},
	{"limits of processes", gather_show_limits, 5000, {NULL}},
	{"mountinfo", NULL, 5000,
		{"grep", "-e", MOUNT_TYPE_OURS, "-e", "/dev/shm", "/proc/self/mountinfo"}},
	{"fstab", NULL, 5000, {"grep", "-w", "rmemfs", "/etc/fstab"}},
	{"configuration, without comments", gather_show_configuration, 5000, {NULL}},
	{"keys, by their fingerprints", gather_show_keys, 5000, {NULL}},
	{NULL, NULL, 5000, {"ip", "-br", "address"}},
	{NULL, NULL, 5000, {"ip", "route"}},
	{NULL, NULL, 5000, {"rdma", "link"}},
	{"units", NULL, 10000,
		{"systemctl", "--no-pager", "--full", "--lines=0", "status", "rmemfs-server",
			"rmemfs-metrics", "rmemfs@*"}},
	{"journal", NULL, 20000,
		{"journalctl", "--no-pager", "-q", "-n", "300", "-o", "short-iso", "-t", "rmemfs",
			"-t", "rmemfs-server", "-t", "rmemfs-metrics"}},
	{"journal of the kernel", NULL, 20000,
		{"journalctl", "--no-pager", "-q", "-k", "-b", "-n", "100", "-o", "short-iso"}},
};

/* ---- one section ----------------------------------------------------------------------------- */

/* In the section's process. */
static void be_section(void *arg)
{
	const struct section *section = arg;

	if (section->show) {
		section->show();
		return;
	}
	setenv("LC_ALL", "C.UTF-8", 1);
	if (strncmp(section->argv[0], "rmemfs", strlen("rmemfs")) == 0)
		ctl_exec_installed(section->argv[0], (char *const *)section->argv);
	else
		execvp(section->argv[0], (char *const *)section->argv);
	fprintf(stderr, "%s can't be run: %s\n", section->argv[0], errno_text(errno));
}

static void put_title(FILE *out, const struct section *section)
{
	fputs("\n==== ", out);
	if (section->title)
		fputs(section->title, out);
	for (unsigned i = 0; !section->title && section->argv[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", section->argv[i]);
	fputs("\n", out);
}

/* Line by line, since a newline is no printable character. A tab becomes a blank. */
static void put_lines(FILE *out, char *text, size_t len)
{
	redact_text(text, len);
	for (size_t at = 0; at < len;) {
		char *newline = memchr(text + at, '\n', len - at);
		size_t n = newline ? (size_t)(newline - text) - at : len - at;

		for (size_t i = at; i < at + n; i++)
			if (text[i] == '\t')
				text[i] = ' ';
		fwrite(text + at, 1, printable_clean(text + at, n), out);
		fputc('\n', out);
		at += n + 1;
	}
}

static void put_end(
	FILE *out, const struct section *section, int err, const struct bounded_text *written)
{
	int status = written->status;

	if (err == -ETIMEDOUT)
		fprintf(out, "---- not ended within %d s: the rest is missing\n",
			section->limit_ms / 1000);
	else if (err)
		fprintf(out, "---- could not begin: %s\n", errno_text(err));
	else if (written->cut)
		fprintf(out, "---- longer than %d KiB: the rest is missing\n", SECTION_BYTES >> 10);
	else if (WIFSIGNALED(status))
		fprintf(out, "---- ended by signal %d\n", WTERMSIG(status));
	else if (status)
		fprintf(out, "---- ended with status %d\n", WEXITSTATUS(status));
}

static void put_section(FILE *out, const struct section *section)
{
	struct bounded_text written;
	int err;

	put_title(out, section);
	fflush(out);
	err = bounded_read(be_section, (void *)section, section->limit_ms, SECTION_BYTES, &written);
	if (written.text)
		put_lines(out, written.text, written.len);
	put_end(out, section, err, &written);
	free(written.text);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void put_report(FILE *out)
{
	char now[CLOCK_TEXT_BYTES];

	fprintf(out,
		"rmemfs report, made %s\n"
		"It has names of machines, users, paths and addresses, and no keys.\n"
		"Read it before you send it to anybody.\n",
		clock_format(realtime_ns() / 1000000000, -1, now));
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		put_section(out, &sections[i]);
	fprintf(out, "\n==== end\n");
}

/* A file on a mount whose server is away would keep the report waiting. */
static bool is_on_mount(const char *file)
{
	char path[PATH_MAX];
	struct mount mount;
	autofree char *text = NULL;

	snprintf(path, sizeof(path), "%s%s", strchr(file, '/') ? "" : "./", file);
	text = ctl_find_mount(path, &mount);
	return text;
}

static FILE *create(const char *file)
{
	int fd;

	if (is_on_mount(file)) {
		log_error("%s is on a mount of rmemfs, and the report must not wait for that: name "
			  "a file elsewhere",
			file);
		return NULL;
	}
	fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fdopen(fd, "w");
	if (errno == EEXIST)
		log_error("%s is there already, and stays as it is: name a new file", file);
	else
		log_error("can't make %s: %s", file, errno_text(errno));
	return NULL;
}

int gather_run(const char *file)
{
	FILE *out = file ? create(file) : stdout;
	bool failed;

	if (!out)
		return EXIT_FAILURE;
	put_report(out);
	failed = ferror(out) || fflush(out) != 0;
	if (file)
		failed = fclose(out) != 0 || failed;
	if (failed) {
		log_error("the report could not be written: %s", errno_text(errno));
		return EXIT_FAILURE;
	}
	if (file)
		printf("%s is written: read it before you send it to anybody\n", file);
	return EXIT_SUCCESS;
}
