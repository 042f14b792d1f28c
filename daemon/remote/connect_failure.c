/* connect_failure.c - see connect_failure.h. */
#include "daemon/remote/connect_failure.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "daemon/remote/pick_transport.h"

void connect_failure_why(const struct remote *r, int status, char *buf, size_t len)
{
	uint32_t version = r->ch ? channel_peer_version(r->ch) : 0;
	char mismatch[WIRE_VERSION_TEXT_BYTES];

	if (status == -EPROTO && version && version != wire_version()) {
		wire_version_refused_by_server(version, mismatch);
		snprintf(buf, len, "%s", mismatch);
	} else if (status == -EPROTO) {
		snprintf(buf, len,
			"no rmemfs server: it does not speak our protocol; another program listens "
			"there: check the address and port");
	} else if (status == -EBADMSG) {
		snprintf(buf, len,
			"bytes came that the server has not sent: somebody has come between");
	} else {
		snprintf(buf, len, "%s", status ? errno_text(status) : "closed by the server");
	}
}

/* Whether a server may come: there is none yet, or it has no time for a moment. */
static bool may_pass(int status)
{
	switch (status) {
	case -EAGAIN:
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -ENOENT: /* its socket */
	case -ETIMEDOUT:
		return true;
	default:
		return false;
	}
}

/* Explains a transport that we chose, where no server is. */
static const char *hint(const struct session *s)
{
	if (s->may_be_here)
		return " (nor at " RMEMFS_DEFAULT_SOCKET ")";
	if (s->chosen && session_address(s)->kind == TRANSPORT_VERBS)
		return " (for one that serves tcp only: transport=tcp)";
	return "";
}

static const char *remedy(const struct session *s, int err)
{
	bool shm = session_address(s)->kind == TRANSPORT_SHM;

	if (err == -ETIMEDOUT)
		return "check the machine, its network and firewalls";
	if (shm && err == -EACCES)
		return "mount as root, or as the server's user";
	return shm ? "start rmemfs-server, or check the path of its socket"
		   : "start rmemfs-server there, or check the address, the port and firewalls";
}

/* Returns the result of remote_connect(), if no other attempt succeeds. */
static int explain_closed(const struct remote *r, int status, char *buf, size_t len)
{
	const struct session *s = r->session;
	char why[SESSION_WHY_BYTES / 2];
	int err = status ? status : -ECONNRESET;

	connect_failure_why(r, status, why, sizeof(why));
	if (status == -EPROTO) {
		snprintf(buf, len, "%s: %s", s->server, why);
	} else if (status == -EHOSTUNREACH || status == -ENETUNREACH) {
		snprintf(buf, len,
			"no route to %s: check the address, and the network of this machine",
			s->server);
		return -ENETUNREACH;
	} else if (r->state != REMOTE_CONNECTING) {
		snprintf(buf, len, "%s closed the connection: %s: see the server's log", s->server,
			why);
	} else if (err == -ECONNRESET) {
		snprintf(buf, len,
			"the program at %s closes the connection: is it an rmemfs-server?",
			s->server);
	} else if (err == -EACCES || err == -EPERM) {
		snprintf(buf, len, "no right to connect to %s: %s: %s", s->server, errno_text(err),
			remedy(s, err));
	} else {
		snprintf(buf, len, "no server at %s: %s%s: %s", s->server, errno_text(err), hint(s),
			remedy(s, err));
		return err == -ENOENT ? -ECONNREFUSED : err;
	}
	return err;
}

void connect_failure_tell(const struct remote *r, int status)
{
	struct session *s = r->session;
	char why[SESSION_WHY_BYTES];
	int err;

	if (!s->connecting || s->connect_error)
		return;
	err = explain_closed(r, status, why, sizeof(why));
	if (!may_pass(status ? status : -ECONNRESET) || now_ms() >= s->connect_until_ms)
		session_connect_failed(s, err, "%s", why);
	else if (s->may_be_here && pick_transport_socket_answers())
		session_connect_failed(s, -ERESTART, "%s has opened its socket", s->server);
	else
		session_tell_waiting(s, why);
}
