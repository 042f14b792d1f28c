/* config_quotas.h - the limits of an export, as its configuration names them.
 *
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_SERVER_CONFIG_CONFIG_QUOTAS_H
#define RMEMFS_SERVER_CONFIG_CONFIG_QUOTAS_H

#include <stddef.h>
#include <stdint.h>

#include "common/conf/conf.h"
#include "server/record/quota_limit.h"

/* An element of quotas. */
struct quota_config {
	char *user, *group;    /* one of them: a name, a number, or "*" */
	uint64_t size, inodes; /* 0: no limit */
};

extern const struct conf_key config_quotas_keys[];

/* Turns the elements into limits, which the caller frees. Names become numbers by this machine's
 * users and groups. path: of the configuration file. */
int config_quotas_resolve(const struct conf_groups *quotas, const char *path,
	struct quota_limit **limits, char *why, size_t whylen);

#endif
