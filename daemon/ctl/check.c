/* check.c - see check.h. */
#include "daemon/ctl/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"

#define SERVER "rmemfs-server"

void ctl_exec_installed(const char *program, char *const argv[])
{
	static const char *const places[] = {"", "../sbin/", "../bin/"};
	char self[4096], path[4096 + 64];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[max_i64(len, 0)] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (unsigned i = 0; slash && i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s/%s%s", self, places[i], program);
		execv(path, argv);
	}
	execvp(program, argv);
}

int ctl_check(const char *dir)
{
	char option[] = "--check", program[] = SERVER;
	char *copy = strdup(dir);
	char *const argv[] = {program, option, copy, NULL};

	if (copy)
		ctl_exec_installed(SERVER, argv);
	fprintf(stderr,
		"rmemfsctl: can't run " SERVER ": %s; check works where the server is "
		"installed\n",
		errno_text(errno));
	free(copy);
	return CTL_CHECK_IMPOSSIBLE;
}
