#include "daemon/ctl/doctor/quiet.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"

static char last_logged[256];

static void keep(enum log_level level, const char *text)
{
	(void)level;
	snprintf(last_logged, sizeof(last_logged), "%s", text);
}

void quiet_begin(void)
{
	autoclose int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null >= 0)
		dup2(null, STDERR_FILENO);
	log_set_watcher(keep);
}

const char *quiet_logged(void)
{
	return last_logged;
}
