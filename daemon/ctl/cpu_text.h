/* cpu_text.h - how much a server or a mount's daemon waits for a CPU, from the member `cpu` of its
 * status. */
#ifndef RMEMFS_DAEMON_CTL_CPU_TEXT_H
#define RMEMFS_DAEMON_CTL_CPU_TEXT_H

#include <jansson.h>

#include "common/base/cpu_wait.h"

/* False: the status has none, as those of earlier releases. */
bool ctl_cpu_view(const json_t *status, struct cpu_wait_view *view);

#endif
