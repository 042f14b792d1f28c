#include "common/auth/auth_key.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "common/base/util.h"

#define FAMILY "RMEMFS-KEY-"
#define FORMAT FAMILY "1:"
#define AGAIN  "copy the whole line again"

enum {
	FORMAT_LEN = sizeof(FORMAT) - 1,
	CHECK_BYTES = 4,
	BODY_BYTES = AUTH_KEY_BYTES + CHECK_BYTES,
	BODY_LEN = BODY_BYTES / 3 * 4, /* in base64, without padding */
	SUFFIX_LEN = 5,                /* "-xxxx" */
	NAME_MAX_LEN = AUTH_KEY_ID_MAX - SUFFIX_LEN,
};

_Static_assert(BODY_BYTES % 3 == 0, "the base64 of a key has no padding: it has one form only");
_Static_assert(FORMAT_LEN + 2 + BODY_LEN + 1 == AUTH_KEY_LINE_MIN, "an id of one character");

static const char id_others[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
static const char base64_chars[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
enum { ID_FIRSTS = sizeof(id_others) - 1 - 3 }; /* without the punctuation */

/* How many characters of the text are among the first n of set. A NUL is not. */
static size_t span(const char *text, size_t len, const char *set, size_t n)
{
	size_t i = 0;

	while (i < len && memchr(set, text[i], n))
		i++;
	return i;
}

bool auth_key_is_id(const char *text, size_t len)
{
	return len >= 1 && len <= AUTH_KEY_ID_MAX && span(text, 1, id_others, ID_FIRSTS) == 1 &&
	       span(text, len, id_others, sizeof(id_others) - 1) == len;
}

void auth_key_clear(struct auth_key *key)
{
	OPENSSL_cleanse(key, sizeof(*key));
}

/* ---- the line -------------------------------------------------------------------------------- */

static int make_check(const struct auth_key *key, uint8_t check[CHECK_BYTES])
{
	uint8_t text[AUTH_KEY_ID_MAX + AUTH_KEY_BYTES], hash[EVP_MAX_MD_SIZE];
	size_t len = strlen(key->id);
	int ok;

	memcpy(text, key->id, len);
	memcpy(text + len, key->secret, AUTH_KEY_BYTES);
	ok = EVP_Digest(text, len + AUTH_KEY_BYTES, hash, NULL, EVP_sha256(), NULL);
	if (ok)
		memcpy(check, hash, CHECK_BYTES);
	OPENSSL_cleanse(text, sizeof(text));
	OPENSSL_cleanse(hash, sizeof(hash));
	return ok ? 0 : -EIO;
}

/* Returns -EINVAL. */
__attribute__((format(printf, 3, 4))) static int wrong(
	char *why, size_t whylen, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(why, whylen, format, list);
	va_end(list);
	return -EINVAL;
}

/* Splits the line into id and body, and checks all but the bytes of the body. */
static int split(const char *line, size_t len, size_t *idlen, char *why, size_t whylen)
{
	const char *id = line + FORMAT_LEN, *body, *colon;
	size_t left, chars;

	if (len < FORMAT_LEN || memcmp(line, FORMAT, FORMAT_LEN) != 0)
		return wrong(why, whylen,
			len >= strlen(FAMILY) && memcmp(line, FAMILY, strlen(FAMILY)) == 0
				? "not of the format " FORMAT " that this release knows: make a "
				  "new key by rmemfsctl keygen, or install the release that made "
				  "this one"
				: "no key: a key begins with " FORMAT " and is one line; " AGAIN
				  ", or begin a comment with '#'");
	colon = memchr(id, ':', len - FORMAT_LEN);
	if (!colon)
		return wrong(why, whylen, "the key was cut in its id: " AGAIN);
	*idlen = (size_t)(colon - id);
	if (!auth_key_is_id(id, *idlen))
		return wrong(why, whylen,
			"the key's id must have 1 to %d characters of a to z, 0 to 9, '.', '_' and "
			"'-', and begin with a letter or a digit: " AGAIN,
			AUTH_KEY_ID_MAX);
	body = colon + 1;
	left = len - (size_t)(body - line);
	chars = span(body, left, base64_chars, sizeof(base64_chars) - 1);
	if (chars < left && body[chars] != ':')
		return wrong(why, whylen,
			"character %zu behind the key's id can't be in a key: " AGAIN, chars + 1);
	if (chars < BODY_LEN || left == BODY_LEN)
		return wrong(why, whylen,
			"the key was cut: behind its id it has %zu characters, and should have %d "
			"and a colon: " AGAIN,
			chars, BODY_LEN);
	if (left > BODY_LEN + 1 || chars > BODY_LEN)
		return wrong(why, whylen, "the key is too long: " AGAIN ", and nothing behind it");
	return 0;
}

/* The body has BODY_LEN characters of base64. */
static int decode(const char *body, struct auth_key *key, char *why, size_t whylen)
{
	uint8_t bytes[BODY_BYTES] = {0}, check[CHECK_BYTES];
	int err = 0;

	if (EVP_DecodeBlock(bytes, (const uint8_t *)body, BODY_LEN) != BODY_BYTES)
		err = -EIO;
	memcpy(key->secret, bytes, AUTH_KEY_BYTES);
	if (!err)
		err = make_check(key, check);
	if (err)
		snprintf(why, whylen, "libcrypto can't check the key");
	else if (memcmp(check, bytes + AUTH_KEY_BYTES, CHECK_BYTES) != 0)
		err = wrong(why, whylen, "the key or its id was changed: " AGAIN);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return err;
}

int auth_key_parse(const char *line, size_t len, struct auth_key *key, char *why, size_t whylen)
{
	size_t idlen = 0;
	int err;

	memset(key, 0, sizeof(*key));
	err = split(line, len, &idlen, why, whylen);
	if (err)
		return err;
	memcpy(key->id, line + FORMAT_LEN, idlen);
	err = decode(line + FORMAT_LEN + idlen + 1, key, why, whylen);
	if (err)
		auth_key_clear(key);
	return err;
}

int auth_key_format(const struct auth_key *key, char line[AUTH_KEY_LINE_MAX + 1])
{
	uint8_t bytes[BODY_BYTES];
	char *end;
	int err;

	memcpy(bytes, key->secret, AUTH_KEY_BYTES);
	err = make_check(key, bytes + AUTH_KEY_BYTES);
	if (!err) {
		end = stpcpy(stpcpy(stpcpy(line, FORMAT), key->id), ":");
		end += EVP_EncodeBlock((uint8_t *)end, bytes, BODY_BYTES);
		strcpy(end, ":");
	}
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return err;
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

int auth_key_write(const struct auth_key *key, int fd)
{
	char line[AUTH_KEY_LINE_MAX + 2];
	int err = auth_key_format(key, line);

	if (!err) {
		strcat(line, "\n");
		err = write_all(fd, line, strlen(line));
	}
	OPENSSL_cleanse(line, sizeof(line));
	return err;
}

/* ---- new keys -------------------------------------------------------------------------------- */

/* Letters and digits, each as probable as the others. */
static int random_chars(char *text, size_t n)
{
	const unsigned fair = 256 - 256 % ID_FIRSTS;

	for (size_t i = 0; i < n;) {
		uint8_t byte;

		if (RAND_bytes(&byte, 1) != 1)
			return -EIO;
		if (byte < fair)
			text[i++] = id_others[byte % ID_FIRSTS];
	}
	text[n] = '\0';
	return 0;
}

int auth_key_generate(const char *name, struct auth_key *key, char *why, size_t whylen)
{
	size_t len = strlen(name);

	memset(key, 0, sizeof(*key));
	if (len > NAME_MAX_LEN || !auth_key_is_id(name, len))
		return wrong(why, whylen,
			"must be 1 to %d characters of a to z, 0 to 9, '.', '_' and '-', and begin "
			"with a letter or a digit",
			NAME_MAX_LEN);
	stpcpy(stpcpy(key->id, name), "-");
	if (random_chars(key->id + len + 1, SUFFIX_LEN - 1) ||
		RAND_priv_bytes(key->secret, AUTH_KEY_BYTES) != 1) {
		auth_key_clear(key);
		snprintf(why, whylen, "libcrypto has no random bytes");
		return -EIO;
	}
	return 0;
}

int auth_key_fingerprint(const struct auth_key *key, char text[AUTH_KEY_FINGERPRINT_BYTES])
{
	static const char label[] = "rmemfs fingerprint";
	uint8_t hash[EVP_MAX_MD_SIZE];

	if (!HMAC(EVP_sha256(), key->secret, AUTH_KEY_BYTES, (const uint8_t *)label,
		    sizeof(label) - 1, hash, NULL))
		return -EIO;
	snprintf(text, AUTH_KEY_FINGERPRINT_BYTES, "%02x%02x%02x%02x", hash[0], hash[1], hash[2],
		hash[3]);
	return 0;
}
