/* syscalls_limits.c - statistics of the filesystem and limits of its files. */
#include "syscalls.h"

#include <sys/statfs.h>
#include <sys/statvfs.h>

static void of_the_filesystem(void)
{
	struct statvfs vfs, other;

	works(statvfs(".", &vfs));
	equal(vfs.f_bsize, 4096);
	equal(vfs.f_frsize, 4096);
	equal(vfs.f_namemax, 255);
	holds(vfs.f_blocks > 0 && vfs.f_bfree <= vfs.f_blocks && vfs.f_bavail <= vfs.f_bfree);
	holds(vfs.f_files > 0 && vfs.f_ffree > 0 && vfs.f_ffree <= vfs.f_files);
	works(fstatvfs((int)works(open(".", O_RDONLY)), &other));
	equal(other.f_blocks, vfs.f_blocks);
	fails(fstatvfs(99, &other), EBADF);
}

static void of_its_type(void)
{
	struct statfs fs;

	works(statfs(".", &fs));
	equal(fs.f_type, 0x65735546);
	equal(fs.f_namelen, 255);
}

static void of_paths(void)
{
	equal(pathconf(".", _PC_NAME_MAX), 255);
	equal(pathconf(".", _PC_PATH_MAX), 4096);
	equal(pathconf(".", _PC_PIPE_BUF), 4096);
	equal(pathconf(".", _PC_CHOWN_RESTRICTED), 1);
	equal(pathconf(".", _PC_NO_TRUNC), 1);
	fails(pathconf("missing", _PC_NAME_MAX), ENOENT);
}

static void of_a_file(void)
{
	struct stat file, folder, again;

	make("f", "text");
	works(stat("f", &file));
	works(stat(".", &folder));
	equal(file.st_dev, folder.st_dev);
	holds(file.st_ino != folder.st_ino);
	equal(file.st_nlink, 1);
	equal(file.st_uid, geteuid());
	equal(file.st_gid, getegid());
	equal(file.st_size, 4);
	equal(file.st_blocks, 8);
	holds(file.st_blksize >= 4096 && file.st_blksize % 4096 == 0);
	works(fstat((int)works(open("f", O_RDONLY)), &again));
	equal(again.st_ino, file.st_ino);
	works(rename("f", "g"));
	equal(inode_of("g"), file.st_ino);
}

static void of_statx(void)
{
	struct statx stx;
	struct stat st;

	make("f", "text");
	works(stat("f", &st));
	works(statx(AT_FDCWD, "f", AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &stx));
	equal(stx.stx_mask & STATX_BASIC_STATS, STATX_BASIC_STATS);
	equal(stx.stx_ino, st.st_ino);
	equal(stx.stx_size, 4);
	equal(stx.stx_mode, st.st_mode);
	equal(stx.stx_mtime.tv_nsec, st.st_mtim.tv_nsec);
	works(statx((int)works(open("f", O_PATH)), "", AT_EMPTY_PATH, STATX_SIZE, &stx));
	works(statx(AT_FDCWD, "f", AT_STATX_DONT_SYNC, STATX_ALL, &stx));
	fails(statx(AT_FDCWD, "f", 0x80000000U, STATX_ALL, &stx), EINVAL);
	fails(statx(AT_FDCWD, "f", 0, STATX__RESERVED, &stx), EINVAL);
}

static void of_space(void)
{
	static char data[1 << 20];
	struct statvfs before, after;
	uint64_t taken;
	int fd;

	works(statvfs(".", &before));
	memset(data, 'd', sizeof(data));
	fd = (int)works(open("f", O_WRONLY | O_CREAT, 0644));
	equal(write(fd, data, sizeof(data)), sizeof(data));
	works(fsync(fd));
	works(statvfs(".", &after));
	/* Pages that earlier cases have removed may become free meanwhile. */
	taken = before.f_bfree - after.f_bfree;
	holds(taken <= sizeof(data) / 4096 && taken >= sizeof(data) / 4096 - 16);
	equal(after.f_blocks, before.f_blocks);
	/* A removed file's pages become free some time after its close. The next case that counts
	 * would find them, so they are freed now. */
	works(ftruncate(fd, 0));
	works(statvfs(".", &after));
	holds(after.f_bfree >= before.f_bfree);
}

static const struct syscall_case table[] = {
	{"statvfs", of_the_filesystem},
	{"statfs", of_its_type, .differs = "tmpfs has another type"},
	{"pathconf", of_paths},
	{"stat of a file", of_a_file},
	{"statx", of_statx},
	{"what is written is not free any more", of_space},
};
SYSCALL_AREA(area_limits, table);
