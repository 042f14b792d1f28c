/* print_mount.h - the state of mounts for people. All strings of what is printed are printable
 * (json.h). */
#ifndef RMEMFS_DAEMON_CTL_PRINT_MOUNT_H
#define RMEMFS_DAEMON_CTL_PRINT_MOUNT_H

#include <jansson.h>

/* The answer of one mount's daemon. */
void ctl_print_mount(const json_t *root);
/* ctl_list_mounts()' list. */
void ctl_print_mounts(const json_t *list);

#endif
