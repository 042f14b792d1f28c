#include "daemon/ctl/doctor/memory.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "common/conf/conf.h"
#include "daemon/ctl/doctor/procfile.h"

#define MEMORY_DIR "/dev/shm"

/* By default a mount registers for each of its threads: 16 buffers of 1 MiB with a page before
 * each, and the messages of a channel. It has a thread for each CPU, at most four. */
enum { THREAD_BYTES = 19 << 20, THREADS_MAX = 4, SIZE_CHARS = 32 };

/* The least that a server takes: 64 MiB of metadata, and an export of 16 MiB. */
enum { SERVER_BYTES = 80 << 20 };

/* ---- the limit on locked memory -------------------------------------------------------------- */

void memory_judge_lock(const struct memory_lock *lock, struct report *r)
{
	char limit[SIZE_CHARS], need[SIZE_CHARS];

	size_format(lock->hard, limit, sizeof(limit));
	size_format(lock->mount, need, sizeof(need));
	if (lock->exempt) {
		report_found(r, VERDICT_OK,
			"this user may lock all memory (CAP_IPC_LOCK); the limit of others is %s; "
			"a server has that of its unit, and its log says if that is too low",
			lock->hard == UINT64_MAX ? "none" : limit);
		return;
	}
	if (lock->hard == UINT64_MAX || lock->may_raise) {
		report_found(r, VERDICT_OK, "no limit on locked memory");
		return;
	}
	if (lock->hard >= lock->mount) {
		report_found(r, VERDICT_NOTE,
			"up to %s of memory can be locked: enough for a mount over verbs (%s), "
			"and for a server as far as its exports are smaller",
			limit, need);
		return;
	}
	report_found(r, lock->ndevices ? VERDICT_FAILURE : VERDICT_WARNING,
		"only %s of memory can be locked (RLIMIT_MEMLOCK)", limit);
	if (lock->ndevices)
		report_cause(r,
			"a mount over verbs locks %s of buffers, and a server all of its exports",
			need);
	else
		report_cause(r,
			"a server locks its exports, or they may be swapped out; mounts over tcp "
			"and shm lock nothing");
	report_remedy(r,
		"ulimit -l unlimited (as root); or a line in /etc/security/limits.conf: * - "
		"memlock unlimited; or LimitMEMLOCK=infinity in a unit");
}

static bool has_capability(uint64_t effective, unsigned number)
{
	return effective >> number & 1;
}

void memory_check_lock(struct doctor *d)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct rlimit limit = {0};
	uint64_t effective = 0;
	struct memory_lock lock = {
		.ndevices = d->ndevices,
		.mount = min_u64((uint64_t)(cpus > 0 ? cpus : 1), THREADS_MAX) * THREAD_BYTES,
	};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	lock.hard = limit.rlim_max == RLIM_INFINITY ? UINT64_MAX : limit.rlim_max;
	procfile_field("/proc/self/status", "CapEff", 16, &effective);
	lock.exempt = has_capability(effective, CAP_IPC_LOCK);
	lock.may_raise = has_capability(effective, CAP_SYS_RESOURCE);
	memory_judge_lock(&lock, &d->report);
}

/* ---- the tmpfs for regions ------------------------------------------------------------------- */

void memory_judge_room(const struct memory_room *room, struct report *r)
{
	char bytes[SIZE_CHARS], free[SIZE_CHARS], available[SIZE_CHARS];

	size_format(room->bytes, bytes, sizeof(bytes));
	size_format(room->free, free, sizeof(free));
	size_format(room->available, available, sizeof(available));
	if (room->err || !room->in_memory) {
		report_found(r, VERDICT_WARNING, "%s: %s", room->dir,
			room->err ? errno_text(room->err) : "not on a filesystem in memory");
		report_cause(r, "a server keeps its exports on a tmpfs; mounts do not need it");
		report_remedy(r, "mkdir -p %s; mount -t tmpfs -o mode=1777 tmpfs %s", room->dir,
			room->dir);
		return;
	}
	if (room->free < SERVER_BYTES) {
		report_found(r, VERDICT_WARNING, "%s has %s free of %s", room->dir, free, bytes);
		report_cause(r,
			"a server takes its exports and a sixteenth more, at least 80 MiB; mounts "
			"do not need it");
		report_remedy(r,
			"remove files there that nobody uses (ls -l %s), or mount -o "
			"remount,size=SIZE %s",
			room->dir, room->dir);
		return;
	}
	if (room->available && room->free > room->available) {
		report_found(r, VERDICT_NOTE,
			"%s has %s free of %s, but the machine has only %s of memory available: no "
			"larger server can start",
			room->dir, free, bytes, available);
		return;
	}
	report_found(r, VERDICT_OK, "%s has %s free of %s", room->dir, free, bytes);
}

/* A server that has answered on this machine may have another directory. */
void memory_check_room(struct doctor *d)
{
	struct memory_room room = {.dir = MEMORY_DIR};
	uint64_t kib = 0;
	struct statfs fs;

	if (statfs(room.dir, &fs) < 0) {
		room.err = -errno;
	} else {
		room.in_memory = (unsigned long)fs.f_type == TMPFS_MAGIC ||
				 (unsigned long)fs.f_type == HUGETLBFS_MAGIC;
		room.bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
		room.free = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	}
	procfile_field("/proc/meminfo", "MemAvailable", 10, &kib);
	room.available = kib << 10;
	memory_judge_room(&room, &d->report);
}

/* ---- huge pages ------------------------------------------------------------------------------ */

static void judge_pools(const struct memory_huge *huge, struct report *r)
{
	char bytes[SIZE_CHARS];

	for (unsigned i = 0; i < huge->npools; i++) {
		if (!huge->pools[i].total)
			continue;
		size_format(huge->pools[i].bytes, bytes, sizeof(bytes));
		report_found(r, VERDICT_OK,
			"%llu of %llu reserved huge pages of %s are free (for a memory directory on "
			"hugetlbfs)",
			(unsigned long long)huge->pools[i].free,
			(unsigned long long)huge->pools[i].total, bytes);
	}
}

void memory_judge_huge(const struct memory_huge *huge, struct report *r)
{
	judge_pools(huge, r);
	if (!huge->enabled[0] || !huge->shmem[0]) {
		report_found(r, VERDICT_NOTE,
			"this kernel has no transparent huge pages on tmpfs: a server takes small "
			"ones");
		return;
	}
	if (strcmp(huge->shmem, "deny") == 0) {
		report_found(r, VERDICT_WARNING, "the kernel denies huge pages on tmpfs");
		report_cause(r,
			"a server asks for them, since they save the device and the CPU work; with "
			"\"deny\" it gets none");
		report_remedy(r, "echo never >/sys/kernel/mm/transparent_hugepage/shmem_enabled");
		return;
	}
	if (strcmp(huge->enabled, "never") == 0) {
		report_found(r, VERDICT_NOTE,
			"transparent huge pages are off: the buffers of mounts are of small pages");
		report_remedy(r, "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled");
		return;
	}
	report_found(r, VERDICT_OK,
		"transparent huge pages: %s; on tmpfs: %s, and a server asks for its regions' own",
		huge->enabled, huge->shmem);
}

static void read_pools(struct memory_huge *huge)
{
	static const char at[] = "/sys/kernel/mm/hugepages";
	DIR *dir = opendir(at);
	struct dirent *entry;
	char path[400];

	while (dir && huge->npools < MEMORY_POOLS_MAX && (entry = readdir(dir))) {
		unsigned long long kib;
		int64_t total = 0, free = 0;

		if (sscanf(entry->d_name, "hugepages-%llukB", &kib) != 1)
			continue;
		snprintf(path, sizeof(path), "%s/%s/nr_hugepages", at, entry->d_name);
		procfile_number(path, &total);
		snprintf(path, sizeof(path), "%s/%s/free_hugepages", at, entry->d_name);
		procfile_number(path, &free);
		huge->pools[huge->npools].bytes = kib << 10;
		huge->pools[huge->npools].total = (uint64_t)total;
		huge->pools[huge->npools].free = (uint64_t)free;
		huge->npools++;
	}
	if (dir)
		closedir(dir);
}

void memory_check_huge(struct doctor *d)
{
	struct memory_huge huge = {0};

	procfile_choice(
		"/sys/kernel/mm/transparent_hugepage/enabled", huge.enabled, sizeof(huge.enabled));
	procfile_choice("/sys/kernel/mm/transparent_hugepage/shmem_enabled", huge.shmem,
		sizeof(huge.shmem));
	read_pools(&huge);
	memory_judge_huge(&huge, &d->report);
}

/* ---- NUMA ------------------------------------------------------------------------------------ */

void memory_judge_nodes(const struct memory_nodes *nodes, struct report *r)
{
	if (!nodes->online[0]) {
		report_found(r, VERDICT_NOTE, "this kernel does not tell of NUMA nodes");
		return;
	}
	if (nodes->n <= 1) {
		report_found(r, VERDICT_OK, "one NUMA node");
		return;
	}
	report_found(r, VERDICT_OK, "%u NUMA nodes: %s", nodes->n, nodes->online);
	for (unsigned i = 0; i < nodes->ndevices; i++) {
		if (nodes->devices[i].node < 0) {
			report_found(r, VERDICT_NOTE, "the node of RDMA device %s is not known",
				nodes->devices[i].name);
			continue;
		}
		report_found(r, VERDICT_NOTE,
			"RDMA device %s is at node %d: a server prefers the memory there, and mounts "
			"are fastest there (numactl --cpunodebind=%d)",
			nodes->devices[i].name, nodes->devices[i].node, nodes->devices[i].node);
	}
}

/* "0", "0-3", "0,2-3". */
static unsigned count_nodes(const char *list)
{
	unsigned n = 0, first, last;
	int used;

	while (*list) {
		if (sscanf(list, "%u-%u%n", &first, &last, &used) == 2)
			n += last >= first ? last - first + 1 : 0;
		else if (sscanf(list, "%u%n", &first, &used) == 1)
			n++;
		else
			break;
		list += used;
		list += *list == ',';
	}
	return n;
}

void memory_check_nodes(struct doctor *d)
{
	struct memory_nodes nodes = {0};
	DIR *dir = opendir("/sys/class/infiniband");
	struct dirent *entry;
	char path[400];

	procfile_text("/sys/devices/system/node/online", nodes.online, sizeof(nodes.online));
	nodes.n = count_nodes(nodes.online);
	while (dir && nodes.ndevices < ARRAY_SIZE(nodes.devices) && (entry = readdir(dir))) {
		int64_t node = -1;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/numa_node",
			entry->d_name);
		procfile_number(path, &node);
		snprintf(nodes.devices[nodes.ndevices].name, sizeof(nodes.devices[0].name), "%.63s",
			entry->d_name);
		nodes.devices[nodes.ndevices++].node = (int)node;
	}
	if (dir)
		closedir(dir);
	memory_judge_nodes(&nodes, &d->report);
}
