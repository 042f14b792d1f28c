/* auth_key.h - a secret that a server and its clients share, as one line of text.
 *
 *     RMEMFS-KEY-1:web1-k7q2:0sE89nwH9zEzWXYlRQCvpab6VpIkoqifrxLzD6dCImtODlil:
 *
 * The parts are the format, the key's id, and base64 of 36 bytes: the secret of 32 random bytes,
 * and the first 4 bytes of SHA-256(id, secret). By these a key that was cut or changed when it was
 * copied is noticed, and an id that was changed, too. They prove nothing against an attacker: that
 * is the handshake's task. A key has one line only, to the letter.
 *
 * An id is a name and no secret: it goes over the network in clear. It has up to 32 characters, the
 * first of [a-z0-9], the others of [a-z0-9._-].
 *
 * OWNERSHIP  A struct auth_key holds its secret itself. Call auth_key_clear() before its memory is
 *            used for anything else. auth_key_file.h keeps the keys of a file in memory that is not
 *            swapped out.
 * THREADS    Any, one key at a time.
 * ERRORS     0 or -errno: -EINVAL for a wrong text, with a line in why that says the remedy and
 *            never has a part of the secret; -EIO if libcrypto fails. The key is cleared then.
 */
#ifndef RMEMFS_COMMON_AUTH_AUTH_KEY_H
#define RMEMFS_COMMON_AUTH_AUTH_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	AUTH_KEY_ID_MAX = 32,
	AUTH_KEY_BYTES = 32,
	/* Of a line, without its newline and without a NUL. */
	AUTH_KEY_LINE_MIN = 64,
	AUTH_KEY_LINE_MAX = AUTH_KEY_LINE_MIN - 1 + AUTH_KEY_ID_MAX,
	AUTH_KEY_FINGERPRINT_BYTES = 9,
};

struct auth_key {
	char id[AUTH_KEY_ID_MAX + 1];
	uint8_t secret[AUTH_KEY_BYTES];
};

bool auth_key_is_id(const char *text, size_t len);

/* A line of len bytes, without its newline. */
int auth_key_parse(const char *line, size_t len, struct auth_key *key, char *why, size_t whylen);
/* Adds a NUL and no newline. The caller clears the line by OPENSSL_cleanse() or explicit_bzero().
 */
int auth_key_format(const struct auth_key *key, char line[AUTH_KEY_LINE_MAX + 1]);
/* Writes the line with a newline to fd, which blocks; also an errno of write(2). */
int auth_key_write(const struct auth_key *key, int fd);

/* A new secret. The id is NAME-xxxx with four random characters, so that the old and the new key of
 * one holder have two ids. -EINVAL: the name makes no id; why says "must be ...". */
int auth_key_generate(const char *name, struct auth_key *key, char *why, size_t whylen);

/* Tells keys apart and nothing else of them: the first 8 hexadecimal digits of HMAC-SHA-256(secret,
 * "rmemfs fingerprint"). People may compare it by telephone, and a log may have it. */
int auth_key_fingerprint(const struct auth_key *key, char text[AUTH_KEY_FINGERPRINT_BYTES]);

void auth_key_clear(struct auth_key *key);

#endif
