/* talk.h - the messages between the daemon that has a mount and the one that takes it over, on the
 * stream that "handover" opens at the control socket (admin/control.h).
 *
 *     the old one                                        the new one
 *                        <─── "handover" ───────────
 *     OFFER              ──── offer.h ─────────────>     opens transport and buffers
 *                        <─── READY: its pid, a pidfd
 *     the mount stands (serve/pause.h)
 *     STATE              ──── state.h, the kernel's      takes all of it, resumes the session
 *                             connection and the         (a byte: whether a killed daemon's service
 *                             threads' devices ────>     has its mount)
 *                        <─── TAKEN ────────────────     its threads run, and read nothing
 *     its guard stands down
 *     GO                 ────────────────────────────>
 *                        <─── SERVES ───────────────     reads
 *     ends
 *
 * Up to GO the old one may go on, and says FAILED with the reason; so may the new one, which has
 * sent nothing to the server that changes anything. All that the new one does before GO is undone
 * by its end. After GO the old one goes on only if the stream ends without SERVES: then the new one
 * has read no request. If the old one is killed, the new one goes on without GO: it makes certain
 * that the process has ended.
 *
 * THREADS    One at each end.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_DAEMON_HANDOVER_TALK_H
#define RMEMFS_DAEMON_HANDOVER_TALK_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/request/io_thread.h"

#define TALK_QUESTION "handover\n"

enum talk_kind {
	TALK_OFFER = 0x52484f01, /* no JSON text begins with such bytes */
	TALK_READY,
	TALK_STATE,
	TALK_TAKEN,
	TALK_GO,
	TALK_SERVES,
	TALK_FAILED, /* a text: the reason */
};

/* STATE has the most descriptors: the connection, the description, each thread's device, and the
 * owner's name. */
enum { TALK_BYTES_MAX = 128 << 10, TALK_FDS_MAX = 3 + IO_THREADS_MAX, TALK_SEND_MS = 1000 };

/* Descriptors are those that a message carries; what is not taken out of it is closed by
 * talk_fini(). */
struct talk_message {
	enum talk_kind kind;
	uint32_t len;
	uint8_t *data; /* with a NUL behind */
	int fds[TALK_FDS_MAX];
	unsigned nfds;
};

/* Sends the message, whose descriptors stay the caller's. Blocks for TALK_SEND_MS at most. */
int talk_send(
	int fd, enum talk_kind kind, const void *data, uint32_t len, const int *fds, unsigned nfds);
/* The same of a line of text. */
int talk_send_failed(int fd, const char *why);

/* The next message. -ETIMEDOUT: none within limit_ms (-1: no limit). -ECONNRESET: the stream has
 * ended. -EPROTO: that is none. A daemon that knows no hand-over answers with a JSON text: that is
 * a TALK_FAILED. */
int talk_receive(int fd, int limit_ms, struct talk_message *m);
/* Any message's end; of one that was not received, too, if it is all zeros. */
void talk_fini(struct talk_message *m);

#endif
