/* image.h - a snapshot's directory: written once, read to restore an export.
 *
 *     DIR/records     the export's records (marker.h)
 *     DIR/pages       the pages of its files
 *     DIR/manifest    describes these two; written last, and under this name only when all else is
 *                     on the disk: without it a directory is no snapshot
 *
 * Records and pages are files of blocks. Each block has a sum of itself, of its place and of the
 * snapshot it belongs to. The manifest has the number of blocks and bytes and a sum of its own. So
 * no byte of a snapshot can change, nor a file be cut or taken from another one, unnoticed.
 *
 * THREADS  One thread at a time.
 * ERRORS   0 or -errno with a line in why. Reading: -EBADMSG: it is damaged or incomplete;
 *          -EPROTONOSUPPORT: another version wrote it.
 */
#ifndef RMEMFS_SERVER_SNAPSHOT_IMAGE_H
#define RMEMFS_SERVER_SNAPSHOT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/snapshot/marker.h"

/* WIDE: names are hashed to DIRENT_HASH_BITS_WIDE; all else is the same. */
enum { IMAGE_VERSION = 2, IMAGE_VERSION_WIDE = 1 };

struct image_why {
	char *text;
	size_t len;
};

/* Fills in why and returns err. */
int image_fail(const struct image_why *why, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* "can't DOING PATH: the error's text". Under systemd a filesystem may be read-only for the unit
 * alone. Then the text also says how to let the server write below dir, an existing directory. */
int image_fail_writing(
	const struct image_why *why, int err, const char *doing, const char *path, const char *dir);

struct image_totals {
	uint64_t records, record_blocks, record_bytes;
	uint64_t pages, page_blocks, page_bytes;
};

/* ---- writing --------------------------------------------------------------------------------- */

struct image_writer;

/* dir must be empty or missing. A missing one is made, and its name is on the disk. -ENOTEMPTY: it
 * is not empty. -EPERM: others can change it. -EACCES: the directory above can't be read, which
 * syncing needs. */
int image_create(const char *dir, struct image_writer **out, const struct image_why *why);
int image_add_record(
	struct image_writer *w, const struct marker_record *rec, const struct image_why *why);
/* At most PROTECT_TAKE_PAGES pages. first: region * region_pages + page. */
int image_add_pages(struct image_writer *w, uint64_t first, uint32_t npages, const void *data,
	const struct image_why *why);
/* After this all of it is on the disk, but it is no snapshot yet. */
int image_finish(
	struct image_writer *w, const struct marker_facts *facts, const struct image_why *why);
/* After image_finish(): makes it a snapshot, which image_writer_delete() leaves alone. After an
 * error it is none, as before. */
int image_publish(struct image_writer *w, const struct image_why *why);
const struct image_totals *image_written(const struct image_writer *w);
/* Removes what was written, unless image_publish() has made it a snapshot. */
void image_writer_delete(struct image_writer *w);

/* ---- reading --------------------------------------------------------------------------------- */

struct image_reader;

/* Reads the manifest. */
int image_open(const char *dir, struct image_reader **out, const struct image_why *why);
void image_close(struct image_reader *r);
const struct marker_facts *image_facts(const struct image_reader *r);
const struct image_totals *image_totals(const struct image_reader *r);
/* When it was finished, in seconds of the server's clock. */
int64_t image_time(const struct image_reader *r);

/* The next record; the data are valid until the next call. -ENOENT: that was the last one. */
int image_next_record(
	struct image_reader *r, struct marker_record *rec, const struct image_why *why);
/* The next pages. first: region * region_pages + page, with the region_pages of the facts. */
int image_next_pages(struct image_reader *r, uint64_t *first, uint32_t *npages, const void **data,
	const struct image_why *why);
/* Starts again at the first record and page. */
int image_rewind(struct image_reader *r, const struct image_why *why);

#endif
