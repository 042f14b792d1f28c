/* check.c - see check.h. */
#include "daemon/ctl/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"

#define SERVER "rmemfs-server"

/* Runs the program beside this one, or in sbin beside its bin. Returns only if there is none. */
static void exec_installed(char *const argv[])
{
	static const char *const places[] = {SERVER, "../sbin/" SERVER};
	char self[4096], path[4096 + 32];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (len <= 0)
		return;
	self[len] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return;
	*slash = '\0';
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", self, places[i]);
		execv(path, argv);
	}
}

int ctl_check(const char *dir)
{
	char option[] = "--check", program[] = SERVER;
	char *copy = strdup(dir);
	char *const argv[] = {program, option, copy, NULL};

	if (copy) {
		exec_installed(argv);
		execvp(SERVER, argv);
	}
	fprintf(stderr,
		"rmemfsctl: can't run " SERVER ": %s; check works where the server is "
		"installed\n",
		errno_text(errno));
	free(copy);
	return CTL_CHECK_IMPOSSIBLE;
}
