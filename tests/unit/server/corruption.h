/* corruption.h - a store is corrupted through its own layer, with right sums. The check must name
 * the corruption by words that were chosen before.
 *
 * A corruption is a function that changes records, and the words that a line about it must have.
 * Each one starts from the store that keep_image() has kept. */
#ifndef RMEMFS_TESTS_CORRUPTION_H
#define RMEMFS_TESTS_CORRUPTION_H

#include "tests/unit/server/meta_fixture.h"

#include <fcntl.h>

#include "server/record/inode.h"

struct corruption {
	void (*inflict)(void);
	const char *words; /* N is any number */
};

/* ---- the store ------------------------------------------------------------------------------- */

static uint8_t *image;
static size_t image_len;

static inline void store_path(char path[128])
{
	snprintf(path, 128, "%s/store.mdb", fx.dir);
}

/* Stops the server. */
static inline void keep_image(void)
{
	char path[128];
	struct stat st;
	int fd;

	meta_close(fx.m);
	fx.m = NULL;
	store_path(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	image_len = (size_t)st.st_size;
	image = malloc(image_len);
	assert_int_equal(pread(fd, image, image_len, 0), (ssize_t)image_len);
	close(fd);
}

static inline void restore(void)
{
	char path[128];
	int fd;

	store_path(path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, image, image_len, 0), (ssize_t)image_len);
	close(fd);
}

/* ---- records --------------------------------------------------------------------------------- */

static inline uint64_t key_of(uint64_t ino)
{
	return inode_key(fx_volume(), ino);
}

static inline struct stored_inode load(uint64_t ino)
{
	struct stored_inode i;

	assert_int_equal(inode_load_any(fx_volume(), ino, &i), 0);
	return i;
}

static inline void save(struct stored_inode *i)
{
	assert_int_equal(inode_save(fx_volume(), i), 0);
}

static inline void put(
	enum store_table table, uint64_t hi, uint64_t lo, const void *data, size_t len)
{
	assert_int_equal(store_put(fx.m->store, table, STORE_KEY(hi, lo), data, len), 0);
}

static inline void del(enum store_table table, uint64_t hi, uint64_t lo)
{
	assert_int_equal(store_del(fx.m->store, table, STORE_KEY(hi, lo)), 0);
}

/* ---- checking -------------------------------------------------------------------------------- */

enum { LINES = 64 };

static char lines[LINES][256];
static unsigned nlines;

static inline void collect(const char *line, void *arg)
{
	if (nlines < LINES)
		snprintf(lines[nlines++], sizeof(lines[0]), "%s", line);
}

/* Checks the stopped server's store, with the fixture's pages. */
static inline void check_stored(void)
{
	const struct check_report report = {.problem = collect};
	uint64_t nproblems;
	struct meta *m;
	char why[256];

	nlines = 0;
	if (meta_inspect(fx.dir, &m, why, sizeof(why))) {
		collect(why, NULL);
		return;
	}
	for (unsigned i = 0; i < m->nvolumes; i++)
		memcpy(m->volumes[i]->bases, fx.bases,
			m->volumes[i]->space.nregions * sizeof(fx.bases[0]));
	assert_int_equal(meta_check(m, &report, &nproblems), 0);
	if (nproblems < LINES)
		assert_int_equal(nproblems, nlines);
	meta_close(m);
}

static inline bool begins_with(const char *line, const char *words)
{
	for (; *words; words++) {
		if (*words != 'N') {
			if (*line++ != *words)
				return false;
			continue;
		}
		if (*line < '0' || *line > '9')
			return false;
		while (*line >= '0' && *line <= '9')
			line++;
	}
	return true;
}

static inline bool is_named(const char *words)
{
	for (unsigned i = 0; i < nlines; i++)
		for (const char *at = lines[i]; *at; at++)
			if (begins_with(at, words))
				return true;
	return false;
}

static inline void inflict(const struct corruption *c)
{
	assert_int_equal(fx_open(), 0);
	assert_int_equal(store_begin(fx.m->store), 0);
	c->inflict();
	assert_int_equal(store_commit(fx.m->store), 0);
	meta_close(fx.m);
	fx.m = NULL;
}

static inline void assert_whole(void)
{
	check_stored();
	for (unsigned i = 0; i < nlines; i++)
		print_error("%s\n", lines[i]);
	assert_int_equal(nlines, 0);
}

static inline void assert_all_named(const struct corruption *corruptions, size_t ncorruptions)
{
	unsigned failed = 0;

	for (size_t n = 0; n < ncorruptions; n++) {
		inflict(&corruptions[n]);
		check_stored();
		if (!is_named(corruptions[n].words)) {
			failed++;
			print_error("not named: %s; but:\n", corruptions[n].words);
			for (unsigned i = 0; i < nlines; i++)
				print_error("\t%s\n", lines[i]);
		}
		restore();
		for (unsigned i = 0; i < fx.exports[0].nregions; i++)
			memset(fx.bases[i], 0, FX_REGION_PAGES * (size_t)PAGE_BYTES);
	}
	assert_int_equal(failed, 0);
}

#endif
