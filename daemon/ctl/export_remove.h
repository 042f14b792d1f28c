/* export_remove.h - rmemfsctl export remove: an export and all that is in it go.
 *
 *     [locked directory] -> mark, locked -> reload -> the export's file goes -> the mark goes
 *                                             `-> refused: the mark goes
 *
 * Until the server has removed the export the configuration has it. From then on the mark tells the
 * server not to make it anew (server/serve/removals.h). So a command or a server that is killed
 * leaves the export whole, or gone. The next command takes away the files that are left.
 *
 * ERRORS  The reason is printed.
 */
#ifndef RMEMFS_DAEMON_CTL_EXPORT_REMOVE_H
#define RMEMFS_DAEMON_CTL_EXPORT_REMOVE_H

#include "daemon/ctl/args.h"
#include "daemon/ctl/export_file.h"

/* Returns the exit status. */
int export_remove(const struct ctl_args *args);
/* The directory is locked: takes away what a command that was killed has left of this export. 0 or
 * -errno. */
int export_remove_finish(const struct ctl_args *args, const struct export_file *file);

#endif
