/* export_file.h - a file of exports.d, the directory beside the server's configuration.
 *
 *     DIR/NAME.conf      has the export
 *     DIR/.NAME.conf     a draft of it, or of a mark: the server does not look at it
 *     DIR/.NAME.remove   the mark of an export that is to be removed, see
 *                        server/config/config_files.h
 *
 * ERRORS  0 or -errno; the reason is logged.
 */
#ifndef RMEMFS_DAEMON_CTL_EXPORT_FILE_H
#define RMEMFS_DAEMON_CTL_EXPORT_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "daemon/ctl/args.h"

struct export_file {
	int lock; /* the directory, open; -1: not yet */
	char dir[PATH_MAX];
	char path[PATH_MAX];
	char draft[PATH_MAX];
	char mark[PATH_MAX];
};

bool export_file_is_name(const char *name);
/* By --config and the operand EXPORT. */
int export_file_name(const struct ctl_args *args, struct export_file *file);
/* Until the server has decided. A reload takes all files or none, so it would refuse ours for the
 * file of another command that runs beside this one. The caller closes file->lock. */
int export_file_lock(struct export_file *file);
/* The server reads it, under any umask. Logs nothing. */
int export_file_give(int fd);
/* Until the next call a signal that ends the command prints this text first. NULL: signals are
 * ignored. */
void export_file_at_signals(const char *say);
/* Logs it, and returns err. */
int export_file_fail(const char *doing, const char *path, int err);

#endif
