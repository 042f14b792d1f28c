/* regions.c - the memory itself.
 *
 * THREADS  for_all() starts workers and waits for them. Each takes the next region until none is
 *          left or one failed. They share struct crew; the caller owns everything else.
 */
#include "server/memory/regions.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/base/clock.h"
#include "common/base/crash_point.h"
#include "common/base/map.h"
#include "common/base/service.h"
#include "common/base/util.h"
#include "server/base/task.h"

/* Linux 6.1; older C libraries have no name for it. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* PART_BYTES: long work on one region goes in parts, so that it can be cancelled between them. */
enum { WORKERS_MAX = 16, PROGRESS_MS = 2000, PART_BYTES = 256 << 20 };

/* ---- a crew of threads ----------------------------------------------------------------------- */

struct crew {
	const char *doing; /* "allocated" */
	int (*work)(struct crew *crew, uint32_t i);
	struct region_file *const *files;
	uint32_t n;
	struct task *task; /* of the caller, see task.h; NULL: it is a start */
	atomic_uint next, done;
	atomic_int err;           /* the first failure stops all workers */
	atomic_llong progress_ms; /* when the next line is due */

	/* For work(). */
	enum huge_pages huge;
	const struct numa_place *numa;
	atomic_bool unlocked;   /* some memory could not be locked */
	atomic_int small_pages; /* why some memory could not move to huge pages */
	struct transport *transport;
	unsigned port;
};

/* At a reload the service manager wants signs of life of the server's loop, and not of the crew. */
static void tell_progress(struct crew *crew)
{
	long long due = atomic_load(&crew->progress_ms), now = now_ms();
	unsigned done = atomic_load(&crew->done);

	if (now < due ||
		!atomic_compare_exchange_strong(&crew->progress_ms, &due, now + PROGRESS_MS))
		return;
	log_info("%s %u of %u regions", crew->doing, done, crew->n);
	if (crew->task)
		service_status("reloading: %s %u of %u regions", crew->doing, done, crew->n);
	else
		service_progress("starting: %s %u of %u regions", crew->doing, done, crew->n);
}

static void *crew_run(void *arg)
{
	struct crew *crew = arg;
	uint32_t i;

	while (!atomic_load(&crew->err) && (i = atomic_fetch_add(&crew->next, 1)) < crew->n) {
		int none = 0, err = task_is_cancelled() ? -ECANCELED : crew->work(crew, i);

		if (err)
			atomic_compare_exchange_strong(&crew->err, &none, err);
		atomic_fetch_add(&crew->done, 1);
		tell_progress(crew);
	}
	return NULL;
}

static void *crew_join(void *arg)
{
	struct crew *crew = arg;

	task_enter(crew->task);
	return crew_run(crew);
}

static int for_all(struct crew *crew)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t wanted = min_u64(min_u64(crew->n, WORKERS_MAX), cpus > 0 ? (uint64_t)cpus : 1);
	pthread_t threads[WORKERS_MAX];
	unsigned started = 0;

	crew->task = task_current();
	atomic_store(&crew->progress_ms, now_ms() + PROGRESS_MS);
	/* The caller works, too. So the start goes on, more slowly, if no thread can be had. */
	while (started + 1 < wanted &&
		pthread_create(&threads[started], NULL, crew_join, crew) == 0)
		started++;
	crew_run(crew);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	return atomic_load(&crew->err);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int regions_fail(const struct region_file *file, const char *doing, int err)
{
	char size[32];

	size_format(file->len, size, sizeof(size));
	log_error("region %s (%s): can't %s: %s", file->path, size, doing, errno_text(err));
	return err;
}

/* A start that was killed before it set the length leaves a file of length 0. */
static int open_file(struct region_file *file)
{
	struct stat st;

	file->fd = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file->fd < 0 || fstat(file->fd, &st) != 0)
		return regions_fail(file, "open", -errno);
	file->made = st.st_size == 0;
	file->rofd = open(file->path, O_RDONLY | O_CLOEXEC);
	if (file->rofd < 0)
		return regions_fail(file, "open", -errno);
	CRASH_POINT("region.made");
	if (file->made && ftruncate(file->fd, (off_t)file->len) != 0)
		return regions_fail(file, "set the length", -errno);
	CRASH_POINT("region.sized");
	return 0;
}

/* Placing that the user did not ask for may fail: the start goes on. */
static int place_file(const struct region_file *file, const struct numa_place *numa)
{
	static struct log_ratelimit limit;
	int err = numa_place_memory(file->addr, file->len, numa);

	if (err && numa->only)
		return regions_fail(file, "place it on the NUMA node", err);
	if (err && log_ratelimit_ok(&limit, 1000))
		log_warning("regions may lie on other NUMA nodes than %d, the RDMA device's: %s",
			numa->node, errno_text(err));
	return 0;
}

static int map_all(struct region_file *file)
{
	int err = map_file(file->fd, file->len, PROT_READ | PROT_WRITE, &file->addr);

	if (!err)
		err = cut_guard_add(
			&file->guard, file->fd, file->addr, file->len, file->export_lost);
	return err ? regions_fail(file, "map", err) : 0;
}

/* Each huge page needs one small page that exists, or the kernel leaves a hole. The rest of it
 * costs one zeroing and no fault. The kernel copies pages that exist. */
static int collapse_part(uint8_t *addr, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += HUGE_PAGE_BYTES)
		if (madvise(addr + at, PAGE_BYTES, MADV_POPULATE_WRITE) != 0)
			return -errno;
	return madvise(addr, len, MADV_COLLAPSE) == 0 ? 0 : -errno;
}

/* Makes the kernel take huge pages, whatever shmem_enabled says except "deny". In parts, since no
 * signal ends a call. A busy page does not stop the others. */
static int collapse(const struct region_file *file)
{
	uint64_t len = file->len / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
	int err = 0, first = 0;

	for (uint64_t at = 0; at < len && (!err || err == -EAGAIN); at += PART_BYTES) {
		if (task_is_cancelled())
			return 0;
		err = collapse_part((uint8_t *)file->addr + at, min_u64(PART_BYTES, len - at));
		first = first ? first : err;
	}
	return first;
}

static void take_huge_pages(struct crew *crew, const struct region_file *file)
{
	int err;

	if (crew->huge == HUGE_PAGES_NEVER || (!file->made && crew->huge != HUGE_PAGES_ALWAYS))
		return;
	err = collapse(file);
	if (err)
		atomic_store(&crew->small_pages, err);
}

static int fill(const struct region_file *file)
{
	for (uint64_t at = 0; at < file->len; at += PART_BYTES) {
		if (task_is_cancelled())
			return -ECANCELED;
		if (fallocate(file->fd, 0, (off_t)at, (off_t)min_u64(PART_BYTES, file->len - at)) !=
			0)
			return regions_fail(file, "allocate", -errno);
	}
	return 0;
}

/* fill() makes sure of every page; its result alone tells of failure. */
static int allocate_file(struct crew *crew, struct region_file *file)
{
	int err = map_all(file);

	if (!err)
		err = place_file(file, crew->numa);
	if (err)
		return err;
	take_huge_pages(crew, file);
	return fill(file);
}

static int prepare_one(struct crew *crew, uint32_t i)
{
	struct region_file *file = crew->files[i];
	int err = open_file(file);

	if (!err)
		err = allocate_file(crew, file);
	if (err)
		return err;
	CRASH_POINT("region.allocated");
	if (mlock(file->addr, file->len) != 0)
		atomic_store(&crew->unlocked, true);
	return 0;
}

static void format_memlock(char *buf, size_t len)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
		snprintf(buf, len, "unknown");
	else if (limit.rlim_cur == RLIM_INFINITY)
		snprintf(buf, len, "unlimited");
	else
		size_format(limit.rlim_cur, buf, len);
}

static bool has_capability(unsigned number)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, data) == 0 &&
	       (data[CAP_TO_INDEX(number)].effective & CAP_TO_MASK(number));
}

bool regions_can_lock(uint64_t bytes, char *text, size_t len)
{
	struct rlimit limit = {.rlim_cur = 0};

	format_memlock(text, len);
	return has_capability(CAP_IPC_LOCK) ||
	       (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
		       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes));
}

int regions_prepare(struct region_file *const *files, uint32_t n, enum huge_pages huge,
	const struct numa_place *numa)
{
	struct crew crew = {
		.doing = "allocated",
		.work = prepare_one,
		.files = files,
		.n = n,
		.huge = huge,
		.numa = numa,
	};
	char memlock[32];
	int err = for_all(&crew);

	if (!err && atomic_load(&crew.unlocked)) {
		format_memlock(memlock, sizeof(memlock));
		log_warning(
			"the regions are not locked in memory and may be swapped out: "
			"RLIMIT_MEMLOCK is %s; set LimitMEMLOCK=infinity or ulimit -l unlimited; "
			"if the unit has that already, its service manager may not grant it: raise "
			"the limit of the container",
			memlock);
	}
	if (!err && atomic_load(&crew.small_pages))
		log_info("not all regions are on huge pages: %s",
			errno_text(atomic_load(&crew.small_pages)));
	return err;
}

int region_file_map(struct region_file *file)
{
	file->fd = open(file->path, O_RDWR | O_CLOEXEC);
	if (file->fd < 0)
		return regions_fail(file, "open", -errno);
	return map_all(file);
}

void region_file_close(struct region_file *file)
{
	cut_guard_remove(&file->guard);
	if (file->addr)
		munmap(file->addr, file->len);
	if (file->rofd >= 0)
		close(file->rofd);
	if (file->fd >= 0)
		close(file->fd);
	free(file->registered);
	file->registered = NULL;
	file->addr = NULL;
	file->fd = file->rofd = -1;
}

/* ---- registration ---------------------------------------------------------------------------- */

static int register_one(struct crew *crew, uint32_t i)
{
	const struct region_file *file = crew->files[i];
	char size[32], memlock[32];
	int err;

	CRASH_POINT("region.register");
	err = region_register(crew->transport, file->fd, file->rofd, file->addr, file->len,
		&file->registered[crew->port]);
	if (!err)
		return 0;
	size_format(file->len, size, sizeof(size));
	format_memlock(memlock, sizeof(memlock));
	log_error("can't register %s (%s) with %s: %s; RLIMIT_MEMLOCK is %s: set "
		  "LimitMEMLOCK=infinity or ulimit -l unlimited, or make region_size smaller",
		file->path, size, transport_device(crew->transport), errno_text(err), memlock);
	/* A limit that is too low does not change by itself. */
	return err == -ENOMEM && !regions_can_lock(file->len, memlock, sizeof(memlock)) ? -EFBIG
											: err;
}

int regions_register(
	struct transport *t, struct region_file *const *files, uint32_t n, unsigned port)
{
	struct crew crew = {
		.doing = "registered",
		.work = register_one,
		.files = files,
		.n = n,
		.transport = t,
		.port = port,
	};

	return for_all(&crew);
}
