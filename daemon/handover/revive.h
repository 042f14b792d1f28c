/* revive.h - from the record of a killed daemon (record/record.h) to a mount that goes on.
 *
 *     revive_record      the mount is described in its record; from then on it can be revived
 *     (the daemon is killed)
 *     revive_adopt       inodes, handles, the session and its slots
 *     (ATTACH of all channels: the dead daemon's are fenced)
 *     revive_settle      recorded RPCs are answered; pages and quota that the dead daemon had are
 *                        given back; files without a name are known as such
 *     (the kernel sends again what was not answered)
 *
 * Data that the dead daemon had not committed is lost. Each handle of such a file is told so once,
 * by EIO, and the kernel's pages of it are dropped.
 *
 * OWNERSHIP  revive_adopt() takes owner_fd.
 * THREADS    main. revive_adopt() while no I/O thread runs, revive_settle() while the mount stands
 *            (serve/pause.h).
 * ERRORS     0 or -errno with a line in why. After an error the mount can't go on.
 */
#ifndef RMEMFS_DAEMON_HANDOVER_REVIVE_H
#define RMEMFS_DAEMON_HANDOVER_REVIVE_H

#include <stddef.h>
#include <stdint.h>

struct fs;
struct fuse_port;
struct io_thread;
struct io_threads;
struct record;

/* Inodes, handles and slots are recorded from now on. Before the session connects. NULL: not any
 * more; nothing of the mount was told to the kernel yet. */
void revive_begin_record(struct fs *fs, struct io_thread *threads, struct record *record);
/* Returns a descriptor that has to live on: session_describe(); -1: there is none. */
int revive_record(
	struct fs *fs, struct io_thread *threads, uint8_t *state, size_t room, uint32_t *len);

/* For the log. */
struct revived {
	uint64_t ninodes, nhandles, nlost;
};

int revive_adopt(struct fs *fs, struct io_thread *threads, struct record *record, int owner_fd,
	struct revived *revived, char *why, size_t whylen);
/* -ETIMEDOUT: the server has not answered all within limit_ms. */
int revive_settle(struct fs *fs, struct io_thread *threads, struct record *record, int limit_ms,
	char *why, size_t whylen);
/* The kernel forgets pages and attributes that the server does not have. Once the mount serves. */
void revive_drop_lost(struct fs *fs, struct fuse_port *port, struct record *record);

#endif
