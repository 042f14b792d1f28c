/* prove_key.h - a new channel proves the mount's key to the server, and has the server prove it.
 *
 * The handshake comes before ATTACH (common/auth/handshake.h). A mount with a key sends nothing
 * else to a server that has not proven that it has this key.
 *
 * The key file is read anew for each connection. So a key can be replaced while the mount works:
 * the file has the new one and the old one for a time. The first key is tried first. If the server
 * does not accept it, the next connection tries the next key.
 *
 * THREADS    The I/O thread, which blocks while it reads the file.
 * ERRORS     0 or -errno, with a line in why. -EACCES: the server does not accept the key, or does
 *            not have it. Others: the file, see auth_key_file.h.
 */
#ifndef RMEMFS_DAEMON_REMOTE_PROVE_KEY_H
#define RMEMFS_DAEMON_REMOTE_PROVE_KEY_H

#include "daemon/remote/remote_private.h"

/* Sends the first flight. */
int prove_key_begin(struct remote *r, char *why, size_t whylen);

/* Takes a reply to AUTH. 1: both sides have proven the key, and the channel is protected; 0: the
 * next flight was sent. */
int prove_key_answered(struct remote *r, const struct rpc_reply *rep, char *why, size_t whylen);

/* The channel is gone, or its ATTACH was answered. */
void prove_key_forget(struct remote *r);

/* After -EACCES: whether the next connection has another key to try. */
bool prove_key_has_more(const struct remote *r);
/* The channel is attached: the next connection begins with the file's first key again, unless this
 * one's was a later one. */
void prove_key_accepted(struct remote *r);

#endif
