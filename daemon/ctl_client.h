/* ctl_client.h - asks a server for its status.
 *
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_DAEMON_CTL_CLIENT_H
#define RMEMFS_DAEMON_CTL_CLIENT_H

#include <stddef.h>

/* where: a socket's path, HOST[:PORT], HOST:/EXPORT, or TRANSPORT:ADDRESS as the server's --listen
 * takes it. *text: JSON, malloced. Takes at most timeout_ms, the resolver's time aside. */
int ctl_fetch_status(const char *where, int timeout_ms, char **text, char *why, size_t whylen);

#endif
