#include "daemon/caller.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static FILE *open_status(uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	return fopen(path, "re");
}

/* What a line of its status says; to be freed. NULL: not known. */
static char *status_of(const struct request *req, const char *name)
{
	FILE *f = open_status(req->pid);
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

bool caller_is_capable(const struct request *req, unsigned capability)
{
	autofree char *effective = status_of(req, "CapEff:");

	return effective && strtoull(effective, NULL, 16) >> capability & 1;
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

bool caller_is_dying(uint32_t pid)
{
	/* In the order of the file (proc_pid_status(5)). Who is ending has got its signal already,
	 * and has no memory any more when its files are closed. */
	static const char *const names[] = {
		"VmSize:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:"};
	enum { MEMORY, OWN, SHARED, BLOCKED, IGNORED, CAUGHT, NSETS };
	uint64_t sets[NSETS];
	autofree char *line = NULL;
	FILE *f = open_status(pid);
	size_t size = 0;
	unsigned n = 0;

	if (!f)
		return true;
	for (; n < NSETS && find_line(f, names[n], &line, &size); n++)
		sets[n] = strtoull(line + strlen(names[n]), NULL, 16);
	fclose(f);
	return n < NSETS || ((sets[OWN] | sets[SHARED]) & ~sets[BLOCKED] & ~sets[IGNORED] &
				    ~sets[CAUGHT] & ~harmless()) != 0;
}
