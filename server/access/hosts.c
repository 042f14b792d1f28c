#include "server/access/hosts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/util.h"
#include "common/base/word.h"

enum { IPV4_BITS = 32, IPV6_BITS = 128, MAPPED_BITS = IPV6_BITS - IPV4_BITS };

static const char must_be[] =
	"must be an address or a network, as in 10.0.0.7, 10.0.0.0/24 or 2001:db8::/32";

static unsigned family_bits(sa_family_t family)
{
	return family == AF_INET ? IPV4_BITS : IPV6_BITS;
}

/* A mapped network becomes the IPv4 network that it stands for. */
static void unmap(struct host *host)
{
	struct in6_addr address;

	memcpy(&address, host->bytes, sizeof(address));
	if (host->family != AF_INET6 || host->prefix < MAPPED_BITS ||
		!IN6_IS_ADDR_V4MAPPED(&address))
		return;
	*host = (struct host){.family = AF_INET, .prefix = (uint8_t)(host->prefix - MAPPED_BITS)};
	memcpy(host->bytes, &address.s6_addr[MAPPED_BITS / 8], IPV4_BITS / 8);
}

/* Clears the bits behind the prefix. Returns whether any was set. */
static bool clear_rest(struct host *host)
{
	unsigned whole = host->prefix / 8, bits = host->prefix % 8;
	uint8_t rest = 0;

	if (bits) {
		rest = host->bytes[whole] & (uint8_t)(0xff >> bits);
		host->bytes[whole++] ^= rest;
	}
	for (; whole < HOSTS_ADDRESS_BYTES; whole++) {
		rest |= host->bytes[whole];
		host->bytes[whole] = 0;
	}
	return rest;
}

/* ---- texts ----------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static int refuse(
	char *must, size_t mustlen, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(must, mustlen, format, args);
	va_end(args);
	return -EINVAL;
}

static bool parse_address(const char *text, struct host *host)
{
	host->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	host->prefix = (uint8_t)family_bits(host->family);
	return inet_pton(host->family, text, host->bytes) == 1;
}

/* The text is no address; tells the user why, if that can be guessed. */
static int refuse_address(const char *text, char *must, size_t mustlen)
{
	if (strcmp(text, "*") == 0)
		return refuse(must, mustlen, "%s; leave hosts out for any address", must_be);
	if (text[0] == '[')
		return refuse(must, mustlen, "must have no brackets and no port");
	if (strchr(text, '%'))
		return refuse(must, mustlen, "must have no zone: leave out the '%%' and the rest");
	if (strchr(text, ':') || strspn(text, "0123456789.") == strlen(text))
		return refuse(must, mustlen, "%s", must_be);
	return refuse(must, mustlen, "host names are not looked up: %s", must_be);
}

static bool parse_prefix(const char *text, unsigned max, uint8_t *prefix)
{
	size_t len = strlen(text);
	unsigned n = 0;

	if (len == 0 || len > 3 || strspn(text, "0123456789") != len)
		return false;
	for (; *text; text++)
		n = n * 10 + (unsigned)(*text - '0');
	*prefix = (uint8_t)n;
	return n <= max;
}

int hosts_parse(const char *text, struct host *host, char *must, size_t mustlen)
{
	const char *slash = strchr(text, '/');
	char address[INET6_ADDRSTRLEN], network[HOSTS_TEXT_BYTES];
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	struct host made = {0};

	if (len >= sizeof(address))
		return refuse_address(text, must, mustlen);
	memcpy(address, text, len);
	address[len] = '\0';
	if (!parse_address(address, &made))
		return refuse_address(address, must, mustlen);
	if (slash && !parse_prefix(slash + 1, made.prefix, &made.prefix))
		return refuse(must, mustlen, "must have a whole number from 0 to %u after the '/'",
			family_bits(made.family));
	if (clear_rest(&made))
		return refuse(must, mustlen,
			"has bits behind its prefix: must be %s for the network, or %s for the "
			"address",
			hosts_format(&made, network), address);
	unmap(&made);
	*host = made;
	return 0;
}

const char *hosts_format(const struct host *host, char *buf)
{
	size_t len;

	inet_ntop(host->family, host->bytes, buf, HOSTS_TEXT_BYTES);
	len = strlen(buf);
	if (host->prefix < family_bits(host->family))
		snprintf(buf + len, HOSTS_TEXT_BYTES - len, "/%u", host->prefix);
	return buf;
}

/* ---- peers ----------------------------------------------------------------------------------- */

static bool address_of(const struct sockaddr *peer, struct host *address)
{
	*address = (struct host){.family = peer->sa_family};
	address->prefix = (uint8_t)family_bits(peer->sa_family);
	if (peer->sa_family == AF_INET)
		memcpy(address->bytes, &((const struct sockaddr_in *)(const void *)peer)->sin_addr,
			sizeof(struct in_addr));
	else if (peer->sa_family == AF_INET6)
		memcpy(address->bytes,
			&((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr,
			sizeof(struct in6_addr));
	else
		return false;
	unmap(address);
	return true;
}

static bool is_in(const struct host *address, const struct host *network)
{
	struct host cut = *address;

	if (address->family != network->family)
		return false;
	cut.prefix = network->prefix;
	clear_rest(&cut);
	return memcmp(cut.bytes, network->bytes, sizeof(cut.bytes)) == 0;
}

bool hosts_match(const struct host *hosts, size_t n, const struct sockaddr *peer)
{
	struct host address;

	if (!peer || !address_of(peer, &address))
		return false;
	for (size_t i = 0; i < n; i++)
		if (is_in(&address, &hosts[i]))
			return true;
	return false;
}
