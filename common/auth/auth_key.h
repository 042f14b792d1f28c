/* auth_key.h - a secret that a server and its client share, and the file that it lies in.
 *
 * A key is one line:
 *
 *     RMEMFS-KEY-1:web1-k7q2:4kKSoGnXY82R8RT1AbtkLLnOIf8qMXZxMbByv3wOqxtwkIr8:
 *
 * The parts are the format, the key's id, and base64 of 32 random bytes with their CRC-32, so that a
 * key that was cut when it was pasted is told as that. An id is [a-z0-9][a-z0-9._-]{0,31}. A file
 * may have several keys, and all of them are valid. Empty lines and lines that begin with '#' are
 * skipped.
 */
#ifndef RMEMFS_COMMON_AUTH_AUTH_KEY_H
#define RMEMFS_COMMON_AUTH_AUTH_KEY_H

#include <stdint.h>

enum { AUTH_KEY_ID_MAX = 32, AUTH_KEY_BYTES = 32 };

struct auth_key {
	char id[AUTH_KEY_ID_MAX + 1];
	uint8_t secret[AUTH_KEY_BYTES];
};

#endif
