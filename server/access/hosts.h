/* hosts.h - addresses and networks that a client of an export may come from: "10.0.0.7",
 * "10.0.0.0/24", "2001:db8::/32".
 *
 * Host names are refused, since the answer to a look-up is another machine's word.
 *
 * An IPv4 address that is mapped into IPv6 (::ffff:10.0.0.7) is that IPv4 address, in a text and as
 * a peer's: a socket that takes both families shows IPv4 peers so. A mapped network is an IPv4
 * network. Networks of IPv6 that are wider than the mapped range, such as ::/0, have no IPv4
 * addresses in them. The zone of a link-local address is ignored.
 *
 * THREADS    Any; all of it is pure.
 */
#ifndef RMEMFS_SERVER_ACCESS_HOSTS_H
#define RMEMFS_SERVER_ACCESS_HOSTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { HOSTS_ADDRESS_BYTES = 16, HOSTS_TEXT_BYTES = INET6_ADDRSTRLEN + 4 };

/* An address of IPv4 has the first 4 bytes. Bits behind the prefix are 0. */
struct host {
	sa_family_t family; /* AF_INET or AF_INET6 */
	uint8_t prefix;     /* bits that count: all of them for an address */
	uint8_t bytes[HOSTS_ADDRESS_BYTES];
};

/* 0, or -EINVAL with "must be ..." in must. */
int hosts_parse(const char *text, struct host *host, char *must, size_t mustlen);
/* As hosts_parse() takes it, in its shortest form: an address has no prefix. buf has
 * HOSTS_TEXT_BYTES. Returns buf. */
const char *hosts_format(const struct host *host, char *buf);

/* Whether one of n has the peer's address. False for a peer without one, and if n is 0. */
bool hosts_match(const struct host *hosts, size_t n, const struct sockaddr *peer);

#endif
