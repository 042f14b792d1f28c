/* take_sigbus.h - for tests of memory that is lost (common/base/cut_guard.h). */
#pragma once

#include <sys/mman.h>

#include "common/base/cut_guard.h"
#include "common/base/util.h"

/* cmocka takes SIGBUS before each test, and before its set-up. Adding a guard takes it back. */
static inline void take_sigbus(void)
{
	autoclose int fd = memfd_create("sigbus", MFD_CLOEXEC);
	struct cut_guard guard;
	char byte;

	assert_int_equal(cut_guard_add(&guard, fd, &byte, sizeof(byte), NULL), 0);
	cut_guard_remove(&guard);
}
