/* auth_token.h - random bytes that prove whose a session is.
 *
 * THREADS    Any.
 * ERRORS     0 or -EIO: libcrypto has no random bytes.
 */
#ifndef RMEMFS_COMMON_AUTH_AUTH_TOKEN_H
#define RMEMFS_COMMON_AUTH_AUTH_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/types.h"

int auth_token_make(uint8_t token[TOKEN_BYTES]);
/* Takes the same time wherever they differ. */
bool auth_token_equal(const uint8_t a[TOKEN_BYTES], const uint8_t b[TOKEN_BYTES]);

#endif
