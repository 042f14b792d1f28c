#include "daemon/request/caller.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "daemon/request/io_thread.h"
#include "daemon/request/request.h"

enum { LOOK_MS = 300 };

/* "Groups:\t4 24 27 " */
static bool caller_lists(const char *groups, uint32_t gid)
{
	char *end;

	for (const char *at = groups;; at = end) {
		unsigned long group = strtoul(at, &end, 10);

		if (end == at)
			return false;
		if (group == gid)
			return true;
	}
}

/* Whether the line was found. getline(3) allocates `line`. */
static bool find_line(FILE *f, const char *name, char **line, size_t *size)
{
	while (getline(line, size, f) > 0)
		if (strncmp(*line, name, strlen(name)) == 0)
			return true;
	return false;
}

/* /proc may be of another PID namespace, as a container may show the host's. Our numbers are other
 * processes' there. */
static bool proc_is_ours(void)
{
	char self[16] = "", pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	return readlink("/proc/self", self, sizeof(self) - 1) > 0 && strcmp(self, pid) == 0;
}

static FILE *open_proc(uint32_t pid, const char *name)
{
	char path[32];

	if (!pid || !proc_is_ours())
		return NULL;
	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return fopen(path, "re");
}

/* Returns the number of bytes read. */
static size_t read_proc(uint32_t pid, const char *name, char *buf, size_t len)
{
	FILE *f = open_proc(pid, name);
	size_t n = 0;

	if (f) {
		n = fread(buf, 1, len, f);
		fclose(f);
	}
	return n;
}

/* ---- credentials ----------------------------------------------------------------------------- */

/* The last of "Uid:\treal effective saved filesystem": the kernel checks by that one. */
static uint32_t filesystem_id(const char *ids)
{
	unsigned id = REQUEST_NO_ID;

	return sscanf(ids, "%*u %*u %*u %u", &id) == 1 ? id : REQUEST_NO_ID;
}

/* seen: all is from /proc; else the ids are the request's, and the rest is not known. */
struct credentials {
	bool seen;
	uint32_t uid, gid;
	char *groups; /* to be freed */
	uint64_t capabilities;
};

/* In the order of the file (proc_pid_status(5)). A kernel thread, such as NFS's, has no memory. It
 * acts for others, and its own credentials say nothing of them. */
enum { UID, GID, GROUPS, VM_SIZE, CAPABILITIES, NLINES };
static const char *const status_names[NLINES] = {"Uid:", "Gid:", "Groups:", "VmSize:", "CapEff:"};

static void read_lines(FILE *f, struct credentials *c)
{
	autofree char *line = NULL;
	size_t size = 0;
	unsigned n = 0;

	for (; n < NLINES && find_line(f, status_names[n], &line, &size); n++) {
		const char *value = line + strlen(status_names[n]);

		if (n == UID)
			c->uid = filesystem_id(value);
		else if (n == GID)
			c->gid = filesystem_id(value);
		else if (n == GROUPS)
			c->groups = strdup(value);
		else if (n == CAPABILITIES)
			c->capabilities = strtoull(value, NULL, 16);
	}
	c->seen = n == NLINES && c->groups;
}

static struct credentials read_credentials(const struct request *req)
{
	struct credentials c = {.uid = REQUEST_NO_ID, .gid = REQUEST_NO_ID};
	FILE *f = req->squashed ? NULL : open_proc(req->pid, "status");

	if (f) {
		read_lines(f, &c);
		fclose(f);
	}
	if (!c.seen) {
		free(c.groups);
		c = (struct credentials){.uid = REQUEST_NO_ID, .gid = REQUEST_NO_ID};
	}
	if (req->uid != REQUEST_NO_ID)
		c.uid = req->uid;
	if (req->gid != REQUEST_NO_ID)
		c.gid = req->gid;
	return c;
}

bool caller_is_seen(const struct request *req)
{
	struct credentials c = read_credentials(req);

	free(c.groups);
	return c.seen;
}

enum caller_root caller_root(const struct request *req)
{
	struct credentials c = {.uid = req->uid};

	if (req->uid == REQUEST_NO_ID) {
		c = read_credentials(req);
		free(c.groups);
	}
	if (c.uid == REQUEST_NO_ID)
		return CALLER_MAY_BE_ROOT;
	return c.uid == 0 ? CALLER_IS_ROOT : CALLER_IS_NOT_ROOT;
}

bool caller_is_capable(const struct request *req, unsigned capability)
{
	struct credentials c = read_credentials(req);

	free(c.groups);
	return c.capabilities & 1ULL << capability;
}

/* An unprivileged daemon may see uid_map of root's process, but not its ns/user: ptrace(2). Both
 * maps are shown by our namespace's ids. There only a map of every id looks like our own, and only
 * a process with all ids may give such a map to another one: user_namespaces(7). */
static bool has_our_uid_map(const struct request *req)
{
	char ours[1024], its[1024];
	size_t n = read_proc(req->pid, "uid_map", its, sizeof(its));

	return n && n < sizeof(its) &&
	       n == read_proc((uint32_t)getpid(), "uid_map", ours, sizeof(ours)) &&
	       memcmp(ours, its, n) == 0;
}

bool caller_is_in_our_user_namespace(const struct request *req)
{
	struct stat ours, its;
	char path[40];

	if (!proc_is_ours())
		return false;
	snprintf(path, sizeof(path), "/proc/%u/ns/user", req->pid);
	if (!stat(path, &its))
		return !stat("/proc/self/ns/user", &ours) && its.st_ino == ours.st_ino &&
		       its.st_dev == ours.st_dev;
	return errno == EACCES && has_our_uid_map(req);
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* A line "         0     100000      65536" has the first id in the caller's user namespace, the
 * first id here, and their number. False: no line has id. */
static bool find_range(
	const struct request *req, const char *map, uint32_t id, struct id_range *range)
{
	FILE *f = open_proc(req->pid, map);
	unsigned first, n;
	bool found = false;

	if (!f)
		return false;
	while (!found && fscanf(f, "%*u %u %u", &first, &n) == 2) {
		*range = (struct id_range){first, first + n - 1};
		found = id_range_has(range, id);
	}
	fclose(f);
	return found;
}

static struct id_range only(uint32_t id)
{
	return id == REQUEST_NO_ID ? ID_RANGE_NONE : (struct id_range){id, id};
}

static bool has_all(const struct credentials *c, uint64_t capabilities)
{
	return c->seen && !(capabilities & ~c->capabilities);
}

struct rights caller_rights(const struct request *req, uint64_t capabilities, uint32_t known)
{
	struct credentials c = {.uid = req->uid};
	struct id_range range;

	if (c.uid != known && c.uid != 0) {
		c = read_credentials(req);
		free(c.groups);
	}
	if (c.uid == 0)
		return (struct rights){.bound = false};
	if (c.uid == known || !has_all(&c, capabilities) ||
		!find_range(req, "uid_map", known, &range))
		range = only(c.uid);
	return (struct rights){true, range, ID_RANGE_NONE};
}

struct id_range caller_groups(const struct request *req, uint32_t known)
{
	struct id_range range = ID_RANGE_NONE;
	struct credentials c;

	if (req->uid == 0)
		return ID_RANGE_ALL;
	if (req->gid == known)
		return only(known);
	c = read_credentials(req);
	if (c.uid == 0)
		range = ID_RANGE_ALL;
	else if (c.gid == known || (c.groups && caller_lists(c.groups, known)))
		range = only(known);
	else if (!has_all(&c, 1ULL << CAP_FSETID) || !find_range(req, "gid_map", known, &range))
		range = ID_RANGE_NONE;
	free(c.groups);
	return range;
}

/* ---- signals --------------------------------------------------------------------------------- */

/* Signals as /proc shows them: number n is bit n - 1. */
static uint64_t bit(int signal)
{
	return 1ULL << (signal - 1);
}

/* By default these end no process. */
static uint64_t harmless(void)
{
	return bit(SIGCHLD) | bit(SIGCONT) | bit(SIGURG) | bit(SIGWINCH) | bit(SIGSTOP) |
	       bit(SIGTSTP) | bit(SIGTTIN) | bit(SIGTTOU);
}

enum thread_state {
	THREAD_LIVES,
	THREAD_IS_KILLED,
	THREAD_HAS_GONE, /* or has no memory any more */
	THREAD_IS_UNSEEN,
};

/* For a thread whose entry can't be read. */
static enum thread_state state_without_proc(uint32_t pid)
{
	return pid && kill((pid_t)pid, 0) < 0 && errno == ESRCH ? THREAD_HAS_GONE
								: THREAD_IS_UNSEEN;
}

/* proc_pid_stat(5): "PID (COMMAND) STATE PPID PGRP SESSION TTY TPGID FLAGS". A kernel thread has no
 * memory, as a process that is ending, but no signal ends it (PF_KTHREAD of the kernel's
 * include/linux/sched.h). */
static bool is_kernel_thread(uint32_t pid)
{
	enum { KTHREAD = 0x00200000 };
	char stat[512];
	size_t n = read_proc(pid, "stat", stat, sizeof(stat) - 1);
	unsigned flags = 0;
	const char *end;

	stat[n] = '\0';
	end = strrchr(stat, ')');
	return end && sscanf(end, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & KTHREAD;
}

static enum thread_state look_at_thread(uint32_t pid)
{
	/* In the order of the file (proc_pid_status(5)). A process that is ending has got its
	 * signal already, and has no memory any more when its files are closed. */
	static const char *const names[] = {
		"VmSize:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:"};
	enum { MEMORY, OWN, SHARED, BLOCKED, IGNORED, CAUGHT, NSETS };
	uint64_t sets[NSETS];
	autofree char *line = NULL;
	FILE *f = open_proc(pid, "status");
	size_t size = 0;
	unsigned n = 0;
	bool dying;

	if (!f)
		return state_without_proc(pid);
	for (; n < NSETS && find_line(f, names[n], &line, &size); n++)
		sets[n] = strtoull(line + strlen(names[n]), NULL, 16);
	fclose(f);
	if (n == MEMORY)
		return is_kernel_thread(pid) ? THREAD_LIVES : THREAD_HAS_GONE;
	dying = n < NSETS || ((sets[OWN] | sets[SHARED]) & ~sets[BLOCKED] & ~sets[IGNORED] &
				     ~sets[CAUGHT] & ~harmless()) != 0;
	return dying ? THREAD_IS_KILLED : THREAD_LIVES;
}

enum caller_state caller_state(uint32_t pid)
{
	switch (look_at_thread(pid)) {
	case THREAD_LIVES:
		return CALLER_LIVES;
	case THREAD_IS_UNSEEN:
		return CALLER_UNSEEN;
	default:
		return CALLER_DYING;
	}
}

void caller_note_process(uint32_t *process, uint32_t pid)
{
	static const char tgid[] = "Tgid:";
	autofree char *line = NULL;
	size_t size = 0;
	FILE *f;

	if (*process)
		return;
	f = open_proc(pid, "status");
	*process = f && find_line(f, tgid, &line, &size)
			   ? (uint32_t)strtoul(line + strlen(tgid), NULL, 10)
			   : CALLER_NO_PROCESS;
	if (f)
		fclose(f);
}

/* A process that was killed has no thread that lives, though some may take their time to end. Those
 * that run will have ended soon. */
enum process_state { PROCESS_LIVES, PROCESS_WAITS_FOR_ITS_END, PROCESS_HAS_ENDED };

static bool sleeps(uint32_t pid)
{
	static const char state[] = "State:\t";
	autofree char *line = NULL;
	FILE *f = open_proc(pid, "status");
	size_t size = 0;
	bool found = f && find_line(f, state, &line, &size);

	if (f)
		fclose(f);
	return found && strchr("SD", line[strlen(state)]);
}

static enum process_state look_at_process(uint32_t process)
{
	enum process_state state = PROCESS_HAS_ENDED;
	char path[40];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", process);
	dir = opendir(path);
	while (state != PROCESS_LIVES && dir && (entry = readdir(dir)) != NULL) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (pid && look_at_thread(pid) == THREAD_LIVES)
			state = PROCESS_LIVES;
		else if (pid && sleeps(pid))
			state = PROCESS_WAITS_FOR_ITS_END;
	}
	if (dir)
		closedir(dir);
	return state;
}

/* Of any process, also of one that is not to be seen. */
static bool look_for_one_that_waits(void)
{
	struct dirent *entry;
	bool waits = false;
	DIR *dir;

	if (!proc_is_ours() || access("/proc/1", F_OK) < 0)
		return true;
	dir = opendir("/proc");
	while (!waits && dir && (entry = readdir(dir)) != NULL) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		waits = pid && look_at_process(pid) == PROCESS_WAITS_FOR_ITS_END;
	}
	if (dir)
		closedir(dir);
	return waits;
}

/* To read all of /proc takes milliseconds, and many requests may ask. */
static bool some_process_waits_for_its_end(void)
{
	static _Thread_local int64_t until_ms;
	static _Thread_local bool waits;
	int64_t now = now_ms();

	if (now >= until_ms) {
		waits = look_for_one_that_waits();
		until_ms = now_ms() + LOOK_MS;
	}
	return waits;
}

/* A process that was killed can't end before its requests have. So if none waits for its end, a
 * process that is not known goes on. */
static bool process_lives(uint32_t process)
{
	return process == CALLER_NO_PROCESS ? !some_process_waits_for_its_end()
					    : look_at_process(process) == PROCESS_LIVES;
}

static enum caller_state state_of(struct caller caller)
{
	if (caller.process && look_at_thread(caller.pid) == THREAD_HAS_GONE)
		return process_lives(caller.process) ? CALLER_LIVES : CALLER_DYING;
	return caller_state(caller.pid);
}

bool caller_ends_wait(
	const struct io_thread *thread, struct caller caller, bool signalled, int64_t since_ms)
{
	int64_t waited_ms = io_thread_now(thread) - since_ms;

	switch (state_of(caller)) {
	case CALLER_LIVES:
		return false;
	case CALLER_DYING:
		return true;
	case CALLER_UNSEEN:
		break;
	}
	return signalled && waited_ms >= thread->shared->interrupt_wait_ms;
}
