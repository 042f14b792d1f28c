#include "daemon/mount/service_report.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/service.h"
#include "daemon/serve/fs.h"
#include "daemon/serve/threads.h"

static void tell_away(const struct service_report *r, int64_t since_ms)
{
	char since[CLOCK_TEXT_BYTES];

	clock_format((realtime_ns() / 1000000 - (now_ms() - since_ms)) / 1000, -1, since);
	service_status("no connection to server %s since %s: operations %s", fs_server(r->fs),
		since, r->soft ? "fail after timeo" : "wait");
}

static void tell_status(const struct service_report *r)
{
	int64_t since_ms;

	switch (fs_health(r->fs, &since_ms)) {
	case SESSION_CONNECTED:
		service_status("mounted on %s over %s", r->mountpoint, fs_server(r->fs));
		break;
	case SESSION_AWAY:
		tell_away(r, since_ms);
		break;
	case SESSION_LOST:
		service_status("session lost: every operation fails until the export is mounted "
			       "again");
		break;
	}
}

/* The log has the reason for what the manager is about to do. It is said in a quarter of the time
 * until then. */
static void look_at_standing(struct service_report *r, int thread, int64_t now)
{
	if (thread != r->standing) {
		r->standing_ms = now;
		r->standing_told = false;
	}
	r->standing = thread;
	if (thread < 0 || r->standing_told || !service_limit_ms() ||
		now - r->standing_ms < service_limit_ms() / 4)
		return;
	r->standing_told = true;
	log_error("thread %d stands still: after %lld s of that the service manager ends this "
		  "process (WatchdogSec)",
		thread, (long long)service_limit_ms() / 1000);
}

void service_report_tick(struct service_report *r)
{
	int64_t now = now_ms();
	int standing;

	if (!service_is_open())
		return;
	tell_status(r);
	standing = io_threads_standing(r->threads);
	look_at_standing(r, standing, now);
	service_tick(now, standing < 0);
}
