/* reply.c - the kernel's answers: laid out on the stack and written at once. Data goes straight
 * from the buffer that it arrived in, or by splice(2) from the pipe that it arrived in. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/probes.h"
#include "common/rpc/rpc.h"
#include "common/base/util.h"
#include "daemon/request/trace.h"
#include "daemon/fuse/fuse_ops.h"
#include "daemon/fuse/reply.h"
#include "daemon/fuse/port.h"
#include "daemon/fuse/statx.h"
#include "daemon/request/io_thread_private.h"

enum {
	ERROR_MAX = 511,        /* the kernel takes no higher one */
	FILE_BLKSIZE = 1 << 20, /* programs size their buffers by it */
	ATTR_BLOCK_SHIFT = 9,   /* st_blocks counts 512 bytes */
};

/* ---- writing --------------------------------------------------------------------------------- */

static int write_out(struct io_thread *thread, const struct iovec *iov, int niov)
{
	ssize_t n;

	do {
		n = writev(thread->priv->fuse_fd, iov, niov);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static int send_status(struct io_thread *thread, uint64_t unique, int error)
{
	struct fuse_out_header out = {sizeof(out), error, unique};
	struct iovec iov = {&out, sizeof(out)};

	return write_out(thread, &iov, 1);
}

static void report_failure(struct io_thread *thread, uint64_t unique, int err)
{
	static struct log_ratelimit limit;

	/* The kernel waits for an answer to each message that was read. So the mount is gone, and
	 * we end: an OPEN's effects need no other end. */
	if (err == -ENOENT || err == -ENODEV || err == -ECONNABORTED ||
		fuse_port_gone(thread->port))
		return;
	if (log_ratelimit_ok(&limit, 1000))
		log_error("fuse: cannot answer request %llu: %s", (unsigned long long)unique,
			errno_text(err));
}

void fuse_reply_status(struct io_thread *thread, uint64_t unique, int error)
{
	int err;

	if (error > 0 || error < -ERROR_MAX)
		error = -EIO;
	err = send_status(thread, unique, error);
	if (err)
		report_failure(thread, unique, err);
}

/* The operation has ended, with len bytes of an answer. */
static void end_trace(struct request *req, int error, size_t len)
{
	if (req->trace.begun_ns)
		trace_end(req, error, len);
	req->trace.begun_ns = 0;
}

/* The kernel has its answer. moved: bytes of the file. */
static void count(const struct request *req, int error, uint64_t moved)
{
	int64_t ns = clock_ns(CLOCK_BOOTTIME) - req->read_ns;

	PROBE(rmemfs, request_reply, req->unique, error, moved, ns);
	counters_add(&req->thread->priv->counters, req->op, error, moved, ns);
	if (req->slow_told)
		trace_slow(req, error, ns);
}

/* The caller must not wait for ever. */
static void could_not_send(struct request *req, int err)
{
	report_failure(req->thread, req->unique, err);
	send_status(req->thread, req->unique, -EIO);
}

/* Sends len bytes in iov[1..niov), unless the request has got its answer. */
static void send_data(
	struct request *req, struct iovec *iov, unsigned niov, size_t len, uint64_t moved)
{
	struct fuse_out_header out = {(uint32_t)(sizeof(out) + len), 0, req->unique};
	int err;

	end_trace(req, 0, len);
	if (req->replied)
		return;
	iov[0] = (struct iovec){&out, sizeof(out)};
	err = write_out(req->thread, iov, niov);
	iov[0] = (struct iovec){0}; /* `out` ends with this function */
	if (err)
		could_not_send(req, err);
	count(req, err, moved);
}

static void send_and_end(struct request *req, const void *data, size_t len)
{
	struct iovec iov[2] = {{0}, {(void *)data, len}};

	send_data(req, iov, len ? 2 : 1, len, req->op == OP_READ ? len : 0);
	request_end(req);
}

static void answer_status(struct request *req, int error)
{
	if (req->replied)
		return;
	fuse_reply_status(req->thread, req->unique, error);
	count(req, error, 0);
}

void reply_error(struct request *req, int error)
{
	if (error == -ECANCELED)
		error = req->taken_back;
	if (error && req->thread->ops->begins_anew(req, &error))
		return;
	end_trace(req, error, 0);
	answer_status(req, error);
	request_end(req);
}

void request_abandon(struct request *req, int error)
{
	answer_status(req, error);
	req->replied = true;
}

/* ---- attributes and entries ------------------------------------------------------------------ */

struct seconds {
	uint64_t sec;
	uint32_t nsec;
};

/* Rounded down, so that nsec is positive before 1970, too. */
static struct seconds split_ns(int64_t ns)
{
	int64_t sec = ns / 1000000000, rest = ns % 1000000000;

	if (rest < 0) {
		sec--;
		rest += 1000000000;
	}
	return (struct seconds){(uint64_t)sec, (uint32_t)rest};
}

static struct seconds split_ms(uint32_t ms)
{
	return (struct seconds){ms / 1000, ms % 1000 * 1000000};
}

static void put_attr(struct fuse_attr *out, const struct attr *attr)
{
	struct seconds atime = split_ns(attr->atime);
	struct seconds mtime = split_ns(attr->mtime);
	struct seconds ctime = split_ns(attr->ctime);

	*out = (struct fuse_attr){
		.ino = attr->ino,
		.size = attr->size,
		.blocks = attr->npages << (PAGE_SHIFT - ATTR_BLOCK_SHIFT),
		.atime = atime.sec,
		.atimensec = atime.nsec,
		.mtime = mtime.sec,
		.mtimensec = mtime.nsec,
		.ctime = ctime.sec,
		.ctimensec = ctime.nsec,
		.mode = attr->mode,
		.nlink = attr->nlink,
		.uid = attr->uid,
		.gid = attr->gid,
		.rdev = attr->rdev,
		.blksize = S_ISREG(attr->mode) ? FILE_BLKSIZE : PAGE_BYTES,
	};
}

static void put_entry(
	struct fuse_entry_out *out, uint64_t node, const struct attr *attr, struct ttl ttl)
{
	struct seconds entry = split_ms(ttl.entry_ms), attributes = split_ms(ttl.attr_ms);

	*out = (struct fuse_entry_out){
		.nodeid = node,
		.entry_valid = entry.sec,
		.entry_valid_nsec = entry.nsec,
		.attr_valid = attributes.sec,
		.attr_valid_nsec = attributes.nsec,
	};
	if (!attr)
		return;
	out->generation = attr->generation;
	put_attr(&out->attr, attr);
}

static void put_open(struct fuse_open_out *out, uint64_t fh, unsigned flags)
{
	static const struct {
		unsigned ours;
		uint32_t fopen;
	} map[] = {
		{OPEN_DIRECT, FOPEN_DIRECT_IO},
		{OPEN_KEEP_CACHE, FOPEN_KEEP_CACHE},
		{OPEN_PARALLEL_WRITES, FOPEN_PARALLEL_DIRECT_WRITES},
		{OPEN_CACHE_DIR, FOPEN_CACHE_DIR},
		{OPEN_NONSEEKABLE, FOPEN_NONSEEKABLE},
		{OPEN_NO_FLUSH, FOPEN_NOFLUSH},
	};

	*out = (struct fuse_open_out){.fh = fh};
	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (flags & map[i].ours)
			out->open_flags |= map[i].fopen;
}

void reply_entry(struct request *req, uint64_t node, const struct attr *attr, struct ttl ttl)
{
	struct fuse_entry_out out;

	put_entry(&out, node, attr, ttl);
	send_and_end(req, &out, sizeof(out));
}

void reply_create(struct request *req, uint64_t node, const struct attr *attr, struct ttl ttl,
	uint64_t fh, unsigned open_flags)
{
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out;

	put_entry(&out.entry, node, attr, ttl);
	put_open(&out.open, fh, open_flags);
	send_and_end(req, &out, sizeof(out));
}

void reply_attr(struct request *req, const struct attr *attr, struct ttl ttl)
{
	struct seconds valid = split_ms(ttl.attr_ms);
	struct fuse_attr_out out = {.attr_valid = valid.sec, .attr_valid_nsec = valid.nsec};

	put_attr(&out.attr, attr);
	send_and_end(req, &out, sizeof(out));
}

static struct fuse_sx_time sx_time(int64_t ns)
{
	struct seconds s = split_ns(ns);

	return (struct fuse_sx_time){.tv_sec = (int64_t)s.sec, .tv_nsec = s.nsec};
}

void reply_statx(struct request *req, const struct attr *attr, struct ttl ttl)
{
	struct seconds valid = split_ms(ttl.attr_ms);
	struct fuse_attr basic;
	struct fuse_statx_out out;

	put_attr(&basic, attr);
	out = (struct fuse_statx_out){
		.attr_valid = valid.sec,
		.attr_valid_nsec = valid.nsec,
		.stat =
			{
				.mask = STATX_BASIC_STATS | STATX_BTIME,
				.blksize = basic.blksize,
				.nlink = basic.nlink,
				.uid = basic.uid,
				.gid = basic.gid,
				.mode = (uint16_t)basic.mode,
				.ino = basic.ino,
				.size = basic.size,
				.blocks = basic.blocks,
				.atime = sx_time(attr->atime),
				.btime = sx_time(attr->btime),
				.ctime = sx_time(attr->ctime),
				.mtime = sx_time(attr->mtime),
				.rdev_major = (basic.rdev & 0xfff00) >> 8,
				.rdev_minor = (basic.rdev & 0xff) | (basic.rdev >> 12 & 0xfff00),
			},
	};
	send_and_end(req, &out, sizeof(out));
}

/* ---- the others ------------------------------------------------------------------------------ */

void reply_open(struct request *req, uint64_t fh, unsigned open_flags)
{
	struct fuse_open_out out;

	put_open(&out, fh, open_flags);
	send_and_end(req, &out, sizeof(out));
}

void reply_write(struct request *req, uint32_t written)
{
	request_acknowledge(req, written);
	request_end(req);
}

void request_acknowledge(struct request *req, uint32_t written)
{
	struct fuse_write_out out = {.size = written};
	struct iovec iov[2] = {{0}, {&out, sizeof(out)}};

	send_data(req, iov, 2, sizeof(out), written);
	req->replied = true;
}

void reply_buffer(struct request *req, uint32_t len)
{
	assert(len <= IO_BYTES_MAX && (req->buf || len == 0));
	send_and_end(req, len ? req->buf->data : NULL, len);
}

void reply_bytes(struct request *req, const void *data, uint32_t len)
{
	send_and_end(req, data, len);
}

void pieces_init(struct pieces *pieces)
{
	pieces->n = 1;
	pieces->len = 0;
}

void pieces_add(struct pieces *pieces, const void *data, uint32_t len)
{
	assert(pieces->n < ARRAY_SIZE(pieces->iov));
	pieces->iov[pieces->n++] = (struct iovec){(void *)data, len};
	pieces->len += len;
}

void reply_pieces(struct request *req, struct pieces *pieces)
{
	send_data(req, pieces->iov, pieces->n, pieces->len, pieces->len);
	req->trace.begun_ns = 0;
	req->replied = true;
}

static_assert((int)REPLY_HEAD_BYTES == (int)sizeof(struct fuse_out_header), "the kernel's header");

/* The header goes into the page before the data. */
const void *reply_pipe_head(struct request *req, uint32_t len)
{
	struct fuse_out_header *out = (void *)(req->buf->data - sizeof(*out));

	*out = (struct fuse_out_header){(uint32_t)(sizeof(*out) + len), 0, req->unique};
	return out;
}

/* Not SPLICE_F_MOVE: the kernel would keep the network's pages in its cache. */
static int splice_out(struct io_thread *thread, int pipe, size_t len)
{
	ssize_t n = splice(pipe, NULL, thread->priv->fuse_fd, NULL, len, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

void reply_pipe(struct request *req, int pipe, uint32_t len)
{
	int err;

	end_trace(req, 0, len);
	if (!req->replied) {
		err = splice_out(req->thread, pipe, REPLY_HEAD_BYTES + len);
		if (err)
			could_not_send(req, err);
		count(req, err, len);
	}
	request_end(req);
}

static uint32_t kernel_type(uint8_t type)
{
	if (type == LOCK_FREE)
		return F_UNLCK;
	return type == LOCK_SHARED ? F_RDLCK : F_WRLCK;
}

void reply_lock(struct request *req, const struct lock_found *found)
{
	struct fuse_lk_out out = {.lk = {
					  .start = found->start,
					  .end = found->end,
					  .type = kernel_type(found->type),
					  .pid = found->pid,
				  }};

	send_and_end(req, &out, sizeof(out));
}

void reply_lseek(struct request *req, uint64_t offset)
{
	struct fuse_lseek_out out = {.offset = offset};

	send_and_end(req, &out, sizeof(out));
}

void reply_ioctl(struct request *req)
{
	struct fuse_ioctl_out out = {0};

	send_and_end(req, &out, sizeof(out));
}

void reply_length(struct request *req, uint32_t len)
{
	struct fuse_getxattr_out out = {.size = len};

	send_and_end(req, &out, sizeof(out));
}

void reply_statfs(struct request *req, const struct statfs_values *st)
{
	struct fuse_statfs_out out = {.st = {
					      .blocks = st->blocks,
					      .bfree = st->bfree,
					      .bavail = st->bavail,
					      .files = st->files,
					      .ffree = st->ffree,
					      .bsize = PAGE_BYTES,
					      .frsize = PAGE_BYTES,
					      .namelen = NAME_BYTES_MAX,
				      }};

	send_and_end(req, &out, sizeof(out));
}

/* ---- directories ----------------------------------------------------------------------------- */

void dir_packer_init(struct dir_packer *p, struct request *req)
{
	*p = (struct dir_packer){
		.start = req->buf->data,
		.size = (uint32_t)min_u64(req->args.size, IO_BYTES_MAX),
		.plus = req->args.plus,
	};
}

bool dir_pack(struct dir_packer *p, const char *name, uint16_t namelen, uint64_t next_cookie,
	uint64_t node, const struct attr *attr, struct ttl ttl)
{
	uint32_t head = p->plus ? sizeof(struct fuse_entry_out) : 0;
	uint32_t used = head + FUSE_NAME_OFFSET + namelen;
	uint32_t padded = FUSE_DIRENT_ALIGN(used);
	uint8_t *at = p->start + p->used;
	struct fuse_dirent *dirent = (void *)(at + head);

	if (padded > p->size - p->used)
		return false;
	if (p->plus)
		put_entry((void *)at, node, attr, ttl);
	*dirent = (struct fuse_dirent){
		.ino = attr->ino,
		.off = next_cookie,
		.namelen = namelen,
		.type = (attr->mode & S_IFMT) >> 12,
	};
	memcpy(dirent->name, name, namelen);
	memset(at + used, 0, padded - used);
	p->used += padded;
	return true;
}
