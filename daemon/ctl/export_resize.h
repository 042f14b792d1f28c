/* export_resize.h - rmemfsctl export resize: an export that is served becomes larger.
 *
 *     [locked directory] -> the export's file gets the new size -> reload -> done
 *                                                   `-> refused: the file is as it was before
 *
 * The file is the truth. It has the new size before the server does. So after a command or a server
 * that is killed between, the next reload or start gives the export this size. The former file
 * keeps the name DIR/.NAME.before until the server has decided. Comments and other settings stay.
 *
 * ERRORS  The reason is printed.
 */
#ifndef RMEMFS_DAEMON_CTL_EXPORT_RESIZE_H
#define RMEMFS_DAEMON_CTL_EXPORT_RESIZE_H

#include "daemon/ctl/args.h"

/* The size was checked. Returns the exit status. */
int export_resize(const struct ctl_args *args);

#endif
