/* memdir.h - the memory directory: where the regions and the store live, one server at a time.
 *
 *     DIR/lock            held by flock(2) for as long as the process lives
 *     DIR/boot_id         the machine's boot that what is here belongs to
 *     DIR/store_id        the store that the regions belong to, once it has been served
 *     DIR/regions/        on tmpfs or hugetlbfs
 *     DIR/store/          on tmpfs
 *     DIR/peers/          see peers.h
 *     DIR/restoring       while a snapshot is being restored
 *
 * The lock is taken before any device is opened and never given up: at exit the kernel closes files
 * newest first, so a successor that gets the lock meets no queue pair of ours any more.
 *
 * ERRORS     0 or -errno; the reason is logged.
 */
#ifndef RMEMFS_SERVER_MEMORY_MEMDIR_H
#define RMEMFS_SERVER_MEMORY_MEMDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a start makes of what is there. */
enum memdir_content {
	MEMDIR_NEW,          /* no directory, an empty one, or one whose first start was killed */
	MEMDIR_KEPT,         /* of this boot, with a store: it goes on with it */
	MEMDIR_EARLIER_BOOT, /* emptied, ... */
	MEMDIR_UNRESTORED,   /* ... as is what a start that was killed has restored in part */
};

struct memdir {
	int lock_fd;
	char path[1100], regions[1200], store[1200], peers[1200];
	uint64_t regions_block;      /* the unit of allocation: page or huge page */
	enum memdir_content content; /* as it was found */
};

/* -EAGAIN: another server has it, or a check. -EINVAL: not in memory. -EPERM: others can change it.
 * -EBADMSG: the store is gone, or it can't be told which boot all belongs to. Empties a directory
 * of another boot, and one whose first start was killed before it had a store. */
int memdir_open(const char *path, struct memdir *dir);

/* What memdir_open() would find and say, and nothing is made or changed. All that is wrong is
 * logged; returns the first. Takes the lock if nobody has it, for as long as the caller does not
 * close lock_fd. holder: the process id of the server that has it, else empty: then what is there
 * is not judged. */
enum { MEMDIR_HOLDER_TEXT = 32 };
int memdir_look(const char *path, struct memdir *dir, char holder[MEMDIR_HOLDER_TEXT]);

/* Where the server runs as a login user, and the directory is in /dev/shm: a warning that logind
 * removes that user's files there at the logout. */
void memdir_warn_of_logout(const struct memdir *dir);

/* Notes the store's id with the first start that serves it. -EBADMSG: the regions belong to another
 * store. */
int memdir_bind_store(const struct memdir *dir, const uint8_t *id, size_t len);

/* Between the two the directory holds a part of what is restored: a start that finds it so empties
 * it. */
int memdir_begin_restore(const struct memdir *dir);
bool memdir_is_restoring(const struct memdir *dir);
int memdir_end_restore(const struct memdir *dir);

/* After memdir_open(), before there is a store: nothing is kept here. */
bool memdir_is_new(const struct memdir *dir);

/* After -EBADMSG or -EPROTONOSUPPORT of any part: a line about what can be done. */
void memdir_tell_remedy(const struct memdir *dir, int err);

/* For checks, of a stopped server's directory: fills dir and takes the lock, and changes nothing.
 * -ENOENT: it is not there; -EAGAIN: a server has it; -EINVAL: it is no memory directory. */
int memdir_inspect(const char *path, struct memdir *dir);
/* -EBADMSG, and a line in why: the contents are of another boot, or that can't be told ... */
int memdir_check_boot(const struct memdir *dir, char *why, size_t whylen);
/* ... or the regions belong to another store than this. */
int memdir_check_store_id(
	const struct memdir *dir, const uint8_t *id, size_t len, char *why, size_t whylen);
/* Whether a start has ever served what is here. */
bool memdir_has_store_id(const struct memdir *dir);

#endif
