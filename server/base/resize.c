/* resize.c - see resize.h. */
#include "server/base/resize.h"

#include <stdio.h>

#include "common/conf/conf.h"

bool resize_is_possible(uint64_t have, uint64_t want, uint64_t region)
{
	if (want == have)
		return true;
	return want && want % region == 0 && (want < have || have % region == 0);
}

void resize_choices(uint64_t have, uint64_t want, uint64_t region, char *buf, size_t len)
{
	bool stuck = want > have && have % region;
	uint64_t lower = (stuck ? have : want) / region * region, upper = lower + region;
	char less[32], more[32], unit[32];

	if (have % region && upper > have)
		upper = have;
	size_format(lower, less, sizeof(less));
	size_format(upper, more, sizeof(more));
	size_format(region, unit, sizeof(unit));
	if (!lower)
		snprintf(buf, len, "it can't have less than %s, one region", more);
	else if (stuck)
		snprintf(buf, len,
			"it can have %s or %s, and not grow, since its last region is smaller than "
			"the others (%s)",
			less, more, unit);
	else
		snprintf(
			buf, len, "it can have %s or %s, by whole regions of %s", less, more, unit);
}
