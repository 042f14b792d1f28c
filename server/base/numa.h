/* numa.h - chooses the NUMA node of this machine on which memory lies.
 *
 * The RDMA device reaches memory of another node across the link between the nodes. That is slower,
 * and the link may become the limit. The kernel decides where a page lies when it is first touched.
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
	bool only; /* true: on this node only; false: on others, too, when its memory is full */
};

bool numa_node_exists(unsigned node);
/* The node of the device that has this address. -1: not known, or the machine has but one node. */
int numa_node_of(const struct transport_address *address);
/* Bytes that can still be allocated on the node; UINT64_MAX: not known. */
uint64_t numa_node_available(int node);

/* Places pages of a mapping that nobody has touched yet; other pages stay where they are. For a
 * shared file this holds whichever process touches the page. 0 or -errno. */
int numa_place_memory(void *addr, uint64_t len, const struct numa_place *place);

#endif
