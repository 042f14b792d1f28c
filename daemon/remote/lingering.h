/* lingering.h - a mount that was unmounted and lives on, since another mount namespace has a copy
 * of it, or a file in it is open.
 *
 * A server that refuses a mount names the client that has the export. If that client is a process
 * of this machine whose mount can't be seen here, this finds out what keeps it alive. It reads
 * /proc, as far as this process may, and asks no filesystem: a server that does not answer holds
 * nothing up.
 *
 * THREADS    Any. Not for the data path: it looks at all processes.
 */
#ifndef RMEMFS_DAEMON_REMOTE_LINGERING_H
#define RMEMFS_DAEMON_REMOTE_LINGERING_H

#include <stddef.h>

enum { LINGERING_BYTES = 400 };

/* refusal: the server's words, "... is in use by HOST:DIR (pid N) ...". out gets the text to add,
 * beginning with "; ", or becomes empty. */
void lingering_explain(const char *refusal, char out[LINGERING_BYTES]);

#endif
