/* ops.h - the operations, one function for each of the kernel's requests. Each answers its request
 * by exactly one reply_*(), at once or later. */
#ifndef RMEMFS_DAEMON_OPS_OPS_H
#define RMEMFS_DAEMON_OPS_OPS_H

struct request;

/* ops_lookup.c */
void op_lookup(struct request *req);
/* ops_attr.c: also STATX */
void op_getattr(struct request *req);
/* ops_statfs.c */
void op_statfs(struct request *req);
/* ops_setattr.c */
void op_setattr(struct request *req);
/* ops_make.c */
void op_mknod(struct request *req);
void op_mkdir(struct request *req);
void op_symlink(struct request *req);
void op_link(struct request *req);
void op_create(struct request *req);
void op_tmpfile(struct request *req);
/* ops_remove.c */
void op_unlink(struct request *req);
void op_rmdir(struct request *req);
void op_rename(struct request *req);
/* ops_readlink.c */
void op_readlink(struct request *req);
/* ops_open.c */
void op_open(struct request *req);
void op_release(struct request *req);
void op_opendir(struct request *req);
void op_releasedir(struct request *req);
/* ops_sync.c */
void op_flush(struct request *req);
void op_fsync(struct request *req);
void op_fsyncdir(struct request *req);
/* ops_readdir.c */
void op_readdir(struct request *req);
/* ops_read.c */
void op_read(struct request *req);
/* ops_write.c */
void op_write(struct request *req);
/* ops_lseek.c */
void op_lseek(struct request *req);
/* ops_lock.c */
void op_getlk(struct request *req);
void op_setlk(struct request *req);
/* ops_xattr.c */
void op_getxattr(struct request *req);
void op_listxattr(struct request *req);
void op_setxattr(struct request *req);
void op_removexattr(struct request *req);
/* ops_fallocate.c */
void op_fallocate(struct request *req);
/* ops_copy.c */
void op_copy(struct request *req);
/* remount.c */

#endif
