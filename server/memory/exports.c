/* exports.c - from configured names and sizes to mapped regions. */
#include "server/memory/exports.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "server/memory/memory_room.h"
#include "server/base/resize.h"

/* ---- files that exist ------------------------------------------------------------------------ */

void exports_region_path(
	char *buf, size_t len, const struct memdir *dir, const char *name, uint32_t i)
{
	snprintf(buf, len, "%s/%s.%04u", dir->regions, name, i);
}

/* Bytes of one region file. 0: it is missing, its contents are not kept, or a start was killed
 * before it set the length. */
static uint64_t region_bytes(const struct memdir *dir, const char *name, uint32_t i)
{
	char path[1400];
	struct stat st;

	if (dir->content != MEMDIR_KEPT)
		return 0;
	exports_region_path(path, sizeof(path), dir, name, i);
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* All regions are allocated in full, also those of a start that was killed, once the store has
 * them. */
static bool region_has_holes(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_blocks * 512 < st.st_size;
}

/* Bytes of all region files that exist, from the first on without a gap. */
static uint64_t existing_bytes(const struct memdir *dir, const char *name)
{
	uint64_t sum = 0, bytes;

	for (uint32_t i = 0; (bytes = region_bytes(dir, name, i)); i++)
		sum += bytes;
	return sum;
}

/* Whether each region file that is needed and exists has the planned length; *misfit: the first
 * that has not. */
static bool existing_fit(const struct memdir *dir, const struct export_config *ec, uint64_t planned,
	uint32_t *misfit)
{
	uint64_t bytes, at = 0;

	for (*misfit = 0; at < ec->size; ++*misfit, at += planned) {
		bytes = region_bytes(dir, ec->name, *misfit);
		if (bytes && bytes != min_u64(planned, ec->size - at))
			return false;
	}
	return true;
}

static int refuse_size(const struct memdir *dir, const struct export_config *config,
	uint64_t planned, uint32_t misfit)
{
	char path[1400], have[32], want[32], choices[192];
	uint64_t sum = existing_bytes(dir, config->name);

	exports_region_path(path, sizeof(path), dir, config->name, misfit);
	size_format(sum, have, sizeof(have));
	size_format(config->size, want, sizeof(want));
	resize_choices(sum, config->size, planned, choices, sizeof(choices));
	log_error("export '%s' exists with %s and is configured with %s: %s; if its size was not "
		  "changed, %s has lost or gained bytes: a process that had it open may have cut "
		  "it, and the other exports can be served without this one",
		config->name, have, want, choices, path);
	return -EINVAL;
}

/* Clients can't reach that many regions. */
static int refuse_count(const struct export_config *config, uint64_t planned, bool exists)
{
	char want[32], unit[32], most[32], needed[32];
	uint64_t enough = planned;

	while (div_round_up(config->size, enough) > EXPORT_REGIONS_MAX)
		enough *= 2;
	size_format(config->size, want, sizeof(want));
	size_format(planned, unit, sizeof(unit));
	size_format(planned * EXPORT_REGIONS_MAX, most, sizeof(most));
	size_format(enough, needed, sizeof(needed));
	if (exists)
		log_error("export '%s' is configured with %s and has regions of %s: clients reach "
			  "%u of them, so it can have %s",
			config->name, want, unit, EXPORT_REGIONS_MAX, most);
	else
		log_error("export '%s' is configured with %s in regions of %s: clients reach %u of "
			  "them, so make region_size %s or larger",
			config->name, want, unit, EXPORT_REGIONS_MAX, needed);
	return -EINVAL;
}

/* The regions of an export keep the size that they were made with, whatever region_size says now. A
 * start that was killed may have left only some of them; then this start makes the others. */
static int plan_shape(const struct server_config *config, const struct memdir *dir,
	const struct export_config *ec, struct export *export)
{
	uint64_t first = region_bytes(dir, ec->name, 0), planned = config->region_size;
	uint32_t misfit;

	planned = min_u64(div_round_up(planned, dir->regions_block) * dir->regions_block, ec->size);
	if (first)
		planned = first;
	if (div_round_up(ec->size, planned) > EXPORT_REGIONS_MAX)
		return refuse_count(ec, planned, first);
	if (!existing_fit(dir, ec, planned, &misfit))
		return refuse_size(dir, ec, planned, misfit);
	if (ec->size % dir->regions_block) {
		log_error(
			"export '%s': its size is not a whole number of huge pages (%llu bytes): make "
			"it one",
			ec->name, (unsigned long long)dir->regions_block);
		return -EINVAL;
	}
	snprintf(export->name, sizeof(export->name), "%s", ec->name);
	export->max_inodes = ec->inodes;
	export_set_file(export, ec->path);
	export->npages = ec->size / PAGE_BYTES;
	export->region_pages = planned / PAGE_BYTES;
	export->nregions = (uint32_t)div_round_up(export->npages, export->region_pages);
	return 0;
}

/* ---- regions --------------------------------------------------------------------------------- */

static int new_file(unsigned nports, struct region_file **out)
{
	struct region_file *file = calloc(1, sizeof(*file));

	*out = file;
	if (!file)
		return -ENOMEM;
	file->fd = file->rofd = -1;
	file->registered = calloc(nports + 1, sizeof(struct region *));
	return file->registered ? 0 : -ENOMEM;
}

int export_plan_files(
	const struct memdir *dir, unsigned nports, atomic_bool *lost, struct export *export)
{
	uint64_t left = export->npages * PAGE_BYTES;

	export->regions = calloc(export->nregions, sizeof(*export->regions));
	export->bases = calloc(export->nregions + export->nsurplus, sizeof(*export->bases));
	export->used = calloc(export->nregions, sizeof(*export->used));
	if (!export->regions || !export->bases || !export->used)
		return -ENOMEM;
	export->holed = export->nregions;
	for (uint32_t i = 0; i < export->nregions; i++) {
		uint32_t number = export->first + i;
		struct region_file *file;
		int err = new_file(nports, &export->regions[i]);

		if (err)
			return err;
		file = export->regions[i];
		exports_region_path(file->path, sizeof(file->path), dir, export->name, number);
		file->len = min_u64(left, export->region_pages * PAGE_BYTES);
		file->export_lost = lost;
		left -= file->len;
		export->used[i] = region_bytes(dir, export->name, number) > 0;
		if (export->used[i] && export->holed == export->nregions &&
			region_has_holes(file->path))
			export->holed = i;
	}
	return 0;
}

/* Files behind the last region, as long as each begins where the one before ends. */
static int plan_surplus(const struct memdir *dir, struct export *export)
{
	uint64_t whole = export->region_pages * PAGE_BYTES, bytes = whole;
	uint32_t i, n = 0;

	if (export->npages % export->region_pages)
		return 0;
	while (region_bytes(dir, export->name, export->nregions + n))
		n++;
	export->surplus = calloc(n + 1, sizeof(*export->surplus));
	if (!export->surplus)
		return -ENOMEM;
	for (i = 0; i < n && bytes == whole; i++) {
		struct region_file *file = &export->surplus[i];

		bytes = region_bytes(dir, export->name, export->nregions + i);
		if (bytes > whole)
			break;
		exports_region_path(
			file->path, sizeof(file->path), dir, export->name, export->nregions + i);
		file->len = bytes;
		file->export_lost = &export->lost;
		file->fd = file->rofd = -1;
	}
	export->nsurplus = i;
	return 0;
}

static int plan_parts(const struct memdir *dir, unsigned nports, struct export *export)
{
	int err = plan_surplus(dir, export);

	return err ? err : export_plan_files(dir, nports, &export->lost, export);
}

int export_plan(const struct server_config *config, const struct memdir *dir,
	const struct export_config *ec, unsigned nports, struct export **out)
{
	struct export *export = calloc(1, sizeof(*export));
	int err;

	*out = NULL;
	if (!export)
		return -ENOMEM;
	err = plan_shape(config, dir, ec, export);
	if (!err)
		err = plan_parts(dir, nports, export);
	if (err)
		export_delete(export);
	else
		*out = export;
	return err;
}

int exports_reserve(struct exports *exports, unsigned n)
{
	struct export **v;

	if (exports->n + n <= exports->room)
		return 0;
	v = reallocarray(exports->v, exports->n + n, sizeof(struct export *));
	if (!v)
		return -ENOMEM;
	exports->v = v;
	exports->room = exports->n + n;
	return 0;
}

int exports_add(struct exports *exports, struct export *export)
{
	int err = exports_reserve(exports, 1);

	if (err)
		return err;
	export->index = exports->n;
	exports_append(exports, export);
	return 0;
}

void exports_append(struct exports *exports, struct export *export)
{
	exports->v[exports->n++] = export;
}

void exports_take(struct exports *exports, const struct export *export)
{
	unsigned n = 0;

	for (unsigned i = 0; i < exports->n; i++)
		if (exports->v[i] != export)
			exports->v[n++] = exports->v[i];
	exports->n = n;
}

static bool has_index(const struct exports *exports, const struct export *but, unsigned index)
{
	for (unsigned i = 0; i < exports->n && exports->v[i] != but; i++)
		if (exports->v[i]->index == index)
			return true;
	return false;
}

void exports_set_index(
	struct export *export, const struct exports *served, const struct exports *new)
{
	export->index = 0;
	while (has_index(served, export, export->index) || has_index(new, export, export->index))
		export->index++;
}

void export_set_file(struct export *export, const char *file)
{
	char *copy = file ? strdup(file) : NULL;

	if (file && !copy)
		return;
	free(export->file);
	export->file = copy;
}

/* Bytes that allocating the regions will take. */
static uint64_t export_bytes_missing(const struct export *export)
{
	uint64_t missing = 0;

	for (uint32_t i = 0; i < export->nregions; i++) {
		const struct region_file *file = export->regions[i];
		struct stat st = {0};
		uint64_t have = 0;

		if (stat(file->path, &st) == 0)
			have = (uint64_t)st.st_blocks * 512;
		missing += file->len - min_u64(have, file->len);
	}
	return missing;
}

static uint64_t bytes_missing(const struct exports *exports)
{
	uint64_t missing = 0;

	for (unsigned i = 0; i < exports->n; i++)
		missing += export_bytes_missing(exports->v[i]);
	return missing;
}

/* Exports that can't be are left out. */
static int plan_all(
	struct exports *exports, const struct server_config *config, const struct memdir *dir)
{
	int first = 0;

	for (size_t i = 0; i < config->exports.n; i++) {
		struct export *export;
		int err = export_plan(config, dir, server_config_export(config, i),
			(unsigned)config->listen.n, &export);

		if (!err)
			err = exports_add(exports, export);
		if (!first)
			first = err;
		if (err == -ENOMEM)
			return err;
	}
	return first;
}

static int map_surplus(struct export *export)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < export->nsurplus; i++) {
		err = region_file_map(&export->surplus[i]);
		export->bases[export->nregions + i] = export->surplus[i].addr;
	}
	return err;
}

static void close_surplus(struct export *export)
{
	for (uint32_t i = 0; i < export->nsurplus; i++)
		region_file_close(&export->surplus[i]);
	export->nsurplus = 0;
}

/* When a node is full, the kernel kills processes for memory that is bound to it. */
static int check_node(const struct server_config *config, uint64_t missing)
{
	char want[32], have[32];
	uint64_t available;

	if (!config->numa.only)
		return 0;
	available = numa_node_available(config->numa.node);
	if (missing <= available)
		return 0;
	size_format(missing, want, sizeof(want));
	size_format(available, have, sizeof(have));
	log_error("the exports need %s on NUMA node %d, which has %s available: make them smaller, "
		  "or leave numa_node out",
		want, config->numa.node, have);
	return -ENOMEM;
}

/* The store never shrinks. */
static uint64_t store_bytes_missing(const struct server_config *config, const struct memdir *dir)
{
	uint64_t bytes = server_config_store_bytes(config), have = 0;
	char path[1300];
	struct stat st;

	snprintf(path, sizeof(path), "%s/store.mdb", dir->store);
	if (stat(path, &st) == 0) {
		bytes = max_u64(bytes, (uint64_t)st.st_size);
		have = (uint64_t)st.st_blocks * 512;
	}
	return bytes - min_u64(have, bytes);
}

/* The store is made last. Without this check, a start without room for it would fill the regions in
 * vain. */
static int check_store_room(
	const struct server_config *config, const struct memdir *dir, uint64_t regions)
{
	uint64_t bytes = store_bytes_missing(config, dir);
	char what[1280];

	if (!bytes)
		return 0;
	snprintf(what, sizeof(what), "the store in %s%s", dir->store,
		regions ? ", beside the exports" : "");
	return memory_room_check(dir->store, bytes, dir->regions, regions, what);
}

/* An administrator makes room once, for all. */
static void describe_memory(
	const struct exports *exports, uint64_t regions, uint64_t store, char *buf, size_t len)
{
	char metadata[32], all[32];

	size_format(store, metadata, sizeof(metadata));
	size_format(regions + store, all, sizeof(all));
	snprintf(buf, len, "the memory of %u export%s", exports->n, exports->n == 1 ? "" : "s");
	if (store)
		snprintf(buf + strlen(buf), len - strlen(buf), " (and %s for metadata, %s in all)",
			metadata, all);
}

static int check_room(
	const struct exports *exports, const struct server_config *config, const struct memdir *dir)
{
	uint64_t missing = bytes_missing(exports);
	/* Reserved huge pages do not count as free memory. */
	bool huge = dir->regions_block != PAGE_BYTES;
	bool beside = !huge && memory_room_is_one(dir->regions, dir->store);
	char what[160];
	int err;

	describe_memory(exports, missing, beside ? store_bytes_missing(config, dir) : 0, what,
		sizeof(what));
	err = memory_room_check(dir->regions, missing, NULL, 0, what);
	if (!err && !huge)
		err = check_node(config, missing);
	return err ? err : check_store_room(config, dir, huge ? 0 : missing);
}

int exports_plan(const struct server_config *config, const struct memdir *dir, struct exports **out)
{
	struct exports *exports = calloc(1, sizeof(*exports));
	int err, room;

	*out = exports;
	if (!exports)
		return -ENOMEM;
	err = plan_all(exports, config, dir);
	if (err == -ENOMEM)
		return err;
	room = check_room(exports, config, dir);
	return err ? err : room;
}

static int map_parts(struct export *export)
{
	for (uint32_t i = 0; i < export->nregions; i++)
		export->bases[i] = export->regions[i]->addr;
	return map_surplus(export);
}

/* Files of all exports at once, so that all workers have something to do. */
static int prepare_all(
	const struct exports *exports, const struct server_config *config, const struct memdir *dir)
{
	/* hugetlbfs has only huge pages. */
	bool small = dir->regions_block == PAGE_BYTES;
	uint32_t n;
	autofree struct region_file **files = exports_files(exports, &n);
	int err = files ? regions_prepare(files, n, small ? config->huge_pages : HUGE_PAGES_NEVER,
				  &config->numa)
			: -ENOMEM;

	for (unsigned i = 0; !err && i < exports->n; i++)
		err = map_parts(exports->v[i]);
	return err;
}

int export_prepare(
	struct export *export, const struct server_config *config, const struct memdir *dir)
{
	struct exports one = {&export, 1, 1};
	int err = check_room(&one, config, dir);

	return err ? err : prepare_all(&one, config, dir);
}

int exports_new(const struct server_config *config, const struct memdir *dir, struct exports **out)
{
	struct exports *exports;
	int err = exports_plan(config, dir, &exports);

	if (err)
		goto err_delete;
	err = prepare_all(exports, config, dir);
	if (err)
		goto err_discard;
	*out = exports;
	return 0;
err_discard:
	exports_discard_new(exports);
err_delete:
	exports_delete(exports);
	return err;
}

void export_delete(struct export *export)
{
	if (!export)
		return;
	for (uint32_t i = 0; export->regions && i < export->nregions && export->regions[i]; i++) {
		region_file_close(export->regions[i]);
		free(export->regions[i]);
	}
	close_surplus(export);
	free(export->surplus);
	free(export->regions);
	free(export->bases);
	free(export->used);
	free(export->file);
	free(export);
}

void exports_delete(struct exports *exports)
{
	if (!exports)
		return;
	for (unsigned i = 0; i < exports->n; i++)
		export_delete(exports->v[i]);
	free(exports->v);
	free(exports);
}

void export_discard_new(const struct export *export)
{
	for (uint32_t i = 0; i < export->nregions; i++)
		if (export->regions[i]->made)
			unlink(export->regions[i]->path);
}

void export_remove_files(const struct export *export)
{
	for (uint32_t i = 0; i < export->nregions; i++) {
		const char *path = export->regions[i]->path;

		if (unlink(path) != 0)
			log_error("can't remove %s: %s: remove it", path, errno_text(errno));
		CRASH_POINT("region.removed");
	}
}

void exports_discard_new(struct exports *exports)
{
	for (unsigned i = 0; i < exports->n; i++)
		export_discard_new(exports->v[i]);
}

struct region_file **exports_files(const struct exports *exports, uint32_t *nfiles)
{
	struct region_file **files = calloc(exports_nregions(exports) + 1, sizeof(*files));

	*nfiles = 0;
	for (unsigned i = 0; files && i < exports->n; i++)
		for (uint32_t j = 0; j < exports->v[i]->nregions; j++)
			files[(*nfiles)++] = exports->v[i]->regions[j];
	return files;
}

uint32_t exports_nregions(const struct exports *exports)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < exports->n; i++)
		n += exports->v[i]->nregions;
	return n;
}

/* ---- files without a region ------------------------------------------------------------------ */

/* Whether it is the name of a region file of that export, and which. */
static bool is_region(const char *name, const char *file, unsigned long *i)
{
	char known[EXPORT_NAME_MAX + 32];
	size_t len = strlen(name);

	if (strncmp(file, name, len) != 0 || file[len] != '.')
		return false;
	*i = strtoul(file + len + 1, NULL, 10);
	snprintf(known, sizeof(known), "%s.%04lu", name, *i);
	return strcmp(file, known) == 0;
}

static bool is_surplus(const struct export *export, const char *file)
{
	unsigned long i;

	return is_region(export->name, file, &i) && i >= export->nregions;
}

static int drop_file(const struct memdir *dir, const char *file)
{
	char path[1600];

	snprintf(path, sizeof(path), "%s/%s", dir->regions, file);
	if (unlink(path) != 0) {
		int err = -errno;

		log_error("can't remove %s: %s", path, errno_text(err));
		return err;
	}
	log_info("removed %s, which no export needs any more", path);
	CRASH_POINT("region.removed");
	return 0;
}

static int drop_files(const struct exports *exports, const struct memdir *dir, DIR *d)
{
	struct dirent *entry;
	int err = 0;

	while (!err && (entry = readdir(d)))
		for (unsigned i = 0; !err && i < exports->n; i++)
			if (is_surplus(exports->v[i], entry->d_name))
				err = drop_file(dir, entry->d_name);
	return err;
}

static int open_regions(const struct memdir *dir, DIR **out)
{
	int err;

	*out = opendir(dir->regions);
	if (*out)
		return 0;
	err = -errno;
	log_error("can't read %s: %s", dir->regions, errno_text(err));
	return err;
}

int exports_drop_surplus(struct exports *exports, const struct memdir *dir)
{
	DIR *d;
	int err = open_regions(dir, &d);

	if (err)
		return err;
	for (unsigned i = 0; i < exports->n; i++)
		close_surplus(exports->v[i]);
	err = drop_files(exports, dir, d);
	closedir(d);
	return err;
}

/* In any order: one that was killed in the middle of this may have left any of them. */
int exports_remove_files(const struct memdir *dir, const char *name, uint32_t first)
{
	struct dirent *entry;
	unsigned long i;
	DIR *d;
	int err = open_regions(dir, &d);

	if (err)
		return err;
	while (!err && (entry = readdir(d)))
		if (is_region(name, entry->d_name, &i) && i >= first)
			err = drop_file(dir, entry->d_name);
	closedir(d);
	return err;
}

struct export *exports_find(struct exports *exports, const struct rpc_str *name)
{
	for (unsigned i = 0; i < exports->n; i++)
		if (strlen(exports->v[i]->name) == name->len &&
			memcmp(exports->v[i]->name, name->s, name->len) == 0)
			return exports->v[i];
	return NULL;
}

void exports_names(const struct exports *exports, char *buf, size_t len)
{
	size_t at = 0;

	for (unsigned i = 0; i < exports->n && at < len; i++)
		at += (size_t)snprintf(
			buf + at, len - at, "%s%s", i ? ", " : "", exports->v[i]->name);
}
