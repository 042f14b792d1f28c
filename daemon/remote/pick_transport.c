#include "daemon/remote/pick_transport.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "common/transport/kinds.h"

/* Whether a channel of this kind can be what the mount demands. Refused here, before any byte goes
 * out. */
static int check_protection(
	const struct session_options *options, enum transport_kind kind, char *why, size_t whylen)
{
	const char *demand = protection_name(options->protection);

	if (options->protection == PROTECTION_BEST || kind == TRANSPORT_SHM)
		return 0;
	if (!protection_allows_kind(options->protection, kind)) {
		snprintf(why, whylen,
			"protection=%s: %s does not encrypt the bytes of files: mount with "
			"transport=tcp, or transport=auto",
			demand, transport_kind_name(kind));
		return -EINVAL;
	}
	if (!options->key_file) {
		snprintf(why, whylen,
			"protection=%s: without a key nothing is encrypted over %s: mount with "
			"key=FILE",
			demand, transport_kind_name(kind));
		return -EINVAL;
	}
	return 0;
}

static int open_transport(const struct session_options *options,
	const struct transport_config *config, const struct transport_address *address,
	struct transport **out, char *why, size_t whylen)
{
	int err = check_protection(options, address->kind, why, whylen);
	char text[128];

	if (err)
		return err;
	err = transport_open(address, config, (int)options->connect_timeout_ms, out);
	if (!err)
		return 0;
	address_format(address, text, sizeof(text));
	if (err == -ENODEV)
		snprintf(why, whylen,
			"no RDMA device has a route to %s: see 'rdma link show', or mount with "
			"transport=tcp",
			text);
	else
		snprintf(why, whylen, "can't open transport %s to %s: %s",
			transport_kind_name(address->kind), text, errno_text(err));
	return err;
}

static int open_at(const struct session_options *options, const struct transport_config *config,
	enum transport_kind kind, const char *host, struct transport_address *address,
	struct transport **out, char *why, size_t whylen)
{
	int err = address_resolve(kind, host, options->port, address, why, whylen);

	return err ? err : open_transport(options, config, address, out, why, whylen);
}

/* Whether a server that we may talk to has this socket. A connect with another type of socket lets
 * the kernel tell a live one (EPROTOTYPE) from a stale one (ECONNREFUSED); the server notices
 * nothing. */
bool pick_transport_socket_answers(void)
{
	struct transport_address address;
	autoclose int fd = -1;
	char why[128];

	if (address_resolve(TRANSPORT_SHM, RMEMFS_DEFAULT_SOCKET, 0, &address, why, sizeof(why)) !=
		0)
		return false;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd >= 0 &&
	       connect(fd, (const struct sockaddr *)&address.addr, address.addrlen) < 0 &&
	       errno == EPROTOTYPE;
}

bool pick_transport_may_be_here(
	const struct session_options *options, const struct transport_address *address)
{
	return options->auto_transport && options->source.host[0] != '/' && !options->port &&
	       address->kind != TRANSPORT_SHM && address_is_local(address);
}

bool pick_transport_may_change(
	const struct session_options *options, const struct transport_address *address)
{
	return options->auto_transport && address->kind != TRANSPORT_SHM;
}

/* The connection manager would take any device for a loopback address, but none serves it. */
static bool may_take_verbs(const struct session_options *options,
	const struct transport_address *address, char *why, size_t whylen)
{
	if (address_is_loopback(address))
		snprintf(why, whylen, "no RDMA device serves a loopback address");
	else if (options->without_verbs)
		snprintf(why, whylen,
			"the export demands that all bytes are protected, and verbs does not "
			"encrypt the bytes of files");
	else if (!protection_allows_kind(options->protection, TRANSPORT_VERBS))
		snprintf(why, whylen, "protection=%s: verbs does not encrypt the bytes of files",
			protection_name(options->protection));
	else
		return true;
	return false;
}

int pick_transport_verbs(const struct session_options *options,
	const struct transport_config *config, struct transport_address *address, int timeout_ms,
	struct transport **out, char *why, size_t whylen)
{
	char text[128];
	int err;

	if (!may_take_verbs(options, address, why, whylen))
		return -EOPNOTSUPP;
	address->kind = TRANSPORT_VERBS;
	err = transport_open(address, config, timeout_ms, out);
	address_format(address, text, sizeof(text));
	if (err == -ENODEV)
		snprintf(why, whylen, "no RDMA device has a route to %s: see 'rdma link show'",
			text);
	else if (err == -EPERM || err == -EACCES)
		snprintf(why, whylen,
			"no right to open the RDMA device: %s: restart the mount's unit, which "
			"allows the devices that are there when it starts",
			errno_text(err));
	else if (err)
		snprintf(why, whylen, "verbs to %s can't be opened: %s: see 'rmemfsctl doctor'",
			text, errno_text(err));
	return err;
}

static int choose_auto(const struct session_options *options, const struct transport_config *config,
	struct transport_address *address, struct transport **out, char *why, size_t whylen)
{
	const char *host = options->source.host;
	int err = address_resolve(TRANSPORT_TCP, host, options->port, address, why, whylen);
	char no_verbs[256];

	if (err)
		return err;
	if (pick_transport_may_be_here(options, address) && pick_transport_socket_answers())
		return open_at(options, config, TRANSPORT_SHM, RMEMFS_DEFAULT_SOCKET, address, out,
			why, whylen);
	if (pick_transport_verbs(options, config, address, (int)options->connect_timeout_ms, out,
		    no_verbs, sizeof(no_verbs)) == 0)
		return 0;
	address->kind = TRANSPORT_TCP;
	err = open_transport(options, config, address, out, why, whylen);
	if (!err)
		snprintf(why, whylen, "%s", no_verbs);
	return err;
}

static int choose_shm(const struct session_options *options, const struct transport_config *config,
	struct transport_address *address, struct transport **out, char *why, size_t whylen)
{
	const char *host = options->source.host;
	int err;

	if (host[0] != '/') {
		err = address_resolve(TRANSPORT_TCP, host, 0, address, why, whylen);
		if (err)
			return err;
		if (!address_is_local(address)) {
			snprintf(why, whylen,
				"transport=shm: %s is not this machine: choose "
				"another transport, or name the path of a socket",
				host);
			return -EINVAL;
		}
		host = RMEMFS_DEFAULT_SOCKET;
	}
	return open_at(options, config, TRANSPORT_SHM, host, address, out, why, whylen);
}

int pick_transport(const struct session_options *options, const struct transport_config *config,
	struct transport_address *address, struct transport **out, char *why, size_t whylen)
{
	const char *host = options->source.host;
	bool path = host[0] == '/';

	if (options->taken) {
		*address = *options->taken;
		return open_transport(options, config, address, out, why, whylen);
	}
	if (path || (!options->auto_transport && options->transport == TRANSPORT_SHM))
		return choose_shm(options, config, address, out, why, whylen);
	if (options->auto_transport)
		return choose_auto(options, config, address, out, why, whylen);
	return open_at(options, config, options->transport, host, address, out, why, whylen);
}
