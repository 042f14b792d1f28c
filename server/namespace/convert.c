/* convert.c - CONVERT: a session that had the export for itself goes by leases from now on, or the way
 * back. */
#include <errno.h>

#include "common/base/crash_point.h"
#include "server/namespace/ns.h"

static int ns_convert_refuse(struct ns_call *c, const char *text)
{
	c->rep->text = (struct rpc_str){text, (uint16_t)strlen(text)};
	return -EINVAL;
}

/* The states that may follow what is stored. */
static bool ns_convert_may(uint32_t flags, uint8_t state)
{
	bool shares = flags & ATTACH_SHARED, forgets = flags & SESSION_FORGETS;

	switch (state) {
	case CONVERT_SHARES:
	case CONVERT_NOT_NOW:
		return !shares;
	case CONVERT_FORGOT:
		return forgets;
	default:
		return shares && !forgets;
	}
}

static uint32_t ns_convert_flags(uint32_t flags, uint8_t state)
{
	switch (state) {
	case CONVERT_SHARES:
		return flags | ATTACH_SHARED | SESSION_FORGETS;
	case CONVERT_FORGOT:
		return flags & ~(uint32_t)SESSION_FORGETS;
	case CONVERT_ALONE:
		return flags & ~(uint32_t)ATTACH_SHARED;
	default:
		return flags;
	}
}

static int ns_convert_give_up_leases(struct ns_call *c)
{
	return c->ctx->lonely ? ns_give_up_leases(c) : -EBUSY;
}

int ns_convert(struct ns_call *c)
{
	uint8_t state = c->req->convert.state;
	uint32_t flags = c->ctx->flags;
	int err;

	if (!(flags & ATTACH_CONVERTS))
		return ns_convert_refuse(c, "the session has not said that it can be converted");
	if (!ns_convert_may(flags, state))
		return ns_convert_refuse(c, "the session is not in a state that this follows");
	err = state == CONVERT_ALONE ? ns_convert_give_up_leases(c) : 0;
	if (!err)
		err = meta_session_set_flags(c->m, c->ctx->session, ns_convert_flags(flags, state));
	CRASH_POINT("convert.stored");
	return err;
}
