/* image_write.c - makes a snapshot's directory; see image.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "common/base/clock.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/nodump.h"
#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "server/snapshot/image.h"
#include "server/snapshot/image_block.h"

enum { FLUSH_BYTES = 64 << 20 };

struct image_writer {
	char *dir;
	bool made; /* this writer made the directory */
	bool published;
	int dirfd;
	int fds[IMAGE_FILES];
	uint64_t id;
	uint64_t nblocks[IMAGE_FILES], nbytes[IMAGE_FILES];
	uint64_t nflushed[IMAGE_FILES]; /* bytes whose writing to the disk was begun */
	struct image_totals totals;
	/* The block of records that is being filled. */
	uint32_t nrecords;
	struct wire_out block;
	uint8_t data[BLOCK_DATA_MAX];
};

static int fail_write(
	const struct image_writer *w, const char *name, int err, const struct image_why *why)
{
	char path[1280];

	snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	return image_fail_writing(why, err, "write", path, w->dir);
}

/* ---- making ---------------------------------------------------------------------------------- */

static int check_empty(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;
	int err = 0;

	if (!d) {
		err = -errno;
		if (copy >= 0)
			close(copy);
		return err;
	}
	while (!err && (entry = readdir(d)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			err = -ENOTEMPTY;
	closedir(d);
	return err;
}

/* Below a directory that everybody can write to, another user may have made it before us. */
static int image_write_check_owner(const struct image_writer *w, const struct image_why *why)
{
	struct stat st;

	if (fstat(w->dirfd, &st) != 0)
		return image_fail(why, -errno, "%s: %s", w->dir, errno_text(errno));
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return image_fail(why, -EPERM,
			"%s belongs to user %u, not to the server's (%u): name a new directory",
			w->dir, st.st_uid, geteuid());
	if (st.st_mode & S_IWOTH)
		return image_fail(
			why, -EPERM, "everybody can write to %s: name a new directory", w->dir);
	return 0;
}

/* The directory's own name is in the one above it. Syncs that before anything is written: a
 * snapshot that can't be kept is not begun. */
static int sync_above(const struct image_writer *w, const struct image_why *why)
{
	autoclose int above = openat(w->dirfd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (above >= 0 && fsync(above) == 0)
		return 0;
	return image_fail(why, -errno, "can't sync the directory that %s is in: %s", w->dir,
		errno_text(errno));
}

static int make_directory(struct image_writer *w, const struct image_why *why)
{
	autofree char *above = NULL;
	int err;

	w->made = mkdir(w->dir, 0700) == 0;
	if (w->made || errno == EEXIST)
		return 0;
	err = -errno;
	above = strdup(w->dir);
	return image_fail_writing(why, err, "make", w->dir, above ? dirname(above) : w->dir);
}

static int open_directory(struct image_writer *w, const struct image_why *why)
{
	int err = make_directory(w, why);

	if (err)
		return err;
	w->dirfd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->dirfd < 0)
		return image_fail(why, -errno, "can't open %s: %s", w->dir, errno_text(errno));
	err = image_write_check_owner(w, why);
	if (err)
		return err;
	err = check_empty(w->dirfd);
	if (err)
		return image_fail(why, err, "%s: %s", w->dir,
			err == -ENOTEMPTY ? "it is not empty: name a new directory"
					  : errno_text(err));
	return sync_above(w, why);
}

static int open_files(struct image_writer *w, const struct image_why *why)
{
	for (unsigned i = 0; i < IMAGE_FILES; i++) {
		w->fds[i] = openat(w->dirfd, image_file_names[i],
			O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (w->fds[i] < 0)
			return fail_write(w, image_file_names[i], -errno, why);
	}
	return 0;
}

int image_create(const char *dir, struct image_writer **out, const struct image_why *why)
{
	struct image_writer *w = nodump_zalloc(sizeof(*w));
	int err;

	if (!w)
		return image_fail(why, -ENOMEM, "out of memory");
	w->dirfd = -1;
	for (unsigned i = 0; i < IMAGE_FILES; i++)
		w->fds[i] = -1;
	wire_out_init(&w->block, w->data, sizeof(w->data));
	w->dir = strdup(dir);
	if (!w->dir || getrandom(&w->id, sizeof(w->id), 0) != sizeof(w->id))
		err = image_fail(why, -ENOMEM, "out of memory");
	else
		err = open_directory(w, why);
	if (!err)
		err = open_files(w, why);
	if (err) {
		image_writer_delete(w);
		return err;
	}
	*out = w;
	return 0;
}

/* Leaves the place for another attempt. Files that were there before are not ours. */
static void remove_files(struct image_writer *w)
{
	for (unsigned i = 0; i < IMAGE_FILES; i++)
		if (w->fds[i] >= 0)
			unlinkat(w->dirfd, image_file_names[i], 0);
	if (w->fds[0] >= 0) {
		unlinkat(w->dirfd, IMAGE_MANIFEST_NEW, 0);
		/* It may have got its name, but that is not on the disk. */
		unlinkat(w->dirfd, IMAGE_MANIFEST, 0);
	}
	if (w->made)
		rmdir(w->dir);
}

void image_writer_delete(struct image_writer *w)
{
	if (!w)
		return;
	if (!w->published && w->dirfd >= 0)
		remove_files(w);
	for (unsigned i = 0; i < IMAGE_FILES; i++)
		if (w->fds[i] >= 0)
			close(w->fds[i]);
	if (w->dirfd >= 0)
		close(w->dirfd);
	free(w->dir);
	nodump_free(w);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static int write_all(int fd, struct iovec *iov, int n)
{
	while (n) {
		ssize_t done = writev(fd, iov, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		for (; n && (size_t)done >= iov->iov_len; iov++, n--)
			done -= (ssize_t)iov->iov_len;
		if (n) {
			iov->iov_base = (char *)iov->iov_base + done;
			iov->iov_len -= (size_t)done;
		}
	}
	return 0;
}

/* The disk writes while more comes. So it is never far behind, the progress means something, and
 * the last fsync has little to do. */
static int image_write_flush(struct image_writer *w, enum image_file file)
{
	off_t done = (off_t)w->nflushed[file], more = (off_t)w->nbytes[file] - done;

	if (more < FLUSH_BYTES)
		return 0;
	w->nflushed[file] = w->nbytes[file];
	if (sync_file_range(w->fds[file], done, more, SYNC_FILE_RANGE_WRITE) != 0)
		return -errno;
	if (done && sync_file_range(w->fds[file], 0, done, SYNC_FILE_RANGE_WAIT_BEFORE) != 0)
		return -errno;
	return 0;
}

static int write_block(struct image_writer *w, enum image_file file, struct block *b,
	const void *data, const struct image_why *why)
{
	uint8_t header[BLOCK_HEADER_BYTES];
	struct iovec iov[2] = {{header, sizeof(header)}, {(void *)(uintptr_t)data, b->len}};
	int err;

	b->sum = image_block_sum(b, data, file, w->nblocks[file], w->id);
	image_block_encode(b, header);
	err = write_all(w->fds[file], iov, 2);
	w->nblocks[file]++;
	w->nbytes[file] += sizeof(header) + b->len;
	if (!err)
		err = image_write_flush(w, file);
	return err ? fail_write(w, image_file_names[file], err, why) : 0;
}

static int flush_records(struct image_writer *w, const struct image_why *why)
{
	struct block b = {.len = (uint32_t)wire_out_len(&w->block), .count = w->nrecords};

	if (!w->nrecords)
		return 0;
	w->nrecords = 0;
	wire_out_init(&w->block, w->data, sizeof(w->data));
	return write_block(w, IMAGE_RECORDS, &b, w->data, why);
}

int image_add_record(
	struct image_writer *w, const struct marker_record *rec, const struct image_why *why)
{
	if (wire_out_room(&w->block) < RECORD_HEADER_BYTES + rec->len) {
		int err = flush_records(w, why);

		if (err)
			return err;
	}
	wire_put_u8(&w->block, (uint8_t)rec->table);
	wire_put_u64(&w->block, rec->ino);
	wire_put_u64(&w->block, rec->lo);
	wire_put_u32(&w->block, (uint32_t)rec->len);
	wire_put(&w->block, rec->data, rec->len);
	w->nrecords++;
	w->totals.records++;
	return 0;
}

int image_add_pages(struct image_writer *w, uint64_t first, uint32_t npages, const void *data,
	const struct image_why *why)
{
	struct block b = {
		.len = npages * (uint32_t)PAGE_BYTES,
		.count = npages,
		.first = first,
	};

	w->totals.pages += npages;
	return write_block(w, IMAGE_PAGES, &b, data, why);
}

const struct image_totals *image_written(const struct image_writer *w)
{
	return &w->totals;
}

/* ---- the manifest ---------------------------------------------------------------------------- */

static void format_hex(const uint8_t *bytes, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static size_t format_manifest(
	const struct image_writer *w, const struct marker_facts *f, char text[IMAGE_MANIFEST_MAX])
{
	char store[2 * sizeof(f->store_id) + 1], hash[2 * sizeof(f->hash.key) + 1];
	bool wide = f->hash.bits == DIRENT_HASH_BITS_WIDE;
	int n;

	format_hex(f->store_id, sizeof(f->store_id), store);
	format_hex(f->hash.key, sizeof(f->hash.key), hash);
	n = snprintf(text, IMAGE_MANIFEST_MAX,
		"rmemfs-snapshot %d\n"
		"export %s\n"
		"time %" PRId64 "\n"
		"snapshot %016" PRIx64 "\n"
		"store %s\n"
		"names %s\n"
		"export_pages %" PRIu64 "\n"
		"region_pages %" PRIu64 "\n"
		"next_inode %" PRIu64 "\n"
		"records %" PRIu64 " blocks %" PRIu64 " bytes %" PRIu64 "\n"
		"pages %" PRIu64 " blocks %" PRIu64 " bytes %" PRIu64 "\n",
		wide ? IMAGE_VERSION_WIDE : IMAGE_VERSION, f->name, realtime_ns() / 1000000000,
		w->id, store, hash, f->npages, f->region_pages, f->next_ino, w->totals.records,
		w->nblocks[IMAGE_RECORDS], w->nbytes[IMAGE_RECORDS], w->totals.pages,
		w->nblocks[IMAGE_PAGES], w->nbytes[IMAGE_PAGES]);
	n += snprintf(text + n, (size_t)(IMAGE_MANIFEST_MAX - n), "sum %016" PRIx64 "\n",
		image_sum(text, (size_t)n));
	return (size_t)n;
}

static int write_manifest(
	const struct image_writer *w, const struct marker_facts *facts, const struct image_why *why)
{
	char text[IMAGE_MANIFEST_MAX];
	struct iovec iov = {text, format_manifest(w, facts, text)};
	autoclose int fd =
		openat(w->dirfd, IMAGE_MANIFEST_NEW, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int err = fd < 0 ? -errno : write_all(fd, &iov, 1);

	if (!err && fsync(fd) != 0)
		err = -errno;
	return err ? fail_write(w, IMAGE_MANIFEST, err, why) : 0;
}

int image_finish(
	struct image_writer *w, const struct marker_facts *facts, const struct image_why *why)
{
	int err = flush_records(w, why);

	for (unsigned i = 0; !err && i < IMAGE_FILES; i++)
		if (fsync(w->fds[i]) != 0)
			err = fail_write(w, image_file_names[i], -errno, why);
	if (!err && fsync(w->dirfd) != 0)
		err = fail_write(w, ".", -errno, why);
	return err ? err : write_manifest(w, facts, why);
}

int image_publish(struct image_writer *w, const struct image_why *why)
{
	int err = 0;

	if (renameat(w->dirfd, IMAGE_MANIFEST_NEW, w->dirfd, IMAGE_MANIFEST) != 0)
		err = -errno;
	CRASH_POINT("snapshot.renamed");
	if (!err && fsync(w->dirfd) != 0)
		err = -errno;
	w->published = !err;
	return err ? fail_write(w, IMAGE_MANIFEST, err, why) : 0;
}
