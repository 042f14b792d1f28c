/* fuzz_auth_key.c - any bytes as a key file: it is read or refused, without a crash or a leak. A key
 * that is read gives the same line again, which is in the file. Since bytes by chance are never a
 * key, a key is made of the first of them and put before the others. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/auth_key_file.h"
#include "common/base/util.h"

enum { KEY_BYTES = 1 + AUTH_KEY_ID_MAX + AUTH_KEY_BYTES };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(void *arg, const char *text)
{
	if (text[0] == '\0')
		abort();
	++*(unsigned *)arg;
}

/* Reads the text of len bytes, and returns how many keys it has. */
static size_t read_text(const char *text, size_t len)
{
	struct auth_key_file file;
	unsigned faults = 0;
	int err = auth_key_file_parse("keys", text, len, &file, count, &faults);
	size_t n = file.n;

	if ((err != 0) != (faults > 0) || (!err && n == 0))
		abort();
	for (size_t i = 0; i < n; i++) {
		char line[AUTH_KEY_LINE_MAX + 1];

		if (auth_key_format(&file.v[i], line) || !memmem(text, len, line, strlen(line)))
			abort();
	}
	auth_key_file_free(&file);
	return n;
}

static void make_key(const uint8_t data[KEY_BYTES], struct auth_key *key)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = 1 + data[0] % AUTH_KEY_ID_MAX;

	*key = (struct auth_key){0};
	for (size_t i = 0; i < len; i++)
		key->id[i] = chars[data[1 + i] % (sizeof(chars) - (i ? 1 : 4))];
	memcpy(key->secret, data + 1 + AUTH_KEY_ID_MAX, AUTH_KEY_BYTES);
}

static void read_behind_key(const uint8_t data[KEY_BYTES], const uint8_t *rest, size_t size)
{
	autofree char *text = malloc(AUTH_KEY_LINE_MAX + 2 + size);
	char why[512];
	struct auth_key key, again;
	size_t len;

	make_key(data, &key);
	if (!text || auth_key_format(&key, text) ||
		auth_key_parse(text, strlen(text), &again, why, sizeof(why)) ||
		memcmp(&again, &key, sizeof(key)) != 0)
		abort();
	len = strlen(text);
	text[len++] = '\n';
	if (size)
		memcpy(text + len, rest, size);
	if (read_text(text, len + size) == 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_text((const char *)data, size);
	if (size >= KEY_BYTES)
		read_behind_key(data, data + KEY_BYTES, size - KEY_BYTES);
	return 0;
}
