/* quota.c - QUOTA: clients reserve pages of an owner's quota before they accept data. */
#include <errno.h>

#include "server/namespace/ns.h"

int ns_quota(struct ns_call *c)
{
	const struct rpc_quota *req = &c->req->quota;
	int err = req->npages ? ns_room(c, ROOM_PAGES, !req->give_back) : -EINVAL;

	if (err)
		return err;
	if (req->give_back)
		return quota_give_back(c->v, c->ctx->session, req->kind, req->id, req->npages);
	err = quota_reserve(
		c->v, c->ctx->session, req->kind, req->id, req->npages, &c->rep->quota.npages);
	return err == -EDQUOT ? ns_no_quota(c) : err;
}
