/* describe.h - from a mount that stands still to its description, and back.
 *
 * OWNERSHIP  The caller frees the description. describe_adopt() takes owner_fd.
 * THREADS    describe_mount() in main, while the mount stands (serve/pause.h). describe_adopt()
 *            while no I/O thread runs.
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_DAEMON_HANDOVER_DESCRIBE_H
#define RMEMFS_DAEMON_HANDOVER_DESCRIBE_H

#include <stddef.h>
#include <stdint.h>

struct fs;
struct io_thread;

/* threads: all of the mount. *owner_fd: session_describe()'s. -EBUSY: a file has something under
 * way, or keeps what the server has refused. */
int describe_mount(struct fs *fs, struct io_thread *threads, uint8_t **data, size_t *len,
	int *owner_fd, char *why, size_t whylen);

/* For a filesystem that was opened with the same options, and is not connected yet. The mount's
 * options that change with a remount are the description's. After an error the filesystem is to be
 * closed. */
int describe_adopt(struct fs *fs, struct io_thread *threads, const uint8_t *data, size_t len,
	int owner_fd, char *why, size_t whylen);

/* The parts of both that are no inodes: the mount's features and options. */
struct mount_state;
void describe_options(struct fs *fs, struct mount_state *state);
int describe_adopt_options(
	struct fs *fs, const struct mount_state *state, char *why, size_t whylen);

#endif
