/* start_check.h - --check-config: tells what a start would do with this configuration on this
 * machine.
 *
 * It asks the functions that the start asks, about the memory directory (memdir_look), clients and
 * their keys (access_table_new), exports and room (exports_plan), store (meta_look), snapshots
 * (snapshot_sets_look) and ports (ports_look). It makes and changes nothing. If a server runs on
 * the memory directory, that is left alone. Then the check tells what a restart would do, as far as
 * that can be known.
 *
 * If root runs it, and the memory directory belongs to the unit's user, it looks as that user, and
 * knows what the unit makes and allows.
 *
 * Standard output has what would be done; standard error has a line for each problem.
 */
#ifndef RMEMFS_SERVER_SERVE_START_CHECK_H
#define RMEMFS_SERVER_SERVE_START_CHECK_H

#include "server/config/config.h"
#include "server/base/exit_status.h"

/* The status that a start would have, as far as can be known. */
enum server_status start_check(struct server_config *config);

#endif
