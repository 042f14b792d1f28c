/* mount_ask.h - the mounts of this machine, and the answers of their daemons.
 *
 * Nothing touches a mount itself: a mount whose server is away would keep the caller waiting.
 *
 * ERRORS     0 or -errno with a line in why: the reason and the remedy.
 */
#ifndef RMEMFS_DAEMON_CTL_MOUNT_ASK_H
#define RMEMFS_DAEMON_CTL_MOUNT_ASK_H

#include <jansson.h>
#include <stddef.h>

#include "common/base/mountinfo.h"

/* Whether rmemfs is mounted at dir, in this mount namespace; a link and a relative path will do.
 * The strings of *mount lie in the result, which the caller frees. NULL: it is not. */
char *ctl_find_mount(const char *dir, struct mount *mount);

/* Asks the mount's daemon. *answer: JSON that rmemfsctl(8) describes; the caller drops the
 * reference. -ENOENT, -ECONNREFUSED: nobody listens. -EACCES: the caller may not ask. -ETIMEDOUT:
 * each step has limit_ms. -EPERM: the daemon refuses. -EPROTO: the answer is malformed. */
int ctl_ask_mount(const struct mount *mount, const char *question, unsigned limit_ms,
	json_t **answer, char *why, size_t whylen);

/* All mounts of rmemfs, asked one after the other: an array of {"mountpoint", "source",
 * "connection", "allowed", "answer", "error"}; one of the last two is null. allowed: false if
 * this user may not ask. -errno of reading the list of
 * mounts. */
int ctl_list_mounts(unsigned limit_ms, json_t **list);

#endif
