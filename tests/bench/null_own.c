/* null_own.c - the null files (null_files.h) behind our own FUSE port and I/O threads: the cost of
 * the daemon without a server and without storage.
 *
 *     null_own MOUNTPOINT     in the foreground, until it is unmounted
 *
 * This is the daemon's main without a session, and fs.h without a filesystem. It defines all
 * functions that the I/O threads call, so that the linker takes nothing of fs.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/rpc/rpc.h"
#include "common/transport/kinds.h"
#include "common/transport/transport.h"
#include "common/base/util.h"
#include "daemon/mount/config.h"
#include "daemon/serve/fs.h"
#include "daemon/fuse/port.h"
#include "daemon/serve/threads.h"
#include "daemon/file/cache_policy.h"
#include "daemon/fuse/fuse_ops.h"
#include "daemon/remote/remote.h"
#include "daemon/mount/mountpoint.h"
#include "null_files.h"

enum { TTL_MS = 60000, WHY_BYTES = 512, READAHEAD_KIB = 1024 };

struct fs {
	struct transport *transport; /* for event queues and buffers; connects to nothing */
	struct fs_features features;
	struct request_shared requests;
};

static const struct ttl ttl = {TTL_MS, TTL_MS};

/* ---- operations ------------------------------------------------------------------------------ */

static struct attr attr_of(const struct null_attr *null)
{
	return (struct attr){
		.ino = null->node,
		.size = null->size,
		.npages = div_round_up(null->size, PAGE_BYTES),
		.atime = null->mtime,
		.mtime = null->mtime,
		.ctime = null->mtime,
		.mode = null->mode,
		.nlink = 1,
	};
}

/* As the daemon does with cache=shared: a file opened only for writing, or with O_DIRECT, bypasses
 * the page cache. */
static enum open_kind kind_of(const struct request *req)
{
	static const struct cache_handles none;

	return cache_open_kind(CACHE_SHARED, &req->thread->fs->features, none, req->args.flags);
}

static unsigned open_flags(const struct request *req, enum open_kind kind)
{
	if (kind == OPENED_CACHED)
		return OPEN_KEEP_CACHE;
	return OPEN_DIRECT |
	       (req->thread->fs->features.parallel_direct_writes ? OPEN_PARALLEL_WRITES : 0);
}

static void lookup(struct request *req)
{
	struct null_attr null;
	struct attr attr;
	int err = null_lookup(req->args.name, &null);

	if (err) {
		reply_error(req, err);
		return;
	}
	attr = attr_of(&null);
	reply_entry(req, null.node, &attr, ttl);
}

static void create(struct request *req)
{
	enum open_kind kind = kind_of(req);
	struct null_attr null;
	struct attr attr;
	int err = null_create(req->args.name, req->args.mode, &null);

	if (!err && (req->args.flags & O_TRUNC)) {
		null_truncate(null.node, 0);
		null.size = 0;
	}
	if (err) {
		reply_error(req, err);
		return;
	}
	attr = attr_of(&null);
	reply_create(req, null.node, &attr, ttl, kind, open_flags(req, kind));
}

static void open_file(struct request *req)
{
	enum open_kind kind = kind_of(req);

	if (req->args.flags & O_TRUNC)
		null_truncate(req->node, 0);
	reply_open(req, kind, open_flags(req, kind));
}

static void getattr(struct request *req)
{
	struct null_attr null;
	struct attr attr;
	int err = null_getattr(req->node, &null);

	if (err) {
		reply_error(req, err);
		return;
	}
	attr = attr_of(&null);
	reply_attr(req, &attr, ttl);
}

static void setattr(struct request *req)
{
	if (req->args.set.valid & SET_SIZE)
		null_truncate(req->node, req->args.set.size);
	getattr(req);
}

static void read_file(struct request *req)
{
	const uint8_t *data;
	uint32_t len = null_read(req->node, req->args.offset, req->args.size, &data);

	reply_bytes(req, data, len);
}

static void write_file(struct request *req)
{
	null_write(req->node, req->args.offset, req->args.size);
	reply_write(req, req->args.size);
}

static void dispatch(struct request *req)
{
	switch (req->op) {
	case OP_LOOKUP:
		lookup(req);
		break;
	case OP_CREATE:
		create(req);
		break;
	case OP_OPEN:
		open_file(req);
		break;
	case OP_GETATTR:
		getattr(req);
		break;
	case OP_SETATTR:
		setattr(req);
		break;
	case OP_READ:
		read_file(req);
		break;
	case OP_WRITE:
		write_file(req);
		break;
	case OP_UNLINK:
		reply_error(req, null_unlink(req->args.name));
		break;
	case OP_OPENDIR:
		reply_open(req, 0, 0);
		break;
	case OP_RELEASEDIR:
	case OP_RELEASE:
	case OP_FSYNC:
	case OP_FLUSH:
		reply_error(req, 0);
		break;
	case OP_READDIR:
		reply_bytes(req, NULL, 0);
		break;
	default:
		reply_error(req, -ENOSYS);
	}
}

static void forget(struct io_thread *thread, const struct forget *forgotten)
{
	null_forget(forgotten->node, forgotten->nlookup);
}

static void interrupt(struct request *req)
{
}

static bool interrupt_other(struct io_thread *thread, uint64_t unique)
{
	return false;
}

static bool begins_anew(struct request *req, int *error)
{
	return false;
}

static bool holds_up_dropping(struct request *req)
{
	return false;
}

/* Each payload goes into the thread's buffer. */
static void *payload_home(struct io_thread *thread)
{
	return NULL;
}

static const struct fuse_ops ops = {
	.dispatch = dispatch,
	.forget = forget,
	.interrupt = interrupt,
	.interrupt_other = interrupt_other,
	.begins_anew = begins_anew,
	.holds_up_dropping = holds_up_dropping,
	.payload_home = payload_home,
};

/* ---- what else the threads want -------------------------------------------------------------- */

int fs_register_memory(struct fs *fs, void *addr, size_t len, struct buffer **out)
{
	return buffer_register(fs->transport, addr, len, out);
}

void fs_deregister_memory(struct fs *fs, struct buffer *b)
{
	buffer_deregister(b);
}

void fs_threads_started(struct fs *fs)
{
}

void fs_threads_ended(struct fs *fs)
{
}

int fs_thread_init(struct fs *fs, struct io_thread *thread)
{
	thread->ops = &ops;
	thread->shared = &fs->requests;
	return evq_new(fs->transport, &thread->evq);
}

void fs_thread_fini(struct io_thread *thread)
{
	evq_delete(thread->evq);
}

/* Without a server there is no lost connection. */
bool remote_disconnected(const struct io_thread *thread)
{
	return false;
}

bool remote_gives_up(const struct io_thread *thread)
{
	return false;
}

void fs_event(struct io_thread *thread, const struct event *ev)
{
}

void fs_tick(struct io_thread *thread, int64_t now)
{
}

void fs_step_paused(struct io_thread *thread)
{
}

void fs_stop(struct io_thread *thread, unsigned limit_ms)
{
}

bool fs_stopped(struct io_thread *thread)
{
	return true;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int open_transport(struct fs *fs, char *why, size_t whylen)
{
	struct transport_address address = {.kind = TRANSPORT_TCP};
	struct transport_config config;
	int err;

	transport_config_default(&config);
	config.io_threads = 0;
	err = transport_open(&address, &config, 0, &fs->transport);
	if (err)
		snprintf(why, whylen, "cannot open a transport: %s", errno_text(err));
	return err;
}

static int serve(
	struct fs *fs, struct io_threads *threads, const char *mountpoint, char *why, size_t whylen)
{
	struct fuse_port *port;
	int err = fuse_port_mount("null", mountpoint, "allow_other", &port, why, whylen);

	if (err)
		return err;
	err = fuse_port_init(port, &(struct fuse_wishes){0}, &fs->features, why, whylen);
	if (!err)
		err = io_threads_start(threads, port, why, whylen);
	if (err) {
		fuse_port_unmount(port);
	} else {
		mountpoint_set_readahead(mountpoint, READAHEAD_KIB);
		io_threads_join(threads);
	}
	fuse_port_delete(port);
	return err;
}

static int run(const char *mountpoint, char *why, size_t whylen)
{
	struct client_config config;
	struct spinning spinning;
	struct io_threads *threads;
	struct fs fs = {0};
	int err;

	client_config_init(&config);
	client_config_finish(&config, (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
	spinning = (struct spinning){(unsigned)config.spin_us, (unsigned)config.spin_readers};
	err = open_transport(&fs, why, whylen);
	if (err)
		goto err_config;
	err = io_threads_new(
		(unsigned)config.io_threads, (unsigned)config.buffers, &spinning, &threads);
	if (err)
		goto err_transport;
	err = io_threads_attach(threads, &fs, why, whylen);
	if (err)
		goto err_threads;
	err = serve(&fs, threads, mountpoint, why, whylen);
	io_threads_detach(threads);
err_threads:
	io_threads_delete(threads);
err_transport:
	transport_close(fs.transport);
err_config:
	client_config_fini(&config);
	return err;
}

int main(int argc, char **argv)
{
	char mountpoint[4096], why[WHY_BYTES] = "out of memory";

	if (argc != 2) {
		fputs("usage: null_own MOUNTPOINT\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	log_init("null_own", LOG_LEVEL_WARNING);
	null_files_init();
	if (mountpoint_resolve(argv[1], false, mountpoint, sizeof(mountpoint), why, sizeof(why)) !=
			0 ||
		run(mountpoint, why, sizeof(why)) != 0) {
		log_complaint("null_own", why);
		return 1;
	}
	return 0;
}
