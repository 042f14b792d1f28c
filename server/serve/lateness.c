#include "server/serve/lateness.h"

#include "common/base/log.h"
#include "server/serve/control.h"

enum { LOG_MS = 10000 };

static void tell_pause(int64_t late_ms)
{
	static struct log_ratelimit limit;

	if (log_ratelimit_ok(&limit, LOG_MS))
		log_warning("this process was late by %lld.%lld s: it was stopped, or this machine "
			    "was paused or gave it no CPU",
			(long long)late_ms / 1000, (long long)late_ms % 1000 / 100);
}

static void lateness_tell(struct server *s, int64_t now)
{
	struct cpu_wait_view view;
	char text[CPU_WAIT_TEXT_BYTES];

	if (cpu_wait_is_to_be_told(&s->cpu, now, &view))
		log_warning("this process %s", cpu_wait_text(&view, text));
	if (view.starved == s->starved_told || s->leaving)
		return;
	s->starved_told = view.starved;
	control_tell_status(s);
}

void lateness_tick(struct server *s, int64_t now)
{
	int64_t late_ms = s->due_ms ? now - s->due_ms : 0;

	if (late_ms > 0 && cpu_wait_late(&s->cpu, late_ms, now))
		tell_pause(late_ms);
	if (cpu_wait_tick(&s->cpu, now))
		lateness_tell(s, now);
}

void lateness_expect(struct server *s, int64_t due_ms)
{
	s->due_ms = due_ms < 0 ? 0 : due_ms;
}
