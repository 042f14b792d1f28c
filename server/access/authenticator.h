/* authenticator.h - the thread that runs the server's handshakes.
 *
 * A handshake takes the server a third of a millisecond, and strangers can ask for many. So the
 * metadata thread only passes flights on. An attempt is one channel's handshake:
 *
 *     attempt_new -> attempt_post(flight) -> authenticator_take -> attempt_state
 *                          ^                                          | MORE: send attempt_flight
 *                          +------------------------------------------+
 *                                              DONE, REFUSED -> attempt_delete
 *
 * Steps are run in the order in which they were posted. One attempt has one step at a time.
 *
 * OWNERSHIP  The caller deletes its attempts, in any state, before the authenticator. Of a deleted
 *            one nothing is heard any more; where the thread is at work on it, the thread frees it.
 * THREADS    The metadata thread calls these. access_current guards the keys.
 */
#ifndef RMEMFS_SERVER_ACCESS_AUTHENTICATOR_H
#define RMEMFS_SERVER_ACCESS_AUTHENTICATOR_H

#include "common/auth/handshake.h"
#include "server/access/access_current.h"

struct authenticator;
struct attempt;

/* Starts the thread. It finds keys in the table that is in force when it looks. why gets the
 * reason, for people. */
int authenticator_new(
	struct access_current *access, struct authenticator **out, char *why, size_t whylen);
void authenticator_delete(struct authenticator *a);

/* Readable when a step has ended, until authenticator_clear(). */
int authenticator_fd(const struct authenticator *a);
void authenticator_clear(struct authenticator *a);
/* Takes the oldest attempt whose step has ended; NULL: none. */
struct attempt *authenticator_take(struct authenticator *a);

/* The channel's keys are bound to this, besides the handshake. It is copied. */
struct attempt_channel {
	const uint8_t *client_hello, *server_hello; /* [HANDSHAKE_HELLO_BYTES] */
	uint8_t kind;                               /* enum transport_kind */
};

/* -ENOMEM. user is the caller's. */
int attempt_new(struct authenticator *a, const struct attempt_channel *channel, void *user,
	struct attempt **out);
void attempt_delete(struct attempt *at); /* NULL is ignored */
void *attempt_user(const struct attempt *at);

/* Copies the flight, which has HANDSHAKE_FLIGHT_MAX bytes at most. Not while a step is posted. */
void attempt_post(struct attempt *at, const void *flight, size_t len);
/* Whether a step was posted, and was not taken back by authenticator_take(). */
bool attempt_is_posted(const struct attempt *at);

/* All of these between two steps. */
enum handshake_state attempt_state(const struct attempt *at);
/* The flight that the last step gave; len 0: none. */
const void *attempt_flight(const struct attempt *at, size_t *len);
/* DONE: the key that the peer has proven. */
const struct access_proof *attempt_proof(const struct attempt *at);
/* DONE: the keys that protect the channel. They are cleansed with the attempt. */
const struct channel_keys *attempt_keys(const struct attempt *at);
/* REFUSED: why, for the log. */
const char *attempt_refusal(const struct attempt *at);
/* REFUSED: the id of the key that the peer has offered, printable; "": none. *known: there is a key
 * of that id, and it has other bytes. */
const char *attempt_offered_id(const struct attempt *at, bool *known);

#endif
