/* init.c - INIT: what the kernel offers and what of it we take. It depends on each offered feature,
 * never on the kernel's version. */
#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/fuse/port.h"
#include "daemon/fuse/private.h"
#include "daemon/request/request.h"

#ifndef FUSE_DIRECT_IO_ALLOW_MMAP /* 7.39, Linux 6.6 */
#define FUSE_DIRECT_IO_ALLOW_MMAP (1ULL << 36)
#endif
#ifndef FUSE_ALLOW_IDMAP /* 7.40, Linux 6.12; include/uapi/linux/fuse.h there */
#define FUSE_ALLOW_IDMAP (1ULL << 40)
#endif
#ifndef FUSE_HAS_RESEND /* 7.40, Linux 6.9 */
#define FUSE_HAS_RESEND (1ULL << 39)
#endif

enum {
	INIT_TIMEOUT_MS = 5000,
	MINOR_MIN = 23,      /* since then init_out has its present length */
	MINOR_PARALLEL = 38, /* FOPEN_PARALLEL_DIRECT_WRITES, which no INIT flag announces */
	MINOR_MAPS = 40, /* stores into a mapping that FUSE_DIRECT_IO_ALLOW_MMAP allows are written
			  * back */
	MINOR_EVICTIONS = 43, /* or before, but without a number of its own: evictions_seen */
	PAGES_WITHOUT_MAX_PAGES = 32,
	MAX_BACKGROUND = 256,
	/* On a sharing mount READs wait for leases. They must not hold up what other clients wait
	 * for: pages that are written back. */
	MAX_BACKGROUND_SHARING = UINT16_MAX,
};

/* AUTO_INVAL_DATA would drop the page cache after our own writes; we invalidate by notification.
 * Without HANDLE_KILLPRIV_V2 every buffered write asks for security.capability. With POSIX_ACL the
 * kernel checks permissions by the lists that it asks for as attributes. The server then applies a
 * new file's umask, since it knows whether the parent has a default list: DONT_MASK. With
 * EXPORT_SUPPORT file handles outlive the kernel's caches, and the mount. The kernel does the locks
 * itself, except where other clients lock the same files. With ALLOW_IDMAP mounts of this
 * filesystem may map ids (mount_setattr(2)). Then only requests that make something say ids
 * (REQUEST_NO_ID), so a mount whose users are squashed does without. */
static const uint64_t wanted =
	FUSE_ASYNC_READ | FUSE_ATOMIC_O_TRUNC | FUSE_BIG_WRITES | FUSE_DO_READDIRPLUS |
	FUSE_READDIRPLUS_AUTO | FUSE_ASYNC_DIO | FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES |
	FUSE_CACHE_SYMLINKS | FUSE_NO_OPENDIR_SUPPORT | FUSE_EXPLICIT_INVAL_DATA |
	FUSE_HANDLE_KILLPRIV_V2 | FUSE_POSIX_ACL | FUSE_DONT_MASK | FUSE_SETXATTR_EXT |
	FUSE_INIT_EXT | FUSE_EXPORT_SUPPORT | FUSE_DIRECT_IO_ALLOW_MMAP | FUSE_ALLOW_IDMAP;

/* Older kernels send a shorter struct, newer ones a longer. */
static uint64_t offered_flags(const struct fuse_init_in *in, size_t len)
{
	uint64_t flags = in->flags;

	if ((flags & FUSE_INIT_EXT) && len >= offsetof(struct fuse_init_in, unused))
		flags |= (uint64_t)in->flags2 << 32;
	return flags;
}

static const uint64_t wanted_with_others = FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS;

static uint64_t wanted_with(const struct fuse_wishes *wishes, uint32_t minor)
{
	uint64_t flags = wanted;

	if (minor < MINOR_MAPS)
		flags &= ~(uint64_t)FUSE_DIRECT_IO_ALLOW_MMAP;
	if (wishes->ids)
		flags &= ~(uint64_t)FUSE_ALLOW_IDMAP;
	/* One that shares may be alone at first, and revived then. */
	flags |= FUSE_HAS_RESEND;
	if (wishes->sharing)
		return flags | wanted_with_others;
	return flags | (wishes->write_back ? FUSE_WRITEBACK_CACHE : 0);
}

int fuse_init_negotiate(const struct fuse_init_in *in, size_t len, const struct fuse_wishes *wishes,
	struct fuse_init_out *out, struct fs_features *features)
{
	uint64_t flags;

	if (len < offsetof(struct fuse_init_in, flags2))
		return -EPROTO;
	if (in->major != FUSE_KERNEL_VERSION || in->minor < MINOR_MIN)
		return -EPROTO;
	flags = offered_flags(in, len) & wanted_with(wishes, in->minor);
	/* The kernel ends a connection that maps ids without POSIX_ACL. */
	if (!(flags & FUSE_POSIX_ACL))
		flags &= ~(uint64_t)FUSE_ALLOW_IDMAP;
	*out = (struct fuse_init_out){
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = in->max_readahead,
		.flags = (uint32_t)flags,
		.flags2 = (uint32_t)(flags >> 32),
		.max_background = wishes->sharing ? MAX_BACKGROUND_SHARING : MAX_BACKGROUND,
		.congestion_threshold = MAX_BACKGROUND * 3 / 4,
		.max_write = flags & FUSE_MAX_PAGES ? IO_BYTES_MAX
						    : PAGES_WITHOUT_MAX_PAGES * PAGE_BYTES,
		.max_pages = IO_PAGES_MAX,
		.time_gran = 1,
	};
	*features = (struct fs_features){
		.direct_io_allow_mmap = flags & FUSE_DIRECT_IO_ALLOW_MMAP,
		.parallel_direct_writes = in->minor >= MINOR_PARALLEL,
		.handle_killpriv_v2 = flags & FUSE_HANDLE_KILLPRIV_V2,
		.writeback = flags & FUSE_WRITEBACK_CACHE,
		.resend = flags & FUSE_HAS_RESEND,
		.evictions_seen = in->minor >= MINOR_EVICTIONS,
	};
	return 0;
}

struct init_message {
	struct fuse_in_header header;
	uint8_t body[FUSE_MIN_READ_BUFFER - sizeof(struct fuse_in_header)];
};

static int read_init(struct fuse_port *port, struct init_message *msg, size_t *bodylen)
{
	struct pollfd pfd = {.fd = port->fd, .events = POLLIN};
	ssize_t n;

	if (poll(&pfd, 1, INIT_TIMEOUT_MS) <= 0)
		return -ETIMEDOUT;
	n = read(port->fd, msg, sizeof(*msg));
	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(msg->header) || msg->header.opcode != FUSE_INIT)
		return -EPROTO;
	*bodylen = (size_t)n - sizeof(msg->header);
	return 0;
}

static int answer_init(
	struct fuse_port *port, uint64_t unique, int error, const struct fuse_init_out *out)
{
	struct fuse_out_header header = {
		.len = sizeof(header) + (error ? 0 : sizeof(*out)),
		.error = error,
		.unique = unique,
	};
	struct iovec iov[2] = {{&header, sizeof(header)}, {(void *)out, sizeof(*out)}};

	return writev(port->fd, iov, error ? 1 : 2) < 0 ? -errno : 0;
}

int fuse_port_init(struct fuse_port *port, const struct fuse_wishes *wishes,
	struct fs_features *features, char *why, size_t whylen)
{
	struct init_message msg;
	const struct fuse_init_in *in = (const void *)msg.body;
	struct fuse_init_out out;
	size_t len = 0;
	int err;

	err = read_init(port, &msg, &len);
	if (err) {
		snprintf(why, whylen, "the kernel's FUSE did not begin: %s", errno_text(err));
		return err;
	}
	err = fuse_init_negotiate(in, len, wishes, &out, features);
	if (err) {
		snprintf(why, whylen,
			"the kernel speaks FUSE %u.%u, at least %d.%d is needed: use a newer kernel",
			in->major, in->minor, FUSE_KERNEL_VERSION, MINOR_MIN);
		answer_init(port, msg.header.unique, err, NULL);
		return err;
	}
	err = answer_init(port, msg.header.unique, 0, &out);
	if (err)
		snprintf(why, whylen, "the kernel refused our FUSE settings: %s", errno_text(err));
	log_debug("fuse: kernel %u.%u, flags %08x:%08x of %08x:%08x, max_write %u%s", in->major,
		in->minor, out.flags2, out.flags,
		len >= offsetof(struct fuse_init_in, unused) ? in->flags2 : 0, in->flags,
		out.max_write, features->evictions_seen ? ", tells of evictions" : "");
	return err;
}
