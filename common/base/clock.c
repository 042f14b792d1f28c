#include "common/base/clock.h"

#include <stdio.h>

const char *clock_format(int64_t seconds, int ms, char buf[CLOCK_TEXT_BYTES])
{
	char day[32], fraction[16] = "", zone[16];
	struct tm tm;

	if (!localtime_r(&seconds, &tm)) {
		snprintf(buf, CLOCK_TEXT_BYTES, "?");
		return buf;
	}
	strftime(day, sizeof(day), "%Y-%m-%d %H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	if (ms >= 0)
		snprintf(fraction, sizeof(fraction), ".%03d", ms);
	snprintf(buf, CLOCK_TEXT_BYTES, "%s%s %s", day, fraction, zone);
	return buf;
}
