/* configured.h - mounts and the server of this machine that are configured to run, and do not:
 * services of systemd, and lines of fstab(5).
 *
 * A machine without systemd or without fstab has none of that kind. Nothing touches a mount.
 *
 * An object of the list is {"kind", "name", "unit", "state", "result", "status"}:
 *
 *   kind    "mount" or "server"
 *   name    the unit, such as rmemfs@data.service; or the mount point, if unit is false
 *   state   "failed"; "restarting": systemd tries again and again; "starting"; "stopped": enabled,
 *           and it does not run; "unmounted": a line of fstab without noauto
 *   result  why the last start failed, in systemd's word; "": not known
 *   status  the last line of the unit's status; "": none
 *
 * THREADS    Any.
 * ERRORS     0 or -errno. A list always has what was seen before the error.
 */
#ifndef RMEMFS_DAEMON_CTL_CONFIGURED_H
#define RMEMFS_DAEMON_CTL_CONFIGURED_H

#include <jansson.h>

/* *list: the caller drops the reference; NULL: no memory. An error is systemd's: it was not asked,
 * or has not answered within limit_ms. */
int configured_list(unsigned limit_ms, json_t **list);
/* Appends lines of such a file whose place has no mount of ours. */
int configured_fstab(const char *file, json_t *list);
/* How many of a kind there are. */
unsigned configured_count(const json_t *list, const char *kind);

#endif
