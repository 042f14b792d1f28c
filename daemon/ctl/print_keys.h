/* print_keys.h - a server's keys for people: when each was used last. root: as in print.h. */
#ifndef RMEMFS_DAEMON_CTL_PRINT_KEYS_H
#define RMEMFS_DAEMON_CTL_PRINT_KEYS_H

#include <jansson.h>

/* Nothing, if the server has no keys or does not tell. */
void ctl_print_keys(const json_t *root);

#endif
