/* exports.h - the volumes that a server offers, and the memory that each consists of.
 *
 * An export's pages lie in regions: files REGIONS/NAME.NNNN, allocated in full, mapped for as long
 * as the server runs, all of one size but the last. Where more files are there than the export is
 * configured with, it is to become smaller: those are mapped too, until exports_drop_surplus().
 *
 * OWNERSHIP  exports_new() maps; exports_delete() unmaps, and leaves the files. A start that fails
 *            later calls exports_discard_new(), which removes the files that this start made.
 * THREADS    Regions are prepared by several threads within exports_new(); else the main thread.
 * ERRORS     0 or -errno; the reason is logged.
 */
#ifndef RMEMFS_SERVER_MEMORY_EXPORTS_H
#define RMEMFS_SERVER_MEMORY_EXPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/rpc.h"
#include "server/config/config.h"
#include "server/memory/memdir.h"
#include "server/memory/regions.h"

enum { SNAPSHOT_DIR_BYTES = 1024 };

/* The snapshot of an export that is on its way, as its clients see it: snapshot/ sets it. */
struct export_snapshot {
	uint64_t id;     /* 0: none */
	bool freezing;   /* clients are to end their writes */
	int64_t told_ns; /* since when the first client has been told to; 0: none has */
};

struct export
{
	char name[EXPORT_NAME_MAX + 1];
	unsigned index;
	uint64_t npages;
	uint64_t region_pages;
	uint32_t nregions;
	uint32_t first_region;       /* of this export in exports.regions */
	void **bases;                /* [nregions], and of the surplus */
	bool *used;                  /* [nregions] the file was there before this start */
	struct region_file *surplus; /* [nsurplus] behind the last region, without a gap */
	uint32_t nsurplus;
	const struct export_config *config;
	bool reuse_allowed; /* meta_allow_reuse was called */
	bool crowded;       /* somebody lacks what sessions that are gone have */
	bool awaits_reuse;  /* somebody waits for it, see page_reuse.h */
	bool awaited_told;  /* the log has that */
	bool kept_told;     /* and who keeps it from coming */
	bool closed;        /* the server is stopping: see snapshot_take_last() */
	struct export_snapshot snapshot;
	/* The last snapshot that this run has completed: s of the clock, 0: none. */
	int64_t completed;
	char completed_dir[SNAPSHOT_DIR_BYTES];
	struct rpc_counters ended; /* of sessions that have ended */
	uint64_t recalled;         /* leases that sessions were told to give back, in this run */
};

struct exports {
	struct export *v;
	unsigned n;
	struct region_file *regions; /* of all exports, one after the other */
	uint32_t nregions;
};

/* What they are to be, and whether there is room for them and their metadata: by the files that are
 * there, of which none is opened or changed. All that is wrong is logged; returns the first. *out
 * is made also then, of those exports that can be, and NULL only without memory. */
int exports_plan(
	const struct server_config *config, const struct memdir *dir, struct exports **out);

int exports_new(const struct server_config *config, const struct memdir *dir, struct exports **out);
void exports_delete(struct exports *exports);
void exports_discard_new(struct exports *exports);

/* Of the file of a region: of an export that need not be configured. */
void exports_region_path(
	char *buf, size_t len, const struct memdir *dir, const char *name, uint32_t i);

/* Unmaps and removes all files of regions that the exports don't have, once the store knows none of
 * them. */
int exports_drop_surplus(struct exports *exports, const struct memdir *dir);

/* NULL: none of that name. */
struct export *exports_find(struct exports *exports, const struct rpc_str *name);
/* "a, b, c": for people. */
void exports_names(const struct exports *exports, char *buf, size_t len);

#endif
