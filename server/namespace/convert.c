/* convert.c - CONVERT: a session that had the export for itself goes by leases from now on. */
#include <errno.h>

#include "common/base/crash_point.h"
#include "server/namespace/ns.h"

static int ns_convert_refuse(struct ns_call *c, const char *text)
{
	c->rep->text = (struct rpc_str){text, (uint16_t)strlen(text)};
	return -EINVAL;
}

int ns_convert(struct ns_call *c)
{
	bool shares = c->req->convert.state == CONVERT_SHARES;
	uint32_t flags = c->ctx->flags;
	int err;

	if (!(flags & ATTACH_CONVERTS))
		return ns_convert_refuse(c, "the session has not said that it can be converted");
	if (shares ? flags & ATTACH_SHARED : !(flags & SESSION_FORGETS))
		return ns_convert_refuse(c, "the session is not in a state that this follows");
	flags = shares ? flags | ATTACH_SHARED | SESSION_FORGETS
		       : flags & ~(uint32_t)SESSION_FORGETS;
	err = meta_session_set_flags(c->m, c->ctx->session, flags);
	CRASH_POINT("convert.stored");
	return err;
}
