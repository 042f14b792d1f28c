/* report.h - a mount's state as one JSON text: rmemfsctl(8) describes its members.
 *
 * THREADS    One thread asks; see look.h.
 */
#ifndef RMEMFS_DAEMON_ADMIN_REPORT_H
#define RMEMFS_DAEMON_ADMIN_REPORT_H

#include <stdint.h>

struct fs;
struct io_thread;
struct looks;

struct mount_facts {
	struct fs *fs;
	struct io_thread *first; /* thread 0 */
	const char *source;      /* as mounted */
	unsigned connection;     /* the kernel's number */
	int64_t mounted_s;       /* since 1970 */
	int64_t mounted_ms;      /* as now_ms() tells */
};

/* The I/O threads have limit_ms to answer. The caller frees the text. NULL: no memory. */
char *report_text(const struct mount_facts *facts, struct looks *looks, unsigned limit_ms);

#endif
