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
#include "daemon/ctl/client.h"

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
/* Has the server reload, which then has read the file. A signal that ends the command meanwhile
 * prints `say` first; later ones are ignored. Logs nothing: see ctl_order(). */
int export_file_reload(
	const char *where, const char *say, enum ctl_end *end, char why[RPC_TEXT_MAX + 1]);
/* Logs it, and returns err. */
int export_file_fail(const char *doing, const char *path, int err);

#endif
