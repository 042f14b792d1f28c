#include "daemon/caller.h"

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

/* What a line of its status says; to be freed. NULL: not known. */
static char *status_of(const struct request *req, const char *name)
{
	autofree char *line = NULL;
	size_t size = 0, len = strlen(name);
	char *found = NULL;
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", req->pid);
	f = fopen(path, "re");
	if (!f)
		return NULL;
	while (!found && getline(&line, &size, f) > 0)
		if (strncmp(line, name, len) == 0)
			found = strdup(line + len);
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
