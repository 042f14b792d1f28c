#include "daemon/ctl/cpu_text.h"

#include "daemon/ctl/json.h"

static int64_t number_of(const json_t *cpu, const char *key)
{
	uint64_t n = ctl_json_number(cpu, key);

	/* A peer may say anything. */
	return n > INT32_MAX ? INT32_MAX : (int64_t)n;
}

bool ctl_cpu_view(const json_t *status, struct cpu_wait_view *view)
{
	const json_t *cpu = json_object_get(status, "cpu");

	*view = (struct cpu_wait_view){
		.known = json_is_integer(json_object_get(cpu, "wait_ms")),
		.span_ms = number_of(cpu, "span_ms"),
		.wait_ms = number_of(cpu, "wait_ms"),
		.late_ms = number_of(cpu, "late_ms"),
		.throttled = json_is_true(json_object_get(cpu, "throttled")),
		.starved = json_is_true(json_object_get(cpu, "starved")),
		.npauses = (uint64_t)number_of(cpu, "pauses"),
		.recent_pauses = (uint32_t)number_of(cpu, "recent_pauses"),
		.longest_pause_ms = number_of(cpu, "longest_pause_ms"),
	};
	return json_is_object(cpu);
}
