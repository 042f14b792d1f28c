/* fuzz_handshake_server.c - any bytes as a client's flights, or real flights with changes. The
 * server's end is DONE after unchanged flights alone.
 *
 * The first byte of an input decides. Its lowest bits say how the first flight is made; the others
 * are how many changes of the input go to that flight. The rest goes to the second one. */
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "tests/fuzz/flight.h"

enum first_flight { RAW, CHANGED, SIGNED_AGAIN, NFIRST };
enum { HASH_BYTES = 48, BINDERS_BYTES = 2 + 1 + HASH_BYTES, RECORD_HEADER_BYTES = 5 };

static struct handshake_context *client_context, *server_context;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	client_context = fuzz_context(HANDSHAKE_CLIENT);
	server_context = fuzz_context(HANDSHAKE_SERVER);
	return 0;
}

static void hmac(const uint8_t *key, size_t keylen, const uint8_t *data, size_t len, uint8_t *out)
{
	demand(HMAC(EVP_sha384(), key, (int)keylen, data, len, out, NULL));
}

/* HKDF-Expand-Label of one block (RFC 8446, section 7.1). */
static void expand(const uint8_t *secret, const char *label, const uint8_t *context, size_t len,
	uint8_t out[HASH_BYTES])
{
	uint8_t info[128], *p = info;

	*p++ = 0;
	*p++ = HASH_BYTES;
	*p++ = (uint8_t)(6 + strlen(label));
	p += sprintf((char *)p, "tls13 %s", label);
	*p++ = (uint8_t)len;
	memcpy(p, context, len);
	p += len;
	*p++ = 1;
	hmac(secret, HASH_BYTES, info, (size_t)(p - info), out);
}

/* A client that has the key, and sends what it likes: the binder fits the changed hello. An
 * unchanged one stays as it is. */
static void sign_again(struct flight *f)
{
	static const uint8_t zeros[HASH_BYTES];
	uint8_t secret[HASH_BYTES], hash[HASH_BYTES], key[HASH_BYTES];
	size_t len = f->len - RECORD_HEADER_BYTES - BINDERS_BYTES;

	hmac(zeros, HASH_BYTES, fuzz_key.secret, AUTH_KEY_BYTES, secret);
	demand(EVP_Digest("", 0, hash, NULL, EVP_sha384(), NULL));
	expand(secret, "ext binder", hash, HASH_BYTES, key);
	expand(key, "finished", hash, 0, secret);
	demand(EVP_Digest(f->bytes + RECORD_HEADER_BYTES, len, hash, NULL, EVP_sha384(), NULL));
	hmac(secret, HASH_BYTES, hash, HASH_BYTES, f->bytes + f->len - HASH_BYTES);
}

/* Returns whether it is another flight than the client's. */
static bool make_first(struct flight *f, uint8_t how, const uint8_t **data, size_t *size)
{
	const struct flight before = *f;

	flight_change(f, data, size, how / NFIRST);
	if (how % NFIRST == RAW)
		flight_raw(f, *data, *size);
	if (how % NFIRST == SIGNED_AGAIN && f->len > RECORD_HEADER_BYTES + BINDERS_BYTES)
		sign_again(f);
	return flight_differs(f, &before);
}

static void try(
	struct handshake *client, struct handshake *server, const uint8_t *data, size_t size)
{
	static struct flight begin, first, answer, second;
	uint8_t how = *data++;
	bool changed;

	size--;
	demand(flight_step(client, &begin, &first) == HANDSHAKE_MORE);
	changed = make_first(&first, how, &data, &size);
	if (flight_step(server, &first, &answer) != HANDSHAKE_MORE) {
		demand(changed);
		return;
	}
	if (flight_step(client, &answer, &second) != HANDSHAKE_DONE) {
		demand(changed);
		flight_raw(&second, data, size);
	}
	changed |= flight_change(&second, &data, &size, UINT8_MAX);
	demand((flight_step(server, &second, &answer) == HANDSHAKE_DONE) == !changed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct handshake *client, *server;

	if (!size)
		return 0;
	demand(handshake_client_new(client_context, &fuzz_key, &client) == 0);
	demand(handshake_server_new(server_context, find_fuzz_key, NULL, &server) == 0);
	try(client, server, data, size);
	handshake_delete(client);
	handshake_delete(server);
	return 0;
}
