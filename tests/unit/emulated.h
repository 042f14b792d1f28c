/* For tests of calls that QEMU's user-mode emulation does not have, or of times that it can't keep;
 * see tests/platforms/arm64.sh. Include it after cmocka.h. */
#ifndef RMEMFS_TESTS_UNIT_EMULATED_H
#define RMEMFS_TESTS_UNIT_EMULATED_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool is_emulated(void)
{
	return getenv("RMEMFS_TEST_EMULATED");
}

static inline void skip_if_emulated(void)
{
	if (is_emulated())
		skip();
}

#endif
