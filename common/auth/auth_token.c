/* auth_token.c - see auth_token.h. */
#include "common/auth/auth_token.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/rand.h>

int auth_token_make(uint8_t token[TOKEN_BYTES])
{
	int ok = RAND_bytes(token, TOKEN_BYTES);

	ERR_clear_error();
	return ok == 1 ? 0 : -EIO;
}

bool auth_token_equal(const uint8_t a[TOKEN_BYTES], const uint8_t b[TOKEN_BYTES])
{
	return CRYPTO_memcmp(a, b, TOKEN_BYTES) == 0;
}
