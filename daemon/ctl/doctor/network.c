#include "daemon/ctl/doctor/network.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/transport/address.h"

/* ---- the name -------------------------------------------------------------------------------- */

static void tell_unresolved(const struct doctor *d, int err, const char *why, struct report *r)
{
	report_found(r, VERDICT_FAILURE, "%s: %s", d->where, why);
	if (err == -EINVAL || err == -ENAMETOOLONG) {
		report_cause(r, "HOST has none of the forms that rmemfsctl takes");
		report_remedy(r, "see rmemfsctl doctor --help");
	} else {
		report_cause(r, "neither /etc/hosts nor a name server gives an address");
		report_remedy(r, "check the name with getent hosts, or name the address itself");
	}
}

void network_check_host(struct doctor *d)
{
	struct report *r = &d->report;
	char why[256], text[160];
	int err = ctl_parse_where(d->where, &d->address, &d->named, why, sizeof(why));

	if (err) {
		tell_unresolved(d, err, why, r);
		return;
	}
	d->local = address_is_local(&d->address);
	d->resolved = true;
	address_format(&d->address, text, sizeof(text));
	report_found(
		r, VERDICT_OK, "%s is %s%s", d->where, text, d->local ? ", on this machine" : "");
}

/* ---- the route ------------------------------------------------------------------------------- */

void network_judge_route(const struct network_route *route, struct report *r)
{
	if (route->err) {
		report_found(r, VERDICT_FAILURE, "no way to %s: %s", route->peer,
			errno_text(route->err));
		report_cause(r, "no interface that is up leads to that network");
		report_remedy(r, "ip route get ADDRESS; ip addr; ip link set INTERFACE up");
		return;
	}
	if (route->local) {
		report_found(r, VERDICT_OK, "%s is an address of this machine", route->peer);
		return;
	}
	report_found(r, VERDICT_OK, "to %s by %s from %s, MTU %u", route->peer,
		route->interface[0] ? route->interface : "an unknown interface", route->source,
		route->mtu);
	if (route->mbit)
		report_found(
			r, VERDICT_OK, "%s is a link of %ld Mbit/s", route->interface, route->mbit);
	if (route->path_mtu && route->mtu && route->path_mtu < route->mtu) {
		report_found(r, VERDICT_WARNING,
			"a router on the way lets packets of %u bytes pass", route->path_mtu);
		report_cause(r, "a link behind it has a smaller MTU than %s", route->interface);
		report_remedy(
			r, "give all links on the way the MTU of the smallest, or raise that");
	}
}

static struct sockaddr *sockaddr_of(struct transport_address *address)
{
	return (struct sockaddr *)&address->addr;
}

/* By the socket, since /sys may show another network namespace. Not each driver tells a rate. */
static void look_at_interface(int fd, struct network_route *route)
{
	struct ethtool_cmd link = {.cmd = ETHTOOL_GSET};
	struct ifreq request = {0};

	if (!route->interface[0])
		return;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", route->interface);
	if (ioctl(fd, SIOCGIFMTU, &request) == 0)
		route->mtu = (unsigned)request.ifr_mtu;
	request.ifr_data = (char *)&link;
	if (ioctl(fd, SIOCETHTOOL, &request) == 0 &&
		ethtool_cmd_speed(&link) != (uint32_t)SPEED_UNKNOWN)
		route->mbit = (long)ethtool_cmd_speed(&link);
}

/* Makes the kernel's IP send no fragments. The answer of getsockopt(IP_MTU) then is its size for
 * this path. */
static int forbid_fragments(int fd, int family)
{
	int probe = IP_PMTUDISC_DO;

	if (family == AF_INET6)
		return setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof(probe));
	return setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
}

static unsigned path_mtu_of(int fd, int family)
{
	int mtu = 0;
	socklen_t len = sizeof(mtu);

	if (family == AF_INET6)
		getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &len);
	else
		getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len);
	return mtu > 0 ? (unsigned)mtu : 0;
}

/* A socket of UDP for that address; connecting it sends nothing. */
static int open_udp(struct transport_address *address)
{
	int family = sockaddr_of(address)->sa_family, err;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (forbid_fragments(fd, family) == 0 &&
		connect(fd, sockaddr_of(address), address->addrlen) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

void network_check_route(struct doctor *d)
{
	struct transport_address peer = d->address;
	struct network_route route = {.local = d->local};
	struct sockaddr_storage source;
	socklen_t len = sizeof(source);
	autoclose int fd = -1;

	if (!d->resolved || peer.kind == TRANSPORT_SHM)
		return;
	address_format(&peer, route.peer, sizeof(route.peer));
	fd = open_udp(&peer);
	if (fd < 0)
		route.err = fd;
	if (fd >= 0 && getsockname(fd, (struct sockaddr *)&source, &len) == 0) {
		getnameinfo((struct sockaddr *)&source, len, route.source, sizeof(route.source),
			NULL, 0, NI_NUMERICHOST);
		address_interface(&source, route.interface);
		look_at_interface(fd, &route);
		route.path_mtu = path_mtu_of(fd, peer.addr.ss_family);
	}
	network_judge_route(&route, &d->report);
	d->routed = !route.err;
	d->mtu = route.mtu;
	snprintf(d->interface, sizeof(d->interface), "%s", d->local ? "" : route.interface);
}

/* ---- packets --------------------------------------------------------------------------------- */

void network_judge_packets(const struct network_packets *packets, struct report *r)
{
	const char *interface = packets->interface[0] ? packets->interface : "INTERFACE";

	if (packets->full == PACKET_ARRIVED) {
		report_found(r, VERDICT_OK, "packets of %u bytes, the MTU of %s, arrive",
			packets->mtu, interface);
		return;
	}
	if (packets->full == PACKET_TOO_BIG) {
		report_found(r, VERDICT_WARNING,
			"packets of %u bytes, the MTU of %s, do not pass: the way takes %u",
			packets->mtu, interface, packets->path_mtu);
		report_cause(r, "a router on the way has a link with a smaller MTU");
		report_remedy(r, "ip link set %s mtu %u here, or raise the MTU of that link",
			interface, packets->path_mtu);
		return;
	}
	if (packets->small != PACKET_ARRIVED) {
		report_found(r, VERDICT_NOTE,
			"the size of packets that arrive was not measured: the peer does not answer "
			"datagrams to a closed port (a firewall may drop them)");
		return;
	}
	report_found(r, VERDICT_FAILURE,
		"packets of %u bytes, the MTU of %s, get lost without a word; %u bytes arrive",
		packets->mtu, interface, packets->largest);
	report_cause(r, "a switch between, or the other end, has a smaller MTU than %s", interface);
	report_remedy(r,
		"here, until the next boot: ip link set %s mtu %u; or give each switch between, and "
		"the other end ('ip link' there shows it), MTU %u",
		interface, packets->largest, packets->mtu);
}

enum {
	ANSWER_MS = 300,
	SMALL_BYTES = 576, /* each way takes that */
	IPV4_HEADERS = 20 + 8,
	IPV6_HEADERS = 40 + 8,
};

/* Sends a packet of that size, headers included. A peer where nobody has the port answers by ICMP:
 * ECONNREFUSED. */
static enum network_packet send_packet(int fd, int family, unsigned bytes)
{
	static const char zeros[65536];
	unsigned headers = family == AF_INET6 ? IPV6_HEADERS : IPV4_HEADERS;
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int64_t until = now_ms() + ANSWER_MS;
	int error = 0;
	socklen_t len = sizeof(error);
	char byte;

	if (bytes - headers > sizeof(zeros))
		return PACKET_TOO_BIG;
	if (send(fd, zeros, bytes - headers, MSG_NOSIGNAL) < 0) {
		if (errno == EMSGSIZE)
			return PACKET_TOO_BIG;
		if (errno != ECONNREFUSED || send(fd, zeros, bytes - headers, MSG_NOSIGNAL) < 0)
			return PACKET_SILENCE;
	}
	while (poll(&pfd, 1, (int)max_i64(until - now_ms(), 0)) > 0) {
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error)
			return error == ECONNREFUSED ? PACKET_ARRIVED
			       : error == EMSGSIZE   ? PACKET_TOO_BIG
						     : PACKET_SILENCE;
		if (recv(fd, &byte, 1, 0) >= 0)
			return PACKET_ARRIVED;
	}
	return PACKET_SILENCE;
}

/* A peer sends few of these answers a second: so a few usual sizes are tried, the largest first. */
static unsigned find_largest(int fd, int family, unsigned below)
{
	static const unsigned usual[] = {4200, 1500, 1400};

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (usual[i] < below && send_packet(fd, family, usual[i]) == PACKET_ARRIVED)
			return usual[i];
	return SMALL_BYTES;
}

void network_check_packets(struct doctor *d)
{
	struct transport_address peer = d->address;
	struct network_packets packets = {.mtu = d->mtu};
	int family = peer.addr.ss_family;
	autoclose int fd = -1;

	if (!d->routed || d->local || d->mtu <= SMALL_BYTES)
		return;
	snprintf(packets.interface, sizeof(packets.interface), "%s", d->interface);
	fd = open_udp(&peer);
	if (fd < 0)
		return;
	packets.small = send_packet(fd, family, SMALL_BYTES);
	if (packets.small == PACKET_ARRIVED)
		packets.full = send_packet(fd, family, packets.mtu);
	/* One may be lost by chance. */
	if (packets.small == PACKET_ARRIVED && packets.full == PACKET_SILENCE)
		packets.full = send_packet(fd, family, packets.mtu);
	packets.path_mtu = path_mtu_of(fd, family);
	if (packets.small == PACKET_ARRIVED && packets.full == PACKET_SILENCE)
		packets.largest = find_largest(fd, family, packets.mtu);
	network_judge_packets(&packets, &d->report);
}
