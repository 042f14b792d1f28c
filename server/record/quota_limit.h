/* quota_limit.h - the limits of a user or a group in an export; from the configuration. */
#ifndef RMEMFS_SERVER_RECORD_QUOTA_LIMIT_H
#define RMEMFS_SERVER_RECORD_QUOTA_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/rpc.h"

struct quota_limit {
	enum rpc_quota_kind kind;
	bool everybody; /* of all without a limit of their own, but for root; else id's */
	uint32_t id;
	uint64_t npages, inodes; /* 0: any number */
};

#endif
