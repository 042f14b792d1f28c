/* aead.c - see aead.h. */
#include "common/auth/aead.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>

/* Not listed among the variables for users. */
#define VARIABLE "RMEMFS_WORN_BLOCKS"

uint64_t aead_worn_blocks(void)
{
#ifdef RMEMFS_CRASH_POINTS
	const char *fewer = getenv(VARIABLE);

	if (fewer)
		return strtoull(fewer, NULL, 10);
#endif
	return AEAD_WORN_BLOCKS;
}

int aead_init(struct aead *a, const struct direction_key *key, enum aead_use use)
{
	EVP_CIPHER *gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);

	*a = (struct aead){.worn_at = aead_worn_blocks(), .cipher = EVP_CIPHER_CTX_new()};
	memcpy(a->iv, key->iv, sizeof(a->iv));
	if (gcm && a->cipher &&
		EVP_CipherInit_ex2(a->cipher, gcm, key->key, key->iv, use == AEAD_SEAL, NULL)) {
		EVP_CIPHER_free(gcm); /* the context has a reference of its own */
		return 0;
	}
	EVP_CIPHER_free(gcm);
	aead_fini(a);
	ERR_clear_error();
	return -ENOMEM;
}

void aead_fini(struct aead *a)
{
	EVP_CIPHER_CTX_free(a->cipher); /* cleanses the key's schedule */
	explicit_bzero(a, sizeof(*a));
}

/* libcrypto's own texts are of no use to anybody. They must not lie in the thread's queue either:
 * the next user of libssl would take them for its own. */
static void demand(struct aead *a, int ok)
{
	if (ok || a->error)
		return;
	a->error = -EIO;
	ERR_clear_error();
}

void aead_begin(struct aead *a, uint64_t number, const void *additional, size_t len)
{
	uint8_t nonce[CHANNEL_IV_BYTES];
	uint64_t be = htobe64(number);
	int n;

	if (!a->error && a->blocks >= AEAD_END_BLOCKS)
		a->error = -EKEYEXPIRED;
	if (a->error)
		return;
	a->blocks += 2;
	memcpy(nonce, a->iv, sizeof(nonce));
	for (size_t i = 0; i < sizeof(be); i++)
		nonce[sizeof(nonce) - sizeof(be) + i] ^= ((const uint8_t *)&be)[i];
	demand(a, EVP_CipherInit_ex2(a->cipher, NULL, NULL, nonce, -1, NULL));
	demand(a, EVP_CipherUpdate(a->cipher, NULL, &n, additional, (int)len));
}

void aead_update(struct aead *a, void *out, const void *in, size_t len)
{
	int n;

	assert(len <= INT_MAX);
	if (a->error || !len)
		return;
	a->blocks += len / AEAD_BLOCK_BYTES;
	demand(a, EVP_CipherUpdate(a->cipher, out, &n, in, (int)len));
}

int aead_seal(struct aead *a, uint8_t tag[AEAD_TAG_BYTES])
{
	int n;

	if (!a->error) {
		demand(a, EVP_CipherFinal_ex(a->cipher, tag, &n)); /* puts nothing out */
		demand(a,
			EVP_CIPHER_CTX_ctrl(a->cipher, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG_BYTES, tag));
	}
	return a->error;
}

int aead_open(struct aead *a, const uint8_t tag[AEAD_TAG_BYTES])
{
	uint8_t nothing[AEAD_BLOCK_BYTES];
	int n;

	if (a->error)
		return a->error;
	demand(a,
		EVP_CIPHER_CTX_ctrl(a->cipher, EVP_CTRL_AEAD_SET_TAG, AEAD_TAG_BYTES, (void *)tag));
	if (!a->error && EVP_CipherFinal_ex(a->cipher, nothing, &n) <= 0) {
		a->error = -EBADMSG;
		ERR_clear_error();
	}
	return a->error;
}
