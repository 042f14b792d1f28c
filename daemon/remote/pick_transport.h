/* pick_transport.h - which transport reaches a server, and under what address.
 *
 * A host that begins with '/' is the path of a local server's socket: shm. With transport=auto
 *   1. shm, if the host is this machine, no port was given and the default socket answers;
 *   2. verbs, if an RDMA device has a route to the host, unless the mount demands that all bytes
 *      are protected, or without_verbs;
 *   3. tcp.
 * A session that is taken over stays at its address.
 *
 * THREADS    Any; blocks for the resolver and for the route, for which connect_timeout_ms at most.
 * ERRORS     0 or -errno; why gets one line for people.
 */
#ifndef RMEMFS_DAEMON_REMOTE_PICK_TRANSPORT_H
#define RMEMFS_DAEMON_REMOTE_PICK_TRANSPORT_H

#include "daemon/remote/session_options.h"

/* With transport=auto, whether a session at this address may change between tcp and verbs. */
bool pick_transport_may_change(
	const struct session_options *options, const struct transport_address *address);
/* Opens verbs to the address, whatever its kind is. On failure `why` says why the session is not
 * over verbs, and the remedy. -EOPNOTSUPP: it may not take verbs. */
int pick_transport_verbs(const struct session_options *options,
	const struct transport_config *config, struct transport_address *address, int timeout_ms,
	struct transport **out, char *why, size_t whylen);

/* Opens the transport. *why is untouched without an error, unless transport=auto took tcp: then it
 * says why not verbs. -EINVAL: options that exclude each other, or that demand more protection
 * than the transport can give. -EHOSTUNREACH: no such host.
 * -EAGAIN: no name server can tell the address at the moment. -ENODEV: transport=verbs without a
 * device that has a route. */
int pick_transport(const struct session_options *options, const struct transport_config *config,
	struct transport_address *address, struct transport **out, char *why, size_t whylen);

/* Whether shm would have been chosen instead of this address if the server's default socket
 * existed. */
bool pick_transport_may_be_here(
	const struct session_options *options, const struct transport_address *address);
/* Whether a server listens at the default socket; it notices nothing. Does not block. */
bool pick_transport_socket_answers(void);

#endif
