/* handshake.h - a client and a server prove to each other that they have the same key, and get keys
 * for their channel.
 *
 * It is TLS 1.3 (RFC 8446) with an external PSK and X25519, in three flights that the caller
 * carries. Nothing of TLS is spoken afterwards. This module does no I/O, and knows neither RPCs nor
 * transports.
 *
 *     client                                          server
 *     handshake_client_new                            handshake_server_new
 *     handshake_step: nothing in, first flight out -> handshake_step: server's flight out
 *     handshake_step: second flight out            <-
 *       DONE                                       -> handshake_step: nothing out
 *                                                       DONE
 *     handshake_keys, handshake_delete                handshake_keys, handshake_delete
 *
 * PROMISES   DONE at the client: the server has the key, and has answered this client. DONE at the
 *            server: the client has the key handshake_key_id(), and has answered this server. A
 *            recorded flight lets nobody in. A key that is stolen later decrypts no recorded
 *            channel. A flight with any byte changed is refused, in the records' headers too.
 *            Two holders of one key can't be told apart. A key's id is not secret.
 * REFUSAL    A refused handshake gives no output. OpenSSL's alerts differ by the reason, and are
 *            never passed on: the caller answers one constant status. A server takes the same steps
 *            for an unknown id as for a wrong key, with a random key in place of the missing one.
 *            handshake_refusal() is for the log of this machine only.
 * INPUT      Flights come from strangers. One has at most HANDSHAKE_FLIGHT_MAX bytes, and its
 *            records, and the hello in its first one, must fill it exactly. So OpenSSL never waits
 *            for more, nor allocates for more. Certificates, tickets, early data, a
 *            HelloRetryRequest, and other versions, ciphers, groups and PSK modes are refused.
 * OWNERSHIP  The caller deletes a handshake before its context, in whatever state it is.
 * THREADS    Any thread may use a context at any time. A handshake belongs to one thread at a time.
 * ERRORS     0 or -errno. No call leaves an error in OpenSSL's queue, or is misled by one in it.
 * SECRETS    The module cleanses its copies after use, and OpenSSL its own when the handshake is
 *            refused or deleted. So delete it as soon as the keys of the channel are there.
 * OPENSSL    3.0 and later. OpenSSL reads the system's openssl.cnf, as in any program. An admin may
 *            have configured providers, FIPS or a random generator there, and these stay in force.
 *            Its settings for TLS are replaced: versions, ciphers, groups, options, padding and the
 *            security level. A policy that leaves no X25519 makes handshake_context_new() fail.
 * COST       With OpenSSL 3.0, on one core of an EPYC: 0.2 ms of CPU at each end, and flights of
 *            239, 203 and 74 bytes. A server takes 0.03 ms to refuse an unknown id or a wrong key,
 *            and 0.17 ms to answer a recorded first flight. It has 10 KiB for a handshake before
 *            the first flight, 45 KiB while it waits for the second, 1 KiB when it is refused.
 */
#ifndef RMEMFS_COMMON_AUTH_HANDSHAKE_H
#define RMEMFS_COMMON_AUTH_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/auth_key.h"
#include "common/auth/channel_keys.h"

enum { HANDSHAKE_FLIGHT_MAX = 4096, HANDSHAKE_HELLO_BYTES = 32 };

struct handshake_context; /* one for a process and role, made at its start */
struct handshake;         /* one for a channel */

enum handshake_role { HANDSHAKE_CLIENT, HANDSHAKE_SERVER };

/* On failure `why`, a buffer of `size` bytes, has the reason for people. */
int handshake_context_new(
	enum handshake_role role, struct handshake_context **out, char *why, size_t size);
void handshake_context_delete(struct handshake_context *context);

/* The key is copied. */
int handshake_client_new(
	struct handshake_context *context, const struct auth_key *key, struct handshake **out);

/* Copies the secret of a key into `secret`, and returns whether there is such a key. The id has the
 * form of an id (auth_key.h). handshake_step() calls it, at most once in a handshake. It should
 * take the same time for each id. */
typedef bool handshake_find(void *user, const char *id, uint8_t secret[AUTH_KEY_BYTES]);

int handshake_server_new(struct handshake_context *context, handshake_find *find, void *user,
	struct handshake **out);

/* In every state; NULL is ignored. */
void handshake_delete(struct handshake *h);

enum handshake_state {
	HANDSHAKE_MORE,    /* send our flight; one of the peer is due then */
	HANDSHAKE_DONE,    /* send our flight, if there is one */
	HANDSHAKE_REFUSED, /* and stays so; there is no output */
};

/* Takes a flight of the peer, and gives ours: *outlen bytes, 0 for none, in a buffer of `outmax`,
 * at least HANDSHAKE_FLIGHT_MAX. A client begins with inlen 0. A flight that is not due, in DONE
 * too, refuses the handshake. */
enum handshake_state handshake_step(struct handshake *h, const void *in, size_t inlen, void *out,
	size_t outmax, size_t *outlen);

/* Server, in DONE: the key that the client has proven to have. Else NULL. Lives as long as h. */
const char *handshake_key_id(const struct handshake *h);
/* Server: the id of the key that the client has offered, whether there is such a key or not, made
 * printable; "": none yet. Lives as long as h. */
const char *handshake_offered_id(const struct handshake *h);

/* Why a handshake was refused. Never told to the peer. */
enum handshake_reason {
	HANDSHAKE_NOT_REFUSED,
	HANDSHAKE_NO_KEY,      /* server: the client offers no key in the way that we demand */
	HANDSHAKE_UNKNOWN_KEY, /* server: find() knows no such key */
	HANDSHAKE_OTHER_BYTES, /* server: the client's key has the id of ours, and other bytes */
	HANDSHAKE_NOT_PROVEN,  /* the peer does not prove that it has the key */
	HANDSHAKE_MALFORMED,   /* not a flight of this handshake */
	HANDSHAKE_TOO_LONG,    /* more than HANDSHAKE_FLIGHT_MAX */
	HANDSHAKE_NOT_DUE,     /* a flight too many */
	HANDSHAKE_FAILED,      /* no memory. OpenSSL can also tell that as one of the others */
};
enum { HANDSHAKE_NREASONS = HANDSHAKE_FAILED + 1 };

enum handshake_reason handshake_reason(const struct handshake *h);
/* The same as a text for the log, as "no key web1-zzzz here": it names the id, made printable, and
 * OpenSSL's reason if that says more. "" if it is not refused. Lives as long as h. */
const char *handshake_refusal(const struct handshake *h);

/* Bytes that both ends compute alike and nobody else can (RFC 8446, section 7.5): others for
 * another handshake, and for another context of `len` bytes. In DONE; else -ENOTCONN. */
int handshake_export(
	const struct handshake *h, const uint8_t *context, size_t len, uint8_t *out, size_t outlen);

/* The keys of the channel, made by handshake_export(). They are bound to both hellos and the kind
 * of transport. If an attacker has changed one of these on the way, the ends get different keys,
 * and the first protected message fails. */
int handshake_keys(const struct handshake *h, const uint8_t client_hello[HANDSHAKE_HELLO_BYTES],
	const uint8_t server_hello[HANDSHAKE_HELLO_BYTES], uint8_t kind, struct channel_keys *out);

#endif
