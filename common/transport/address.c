#include "common/transport/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "common/base/log.h"
#include "common/base/util.h"

__attribute__((format(printf, 4, 5))) static int refuse(
	char *why, size_t whylen, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, whylen, format, args);
	va_end(args);
	return err;
}

/* ---- resolving ------------------------------------------------------------------------------- */

static int resolve_path(const char *path, struct transport_address *out, char *why, size_t whylen)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	size_t len = strlen(path);

	if (path[0] != '/')
		return refuse(why, whylen, -EINVAL, "a socket's path begins with /");
	if (len >= sizeof(un.sun_path))
		return refuse(why, whylen, -ENAMETOOLONG, "a socket's path has at most %zu bytes",
			sizeof(un.sun_path) - 1);
	memcpy(un.sun_path, path, len + 1);
	*out = (struct transport_address){
		.kind = TRANSPORT_SHM,
		.addrlen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1),
	};
	memcpy(&out->addr, &un, sizeof(un));
	return 0;
}

static int resolver_error(int eai, const char *host, char *why, size_t whylen)
{
	switch (eai) {
	case EAI_NONAME:
	case EAI_NODATA:
		return refuse(why, whylen, -EHOSTUNREACH,
			"no such host: %s: check the name, or "
			"give an address",
			host);
	case EAI_SYSTEM:
		return refuse(why, whylen, -errno, "can't resolve %s: %s", host, errno_text(errno));
	case EAI_MEMORY:
		return refuse(
			why, whylen, -ENOMEM, "can't resolve %s: %s", host, gai_strerror(eai));
	case EAI_AGAIN:
		return refuse(
			why, whylen, -EAGAIN, "can't resolve %s: %s", host, gai_strerror(eai));
	default:
		return refuse(why, whylen, -EHOSTUNREACH, "can't resolve %s: %s", host,
			gai_strerror(eai));
	}
}

static bool is_loopback(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)sa;

		return ntohl(in->sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
	}
	if (sa->sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(
			&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr);
	return false;
}

/* The resolver's first choice. But "localhost" means 127.0.0.1, since local servers listen
 * there. */
static const struct addrinfo *address_choose(const struct addrinfo *list)
{
	if (list->ai_family != AF_INET && is_loopback(list->ai_addr))
		for (const struct addrinfo *ai = list; ai; ai = ai->ai_next)
			if (ai->ai_family == AF_INET && is_loopback(ai->ai_addr))
				return ai;
	return list;
}

int address_resolve(enum transport_kind kind, const char *host, unsigned port,
	struct transport_address *out, char *why, size_t whylen)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	const struct addrinfo *chosen;
	struct addrinfo *list;
	char service[16];
	int err;

	if (kind == TRANSPORT_SHM)
		return resolve_path(host, out, why, whylen);
	if (host[0] == '\0')
		return refuse(why, whylen, -EINVAL, "no host is named");
	if (port > UINT16_MAX)
		return refuse(why, whylen, -EINVAL, "port %u is not in 1..65535", port);
	snprintf(service, sizeof(service), "%u", port ? port : RMEMFS_DEFAULT_PORT);
	err = getaddrinfo(host, service, &hints, &list);
	if (err)
		return resolver_error(err, host, why, whylen);
	chosen = address_choose(list);
	*out = (struct transport_address){.kind = kind, .addrlen = chosen->ai_addrlen};
	memcpy(&out->addr, chosen->ai_addr, chosen->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

/* ---- what users write ------------------------------------------------------------------------ */

static int parse_port(const char *text, unsigned *port, char *why, size_t whylen)
{
	unsigned n = 0;
	const char *p;

	for (p = text; isdigit((unsigned char)*p) && n <= UINT16_MAX; p++)
		n = n * 10 + (unsigned)(*p - '0');
	if (*p != '\0' || n == 0 || n > UINT16_MAX)
		return refuse(why, whylen, -EINVAL, "port '%s' is not in 1..65535", text);
	*port = n;
	return 0;
}

/* Copies len bytes of a host as users write it, without brackets. */
static int copy_host(
	const char *text, size_t len, char *host, size_t hostlen, char *why, size_t whylen)
{
	bool bracket = len >= 2 && text[0] == '[' && text[len - 1] == ']';

	if (bracket) {
		text++;
		len -= 2;
	} else if (memchr(text, ':', len)) {
		return refuse(
			why, whylen, -EINVAL, "an IPv6 address stands in brackets, as in [::1]");
	}
	if (len == 0)
		return refuse(why, whylen, -EINVAL, "no host is named");
	if (memchr(text, '[', len) || memchr(text, ']', len))
		return refuse(why, whylen, -EINVAL, "'%.*s' is no host", (int)len, text);
	if (len >= hostlen)
		return refuse(why, whylen, -ENAMETOOLONG, "a host's name has at most %zu bytes",
			hostlen - 1);
	memcpy(host, text, len);
	host[len] = '\0';
	return 0;
}

/* HOST[:PORT]; the colon of a port follows the closing bracket, if there is one. */
static int parse_host_port(enum transport_kind kind, const char *text,
	struct transport_address *out, char *why, size_t whylen)
{
	const char *bracket = strrchr(text, ']');
	const char *colon = strrchr(bracket ? bracket : text, ':');
	size_t hostlen = colon ? (size_t)(colon - text) : strlen(text);
	unsigned port = 0;
	char host[256] = "";
	int err;

	err = copy_host(text, hostlen, host, sizeof(host), why, whylen);
	if (err)
		return err;
	if (colon) {
		err = parse_port(colon + 1, &port, why, whylen);
		if (err)
			return err;
	}
	return address_resolve(kind, host, port, out, why, whylen);
}

int address_parse_listen(const char *text, struct transport_address *out, char *why, size_t whylen)
{
	for (int kind = 0; kind < TRANSPORT_NKINDS; kind++) {
		const char *name = transport_kind_name(kind);
		size_t len = strlen(name);

		if (strncmp(text, name, len) != 0 || text[len] != ':')
			continue;
		if (kind == TRANSPORT_SHM)
			return resolve_path(text + len + 1, out, why, whylen);
		return parse_host_port(kind, text + len + 1, out, why, whylen);
	}
	return refuse(
		why, whylen, -EINVAL, "must be verbs:HOST[:PORT], tcp:HOST[:PORT] or shm:/PATH");
}

/* Whether text is HOST:PORT or [ADDRESS]:PORT; a port belongs elsewhere. */
static bool has_port(const char *host, size_t len)
{
	const char *colon = memrchr(host, ':', len);

	return colon && colon > host &&
	       (colon[-1] == ']' || !memchr(host, ':', (size_t)(colon - host)));
}

/* Finds the colon before "/EXPORT": the last one, as a socket's path may contain colons. */
static const char *find_export(const char *text)
{
	const char *found = NULL;

	for (const char *p = text; (p = strstr(p, ":/")) != NULL; p++)
		found = p;
	return found;
}

int address_parse_source(const char *text, struct source *out, char *why, size_t whylen)
{
	const char *colon = find_export(text);
	struct source source = {0};
	size_t hostlen, namelen;
	int err;

	if (!colon)
		return refuse(why, whylen, -EINVAL, "must be HOST:/EXPORT or /SOCKET:/EXPORT");
	hostlen = (size_t)(colon - text);
	namelen = strlen(colon + 2);
	if (namelen == 0)
		return refuse(why, whylen, -EINVAL, "no export is named after :/");
	if (strchr(colon + 2, '/'))
		return refuse(why, whylen, -EINVAL, "an export's name has no /");
	if (namelen >= sizeof(source.export_name))
		return refuse(why, whylen, -ENAMETOOLONG, "an export's name has at most %zu bytes",
			sizeof(source.export_name) - 1);
	if (text[0] != '/') {
		if (has_port(text, hostlen))
			return refuse(why, whylen, -EINVAL,
				"a source has no port: rmemfs takes it as -o port=, rmemfsctl as "
				"HOST:PORT without the export");
		err = copy_host(text, hostlen, source.host, sizeof(source.host), why, whylen);
		if (err)
			return err;
	} else if (hostlen >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		return refuse(why, whylen, -ENAMETOOLONG, "a socket's path has at most %zu bytes",
			sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	} else {
		memcpy(source.host, text, hostlen);
	}
	memcpy(source.export_name, colon + 2, namelen);
	*out = source;
	return 0;
}

/* ---- what addresses mean --------------------------------------------------------------------- */

static bool same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (!a || a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
	if (a->sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(
			&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
			&((const struct sockaddr_in6 *)(const void *)b)->sin6_addr);
	return false;
}

bool address_interface(const struct sockaddr_storage *address, char name[ADDRESS_INTERFACE_BYTES])
{
	struct ifaddrs *list;
	bool found = false;

	if (getifaddrs(&list) < 0)
		return false;
	for (const struct ifaddrs *ifa = list; ifa && !found; ifa = ifa->ifa_next) {
		found = same_host(ifa->ifa_addr, (const struct sockaddr *)address);
		if (found)
			snprintf(name, ADDRESS_INTERFACE_BYTES, "%.15s", ifa->ifa_name);
	}
	freeifaddrs(list);
	return found;
}

bool address_is_loopback(const struct transport_address *address)
{
	return is_loopback((const struct sockaddr *)&address->addr);
}

bool address_is_local(const struct transport_address *address)
{
	char name[ADDRESS_INTERFACE_BYTES];

	return address->addr.ss_family == AF_UNIX || address_is_loopback(address) ||
	       address_interface(&address->addr, name);
}

void address_network(const struct sockaddr_storage *address, uint8_t network[ADDRESS_NETWORK_BYTES])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const struct sockaddr_in6 *in6 = (const void *)address;
	const struct sockaddr_in *in = (const void *)address;

	memset(network, 0, ADDRESS_NETWORK_BYTES);
	if (address->ss_family == AF_INET) {
		memcpy(network, mapped, sizeof(mapped));
		memcpy(network + sizeof(mapped), &in->sin_addr, sizeof(in->sin_addr));
	} else if (address->ss_family == AF_INET6) {
		bool whole = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);

		memcpy(network, &in6->sin6_addr, whole ? sizeof(in6->sin6_addr) : 8);
	}
}

void address_format(const struct transport_address *address, char *buf, size_t len)
{
	const struct sockaddr *sa = (const void *)&address->addr;
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (sa->sa_family == AF_UNIX)
		snprintf(buf, len, "%s", ((const struct sockaddr_un *)(const void *)sa)->sun_path);
	else if (getnameinfo(sa, address->addrlen, host, sizeof(host), port, sizeof(port),
			 NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(buf, len, "?");
	else if (sa->sa_family == AF_INET6)
		snprintf(buf, len, "[%s]:%s", host, port);
	else
		snprintf(buf, len, "%s:%s", host, port);
}
