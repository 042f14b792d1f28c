/* session_share.c - whether other clients may be at the export: from the beginning on, or by a
 * conversion. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/remote/remote_private.h"

/* At least, for another mount to end what it is at. */
enum { SHARE_WAIT_MS = 60000 };

bool session_is_sharing(const struct session *s)
{
	return atomic_load(&s->sharing);
}

void session_share(struct session *s)
{
	atomic_store(&s->sharing, true);
}

/* The export has other mounts. Each of them may first have to end what it is at. */
bool session_joins(struct session *s)
{
	if (!s->converts || session_is_sharing(s))
		return false;
	log_info(
		"server %s: the export has other mounts, which this one shares it with", s->server);
	session_share(s);
	s->connect_until_ms = max_i64(s->connect_until_ms, now_ms() + SHARE_WAIT_MS);
	return true;
}
