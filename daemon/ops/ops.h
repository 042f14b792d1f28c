/* ops.h - the operations, one function for each of the kernel's requests. Each answers its request
 * by exactly one reply_*(), at once or later. */
#ifndef RMEMFS_DAEMON_OPS_OPS_H
#define RMEMFS_DAEMON_OPS_OPS_H

struct request;

/* lookup.c */
void op_lookup(struct request *req);
/* getattr.c: also STATX */
void op_getattr(struct request *req);
/* statfs.c */
void op_statfs(struct request *req);
/* setattr.c */
void op_setattr(struct request *req);
/* make.c */
void op_mknod(struct request *req);
void op_mkdir(struct request *req);
void op_symlink(struct request *req);
void op_link(struct request *req);
void op_create(struct request *req);
void op_tmpfile(struct request *req);
/* remove.c */
void op_unlink(struct request *req);
void op_rmdir(struct request *req);
void op_rename(struct request *req);
/* readlink.c */
void op_readlink(struct request *req);
/* open.c */
void op_open(struct request *req);
void op_release(struct request *req);
void op_opendir(struct request *req);
void op_releasedir(struct request *req);
/* sync.c */
void op_flush(struct request *req);
void op_fsync(struct request *req);
void op_fsyncdir(struct request *req);
/* readdir.c */
void op_readdir(struct request *req);
/* read.c */
void op_read(struct request *req);
/* write.c */
void op_write(struct request *req);
/* lseek.c */
void op_lseek(struct request *req);
/* lock.c */
void op_getlk(struct request *req);
void op_setlk(struct request *req);
/* xattr.c */
void op_getxattr(struct request *req);
void op_listxattr(struct request *req);
void op_setxattr(struct request *req);
void op_removexattr(struct request *req);
/* fallocate.c */
void op_fallocate(struct request *req);
/* copy.c */
void op_copy(struct request *req);

#endif
