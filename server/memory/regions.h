/* regions.h - files of memory: makes, allocates, maps and registers many at once.
 *
 * Allocation and registration touch every page, which takes seconds for large memory. So several
 * threads share the regions, and log their progress now and then.
 *
 * OWNERSHIP  regions_prepare() and region_file_map() open and map; region_file_close() undoes it.
 * THREADS    The threads live within the call that starts them. They enter the caller's task
 *            (task.h); when it is cancelled, the call ends soon with -ECANCELED.
 * ERRORS     0 or -errno; the reason is logged.
 */
#ifndef RMEMFS_SERVER_MEMORY_REGIONS_H
#define RMEMFS_SERVER_MEMORY_REGIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/cut_guard.h"
#include "common/transport/transport.h"
#include "server/config/config.h"

struct region_file {
	char path[1400];
	uint64_t len;
	int fd, rofd; /* -1: not open */
	void *addr;
	bool made; /* this start made it */
	struct cut_guard guard;
	atomic_bool *export_lost; /* export.lost */
	/* As each port's transport knows it: serve/ports.c fills and empties it. NULL: a surplus.
	 * The array is freed with the file. */
	struct region **registered;
	bool lost, gained; /* told, see region_loss.h */
};

/* Opens, allocates and maps all files. After a failure some may be open. If the kernel has no huge
 * pages, the function logs that and uses small ones. */
int regions_prepare(struct region_file *const *files, uint32_t n, enum huge_pages huge,
	const struct numa_place *numa);
/* Opens and maps one file as it is, with the length it has. */
int region_file_map(struct region_file *file);
void region_file_close(struct region_file *file);

/* Whether this process may lock so many bytes. limit: RLIMIT_MEMLOCK as text. */
bool regions_can_lock(uint64_t bytes, char *limit, size_t len);

/* Registers all files with the transport of a port: sets their registered[port], which is NULL
 * before. After a failure some are set. */
int regions_register(
	struct transport *t, struct region_file *const *files, uint32_t n, unsigned port);

#endif
