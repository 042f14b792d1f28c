/* test_ns.c - the operations on names and attributes, one by one, with their errors. */
#include "tests/unit/server/meta_fixture.h"

#include <dirent.h>

#include "server/record/inode.h"

enum { FILE_MODE = S_IFREG | 0644 };

/* ---- lookup, getattr ------------------------------------------------------------------------- */

static void root__is_there(void **state)
{
	struct attr root;

	assert_int_equal(meta_root(fx.m, 0, &root), 0);
	assert_int_equal(root.ino, ROOT_INO);
	assert_int_equal(root.mode, S_IFDIR | 0755);
	assert_int_equal(root.nlink, 2);
	assert_true(meta_is_new(fx.m));
}

static void lookup__finds_what_was_made(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	assert_int_equal(fx.rep.entry.parent.ino, ROOT_INO);
	assert_int_equal(fx_lookup(ROOT_INO, "file"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, ino);
	assert_int_equal(fx.rep.entry.parent.ino, 0);
	assert_int_equal(fx.rep.entry.lease.type, LEASE_EXCLUSIVE);
	assert_int_equal(fx.rep.entry.nextents, 0);
}

static void lookup__errors(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	char name[NAME_BYTES_MAX + 2];

	memset(name, 'x', sizeof(name));
	name[NAME_BYTES_MAX + 1] = '\0';
	assert_int_equal(fx_lookup(ROOT_INO, "none"), -ENOENT);
	assert_int_equal(fx_lookup(ROOT_INO, name), -ENAMETOOLONG);
	assert_int_equal(fx_lookup(ino, "file"), -ENOTDIR);
	assert_int_equal(fx_lookup(999, "file"), -ESTALE);
	assert_int_equal(fx_lookup(0, "file"), -ESTALE);
	assert_int_equal(fx_lookup(UINT64_MAX, "file"), -ESTALE);
	assert_int_equal(fx_lookup(UINT64_C(1) << 48 | ROOT_INO, "file"), -ESTALE);
}

static void lookup__dots(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), sub = fx_dir(dir, "sub");
	uint64_t file = fx_file(ROOT_INO, "file");

	assert_int_equal(fx_lookup(sub, "."), 0);
	assert_int_equal(fx.rep.entry.attr.ino, sub);
	assert_int_equal(fx_lookup(sub, ".."), 0);
	assert_int_equal(fx.rep.entry.attr.ino, dir);
	assert_int_equal(fx_lookup(ROOT_INO, ".."), 0);
	assert_int_equal(fx.rep.entry.attr.ino, ROOT_INO);
	/* A file's "." is found as long as the file has a name. */
	assert_int_equal(fx_lookup(file, "."), 0);
	assert_int_equal(fx.rep.entry.attr.ino, file);
	assert_int_equal(fx_lookup(file, ".."), -ENOTDIR);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_int_equal(fx_lookup(file, "."), -ENOENT);
}

static void getattr__of_no_inode_is_stale(void **state)
{
	assert_int_equal(fx_getattr(12345), -ESTALE);
}

static void execute__unknown_operation(void **state)
{
	assert_int_equal(FX_RUN(.op = RPC_ATTACH), -EOPNOTSUPP);
	assert_int_equal(FX_RUN(.op = 9999), -EOPNOTSUPP);
}

static void execute__read_only_session_changes_nothing(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent granted = fx_grant_run(4);

	fx.ctx.read_only = true;
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "new", FILE_MODE), -EROFS);
	assert_true(fx.rep.text.len > 0);
	assert_int_equal(fx_truncate(ino, 0), -EROFS);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), -EROFS);
	assert_int_equal(fx_grant(1, false), -EROFS);
	assert_int_equal(fx_lookup(ROOT_INO, "file"), 0);
	/* It may return grants from before it became read-only. */
	assert_int_equal(fx_return_grants(&granted, 1), 0);
}

/* ---- making ---------------------------------------------------------------------------------- */

static void create__sets_attributes_and_touches_the_directory(void **state)
{
	struct attr a, dir;

	fx.ctx.now = 5000;
	fx_file(ROOT_INO, "file");
	a = fx.rep.entry.attr;
	dir = fx.rep.entry.parent;
	assert_true(fx.rep.entry.created);
	assert_int_equal(a.mode, FILE_MODE);
	assert_int_equal(a.nlink, 1);
	assert_int_equal(a.uid, 10);
	assert_int_equal(a.gid, 20);
	assert_int_equal(a.size, 0);
	assert_int_equal(a.atime, 5000);
	assert_int_equal(a.mtime, 5000);
	assert_int_equal(a.ctime, 5000);
	assert_int_equal(a.btime, 5000);
	assert_int_equal(dir.mtime, 5000);
	assert_int_equal(dir.ctime, 5000);
}

static int create_shared(const char *name, uint32_t want)
{
	return FX_RUN(.op = RPC_CREATE, .create = {.parent = ROOT_INO,
						.name = fx_str(name),
						.mode = FILE_MODE,
						.want_pages = want});
}

static void create__errors(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "file", FILE_MODE), -EEXIST);
	assert_int_equal(fx_make(RPC_CREATE, ino, "below", FILE_MODE), -ENOTDIR);
	assert_int_equal(fx_make(RPC_CREATE, 999, "file", FILE_MODE), -ESTALE);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, ".", FILE_MODE), -EINVAL);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "..", FILE_MODE), -EINVAL);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "dir", S_IFDIR | 0755), -EINVAL);
	fx_dir(ROOT_INO, "dir");
	assert_int_equal(create_shared("dir", 0), -EISDIR);
	assert_int_equal(fx_make(RPC_SYMLINK, ROOT_INO, "link", 0), 0);
	assert_int_equal(create_shared("link", 0), -ESTALE);
}

static void create__opens_an_existing_file(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	fx_fill(ino, 3, 4);
	assert_int_equal(create_shared("file", 0), 0);
	assert_false(fx.rep.entry.created);
	assert_int_equal(fx.rep.entry.attr.ino, ino);
	assert_int_equal(fx.rep.entry.nhead, 1);
	assert_int_equal(fx.rep.entry.head[0].fpage, 3);
	assert_int_equal(fx.rep.entry.head[0].npages, 4);
}

static void create__brings_a_grant_along(void **state)
{
	assert_int_equal(create_shared("file", 16), 0);
	assert_true(fx.rep.entry.created);
	assert_int_equal(fx.rep.entry.ngrant, 1);
	assert_int_equal(fx.rep.entry.grant[0].npages, 16);
	assert_int_equal(fx_usage().granted_pages, 16);
}

static void create__goes_on_without_free_pages(void **state)
{
	fx_grant(FX_PAGES, false);
	assert_int_equal(create_shared("file", 16), 0);
	assert_int_equal(fx.rep.entry.ngrant, 0);
}

static void setgid_directory__gives_its_group(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir");

	assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = dir,
							   .valid = SET_MODE | SET_GID,
							   .mode = S_ISGID | 0775,
							   .gid = 77}),
		0);
	fx_file(dir, "file");
	assert_int_equal(fx.rep.entry.attr.gid, 77);
	assert_int_equal(fx.rep.entry.attr.mode, FILE_MODE);
	fx_dir(dir, "sub");
	assert_int_equal(fx.rep.entry.attr.gid, 77);
	assert_int_equal(fx.rep.entry.attr.mode, S_IFDIR | S_ISGID | 0755);
}

static void mknod__makes_every_type(void **state)
{
	static const uint32_t types[] = {S_IFREG, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK};

	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		char name[8];

		snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(FX_RUN(.op = RPC_MKNOD, .create = {.parent = ROOT_INO,
								 .name = fx_str(name),
								 .mode = types[i] | 0600,
								 .rdev = 0x105}),
			0);
		assert_int_equal(fx_lookup(ROOT_INO, name), 0);
		assert_int_equal(fx.rep.entry.attr.mode, types[i] | 0600);
		assert_int_equal(
			fx.rep.entry.attr.rdev, S_ISCHR(types[i]) || S_ISBLK(types[i]) ? 0x105 : 0);
	}
	assert_int_equal(fx_make(RPC_MKNOD, ROOT_INO, "d", S_IFDIR | 0755), -EINVAL);
	assert_int_equal(fx_make(RPC_MKNOD, ROOT_INO, "n0", FILE_MODE), -EEXIST);
}

static void mkdir__counts_links(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir");

	assert_int_equal(fx.rep.entry.attr.nlink, 2);
	assert_int_equal(fx.rep.entry.parent.nlink, 3);
	fx_dir(dir, "a");
	fx_dir(dir, "b");
	fx_file(dir, "file");
	assert_int_equal(fx_attr(dir).nlink, 4);
	assert_int_equal(fx_make(RPC_MKDIR, ROOT_INO, "dir", 0755), -EEXIST);
}

static int symlink_to(const char *name, const char *target)
{
	return FX_RUN(.op = RPC_SYMLINK,
		.create = {.parent = ROOT_INO, .name = fx_str(name), .target = fx_str(target)});
}

static void symlink__keeps_targets_of_every_length(void **state)
{
	static const unsigned lengths[] = {1, 60, 1900, 2100, SYMLINK_BYTES_MAX};
	char target[SYMLINK_BYTES_MAX + 2], name[8];

	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		memset(target, 'a' + (int)i, lengths[i]);
		target[lengths[i]] = '\0';
		snprintf(name, sizeof(name), "l%u", i);
		assert_int_equal(symlink_to(name, target), 0);
		assert_int_equal(fx.rep.entry.attr.size, lengths[i]);
		assert_int_equal(meta_begin(fx.m), 0);
		assert_int_equal(fx_execute(&(struct rpc_request){
					 .op = RPC_READLINK, .ino = {fx.rep.entry.attr.ino}}),
			0);
		assert_int_equal(fx.rep.readlink.target.len, lengths[i]);
		assert_memory_equal(fx.rep.readlink.target.s, target, lengths[i]);
		meta_abort(fx.m);
	}
	memset(target, 'x', sizeof(target));
	target[SYMLINK_BYTES_MAX + 1] = '\0';
	assert_int_equal(symlink_to("long", target), -ENAMETOOLONG);
	assert_int_equal(symlink_to("empty", ""), -ENOENT);
	assert_int_equal(symlink_to("l0", "x"), -EEXIST);
}

static void readlink__of_a_file_is_invalid(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	assert_int_equal(FX_RUN(.op = RPC_READLINK, .ino = {ino}), -EINVAL);
	assert_int_equal(FX_RUN(.op = RPC_READLINK, .ino = {999}), -ESTALE);
}

static int link_to(uint64_t ino, uint64_t parent, const char *name)
{
	return FX_RUN(.op = RPC_LINK, .link = {ino, parent, fx_str(name)});
}

static void link__adds_a_name(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), dir = fx_dir(ROOT_INO, "dir");

	fx.ctx.now = 7000;
	assert_int_equal(link_to(ino, dir, "other"), 0);
	assert_int_equal(fx.rep.entry.attr.nlink, 2);
	assert_int_equal(fx.rep.entry.attr.ctime, 7000);
	assert_int_equal(fx.rep.entry.attr.mtime, 1000);
	assert_int_equal(fx.rep.entry.parent.ino, dir);
	assert_int_equal(fx_lookup(dir, "other"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, ino);
}

static void link__errors(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), dir = fx_dir(ROOT_INO, "dir");
	struct stored_inode inode;

	assert_int_equal(link_to(dir, ROOT_INO, "d2"), -EPERM);
	assert_int_equal(link_to(ino, ROOT_INO, "dir"), -EEXIST);
	assert_int_equal(link_to(ino, ino, "x"), -ENOTDIR);
	assert_int_equal(link_to(999, ROOT_INO, "x"), -ESTALE);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	fx.ctx.session++;
	assert_int_equal(link_to(ino, ROOT_INO, "again"), -ENOENT);
	fx.ctx.session--;

	ino = fx_file(ROOT_INO, "many");
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(inode_load(fx_volume(), ino, &inode), 0);
	inode.attr.nlink = NLINK_MAX;
	assert_int_equal(inode_save(fx_volume(), &inode), 0);
	assert_int_equal(fx_execute(&(struct rpc_request){
				 .op = RPC_LINK, .link = {ino, ROOT_INO, fx_str("more")}}),
		-EMLINK);
	meta_abort(fx.m);
}

/* ---- files without a name -------------------------------------------------------------------- */

static int tmpfile_in(uint64_t dir, uint32_t mode, uint32_t want_pages)
{
	return FX_RUN(.op = RPC_TMPFILE, .create = {.parent = dir,
						 .mode = mode,
						 .umask = 027,
						 .uid = 10,
						 .gid = 20,
						 .want_pages = want_pages});
}

static void tmpfile__is_kept_until_it_is_returned(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), ino;

	fx.ctx.now = 5000;
	assert_int_equal(tmpfile_in(dir, S_IFREG | 0666, 0), 0);
	assert_true(fx.rep.entry.created);
	assert_int_equal(fx.rep.entry.attr.nlink, 0);
	assert_int_equal(fx.rep.entry.attr.mode, S_IFREG | 0640);
	assert_int_equal(fx.rep.entry.attr.uid, 10);
	assert_int_equal(fx.rep.entry.attr.gid, 20);
	assert_int_equal(fx.rep.entry.attr.btime, 5000);
	assert_int_equal(fx.rep.entry.parent.ino, 0);
	ino = fx.rep.entry.attr.ino;
	assert_int_equal(fx_attr(dir).mtime, 1000);
	fx_fill(ino, 0, 3);
	assert_int_equal(fx_attr(ino).npages, 3);
	assert_int_equal(fx_return_inode(ino), 0);
	assert_int_equal(fx_getattr(ino), -ESTALE);
	assert_int_equal(fx_usage().dirty_pages, 3);
}

static void tmpfile__brings_a_grant_along(void **state)
{
	assert_int_equal(tmpfile_in(ROOT_INO, S_IFREG | 0600, 12), 0);
	assert_int_equal(fx.rep.entry.ngrant, 1);
	assert_int_equal(fx.rep.entry.grant[0].npages, 12);
}

static void tmpfile__ends_with_its_session(void **state)
{
	assert_int_equal(tmpfile_in(ROOT_INO, S_IFREG | 0600, 0), 0);
	assert_int_equal(fx_usage().inodes, 2);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, fx.ctx.session), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_settle();
	assert_int_equal(fx_usage().inodes, 1);
}

static void tmpfile__errors(void **state)
{
	uint64_t file = fx_file(ROOT_INO, "file"), dir = fx_dir(ROOT_INO, "dir");

	assert_int_equal(tmpfile_in(ROOT_INO, S_IFDIR | 0700, 0), -EINVAL);
	assert_int_equal(tmpfile_in(file, S_IFREG | 0600, 0), -ENOTDIR);
	assert_int_equal(tmpfile_in(999, S_IFREG | 0600, 0), -ESTALE);
	assert_int_equal(fx_name(RPC_RMDIR, ROOT_INO, "dir"), 0);
	assert_int_equal(tmpfile_in(dir, S_IFREG | 0600, 0), -ENOENT);
}

static void link__names_what_had_no_name(void **state)
{
	uint64_t ino;

	assert_int_equal(tmpfile_in(ROOT_INO, S_IFREG | 0600, 0), 0);
	ino = fx.rep.entry.attr.ino;
	fx_fill(ino, 0, 3);
	fx.ctx.session++;
	assert_int_equal(link_to(ino, ROOT_INO, "stolen"), -ENOENT);
	fx.ctx.session--;
	assert_int_equal(link_to(ino, ROOT_INO, "named"), 0);
	assert_int_equal(fx.rep.entry.attr.nlink, 1);
	assert_int_equal(fx_return_inode(ino), 0);
	assert_int_equal(fx_lookup(ROOT_INO, "named"), 0);
	assert_int_equal(fx.rep.entry.attr.npages, 3);
}

/* ---- removing -------------------------------------------------------------------------------- */

static void unlink__keeps_the_inode_until_it_is_returned(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	fx_fill(ino, 0, 3);
	fx.ctx.now = 9000;
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_int_equal(fx.rep.remove.child.nlink, 0);
	assert_int_equal(fx.rep.remove.child.ctime, 9000);
	assert_int_equal(fx.rep.remove.parent.mtime, 9000);
	assert_int_equal(fx_lookup(ROOT_INO, "file"), -ENOENT);
	assert_int_equal(fx_attr(ino).npages, 3);
	assert_int_equal(fx_usage().inodes, 2);
	assert_int_equal(fx_return_inode(ino), 0);
	assert_int_equal(fx_getattr(ino), -ESTALE);
	assert_int_equal(fx_usage().inodes, 1);
	assert_int_equal(fx_usage().dirty_pages, 3);
	assert_int_equal(fx_return_inode(ino), 0);
}

static void unlink__of_one_of_two_names(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	link_to(ino, ROOT_INO, "other");
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_int_equal(fx.rep.remove.child.nlink, 1);
	assert_int_equal(fx_return_inode(ino), 0);
	assert_int_equal(fx_lookup(ROOT_INO, "other"), 0);
}

static void unlink__errors(void **state)
{
	fx_dir(ROOT_INO, "dir");
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "dir"), -EISDIR);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "none"), -ENOENT);
	assert_int_equal(fx_name(RPC_UNLINK, 999, "none"), -ESTALE);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "."), -EINVAL);
}

static void return__only_the_keeper_can(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), first = fx.ctx.session;

	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	fx.ctx.session = fx_new_session();
	assert_int_equal(fx_return_inode(ino), 0);
	assert_int_equal(fx_getattr(ino), 0);
	fx.ctx.session = first;
	assert_int_equal(fx_return_inode(ino), 0);
	assert_int_equal(fx_getattr(ino), -ESTALE);
}

static void rmdir__takes_empty_directories_only(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir");

	fx_file(dir, "file");
	assert_int_equal(fx_name(RPC_RMDIR, ROOT_INO, "dir"), -ENOTEMPTY);
	assert_int_equal(fx_name(RPC_RMDIR, dir, "file"), -ENOTDIR);
	assert_int_equal(fx_name(RPC_RMDIR, ROOT_INO, "none"), -ENOENT);
	assert_int_equal(fx_name(RPC_UNLINK, dir, "file"), 0);
	assert_int_equal(fx_name(RPC_RMDIR, ROOT_INO, "dir"), 0);
	assert_int_equal(fx.rep.remove.child.nlink, 0);
	assert_int_equal(fx.rep.remove.parent.nlink, 2);
	/* A process may have it open: nothing can be made in it. */
	assert_int_equal(fx_make(RPC_CREATE, dir, "late", FILE_MODE), -ENOENT);
	assert_int_equal(fx_lookup(dir, "late"), -ENOENT);
	assert_int_equal(fx_lookup(dir, ".."), 0);
	assert_int_equal(fx_return_inode(dir), 0);
	assert_int_equal(fx_getattr(dir), -ESTALE);
}

/* ---- rename ---------------------------------------------------------------------------------- */

static void rename__moves_a_file(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "a"), dir = fx_dir(ROOT_INO, "dir");

	fx.ctx.now = 3000;
	assert_int_equal(fx_rename(ROOT_INO, "a", dir, "b", 0), 0);
	assert_int_equal(fx.rep.rename.moved.ino, ino);
	assert_int_equal(fx.rep.rename.moved.ctime, 3000);
	assert_int_equal(fx.rep.rename.moved.mtime, 1000);
	assert_int_equal(fx.rep.rename.other.ino, 0);
	assert_int_equal(fx.rep.rename.parent.mtime, 3000);
	assert_int_equal(fx.rep.rename.new_parent.ino, dir);
	assert_int_equal(fx.rep.rename.new_parent.mtime, 3000);
	assert_int_equal(fx_lookup(ROOT_INO, "a"), -ENOENT);
	assert_int_equal(fx_lookup(dir, "b"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, ino);
}

static void rename__moves_a_directory(void **state)
{
	uint64_t from = fx_dir(ROOT_INO, "from"), to = fx_dir(ROOT_INO, "to");
	uint64_t dir = fx_dir(from, "dir");

	assert_int_equal(fx_rename(from, "dir", to, "dir", 0), 0);
	assert_int_equal(fx_attr(from).nlink, 2);
	assert_int_equal(fx_attr(to).nlink, 3);
	assert_int_equal(fx_lookup(dir, ".."), 0);
	assert_int_equal(fx.rep.entry.attr.ino, to);
	assert_int_equal(fx_rename(to, "dir", to, "again", 0), 0);
	assert_int_equal(fx_attr(to).nlink, 3);
}

static void rename__replaces_a_file(void **state)
{
	uint64_t a = fx_file(ROOT_INO, "a"), b = fx_file(ROOT_INO, "b");

	fx_fill(b, 0, 2);
	assert_int_equal(fx_rename(ROOT_INO, "a", ROOT_INO, "b", 0), 0);
	assert_int_equal(fx.rep.rename.other.ino, b);
	assert_int_equal(fx.rep.rename.other.nlink, 0);
	assert_int_equal(fx_lookup(ROOT_INO, "b"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, a);
	assert_int_equal(fx_attr(b).npages, 2);
	assert_int_equal(fx_return_inode(b), 0);
	assert_int_equal(fx_getattr(b), -ESTALE);
}

static void rename__replaces_an_empty_directory(void **state)
{
	uint64_t a = fx_dir(ROOT_INO, "a"), b = fx_dir(ROOT_INO, "b");

	fx_file(b, "file");
	assert_int_equal(fx_rename(ROOT_INO, "a", ROOT_INO, "b", 0), -ENOTEMPTY);
	assert_int_equal(fx_name(RPC_UNLINK, b, "file"), 0);
	assert_int_equal(fx_rename(ROOT_INO, "a", ROOT_INO, "b", 0), 0);
	assert_int_equal(fx.rep.rename.moved.ino, a);
	assert_int_equal(fx.rep.rename.other.nlink, 0);
	assert_int_equal(fx_attr(ROOT_INO).nlink, 3);
}

static void rename__errors(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), sub = fx_dir(dir, "sub");

	fx_file(ROOT_INO, "file");
	assert_int_equal(fx_rename(ROOT_INO, "none", ROOT_INO, "x", 0), -ENOENT);
	assert_int_equal(fx_rename(ROOT_INO, "file", ROOT_INO, "dir", 0), -EISDIR);
	assert_int_equal(fx_rename(ROOT_INO, "dir", ROOT_INO, "file", 0), -ENOTDIR);
	assert_int_equal(fx_rename(ROOT_INO, "dir", dir, "x", 0), -EINVAL);
	assert_int_equal(fx_rename(ROOT_INO, "dir", sub, "x", 0), -EINVAL);
	assert_int_equal(fx_rename(dir, "sub", ROOT_INO, "dir", 0), -ENOTEMPTY);
	assert_int_equal(fx_rename(ROOT_INO, "file", 999, "x", 0), -ESTALE);
	assert_int_equal(fx_rename(ROOT_INO, "file", ROOT_INO, "x", 8), -EINVAL);
	assert_int_equal(
		fx_rename(ROOT_INO, "file", ROOT_INO, "dir", RENAME_EXCHANGE | RENAME_WHITEOUT),
		-EINVAL);
	assert_int_equal(
		fx_rename(ROOT_INO, "file", ROOT_INO, "x", RENAME_NOREPLACE | RENAME_EXCHANGE),
		-EINVAL);
}

/* A rename within a directory works at any depth. A move of a directory so far down is refused. */
static void rename__far_down(void **state)
{
	uint64_t bottom = ROOT_INO;

	fx_dir(ROOT_INO, "moving");
	fx_file(ROOT_INO, "file");
	for (unsigned i = 0; i < 4097; i++)
		bottom = fx_dir(bottom, "d");
	fx_dir(bottom, "a");
	fx_dir(bottom, "b");
	assert_int_equal(fx_rename(bottom, "a", bottom, "c", 0), 0);
	assert_int_equal(fx_rename(bottom, "c", bottom, "b", RENAME_EXCHANGE), 0);
	assert_int_equal(fx_rename(ROOT_INO, "file", bottom, "file", 0), 0);
	assert_int_equal(fx_rename(bottom, "b", ROOT_INO, "b", 0), 0);
	assert_int_equal(fx_rename(ROOT_INO, "moving", bottom, "moving", 0), -ELOOP);
}

static void rename__noreplace(void **state)
{
	fx_file(ROOT_INO, "a");
	fx_file(ROOT_INO, "b");
	assert_int_equal(fx_rename(ROOT_INO, "a", ROOT_INO, "b", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(fx_rename(ROOT_INO, "a", ROOT_INO, "c", RENAME_NOREPLACE), 0);
}

static void rename__of_two_names_of_one_inode_does_nothing(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "a");

	link_to(ino, ROOT_INO, "b");
	assert_int_equal(fx_rename(ROOT_INO, "a", ROOT_INO, "b", 0), 0);
	assert_int_equal(fx.rep.rename.other.ino, 0);
	assert_int_equal(fx_lookup(ROOT_INO, "a"), 0);
	assert_int_equal(fx_lookup(ROOT_INO, "b"), 0);
	assert_int_equal(fx_rename(ROOT_INO, "a", ROOT_INO, "a", 0), 0);
	assert_int_equal(fx_lookup(ROOT_INO, "a"), 0);
}

static void rename__exchange(void **state)
{
	uint64_t one = fx_dir(ROOT_INO, "one"), two = fx_dir(ROOT_INO, "two");
	uint64_t file = fx_file(one, "x"), dir = fx_dir(two, "y"), below;

	assert_int_equal(fx_rename(one, "x", two, "none", RENAME_EXCHANGE), -ENOENT);
	assert_int_equal(fx_rename(one, "x", two, "y", RENAME_EXCHANGE), 0);
	assert_int_equal(fx.rep.rename.moved.ino, file);
	assert_int_equal(fx.rep.rename.other.ino, dir);
	assert_int_equal(fx.rep.rename.other.nlink, 2);
	assert_int_equal(fx_lookup(two, "y"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, file);
	assert_int_equal(fx_lookup(one, "x"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, dir);
	assert_int_equal(fx_attr(one).nlink, 3);
	assert_int_equal(fx_attr(two).nlink, 2);
	assert_int_equal(fx_lookup(dir, ".."), 0);
	assert_int_equal(fx.rep.entry.attr.ino, one);

	below = fx_file(dir, "below");
	assert_int_not_equal(below, 0);
	assert_int_equal(fx_rename(ROOT_INO, "one", dir, "below", RENAME_EXCHANGE), -EINVAL);
	assert_int_equal(fx_rename(dir, "below", ROOT_INO, "one", RENAME_EXCHANGE), -EINVAL);
}

static int rename_leaving_whiteout(uint64_t parent, const char *name, uint64_t new_parent,
	const char *new_name, uint32_t flags)
{
	return FX_RUN(.op = RPC_RENAME, .rename = {parent, new_parent, flags | RENAME_WHITEOUT,
						fx_str(name), fx_str(new_name), 5, 6});
}

static void rename__leaves_a_whiteout(void **state)
{
	uint64_t one = fx_dir(ROOT_INO, "one"), sub = fx_dir(one, "sub");
	uint64_t a = fx_file(ROOT_INO, "a"), b = fx_file(ROOT_INO, "b");

	assert_int_equal(
		rename_leaving_whiteout(ROOT_INO, "a", ROOT_INO, "b", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(rename_leaving_whiteout(ROOT_INO, "a", ROOT_INO, "b", 0), 0);
	assert_int_equal(fx.rep.rename.moved.ino, a);
	assert_int_equal(fx.rep.rename.other.ino, b);
	assert_int_equal(fx.rep.rename.other.nlink, 0);
	assert_int_equal(fx_lookup(ROOT_INO, "a"), 0);
	assert_int_equal(fx.rep.entry.attr.mode, S_IFCHR);
	assert_int_equal(fx.rep.entry.attr.rdev, 0);
	assert_int_equal(fx.rep.entry.attr.nlink, 1);
	assert_int_equal(fx.rep.entry.attr.uid, 5);
	assert_int_equal(fx.rep.entry.attr.gid, 6);
	assert_int_equal(
		rename_leaving_whiteout(one, "sub", ROOT_INO, "moved", RENAME_NOREPLACE), 0);
	assert_int_equal(fx_attr(one).nlink, 2);
	assert_int_equal(fx_lookup(ROOT_INO, "moved"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, sub);
	assert_int_equal(fx_lookup(one, "sub"), 0);
	assert_int_equal(fx.rep.entry.attr.mode, S_IFCHR);
}

/* ---- names that are another inode's by now --------------------------------------------------- */

static int remove_expected(enum rpc_op op, const char *name, uint64_t ino, bool exactly)
{
	return FX_RUN(.op = op,
		.name = {.parent = ROOT_INO, .name = fx_str(name), .expected = {ino, exactly}});
}

static void remove__of_another_inode_than_a_directory_that_goes_on(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), other = fx_dir(ROOT_INO, "other");
	struct attr root = fx_attr(ROOT_INO);

	assert_int_equal(remove_expected(RPC_RMDIR, "dir", other, false), -ESTALE);
	assert_int_equal(fx_attr(ROOT_INO).nlink, root.nlink);
	assert_int_equal(fx_attr(dir).nlink, 2);
	/* Errors that come anyway come first. */
	assert_int_equal(remove_expected(RPC_RMDIR, "none", dir, false), -ENOENT);
	fx_file(dir, "below");
	assert_int_equal(remove_expected(RPC_RMDIR, "dir", other, false), -ENOTEMPTY);
	assert_int_equal(fx_name(RPC_UNLINK, dir, "below"), 0);
	assert_int_equal(remove_expected(RPC_RMDIR, "dir", dir, false), 0);
	/* The expected directory does not exist any more, so this removes the other one. */
	assert_int_equal(remove_expected(RPC_RMDIR, "other", dir, false), 0);
}

static void remove__of_another_inode_than_what_may_be_removed(void **state)
{
	uint64_t file = fx_file(ROOT_INO, "file"), other = fx_file(ROOT_INO, "other");

	assert_int_equal(remove_expected(RPC_UNLINK, "file", other, true), -ESTALE);
	assert_int_equal(fx_attr(file).nlink, 1);
	assert_int_equal(remove_expected(RPC_UNLINK, "other", other, true), 0);
	assert_int_equal(remove_expected(RPC_UNLINK, "file", other, true), -ESTALE);
	assert_int_equal(remove_expected(RPC_UNLINK, "file", other, false), 0);
}

static int rename_expected(const char *from, struct rpc_name_of a, const char *to,
	struct rpc_name_of b, uint32_t flags)
{
	return FX_RUN(.op = RPC_RENAME, .rename = {.parent = ROOT_INO,
						.new_parent = ROOT_INO,
						.flags = flags,
						.name = fx_str(from),
						.new_name = fx_str(to),
						.expected = a,
						.new_expected = b});
}

static void expect_name(const char *name, uint64_t ino)
{
	assert_int_equal(fx_lookup(ROOT_INO, name), 0);
	assert_int_equal(fx.rep.entry.attr.ino, ino);
}

#define ANY ((struct rpc_name_of){NAME_OF_ANY, false})

static void rename__over_another_inode_than_a_directory_that_goes_on(void **state)
{
	uint64_t a = fx_dir(ROOT_INO, "a"), b = fx_dir(ROOT_INO, "b"),
		 old = fx_dir(ROOT_INO, "old");
	const struct rpc_name_of its_a = {a, false}, its_old = {old, false};

	assert_int_equal(rename_expected("a", ANY, "b", its_old, 0), -ESTALE);
	assert_int_equal(rename_expected("a", ANY, "free", its_old, 0), -ESTALE);
	assert_int_equal(rename_expected("none", ANY, "b", its_old, 0), -ENOENT);
	assert_int_equal(rename_expected("a", ANY, "b", its_old, RENAME_NOREPLACE), -EEXIST);
	expect_name("a", a);
	expect_name("b", b);
	assert_int_equal(fx_name(RPC_RMDIR, ROOT_INO, "old"), 0);
	assert_int_equal(rename_expected("a", its_a, "b", its_old, 0), 0);
	expect_name("b", a);
}

static void rename__of_other_inodes_than_what_may_be_removed(void **state)
{
	uint64_t a = fx_file(ROOT_INO, "a"), b = fx_file(ROOT_INO, "b");
	const struct rpc_name_of just_a = {a, true}, just_b = {b, true};
	const struct rpc_name_of none = {NAME_OF_NONE, true};

	assert_int_equal(rename_expected("a", just_b, "b", just_b, 0), -ESTALE);
	assert_int_equal(rename_expected("a", just_a, "b", just_a, 0), -ESTALE);
	assert_int_equal(rename_expected("a", just_a, "b", none, 0), -ESTALE);
	assert_int_equal(rename_expected("a", just_a, "c", just_b, 0), -ESTALE);
	assert_int_equal(rename_expected("a", just_a, "b", just_a, RENAME_EXCHANGE), -ESTALE);
	expect_name("a", a);
	expect_name("b", b);
	assert_int_equal(rename_expected("a", just_a, "b", just_b, RENAME_EXCHANGE), 0);
	assert_int_equal(rename_expected("a", just_b, "b", ANY, 0), 0);
	assert_int_equal(rename_expected("b", just_b, "c", none, 0), 0);
	expect_name("c", b);
}

/* ---- setattr --------------------------------------------------------------------------------- */

static void setattr__changes_what_is_asked_for(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct rpc_setattr set = {.ino = ino,
		.mode = 04711,
		.uid = 1,
		.gid = 2,
		.atime = 50,
		.mtime = 60,
		.ctime = 70};
	struct attr a;

	fx.ctx.now = 2000;
	set.valid = SET_MODE;
	assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = set), 0);
	a = fx.rep.attr.attr;
	assert_int_equal(a.mode, S_IFREG | 04711);
	assert_int_equal(a.uid, 10);
	assert_int_equal(a.mtime, 1000);
	assert_int_equal(a.ctime, 2000);

	set.valid = SET_UID | SET_GID | SET_ATIME | SET_MTIME | SET_CTIME;
	assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = set), 0);
	a = fx_attr(ino);
	assert_int_equal(a.uid, 1);
	assert_int_equal(a.gid, 2);
	assert_int_equal(a.atime, 50);
	assert_int_equal(a.mtime, 60);
	assert_int_equal(a.ctime, 70);

	set.valid = SET_ATIME_NOW | SET_MTIME_NOW;
	assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = set), 0);
	a = fx_attr(ino);
	assert_int_equal(a.atime, 2000);
	assert_int_equal(a.mtime, 2000);
	assert_int_equal(a.ctime, 2000);
}

static void setattr__errors(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), dir = fx_dir(ROOT_INO, "dir");

	assert_int_equal(fx_truncate(dir, 0), -EISDIR);
	assert_int_equal(fx_make(RPC_SYMLINK, ROOT_INO, "link", 0), 0);
	assert_int_equal(fx_truncate(fx.rep.entry.attr.ino, 0), -EINVAL);
	assert_int_equal(fx_truncate(ino, (uint64_t)INT64_MAX + 1), -EFBIG);
	assert_int_equal(fx_truncate(ino, INT64_MAX), 0);
	assert_int_equal(fx_truncate(999, 0), -ESTALE);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fx_set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(root__is_there),
		CASE(lookup__finds_what_was_made),
		CASE(lookup__errors),
		CASE(lookup__dots),
		CASE(getattr__of_no_inode_is_stale),
		CASE(execute__unknown_operation),
		CASE(execute__read_only_session_changes_nothing),
		CASE(create__sets_attributes_and_touches_the_directory),
		CASE(create__errors),
		CASE(create__opens_an_existing_file),
		CASE(create__brings_a_grant_along),
		CASE(create__goes_on_without_free_pages),
		CASE(setgid_directory__gives_its_group),
		CASE(mknod__makes_every_type),
		CASE(mkdir__counts_links),
		CASE(symlink__keeps_targets_of_every_length),
		CASE(readlink__of_a_file_is_invalid),
		CASE(link__adds_a_name),
		CASE(link__errors),
		CASE(tmpfile__is_kept_until_it_is_returned),
		CASE(tmpfile__brings_a_grant_along),
		CASE(tmpfile__ends_with_its_session),
		CASE(tmpfile__errors),
		CASE(link__names_what_had_no_name),
		CASE(unlink__keeps_the_inode_until_it_is_returned),
		CASE(unlink__of_one_of_two_names),
		CASE(unlink__errors),
		CASE(return__only_the_keeper_can),
		CASE(rmdir__takes_empty_directories_only),
		CASE(rename__moves_a_file),
		CASE(rename__moves_a_directory),
		CASE(rename__replaces_a_file),
		CASE(rename__replaces_an_empty_directory),
		CASE(rename__errors),
		CASE(rename__far_down),
		CASE(rename__noreplace),
		CASE(rename__of_two_names_of_one_inode_does_nothing),
		CASE(rename__exchange),
		CASE(rename__leaves_a_whiteout),
		CASE(remove__of_another_inode_than_a_directory_that_goes_on),
		CASE(remove__of_another_inode_than_what_may_be_removed),
		CASE(rename__over_another_inode_than_a_directory_that_goes_on),
		CASE(rename__of_other_inodes_than_what_may_be_removed),
		CASE(setattr__changes_what_is_asked_for),
		CASE(setattr__errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
