/* exports.h - the volumes that a server offers, and the memory of each.
 *
 * An export's pages lie in regions: files REGIONS/NAME.NNNN, allocated in full, and mapped for as
 * long as the server runs. All are of one size but the last. If there are more files than the
 * configured size needs, the export is to shrink: the surplus is mapped, too, until
 * exports_drop_surplus().
 *
 * OWNERSHIP  exports_new() maps; exports_delete() unmaps, and leaves the files. A start that fails
 *            later calls exports_discard_new(), which removes the files that this start made.
 * THREADS    Several threads prepare the regions within exports_new(); else the main thread.
 * ERRORS     0 or -errno; the reason is logged.
 */
#ifndef RMEMFS_SERVER_MEMORY_EXPORTS_H
#define RMEMFS_SERVER_MEMORY_EXPORTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/rpc.h"
#include "server/config/config.h"
#include "server/memory/memdir.h"
#include "server/memory/regions.h"

enum { SNAPSHOT_DIR_BYTES = 1024 };

/* The snapshot of an export that is under way, as its clients see it. snapshot/ sets
 * it, but for told_ns: client_session_snapshot(). */
struct export_snapshot {
	uint64_t id;     /* 0: none */
	bool freezing;   /* clients are to end their writes */
	int64_t told_ns; /* when the first client was told; 0: none was */
};

/* How full the log says that it is, in percent: see admin/fullness.h. */
struct export_levels {
	unsigned memory, metadata, inodes;
};

struct export
{
	char name[EXPORT_NAME_MAX + 1];
	unsigned index;
	uint64_t npages;
	uint64_t region_pages;
	uint32_t nregions;
	uint32_t first_region; /* index of its first one in exports.regions */
	void **bases;          /* [nregions + nsurplus] */
	bool *used;            /* [nregions] the file was there before this start */
	uint32_t holed;        /* the first region whose file had holes then; nregions: none */
	struct region_file *surplus; /* [nsurplus] behind the last region, without a gap */
	uint32_t nsurplus;
	const struct export_config *config;
	atomic_bool lost;   /* a part of its memory is lost, see region_loss.h */
	bool lost_told;     /* region_loss_look() has reported it */
	bool reuse_allowed; /* meta_allow_reuse was called */
	/* A request lacks pages, and overdue sessions may have some. */
	bool crowded;
	bool awaits_reuse; /* requests wait for it, see page_reuse.h */
	bool awaited_told; /* the log says so */
	bool kept_told;    /* the log says which session prevents it */
	bool closed;       /* the server is stopping: see snapshot_take_last() */
	struct export_levels levels_told;
	struct export_snapshot snapshot;
	/* The last snapshot that this run has completed: s of the clock, 0: none. */
	int64_t completed;
	char completed_dir[SNAPSHOT_DIR_BYTES];
	struct rpc_counters ended; /* counters of sessions that have ended */
	uint64_t recalled;         /* leases that sessions were told to return, in this run */
};

struct exports {
	struct export *v;
	unsigned n;
	struct region_file *regions; /* of all exports, one after the other */
	uint32_t nregions;
};

/* Plans the exports, and checks that there is room for them and their metadata. It looks at the
 * existing files, and opens and changes none. Logs all errors and returns the first. After an error
 * *out has the exports that are possible; it is NULL only if there is no memory. */
int exports_plan(
	const struct server_config *config, const struct memdir *dir, struct exports **out);

int exports_new(const struct server_config *config, const struct memdir *dir, struct exports **out);
void exports_delete(struct exports *exports);
void exports_discard_new(struct exports *exports);

/* The path of a region's file; the export need not be configured. */
void exports_region_path(
	char *buf, size_t len, const struct memdir *dir, const char *name, uint32_t i);

/* Unmaps and removes all region files that the exports do not have. The store must not name them
 * any more. */
int exports_drop_surplus(struct exports *exports, const struct memdir *dir);

/* NULL: there is no export of that name. */
struct export *exports_find(struct exports *exports, const struct rpc_str *name);
/* "a, b, c": for messages. */
void exports_names(const struct exports *exports, char *buf, size_t len);

#endif
