/* crash_point.c - see crash_point.h. */
#include "common/base/crash_point.h"

#ifdef RMEMFS_CRASH_POINTS

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not listed among the variables for users. */
#define VARIABLE    "RMEMFS_CRASH_AT"
#define VARIABLE_BY "RMEMFS_CRASH_BY"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char chosen[64];
static atomic_ulong passages_left;
static int signal_number = SIGKILL;

static void crash_point_choose(void)
{
	const char *text = getenv(VARIABLE), *by = getenv(VARIABLE_BY);
	char *number;

	if (!text)
		return;
	if (by && strcmp(by, "TERM") == 0)
		signal_number = SIGTERM;
	else if (by && strcmp(by, "STOP") == 0)
		signal_number = SIGSTOP;
	snprintf(chosen, sizeof(chosen), "%s", text);
	number = strchr(chosen, ':');
	if (number)
		*number++ = '\0';
	atomic_store(&passages_left, number ? strtoul(number, NULL, 10) : 1);
}

void crash_point_pass(const char *name)
{
	pthread_once(&once, crash_point_choose);
	if (chosen[0] && strcmp(name, chosen) == 0 && atomic_fetch_sub(&passages_left, 1) == 1)
		raise(signal_number);
}

#endif
