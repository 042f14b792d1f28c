/* For tests of calls that QEMU's user-mode emulation does not have; see tests/platforms/arm64.sh.
 * Include it after cmocka.h. */
#pragma once

#include <stdlib.h>

static inline void skip_if_emulated(void)
{
	if (getenv("RMEMFS_TEST_EMULATED"))
		skip();
}
