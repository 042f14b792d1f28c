/* port.h - the mount and its connection to the kernel: mounting, INIT, descriptors to read requests
 * from, cache invalidations, unmounting.
 *
 * libfuse mounts and unmounts (with fusermount3 for users other than root). We speak everything
 * after that on /dev/fuse ourselves. So requests are read into our own registered memory, answered
 * from it, and may end in any order.
 *
 *     fuse_port_mount -> fuse_port_init -> fuse_port_clone (each I/O thread) ->
 *     fuse_port_unmount, or the user's umount(8) -> fuse_port_delete
 *
 * A connection outlives the process that mounted, if another one has a descriptor of it. That one
 * calls fuse_port_adopt() instead of the first two. The kernel sends INIT once: its features are
 * told by the first process.
 *
 * OWNERSHIP  main makes and deletes the port; it outlives the I/O threads.
 * THREADS    fuse_port_inval_inode, _expire_entry, _gone and _set_gone: any. The rest: main.
 * ERRORS     0 or -errno; `why`, if there is one, gets one line for people.
 */
#ifndef RMEMFS_DAEMON_FUSE_PORT_H
#define RMEMFS_DAEMON_FUSE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuse_port;

/* The features that the kernel offered in INIT and the port took. Set before the first request. */
struct fs_features {
	bool direct_io_allow_mmap; /* a file opened direct may be mapped shared (Linux 6.9) */
	bool parallel_direct_writes;
	bool handle_killpriv_v2;
	/* The kernel lets go of an inode, and gets it again, while a LOOKUP is on its way: then the
	 * inode takes no attributes from that answer (Linux 6.14). */
	bool evictions_seen;
	/* The kernel writes its cache back when it likes, and owns regular files' size and times.
	 */
	bool writeback;
	/* The kernel sends requests again that were read and not answered: fuse_port_resend(). */
	bool resend;
};

/* Mounts source on mountpoint (an absolute path, which outlives the port). options: comma-separated
 * generic mount options and allow_other, or "". */
int fuse_port_mount(const char *source, const char *mountpoint, const char *options,
	struct fuse_port **out, char *why, size_t whylen);

/* The mount at mountpoint was made by another process; fd is a descriptor of its connection, which
 * is the port's from now on, also after an error. -ENOMEM. */
int fuse_port_adopt(int fd, const char *mountpoint, struct fuse_port **out);
/* The descriptor of the connection, which stays the port's. */
int fuse_port_fd(const struct fuse_port *port);

/* The mount's wishes for INIT. */
struct fuse_wishes {
	bool write_back; /* the kernel may write its cache back when it likes */
	bool sharing;
	/* Each request is to say its user and group, since users are squashed by them. Then mounts
	 * of this filesystem can't map ids. */
	bool ids;
};

/* Waits for the kernel's INIT and answers it. */
int fuse_port_init(struct fuse_port *port, const struct fuse_wishes *wishes,
	struct fs_features *features, char *why, size_t whylen);

/* A descriptor of its own to read requests from, non-blocking. Requests are answered on the
 * descriptor that they were read from. */
int fuse_port_clone(struct fuse_port *port, int *fd);

/* Unmounts lazily. Open files may keep the connection up until the last descriptor is closed;
 * fuse_port_disconnected() tells. */
void fuse_port_unmount(struct fuse_port *port);
/* The mount is not to be unmounted: it stays when the connection ends with the last descriptor, and
 * all calls get ENOTCONN. */
void fuse_port_leave(struct fuse_port *port);
/* Whether the kernel has ended the connection; waits up to timeout_ms for it. */
bool fuse_port_disconnected(struct fuse_port *port, int timeout_ms);

/* The I/O threads' common flag: no request is read any more. */
bool fuse_port_gone(const struct fuse_port *port);
void fuse_port_set_gone(struct fuse_port *port);

/* When no I/O thread runs any more: answers every request with EIO until done_fd is readable. */
void fuse_port_refuse_until(struct fuse_port *port, int done_fd);

void fuse_port_delete(struct fuse_port *port);

/* Has the kernel send all requests again that any process has read and not answered, before others:
 * with REQUEST_RESENT. FORGETs are not among them. Needs fs_features.resend. */
int fuse_port_resend(struct fuse_port *port);

/* Makes the kernel drop cached pages of [off, off + len) and the attributes; len 0: to the end; off
 * negative: attributes only. Blocks while READs in flight have locked pages of the range, so never
 * call it from an I/O thread. -ENOENT: the kernel doesn't know the node. */
int fuse_port_inval_inode(struct fuse_port *port, uint64_t node, int64_t off, int64_t len);
/* Makes the kernel believe that a regular file is at least `size` bytes long, a multiple of a page,
 * until it is told attributes or reads the end. The last page before `size` is not cached then. */
int fuse_port_raise_size(struct fuse_port *port, uint64_t node, uint64_t size);
/* Makes the kernel ask anew at its next use whether and what `name` is in parent. Below Linux 6.2
 * the kernel forgets it at once, and mounts below it go. Takes the parent's inode lock, which an
 * operation in flight may hold. So call it never from an I/O thread, and only while operations are
 * answered: only an answer ends the wait for that lock, not even SIGKILL does. */
int fuse_port_expire_entry(struct fuse_port *port, uint64_t parent, const char *name);

#endif
