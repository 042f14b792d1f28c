/* port.h - the mount and its connection to the kernel: mounting, INIT, descriptors to read
 * requests from, cache invalidations, unmounting.
 *
 * libfuse mounts and unmounts (fusermount3 for those who are not root); everything after that is
 * spoken by us on /dev/fuse, so that requests are read into our own registered memory, answered
 * from it, and may end in any order.
 *
 *     fuse_port_mount -> fuse_port_init -> fuse_port_clone (each I/O thread) ->
 *     fuse_port_unmount, or the user's umount(8) -> fuse_port_delete
 *
 * OWNERSHIP  main makes and deletes the port; it outlives the I/O threads.
 * THREADS    fuse_port_inval_inode, _expire_entry, _gone and _set_gone: any. The rest: main.
 * ERRORS     0 or -errno; where there is a why, it gets one line for people.
 */
#ifndef RMEMFS_DAEMON_FUSE_PORT_H
#define RMEMFS_DAEMON_FUSE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuse_port;

/* What the kernel offered in INIT and the port took. Set before the first request. */
struct fs_features {
	bool direct_io_allow_mmap; /* a file opened direct may be mapped shared (Linux 6.9) */
	bool parallel_direct_writes;
	bool handle_killpriv_v2;
	/* An inode that the kernel let go of and got again while a LOOKUP was on its way takes no
	 * attributes from its answer (Linux 6.14). */
	bool evictions_seen;
	/* The kernel writes its cache back when it likes, and owns regular files' size and times.
	 */
	bool writeback;
};

/* Mounts source on mountpoint (an absolute path). options: comma-separated generic mount options
 * and allow_other, or "". */
int fuse_port_mount(const char *source, const char *mountpoint, const char *options,
	struct fuse_port **out, char *why, size_t whylen);

/* Waits for the kernel's INIT and answers it. write_back: the kernel may write its cache back when
 * it likes. */
int fuse_port_init(struct fuse_port *port, bool write_back, bool sharing,
	struct fs_features *features, char *why, size_t whylen);

/* A descriptor of its own to read requests from, non-blocking. Requests are answered on the
 * descriptor that they were read from. */
int fuse_port_clone(struct fuse_port *port, int *fd);

/* Unmounts lazily. Open files may keep the connection up until the last descriptor is closed;
 * fuse_port_disconnected() tells. */
void fuse_port_unmount(struct fuse_port *port);
/* Whether the kernel has ended the connection; waits up to timeout_ms for it. */
bool fuse_port_disconnected(struct fuse_port *port, int timeout_ms);

/* The I/O threads' common flag: no request is read any more. */
bool fuse_port_gone(const struct fuse_port *port);
void fuse_port_set_gone(struct fuse_port *port);

/* When no I/O thread runs any more: answers every request with EIO until done_fd is readable. */
void fuse_port_refuse_until(struct fuse_port *port, int done_fd);

void fuse_port_delete(struct fuse_port *port);

/* Makes the kernel drop cached pages of [off, off + len) and the attributes; len 0: to the end;
 * off negative: attributes only. Blocks while pages of the range are locked by READs in flight, so
 * never from an I/O thread. -ENOENT: the kernel doesn't know the node. */
int fuse_port_inval_inode(struct fuse_port *port, uint64_t node, int64_t off, int64_t len);
/* Makes the kernel take a regular file to be at least `size` bytes long, which is a multiple of a
 * page's, until it is told of its attributes or reads its end. The page before that is not cached
 * then. */
int fuse_port_raise_size(struct fuse_port *port, uint64_t node, uint64_t size);
/* Makes the kernel ask anew what name is in parent, or that it is not there, at its next use. Below
 * Linux 6.2 it is forgotten at once, and what is mounted below it goes. Takes the parent's inode
 * lock, which an operation in flight may hold: never from an I/O thread, and only while operations
 * are answered, since the wait for it ends by nothing else, SIGKILL included. */
int fuse_port_expire_entry(struct fuse_port *port, uint64_t parent, const char *name);

#endif
