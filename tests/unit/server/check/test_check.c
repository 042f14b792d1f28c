/* test_check.c - a store is corrupted through its own layer, with right sums, in every way that the
 * check knows. The check names each by its own words, and finds nothing in a store that is whole.
 *
 * See corruption.h; extended attributes are in test_check_xattr.c. */
#include "tests/unit/server/corruption.h"

#include <fcntl.h>
#include <inttypes.h>

#include "common/rpc/wire.h"
#include "server/record/extents.h"
#include "server/record/inode.h"
#include "server/record/reaper.h"
#include "server/record/reap_record.h"
#include "server/space/space_run.h"

enum { STORE_BYTES = 4 << 20 };

/* ---- the store ------------------------------------------------------------------------------- */

static uint64_t dir, subdir, file, other, linked, many, cut, symlink_ino, orphan;

static void make_files(void)
{
	dir = fx_dir(ROOT_INO, "dir");
	subdir = fx_dir(dir, "subdir");
	file = fx_file(dir, "file");
	fx_fill(file, 0, 4);
	other = fx_file(dir, "other");
	fx_fill(other, 0, 4);
	fx_fill(other, 10, 4);
	linked = fx_file(dir, "linked");
	assert_int_equal(FX_RUN(.op = RPC_LINK, .link = {linked, subdir, fx_str("link")}), 0);
	many = fx_fragmented("many", 20);
	cut = fx_fragmented("cut", 60);
	assert_int_equal(fx_truncate(cut, 10 * PAGE_BYTES), 0);
	assert_int_equal(fx_make(RPC_SYMLINK, dir, "symlink", S_IFLNK | 0777), 0);
	symlink_ino = fx.rep.entry.attr.ino;
	orphan = fx_file(dir, "orphan");
	fx_fill(orphan, 0, 1);
	assert_int_equal(fx_name(RPC_UNLINK, dir, "orphan"), 0);
	fx_grant_run(8);
}

static int set_up(void **state)
{
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, STORE_BYTES);
	make_files();
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_reply_store(fx.m, fx.ctx.session, 3, 9, "reply", 5), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	keep_image();
	return 0;
}

static int tear_down(void **state)
{
	free(image);
	return fx_tear_down(state);
}

/* ---- records --------------------------------------------------------------------------------- */

static struct dirent_slot slot_of(uint64_t parent, const char *name)
{
	struct rpc_str str = fx_str(name);
	struct dirent_slot slot;

	assert_int_equal(dirent_find(fx_volume(), &fx.m->hash, key_of(parent), &str, &slot), 0);
	return slot;
}

static void put_entry(uint64_t parent, const char *name, uint64_t ino, uint32_t mode)
{
	struct dirent_slot slot = slot_of(parent, name);
	struct rpc_str str = fx_str(name);

	assert_int_equal(dirent_put(fx_volume(), &slot, &str, ino, dirent_type(mode)), 0);
}

static void del_entry(uint64_t parent, const char *name)
{
	struct dirent_slot slot = slot_of(parent, name);

	assert_int_equal(dirent_del(fx_volume(), &slot), 0);
}

/* Finds the first stored run of a state. */
static struct store_key find_run(enum page_state want, struct page_run *run)
{
	struct store_key key;
	struct store_val val;
	enum page_state state;
	uint64_t session;
	int err = store_seek(fx.m->store, STORE_SPACE, STORE_KEY(0), &key, &val);

	for (; !err; err = store_next(fx.m->store, STORE_SPACE, &key, &val)) {
		assert_int_equal(
			space_run_parse(&fx_volume()->space, key, &val, run, &state, &session), 0);
		if (state == want)
			return key;
	}
	fail();
	return key;
}

static void put_run(
	unsigned region, uint32_t page, uint32_t npages, enum page_state state, uint64_t session)
{
	uint8_t buf[13];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u32(&w, npages);
	wire_put_u8(&w, (uint8_t)state);
	if (state == PAGE_GRANTED)
		wire_put_u64(&w, session);
	put(STORE_SPACE, inode_key(fx_volume(), (uint64_t)region << 32 | page), 0, buf,
		wire_out_len(&w));
}

static void put_reap(uint64_t ino, uint64_t at, uint64_t npages)
{
	uint64_t record[] = {htole64(at), htole64(npages)};

	put(STORE_REAP, key_of(ino), 0, record, sizeof(record));
}

static void put_extent(uint64_t ino, uint64_t fpage, struct extent e)
{
	uint8_t buf[10];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u32(&w, e.npages);
	wire_put_u32(&w, e.page);
	wire_put_u16(&w, e.region);
	put(STORE_EXTENT, key_of(ino), fpage, buf, sizeof(buf));
}

/* Saves the export's record: the batch does not save it by itself. */
static void save_volume(void)
{
	assert_int_equal(meta_save_volume(fx.m, fx_volume()), 0);
}

/* ---- corruptions: pages ---------------------------------------------------------------------- */

static void free_and_in_file(void)
{
	struct page_run run = {0};
	struct stored_inode i = load(file);

	find_run(PAGE_FREE, &run);
	i.head[0].page = run.page;
	i.head[0].region = run.region;
	save(&i);
}

static void free_and_granted(void)
{
	struct page_run free_run, granted;

	find_run(PAGE_FREE, &free_run);
	find_run(PAGE_GRANTED, &granted);
	put_run(granted.region, granted.page, 4, PAGE_GRANTED, fx.ctx.session);
	put_run(granted.region, granted.page + 2, 6, PAGE_FREE, 0);
}

static void in_two_files(void)
{
	struct stored_inode i = load(file), o = load(other);

	i.head[0].page = o.head[0].page;
	i.head[0].region = o.head[0].region;
	save(&i);
}

static void twice_in_one_file(void)
{
	struct stored_inode o = load(other);

	o.head[1].page = o.head[0].page + 1;
	o.head[1].region = o.head[0].region;
	save(&o);
}

static void lost_pages(void)
{
	struct page_run run = {0};
	struct store_key key = find_run(PAGE_FREE, &run);

	del(STORE_SPACE, key.hi, 0);
}

static void lost_grant(void)
{
	struct page_run run = {0};
	struct store_key key = find_run(PAGE_GRANTED, &run);

	del(STORE_SPACE, key.hi, 0);
}

static void granted_to_nobody(void)
{
	struct page_run run = {0};

	find_run(PAGE_GRANTED, &run);
	put_run(run.region, run.page, run.npages, PAGE_GRANTED, 77);
}

static void run_beyond_region(void)
{
	put_run(1, FX_PAGES - FX_REGION_PAGES - 1, 2, PAGE_DIRTY, 0);
}

static void run_of_no_region(void)
{
	put_run(5, 0, 1, PAGE_FREE, 0);
}

static void run_unreadable(void)
{
	struct page_run run = {0};
	struct store_key key = find_run(PAGE_FREE, &run);

	put(STORE_SPACE, key.hi, 0, "x", 1);
}

static void extent_beyond_region(void)
{
	struct stored_inode i = load(file);

	i.head[0].page = FX_REGION_PAGES - 1;
	save(&i);
}

static void free_not_zero(void)
{
	struct page_run run = {0};

	find_run(PAGE_FREE, &run);
	((uint8_t *)fx.bases[run.region])[run.page * (size_t)PAGE_BYTES + 4000] = 1;
}

/* ---- corruptions: files ---------------------------------------------------------------------- */

static void extents_overlap(void)
{
	struct stored_inode o = load(other);

	o.head[1].fpage = 3;
	save(&o);
}

static void head_behind_table(void)
{
	struct stored_inode i = load(many);

	i.head[3].fpage = 1000;
	save(&i);
}

static void extent_beyond_any_file(void)
{
	struct stored_inode o = load(other);

	o.head[1].fpage = UINT64_C(1) << 52;
	save(&o);
}

static void extent_too_many(void)
{
	struct stored_inode i = load(many);

	i.nextents--;
	save(&i);
}

static void extent_gone(void)
{
	struct extent e;
	struct stored_inode i = load(many);

	assert_int_equal(extents_stored_at(fx_volume(), &i, 20, &e), 0);
	del(STORE_EXTENT, i.key, e.fpage);
}

static void npages_wrong(void)
{
	struct stored_inode i = load(file);

	i.attr.npages++;
	save(&i);
}

static void size_impossible(void)
{
	struct stored_inode i = load(file);

	i.attr.size = UINT64_MAX;
	save(&i);
}

static void mode_impossible(void)
{
	struct stored_inode i = load(linked);

	i.attr.mode = 0644;
	save(&i);
}

static void extents_of_directory(void)
{
	struct stored_inode i = load(dir), o = load(other);

	i.head[0] = o.head[0];
	i.nextents = 1;
	i.attr.npages = 4;
	save(&i);
}

static void extents_of_nobody(void)
{
	put_extent(999, 0, (struct extent){.npages = 1, .page = 0});
}

static void cut_without_record(void)
{
	del(STORE_REAP, key_of(cut), 0);
}

static void record_without_cut(void)
{
	put_reap(file, 100, 0);
}

static void reaped_by_number(void)
{
	struct stored_inode i = load(cut);

	put_reap(cut, i.cut, 1);
}

static void cut_elsewhere(void)
{
	struct reap_record record;

	assert_int_equal(reap_record_load(fx_volume(), key_of(cut), &record), 0);
	put_reap(cut, record.cut + 20, record.npages);
}

static void reaped_nobody(void)
{
	put_reap(999, 0, 0);
}

static void target_gone(void)
{
	del(STORE_SYMLINK, key_of(symlink_ino), 0);
}

static void target_of_another_size(void)
{
	put(STORE_SYMLINK, key_of(symlink_ino), 0, "here", 4);
}

static void target_of_file(void)
{
	put(STORE_SYMLINK, key_of(file), 0, "here", 4);
}

static void target_of_nobody(void)
{
	put(STORE_SYMLINK, key_of(999), 0, "here", 4);
}

static void inode_unreadable(void)
{
	put(STORE_INODE, key_of(file), 0, "short", 5);
}

/* ---- corruptions: names ---------------------------------------------------------------------- */

static void entry_to_nowhere(void)
{
	put_entry(dir, "nowhere", 999, S_IFREG);
}

/* The check's lines may go to a terminal. */
static void entry_that_steers_a_terminal(void)
{
	put_entry(dir, "no\033[2J\nwhere", 999, S_IFREG);
}

static void entry_lost(void)
{
	del_entry(dir, "file");
}

static void entry_of_another_type(void)
{
	put_entry(dir, "file", file, S_IFLNK);
}

static void entry_unreadable(void)
{
	struct dirent_slot slot = slot_of(dir, "file");

	put(STORE_DIRENT, slot.dir, slot.cookie, "x", 1);
}

static void second_name_of_directory(void)
{
	put_entry(ROOT_INO, "second", subdir, S_IFDIR);
}

static void name_of_directory_lost(void)
{
	del_entry(dir, "subdir");
}

static void cookie_of_another_name(void)
{
	struct dirent_slot slot = slot_of(dir, "file");
	struct rpc_str str = fx_str("file");

	assert_int_equal(dirent_del(fx_volume(), &slot), 0);
	slot.cookie += DIRENT_COLLISIONS;
	assert_int_equal(dirent_put(fx_volume(), &slot, &str, file, dirent_type(S_IFREG)), 0);
}

static void name_twice(void)
{
	struct dirent_slot slot = slot_of(dir, "linked");
	struct rpc_str str = fx_str("linked");

	slot.cookie++;
	assert_int_equal(dirent_put(fx_volume(), &slot, &str, linked, dirent_type(S_IFREG)), 0);
}

static void name_impossible(void)
{
	put_entry(dir, "a/b", linked, S_IFREG);
}

static void entries_of_nobody(void)
{
	put_entry(999, "name", linked, S_IFREG);
}

static void entries_of_file(void)
{
	put_entry(file, "name", linked, S_IFREG);
}

static void nlink_up(void)
{
	struct stored_inode i = load(linked);

	i.attr.nlink++;
	save(&i);
}

static void nlink_down(void)
{
	struct stored_inode i = load(linked);

	i.attr.nlink--;
	save(&i);
}

static void nlink_of_directory(void)
{
	struct stored_inode i = load(dir);

	i.attr.nlink = 2;
	save(&i);
}

static void parent_wrong(void)
{
	struct stored_inode i = load(subdir);

	i.parent = ROOT_INO;
	save(&i);
}

static void parent_of_root(void)
{
	struct stored_inode i = load(ROOT_INO);

	i.parent = dir;
	save(&i);
}

/* dir lies in subdir and subdir in dir: each has one name and the right parent. */
static void cycle(void)
{
	struct stored_inode root = load(ROOT_INO), d = load(dir), s = load(subdir);

	del_entry(ROOT_INO, "dir");
	put_entry(subdir, "dir", dir, S_IFDIR);
	root.attr.nlink--;
	s.attr.nlink++;
	d.parent = subdir;
	save(&root);
	save(&s);
	save(&d);
}

static void root_gone(void)
{
	del(STORE_INODE, key_of(ROOT_INO), 0);
}

static void root_is_file(void)
{
	struct stored_inode i = load(ROOT_INO);

	i.attr.mode = S_IFREG | 0644;
	save(&i);
}

static void removed_directory_has_entries(void)
{
	struct stored_inode i = load(subdir);

	i.attr.nlink = 0;
	save(&i);
}

/* ---- corruptions: sessions and totals -------------------------------------------------------- */

static void orphan_of_nobody(void)
{
	del(STORE_ORPHAN, fx.ctx.session, key_of(orphan));
	put(STORE_ORPHAN, 77, key_of(orphan), "", 0);
}

static void orphan_not_kept(void)
{
	del(STORE_ORPHAN, fx.ctx.session, key_of(orphan));
}

static void orphan_not_there(void)
{
	put(STORE_ORPHAN, fx.ctx.session, key_of(999), "", 0);
}

static void orphan_with_links(void)
{
	put(STORE_ORPHAN, fx.ctx.session, key_of(file), "", 0);
}

static void orphan_of_no_export(void)
{
	put(STORE_ORPHAN, fx.ctx.session, UINT64_C(9) << INO_BITS | 5, "", 0);
}

static void dead_with_links(void)
{
	struct stored_inode i = load(linked);

	i.flags |= INODE_DEAD;
	save(&i);
}

static void dead_not_reaped(void)
{
	struct stored_inode i = load(orphan);

	i.flags |= INODE_DEAD;
	save(&i);
}

static void reply_of_nobody(void)
{
	put(STORE_REPLY, 77, 0, "12345678", 8);
}

static void reply_of_no_slot(void)
{
	put(STORE_REPLY, fx.ctx.session, 5000, "12345678", 8);
}

static void reply_unreadable(void)
{
	put(STORE_REPLY, fx.ctx.session, 3, "1", 1);
}

static void session_gone(void)
{
	del(STORE_SESSION, fx.ctx.session, 0);
}

static void session_not_given_out(void)
{
	fx.m->now.next_session = fx.ctx.session;
	assert_int_equal(meta_save_super(fx.m), 0);
}

static void session_of_no_export(void)
{
	static const uint8_t record[1 + 2 + 4 + OWNER_BYTES + 8 + 2] = {0, 9};

	put(STORE_SESSION, fx.ctx.session, 0, record, sizeof(record));
}

static void session_unreadable(void)
{
	put(STORE_SESSION, fx.ctx.session, 0, "x", 1);
}

static void total_of_inodes(void)
{
	fx_volume()->now.inodes++;
	save_volume();
}

static void number_not_given_out(void)
{
	fx_volume()->now.next_ino = orphan;
	save_volume();
}

static void records_of_no_export(void)
{
	put(STORE_INODE, UINT64_C(9) << INO_BITS | 5, 0, "x", 1);
}

static void export_unreadable(void)
{
	put(STORE_META, 1, 0, "x", 1);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct corruption corruptions[] = {
	{free_and_in_file, "pages N+4 of region N are free and in inode N"},
	{free_and_granted, "pages N+2 of region N are granted and free"},
	{in_two_files, "pages N+4 of region N are in a file and in inode N"},
	{twice_in_one_file, "pages N+3 of region N are in a file and in inode N"},
	{lost_pages, "pages of region N are in no state; the first is page N"},
	{lost_grant, "8 pages of region N are in no state"},
	{granted_to_nobody, "pages N+8 of region N are granted to session 77, which is not there"},
	{run_beyond_region, "pages N+2 of region 1 are dirty and do not exist"},
	{run_of_no_region, "pages 0+1 of region 5 are free and do not exist"},
	{run_unreadable, "of table space can't be read"},
	{extent_beyond_region, "pages 1023+4 of region 0 are in inode N and do not exist"},
	{free_not_zero, "1 free pages of region N are not zero; the first is page N"},
	{extents_overlap, "extents overlap at page 3"},
	{head_behind_table, "extents overlap at page 8"},
	{extent_beyond_any_file, "lies beyond the end of any file"},
	{extent_too_many, "says 19 extents of 20 pages, and has 20 of 20"},
	{extent_gone, "says 20 extents of 20 pages, and has 19 of 19"},
	{npages_wrong, "says 1 extents of 5 pages, and has 1 of 4"},
	{size_impossible, "has size 18446744073709551615: impossible"},
	{mode_impossible, "has mode 644: impossible"},
	{extents_of_directory, "has extents and is no regular file"},
	{extents_of_nobody, "table extent has records of inode 999, which is not there"},
	{cut_without_record, "is to be reaped, and there is no record of where it was cut"},
	{record_without_cut, "has a record of where it was cut, and does not say so"},
	{reaped_by_number, "1 pages are to be reaped, and it has 55"},
	{cut_elsewhere, "55 pages are to be reaped, and it has 45"},
	{reaped_nobody, "table reap has records of inode 999, which is not there"},
	{target_gone, "symlink N has no target"},
	{target_of_another_size, "symlink N says 10 bytes, and has 4"},
	{target_of_file, "has a target and is no symlink"},
	{target_of_nobody, "table symlink has records of inode 999, which is not there"},
	{inode_unreadable, "of table inode can't be read"},
	{entry_to_nowhere, "'nowhere' in directory N names inode 999, which is not there"},
	{entry_lost, "inode N says 1 links, and has 0"},
	{entry_that_steers_a_terminal,
		"'no?[NJ?where' in directory N names inode 999, which is not there"},
	{entry_of_another_type, "'file' in directory N has another type than inode N"},
	{entry_unreadable, "of table dirent can't be read"},
	{second_name_of_directory, "directory N has 2 names"},
	{name_of_directory_lost, "directory N has 0 names"},
	{cookie_of_another_name, "'file' in directory N has a cookie that is not its name's"},
	{name_twice, "'linked' in directory N is there twice"},
	{name_impossible, "'a/b' in directory N is no possible name"},
	{entries_of_nobody, "there are entries of directory 999, which is not there"},
	{entries_of_file, "has entries and is no directory"},
	{nlink_up, "inode N says 3 links, and has 2"},
	{nlink_down, "inode N says 1 links, and has 2"},
	{nlink_of_directory, "inode N says 2 links, and has 3"},
	{parent_wrong, "'subdir' in directory N names a directory whose parent is 1"},
	{parent_of_root, "the root directory's parent is N"},
	{cycle, "directory N is not reached from the root"},
	{root_gone, "there is no root directory"},
	{root_is_file, "the root is no directory, or was removed"},
	{removed_directory_has_entries, "directory N has entries and was removed"},
	{orphan_of_nobody, "unlinked inode N is kept for session 77, which is not there"},
	{orphan_not_kept, "inode N has no links and no session keeps it"},
	{orphan_not_there, "session N keeps unlinked inode 999, which is not there"},
	{orphan_with_links, "session N keeps inode N as an unlinked one, and it has links"},
	{orphan_of_no_export, "session N keeps an inode of export 9, which is not there"},
	{dead_with_links, "inode N is dead and has links"},
	{dead_not_reaped, "inode N is dead and not to be reaped"},
	{reply_of_nobody, "a reply is kept for session 77, which is not there"},
	{reply_of_no_slot, "a reply is kept for slot 5000 of session N, which it has not"},
	{reply_unreadable, "of table reply can't be read"},
	{session_gone, "are granted to session N, which is not there"},
	{session_not_given_out, "session N has a number that was not given out"},
	{session_of_no_export, "session N is at export 9, which is not there"},
	{session_unreadable, "of table session can't be read"},
	{total_of_inodes, "its record says N inodes, and there are N"},
	{number_not_given_out, "inode N has a number that was not given out"},
	{records_of_no_export, "table inode has records of export 9, which is not there"},
	{export_unreadable, "the record of an export is"},
};

/* ---- cases ----------------------------------------------------------------------------------- */

static void check__whole_store_has_no_problem(void **state)
{
	assert_whole();
}

static void check__names_each_corruption(void **state)
{
	assert_all_named(corruptions, ARRAY_SIZE(corruptions));
}

static void check__changes_nothing(void **state)
{
	uint8_t *now = malloc(image_len);
	char path[128];
	int fd;

	check_stored();
	store_path(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, now, image_len, 0), (ssize_t)image_len);
	close(fd);
	assert_memory_equal(now, image, image_len);
	free(now);
}

static void inspect__names_what_is_not_there(void **state)
{
	char path[128], why[256];
	struct meta *m;

	store_path(path);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(meta_inspect(fx.dir, &m, why, sizeof(why)), -ENOENT);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(meta_inspect(fx.dir, &m, why, sizeof(why)), -ENOENT);
	assert_int_equal(access(path, F_OK), -1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(check__whole_store_has_no_problem),
		CASE(check__names_each_corruption),
		CASE(check__changes_nothing),
		CASE(inspect__names_what_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
