/* network.h - checks of the way to a server's address: its name, the route, and the size of packets
 * that arrive. */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_NETWORK_H
#define RMEMFS_DAEMON_CTL_DOCTOR_NETWORK_H

#include <stdbool.h>

#include "common/transport/address.h"
#include "daemon/ctl/doctor/doctor.h"

struct network_route {
	int err; /* -errno: there is no route */
	bool local;
	char peer[128], source[64];
	char interface[ADDRESS_INTERFACE_BYTES]; /* "": not found */
	unsigned mtu;                            /* of the interface; 0: not known */
	unsigned path_mtu;                       /* as far as the kernel knows it */
	long mbit;                               /* of the interface; 0: not known */
};

/* The fate of a packet that must not be cut. */
enum network_packet {
	PACKET_SILENCE, /* no answer */
	PACKET_ARRIVED, /* the peer has answered it */
	PACKET_TOO_BIG, /* this machine, or a router, refuses it */
};

struct network_packets {
	char interface[ADDRESS_INTERFACE_BYTES];
	unsigned mtu; /* of the interface: the size of the full packet */
	enum network_packet small, full;
	unsigned path_mtu; /* as the kernel knows it afterwards */
	unsigned largest;  /* the largest size that has arrived; 0: none was looked for */
};

void network_judge_route(const struct network_route *route, struct report *r);
void network_judge_packets(const struct network_packets *packets, struct report *r);

void network_check_host(struct doctor *d);
void network_check_route(struct doctor *d);
void network_check_packets(struct doctor *d);

#endif
