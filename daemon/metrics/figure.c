#include "daemon/metrics/figure.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/util.h"
#include "daemon/ctl/print_mount.h"

static const char *dash(char buf[FIGURE_CHARS])
{
	snprintf(buf, FIGURE_CHARS, "–");
	return buf;
}

/* In the largest unit of which there is at least one. Four digits at most. */
static const char *scaled(double n, double step, const char *const *units, unsigned nunits,
	const char *per, char buf[FIGURE_CHARS])
{
	unsigned unit = 0;
	bool whole;

	if (!isfinite(n) || n < 0)
		return dash(buf);
	/* 1023.6 would be 1024 of its unit. */
	while (unit + 1 < nunits && n >= step - 0.5) {
		n /= step;
		unit++;
	}
	whole = n >= 99.95 || n == floor(n);
	snprintf(buf, FIGURE_CHARS, whole ? "%.0f%s%s" : "%.1f%s%s", n, units[unit], per);
	return buf;
}

static const char *const byte_units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
static const char *const count_units[] = {"", " k", " M", " G"};

const char *figure_bytes(double bytes, char buf[FIGURE_CHARS])
{
	return scaled(bytes, 1024, byte_units, ARRAY_SIZE(byte_units), "", buf);
}

const char *figure_byte_rate(double bytes, char buf[FIGURE_CHARS])
{
	return scaled(bytes, 1024, byte_units, ARRAY_SIZE(byte_units), "/s", buf);
}

/* Up to four digits there is no unit. */
static const char *count(double n, const char *per, char buf[FIGURE_CHARS])
{
	if (n >= 1000 && n < 9999.5) {
		snprintf(buf, FIGURE_CHARS, "%.0f%s", n, per);
		return buf;
	}
	return scaled(n, 1000, count_units, ARRAY_SIZE(count_units), per, buf);
}

const char *figure_count(double n, char buf[FIGURE_CHARS])
{
	return count(n, "", buf);
}

const char *figure_rate(double n, char buf[FIGURE_CHARS])
{
	return count(n, "/s", buf);
}

const char *figure_time(double ns, char buf[FIGURE_CHARS])
{
	char text[CTL_TIME_CHARS];

	if (!isfinite(ns) || ns < 0)
		return dash(buf);
	snprintf(buf, FIGURE_CHARS, "%s", ns < 9e18 ? ctl_time_text((uint64_t)ns, text) : "> 68 s");
	return buf;
}

const char *figure_share(double part, double all, char buf[FIGURE_CHARS])
{
	if (!(all > 0) || !(part >= 0))
		return dash(buf);
	if (part > 0 && part / all < 0.01)
		snprintf(buf, FIGURE_CHARS, "< 1 %%");
	else
		snprintf(buf, FIGURE_CHARS, "%.0f %%", floor(part / all * 100));
	return buf;
}
