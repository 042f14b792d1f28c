/* background.h - leaving the terminal, and telling the one who waits there how it went.
 *
 * The fork comes first: devices opened before it would not work after it. The parent waits until
 * the child says that the mount is usable, or why there is none, and ends with that.
 *
 * THREADS    main, while it is the only one, but for background_leave() and background_ready().
 */
#ifndef RMEMFS_DAEMON_MOUNT_BACKGROUND_H
#define RMEMFS_DAEMON_MOUNT_BACKGROUND_H

#include <stdbool.h>

/* Opens what is missing of standard input, output and error, so that nothing else becomes them. */
void background_hold_standard_fds(void);

/* Returns the descriptor to report by in the child. In the parent it does not return: it prints
 * the child's reason, if there is one, and exits. -errno: no child. */
int background_fork(void);

/* The mount is usable: leaves the terminal's session, its directory and its descriptors. Lines of
 * the log go to the journal from then on, with their levels; or where standard error went, with
 * keep_file and if that is a file. */
void background_leave(bool keep_file);
/* Then: lets the parent go. */
void background_ready(int report);

/* There is no mount. */
void background_failed(int report, const char *why);

#endif
