/* print_mount.h - the state of mounts for people. All strings of what is printed are printable
 * (json.h). */
#ifndef RMEMFS_DAEMON_CTL_PRINT_MOUNT_H
#define RMEMFS_DAEMON_CTL_PRINT_MOUNT_H

#include <jansson.h>
#include <stdint.h>

/* The answer of one mount's daemon. */
void ctl_print_mount(const json_t *root);
/* ctl_list_mounts()' list. */
void ctl_print_mounts(const json_t *list);

/* "870 ns", "12.3 us", "4.5 ms", "12.3 s", "3 h 12 min": five digits at most. Returns buf. */
enum { CTL_TIME_CHARS = 64 };
const char *ctl_time_text(uint64_t ns, char buf[CTL_TIME_CHARS]);
/* A request's "waits_for" in words that say where people find out more. */
const char *ctl_wait_text(const char *waits_for);

#endif
