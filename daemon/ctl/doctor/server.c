/* server.c - the probes of server.h. */
#include "daemon/ctl/doctor/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/auth/auth_key_file.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/process_state.h"
#include "common/base/util.h"
#include "common/transport/address.h"
#include "daemon/ctl/doctor/answer.h"
#include "daemon/ctl/doctor/procfile.h"
#include "daemon/ctl/doctor/quiet.h"

/* Each try has these limits; together they are below that of its check. */
enum { PORT_MS = 2000, RESOLVE_MS = 1000, ANSWER_MS = 3000 };

/* ---- the file of keys ------------------------------------------------------------------------ */

static void tell_fault(void *arg, const char *text)
{
	struct doctor *d = arg;

	report_found(&d->report, VERDICT_FAILURE, "%s", text);
	report_cause(&d->report,
		"a file of keys must be whole, belong to root or to its reader, and be closed to "
		"other users");
	report_remedy(&d->report,
		"do what the line says, or copy the file anew; then rmemfsctl keycheck %s",
		d->key_file);
}

void server_check_key(struct doctor *d)
{
	char fingerprint[AUTH_KEY_FINGERPRINT_BYTES];
	struct auth_key_file keys = {0};
	int err;

	if (!d->key_file) {
		if (d->resolved && d->address.kind != TRANSPORT_SHM)
			report_found(&d->report, VERDICT_NOTE,
				"no key was named: a server tells strangers its version only "
				"(--key FILE)");
		return;
	}
	d->key_bad = true; /* also if this process is killed while it waits for the file */
	err = auth_key_file_check(d->key_file, &keys, tell_fault, d);
	d->key_bad = err != 0;
	for (size_t i = 0; i < keys.n && !err; i++)
		if (auth_key_fingerprint(&keys.v[i], fingerprint) == 0)
			report_found(&d->report, VERDICT_OK, "%s: key %s, fingerprint %s",
				d->key_file, keys.v[i].id, fingerprint);
	auth_key_file_free(&keys);
}

/* ---- the port -------------------------------------------------------------------------------- */

static int await_connect(int fd, int timeout_ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	int error = 0;
	socklen_t len = sizeof(error);

	if (poll(&pfd, 1, timeout_ms) <= 0)
		return -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return -errno;
	return -error;
}

static void note_listener(int fd, struct server_port *port)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	char state;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid <= 0)
		return;
	port->pid = peer.pid;
	state = process_state(peer.pid);
	port->stopped = state == 'T' || state == 't';
}

/* Connects and closes again: the server sees a peer that says nothing. */
static void look_at_port(const struct transport_address *address, struct server_port *port)
{
	int family = address->addr.ss_family;
	int64_t began = clock_ns(CLOCK_MONOTONIC);
	/* shm speaks by packets (common/transport/sock/unix.c). */
	int type = family == AF_UNIX ? SOCK_SEQPACKET : SOCK_STREAM;
	autoclose int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	port->err = fd < 0 ? -errno : 0;
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address->addr, address->addrlen) < 0)
		port->err = errno == EINPROGRESS ? await_connect(fd, PORT_MS) : -errno;
	if (port->err)
		return;
	port->wire_ns = clock_ns(CLOCK_MONOTONIC) - began;
	if (family == AF_UNIX)
		note_listener(fd, port);
}

/* ---- a transport ----------------------------------------------------------------------------- */

/* A client's answer is worth more than a stranger's. */
static void note_answer(const char *text, struct doctor_seen *seen)
{
	struct doctor_seen now;

	answer_note(text, &now);
	if (now.answered && (!now.stranger || !seen->answered || seen->stranger))
		*seen = now;
}

static void follow(struct doctor *d, struct server_course *c, struct transport_address *address)
{
	const char *key_file = c->kind == TRANSPORT_SHM || d->key_bad ? NULL : d->key_file;
	char *text = NULL;

	c->err = ctl_follow(
		address, key_file, ANSWER_MS, 5, &c->course, &text, c->why, sizeof(c->why));
	if (!c->err)
		note_answer(text, &d->seen);
	free(text);
}

static bool port_is_open(struct server_course *c, struct transport_address *address)
{
	if (c->kind == TRANSPORT_VERBS) {
		c->path_err = verbs_inspect_path(address, RESOLVE_MS, &c->path);
		return !c->path_err;
	}
	look_at_port(address, &c->port);
	return !c->port.err;
}

static void server_try(struct doctor *d, struct transport_address *address)
{
	struct server_course c = {
		.kind = address->kind, .without = server_verdict_without(d, address->kind)};
	struct doctor_try *try = &d->tries[address->kind];

	quiet_begin();
	address_format(address, c.address, sizeof(c.address));
	c.err = -ENOTCONN;
	if (port_is_open(&c, address))
		follow(d, &c, address);
	snprintf(c.logged, sizeof(c.logged), "%s", quiet_logged());
	*try = (struct doctor_try){
		.tried = true,
		.err = c.err,
		.wire_ns = c.kind == TRANSPORT_TCP ? c.port.wire_ns : 0,
		.course = c.course,
	};
	server_judge_course(&c, &d->report);
}

/* ---- the checks ------------------------------------------------------------------------------ */

static bool has_default_port(const struct transport_address *address)
{
	in_port_t port =
		address->addr.ss_family == AF_INET6
			? ((const struct sockaddr_in6 *)(const void *)&address->addr)->sin6_port
			: ((const struct sockaddr_in *)(const void *)&address->addr)->sin_port;

	return ntohs(port) == RMEMFS_DEFAULT_PORT;
}

/* A mount of this machine's own server goes by its socket, unless it names another port. */
static bool may_go_by_socket(const struct doctor *d)
{
	return !d->named && d->local && has_default_port(&d->address) &&
	       access(RMEMFS_DEFAULT_SOCKET, F_OK) == 0;
}

void server_check_shm(struct doctor *d)
{
	struct transport_address address = d->address;
	char why[128];

	if (!d->resolved)
		return;
	if (address.kind != TRANSPORT_SHM &&
		(!may_go_by_socket(d) || address_resolve(TRANSPORT_SHM, RMEMFS_DEFAULT_SOCKET, 0,
						 &address, why, sizeof(why)) != 0))
		return;
	server_try(d, &address);
}

/* No device serves a loopback address. */
void server_check_verbs(struct doctor *d)
{
	struct transport_address address = d->address;

	if (!d->resolved || address.kind == TRANSPORT_SHM)
		return;
	if (address.kind != TRANSPORT_VERBS &&
		(d->named || !d->ndevices || address_is_loopback(&address)))
		return;
	address.kind = TRANSPORT_VERBS;
	server_try(d, &address);
}

void server_check_tcp(struct doctor *d)
{
	struct transport_address address = d->address;

	if (!d->resolved || address.kind != TRANSPORT_TCP)
		return;
	server_try(d, &address);
}

void server_check_transport(struct doctor *d)
{
	if (d->resolved)
		server_judge_transport(d, &d->report);
}
