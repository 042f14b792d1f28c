/* exports.c - from configured names and sizes to mapped regions. */
#include "server/exports.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/util.h"

/* ---- what is there already ------------------------------------------------------------------- */

void exports_region_path(
	char *buf, size_t len, const struct memdir *dir, const char *name, uint32_t i)
{
	snprintf(buf, len, "%s/%s.%04u", dir->regions, name, i);
}

/* Bytes of one region file; 0: not there, or not given its length before a start was killed. */
static uint64_t region_bytes(const struct memdir *dir, const char *name, uint32_t i)
{
	char path[1400];
	struct stat st;

	exports_region_path(path, sizeof(path), dir, name, i);
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Whether the regions that are there are a beginning of what is planned; *sum: their bytes.
 * *misfit: the first one that is not. */
static bool existing_fit(const struct memdir *dir, const struct export_config *ec, uint64_t planned,
	uint64_t *sum, uint32_t *misfit)
{
	bool fit = true;
	uint64_t bytes;

	*sum = 0;
	for (uint32_t i = 0; (bytes = region_bytes(dir, ec->name, i)); i++) {
		bool fits = *sum < ec->size && bytes == min_u64(planned, ec->size - *sum);

		if (fit && !fits)
			*misfit = i;
		fit = fit && fits;
		*sum += bytes;
	}
	return fit;
}

static int refuse_size(
	const struct memdir *dir, const struct export_config *config, uint64_t sum, uint32_t misfit)
{
	char path[1400], have[32], want[32];

	exports_region_path(path, sizeof(path), dir, config->name, misfit);
	size_format(sum, have, sizeof(have));
	size_format(config->size, want, sizeof(want));
	log_error(
		"export '%s' exists with %s and is configured with %s: its size can't be changed but "
		"from whole regions to more of them; if it was not, %s has lost or gained bytes",
		config->name, have, want, path);
	return -EINVAL;
}

/* The regions of an export keep the size that they were made with, whatever region_size says now.
 * A start that was killed may have left fewer than all; then the rest is made. */
static int plan_export(const struct server_config *config, const struct memdir *dir,
	const struct export_config *ec, struct export *export)
{
	uint64_t first = region_bytes(dir, ec->name, 0), planned = config->region_size, sum;
	uint32_t misfit;

	planned = min_u64(div_round_up(planned, dir->regions_block) * dir->regions_block, ec->size);
	if (first)
		planned = first;
	if (!existing_fit(dir, ec, planned, &sum, &misfit))
		return refuse_size(dir, ec, sum, misfit);
	if (ec->size % dir->regions_block) {
		log_error("export '%s': its size is not a whole number of huge pages (%llu bytes)",
			ec->name, (unsigned long long)dir->regions_block);
		return -EINVAL;
	}
	snprintf(export->name, sizeof(export->name), "%s", ec->name);
	export->config = ec;
	export->npages = ec->size / PAGE_BYTES;
	export->region_pages = planned / PAGE_BYTES;
	export->nregions = (uint32_t)div_round_up(export->npages, export->region_pages);
	return 0;
}

/* ---- made ------------------------------------------------------------------------------------ */

static void plan_regions(
	struct exports *exports, const struct memdir *dir, const struct export *export)
{
	uint64_t left = export->npages * PAGE_BYTES;

	for (uint32_t i = 0; i < export->nregions; i++) {
		struct region_file *file = &exports->regions[export->first_region + i];

		exports_region_path(file->path, sizeof(file->path), dir, export->name, i);
		file->len = min_u64(left, export->region_pages * PAGE_BYTES);
		file->fd = file->rofd = -1;
		left -= file->len;
	}
}

/* Bytes that allocating all regions will take. */
static uint64_t bytes_missing(const struct exports *exports)
{
	uint64_t missing = 0;

	for (uint32_t i = 0; i < exports->nregions; i++) {
		const struct region_file *file = &exports->regions[i];
		struct stat st = {0};
		uint64_t have = 0;

		if (stat(file->path, &st) == 0)
			have = (uint64_t)st.st_blocks * 512;
		missing += file->len - min_u64(have, file->len);
	}
	return missing;
}

static int plan_all(
	struct exports *exports, const struct server_config *config, const struct memdir *dir)
{
	exports->v = calloc(config->exports.n, sizeof(*exports->v));
	if (!exports->v)
		return -ENOMEM;
	for (; exports->n < config->exports.n; exports->n++) {
		struct export *export = &exports->v[exports->n];
		int err =
			plan_export(config, dir, server_config_export(config, exports->n), export);

		if (err)
			return err;
		export->index = exports->n;
		export->first_region = exports->nregions;
		exports->nregions += export->nregions;
		export->bases = calloc(export->nregions, sizeof(*export->bases));
		if (!export->bases)
			return -ENOMEM;
	}
	exports->regions = calloc(exports->nregions, sizeof(*exports->regions));
	if (!exports->regions)
		return -ENOMEM;
	for (unsigned i = 0; i < exports->n; i++)
		plan_regions(exports, dir, &exports->v[i]);
	return 0;
}

int exports_new(const struct server_config *config, const struct memdir *dir, struct exports **out)
{
	struct exports *exports = calloc(1, sizeof(*exports));
	char what[64];
	int err;

	if (!exports)
		return -ENOMEM;
	err = plan_all(exports, config, dir);
	if (err)
		goto err_delete;
	snprintf(what, sizeof(what), "the memory of %u export%s", exports->n,
		exports->n == 1 ? "" : "s");
	err = memdir_check_room(dir->regions, bytes_missing(exports), what);
	if (err)
		goto err_delete;
	err = regions_prepare(exports->regions, exports->nregions, config->huge_pages);
	if (err)
		goto err_discard;
	for (unsigned i = 0; i < exports->n; i++)
		for (uint32_t j = 0; j < exports->v[i].nregions; j++)
			exports->v[i].bases[j] =
				exports->regions[exports->v[i].first_region + j].addr;
	*out = exports;
	return 0;
err_discard:
	exports_discard_new(exports);
err_delete:
	exports_delete(exports);
	return err;
}

void exports_delete(struct exports *exports)
{
	if (!exports)
		return;
	for (uint32_t i = 0; exports->regions && i < exports->nregions; i++)
		region_file_close(&exports->regions[i]);
	for (unsigned i = 0; i < exports->n; i++)
		free(exports->v[i].bases);
	free(exports->regions);
	free(exports->v);
	free(exports);
}

void exports_discard_new(struct exports *exports)
{
	for (uint32_t i = 0; i < exports->nregions; i++)
		if (exports->regions[i].made)
			unlink(exports->regions[i].path);
}

const char *exports_made(
	const struct exports *exports, const struct export *export, uint32_t *index)
{
	for (*index = 0; *index < export->nregions; ++*index)
		if (exports->regions[export->first_region + *index].made)
			return exports->regions[export->first_region + *index].path;
	return NULL;
}

struct export *exports_find(struct exports *exports, const struct rpc_str *name)
{
	for (unsigned i = 0; i < exports->n; i++)
		if (strlen(exports->v[i].name) == name->len &&
			memcmp(exports->v[i].name, name->s, name->len) == 0)
			return &exports->v[i];
	return NULL;
}

void exports_names(const struct exports *exports, char *buf, size_t len)
{
	size_t at = 0;

	for (unsigned i = 0; i < exports->n && at < len; i++)
		at += (size_t)snprintf(
			buf + at, len - at, "%s%s", i ? ", " : "", exports->v[i].name);
}
