/* offer.h - what the daemon of a mount tells a new one first: enough for it to prepare itself while
 * the mount goes on.
 *
 * Pure. All strings but that of verbs lie in `text`.
 *
 * ERRORS     -EMSGSIZE: too long. -EPROTONOSUPPORT: the offer is of another HANDOVER_VERSION; then
 *            `version` says by which rmemfs. -EPROTO: it is none.
 */
#ifndef RMEMFS_DAEMON_HANDOVER_OFFER_H
#define RMEMFS_DAEMON_HANDOVER_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/transport.h"
#include "daemon/remote/session_options.h"

enum { OFFER_ARGS_MAX = 256, OFFER_BYTES_MAX = 96 << 10 };

struct offer {
	const char *version; /* of rmemfs */
	unsigned argc;
	const char *argv[OFFER_ARGS_MAX + 1]; /* its command line */
	const char *mountpoint;
	unsigned connection; /* the kernel's number */
	unsigned io_threads;
	bool read_only;
	struct transport_address address;
	struct session_verbs verbs;
	/* The service manager's: NOTIFY_SOCKET, the unit, and how often it wants signs of life; ""
	 * and 0: none. */
	const char *notify, *unit;
	uint64_t limit_ms;
	char text[OFFER_BYTES_MAX];
};

int offer_put(const struct offer *offer, uint8_t *data, size_t room, size_t *len);
int offer_get(const uint8_t *data, size_t len, struct offer *offer);

#endif
