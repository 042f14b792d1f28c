/* memdir.c - makes the memory directory or takes it over. */
#include "server/memory/memdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/conf/conf.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/memory/memdir_files.h"

enum {
	BOOT_ID_BYTES = 64,
	BOOT_ID_DIGITS = 36,
	STORE_ID_BYTES_MAX = 32,
	STORE_ID_TEXT = 2 * STORE_ID_BYTES_MAX + 1,
};

/* ---- the lock -------------------------------------------------------------------------------- */

/* The process id in the lock's file. */
static void read_holder(int fd, char *holder, size_t len)
{
	ssize_t n = read(fd, holder, len - 1);

	holder[n > 0 ? strcspn(holder, "\n") : 0] = '\0';
	if (!holder[0])
		snprintf(holder, len, "unknown");
}

static int take_lock(struct memdir *dir)
{
	char path[1200], holder[32] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/lock", dir->path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return memdir_files_fail("open", path, -errno);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		read_holder(fd, holder, sizeof(holder));
		log_error("memory directory: %s is in use by another server (pid %s): stop it, or "
			  "name another directory (memory_dir)",
			dir->path, holder);
		close(fd);
		return -EAGAIN;
	}
	if (ftruncate(fd, 0) != 0 || dprintf(fd, "%d\n", getpid()) < 0)
		log_warning("memory directory: can't write to %s: %s", path, errno_text(errno));
	dir->lock_fd = fd;
	return 0;
}

/* ---- the boot -------------------------------------------------------------------------------- */

static int start_empty(struct memdir *dir)
{
	char path[1200];
	int err = 0;

	snprintf(path, sizeof(path), "%s/store_id", dir->path);
	if (unlink(path) != 0 && errno != ENOENT)
		err = -errno;
	if (!err)
		err = memdir_files_remove(dir->store);
	if (!err)
		err = memdir_files_remove(dir->regions);
	if (!err)
		err = memdir_files_remove(dir->peers);
	if (err)
		log_error("memory directory: can't empty %s: %s", dir->path, errno_text(err));
	return err;
}

/* A first start that was killed leaves files of length 0. */
static bool has_bytes(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	bool found = false;
	struct stat st;

	if (!d)
		return false;
	while (!found && (entry = readdir(d)))
		found = entry->d_name[0] != '.' && fstatat(dirfd(d), entry->d_name, &st, 0) == 0 &&
			st.st_size > 0;
	closedir(d);
	return found;
}

/* Without a store nobody can tell what regions hold. A new store would take their pages for
 * zeros. */
static int judge_store(struct memdir *dir)
{
	char path[1200];

	dir->content = has_bytes(dir->store) ? MEMDIR_KEPT : MEMDIR_NEW;
	if (dir->content == MEMDIR_KEPT)
		return 0;
	snprintf(path, sizeof(path), "%s/store_id", dir->path);
	if (access(path, F_OK) != 0 || !has_bytes(dir->regions))
		return 0;
	log_error("memory directory: the store in %s is missing or empty, and the regions in %s "
		  "belong to one",
		dir->store, dir->regions);
	memdir_tell_remedy(dir, -EBADMSG);
	return -EBADMSG;
}

static bool is_boot_id(const char *text)
{
	return strlen(text) == BOOT_ID_DIGITS &&
	       strspn(text, "0123456789abcdef-") == BOOT_ID_DIGITS;
}

/* Finds out what the directory holds, and changes nothing. current: this boot's id. */
static int judge(struct memdir *dir, char current[BOOT_ID_BYTES])
{
	char path[1200], stored[BOOT_ID_BYTES] = "";
	int err = memdir_files_read_line("/proc/sys/kernel/random/boot_id", current, BOOT_ID_BYTES);

	if (err) {
		log_error("can't read the machine's boot id: %s", errno_text(err));
		return err;
	}
	snprintf(path, sizeof(path), "%s/boot_id", dir->path);
	if (memdir_files_read_line(path, stored, sizeof(stored)) == 0 &&
		strcmp(stored, current) == 0) {
		dir->content = MEMDIR_UNRESTORED;
		return memdir_is_restoring(dir) ? 0 : judge_store(dir);
	}
	dir->content = is_boot_id(stored) ? MEMDIR_EARLIER_BOOT : MEMDIR_NEW;
	if (dir->content == MEMDIR_NEW && has_bytes(dir->store)) {
		log_error("memory directory: %s is missing or damaged: whether the store beside it "
			  "is of this boot can't be told",
			path);
		memdir_tell_remedy(dir, -EBADMSG);
		return -EBADMSG;
	}
	return 0;
}

/* Afterwards the directory holds a usable store, or it is empty and marked with this boot's id. */
static int take_over(struct memdir *dir)
{
	char path[1200], current[BOOT_ID_BYTES];
	int err = judge(dir, current);

	if (err || dir->content == MEMDIR_KEPT)
		return err;
	if (dir->content == MEMDIR_UNRESTORED)
		log_notice(
			"%s holds a part of a snapshot, whose restoration was not ended: starting "
			"empty",
			dir->path);
	else if (dir->content == MEMDIR_EARLIER_BOOT)
		log_notice("%s is of an earlier boot of this machine: starting empty", dir->path);
	err = start_empty(dir);
	if (err)
		return err;
	if (dir->content == MEMDIR_UNRESTORED)
		return memdir_end_restore(dir);
	snprintf(path, sizeof(path), "%s/boot_id", dir->path);
	err = memdir_files_write_line(path, current);
	if (err)
		log_error("memory directory: can't write %s: %s", path, errno_text(err));
	return err;
}

/* ---- the store ------------------------------------------------------------------------------- */

static void format_store_id(const uint8_t *id, size_t len, char text[STORE_ID_TEXT])
{
	text[0] = '\0';
	for (size_t i = 0; i < len && i < STORE_ID_BYTES_MAX; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

static void store_id_path(const struct memdir *dir, char *path, size_t len)
{
	snprintf(path, len, "%s/store_id", dir->path);
}

bool memdir_has_store_id(const struct memdir *dir)
{
	char path[1200];

	store_id_path(dir, path, sizeof(path));
	return access(path, F_OK) == 0;
}

int memdir_check_store_id(
	const struct memdir *dir, const uint8_t *id, size_t len, char *why, size_t whylen)
{
	char path[1200], text[STORE_ID_TEXT], stored[STORE_ID_TEXT + 1] = "";
	int err;

	if (!memdir_has_store_id(dir))
		return 0;
	format_store_id(id, len, text);
	store_id_path(dir, path, sizeof(path));
	err = memdir_files_read_line(path, stored, sizeof(stored));
	if (!err && strcmp(stored, text) == 0)
		return 0;
	snprintf(why, whylen, "the regions belong to store '%s' (%s), and in %s is store '%s'",
		stored, path, dir->store, text);
	return err ? err : -EBADMSG;
}

int memdir_bind_store(const struct memdir *dir, const uint8_t *id, size_t len)
{
	char path[1200], text[STORE_ID_TEXT], why[4096];
	int err = memdir_check_store_id(dir, id, len, why, sizeof(why));

	if (err)
		log_error("memory directory: %s", why);
	if (err || memdir_has_store_id(dir))
		return err;
	format_store_id(id, len, text);
	store_id_path(dir, path, sizeof(path));
	err = memdir_files_write_line(path, text);
	if (err)
		log_error("memory directory: can't write %s: %s", path, errno_text(err));
	return err;
}

void memdir_tell_remedy(const struct memdir *dir, int err)
{
	if (err == -EPROTONOSUPPORT)
		log_error("memory directory: %s was left as it is: start the rmemfs-server that "
			  "made it, or, to begin empty, move it away or remove it with all files: "
			  "rm -r %s",
			dir->path, dir->path);
	else if (err == -EBADMSG)
		log_error(
			"memory directory: %s is not served and was left as it is; its files can't "
			"be recovered from it. To begin empty, move it away or remove it: rm -r %s",
			dir->path, dir->path);
}

static void set_paths(struct memdir *dir, const char *path)
{
	snprintf(dir->path, sizeof(dir->path), "%s", path);
	snprintf(dir->regions, sizeof(dir->regions), "%s/regions", path);
	snprintf(dir->store, sizeof(dir->store), "%s/store", path);
	snprintf(dir->peers, sizeof(dir->peers), "%s/peers", path);
}

static void restore_mark(const struct memdir *dir, char *path, size_t len)
{
	snprintf(path, len, "%s/restoring", dir->path);
}

int memdir_begin_restore(const struct memdir *dir)
{
	char path[1200];
	int err;

	restore_mark(dir, path, sizeof(path));
	err = memdir_files_write_line(path, "incomplete");
	if (err)
		log_error("memory directory: can't write %s: %s", path, errno_text(err));
	return err;
}

bool memdir_is_restoring(const struct memdir *dir)
{
	char path[1200];

	restore_mark(dir, path, sizeof(path));
	return access(path, F_OK) == 0;
}

bool memdir_is_new(const struct memdir *dir)
{
	return !has_bytes(dir->store);
}

int memdir_end_restore(const struct memdir *dir)
{
	char path[1200];
	int err;

	restore_mark(dir, path, sizeof(path));
	err = unlink(path) ? -errno : 0;
	if (err)
		log_error("memory directory: can't remove %s: %s", path, errno_text(err));
	return err;
}

int memdir_open(const char *path, struct memdir *dir)
{
	uint64_t block;
	int err = memdir_files_check_path(path);

	if (err)
		return err;
	set_paths(dir, path);
	err = memdir_files_make_directory(dir->path);
	if (!err)
		err = memdir_files_check_filesystem(dir->path, false, &block);
	if (err)
		return err;
	err = take_lock(dir);
	CRASH_POINT("memdir.locked");
	if (!err)
		err = memdir_files_make_directory(dir->regions);
	if (!err)
		err = memdir_files_make_directory(dir->store);
	if (!err)
		err = memdir_files_make_directory(dir->peers);
	if (!err)
		err = memdir_files_check_filesystem(dir->regions, true, &dir->regions_block);
	if (!err)
		err = memdir_files_check_filesystem(dir->store, false, &block);
	if (!err)
		err = take_over(dir);
	return err;
}

/* ---- inspecting ------------------------------------------------------------------------------ */

static int first_of(int err, int later)
{
	return err ? err : later;
}

/* For a directory that is missing: whether a start could make it. */
static int look_above(const char *path)
{
	autofree char *copy = strdup(path);
	char *above = copy ? dirname(copy) : NULL;
	uint64_t block;

	if (!above)
		return -ENOMEM;
	if (faccessat(AT_FDCWD, above, W_OK | X_OK, AT_EACCESS) != 0)
		return memdir_files_fail("make", path, -errno);
	return memdir_files_check_filesystem(above, false, &block);
}

/* A subdirectory, which may be missing. */
static int look_at_part(const char *path, bool huge_ok, uint64_t *block)
{
	int err;

	if (access(path, F_OK) != 0 && errno == ENOENT)
		return 0;
	err = memdir_files_check_directory(path);
	err = first_of(err, memdir_files_check_filesystem(path, huge_ok, block));
	if (!err && faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS) != 0)
		return memdir_files_fail("use", path, -errno);
	return err;
}

/* Does not disturb the server that holds the lock. */
static int look_at_lock(struct memdir *dir, char holder[MEMDIR_HOLDER_TEXT])
{
	char path[1200];

	snprintf(path, sizeof(path), "%s/lock", dir->path);
	dir->lock_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (dir->lock_fd < 0 && errno == ENOENT &&
		faccessat(AT_FDCWD, dir->path, W_OK | X_OK, AT_EACCESS) == 0)
		return 0;
	if (dir->lock_fd < 0)
		return memdir_files_fail("open", path, -errno);
	if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	read_holder(dir->lock_fd, holder, MEMDIR_HOLDER_TEXT);
	return 0;
}

int memdir_look(const char *path, struct memdir *dir, char holder[MEMDIR_HOLDER_TEXT])
{
	char current[BOOT_ID_BYTES];
	uint64_t block;
	int err = memdir_files_check_path(path);

	*dir = (struct memdir){.lock_fd = -1, .regions_block = PAGE_BYTES};
	holder[0] = '\0';
	if (err)
		return err;
	set_paths(dir, path);
	if (access(path, F_OK) != 0 && errno == ENOENT)
		return look_above(path);
	err = memdir_files_check_directory(dir->path);
	if (!err)
		err = memdir_files_check_filesystem(dir->path, false, &block);
	/* If it is another user's, nothing more can be said. */
	if (err)
		return err;
	err = look_at_part(dir->regions, true, &dir->regions_block);
	err = first_of(err, look_at_part(dir->store, false, &block));
	err = first_of(err, look_at_part(dir->peers, false, &block));
	err = first_of(err, look_at_lock(dir, holder));
	if (holder[0])
		dir->content = MEMDIR_KEPT;
	return err || holder[0] ? err : judge(dir, current);
}

void memdir_warn_of_logout(const struct memdir *dir)
{
	/* logind leaves root and the system users alone, whose ids are lower. */
	enum { LOGIN_UID_MIN = 1000, NOBODY_UID = 65534 };
	uid_t uid = geteuid();
	autofree char *real = realpath(dir->path, NULL);
	char user[MEMDIR_USER_TEXT];

	if (uid < LOGIN_UID_MIN || uid == NOBODY_UID || !real ||
		strncmp(real, "/dev/shm/", strlen("/dev/shm/")) != 0)
		return;
	log_warning("memory directory: %s is lost when user %s logs out: systemd-logind removes "
		    "that user's files in /dev/shm then (RemoveIPC). Run the server as a system "
		    "user, as the unit does, or set RemoveIPC=no in logind.conf",
		dir->path, memdir_files_user(uid, user));
}

/* ---- for checks ------------------------------------------------------------------------------ */

/* A first start makes the lock, regions/, and then store/; it may have been killed between them. */
static bool is_foreign(const struct memdir *dir)
{
	struct dirent *entry;
	bool foreign = false;
	DIR *d;

	if (access(dir->store, F_OK) == 0)
		return false;
	d = opendir(dir->path);
	while (d && (entry = readdir(d)))
		foreign |= entry->d_name[0] != '.' && strcmp(entry->d_name, "lock") != 0 &&
			   strcmp(entry->d_name, "regions") != 0;
	if (d)
		closedir(d);
	return foreign || !d;
}

int memdir_inspect(const char *path, struct memdir *dir)
{
	char lock[1200], holder[32] = "";
	int err;

	set_paths(dir, path);
	snprintf(lock, sizeof(lock), "%s/lock", dir->path);
	dir->lock_fd = open(lock, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (dir->lock_fd < 0 && (errno == EACCES || errno == EPERM))
		return memdir_files_fail("open", lock, -errno);
	if (dir->lock_fd < 0 && access(path, F_OK) != 0) {
		err = -errno;
		log_error("can't check %s: %s", path, errno_text(err));
		return err;
	}
	if (dir->lock_fd < 0 || is_foreign(dir)) {
		log_error("%s is no memory directory of rmemfs-server: name the one of memory_dir",
			path);
		return -EINVAL;
	}
	if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	read_holder(dir->lock_fd, holder, sizeof(holder));
	log_error("%s is in use by a server (pid %s): stop it first", path, holder);
	return -EAGAIN;
}

int memdir_check_boot(const struct memdir *dir, char *why, size_t whylen)
{
	char path[1200], stored[BOOT_ID_BYTES] = "", current[BOOT_ID_BYTES] = "";

	snprintf(path, sizeof(path), "%s/boot_id", dir->path);
	if (memdir_files_read_line("/proc/sys/kernel/random/boot_id", current, sizeof(current)) ==
			0 &&
		memdir_files_read_line(path, stored, sizeof(stored)) == 0 &&
		strcmp(stored, current) == 0)
		return 0;
	if (!is_boot_id(stored) && !has_bytes(dir->store))
		return 0; /* a first start that was killed */
	if (is_boot_id(stored))
		snprintf(why, whylen,
			"%s is of another boot of this machine: a start would begin empty", path);
	else
		snprintf(why, whylen, "%s is missing or damaged", path);
	return -EBADMSG;
}
