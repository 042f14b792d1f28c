/* request.h - one request of the kernel, from the moment it was read to its reply.
 *
 * The FUSE port reads and decodes it (fuse/decode.c). The file operations carry it out, perhaps in
 * several steps that wait for the network. They answer it by exactly one reply_*() call, which also
 * ends it. This header knows nothing of the kernel's FUSE structs: those stay in the port.
 *
 * OWNERSHIP  A request and its data buffer come from its I/O thread's pools and go back by the
 *            reply. Names and payload point into the request's memory and live as long as it does.
 * THREADS    A request belongs to the I/O thread that read it, from beginning to end. Another
 *            thread that has to wake it does so by io_thread_call().
 */
#ifndef RMEMFS_DAEMON_REQUEST_REQUEST_H
#define RMEMFS_DAEMON_REQUEST_REQUEST_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/base/list.h"
#include "common/transport/transport.h"
#include "common/base/types.h"

struct io_thread;

/* The kernel's longest READ or WRITE; libfuse's and the kernel's own limit. */
enum { IO_BYTES_MAX = 1 << 20, IO_PAGES_MAX = IO_BYTES_MAX >> PAGE_SHIFT };

/* The kernel's headers before a WRITE's payload: fuse_in_header and fuse_write_in, which
 * fuse/decode.c asserts. */
enum { PAYLOAD_HEAD_BYTES = 80 };

/* Pieces of one READ's answer. Each piece has its own page; a piece of zeros may have several. */
enum { ZEROS_BYTES = 64 << 10 };
enum { PIECES_MAX = IO_PAGES_MAX + 2 + IO_BYTES_MAX / ZEROS_BYTES };

/* A page-aligned, registered piece of memory for one READ's or WRITE's bytes, and room for the plan
 * of its transfer, so that nothing is allocated on the way. */
struct data_buffer {
	struct list link;
	uint8_t *data; /* IO_BYTES_MAX bytes */
	bool present;  /* request_room() */
	const struct buffer *mem;
	struct sge sges[IO_PAGES_MAX + 2];
	struct work works[IO_PAGES_MAX + 2];
};

/* The kinds of the kernel's requests. */
enum request_op {
	OP_LOOKUP,
	OP_FORGET,
	OP_GETATTR,
	OP_SETATTR,
	OP_READLINK,
	OP_SYMLINK,
	OP_MKNOD,
	OP_MKDIR,
	OP_UNLINK,
	OP_RMDIR,
	OP_RENAME,
	OP_LINK,
	OP_OPEN,
	OP_READ,
	OP_WRITE,
	OP_STATFS,
	OP_RELEASE,
	OP_FSYNC,
	OP_FLUSH,
	OP_OPENDIR,
	OP_READDIR,
	OP_RELEASEDIR,
	OP_FSYNCDIR,
	OP_CREATE,
	OP_LSEEK,
	OP_GETXATTR,
	OP_LISTXATTR,
	OP_SETXATTR,
	OP_REMOVEXATTR,
	OP_FALLOCATE,
	OP_TMPFILE,
	OP_STATX,
	OP_COPY,
	OP_REMOUNT,
	OP_GETLK,
	OP_SETLK,
	OP_NOPS,
};

/* reply_entry() gives node ids to the kernel; ROOT_INO is the root's. */
struct request_args {
	uint64_t fh; /* of OPEN's reply; has_fh says whether the kernel gave one */
	bool has_fh;
	uint64_t fh2; /* COPY: the target's */
	/* NUL-terminated. name2: RENAME's new name, SYMLINK's target; LINK's new name is name. */
	const char *name, *name2;
	uint32_t flags;   /* OPEN, CREATE, READ, WRITE, READDIR: open(2) flags; RENAME: RENAME_*;
			   * SETXATTR: SETXATTR_* of rpc.h; REMOUNT: of mount(2) */
	uint64_t offset;  /* READ, WRITE, READDIR (cookie), LSEEK, FALLOCATE, COPY */
	uint64_t offset2; /* COPY: in node2 */
	uint64_t len;     /* FALLOCATE, COPY: bytes from there on, within INT64_MAX */
	uint32_t size;    /* READ, WRITE, READDIR; SETXATTR: of the value; GETXATTR,
			   * LISTXATTR: room for it, 0: its length is wanted */
	const uint8_t *value;       /* SETXATTR; lies in the data buffer */
	bool cached;                /* WRITE: from the page cache; its fh may be a guess.
				     * READ: for the page cache, or perhaps so */
	bool kill_priv;             /* WRITE, SETATTR, OPEN with O_TRUNC: drop suid and sgid */
	bool plus;                  /* READDIR: with attributes */
	bool names_only;            /* READDIR: even so no node goes along */
	bool datasync;              /* FSYNC */
	uint32_t mode, umask, rdev; /* CREATE, MKNOD, MKDIR; FALLOCATE: mode, its own */
	uint64_t node2;             /* RENAME: new parent; LINK: the inode; COPY: the target */
	uint64_t lock_owner;        /* FLUSH, GETLK, SETLK: the kernel's name for the owner */
	uint32_t whence;            /* LSEEK: SEEK_DATA or SEEK_HOLE */
	struct {                    /* SETATTR: as in struct rpc_setattr */
		uint32_t valid;
		uint32_t mode, uid, gid;
		uint64_t size;
		int64_t atime, mtime, ctime;
	} set;
	struct { /* GETLK, SETLK: as in struct rpc_lock */
		uint64_t start, end;
		uint32_t pid;
		uint8_t kind, type;
		bool wait; /* SETLKW */
	} lock;
};

/* One element of FORGET or BATCH_FORGET. They are decoded one by one, so that any number fits. */
struct forget {
	uint64_t node;
	uint64_t nlookup;
};

/* Where idmapped mounts are allowed (fuse/init.c), the kernel says a user and a group only in
 * requests that make something. They are the new inode's, as the caller's mount maps them. In all
 * other requests, on every mount, both are this. So only the owner of a new inode may depend on
 * them; see caller.h. */
#define REQUEST_NO_ID UINT32_MAX

/* In `unique` of a request that the kernel sends again since the daemon that had read it was killed
 * (FUSE_UNIQUE_RESEND of Linux 6.9). Its answer repeats the bit. */
#define REQUEST_RESENT (UINT64_C(1) << 63)

enum { REQUEST_HEAD_BYTES = 4608, REQUEST_STATE_BYTES = 1664 };

struct request {
	struct list link; /* free: in the thread's pool; in use: the file operations' to queue it */
	struct list all;  /* in use: in the thread's list of requests, for INTERRUPT */
	struct io_thread *thread;
	enum request_op op;
	uint64_t unique;
	uint64_t node;
	uint32_t uid, gid; /* REQUEST_NO_ID: see there */
	uint32_t pid;      /* of the thread; 0: of another PID namespace */
	uint32_t process;  /* caller_note_process(); 0: nobody has looked */
	/* uid and gid are the anonymous ones of the export's squash. So the caller counts as a user
	 * without other groups and without capabilities, whatever /proc tells of it. */
	bool squashed;
	bool interrupted;          /* the caller was signalled: see fuse_ops.interrupt */
	bool aside;                /* request_set_aside() */
	bool replied;              /* by request_abandon(), request_acknowledge(), reply_pieces() */
	bool slow_seen, slow_told; /* it waits for long, and the log says so: serve/slow.h */
	int taken_back;            /* the answer in the place of -ECANCELED: see op_cancel() */
	int64_t since_ms;          /* when it was interrupted; until then: when it was read */
	int64_t read_ns;           /* when it was read, as CLOCK_BOOTTIME tells */
	struct {                   /* for trace.c; begun_ns 0: not traced */
		int64_t begun_ns;
		uint64_t ino;
	} trace;
	struct request_args args;
	void (*buffer_then)(struct request *req); /* request_take_buffer's, while it waits */
	struct data_buffer *buf;          /* WRITE, SETXATTR: holds the payload; READ and the like:
					   * taken by request_take_buffer(); else NULL */
	uint8_t *stowed;                  /* the payload without a buffer: request_stow() */
	size_t stowed_bytes;              /* with the name that lies in it */
	uint8_t head[REQUEST_HEAD_BYTES]; /* names of small requests */
	_Alignas(16) uint8_t state[REQUEST_STATE_BYTES]; /* zeroed for each request */
};

static inline bool request_is_resent(const struct request *req)
{
	return req->unique & REQUEST_RESENT;
}

/* The same however often the kernel has sent it. */
static inline uint64_t request_number(const struct request *req)
{
	return req->unique & ~REQUEST_RESENT;
}

/* Whether the kernel's page cache reads or writes for itself: the request may name any handle of
 * the file, and that handle's user does not see the answer. Other operations may wait for it, since
 * pages are locked meanwhile. */
static inline bool request_is_for_cache(const struct request *req)
{
	return (req->op == OP_READ || req->op == OP_WRITE) && req->args.cached;
}

/* The operation's own state: struct write_state *st = request_state(req, struct write_state); */
#define request_state(req, type)                                                                \
	({                                                                                      \
		static_assert(sizeof(type) <= REQUEST_STATE_BYTES, "grow REQUEST_STATE_BYTES"); \
		(type *)(void *)(req)->state;                                                   \
	})
#define request_of_state(st) \
	container_of((uint8_t(*)[REQUEST_STATE_BYTES])(st), struct request, state)

/* Gives the request a data buffer at once (true), or queues it (by link) and calls then(req) when
 * one is free. */
bool request_take_buffer(struct request *req, void (*then)(struct request *req));
/* Takes it out of that queue; then() is not called. */
void request_leave_buffers(struct request *req);
/* Gives the buffer back, if the request has one. */
void request_return_buffer(struct request *req);

/* ---- waiting for other clients ----------------------------------------------------------------
 *
 * A request that waits until another client gives a lease back, here or at the server, may wait for
 * one that waits here. And that client may stand still for long. So the request holds nothing that
 * is needed to give leases back, or by others who use the mount. One program may have very many
 * such requests on their way (asynchronous I/O): wait_aside().
 *
 *     no data buffer  WRITE and SETXATTR, which come with one, keep their payload on the heap.
 *     no request      A request that waits here is set aside: the thread gets another one from the
 *                     heap, until this one ends.
 *     few requests    Requests that wait at the server have UNRESERVED_REQUESTS of a thread's. The
 *                     rest is for requests that the kernel must have answered before it can drop
 *                     the pages that a RETURN waits for (lease_holds_up_dropping()). Such a request
 *                     enters the lease, and waits only for others that have entered one.
 *
 * So a thread reads on, whatever waits, and requests for other files are answered. Most requests
 * that are set aside go on soon, like the pieces of a large append. While a thread has ASIDE_BYTES
 * of them, it reads on in two cases only: if that has not become less for a moment, or while pages
 * are being dropped, since that may wait for a message further behind (fuse/receive.c).
 *
 * The memory has an end: request_may_set_aside(). Beyond it a request ends with -ENOMEM if many
 * wait at its inode already; no other request does. A request that is held before it begins is set
 * aside likewise (barrier.h), but beyond that end it keeps what it has.
 */

/* The common state of the requests of all I/O threads of a mount. */
struct request_shared {
	bool sharing;               /* they may wait for other clients; set before the first one */
	unsigned interrupt_wait_ms; /* caller_ends_wait(); likewise */
	uint64_t aside_max;         /* likewise */
	bool revivable;             /* messages must outlive a kill; likewise: request_room() */
	atomic_bool paused;         /* no message is read from the kernel, but for a drop:
				     * serve/pause.h */
	atomic_ullong aside_bytes;  /* memory of what is set aside, and of its payloads */
	/* ndropping: ranges of pages that the kernel is about to drop before their lease goes. It
	 * may wait for messages that no thread has read yet, or has room for. ndrops: how many
	 * there ever were. fuse_receive_drop_begins() counts both. */
	atomic_uint ndropping;
	atomic_ullong ndrops;
};

/* Whether more may be set aside, by any thread; the limit is a quarter of the machine's memory. */
bool request_may_set_aside(const struct request_shared *shared);

/* The request does not count among the thread's any more. Harmless when that was done before.
 * False: there is no memory for another one. */
bool request_set_aside(struct request *req);
/* Keeps the payload on the heap, and gives the buffer back. False: there is no memory for that. */
bool request_stow(struct request *req);
/* Whether this WRITE has its payload on the heap, and needs a buffer to go on. SETXATTR needs
 * none. */
bool request_lacks_buffer(const struct request *req);
/* The WRITE has got a buffer: the payload goes there. */
void request_unstow(struct request *req);

/* ---- replies: exactly one each, but for FORGET, which has request_end() ---------------------- */

/* Time that the kernel may keep an answer without asking again. */
struct ttl {
	uint32_t entry_ms, attr_ms;
};

enum {
	OPEN_DIRECT = 1,
	OPEN_KEEP_CACHE = 2,
	OPEN_PARALLEL_WRITES = 4,
	OPEN_CACHE_DIR = 8,
	OPEN_NONSEEKABLE = 16,
	OPEN_NO_FLUSH = 32
};

void reply_error(struct request *req, int error); /* -errno, or 0: success without a body */
/* node 0 with attr NULL: a negative entry, kept for entry_ms. */
void reply_entry(struct request *req, uint64_t node, const struct attr *attr, struct ttl ttl);
void reply_create(struct request *req, uint64_t node, const struct attr *attr, struct ttl ttl,
	uint64_t fh, unsigned open_flags);
void reply_attr(struct request *req, const struct attr *attr, struct ttl ttl);
/* The same with the birth time: STATX. */
void reply_statx(struct request *req, const struct attr *attr, struct ttl ttl);
void reply_open(struct request *req, uint64_t fh, unsigned open_flags);
void reply_write(struct request *req, uint32_t written);
/* The first len bytes of the data buffer, without a copy: READ, READDIR, GETXATTR, LISTXATTR. */
void reply_buffer(struct request *req, uint32_t len);
void reply_bytes(struct request *req, const void *data, uint32_t len); /* READLINK */
/* READ's data where it lies, in pieces. Answers at once, before the operation ends, since others
 * may use the memory after that. The operation's later reply ends the request unseen. */
struct pieces {
	unsigned n;
	uint32_t len;
	struct iovec iov[1 + PIECES_MAX]; /* the first is the reply's own */
};
void pieces_init(struct pieces *pieces);
void pieces_add(struct pieces *pieces, const void *data, uint32_t len);
void reply_pieces(struct request *req, struct pieces *pieces);
/* READ's data in a pipe, behind a head that reply_pipe_head() has made in the data buffer's
 * memory. */
enum { REPLY_HEAD_BYTES = 16 };
const void *reply_pipe_head(struct request *req, uint32_t len);
void reply_pipe(struct request *req, int pipe, uint32_t len);
/* GETLK; type LOCK_FREE: there is no lock. */
struct lock_found {
	uint64_t start, end;
	uint32_t pid;
	uint8_t type; /* enum lock_type */
};
void reply_lock(struct request *req, const struct lock_found *found);
void reply_lseek(struct request *req, uint64_t offset);
void reply_ioctl(struct request *req); /* REMOUNT: it is done */
/* GETXATTR and LISTXATTR with size 0: the length of the answer. */
void reply_length(struct request *req, uint32_t len);
struct statfs_values {
	uint64_t blocks, bfree, bavail, files, ffree; /* blocks of PAGE_BYTES */
};
void reply_statfs(struct request *req, const struct statfs_values *st);
void request_end(struct request *req); /* FORGET */

/* Whether the kernel would tell nothing of a signal that ends the caller. A process that exits
 * flushes its files. One that waits for asynchronous direct I/O waits for it even when it exits
 * (exit_aio() of Linux's fs/aio.c), and before Linux 6.9 all its direct I/O through a handle of
 * the page cache is so (fuse_direct_IO() of fs/fuse/file.c). */
bool request_signals_are_untold(const struct request *req);

/* Answers with an error now, though the operation goes on by itself. Its later reply ends the
 * request unseen. Harmless when that was done before. */
void request_abandon(struct request *req, int error);
/* The same for a WRITE that is going to be done, in its buffer. */
void request_acknowledge(struct request *req, uint32_t written);

/* Calls fn for each of the thread's requests that have not ended, abandoned ones included, in the
 * order in which they were read. fn may end the one that it is called for. */
void request_each(struct io_thread *thread, void (*fn)(struct request *req, void *arg), void *arg);

/* Packs directory entries into the data buffer for READDIR. False: no room, the entry was not put.
 * plus: with node and attr, as a LOOKUP would count; node 0: no node is handed out. */
struct dir_packer {
	uint8_t *start;
	uint32_t used, size;
	bool plus;
};
void dir_packer_init(struct dir_packer *p, struct request *req);
bool dir_pack(struct dir_packer *p, const char *name, uint16_t namelen, uint64_t next_cookie,
	uint64_t node, const struct attr *attr, struct ttl ttl);

#endif
