/* exports.h - rmemfsctl export: an export comes or goes while the server runs, by a file in exports.d
 * beside the server's configuration, and a reload.
 *
 * The file is written whole or not at all: another name, fsync(2), link(2), fsync of the directory.
 * If the server refuses the reload the file is taken back, so that the configuration stays the
 * truth. If the answer is lost the file stays, and the message says so; a signal while the server
 * works does the same. From the draft to the answer the directory is locked, by flock(2).
 *
 * ERRORS     Each function returns the exit status; the reason is printed.
 */
#ifndef RMEMFS_DAEMON_CTL_EXPORTS_H
#define RMEMFS_DAEMON_CTL_EXPORTS_H

#include "daemon/ctl/args.h"

int ctl_export(const struct ctl_args *args);

#endif
