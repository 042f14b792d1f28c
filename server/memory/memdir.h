/* memdir.h - the memory directory: where the regions and the store live, for one server at a time.
 *
 *     DIR/lock            held by flock(2) for as long as the process lives
 *     DIR/boot_id         the machine's boot to which the contents belong
 *     DIR/store_id        the store to which the regions belong, once it has been served
 *     DIR/regions/        on tmpfs or hugetlbfs
 *     DIR/store/          on tmpfs
 *     DIR/peers/          see peers.h
 *     DIR/restoring       while a snapshot is being restored
 *
 * The server takes the lock before it opens any device, and never gives it up. At exit the kernel
 * closes files newest first. So when a successor gets the lock, no queue pair of this process
 * exists any more.
 *
 * ERRORS     0 or -errno; the reason is logged.
 */
#ifndef RMEMFS_SERVER_MEMORY_MEMDIR_H
#define RMEMFS_SERVER_MEMORY_MEMDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The contents that a start finds. */
enum memdir_content {
	MEMDIR_NEW,          /* no directory, an empty one, or one whose first start was killed */
	MEMDIR_KEPT,         /* of this boot, with a store: the start goes on with it */
	MEMDIR_EARLIER_BOOT, /* of an earlier boot: the start empties it */
	MEMDIR_UNRESTORED,   /* a restore was killed: the start empties it, too */
};

struct memdir {
	int lock_fd;
	char path[1100], regions[1200], store[1200], peers[1200];
	uint64_t regions_block;      /* the unit of allocation: page or huge page */
	enum memdir_content content; /* as the start found it */
};

/* Opens the directory and locks it. Empties one of another boot, and one whose first start was
 * killed before it had a store. -EAGAIN: another server or a check has it. -EINVAL: not in memory.
 * -EPERM: other users can change it. -EBADMSG: the store is gone, or the boot of the contents can't
 * be told. */
int memdir_open(const char *path, struct memdir *dir);

/* Finds and logs what memdir_open() would, but makes and changes nothing. Logs all errors and
 * returns the first. Takes the lock if it is free; the caller gives it up by closing lock_fd.
 * holder: the process id of the server that has the lock; the contents are not judged then. Else
 * empty. */
enum { MEMDIR_HOLDER_TEXT = 32 };
int memdir_look(const char *path, struct memdir *dir, char holder[MEMDIR_HOLDER_TEXT]);

/* Warns if the server runs as a login user and the directory is in /dev/shm: logind removes that
 * user's files there at logout. */
void memdir_warn_of_logout(const struct memdir *dir);

/* The first start that serves a store notes its id. -EBADMSG: the regions belong to another
 * store. */
int memdir_bind_store(const struct memdir *dir, const uint8_t *id, size_t len);

/* Between begin and end the directory holds a part of a snapshot; a start that finds it so empties
 * it. */
int memdir_begin_restore(const struct memdir *dir);
bool memdir_is_restoring(const struct memdir *dir);
int memdir_end_restore(const struct memdir *dir);

/* After memdir_open(), before there is a store: nothing was kept. */
bool memdir_is_new(const struct memdir *dir);

/* After -EBADMSG or -EPROTONOSUPPORT of any part: logs what the user can do. */
void memdir_tell_remedy(const struct memdir *dir, int err);

/* For checks of a stopped server's directory: fills dir, takes the lock, and changes nothing.
 * -ENOENT: it is missing; -EAGAIN: a server has it; -EINVAL: it is no memory directory. */
int memdir_inspect(const char *path, struct memdir *dir);
/* -EBADMSG, and a line in why: the contents are of another boot, or that can't be told. */
int memdir_check_boot(const struct memdir *dir, char *why, size_t whylen);
/* -EBADMSG, and a line in why: the regions belong to another store. */
int memdir_check_store_id(
	const struct memdir *dir, const uint8_t *id, size_t len, char *why, size_t whylen);
/* Whether a start has ever served the contents. */
bool memdir_has_store_id(const struct memdir *dir);

#endif
