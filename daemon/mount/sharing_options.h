/* sharing_options.h - which options exclude each other, as one lets other mounts in, and another
 * keeps them out, or keeps what others change.
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_DAEMON_MOUNT_SHARING_OPTIONS_H
#define RMEMFS_DAEMON_MOUNT_SHARING_OPTIONS_H

#include <stddef.h>

struct options;

/* The file at path has given the defaults. 0 or -EINVAL, with the reason and the remedy. */
int sharing_options_check(
	const struct options *options, const char *path, char *why, size_t whylen);

#endif
