/* mounts_probe.c - see mounts_probe.h. */
#include "daemon/ctl/doctor/mounts_probe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mountinfo.h"
#include "common/base/process_state.h"
#include "common/base/util.h"
#include "daemon/ctl/doctor/procfile.h"

/* The kernel's PROC_PID_INIT_INO (include/linux/proc_ns.h). */
#define INITIAL_PID_NAMESPACE 0xeffffffcU

enum { NAMESPACES_MAX = 1024, CMDLINE_BYTES = 4096 };

struct search {
	struct mounts_seen *seen;
	ino_t own;
	ino_t namespaces[NAMESPACES_MAX];
	unsigned nnamespaces;
};

/* ---- mountinfo ------------------------------------------------------------------------------- */

/* The kernel shows that to root and to the mount's owner. */
static int64_t count_waiting(unsigned connection)
{
	char path[64];
	int64_t n;

	snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/waiting", connection);
	return procfile_number(path, &n) ? n : -1;
}

struct namespace
{
	struct mounts_seen *seen;
	struct mounts_place place; /* as far as all mounts there have it in common */
};

static bool add_place(const struct mount *mount, void *arg)
{
	struct namespace *n = arg;
	struct mounts_place *place = &n->seen->places[n->seen->nplaces];

	if (strcmp(mount->type, MOUNT_TYPE_OURS) != 0)
		return true;
	*place = n->place;
	place->connection = mount->minor;
	place->spreads = mount->spreads;
	place->waiting = count_waiting(mount->minor);
	snprintf(place->dir, sizeof(place->dir), "%s", mount->dir);
	snprintf(place->source, sizeof(place->source), "%s", mount->source);
	return ++n->seen->nplaces < MOUNTS_MAX;
}

static void read_mountinfo(struct search *s, int pid, ino_t namespace)
{
	struct namespace n = {
		.seen = s->seen,
		.place = {.namespace = namespace, .own = namespace == s->own, .pid = pid},
	};
	char path[64];

	if (s->seen->nplaces == MOUNTS_MAX)
		return;
	procfile_name(pid, n.place.process, sizeof(n.place.process));
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	mountinfo_each(path, add_place, &n);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* 0: it can't be seen. */
static ino_t namespace_of(int pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

static bool is_new(struct search *s, ino_t namespace)
{
	for (unsigned i = 0; i < s->nnamespaces; i++)
		if (s->namespaces[i] == namespace)
			return false;
	if (s->nnamespaces == NAMESPACES_MAX)
		return false;
	s->namespaces[s->nnamespaces++] = namespace;
	return true;
}

/* The connection of a descriptor of /dev/fuse; -1: the kernel does not tell. */
static int connection_of(int pid, const char *fd)
{
	char path[64];
	uint64_t number;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", pid, fd);
	return procfile_field(path, "fuse_connection", 10, &number) ? (int)number : -1;
}

/* Its mount point is the last word of the command line that begins with a slash and is no socket's
 * path with an export. */
static void find_mount_point(int pid, char dir[MOUNTS_DIR_BYTES])
{
	char path[64], words[CMDLINE_BYTES];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	f = fopen(path, "re");
	n = f ? fread(words, 1, sizeof(words) - 1, f) : 0;
	if (f)
		fclose(f);
	words[n] = '\0';
	dir[0] = '\0';
	for (size_t at = n ? strlen(words) + 1 : 0; at < n; at += strlen(words + at) + 1)
		if (words[at] == '/' && !strstr(words + at, ":/"))
			snprintf(dir, MOUNTS_DIR_BYTES, "%s", words + at);
}

static bool has_daemon(const struct mounts_seen *seen, const struct mounts_daemon *daemon)
{
	for (unsigned i = 0; i < seen->ndaemons; i++)
		if (seen->daemons[i].pid == daemon->pid &&
			seen->daemons[i].connection == daemon->connection)
			return true;
	return false;
}

static bool is_ours(const char *name, const char *const names[])
{
	for (size_t i = 0; names[i]; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* Whether the process runs rmemfs. After an upgrade its program is " (deleted)". Of another user's
 * process only the name is known, by which it was started: the kernel cuts it. */
static bool runs_rmemfs(int pid)
{
	static const char *const programs[] = {"rmemfs", "rmemfs (deleted)", NULL};
	static const char *const names[] = {"rmemfs", "mount.rmemfs", "mount.fuse.rmem", NULL};
	char path[64], program[PATH_MAX];
	const char *last;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, program, sizeof(program) - 1);
	if (n < 0) {
		procfile_name(pid, program, sizeof(program));
		return is_ours(program, names);
	}
	program[n] = '\0';
	last = strrchr(program, '/');
	return last && is_ours(last + 1, programs);
}

static void add_daemon(struct search *s, int pid, int connection)
{
	struct mounts_daemon daemon = {.pid = pid, .connection = connection};

	if (s->seen->ndaemons == MOUNTS_MAX || has_daemon(s->seen, &daemon))
		return;
	procfile_name(pid, daemon.process, sizeof(daemon.process));
	daemon.namespace = namespace_of(pid);
	daemon.stopped = process_state_is_stopped(pid);
	find_mount_point(pid, daemon.dir);
	s->seen->daemons[s->seen->ndaemons++] = daemon;
}

/* The kernel says EACCES of a process that has just ended, too. */
static bool is_denied(int error, int pid)
{
	char state = process_state(pid);

	return (error == EACCES || error == EPERM) && state && state != 'Z' && state != 'X';
}

/* False: descriptors of this process are not shown to us. */
static bool look_at_descriptor(struct search *s, int pid, const char *fd)
{
	char path[64], to[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", pid, fd);
	n = readlink(path, to, sizeof(to) - 1);
	if (n < 0)
		return !is_denied(errno, pid);
	to[n] = '\0';
	if (strcmp(to, "/dev/fuse") == 0)
		add_daemon(s, pid, connection_of(pid, fd));
	return true;
}

static bool look_at_descriptors(struct search *s, int pid)
{
	struct dirent *entry;
	bool seen = true;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return !is_denied(errno, pid);
	while (seen && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			seen = look_at_descriptor(s, pid, entry->d_name);
	closedir(dir);
	return seen;
}

static void look_at_process(struct search *s, int pid)
{
	ino_t namespace = namespace_of(pid);

	if (runs_rmemfs(pid) && !look_at_descriptors(s, pid))
		add_daemon(s, pid, -1);
	if (!namespace)
		s->seen->blind += is_denied(EACCES, pid);
	else if (is_new(s, namespace))
		read_mountinfo(s, pid, namespace);
}

static int look_at_all(struct search *s)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	s->own = namespace_of(getpid());
	if (!dir || !s->own) {
		if (dir)
			closedir(dir);
		return -ENOENT;
	}
	is_new(s, s->own);
	read_mountinfo(s, getpid(), s->own);
	while ((entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			look_at_process(s, atoi(entry->d_name));
	closedir(dir);
	return 0;
}

int mounts_probe(struct mounts_seen *seen)
{
	struct search *s = calloc(1, sizeof(*s));
	struct stat st;
	int err;

	if (!s)
		return -ENOMEM;
	*seen = (struct mounts_seen){.root = geteuid() == 0};
	seen->partial = stat("/proc/self/ns/pid", &st) < 0 || st.st_ino != INITIAL_PID_NAMESPACE ||
			access("/proc/1", F_OK) != 0;
	s->seen = seen;
	err = look_at_all(s);
	free(s);
	return err;
}
