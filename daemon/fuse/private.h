/* private.h - what the files of the FUSE port share. Nobody else includes this.
 *
 * THREADS    struct fuse_port is main's, except gone, which is atomic.
 */
#ifndef RMEMFS_DAEMON_FUSE_PRIVATE_H
#define RMEMFS_DAEMON_FUSE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fs_features;
struct fuse_wishes;
struct fuse_init_in;
struct fuse_init_out;
struct fuse_session;

struct fuse_port {
	struct fuse_session *session; /* NULL: another process has mounted */
	int fd;                       /* of the connection; for INIT, notifications and cloning */
	const char *mountpoint;
	bool mounted;
	bool gone;
};

/* The answer to INIT: the offered features that we want. -EPROTO: the kernel is too old. */
int fuse_init_negotiate(const struct fuse_init_in *in, size_t len, const struct fuse_wishes *wishes,
	struct fuse_init_out *out, struct fs_features *features);

#endif
