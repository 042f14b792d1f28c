/* ports.c - see ports.h. */
#include "server/serve/ports.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/transport/address.h"
#include "common/transport/kinds.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/session/conn.h"

enum { OPEN_MS = 10000 /* time to resolve the route to a device */ };

enum { PORT_NAME_BYTES = sizeof(((struct port *)0)->name) };

static void format_name(const struct transport_address *address, char name[PORT_NAME_BYTES])
{
	char text[128];

	address_format(address, text, sizeof(text));
	snprintf(name, PORT_NAME_BYTES, "%s:%s", transport_kind_name(address->kind), text);
}

static void deregister(const struct export *export, unsigned port)
{
	for (uint32_t i = 0; i < export->nregions; i++)
		region_deregister(steal_ptr(&export->regions[i]->registered[port]));
}

static void close_port(const struct server *s, struct port *port)
{
	listener_delete(port->listener);
	for (unsigned i = 0; i < s->exports->n; i++)
		deregister(s->exports->v[i], port->index);
	evq_delete(port->q);
	transport_close(port->transport);
}

static int open_transport(const struct server_config *server, uint32_t nregions, const char *name,
	const struct transport_address *address, struct transport **out)
{
	struct transport_config config;
	int err;

	transport_config_default(&config);
	config.io_threads = (unsigned)server->io_threads;
	config.max_regions = (uint32_t)max_u64(config.max_regions, nregions);
	config.msg_bytes = RPC_MSG_BYTES;
	config.nrecv = CHANNEL_REQUESTS;
	config.nsend = CHANNEL_SENDS;
	err = transport_open(address, &config, OPEN_MS, out);
	if (err)
		log_error("can't open %s: %s", name,
			err == -ENODEV ? "no RDMA device has this address: see 'rdma link show', "
					 "or listen on tcp"
				       : errno_text(err));
	return err;
}

static int open_port(struct server *s, const struct transport_address *address)
{
	struct port *port = &s->ports[s->nports];
	uint32_t nfiles;
	autofree struct region_file **files = exports_files(s->exports, &nfiles);
	int err;

	if (!files)
		return -ENOMEM;
	format_name(address, port->name);
	port->server = s;
	port->index = s->nports++;
	err = open_transport(s->config, nfiles, port->name, address, &port->transport);
	if (!err)
		err = evq_new(port->transport, &port->q);
	return err ? err : regions_register(port->transport, files, nfiles, port->index);
}

int ports_register(const struct server *s, struct export *export)
{
	const struct exports one = {&export, 1, 1};
	uint32_t nfiles;
	autofree struct region_file **files = exports_files(&one, &nfiles);
	int err = files ? 0 : -ENOMEM;

	for (unsigned i = 0; !err && i < s->nports; i++)
		err = regions_register(s->ports[i].transport, files, nfiles, i);
	return err;
}

void ports_deregister(const struct server *s, const struct export *export)
{
	for (unsigned i = 0; i < s->nports; i++)
		deregister(export, i);
}

/* systemd makes the default socket's directory, where there is systemd. */
static void make_socket_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	autofree char *dir = NULL;

	if (!slash || slash == path)
		return;
	dir = strndup(path, (size_t)(slash - path));
	if (dir && mkdir(dir, 0755) == 0)
		log_info("made %s", dir);
}

/* The cause, and the remedy. */
static const char *listen_error(const struct transport_address *address, int err)
{
	bool path = address->kind == TRANSPORT_SHM;

	switch (err) {
	case -EADDRINUSE:
		return "another process listens there: stop it, or choose another address";
	case -EEXIST:
		return "a file that is no socket is there: remove it, or choose another path";
	case -ENOENT:
		return "no such directory: make it first";
	case -EADDRNOTAVAIL:
		return "not an address of this machine: see 'ip address'";
	case -ENODEV:
		return "no RDMA device has this address: see 'rdma link show', or listen on tcp";
	case -EACCES:
		return path ? "no right to make a socket there: run as a user who may, or choose "
			      "another path"
			    : "no right to this port: choose one from 1024 on, or give the server "
			      "CAP_NET_BIND_SERVICE";
	default:
		return errno_text(err);
	}
}

static int fail_listen(const char *name, const struct transport_address *address, int err)
{
	log_error("can't listen on %s: %s", name, listen_error(address, err));
	return err;
}

static int listen_port(struct port *port, const struct transport_address *address)
{
	int err;

	if (address->kind == TRANSPORT_SHM)
		make_socket_directory(strchr(port->name, ':') + 1);
	err = transport_listen(port->q, address, &port->listener);
	if (err)
		return fail_listen(port->name, address, err);
	format_name(listener_address(port->listener), port->name);
	return 0;
}

size_t ports_of_tcp(const struct server_config *config, uint16_t *ports)
{
	size_t n = 0;

	for (size_t i = 0; i < config->listen.n; i++) {
		const struct transport_address *address = &config->addresses[i];
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->addr;
		const struct sockaddr_in *in = (const struct sockaddr_in *)&address->addr;

		if (address->kind == TRANSPORT_TCP)
			ports[n++] = ntohs(address->addr.ss_family == AF_INET6 ? in6->sin6_port
									       : in->sin_port);
	}
	return n;
}

/* Opens all transports first, and the listeners when all can serve. */
int ports_open(struct server *s)
{
	int err = 0;

	s->ports = calloc(s->config->listen.n, sizeof(*s->ports));
	if (!s->ports)
		return -ENOMEM;
	for (size_t i = 0; !err && i < s->config->listen.n; i++)
		err = open_port(s, &s->config->addresses[i]);
	for (size_t i = 0; !err && i < s->config->listen.n; i++)
		err = listen_port(&s->ports[i], &s->config->addresses[i]);
	return err;
}

/* ---- checking -------------------------------------------------------------------------------- */

/* Whether make_socket_directory() could make it, or systemd does. */
static bool can_make_directory(const char *socket, const char *dir)
{
	autofree char *copy = strdup(socket);
	char *above = copy ? dirname(copy) : NULL;

	if (!above)
		return false;
	if (dir && strcmp(above, dir) == 0)
		return true;
	above = dirname(above);
	return faccessat(AT_FDCWD, above, W_OK | X_OK, AT_EACCESS) == 0;
}

static int look_at_port(const struct server_config *config, const struct ports_look *look,
	const struct transport_address *address)
{
	char name[PORT_NAME_BYTES];
	struct transport *t;
	int err;

	format_name(address, name);
	err = open_transport(config, look->nregions, name, address, &t);
	if (err)
		return err;
	err = transport_probe(t, address);
	transport_close(t);
	if (err == -EADDRINUSE && look->restart)
		return 0;
	if (err == -ENOENT && can_make_directory(strchr(name, ':') + 1, look->dir))
		return 0;
	return err ? fail_listen(name, address, err) : 0;
}

int ports_look(const struct server_config *config, const struct ports_look *look)
{
	int first = 0;

	for (size_t i = 0; i < config->listen.n; i++) {
		int err = look_at_port(config, look, &config->addresses[i]);

		first = first ? first : err;
	}
	return first;
}

/* ---- closing --------------------------------------------------------------------------------- */

void ports_close(struct server *s)
{
	for (unsigned i = 0; i < s->nports; i++)
		close_port(s, &s->ports[i]);
	s->nports = 0;
	free(steal_ptr(&s->ports));
}
