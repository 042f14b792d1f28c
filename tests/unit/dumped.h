/* dumped.h - whether a core dump of this process would hold certain bytes. A dump leaves out
 * mappings with "dd" among their VmFlags (proc_pid_smaps(5)). This searches all others that can be
 * read, which is more than a dump has by default.
 */
#ifndef RMEMFS_TESTS_UNIT_DUMPED_H
#define RMEMFS_TESTS_UNIT_DUMPED_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/nodump.h"
#include "common/base/util.h"
#include "tests/unit/emulated.h"

enum { DUMPED_PIECE_BYTES = 1 << 20 };

/* The bytes to find must lie outside of what a dump holds, and so must each copy of ours. */
static bool dumped_in_range(
	int mem, uint8_t *buf, uint64_t from, uint64_t to, const void *bytes, size_t len)
{
	while (from < to) {
		size_t want = min_u64(to - from, DUMPED_PIECE_BYTES);
		ssize_t n = pread(mem, buf, want, (off_t)from);

		if (n <= 0)
			return false; /* no memory behind it, as [vvar] */
		if (memmem(buf, (size_t)n, bytes, len))
			return true;
		from += (size_t)n < DUMPED_PIECE_BYTES ? (size_t)n : (size_t)n - len;
	}
	return false;
}

/* Where a dump would have the bytes: the mapping's line, or NULL. */
static const char *dumped_where(const void *bytes, size_t len)
{
	static char where[256];
	uint8_t *buf = nodump_map(DUMPED_PIECE_BYTES);
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	FILE *maps = fopen("/proc/self/smaps", "re");
	unsigned long long from = 0, to = 0, low, high;
	char line[256], perms[8];
	bool found = false;

	skip_if_emulated(); /* these are not the emulator's own mappings */
	assert_true(buf && mem >= 0 && maps);
	while (!found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%llx-%llx %7s", &low, &high, perms) == 3) {
			from = low;
			to = perms[0] == 'r' ? high : low;
			memcpy(where, line, sizeof(line));
		} else if (strncmp(line, "VmFlags:", 8) == 0 && !strstr(line, " dd")) {
			found = dumped_in_range(mem, buf, from, to, bytes, len);
		}
	}
	fclose(maps);
	close(mem);
	nodump_unmap(buf, DUMPED_PIECE_BYTES);
	return found ? where : NULL;
}

#endif
