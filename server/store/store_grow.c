/* store_grow.c - makes an open store larger.
 *
 * LMDB maps its file anew, for which no transaction may be open. All that takes long is done
 * before: the new pages are allocated and locked beside it. LMDB uses the file up to the map's size
 * only, so a file that is longer than that harms nobody. A start that finds one takes all of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/base/task.h"
#include "server/store/store_internal.h"

/* Allocating goes in parts, so that it can be cancelled between them. */
enum { PART_BYTES = 256 << 20 };

static int file_of(const struct store *s)
{
	int fd = -1;

	mdb_env_get_fd(s->env, &fd);
	return fd;
}

/* The file's end goes back to the map's. */
static void cut(const struct store *s)
{
	if (ftruncate(file_of(s), (off_t)(s->map_pages * PAGE_BYTES)) != 0)
		log_warning("the store keeps memory that it does not need: %s", errno_text(errno));
}

/* Looks first: parts would fill the filesystem before one fails. */
static int allocate(int fd, uint64_t from, uint64_t to)
{
	struct statvfs vfs;

	if (fstatvfs(fd, &vfs) == 0 && (uint64_t)vfs.f_bavail * vfs.f_frsize < to - from)
		return -ENOSPC;
	for (uint64_t at = from; at < to; at += PART_BYTES) {
		if (task_is_cancelled())
			return -ECANCELED;
		if (fallocate(fd, 0, (off_t)at, (off_t)min_u64(PART_BYTES, to - at)) != 0)
			return -errno;
	}
	return 0;
}

int store_grow_prepare(
	struct store *s, uint64_t bytes, struct store_growth *growth, char *why, size_t whylen)
{
	const char *path = "";
	int fd = file_of(s), err;

	*growth = (struct store_growth){.locked = MAP_FAILED};
	bytes = div_round_up(bytes, PAGE_BYTES) * PAGE_BYTES;
	if (bytes <= s->map_pages * PAGE_BYTES)
		return 0;
	mdb_env_get_path(s->env, &path);
	err = allocate(fd, s->map_pages * PAGE_BYTES, bytes);
	if (err) {
		cut(s);
		return err == -ECANCELED
			       ? err
			       : store_refuse_room(path, fd, bytes - s->map_pages * PAGE_BYTES, err,
					 why, whylen);
	}
	CRASH_POINT("store.growing");
	growth->bytes = bytes;
	growth->locked = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (growth->locked == MAP_FAILED || mlock(growth->locked, bytes) != 0)
		log_info("the store is not locked in memory and may be swapped out: %s "
			 "(RLIMIT_MEMLOCK)",
			errno_text(errno));
	return 0;
}

void store_grow_cancel(struct store *s, struct store_growth *growth)
{
	if (!growth->bytes)
		return;
	if (growth->locked != MAP_FAILED)
		munmap(growth->locked, growth->bytes);
	cut(s);
	growth->bytes = 0;
}

bool store_is_viewed(const struct store *s)
{
	return s->view;
}

int store_grow(struct store *s, struct store_growth *growth)
{
	int err;

	if (!growth->bytes)
		return 0;
	if (s->view)
		return -EBUSY;
	err = store_errno(mdb_env_set_mapsize(s->env, growth->bytes));
	if (err)
		return err;
	if (s->locked != MAP_FAILED)
		munmap(s->locked, s->map_pages * PAGE_BYTES);
	s->locked = growth->locked;
	s->map_pages = growth->bytes / PAGE_BYTES;
	growth->bytes = 0;
	return 0;
}
