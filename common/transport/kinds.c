/* kinds.c - the table of the three implementations. */
#include "common/transport/kinds.h"

#include <errno.h>

#include "common/transport/transport_ops.h"

static const struct transport_ops *const all_ops[TRANSPORT_NKINDS] = {
	[TRANSPORT_VERBS] = &verbs_transport_ops,
	[TRANSPORT_TCP] = &tcp_transport_ops,
	[TRANSPORT_SHM] = &shm_transport_ops,
};

int transport_open(const struct transport_address *address, const struct transport_config *config,
	int timeout_ms, struct transport **out)
{
	if ((unsigned)address->kind >= TRANSPORT_NKINDS)
		return -EINVAL;
	return transport_open_with(all_ops[address->kind], address, config, timeout_ms, out);
}
