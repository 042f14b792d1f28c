/* stage.c - see stage.h. */
#include "tests/stress/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/util.h"

static const char *const words[] = {
	[STAGE_FIRST] = "first", [STAGE_ALL] = "all", [STAGE_REST] = "rest", [STAGE_END] = "end"};

int stage_read(const char *path, enum stage *stage)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[8] = "";

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return -errno;
	for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
		if (strncmp(text, words[i], strlen(words[i])) == 0)
			*stage = (enum stage)i;
	return 0;
}

int stage_tell(const char *path, enum stage stage)
{
	char now[4096];
	FILE *f;
	bool told;

	snprintf(now, sizeof(now), "%s.now", path);
	f = fopen(now, "we");
	if (!f)
		return -errno;
	told = fputs(words[stage], f) >= 0;
	return fclose(f) == 0 && told ? 0 : -EIO;
}
