/* size.c - sizes as people write and read them; the contract is in conf.h. */
#include "common/conf/conf.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/util.h"

static const struct {
	const char *name;
	unsigned shift;
} units[] = {{"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};

static const uint64_t SIZE_LARGEST = UINT64_C(1) << 63;
/* If an exact number of a unit has more digits than this, a rounded size is easier to read. */
static const uint64_t EXACT_BELOW = 10000;

static int unit_shift(const char *name)
{
	if (*name == '\0')
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strcmp(units[i].name, name) == 0)
			return (int)units[i].shift;
	return -EINVAL;
}

int size_parse(const char *text, uint64_t *bytes)
{
	uint64_t n = 0;
	bool beyond = false;
	int shift;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (; isdigit((unsigned char)*text); text++) {
		unsigned digit = (unsigned)(*text - '0');

		if (n > (SIZE_LARGEST - digit) / 10)
			beyond = true;
		else
			n = n * 10 + digit;
	}
	shift = unit_shift(text);
	if (shift < 0)
		return shift;
	if (beyond || n > SIZE_LARGEST >> shift)
		return -ERANGE;
	*bytes = n << shift;
	return 0;
}

void size_format(uint64_t bytes, char *buf, size_t len)
{
	size_t unit = 0;

	for (size_t i = ARRAY_SIZE(units); i-- > 0;) {
		uint64_t n = bytes >> units[i].shift;

		if (n > 0 && unit == 0)
			unit = i;
		if (n << units[i].shift == bytes && n < EXACT_BELOW && (n > 0 || i == 0)) {
			snprintf(buf, len, "%" PRIu64 "%s", n, units[i].name);
			return;
		}
	}
	snprintf(buf, len, "%.1f%s", (double)bytes / (double)(UINT64_C(1) << units[unit].shift),
		units[unit].name);
}
