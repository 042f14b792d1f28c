/* null_stock.c - the null files (null_files.h) behind libfuse's own multi-threaded loop, with its
 * stock settings: the speed of a FUSE filesystem without special effort.
 *
 *     null_stock MOUNTPOINT   in the foreground, until it is unmounted
 */
#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <stdio.h>
#include <sys/stat.h>

#include "null_files.h"

static const double timeout_s = 60;

static struct stat stat_of(const struct null_attr *attr)
{
	struct timespec mtime = {attr->mtime / 1000000000, attr->mtime % 1000000000};

	return (struct stat){
		.st_ino = attr->node,
		.st_size = (off_t)attr->size,
		.st_blocks = (blkcnt_t)((attr->size + 511) / 512),
		.st_mode = attr->mode,
		.st_nlink = 1,
		.st_atim = mtime,
		.st_mtim = mtime,
		.st_ctim = mtime,
	};
}

static struct fuse_entry_param entry_of(const struct null_attr *attr)
{
	return (struct fuse_entry_param){
		.ino = attr->node,
		.attr = stat_of(attr),
		.attr_timeout = timeout_s,
		.entry_timeout = timeout_s,
	};
}

static void reply_attr(fuse_req_t req, fuse_ino_t node)
{
	struct null_attr attr;
	struct stat st;
	int err = null_getattr(node, &attr);

	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	st = stat_of(&attr);
	fuse_reply_attr(req, &st, timeout_s);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct null_attr attr;
	struct fuse_entry_param entry;
	int err = null_lookup(name, &attr);

	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	entry = entry_of(&attr);
	fuse_reply_entry(req, &entry);
}

static void op_create(
	fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	struct null_attr attr;
	struct fuse_entry_param entry;
	int err = null_create(name, mode, &attr);

	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	entry = entry_of(&attr);
	fuse_reply_create(req, &entry, fi);
}

static void op_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	fi->keep_cache = 1;
	if (fi->flags & O_TRUNC)
		null_truncate(node, 0);
	fuse_reply_open(req, fi);
}

static void op_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	reply_attr(req, node);
}

static void op_setattr(
	fuse_req_t req, fuse_ino_t node, struct stat *st, int valid, struct fuse_file_info *fi)
{
	if (valid & FUSE_SET_ATTR_SIZE)
		null_truncate(node, (uint64_t)st->st_size);
	reply_attr(req, node);
}

static void op_read(
	fuse_req_t req, fuse_ino_t node, size_t size, off_t off, struct fuse_file_info *fi)
{
	const uint8_t *data;
	uint32_t len = null_read(node, (uint64_t)off, (uint32_t)size, &data);

	fuse_reply_buf(req, (const char *)data, len);
}

static void op_write(fuse_req_t req, fuse_ino_t node, const char *buf, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	null_write(node, (uint64_t)off, size);
	fuse_reply_write(req, size);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, -null_unlink(name));
}

static void op_forget(fuse_req_t req, fuse_ino_t node, uint64_t nlookup)
{
	null_forget(node, nlookup);
	fuse_reply_none(req);
}

static void op_done(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	fuse_reply_err(req, 0);
}

static void op_fsync(fuse_req_t req, fuse_ino_t node, int datasync, struct fuse_file_info *fi)
{
	fuse_reply_err(req, 0);
}

static void op_readdir(
	fuse_req_t req, fuse_ino_t node, size_t size, off_t off, struct fuse_file_info *fi)
{
	fuse_reply_buf(req, NULL, 0);
}

static const struct fuse_lowlevel_ops ops = {
	.lookup = op_lookup,
	.create = op_create,
	.open = op_open,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.read = op_read,
	.write = op_write,
	.unlink = op_unlink,
	.forget = op_forget,
	.flush = op_done,
	.release = op_done,
	.fsync = op_fsync,
	.readdir = op_readdir,
};

static int serve(struct fuse_session *session, const char *mountpoint)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int err = -ENOMEM;

	if (!config)
		return err;
	err = fuse_session_mount(session, mountpoint);
	if (!err) {
		err = fuse_session_loop_mt(session, config);
		fuse_session_unmount(session);
	}
	fuse_loop_cfg_destroy(config);
	return err;
}

static int run(const char *mountpoint)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *session = NULL;
	int err = -ENOMEM;

	if (fuse_opt_add_arg(&args, "null_stock") == 0 && fuse_opt_add_arg(&args, "-o") == 0 &&
		fuse_opt_add_arg(&args, "fsname=null,subtype=null,allow_other") == 0)
		session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	if (session) {
		if (fuse_set_signal_handlers(session) == 0)
			err = serve(session, mountpoint);
		fuse_remove_signal_handlers(session);
		fuse_session_destroy(session);
	}
	fuse_opt_free_args(&args);
	return err;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: null_stock MOUNTPOINT\n", stderr);
		return 2;
	}
	null_files_init();
	return run(argv[1]) ? 1 : 0;
}
