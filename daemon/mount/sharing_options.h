/* sharing_options.h - which options exclude each other, as one lets other mounts in, and another
 * keeps them out, or keeps what others change.
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_DAEMON_MOUNT_SHARING_OPTIONS_H
#define RMEMFS_DAEMON_MOUNT_SHARING_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct options;

/* Whether the mount options have the key, or take it back, whatever the file says. */
typedef bool was_given_fn(const struct options *options, const char *name);

/* The file at path has given the defaults. 0 or -EINVAL, with the reason and the remedy. */
int sharing_options_check(const struct options *options, was_given_fn *given, const char *path,
	char *why, size_t whylen);

#endif
