/* decode.h - decodes the kernel's requests: the only place that knows how FUSE lays them out. This
 * folder is the home of <linux/fuse.h>.
 *
 * OWNERSHIP  Decoded names point into the message.
 * THREADS    Pure functions.
 * ERRORS     -ENOSYS: an operation that we don't have; the kernel then never asks again.
 *            -ENAMETOOLONG: a name over NAME_BYTES_MAX or a target over SYMLINK_BYTES_MAX. -ERANGE,
 *            -E2BIG: an extended attribute's name or value that is too long. -EINVAL: a value out
 *            of its range. -EIO: too short, too long, a name without end.
 */
#ifndef RMEMFS_DAEMON_FUSE_DECODE_H
#define RMEMFS_DAEMON_FUSE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include "daemon/request/request.h"

/* The ioctl on the root directory by which mount(8)'s helper tells of a remount; its argument is
 * flags of mount(2). See barrier/remount.h. */
#define REMOUNT_IOCTL _IO('r', 0x6d)
#define REMOUNT_FLAGS (MS_RDONLY | MS_NOATIME | MS_NODIRATIME | MS_RELATIME | MS_STRICTATIME)

/* The longest message of the kernel, and so the length of every read. */
enum { FUSE_MESSAGE_BYTES_MAX = PAYLOAD_HEAD_BYTES + IO_BYTES_MAX };

/* Fills op, unique, node, uid, gid, pid and args; on failure as far as it came, at least unique.
 * msg is aligned to 8; len is what the header says, and at least the header's length. SYMLINK has
 * the link's name in name and its target in name2. */
int fuse_decode(const void *msg, size_t len, struct request *req);

/* Whether a request of FUSE's opcode carries a payload: it keeps the buffer it was read into. */
bool fuse_decode_has_payload(uint32_t opcode);
/* The same of a message of any length as request_signals_are_untold() of its request. */
bool fuse_decode_signals_are_untold(const void *msg, size_t len);

/* Moves the decoded names, and all else that req points to in msg, into req->head. Not for requests
 * with a payload. */
void fuse_decode_keep(struct request *req, const void *msg, size_t len);

/* FORGET and BATCH_FORGET: how many there are, and one of them. */
int fuse_decode_nforgets(const void *msg, size_t len, uint32_t *n);
void fuse_decode_forget(const void *msg, uint32_t index, struct forget *forget);

/* INTERRUPT: the unique of the request whose caller was signalled. */
int fuse_decode_interrupt(const void *msg, size_t len, uint64_t *unique);

#endif
