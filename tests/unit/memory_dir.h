/* memory_dir.h - a folder on a tmpfs for one test's memory, where leftovers.sh looks for it. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

/* Makes it and writes its path to `dir` of `size` bytes; the caller removes the folder. */
static inline void memory_dir(char *dir, size_t size)
{
	const char *above = getenv("RMEMFS_TEST_SHM");

	assert_true((size_t)snprintf(
			    dir, size, "%s/rmemfs-unit.XXXXXX", above ? above : "/dev/shm") < size);
	assert_non_null(mkdtemp(dir));
}
