/* numa.h - on which of this machine's NUMA nodes memory comes to lie.
 *
 * Memory far from the RDMA device is reached across the link between the nodes, which is slower and
 * may become the limit. Where a page lies is decided when it is first touched.
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_SERVER_BASE_NUMA_H
#define RMEMFS_SERVER_BASE_NUMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/transport.h"

enum { NUMA_NODE_MAX = 1023 };

struct numa_place {
	int node;  /* -1: anywhere */
	bool only; /* there and nowhere else; else there for as long as it has memory */
};

bool numa_node_exists(unsigned node);
/* Of the device that has this address; -1: not known, or the machine has but one node. */
int numa_node_of(const struct transport_address *address);
/* Bytes that may still be had there; UINT64_MAX where it can't be told. */
uint64_t numa_node_available(int node);

/* For pages of a mapping that nobody has touched yet; others stay where they are. A shared file's
 * pages are placed so whoever touches them. 0 or -errno. */
int numa_place_memory(void *addr, uint64_t len, const struct numa_place *place);

#endif
