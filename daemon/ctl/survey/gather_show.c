#include "daemon/ctl/survey/gather_show.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "common/transport/address.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/doctor/doctor.h"
#include "daemon/ctl/doctor/procfile.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/keys.h"
#include "daemon/ctl/mount_ask.h"
#include "daemon/ctl/print.h"
#include "daemon/ctl/print_mount.h"
#include "daemon/ctl/survey/health.h"

enum { MOUNT_MS = 1000, SERVER_MS = 5000, FILE_BYTES = 32 << 10 };

/* ---- programs and system --------------------------------------------------------------------- */

void gather_show_program(void)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[max_i64(len, 0)] = '\0';
	printf("rmemfsctl %s, wire protocol %u, of user %u\n%s\n", RMEMFS_VERSION, wire_version(),
		(unsigned)geteuid(), self);
}

static int print_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	char path[PATH_MAX];

	if (*info->dlpi_name && realpath(info->dlpi_name, path))
		printf("%s\n", path);
	return 0;
}

void gather_show_libraries(void)
{
	dl_iterate_phdr(print_library, NULL);
}

static void print_file(const char *path)
{
	static char text[FILE_BYTES];

	if (procfile_text(path, text, sizeof(text)))
		printf("%s:\n%s\n", path, text);
	else
		printf("%s: %s\n", path, errno_text(errno));
}

void gather_show_system(void)
{
	static const char *const files[] = {"/etc/os-release", "/proc/uptime", "/proc/loadavg",
		"/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io",
		"/proc/meminfo"};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		print_file(files[i]);
}

static void print_limits_of(int pid, const char *name)
{
	static const char *const wanted[] = {
		"Max locked memory", "Max open files", "Max processes", "Max address space"};
	char path[64];
	static char text[FILE_BYTES];

	snprintf(path, sizeof(path), "/proc/%d/limits", pid);
	if (!procfile_text(path, text, sizeof(text)))
		return;
	printf("%s, process %d\n", name, pid);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
			if (strncmp(line, wanted[i], strlen(wanted[i])) == 0)
				printf("  %s\n", line);
}

void gather_show_limits(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	print_limits_of(getpid(), "rmemfsctl");
	while (dir && (entry = readdir(dir))) {
		char name[64];
		int pid = isdigit((unsigned char)*entry->d_name) ? atoi(entry->d_name) : 0;

		if (!pid || pid == getpid())
			continue;
		procfile_name(pid, name, sizeof(name));
		if (strncmp(name, "rmemfs", 6) == 0)
			print_limits_of(pid, name);
	}
	if (dir)
		closedir(dir);
}

/* ---- mounts and server ----------------------------------------------------------------------- */

void gather_show_health(void)
{
	health_run(&(struct health_wish){.where = NULL});
}

void gather_show_doctor(void)
{
	doctor_run(NULL, NULL, false);
}

void gather_show_mounts(void)
{
	json_t *list;
	int err = ctl_list_mounts(MOUNT_MS, &list);

	if (err) {
		printf("/proc/self/mountinfo: %s\n", errno_text(err));
		return;
	}
	ctl_json_clean(list);
	ctl_print_mounts(list);
	ctl_json_print(list);
	json_decref(list);
}

void gather_show_server(void)
{
	autofree char *text = NULL;
	int64_t round_trip_ns;
	char why[512];
	struct stat st;
	json_t *status;

	if (stat(RMEMFS_DEFAULT_SOCKET, &st) != 0) {
		printf("no server runs here: " RMEMFS_DEFAULT_SOCKET ": %s\n", errno_text(errno));
		return;
	}
	if (ctl_fetch_status(RMEMFS_DEFAULT_SOCKET, NULL, SERVER_MS, &text, &round_trip_ns, why,
		    sizeof(why))) {
		printf(RMEMFS_DEFAULT_SOCKET ": %s\n", why);
		return;
	}
	status = ctl_json_read(text);
	if (!status) {
		printf(RMEMFS_DEFAULT_SOCKET ": its answer is malformed\n");
		return;
	}
	ctl_json_clean(status);
	ctl_print_status(status);
	ctl_json_print(status);
	json_decref(status);
}

/* ---- configuration --------------------------------------------------------------------------- */

/* Calls show() for each file that has one of the patterns, which end with NULL. */
static void each_file(const char *const *patterns, void (*show)(const char *path))
{
	glob_t found = {.gl_pathc = 0};

	for (unsigned i = 0; patterns[i]; i++)
		glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		show(found.gl_pathv[i]);
	if (!found.gl_pathc)
		printf("none in %s\n", RMEMFS_SYSCONFDIR);
	globfree(&found);
}

static void print_settings(const char *path)
{
	static char text[FILE_BYTES];

	printf("%s:\n", path);
	if (!procfile_text(path, text, sizeof(text))) {
		printf("  %s\n", errno_text(errno));
		return;
	}
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		line += strspn(line, " \t");
		if (*line && *line != '#')
			printf("  %s\n", line);
	}
}

void gather_show_configuration(void)
{
	static const char *const patterns[] = {RMEMFS_SYSCONFDIR "/*.conf",
		RMEMFS_SYSCONFDIR "/*.d/*.conf", RMEMFS_SYSCONFDIR "/mounts/*.env", NULL};

	each_file(patterns, print_settings);
}

static void print_keys(const char *path)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		printf("%s: %s\n", path, errno_text(errno));
	else
		printf("%s: mode %04o, user %u, group %u\n", path, st.st_mode & 07777u,
			(unsigned)st.st_uid, (unsigned)st.st_gid);
	ctl_keycheck(path);
}

void gather_show_keys(void)
{
	static const char *const patterns[] = {RMEMFS_SYSCONFDIR "/keys/*", NULL};

	each_file(patterns, print_keys);
}
