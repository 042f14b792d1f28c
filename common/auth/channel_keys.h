/* channel_keys.h - the keys that protect the bytes of one channel after its handshake.
 *
 * Each direction has an AES-256-GCM key and the IV that its counter is combined with. `client`
 * protects what the client sends, and `server` what the server sends. No two channels have the same
 * keys, so both counters begin with 0. The owner cleanses the struct when the keys are in use, by
 * explicit_bzero(3).
 */
#ifndef RMEMFS_COMMON_AUTH_CHANNEL_KEYS_H
#define RMEMFS_COMMON_AUTH_CHANNEL_KEYS_H

#include <stdint.h>

enum { CHANNEL_KEY_BYTES = 32, CHANNEL_IV_BYTES = 12 };

struct direction_key {
	uint8_t key[CHANNEL_KEY_BYTES];
	uint8_t iv[CHANNEL_IV_BYTES];
};

struct channel_keys {
	struct direction_key client;
	struct direction_key server;
};

#endif
