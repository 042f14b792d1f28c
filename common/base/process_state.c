#include "common/base/process_state.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/util.h"

/* The name may have blanks and parentheses: the state is behind the last one. */
char process_state(int pid)
{
	char path[32], text[512];
	autoclose int fd = -1;
	const char *at;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return '\0';
	text[n] = '\0';
	at = strrchr(text, ')');
	return at && at[1] == ' ' ? at[2] : '\0';
}

bool process_state_is_stopped(int pid)
{
	char state = pid ? process_state(pid) : '\0';

	return state == 'T' || state == 't';
}

bool process_state_is_outdated(int pid)
{
	static const char mark[] = " (deleted)";
	char path[32], program[PATH_MAX];
	ssize_t n, len = sizeof(mark) - 1;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, program, sizeof(program));
	return n > len && memcmp(program + n - len, mark, (size_t)len) == 0;
}
