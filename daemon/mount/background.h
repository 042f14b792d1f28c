/* background.h - leaving the terminal, and telling the caller who waits there how it went.
 *
 * The fork comes first: devices opened before it would not work after it. The parent waits until
 * the child says that the mount is usable, or why there is none. Then the parent exits with that.
 *
 * THREADS    main, while it is the only one, but for background_leave() and background_ready().
 */
#ifndef RMEMFS_DAEMON_MOUNT_BACKGROUND_H
#define RMEMFS_DAEMON_MOUNT_BACKGROUND_H

#include <stdbool.h>

/* Opens those of standard input, output and error that are closed, so that no other file takes
 * their place. */
void background_hold_standard_fds(void);

/* Returns the descriptor to report by in the child. In the parent it does not return: it prints
 * the child's reason, if there is one, and exits. -errno: no child. */
int background_fork(void);

/* The mount is usable: leaves the terminal's session, its directory and its descriptors. From then
 * on the log goes to the journal, with levels. With keep_file it stays at standard error, if that
 * is a file. */
void background_leave(bool keep_file);
/* Standard files that lie on the FUSE mount of this number (of the connection) become /dev/null. A
 * daemon that writes there waits for itself. */
void background_leave_files_on(unsigned number);
/* After background_leave(): lets the parent exit. */
void background_ready(int report);

/* There is no mount: the parent prints why and exits. */
void background_failed(int report, const char *why);

#endif
