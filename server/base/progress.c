/* progress.c - see progress.h. */
#include "server/base/progress.h"

#include "common/base/clock.h"
#include "common/conf/conf.h"
#include "common/base/log.h"
#include "common/base/service.h"
#include "common/base/types.h"
#include "common/base/util.h"

enum { LOG_MS = 10000 };

void progress_tell(struct progress *p, const char *what, uint64_t done, uint64_t total)
{
	char have[32], all[32];
	int64_t now = now_ms();

	if (p->told_ms && now - p->told_ms < PROGRESS_MS)
		return;
	size_format(done << PAGE_SHIFT, have, sizeof(have));
	size_format(total << PAGE_SHIFT, all, sizeof(all));
	service_progress("%s: %s of %s", what, have, all);
	p->told_ms = now;
	if (!p->logged_ms)
		p->logged_ms = now;
	if (now - p->logged_ms < LOG_MS)
		return;
	log_info("%s: %s of %s", what, have, all);
	p->logged_ms = now;
}

bool progress_hangs(struct progress *p, uint64_t steps, int64_t now)
{
	if (!p->moved_ms || steps != p->steps) {
		p->moved_ms = now;
		p->steps = steps;
	}
	return now - p->moved_ms >= PROGRESS_HANG_MS;
}
