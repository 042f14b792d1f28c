/* server_judge.c - the judgements of server.h. They use their arguments alone. */
#include "daemon/ctl/doctor/server.h"

#include <errno.h>
#include <string.h>

#include "common/base/log.h"
#include "common/rpc/wire_version.h"

static const char *kind_of(const struct server_course *c)
{
	return transport_kind_name(c->kind);
}

/* ---- nobody is reached ----------------------------------------------------------------------- */

static const char *port_of(const struct server_course *c)
{
	const char *colon = strrchr(c->address, ':');

	return colon ? colon + 1 : "7470";
}

/* A rule that is added stands behind a last rule that drops all; one that is inserted does not. */
static void remedy_firewall(const struct server_course *c, const char *first, struct report *r)
{
	const char *port = port_of(c);

	report_remedy(r,
		"%s allow the port in the server's firewall. firewalld: firewall-cmd --permanent "
		"--add-port=%s/tcp, and firewall-cmd --reload; ufw: ufw allow %s/tcp; nftables: nft "
		"insert rule inet filter input tcp dport %s accept (nft list ruleset shows the "
		"names of table and chain), which lasts until the next boot: write it into "
		"/etc/nftables.conf, too",
		first, port, port, port);
}

static void tell_refused(const struct server_course *c, struct report *r)
{
	report_found(r, c->without, "%s %s: nobody listens there", kind_of(c), c->address);
	if (c->kind == TRANSPORT_SHM) {
		report_cause(r, "no server runs here, or its socket has another path");
		report_remedy(r, "systemctl start rmemfs-server; or name its socket as HOST");
		return;
	}
	report_cause(r,
		"the machine answers, but no server runs there, or it does not listen at this "
		"address and port, or a firewall rejects the connection");
	remedy_firewall(c,
		"on the server: systemctl start rmemfs-server; rmemfsctl status shows where it "
		"listens (listen in server.conf); if it listens at this one,",
		r);
}

static void tell_silence(const struct server_course *c, struct report *r)
{
	report_found(r, c->without, "%s %s: no answer within 2 s", kind_of(c), c->address);
	report_cause(r, "the machine is down, or a firewall drops packets to that port");
	remedy_firewall(c, "ping the machine;", r);
}

static void tell_port(const struct server_course *c, struct report *r)
{
	switch (c->port.err) {
	case -ECONNREFUSED:
	case -ENOENT:
		tell_refused(c, r);
		return;
	case -ETIMEDOUT:
		tell_silence(c, r);
		return;
	default:
		break;
	}
	report_found(r, c->without, "%s %s: %s", kind_of(c), c->address, errno_text(c->port.err));
	if (c->port.err == -EACCES) {
		report_cause(r, "the socket is for root and the server's user");
		report_remedy(r, "run rmemfsctl doctor as one of these");
	} else if (c->port.err == -EAGAIN) {
		report_cause(r, "the server takes no connections: its queue of them is full");
		report_remedy(r, "see the server's log: journalctl -u rmemfs-server");
	} else {
		report_cause(r, "a router says that the machine or its port can't be reached");
		report_remedy(r, "ip route get ADDRESS; ping the machine; check its firewall");
	}
}

static void tell_path(const struct server_course *c, struct report *r)
{
	static const char *const steps[] = {
		[VERBS_STEP_MANAGER] = "the connection manager can't be used",
		[VERBS_STEP_ADDRESS] = "no RDMA device has a route to it",
		[VERBS_STEP_ROUTE] = "the device finds no path to it",
		[VERBS_STEP_DONE] = "",
	};

	report_found(r, c->without, "verbs %s: %s: %s", c->address, steps[c->path.step],
		errno_text(c->path_err));
	if (c->path.step == VERBS_STEP_MANAGER) {
		report_cause(r, "the module rdma_ucm is not loaded, or there is no RDMA device");
		report_remedy(r, "modprobe rdma_ucm; rdma link show");
	} else if (c->path.step == VERBS_STEP_ADDRESS) {
		report_cause(r,
			"the address is not in the network of a device's interface, or the peer "
			"does not answer ARP");
		report_remedy(r,
			"rdma link show; ip addr; ip route get ADDRESS: the interface must "
			"be the device's");
	} else {
		report_cause(r, "the subnet manager does not know the peer (InfiniBand)");
		report_remedy(r, "ibstat at both ends; sminfo");
	}
}

/* ---- somebody is reached --------------------------------------------------------------------- */

/* The connection is open as far as the kernel knows, and the program says nothing. */
static void tell_no_answer(const struct server_course *c, struct report *r)
{
	if (c->port.stopped) {
		report_found(r, c->without, "%s %s: the server, process %d, is stopped", kind_of(c),
			c->address, c->port.pid);
		report_cause(r, "a signal or a debugger has stopped it: all mounts wait");
		report_remedy(r, "kill -CONT %d", c->port.pid);
		return;
	}
	report_found(r, c->without, "%s %s: the port is open, but nobody answers", kind_of(c),
		c->address);
	report_cause(r, "the server's process is stopped or overloaded, or another program has "
			"that port");
	report_remedy(r, "on the server: systemctl status rmemfs-server; if it is stopped: pkill "
			 "-CONT -x rmemfs-server");
}

static void tell_version(const struct server_course *c, struct report *r)
{
	uint32_t theirs = c->course.peer_version;

	if (!theirs) {
		report_found(r, c->without, "%s %s: what answers there is no rmemfs-server",
			kind_of(c), c->address);
		report_cause(r, "another program has that port");
		report_remedy(r, "check the port: rmemfsctl status on the server shows its own");
		return;
	}
	report_found(r, c->without,
		"%s %s: the server speaks version %u of the protocol, this "
		"program %u",
		kind_of(c), c->address, theirs, wire_version());
	report_cause(r, "the two machines have different releases");
	report_remedy(r, "upgrade rmemfs %s",
		theirs < wire_version() ? "on the server" : "on this machine");
}

static void tell_proof(const struct server_course *c, struct report *r)
{
	report_found(r, c->without, "%s %s: %s", kind_of(c), c->address, c->why);
	if (c->err != -EACCES) {
		report_cause(
			r, "the handshake that proves the key did not end: %s", errno_text(c->err));
		report_remedy(r, "see the server's log: journalctl -u rmemfs-server");
		return;
	}
	report_cause(r, "server and client do not have the same key");
	report_remedy(r,
		"rmemfsctl keycheck FILE at both ends: ids and fingerprints must be the same; copy "
		"the server's file over this one; only if the server's file is the newer one and "
		"was not read since, on the server: rmemfsctl reload");
}

static void tell_open(const struct server_course *c, struct report *r)
{
	report_found(r, c->without, "%s %s: %s", kind_of(c), c->address,
		c->logged[0] ? c->logged : c->why);
	report_cause(r, "the transport can't be opened on this machine: %s", errno_text(c->err));
	report_remedy(r, c->kind == TRANSPORT_VERBS
				 ? "see the lines of rdma and memlock above; or mount with "
				   "transport=tcp"
				 : "see the lines above");
}

static void tell_other(const struct server_course *c, struct report *r)
{
	report_found(r, c->without, "%s %s: %s", kind_of(c), c->address, c->why);
	report_cause(r, "%s", c->logged[0] ? c->logged : errno_text(c->err));
	report_remedy(r, "see the server's log: journalctl -u rmemfs-server");
}

static void tell_failure(const struct server_course *c, struct report *r)
{
	if (c->err == -ETIMEDOUT)
		tell_no_answer(c, r);
	else if (c->course.step == CTL_STEP_OPEN)
		tell_open(c, r);
	else if (c->err == -ECONNREFUSED || c->err == -ENOENT)
		tell_refused(c, r);
	else if (c->err == -EPROTO && c->course.step == CTL_STEP_CONNECT)
		tell_version(c, r);
	else if (c->course.step == CTL_STEP_PROVE)
		tell_proof(c, r);
	else
		tell_other(c, r);
}

static void tell_success(const struct server_course *c, struct report *r)
{
	const struct ctl_course *course = &c->course;

	if (c->kind == TRANSPORT_VERBS && c->path.mtu)
		report_found(r, VERDICT_OK, "verbs %s: by %s port %u, path MTU %u", c->address,
			c->path.device, c->path.port, c->path.mtu);
	else if (c->kind == TRANSPORT_VERBS)
		report_found(r, VERDICT_OK, "verbs %s: by %s port %u", c->address, c->path.device,
			c->path.port);
	report_found(r, VERDICT_OK, "%s %s: a server answers in protocol version %u; %s%s%s",
		kind_of(c), c->address, course->peer_version,
		course->key_id[0] ? "both have proven key " : "no key was proven", course->key_id,
		channel_protection_note(course->protection));
}

void server_judge_course(const struct server_course *c, struct report *r)
{
	if (!c->err)
		tell_success(c, r);
	else if (c->port.err)
		tell_port(c, r);
	else if (c->path_err)
		tell_path(c, r);
	else
		tell_failure(c, r);
}

enum verdict server_verdict_without(const struct doctor *d, enum transport_kind kind)
{
	if (d->named)
		return VERDICT_FAILURE;
	for (unsigned i = 0; i < TRANSPORT_NKINDS; i++)
		if (i != kind && d->tries[i].tried && !d->tries[i].err)
			return VERDICT_NOTE;
	return kind == TRANSPORT_TCP ? VERDICT_FAILURE : VERDICT_WARNING;
}

/* ---- which transport ------------------------------------------------------------------------- */

void server_judge_transport(const struct doctor *d, struct report *r)
{
	/* In the order in which a mount chooses. */
	static const enum transport_kind order[] = {TRANSPORT_SHM, TRANSPORT_VERBS, TRANSPORT_TCP};

	for (unsigned i = 0; i < TRANSPORT_NKINDS; i++) {
		if (!d->tries[order[i]].tried || d->tries[order[i]].err)
			continue;
		report_found(r, VERDICT_OK, "a mount can go over %s%s",
			transport_kind_name(order[i]),
			order[i] == TRANSPORT_TCP ? ": the server's CPU moves the bytes" : "");
		return;
	}
	report_found(r, VERDICT_FAILURE, "no transport leads to the server");
	report_cause(r, "see the failures above");
	report_remedy(r, "see the remedies above");
}
