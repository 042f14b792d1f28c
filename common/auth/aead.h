/* aead.h - AES-256-GCM with the key of one direction, for numbered messages.
 *
 * The nonce of message n is the direction's IV xor n, as in RFC 8446 section 5.3. A number must
 * never seal two messages. The callers, record.h and sealed.h, count up from 0.
 *
 * One message: aead_begin(), then aead_update() for each piece, then aead_seal() or aead_open().
 * Only the last call returns an error. An error stays: every later message has it, too.
 *
 * WEAR       A key may seal about 2^34.5 blocks of 16 bytes: RFC 8446 section 5.5 allows 2^24.5
 *            records of 16 KiB. An aead counts its blocks, and two more for each message.
 * OWNERSHIP  aead_init() copies the key. aead_fini() cleanses what it has.
 * THREADS    One thread at a time.
 * COST       No call but aead_init() allocates.
 * ERRORS     0 or -errno. -EIO: libcrypto fails, which no input can bring about.
 */
#ifndef RMEMFS_COMMON_AUTH_AEAD_H
#define RMEMFS_COMMON_AUTH_AEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "common/auth/channel_keys.h"

enum { AEAD_TAG_BYTES = 16, AEAD_BLOCK_BYTES = 16 };

/* Blocks of 2^24 records of 16 KiB: it is time for a new key. */
#define AEAD_WORN_BLOCKS (UINT64_C(1) << 34)
/* Nothing begins after so many blocks: -EKEYEXPIRED. */
#define AEAD_END_BLOCKS (UINT64_C(3) << 33)

/* AEAD_WORN_BLOCKS. In a build with RMEMFS_CRASH_POINTS a test may lower it, by the variable
 * RMEMFS_WORN_BLOCKS. */
uint64_t aead_worn_blocks(void);

enum aead_use { AEAD_OPEN, AEAD_SEAL };

struct evp_cipher_ctx_st; /* libcrypto's EVP_CIPHER_CTX */

struct aead {
	struct evp_cipher_ctx_st *cipher;
	uint8_t iv[CHANNEL_IV_BYTES];
	uint64_t blocks;  /* that went through the key */
	uint64_t worn_at; /* aead_worn_blocks(); a test may lower it */
	int error;
};

/* -ENOMEM: libcrypto has no memory, or no AES-256-GCM. On failure there is nothing to finish. */
int aead_init(struct aead *a, const struct direction_key *key, enum aead_use use);
/* Also for an aead that is all zeros. */
void aead_fini(struct aead *a);

/* The additional data is not sent, but the tag proves it, too. */
void aead_begin(struct aead *a, uint64_t number, const void *additional, size_t len);
/* out and in have len bytes, are the same, or do not overlap. The bytes that an
 * opening aead puts out are proven only when aead_open() returns 0. */
void aead_update(struct aead *a, void *out, const void *in, size_t len);
/* -EKEYEXPIRED, -EIO: the tag is no tag, and nothing may be sent. */
int aead_seal(struct aead *a, uint8_t tag[AEAD_TAG_BYTES]);
/* -EBADMSG: the peer has not sealed these bytes under this number. -EKEYEXPIRED, -EIO. */
int aead_open(struct aead *a, const uint8_t tag[AEAD_TAG_BYTES]);

/* The channel needs new keys soon. */
static inline bool aead_worn(const struct aead *a)
{
	return a->blocks >= a->worn_at;
}

#endif
