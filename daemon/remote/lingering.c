/* lingering.c - see lingering.h. */
#include "daemon/remote/lingering.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"

enum { NAME_BYTES = 32, PATH_BYTES = 300, SHOWN_BYTES = 200, NAMESPACES_MAX = 1024 };

/* The mount that is looked for, and the processes found. */
struct search {
	int daemon;
	unsigned minor; /* of the mount's device */
	ino_t namespaces[NAMESPACES_MAX];
	unsigned nnamespaces;
	int copy, user; /* a process in whose namespace it is mounted; one with a file of it; or
			 * 0 */
	char dir[PATH_BYTES];
};

/* ---- what /proc says of a process ------------------------------------------------------------ */

static void process_name(int pid, char name[NAME_BYTES])
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	name[0] = '\0';
	if (!f)
		return;
	if (!fgets(name, NAME_BYTES, f))
		name[0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	fclose(f);
}

/* Calls look for each descriptor, until one returns true. */
static bool each_fd(int pid, bool (*look)(int pid, const char *fd, void *arg), void *arg)
{
	char path[64];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' && look(pid, entry->d_name, arg);
	closedir(dir);
	return found;
}

/* Since 6.16 Linux tells which connection a descriptor of /dev/fuse has. */
static bool is_connection(int pid, const char *fd, void *arg)
{
	char path[64], line[128];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", pid, fd);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "fuse_connection: %u", (unsigned *)arg) == 1;
	if (f)
		fclose(f);
	return found;
}

static bool is_on_device(const char *path, unsigned minor)
{
	struct statx st;

	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &st) == 0 &&
	       st.stx_dev_major == 0 && st.stx_dev_minor == minor;
}

static bool is_file_of_it(int pid, const char *fd, void *arg)
{
	const struct search *s = arg;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", pid, fd);
	return is_on_device(path, s->minor);
}

static bool works_there(int pid, const struct search *s)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
	return is_on_device(path, s->minor);
}

/* Whether the process's namespace has the mount; dir gets the place. */
static bool has_mount(int pid, unsigned minor, char dir[PATH_BYTES])
{
	char path[64], *line = NULL;
	bool found = false;
	size_t size = 0;
	unsigned at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	f = fopen(path, "re");
	while (f && !found && getline(&line, &size, f) > 0)
		found = sscanf(line, "%*u %*u 0:%u %*s %299s", &at, dir) == 2 && at == minor;
	if (f)
		fclose(f);
	free(line);
	return found;
}

/* ---- the search ------------------------------------------------------------------------------ */

/* The first process of each namespace is asked, and named: the others have the same mounts. */
static bool is_new_namespace(struct search *s, int pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (stat(path, &st) < 0 || s->nnamespaces == NAMESPACES_MAX)
		return false;
	for (unsigned i = 0; i < s->nnamespaces; i++)
		if (s->namespaces[i] == st.st_ino)
			return false;
	s->namespaces[s->nnamespaces++] = st.st_ino;
	return true;
}

static void lingering_look_at(struct search *s, int pid)
{
	if (!s->copy && is_new_namespace(s, pid) && has_mount(pid, s->minor, s->dir))
		s->copy = pid;
	if (!s->user && pid != s->daemon && (works_there(pid, s) || each_fd(pid, is_file_of_it, s)))
		s->user = pid;
}

static void look_at_all(struct search *s)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && !s->copy && (entry = readdir(proc))) {
		int pid = atoi(entry->d_name);

		if (pid > 0)
			lingering_look_at(s, pid);
	}
	if (proc)
		closedir(proc);
}

/* The name comes from another namespace, and root is to run a command with it. */
static bool is_plain(const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._+@:-";

	return path[0] == '/' && strlen(path) <= SHOWN_BYTES && path[strspn(path, plain)] == '\0';
}

static void describe(const struct search *s, char out[LINGERING_BYTES])
{
	char name[NAME_BYTES], command[SHOWN_BYTES + 50] = "";

	if (s->copy && is_plain(s->dir))
		snprintf(command, sizeof(command), ", or run 'nsenter -t %d -m -r umount %.200s'",
			s->copy, s->dir);
	process_name(s->copy ? s->copy : s->user, name);
	if (s->copy)
		snprintf(out, LINGERING_BYTES,
			"; that mount is not here, but lives on in the mount namespace of process "
			"%d (%s): end that process%s",
			s->copy, name, command);
	else if (s->user)
		snprintf(out, LINGERING_BYTES,
			"; that mount was unmounted, but lives on: process %d (%s) has a file or "
			"directory of it open: end that process",
			s->user, name);
	else
		snprintf(out, LINGERING_BYTES,
			"; that mount was unmounted, but lives on: something has it mounted, or a "
			"file of it open, so that process %d (rmemfs) does not end",
			s->daemon);
}

/* The client's process, if the refusal says that it is on this machine; else 0. */
static int local_client(const char *refusal)
{
	const char *client = strstr(refusal, " is in use by "), *pid;
	char host[64] = "";
	size_t len;

	gethostname(host, sizeof(host) - 1);
	len = strlen(host);
	if (!client)
		return 0;
	client += strlen(" is in use by ");
	pid = strstr(client, " (pid ");
	if (!pid || strncmp(client, host, len) != 0 || client[len] != ':')
		return 0;
	return atoi(pid + strlen(" (pid "));
}

void lingering_explain(const char *refusal, char out[LINGERING_BYTES])
{
	struct search s = {.daemon = local_client(refusal)};
	char name[NAME_BYTES];

	out[0] = '\0';
	if (s.daemon <= 0)
		return;
	process_name(s.daemon, name);
	if (strcmp(name, "rmemfs") != 0 || !each_fd(s.daemon, is_connection, &s.minor))
		return;
	if (has_mount((int)getpid(), s.minor, s.dir))
		return;
	look_at_all(&s);
	describe(&s, out);
}
