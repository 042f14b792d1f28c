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

bool caller_in_group(const struct request *req, uint32_t gid)
{
	static const char name[] = "Groups:";
	autofree char *line = NULL;
	bool found = false;
	size_t size = 0;
	char path[32];
	FILE *f;

	if (req->gid == gid)
		return true;
	snprintf(path, sizeof(path), "/proc/%u/status", req->pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (getline(&line, &size, f) > 0) {
		if (strncmp(line, name, sizeof(name) - 1) != 0)
			continue;
		found = lists(line + sizeof(name) - 1, gid);
		break;
	}
	fclose(f);
	return found;
}
