#include "server/base/numa.h"

#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void node_file(char *path, size_t len, unsigned node)
{
	snprintf(path, len, "/sys/devices/system/node/node%u/meminfo", node);
}

bool numa_node_exists(unsigned node)
{
	char path[64];

	node_file(path, sizeof(path), node);
	return access(path, F_OK) == 0;
}

/* ---- where a device is ----------------------------------------------------------------------- */

static bool same_host(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (!a || a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

/* An RDMA device and its network interface are functions of one card. */
static int node_of_interface(const char *name)
{
	char path[128];
	int node = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/numa_node", name);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

int numa_node_of(const struct transport_address *address)
{
	struct ifaddrs *all;
	int node = -1;

	if (getifaddrs(&all) != 0)
		return -1;
	for (struct ifaddrs *at = all; at && node < 0; at = at->ifa_next)
		if (same_host(at->ifa_addr, &address->addr))
			node = node_of_interface(at->ifa_name);
	freeifaddrs(all);
	return node;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Free memory, and the page cache of files on disks. */
uint64_t numa_node_available(int node)
{
	uint64_t kib, sum = 0;
	char path[64], line[128], name[32];
	FILE *f;

	node_file(path, sizeof(path), (unsigned)node);
	f = fopen(path, "re");
	if (!f)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Node %*d %31[^:]: %" SCNu64 " kB", name, &kib) != 2)
			continue;
		if (strcmp(name, "MemFree") == 0 || strcmp(name, "Active(file)") == 0 ||
			strcmp(name, "Inactive(file)") == 0)
			sum += kib << 10;
	}
	fclose(f);
	return sum;
}

int numa_place_memory(void *addr, uint64_t len, const struct numa_place *place)
{
	enum { BITS = sizeof(unsigned long) * CHAR_BIT };
	unsigned long nodes[NUMA_NODE_MAX / BITS + 1] = {0};

	if (place->node < 0)
		return 0;
	nodes[place->node / BITS] = 1UL << place->node % BITS;
	/* The kernel counts one bit more than it reads. */
	if (syscall(SYS_mbind, addr, len, place->only ? MPOL_BIND : MPOL_PREFERRED, nodes,
		    sizeof(nodes) * CHAR_BIT + 1, 0) != 0)
		return -errno;
	return 0;
}
