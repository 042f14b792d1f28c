/* memdir_files.h - the directories and small files of a memory directory: are they safe to use?
 *
 * A directory must belong to the server's user or to root, and nobody else may write to it. It must
 * be in memory: on tmpfs or hugetlbfs.
 *
 * THREADS    The main thread, before it serves.
 * ERRORS     0 or -errno. The reason is logged, except for the small files.
 */
#ifndef RMEMFS_SERVER_MEMORY_MEMDIR_FILES_H
#define RMEMFS_SERVER_MEMORY_MEMDIR_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { MEMDIR_USER_TEXT = 48 };

/* Logs that the server can't `doing` (a verb) path, and the remedy. Returns err. */
int memdir_files_fail(const char *doing, const char *path, int err);
/* "rmemfs (998)", or the number alone. */
const char *memdir_files_user(uid_t uid, char text[MEMDIR_USER_TEXT]);

/* -EINVAL: the path is relative. */
int memdir_files_check_path(const char *path);
/* Checks a directory that exists. -ENOTDIR: it is no directory; -EPERM: other users can change
 * it. */
int memdir_files_check_directory(const char *path);
/* Makes the directory if it is missing, and checks it. */
int memdir_files_make_directory(const char *path);
/* *block: the filesystem's unit of allocation in bytes. -EINVAL: it is not in memory. */
int memdir_files_check_filesystem(const char *path, bool huge_ok, uint64_t *block);

/* Reads the first line of a file, without its newline. */
int memdir_files_read_line(const char *path, char *line, size_t len);
/* Afterwards the file has the whole line or is unchanged, even if the server is killed
 * meanwhile. */
int memdir_files_write_line(const char *path, const char *line);
/* Removes all files of a directory except those whose names begin with a dot. */
int memdir_files_remove(const char *path);

#endif
