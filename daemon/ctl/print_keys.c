#include "daemon/ctl/print_keys.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/ctl/json.h"
#include "daemon/ctl/print_mount.h"

enum { MS_PER_DAY = 24 * 3600 * 1000 };

/* "41 days"; below two of them as other times. */
static const char *days_text(uint64_t ms, char buf[CTL_TIME_CHARS])
{
	if (ms < 2 * (uint64_t)MS_PER_DAY)
		return ctl_time_text(ms * 1000000, buf);
	snprintf(buf, CTL_TIME_CHARS, "%" PRIu64 " days", ms / MS_PER_DAY);
	return buf;
}

static void print_key(const json_t *key)
{
	uint64_t channels = ctl_json_number(key, "channels");
	char time[CTL_TIME_CHARS], used[CTL_TIME_CHARS + 16];

	days_text(ctl_json_number(key, "unused_ms"), time);
	if (channels)
		snprintf(used, sizeof(used), "now");
	else if (ctl_json_number(key, "count"))
		snprintf(used, sizeof(used), "%s ago", time);
	else
		snprintf(used, sizeof(used), "never, in %s", time);
	printf("%-37s %-24s %8" PRIu64 "  %s\n", ctl_json_text(key, "key"), used, channels,
		ctl_json_text(key, "file"));
}

void ctl_print_keys(const json_t *root)
{
	const json_t *keys = json_object_get(root, "keys"), *key;
	size_t i;

	if (!json_array_size(keys))
		return;
	printf("\n%-37s %-24s %8s  %s\n", "KEY", "USED", "CHANNELS", "FILE");
	json_array_foreach(keys, i, key) print_key(key);
}
