/* flight.h - changes a flight of the handshake by the bytes of an input, for the fuzzers. A change
 * is {what, place (2 bytes), value}. */
#ifndef RMEMFS_TESTS_FUZZ_FLIGHT_H
#define RMEMFS_TESTS_FUZZ_FLIGHT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/handshake.h"
#include "common/base/util.h"

enum { CHANGE_BYTES = 4, FLIGHT_ROOM = HANDSHAKE_FLIGHT_MAX + 256 };

struct flight {
	uint8_t bytes[FLIGHT_ROOM];
	size_t len;
};

static const struct auth_key fuzz_key = {"web1-k7q2", {1, 2, 3}};

static void demand(bool truth)
{
	if (!truth)
		abort();
}

static struct handshake_context *fuzz_context(enum handshake_role role)
{
	struct handshake_context *made;
	char why[256];

	if (handshake_context_new(role, &made, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	return made;
}

static bool find_fuzz_key(void *user, const char *id, uint8_t secret[AUTH_KEY_BYTES])
{
	memcpy(secret, fuzz_key.secret, AUTH_KEY_BYTES);
	return strcmp(id, fuzz_key.id) == 0;
}

static enum handshake_state flight_step(
	struct handshake *h, const struct flight *in, struct flight *out)
{
	enum handshake_state state =
		handshake_step(h, in->bytes, in->len, out->bytes, HANDSHAKE_FLIGHT_MAX, &out->len);

	demand(out->len <= HANDSHAKE_FLIGHT_MAX);
	demand(state != HANDSHAKE_REFUSED || (!out->len && *handshake_refusal(h)));
	return state;
}

static void flight_insert(struct flight *f, size_t at, size_t n, uint8_t value)
{
	n = min_u64(n, FLIGHT_ROOM - f->len);
	memmove(f->bytes + at + n, f->bytes + at, f->len - at);
	memset(f->bytes + at, value, n);
	f->len += n;
}

static void flight_remove(struct flight *f, size_t at, size_t n)
{
	n = min_u64(n, f->len - at);
	memmove(f->bytes + at, f->bytes + at + n, f->len - at - n);
	f->len -= n;
}

static void change_once(struct flight *f, const uint8_t change[CHANGE_BYTES])
{
	size_t at = (change[1] | (size_t)change[2] << 8) % (f->len + 1);
	uint8_t value = change[3];

	switch (change[0] % 4) {
	case 0:
		flight_insert(f, at, change[0] / 4, value);
		break;
	case 1:
		flight_remove(f, at, value);
		break;
	default:
		if (at < f->len)
			f->bytes[at] ^= value;
	}
}

static bool flight_differs(const struct flight *a, const struct flight *b)
{
	return a->len != b->len || memcmp(a->bytes, b->bytes, a->len) != 0;
}

/* Takes up to `most` changes off the input. Returns whether the flight is another one now. */
static bool flight_change(struct flight *f, const uint8_t **data, size_t *size, unsigned most)
{
	const struct flight before = *f;

	while (most-- && *size >= CHANGE_BYTES) {
		change_once(f, *data);
		*data += CHANGE_BYTES;
		*size -= CHANGE_BYTES;
	}
	return flight_differs(f, &before);
}

static void flight_raw(struct flight *f, const uint8_t *data, size_t size)
{
	f->len = min_u64(size, FLIGHT_ROOM);
	memcpy(f->bytes, data, f->len);
}

#endif
