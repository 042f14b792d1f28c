/* check_dir.c - see check_dir.h. */
#include "server/check/check_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base/cut_guard.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/check/check.h"
#include "server/memory/exports.h"
#include "server/memory/memdir.h"
#include "server/meta/meta_internal.h"

/* ---- output ---------------------------------------------------------------------------------- */

struct output {
	bool terminal; /* standard error is a terminal, which shows a line of progress */
	uint64_t nproblems;
	struct list mapped; /* struct mapped_region */
};

static void clear_progress(const struct output *out)
{
	if (out->terminal)
		fputs("\r\033[K", stderr);
}

static void print_problem(const char *line, void *arg)
{
	struct output *out = arg;

	clear_progress(out);
	puts(line);
	out->nproblems++;
}

static void print_progress(const char *what, void *arg)
{
	clear_progress(arg);
	fprintf(stderr, "checking %s ", what);
}

/* ---- regions --------------------------------------------------------------------------------- */

static uint64_t region_bytes(const struct volume *v, uint32_t i)
{
	return (uint64_t)space_region_pages(&v->space, i) * PAGE_BYTES;
}

/* Clients of the server that has stopped may still have the file open, and cut it. */
struct mapped_region {
	struct list link;
	struct cut_guard guard;
	char path[1400];
};

static int check_length(const struct volume *v, uint32_t i, const struct mapped_region *region,
	const struct stat *st, char *why, size_t whylen)
{
	uint64_t have = (uint64_t)st->st_size, blocks = (uint64_t)st->st_blocks * 512;

	if (have != region_bytes(v, i))
		snprintf(why, whylen,
			"export %s: region %s has %" PRIu64 " bytes, and should have %" PRIu64,
			v->name, region->path, have, region_bytes(v, i));
	else if (blocks < have)
		snprintf(why, whylen,
			"export %s: region %s has holes: %" PRIu64 " of %" PRIu64
			" bytes are there",
			v->name, region->path, blocks, have);
	else
		return 0;
	return -EBADMSG;
}

/* Maps the region's file, or says in why what is wrong with it. */
static int map_region(
	struct volume *v, uint32_t i, struct mapped_region *region, char *why, size_t whylen)
{
	autoclose int fd = open(region->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *addr;
	int err;

	if (fd < 0 || fstat(fd, &st) != 0) {
		snprintf(why, whylen, "export %s: region %s: %s", v->name, region->path,
			errno_text(errno));
		return -errno;
	}
	err = check_length(v, i, region, &st, why, whylen);
	if (err)
		return err;
	addr = mmap(NULL, region_bytes(v, i), PROT_READ, MAP_SHARED, fd, 0);
	err = addr == MAP_FAILED
		      ? -errno
		      : cut_guard_add(&region->guard, fd, addr, region_bytes(v, i), NULL);
	if (err) {
		snprintf(why, whylen, "export %s: region %s can't be mapped: %s", v->name,
			region->path, errno_text(err));
		return err;
	}
	v->bases[i] = addr;
	return 0;
}

static void map_one(const struct memdir *dir, struct volume *v, uint32_t i, struct output *out)
{
	struct mapped_region *region = calloc(1, sizeof(*region));
	char why[1600] = "there is no memory to map the regions";

	if (region)
		exports_region_path(region->path, sizeof(region->path), dir, v->name, i);
	if (!region || map_region(v, i, region, why, sizeof(why))) {
		print_problem(why, out);
		free(region);
	} else {
		list_add_tail(&out->mapped, &region->link);
	}
}

static void map_regions(const struct memdir *dir, struct meta *m, struct output *out)
{
	list_init(&out->mapped);
	for (unsigned n = 0; n < m->nvolumes; n++)
		for (uint32_t i = 0; i < m->volumes[n]->space.nregions; i++)
			map_one(dir, m->volumes[n], i, out);
}

static void unmap_regions(struct output *out)
{
	for (struct list *pos; (pos = list_pop(&out->mapped));) {
		struct mapped_region *region = list_entry(pos, struct mapped_region, link);
		void *addr = region->guard.addr;
		char why[1600];

		if (cut_guard_is_struck(&region->guard)) {
			snprintf(why, sizeof(why), "region %s was cut during the check",
				region->path);
			print_problem(why, out);
		}
		cut_guard_remove(&region->guard);
		munmap(addr, region->guard.len);
		free(region);
	}
}

/* ---- the parts ------------------------------------------------------------------------------- */

/* The store is open. */
static int check_meta(const struct memdir *dir, struct meta *m, struct output *out)
{
	const struct check_report report = {
		.problem = print_problem,
		.progress = out->terminal ? print_progress : NULL,
		.arg = out,
	};
	uint64_t nproblems;
	char why[1600];
	int err;

	if (memdir_check_store_id(dir, meta_store_id(m), META_STORE_ID_BYTES, why, sizeof(why)))
		print_problem(why, out);
	map_regions(dir, m, out);
	err = meta_check(m, &report, &nproblems);
	unmap_regions(out);
	return err;
}

static void tell_sums(const struct meta *m, const struct memdir *dir)
{
	uint64_t npages = 0, ninodes = 0;

	for (unsigned i = 0; i < m->nvolumes; i++) {
		npages += m->volumes[i]->space.npages;
		ninodes += m->volumes[i]->now.inodes;
	}
	printf("%s: clean: %u export%s, %" PRIu64 " inodes, %" PRIu64 " pages\n", dir->path,
		m->nvolumes, m->nvolumes == 1 ? "" : "s", ninodes, npages);
}

/* A first start that was killed has left nothing that could be wrong. */
static int tell_empty(const struct memdir *dir, struct output *out)
{
	if (!memdir_has_store_id(dir)) {
		if (!out->nproblems)
			printf("%s: clean: nothing was stored yet\n", dir->path);
		return 0;
	}
	print_problem("the store is missing or empty, and the regions belong to one", out);
	return 0;
}

static int check_store(const struct memdir *dir, struct output *out)
{
	struct meta *m;
	char why[512];
	int err;

	if (out->terminal)
		print_progress("the store's file", out);
	err = meta_inspect(dir->store, &m, why, sizeof(why));
	if (err == -ENOENT)
		return tell_empty(dir, out);
	if (err == -EBADMSG) {
		print_problem(why, out);
		return 0;
	}
	if (err) {
		clear_progress(out);
		log_error("%s", why[0] ? why : errno_text(err));
		return err;
	}
	err = check_meta(dir, m, out);
	clear_progress(out);
	if (err)
		log_error("%s can't be checked to its end: %s", dir->path, errno_text(err));
	else if (!out->nproblems)
		tell_sums(m, dir);
	meta_close(m);
	return err;
}

enum check_result check_directory(const char *path)
{
	struct output out = {.terminal = isatty(STDERR_FILENO)};
	struct memdir dir = {.lock_fd = -1};
	char why[1600];
	int err;

	if (memdir_inspect(path, &dir))
		return CHECK_IMPOSSIBLE;
	if (memdir_check_boot(&dir, why, sizeof(why)))
		print_problem(why, &out);
	err = check_store(&dir, &out);
	if (out.nproblems)
		printf("%s: %" PRIu64 " problem%s\n", dir.path, out.nproblems,
			out.nproblems == 1 ? "" : "s");
	close(dir.lock_fd);
	if (fflush(stdout) != 0 || err)
		return CHECK_IMPOSSIBLE;
	return out.nproblems ? CHECK_PROBLEMS : CHECK_CLEAN;
}
