/* An export's marker, the directory that it is written to, and the export that is restored from
 * there. */
#include "tests/unit/server/xattr_fixture.h"
#include "tests/unit/server/failing_fsync.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>

#include "server/snapshot/image.h"
#include "server/snapshot/marker.h"
#include "server/space/protect.h"
#include "server/snapshot/restore.h"
#include "server/snapshot/snapshot_copy.h"

enum { ASIDE_BYTES = 1 << 20, TRIALS = 50 };

static char image_dir[128], why_text[512];
static const struct image_why why = {why_text, sizeof(why_text)};
static struct marker *marker;

/* ---- set up ---------------------------------------------------------------------------------- */

static void remove_image(void)
{
	static const char *const names[] = {"records", "pages", "manifest", "manifest.new"};
	char path[200];

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", image_dir, names[i]);
		unlink(path);
	}
	rmdir(image_dir);
}

static int set_up(void **state)
{
	fx_set_up(state);
	snprintf(image_dir, sizeof(image_dir), "%s.image", fx.dir);
	return 0;
}

static int tear_down(void **state)
{
	remove_image();
	return fx_tear_down(state);
}

static void write_pages(const struct extent *e, uint8_t byte)
{
	for (uint32_t i = 0; i < e->npages; i++)
		memset(fx_page(e, i), byte + (int)i, PAGE_BYTES);
}

static void mark(void)
{
	assert_int_equal(marker_new(fx.m, 0, ASIDE_BYTES, -1, &marker), 0);
}

static uint64_t linear(struct page_run run)
{
	return run.region * marker_facts(marker)->region_pages + run.page;
}

static void write_all(struct image_writer *w)
{
	static uint8_t buf[PROTECT_TAKE_PAGES * PAGE_BYTES];
	struct protect *pages = marker_pages(marker);
	struct marker_record rec;
	struct page_run run;
	int err;

	while (!(err = marker_next(marker, &rec)))
		assert_int_equal(image_add_record(w, &rec, &why), 0);
	assert_int_equal(err, -ENOENT);
	while (protect_take_aside(pages, buf, &run) || protect_take_next(pages, buf, &run))
		assert_int_equal(image_add_pages(w, linear(run), run.npages, buf, &why), 0);
}

static void write_image(void)
{
	struct image_writer *w;

	assert_int_equal(image_create(image_dir, &w, &why), 0);
	write_all(w);
	assert_int_equal(image_finish(w, marker_facts(marker), &why), 0);
	assert_int_equal(image_publish(w, &why), 0);
	image_writer_delete(w);
	marker_delete(marker);
}

/* Does what a power cut does: the store is new, and memory is empty. */
static void lose_memory(void)
{
	fx_check();
	meta_close(fx.m);
	fx_remove_store();
	assert_int_equal(mkdir(fx.dir, 0700), 0);
	for (unsigned i = 0; i < FX_REGIONS; i++)
		memset(fx.bases[i], 0, fx.exports[0].region_pages * PAGE_BYTES);
	assert_int_equal(fx_open(), 0);
}

static int restore(void)
{
	struct image_reader *r;
	int err = image_open(image_dir, &r, &why);

	if (err)
		return err;
	err = restore_check(fx.m, 0, r, NULL, &why);
	if (!err)
		err = restore_export(fx.m, 0, r, NULL, &why);
	image_close(r);
	if (!err)
		fx.ctx.session = fx_new_session();
	return err;
}

static void restored(void)
{
	lose_memory();
	assert_int_equal(restore(), 0);
	fx_check();
}

/* The pages of the file have the bytes `byte`, `byte` + 1 and so on. */
static void check_file(uint64_t ino, uint64_t fpage, uint32_t npages, uint8_t byte)
{
	struct wire_in in;
	struct extent e;
	uint32_t seen = 0;

	assert_int_equal(FX_RUN(.op = RPC_EXTENTS, .extents = {ino, fpage}), 0);
	in = rpc_tail_reader(&fx.rep.extents.tail);
	while (seen < npages && rpc_get_extent(&in, &e)) {
		assert_int_equal(e.fpage, fpage + seen);
		for (uint32_t i = 0; i < e.npages; i++, seen++)
			assert_int_equal(*fx_page(&e, i), (uint8_t)(byte + seen));
	}
	assert_int_equal(seen, npages);
}

/* ---- restoration ----------------------------------------------------------------------------- */

static void restore__names_attributes_and_bytes(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), file = fx_file(dir, "file");
	struct extent e = fx_fill(file, 3, 7);
	struct attr before;

	write_pages(&e, 40);
	assert_int_equal(fx_make(RPC_SYMLINK, dir, "link", 0777), 0);
	before = fx_attr(file);
	mark();
	write_image();
	restored();
	assert_int_equal(fx_lookup(ROOT_INO, "dir"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, dir);
	assert_int_equal(fx_lookup(dir, "link"), 0);
	assert_true(S_ISLNK(fx.rep.entry.attr.mode));
	assert_int_equal(fx_lookup(dir, "file"), 0);
	before.generation = fx.rep.entry.attr.generation;
	fx_assert_same(&fx.rep.entry.attr, &before);
	check_file(file, 3, 7, 40);
	assert_true(fx_file(ROOT_INO, "new") > file);
}

static void restore__many_extents(void **state)
{
	uint64_t ino = fx_fragmented("frag", 60);
	struct extent e = fx_fill(ino, 200, 30);

	write_pages(&e, 9);
	mark();
	write_image();
	restored();
	assert_int_equal(fx_attr(ino).npages, 90);
	check_file(ino, 200, 30, 9);
}

static void restore__regions_of_another_size(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "a");
	struct extent e = fx_fill(ino, 0, 900);

	write_pages(&e, 1);
	mark();
	write_image();
	fx_check();
	meta_close(fx.m);
	fx.m = NULL;
	fx_tear_down(NULL);
	fx_set_up_sized(1300, 700, (uint64_t)FX_STORE_MIB << 20);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, fx.ctx.session), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_settle();
	assert_int_equal(restore(), 0);
	fx_check();
	check_file(ino, 0, 900, 1);
}

/* ---- names with another hash ----------------------------------------------------------------- */

enum { NAMED = 400 };

static void make_named(uint64_t dir)
{
	char name[32];

	for (unsigned i = 0; i < NAMED; i++) {
		snprintf(name, sizeof(name), "name-%u", i);
		assert_int_equal(fx_make(RPC_MKNOD, dir, name, S_IFREG | 0644), 0);
	}
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "user.%u", i);
		assert_int_equal(fx_set(dir, name, name), 0);
	}
}

static void check_named(uint64_t dir)
{
	char name[32];

	for (unsigned i = 0; i < NAMED; i++) {
		snprintf(name, sizeof(name), "name-%u", i);
		assert_int_equal(fx_lookup(dir, name), 0);
	}
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "user.%u", i);
		fx_expect_value(dir, name, name, strlen(name));
	}
}

static bool image_begins_with(const char *line)
{
	char path[200], text[64] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/manifest", image_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strncmp(text, line, strlen(line)) == 0;
}

static void restore__keeps_the_hash_of_a_new_snapshot(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir");
	struct dirent_hash hash = fx.m->hash;

	make_named(dir);
	mark();
	write_image();
	assert_true(image_begins_with("rmemfs-snapshot 2\n"));
	restored();
	assert_true(dirent_same_hash(&hash, &fx.m->hash));
	check_named(dir);
}

static void restore__of_a_former_version_hashes_anew(void **state)
{
	struct dirent_hash hash;
	uint64_t dir;

	fx_make_wide();
	dir = fx_dir(ROOT_INO, "dir");
	make_named(dir);
	hash = fx.m->hash;
	mark();
	write_image();
	assert_true(image_begins_with("rmemfs-snapshot 1\n"));
	restored();
	assert_int_equal(fx.m->hash.bits, DIRENT_HASH_BITS);
	assert_memory_not_equal(fx.m->hash.key, hash.key, sizeof(hash.key));
	check_named(dir);
	hash = fx.m->hash;
	fx_reopen();
	assert_true(dirent_same_hash(&hash, &fx.m->hash));
	check_named(dir);
}

/* Adds a second export, with the last region, and a session at it. */
static void add_export(void)
{
	static struct meta_export exports[2];
	struct meta_session s = {
		.export_index = 1, .instance = 8, .nchannels = 16, .client = "test:/other"};

	exports[0] = fx.exports[0];
	exports[1] = (struct meta_export){.name = "other",
		.npages = 100,
		.nregions = 1,
		.region_pages = FX_REGION_PAGES,
		.bases = fx.bases + FX_REGIONS - 1};
	fx.config.exports = exports;
	fx.config.nexports = 2;
	fx_reopen();
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_new(fx.m, &s), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx.ctx.session = s.id;
	fx.ctx.export_index = 1;
}

/* Restores a snapshot of either kind beside names of either kind. */
static void restore_beside_names(bool from_wide, bool to_wide)
{
	uint64_t dir, other, session;

	if (from_wide)
		fx_make_wide();
	dir = fx_dir(ROOT_INO, "dir");
	make_named(dir);
	mark();
	write_image();
	lose_memory();
	if (to_wide)
		fx_make_wide();
	add_export();
	session = fx.ctx.session;
	other = fx_dir(ROOT_INO, "other");
	make_named(other);
	fx.ctx.export_index = 0;
	assert_int_equal(restore(), 0);
	fx_check();
	check_named(dir);
	fx.ctx.export_index = 1;
	fx.ctx.session = session;
	check_named(other);
	assert_int_equal(fx.m->hash.bits, to_wide ? DIRENT_HASH_BITS_WIDE : DIRENT_HASH_BITS);
}

static void restore__beside_names_of_another_hash(void **state)
{
	restore_beside_names(*(const char *)*state == 'w', ((const char *)*state)[1] == 'w');
}

/* ---- the moment of the marker ---------------------------------------------------------------- */

static void marker__later_changes_are_not_in_it(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "a");
	struct extent e = fx_fill(ino, 0, 20), more;

	write_pages(&e, 1);
	mark();
	assert_int_equal(fx_rename(ROOT_INO, "a", ROOT_INO, "b", 0), 0);
	assert_int_equal(fx_truncate(ino, 5 * PAGE_BYTES + 1), 0);
	fx_reclaim(&(bool){false});
	more = fx_fill(ino, 100, 4);
	write_pages(&more, 77);
	fx_file(ROOT_INO, "c");
	write_image();
	restored();
	assert_int_equal(fx_lookup(ROOT_INO, "b"), -ENOENT);
	assert_int_equal(fx_lookup(ROOT_INO, "c"), -ENOENT);
	assert_int_equal(fx_lookup(ROOT_INO, "a"), 0);
	assert_int_equal(fx.rep.entry.attr.size, 20 * PAGE_BYTES);
	check_file(ino, 0, 20, 1);
}

static void marker__writes_after_unprotect_are_not_in_it(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "a");
	struct extent e = fx_fill(ino, 0, 20), some = e;

	write_pages(&e, 1);
	mark();
	some.fpage = 0;
	some.page += 4;
	some.npages = 3;
	fx.ctx.read_only = true;
	assert_int_equal(
		FX_RUN(.op = RPC_UNPROTECT, .unprotect = {fx_extents_tail(&some, 1)}), -EROFS);
	fx.ctx.read_only = false;
	assert_int_equal(FX_RUN(.op = RPC_UNPROTECT, .unprotect = {fx_extents_tail(&some, 1)}), 0);
	write_pages(&some, 99);
	write_image();
	restored();
	check_file(ino, 0, 20, 1);
}

static void unprotect__pages_that_are_not_there(void **state)
{
	struct extent e = {.region = 1, .page = FX_PAGES - FX_REGION_PAGES, .npages = 1};

	assert_int_equal(
		FX_RUN(.op = RPC_UNPROTECT, .unprotect = {fx_extents_tail(&e, 1)}), -EINVAL);
	e = (struct extent){.region = 2, .npages = 1};
	assert_int_equal(
		FX_RUN(.op = RPC_UNPROTECT, .unprotect = {fx_extents_tail(&e, 1)}), -EINVAL);
}

static void marker__files_without_a_name_are_left_out(void **state)
{
	uint64_t ino = fx_fragmented("open", 50);

	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "open"), 0);
	mark();
	write_image();
	restored();
	assert_int_equal(fx_getattr(ino), -ESTALE);
	assert_int_equal(fx_usage().inodes, 1);
}

static void marker__hidden_extents_are_left_out(void **state)
{
	uint64_t ino = fx_fragmented("cut", 60);

	assert_int_equal(fx_truncate(ino, 5 * PAGE_BYTES), 0);
	mark();
	write_image();
	restored();
	assert_int_equal(fx_attr(ino).npages, 3);
}

static void marker__gives_way_to_a_full_store(void **state)
{
	struct marker_record rec;
	char name[64];
	int err = 0;

	mark();
	for (unsigned i = 0; !err && i < 100000; i++) {
		snprintf(name, sizeof(name), "a-name-that-takes-some-room-in-the-store-%u", i);
		err = fx_make(RPC_MKDIR, ROOT_INO, name, 0755);
	}
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(marker_next(marker, &rec), -ESTALE);
	marker_delete(marker);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void restore__only_into_an_empty_export(void **state)
{
	mark();
	write_image();
	fx_file(ROOT_INO, "a");
	assert_int_equal(restore(), -EEXIST);
}

/* The root's attributes would mix with the snapshot's. */
static void restore__not_beside_attributes(void **state)
{
	mark();
	write_image();
	assert_int_equal(fx_set(ROOT_INO, "user.name", "value"), 0);
	assert_int_equal(restore(), -EEXIST);
}

static void restore__too_small(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "a");

	fx_fill(ino, 0, 700);
	mark();
	write_image();
	fx_check();
	meta_close(fx.m);
	fx.m = NULL;
	fx_tear_down(NULL);
	fx_set_up_sized(600, 512, (uint64_t)FX_STORE_MIB << 20);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, fx.ctx.session), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_settle();
	assert_int_equal(restore(), -ENOSPC);
	assert_non_null(strstr(why_text, "need"));
}

static void create__not_into_a_used_directory(void **state)
{
	struct image_writer *w;

	mark();
	write_image();
	assert_int_equal(image_create(image_dir, &w, &why), -ENOTEMPTY);
	restored();
}

/* The parent can't be read, and so not be synced. The error comes before anything is written. */
static void create__not_where_its_name_can_t_be_kept(void **state)
{
	char dir[200];
	struct image_writer *w;

	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(image_dir, 0700), 0);
	assert_int_equal(chmod(image_dir, 0311), 0);
	assert_int_equal(chown(image_dir, 1234, 1234), 0);
	snprintf(dir, sizeof(dir), "%s/image", image_dir);
	assert_int_equal(seteuid(1234), 0);
	assert_int_equal(image_create(dir, &w, &why), -EACCES);
	assert_int_equal(seteuid(0), 0);
	assert_non_null(strstr(why_text, "can't sync the directory that"));
	assert_int_equal(access(dir, F_OK), -1);
}

/* This fails after the manifest has got its name. */
static void publish__that_fails_leaves_no_snapshot(void **state)
{
	struct image_writer *w;

	mark();
	assert_int_equal(image_create(image_dir, &w, &why), 0);
	write_all(w);
	assert_int_equal(image_finish(w, marker_facts(marker), &why), 0);
	fsync_fails_after = 0;
	assert_int_equal(image_publish(w, &why), -EIO);
	fsync_fails_after = -1;
	image_writer_delete(w);
	marker_delete(marker);
	assert_int_equal(access(image_dir, F_OK), -1);
}

/* When the name is synced, the snapshot needs no other sync. */
static void publish__once_it_has_its_name_on_the_disk(void **state)
{
	struct image_writer *w;

	mark();
	assert_int_equal(image_create(image_dir, &w, &why), 0);
	write_all(w);
	assert_int_equal(image_finish(w, marker_facts(marker), &why), 0);
	fsync_fails_after = 1;
	assert_int_equal(image_publish(w, &why), 0);
	fsync_fails_after = -1;
	image_writer_delete(w);
	marker_delete(marker);
	restored();
}

static void create__not_where_others_may_write(void **state)
{
	struct image_writer *w;

	assert_int_equal(mkdir(image_dir, 0700), 0);
	assert_int_equal(chmod(image_dir, 0777), 0);
	assert_int_equal(image_create(image_dir, &w, &why), -EPERM);
	assert_non_null(strstr(why_text, "everybody can write"));
	assert_int_equal(chmod(image_dir, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(image_dir, 1234, 1234), 0);
		assert_int_equal(image_create(image_dir, &w, &why), -EPERM);
		assert_non_null(strstr(why_text, "belongs to user 1234"));
		assert_int_equal(chown(image_dir, 0, 0), 0);
	}
	assert_int_equal(rmdir(image_dir), 0);
}

/* A user who gets at the directory meanwhile can't make the server write to another file. */
static void finish__not_through_a_link(void **state)
{
	char victim[300], link[300];
	struct image_writer *w;

	mark();
	assert_int_equal(image_create(image_dir, &w, &why), 0);
	write_all(w);
	snprintf(victim, sizeof(victim), "%s.victim", image_dir);
	snprintf(link, sizeof(link), "%s/manifest.new", image_dir);
	assert_int_equal(symlink(victim, link), 0);
	assert_int_equal(image_finish(w, marker_facts(marker), &why), -EEXIST);
	assert_int_equal(access(victim, F_OK), -1);
	image_writer_delete(w);
	marker_delete(marker);
}

static void unfinished__leaves_nothing(void **state)
{
	struct image_writer *w;

	mark();
	assert_int_equal(image_create(image_dir, &w, &why), 0);
	write_all(w);
	image_writer_delete(w);
	marker_delete(marker);
	assert_int_equal(access(image_dir, F_OK), -1);
}

static void wait_for_phase(struct snapshot_copy *copy, int fd, enum copy_phase phase)
{
	eventfd_t n;

	while (snapshot_copy_phase(copy) != phase)
		assert_int_equal(eventfd_read(fd, &n), 0);
}

/* The snapshot was given up after the marker, and the thread does not know it yet. */
static void copy__pages_that_were_let_go_make_no_snapshot(void **state)
{
	uint64_t file = fx_file(ROOT_INO, "file");
	int fd = eventfd(0, EFD_CLOEXEC);
	struct snapshot_copy *copy;
	struct extent e;

	e = fx_fill(file, 0, 7);
	write_pages(&e, 1);
	assert_int_equal(snapshot_copy_new(image_dir, NULL, fd, &copy), 0);
	wait_for_phase(copy, fd, COPY_READY);
	mark();
	protect_end(marker_pages(marker));
	snapshot_copy_go(copy, marker);
	wait_for_phase(copy, fd, COPY_ENDED);
	assert_int_not_equal(snapshot_copy_end(copy, why_text, sizeof(why_text)), 0);
	assert_int_equal(access(image_dir, F_OK), -1);
	marker_delete(marker);
	close(fd);
}

/* Runs a copy and cancels it after `turns` turns of a loop, or when it has ended. Returns the
 * turns. */
static unsigned copy_cancelled_after(unsigned turns, bool *in_time, int *result)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	struct snapshot_copy *copy;
	unsigned n = 0;

	assert_int_equal(snapshot_copy_new(image_dir, NULL, fd, &copy), 0);
	wait_for_phase(copy, fd, COPY_READY);
	mark();
	snapshot_copy_go(copy, marker);
	while (n < turns && snapshot_copy_phase(copy) != COPY_ENDED)
		n++;
	*in_time = snapshot_copy_cancel(copy);
	*result = snapshot_copy_end(copy, why_text, sizeof(why_text));
	marker_delete(marker);
	close(fd);
	return n;
}

static void copy__cancelled_at_any_time_is_whole_or_nothing(void **state)
{
	uint64_t file = fx_file(ROOT_INO, "file");
	struct image_reader *r;
	unsigned turns, too_late = 0;
	bool in_time;
	int result;

	fx_fill(file, 0, 300);
	turns = copy_cancelled_after(UINT32_MAX, &in_time, &result);
	assert_int_equal(result, 0);
	assert_false(in_time);
	for (unsigned i = 0; i < TRIALS; i++) {
		remove_image();
		copy_cancelled_after(turns / TRIALS * i, &in_time, &result);
		assert_int_equal(result, in_time ? -ECANCELED : 0);
		assert_int_equal(access(image_dir, F_OK), in_time ? -1 : 0);
		too_late += !in_time;
		if (in_time)
			continue;
		assert_int_equal(image_open(image_dir, &r, &why), 0);
		image_close(r);
	}
	assert_in_range(too_late, 0, TRIALS - 1);
}

static void open__without_a_manifest(void **state)
{
	char path[200];

	mark();
	write_image();
	snprintf(path, sizeof(path), "%s/manifest", image_dir);
	assert_int_equal(unlink(path), 0);
	lose_memory();
	assert_int_equal(restore(), -EBADMSG);
	assert_non_null(strstr(why_text, "no complete snapshot"));
}

/* Reads the snapshot as a restoration does, up to its first change. */
static int verify(void)
{
	struct image_reader *r;
	int err = image_open(image_dir, &r, &why);

	if (err)
		return err;
	err = restore_check(fx.m, 0, r, NULL, &why);
	image_close(r);
	return err;
}

static void flip_all(const char *name, off_t step)
{
	char path[200];
	uint8_t byte;
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", image_dir, name);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	for (off_t at = 0; at < st.st_size; at += at < 400 ? 1 : step) {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= (uint8_t)(1 << at % 8);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		why_text[0] = '\0';
		assert_int_equal(verify(), -EBADMSG);
		assert_non_null(strstr(why_text, name));
		byte ^= (uint8_t)(1 << at % 8);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	assert_int_equal(verify(), 0);
	assert_int_equal(ftruncate(fd, st.st_size - 1), 0);
	assert_int_equal(verify(), -EBADMSG);
	close(fd);
}

static void verify__any_flipped_byte(void **state)
{
	uint64_t ino = fx_fragmented("a", 20);
	struct extent e = fx_fill(ino, 100, 10);

	write_pages(&e, 3);
	mark();
	write_image();
	lose_memory();
	assert_int_equal(verify(), 0);
	if (*(const char *)*state == 'm')
		flip_all("manifest", 1);
	else if (*(const char *)*state == 'r')
		flip_all("records", 7);
	else
		flip_all("pages", 97);
}

static void verify__a_missing_file(void **state)
{
	char path[200];

	mark();
	write_image();
	lose_memory();
	snprintf(path, sizeof(path), "%s/pages", image_dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(verify(), -EBADMSG);
	assert_non_null(strstr(why_text, "missing"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define FLIP_CASE(file)                                                                           \
	{                                                                                         \
		"verify__any_flipped_byte_of_" file, verify__any_flipped_byte, set_up, tear_down, \
			(void *)(uintptr_t)(file)                                                 \
	}
#define BESIDE_CASE(kinds)                                                        \
	{                                                                         \
		"restore__beside_names_of_another_hash_" kinds,                   \
			restore__beside_names_of_another_hash, set_up, tear_down, \
			(void *)(uintptr_t)(kinds)                                \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(restore__names_attributes_and_bytes),
		CASE(restore__many_extents),
		CASE(restore__regions_of_another_size),
		CASE(restore__keeps_the_hash_of_a_new_snapshot),
		CASE(restore__of_a_former_version_hashes_anew),
		BESIDE_CASE("nn"),
		BESIDE_CASE("nw"),
		BESIDE_CASE("wn"),
		BESIDE_CASE("ww"),
		CASE(marker__later_changes_are_not_in_it),
		CASE(marker__writes_after_unprotect_are_not_in_it),
		CASE(unprotect__pages_that_are_not_there),
		CASE(marker__files_without_a_name_are_left_out),
		CASE(marker__hidden_extents_are_left_out),
		CASE(marker__gives_way_to_a_full_store),
		CASE(restore__only_into_an_empty_export),
		CASE(restore__not_beside_attributes),
		CASE(restore__too_small),
		CASE(create__not_into_a_used_directory),
		CASE(create__not_where_others_may_write),
		CASE(create__not_where_its_name_can_t_be_kept),
		CASE(publish__that_fails_leaves_no_snapshot),
		CASE(publish__once_it_has_its_name_on_the_disk),
		CASE(finish__not_through_a_link),
		CASE(unfinished__leaves_nothing),
		CASE(copy__pages_that_were_let_go_make_no_snapshot),
		CASE(copy__cancelled_at_any_time_is_whole_or_nothing),
		CASE(open__without_a_manifest),
		FLIP_CASE("manifest"),
		FLIP_CASE("records"),
		FLIP_CASE("pages"),
		CASE(verify__a_missing_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
