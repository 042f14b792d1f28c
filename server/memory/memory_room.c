/* memory_room.c - see memory_room.h. */
#include "server/memory/memory_room.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "common/conf/conf.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/memory/memdir_files.h"

static int refuse_room(const char *what, uint64_t bytes, uint64_t room, const char *where)
{
	char need[32], have[32];

	size_format(bytes, need, sizeof(need));
	size_format(room, have, sizeof(have));
	log_error("%s: needed %s, free %s in %s; make the exports smaller or the memory larger",
		what, need, have, where);
	return -EFBIG;
}

/* MemAvailable; UINT64_MAX: not known. */
static uint64_t available_memory(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	uint64_t kib = UINT64_MAX >> 10;
	char line[128];

	if (!f)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1)
			break;
	fclose(f);
	return kib << 10;
}

static uint64_t count_huge_pages(uint64_t page_bytes, const char *which)
{
	char path[128], line[32];

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%llukB/%s",
		(unsigned long long)page_bytes >> 10, which);
	return memdir_files_read_line(path, line, sizeof(line)) ? 0 : strtoull(line, NULL, 10);
}

/* Free pages that nobody has reserved, and those that the kernel may still make. */
static uint64_t available_huge_bytes(uint64_t page_bytes)
{
	uint64_t have = count_huge_pages(page_bytes, "free_hugepages") +
			count_huge_pages(page_bytes, "nr_overcommit_hugepages");
	uint64_t taken = count_huge_pages(page_bytes, "resv_hugepages") +
			 count_huge_pages(page_bytes, "surplus_hugepages");

	return (have - min_u64(have, taken)) * page_bytes;
}

/* Looks at the nearest directory that exists: a start makes those below it. */
static int find_filesystem(const char *path, struct statfs *fs, char *found, size_t len)
{
	snprintf(found, len, "%s", path);
	while (statfs(found, fs) != 0) {
		char *slash = strrchr(found, '/');

		if (errno != ENOENT || !slash || slash == found)
			return -errno;
		*slash = '\0';
	}
	return 0;
}

bool memory_room_is_one(const char *path, const char *other)
{
	char found[1200];
	struct stat a, b;
	struct statfs fs;

	if (find_filesystem(path, &fs, found, sizeof(found)) || stat(found, &a))
		return true;
	if (find_filesystem(other, &fs, found, sizeof(found)) || stat(found, &b))
		return true;
	return a.st_dev == b.st_dev;
}

int memory_room_check(
	const char *path, uint64_t bytes, const char *other, uint64_t before, const char *what)
{
	char found[1200];
	struct statfs fs;
	uint64_t room, available;
	int err;

	if (!bytes)
		return 0;
	err = find_filesystem(path, &fs, found, sizeof(found));
	if (err)
		return memdir_files_fail("look at", path, err);
	room = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	if (before && memory_room_is_one(path, other))
		room -= min_u64(room, before);
	/* A tmpfs without a size limit reports no blocks. */
	if (fs.f_blocks && bytes > room)
		return refuse_room(what, bytes, room, path);
	if ((unsigned long)fs.f_type == HUGETLBFS_MAGIC) {
		available = available_huge_bytes((uint64_t)fs.f_bsize);
		return bytes > available ? refuse_room(what, bytes, available,
						   "this machine's huge pages (vm.nr_hugepages)")
					 : 0;
	}
	available = available_memory();
	available -= min_u64(available, before);
	return bytes > available ? refuse_room(what, bytes, available, "this machine's memory") : 0;
}
