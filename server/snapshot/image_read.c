/* image_read.c - reads a snapshot's directory and checks its sums; see image.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/log.h"
#include "common/base/nodump.h"
#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "server/snapshot/image.h"
#include "server/snapshot/image_block.h"

/* One of the files of blocks. */
struct stream {
	int fd;
	uint64_t nblocks, nbytes; /* as the manifest says */
	uint64_t at;              /* blocks read */
	uint64_t items;           /* records or pages in them */
	uint8_t data[BLOCK_DATA_MAX];
};

struct image_reader {
	char *dir;
	int dirfd;
	uint64_t id;
	int64_t time;
	struct marker_facts facts;
	struct image_totals totals;
	struct stream streams[IMAGE_FILES];
	struct wire_in records; /* of the block that was read last */
	uint32_t nrecords;      /* left in that block */
};

static int damaged(const struct image_reader *r, enum image_file file, const struct image_why *why)
{
	return image_fail(why, -EBADMSG, "%s/%s is damaged: block %" PRIu64 " of %" PRIu64, r->dir,
		image_file_names[file], r->streams[file].at + 1, r->streams[file].nblocks);
}

/* 0: all bytes were read; or -errno. -EBADMSG: the file ends before. */
static int read_all(int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)buf + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		done += (size_t)n;
	}
	return 0;
}

/* ---- the manifest ---------------------------------------------------------------------------- */

static bool parse_hex(const char *text, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (sscanf(text + 2 * i, "%2hhx", &out[i]) != 1)
			return false;
	return text[2 * n] == '\0';
}

/* The manifest's last line is the sum of all before it, which is checked first. So any other error
 * was there when it was written. */
static bool sum_is_right(const char *text, size_t len)
{
	const char *last = text;
	char expected[32];

	for (const char *line = text; line && *line; line = strchr(line, '\n') + 1) {
		last = line;
		if (!strchr(line, '\n'))
			return false;
	}
	snprintf(expected, sizeof(expected), "sum %016" PRIx64 "\n",
		image_sum(text, (size_t)(last - text)));
	return strlen(text) == len && strcmp(last, expected) == 0;
}

static bool parse_manifest(struct image_reader *r, const char *text)
{
	char store[33], names[33];
	struct image_totals *t = &r->totals;
	int version = 0, n = 0;

	sscanf(text,
		"rmemfs-snapshot %d\nexport %63s\ntime %" SCNd64 "\nsnapshot %" SCNx64
		"\nstore %32s\nnames %32s\nexport_pages %" SCNu64 "\nregion_pages %" SCNu64
		"\nnext_inode %" SCNu64 "\nrecords %" SCNu64 " blocks %" SCNu64 " bytes %" SCNu64
		"\npages %" SCNu64 " blocks %" SCNu64 " bytes %" SCNu64 "\nsum %n",
		&version, r->facts.name, &r->time, &r->id, store, names, &r->facts.npages,
		&r->facts.region_pages, &r->facts.next_ino, &t->records, &t->record_blocks,
		&t->record_bytes, &t->pages, &t->page_blocks, &t->page_bytes, &n);
	if (!n || !r->facts.region_pages)
		return false;
	r->facts.hash.bits =
		version == IMAGE_VERSION_WIDE ? DIRENT_HASH_BITS_WIDE : DIRENT_HASH_BITS;
	return parse_hex(store, r->facts.store_id, sizeof(r->facts.store_id)) &&
	       parse_hex(names, r->facts.hash.key, sizeof(r->facts.hash.key));
}

static int read_manifest(struct image_reader *r, const struct image_why *why)
{
	char text[IMAGE_MANIFEST_MAX + 1] = "";
	autoclose int fd = openat(r->dirfd, IMAGE_MANIFEST, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int version;

	if (fd < 0 && errno == ENOENT)
		return image_fail(why, -EBADMSG,
			"%s is no complete snapshot: it has no manifest, which is written last",
			r->dir);
	n = fd < 0 ? -1 : read(fd, text, IMAGE_MANIFEST_MAX);
	if (n < 0)
		return image_fail(why, -errno, "can't read %s/%s: %s", r->dir, IMAGE_MANIFEST,
			errno_text(errno));
	if (sscanf(text, "rmemfs-snapshot %d\n", &version) == 1 && version != IMAGE_VERSION &&
		version != IMAGE_VERSION_WIDE && sum_is_right(text, (size_t)n))
		return image_fail(why, -EPROTONOSUPPORT,
			"%s was written in version %d of the format, this server reads %d and %d",
			r->dir, version, IMAGE_VERSION_WIDE, IMAGE_VERSION);
	if (!sum_is_right(text, (size_t)n) || !parse_manifest(r, text))
		return image_fail(why, -EBADMSG, "%s/%s is damaged", r->dir, IMAGE_MANIFEST);
	return 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_stream(struct image_reader *r, enum image_file file, uint64_t nblocks,
	uint64_t nbytes, const struct image_why *why)
{
	struct stream *s = &r->streams[file];
	const char *name = image_file_names[file];
	struct stat st;

	s->nblocks = nblocks;
	s->nbytes = nbytes;
	s->fd = openat(r->dirfd, name, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0 && errno == ENOENT)
		return image_fail(why, -EBADMSG, "%s/%s is missing", r->dir, name);
	if (s->fd < 0 || fstat(s->fd, &st) != 0)
		return image_fail(
			why, -errno, "can't open %s/%s: %s", r->dir, name, errno_text(errno));
	if ((uint64_t)st.st_size != nbytes)
		return image_fail(why, -EBADMSG,
			"%s/%s is damaged: it has %" PRIu64 " bytes, not %" PRIu64, r->dir, name,
			(uint64_t)st.st_size, nbytes);
	return 0;
}

int image_open(const char *dir, struct image_reader **out, const struct image_why *why)
{
	struct image_reader *r = nodump_zalloc(sizeof(*r));
	int err = 0;

	if (!r)
		return image_fail(why, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < IMAGE_FILES; i++)
		r->streams[i].fd = -1;
	r->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r->dir = strdup(dir);
	if (r->dirfd < 0)
		err = image_fail(why, -errno, "can't open %s: %s", dir, errno_text(errno));
	else if (!r->dir)
		err = image_fail(why, -ENOMEM, "out of memory");
	if (!err)
		err = read_manifest(r, why);
	if (!err)
		err = open_stream(
			r, IMAGE_RECORDS, r->totals.record_blocks, r->totals.record_bytes, why);
	if (!err)
		err = open_stream(r, IMAGE_PAGES, r->totals.page_blocks, r->totals.page_bytes, why);
	if (err) {
		image_close(r);
		return err;
	}
	*out = r;
	return 0;
}

void image_close(struct image_reader *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < IMAGE_FILES; i++)
		if (r->streams[i].fd >= 0)
			close(r->streams[i].fd);
	if (r->dirfd >= 0)
		close(r->dirfd);
	free(r->dir);
	nodump_free(r);
}

const struct marker_facts *image_facts(const struct image_reader *r)
{
	return &r->facts;
}

const struct image_totals *image_totals(const struct image_reader *r)
{
	return &r->totals;
}

int64_t image_time(const struct image_reader *r)
{
	return r->time;
}

int image_rewind(struct image_reader *r, const struct image_why *why)
{
	for (unsigned i = 0; i < IMAGE_FILES; i++) {
		r->streams[i].at = r->streams[i].items = 0;
		if (lseek(r->streams[i].fd, 0, SEEK_SET) != 0)
			return image_fail(why, -errno, "can't read %s/%s: %s", r->dir,
				image_file_names[i], errno_text(errno));
	}
	r->nrecords = 0;
	return 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* -ENOENT: that was the last block. */
static int next_block(
	struct image_reader *r, enum image_file file, struct block *b, const struct image_why *why)
{
	struct stream *s = &r->streams[file];
	uint64_t items = file == IMAGE_RECORDS ? r->totals.records : r->totals.pages;
	uint8_t header[BLOCK_HEADER_BYTES];
	int err;

	*b = (struct block){0};
	if (s->at == s->nblocks)
		return s->items == items ? -ENOENT : damaged(r, file, why);
	err = read_all(s->fd, header, sizeof(header));
	if (!err && !image_block_decode(b, header))
		err = -EBADMSG;
	if (!err)
		err = read_all(s->fd, s->data, b->len);
	if (!err && image_block_sum(b, s->data, file, s->at, r->id) != b->sum)
		err = -EBADMSG;
	if (err == -EBADMSG)
		return damaged(r, file, why);
	if (err)
		return image_fail(why, err, "can't read %s/%s: %s", r->dir, image_file_names[file],
			errno_text(err));
	s->at++;
	s->items += b->count;
	return 0;
}

static int next_records(struct image_reader *r, const struct image_why *why)
{
	struct block b;
	int err = next_block(r, IMAGE_RECORDS, &b, why);

	if (err)
		return err;
	r->nrecords = b.count;
	wire_in_init(&r->records, r->streams[IMAGE_RECORDS].data, b.len);
	return 0;
}

int image_next_record(
	struct image_reader *r, struct marker_record *rec, const struct image_why *why)
{
	int err = r->nrecords ? 0 : next_records(r, why);

	if (err)
		return err;
	rec->table = wire_get_u8(&r->records);
	rec->ino = wire_get_u64(&r->records);
	rec->lo = wire_get_u64(&r->records);
	rec->len = wire_get_u32(&r->records);
	rec->data = wire_get_ref(&r->records, rec->len);
	if (r->records.truncated)
		return damaged(r, IMAGE_RECORDS, why);
	r->nrecords--;
	return 0;
}

int image_next_pages(struct image_reader *r, uint64_t *first, uint32_t *npages, const void **data,
	const struct image_why *why)
{
	struct block b;
	int err = next_block(r, IMAGE_PAGES, &b, why);

	if (err)
		return err;
	if (b.len != b.count * (uint64_t)PAGE_BYTES ||
		!range_within(b.first, b.count, r->facts.npages))
		return damaged(r, IMAGE_PAGES, why);
	*first = b.first;
	*npages = b.count;
	*data = r->streams[IMAGE_PAGES].data;
	return 0;
}
