/* mount_ask.h - the mounts of this machine, and the answers of their daemons.
 *
 * Nothing touches a mount itself: a mount whose server is away would keep the caller waiting.
 *
 * ERRORS     0 or -errno with a line in why: the reason and the remedy.
 */
#ifndef RMEMFS_DAEMON_CTL_MOUNT_ASK_H
#define RMEMFS_DAEMON_CTL_MOUNT_ASK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/mountinfo.h"

/* The mount of rmemfs that a path is on, in this mount namespace: its place, a link to it, a
 * relative path, or something below it. A bare name counts only if it is a place. The strings of
 * *mount lie in the result, which the caller frees. NULL: it is on none. */
char *ctl_find_mount(const char *path, struct mount *mount);

/* Asks the mount's daemon. *answer: JSON that rmemfsctl(8) describes; the caller drops the
 * reference. -ENOENT, -ECONNREFUSED: nobody listens. -EACCES: the caller may not ask, or has
 * no XDG_RUNTIME_DIR. -ETIMEDOUT: each step has limit_ms. -EPERM: the daemon refuses. -EPROTO: the
 * answer is malformed. */
int ctl_ask_mount(const struct mount *mount, const char *question, unsigned limit_ms,
	json_t **answer, char *why, size_t whylen);

/* Whether it is an existing folder, as a path from "/" or ".". Only for a path that
 * ctl_find_mount() does not find: a look could wait for a mount. */
bool ctl_is_folder(const char *path);

/* The mount with its daemon's answer: {"mountpoint", "source", "connection", "uid", "allowed",
 * "answer", "error"}; one of the last two is null. allowed: false if this user may not ask. */
json_t *ctl_describe_mount(const struct mount *mount, unsigned limit_ms);

/* All mounts of rmemfs, asked one after the other: an array of these. -errno of reading the list of
 * mounts. */
int ctl_list_mounts(unsigned limit_ms, json_t **list);
/* The same of root's mounts and this user's own, since any user can mount something of our type.
 * Each is there once: a bind mount has the daemon of the mount before it. */
int ctl_list_own_mounts(unsigned limit_ms, json_t **list);

#endif
