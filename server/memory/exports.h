/* exports.h - the volumes that a server offers, and the memory of each.
 *
 * An export's pages lie in regions: files REGIONS/NAME.NNNN, allocated in full, and mapped for as
 * long as the export is served. All are of one size but the last. If there are more files than the
 * configured size needs, the export is to shrink: the surplus is mapped, too, until
 * exports_drop_surplus().
 *
 * A start makes all exports at once. Later ones come one by one, while the others are served:
 *
 *     export_plan -> export_prepare -> the store knows it -> exports_add
 *
 * One that is served may grow: export_growth.h.
 *
 *     [the store has forgotten it] -> exports_take -> export_remove_files -> export_delete
 *
 * An export stays where it is in memory, and keeps its index. After one was taken, its index may be
 * a later one's.
 *
 * OWNERSHIP  exports_new() maps; exports_delete() unmaps, and leaves the files. A start that fails
 *            later calls exports_discard_new(), which removes the files that this start made.
 *            export_plan() makes one that is the caller's until exports_add().
 * THREADS    Several threads prepare the regions. export_prepare() may run in any thread, since
 *            nobody else knows its export. Else the main thread.
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
	char *file;     /* of the configuration, that had it last; NULL: none has */
	unsigned index; /* of the store: meta_config.exports */
	uint64_t npages;
	uint64_t region_pages;
	uint32_t nregions;
	uint32_t first; /* the number of its first region: 0, but for a growth (export_growth.h) */
	struct region_file **regions; /* [nregions]; each stays where it is in memory */
	void **bases;                 /* [nregions + nsurplus] */
	bool *used;                   /* [nregions] the file was there before */
	uint32_t holed; /* the first region whose file had holes then; nregions: none */
	struct region_file *surplus; /* [nsurplus] behind the last region, without a gap */
	uint32_t nsurplus;
	uint64_t max_inodes; /* as configured; 0: as many as fit */
	atomic_bool lost;    /* a part of its memory is lost, see region_loss.h */
	bool lost_told;      /* region_loss_look() has reported it */
	bool reuse_allowed;  /* meta_allow_reuse was called */
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
	unsigned nsessions;        /* with those that are ending */
	struct rpc_counters ended; /* counters of sessions that have ended */
	uint64_t recalled;         /* leases that sessions were told to return, in this run */
};

struct exports {
	struct export **v; /* [n] in the order in which they came */
	unsigned n, room;
};

/* Plans the exports, and checks that there is room for them and their metadata. It looks at the
 * existing files, and opens and changes none. Logs all errors and returns the first. After an error
 * *out has the exports that are possible; it is NULL only if there is no memory. */
int exports_plan(
	const struct server_config *config, const struct memdir *dir, struct exports **out);

int exports_new(const struct server_config *config, const struct memdir *dir, struct exports **out);
void exports_delete(struct exports *exports);
void exports_discard_new(struct exports *exports);

/* One more export, as exports_plan() does it, for a server with so many ports. *out is NULL after
 * an error. */
int export_plan(const struct server_config *config, const struct memdir *dir,
	const struct export_config *export_config, unsigned nports, struct export **out);
/* The part of it that is about files: export has its name and shape. lost: region_file.export_lost.
 */
int export_plan_files(
	const struct memdir *dir, unsigned nports, atomic_bool *lost, struct export *export);
/* Allocates and maps its regions: seconds for large ones. After an error the caller deletes it.
 * -ECANCELED: see regions.h. */
int export_prepare(
	struct export *export, const struct server_config *config, const struct memdir *dir);
/* Unmaps it, if it was not added; its files stay. export_discard_new() removes those that
 * export_prepare() has made, and goes before. */
void export_delete(struct export *export);
void export_discard_new(const struct export *export);
/* Removes all its region files, which stay mapped. */
void export_remove_files(const struct export *export);
/* Removes the region files of a name from number `first` on, that no export has: a killed server
 * has left them. */
int exports_remove_files(const struct memdir *dir, const char *name, uint32_t first);
/* Takes the export, and gives it an index. -ENOMEM: it is still the caller's; not if there was room
 * for it. */
int exports_add(struct exports *exports, struct export *export);
int exports_reserve(struct exports *exports, unsigned n);
/* The same, where there is room, for one that keeps its index. */
void exports_append(struct exports *exports, struct export *export);
/* Takes one out: it is the caller's. */
void exports_take(struct exports *exports, const struct export *export);
/* Gives it the lowest index that none of the others has. */
void exports_set_index(
	struct export *export, const struct exports *served, const struct exports *new);
/* Notes the file of the configuration that has it. */
void export_set_file(struct export *export, const char *file);

/* The regions of all exports. */
uint32_t exports_nregions(const struct exports *exports);
/* Their files in one malloced list, or NULL; *nfiles: how many. */
struct region_file **exports_files(const struct exports *exports, uint32_t *nfiles);

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
