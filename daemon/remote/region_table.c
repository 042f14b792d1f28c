/* region_table.c - the keys of a channel to the export's regions.
 *
 * A channel that connects asks for all keys before it is ready. Later the export may grow, which
 * nobody tells. The first transfer that names a new region waits, in its thread's queue, while its
 * channel asks for the keys that it lacks. So each channel learns of a region before it reaches
 * there, whichever thread has got the extent, and an export's growth costs no other client a
 * message.
 */
#include <errno.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/remote/remote_private.h"

void region_table_reset(struct remote *r)
{
	r->next_region = 0;
	r->asks_regions = false;
}

void region_table_ask(struct remote *r)
{
	struct rpc_request req = {.op = RPC_REGIONS, .slot = RPC_NO_SLOT};
	int err;

	req.regions.first = r->next_region;
	err = remote_channel_send(r, &req);
	r->asks_regions = !err;
	r->regions_asked += !err;
	r->regions_ms = 0;
	/* -EAGAIN: a ready channel has no buffer now, and the next tick tries again. */
	if (err && err != -ENOTCONN && err != -EAGAIN)
		remote_channel_drop(r, "REGIONS can't be sent: %s", errno_text(err));
}

bool region_table_want(struct remote *r, uint64_t *answer)
{
	/* An answer that was on its way before may be older than the region. */
	if (!*answer)
		*answer = r->regions_asked + 1;
	else if (*answer <= r->regions_answered)
		return false;
	if (!r->asks_regions)
		region_table_ask(r);
	return true;
}

/* Regions come in the order of their indices. */
static int take_region(struct remote *r, const struct rpc_region *region, uint32_t nregions)
{
	struct region_key key = {
		.addr = region->addr,
		.len = region->len,
		.rkey = region->rkey,
		.access = region->access,
	};

	if (region->index < r->next_region || region->index >= nregions)
		return -EPROTO;
	r->next_region = region->index + 1;
	if (!region->index)
		atomic_store(&r->session->region_bytes, region->len);
	/* No transfer there can be posted: EIO. */
	if (!region->access) {
		session_lost_region(r->session, region->index);
		return 0;
	}
	return channel_set_key(r->ch, region->index, &key);
}

static int take_regions(struct remote *r, const struct rpc_regions_reply *reply)
{
	struct wire_in in = rpc_tail_reader(&reply->tail);
	uint32_t before = r->next_region;
	struct rpc_region region;
	int err;

	while (rpc_get_region(&in, &region)) {
		err = take_region(r, &region, reply->nregions);
		if (err)
			return err;
	}
	return in.truncated || (r->next_region == before && before < reply->nregions) ? -EPROTO : 0;
}

int region_table_answered(struct remote *r, const struct rpc_reply *rep)
{
	int err = rep->status ? rep->status : take_regions(r, &rep->regions);

	r->asks_regions = false;
	if (err && err != -ENOTCONN)
		remote_channel_drop(r, "no use of the region table: %s", errno_text(err));
	if (err)
		return err;
	if (r->next_region < rep->regions.nregions)
		return 0;
	r->regions_answered = r->regions_asked;
	session_has_regions(r->session, r->next_region);
	return 1;
}
