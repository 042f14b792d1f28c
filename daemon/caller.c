#include "daemon/caller.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/request.h"

/* "Groups:\t4 24 27 " */
static bool lists(const char *groups, uint32_t gid)
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

/* Whether it was there. line is what getline(3) has allocated. */
static bool find_line(FILE *f, const char *name, char **line, size_t *size)
{
	while (getline(line, size, f) > 0)
		if (strncmp(*line, name, strlen(name)) == 0)
			return true;
	return false;
}

/* In a /proc of another PID namespace, as a container may show the host's, our numbers are other
 * processes'. */
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

/* What a line of its status says; to be freed. NULL: not known. */
static char *status_of(const struct request *req, const char *name)
{
	FILE *f = open_proc(req->pid, "status");
	autofree char *line = NULL;
	char *found = NULL;
	size_t size = 0;

	if (!f)
		return NULL;
	if (find_line(f, name, &line, &size))
		found = strdup(line + strlen(name));
	fclose(f);
	return found;
}

bool caller_in_group(const struct request *req, uint32_t gid)
{
	autofree char *groups = req->gid == gid ? NULL : status_of(req, "Groups:");

	return req->gid == gid || (groups && lists(groups, gid));
}

static bool has_capabilities(const struct request *req, uint64_t wanted)
{
	autofree char *effective = status_of(req, "CapEff:");

	return effective && !(wanted & ~strtoull(effective, NULL, 16));
}

bool caller_is_capable(const struct request *req, unsigned capability)
{
	return has_capabilities(req, 1ULL << capability);
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* "         0     100000      65536": the first id in the caller's user namespace, and here, and
 * how many. False: id is in none of these. */
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

static struct id_range owners_of(const struct request *req, uint64_t capabilities, uint32_t known)
{
	struct id_range range;

	if (known != req->uid && has_capabilities(req, capabilities) &&
		find_range(req, "uid_map", known, &range))
		return range;
	return (struct id_range){req->uid, req->uid};
}

struct rights caller_rights(const struct request *req, uint64_t capabilities, uint32_t known)
{
	if (req->uid == 0)
		return (struct rights){.bound = false};
	return (struct rights){true, owners_of(req, capabilities, known), ID_RANGE_NONE};
}

struct id_range caller_groups(const struct request *req, uint32_t known)
{
	struct id_range range;

	if (req->uid == 0)
		return ID_RANGE_ALL;
	if (caller_in_group(req, known))
		return (struct id_range){known, known};
	if (caller_is_capable(req, CAP_FSETID) && find_range(req, "gid_map", known, &range))
		return range;
	return ID_RANGE_NONE;
}

/* ---- signals --------------------------------------------------------------------------------- */

/* Signals as /proc shows them: number n is bit n - 1. */
static uint64_t bit(int signal)
{
	return 1ULL << (signal - 1);
}

/* By default these end nobody. */
static uint64_t harmless(void)
{
	return bit(SIGCHLD) | bit(SIGCONT) | bit(SIGURG) | bit(SIGWINCH) | bit(SIGSTOP) |
	       bit(SIGTSTP) | bit(SIGTTIN) | bit(SIGTTOU);
}

/* The thread's entry can't be read. */
static enum caller_state state_without_proc(uint32_t pid)
{
	return pid && kill((pid_t)pid, 0) < 0 && errno == ESRCH ? CALLER_DYING : CALLER_UNSEEN;
}

enum caller_state caller_state(uint32_t pid)
{
	/* In the order of the file (proc_pid_status(5)). Who is ending has got its signal already,
	 * and has no memory any more when its files are closed. */
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
	dying = n < NSETS || ((sets[OWN] | sets[SHARED]) & ~sets[BLOCKED] & ~sets[IGNORED] &
				     ~sets[CAUGHT] & ~harmless()) != 0;
	return dying ? CALLER_DYING : CALLER_LIVES;
}
