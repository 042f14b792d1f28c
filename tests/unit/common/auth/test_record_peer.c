/* Records against libssl: an SSL object is the peer, after a TLS 1.3 handshake in memory. Its
 * traffic secrets, as it logs them for a debugger, give the keys of both directions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <openssl/core_names.h>

#include "tests/unit/common/auth/records.h"

enum { SECRET_BYTES = 48, BUFFER = 4 * RECORD_BYTES_MAX, LARGE = 100000 };

static SSL_CTX *ctx;
static SSL *client, *server;
static uint8_t client_secret[SECRET_BYTES], server_secret[SECRET_BYTES];

static uint8_t buffer[BUFFER], plain[LARGE], stream[2 * LARGE], opened[LARGE + 1];
static struct record_in from_server;
static struct record_out to_server;

/* ---- the handshake --------------------------------------------------------------------------- */

static SSL_SESSION *psk(const SSL_CIPHER *cipher)
{
	static const uint8_t secret[32] = {1, 2, 3};
	SSL_SESSION *session = SSL_SESSION_new();

	assert_true(SSL_SESSION_set1_master_key(session, secret, sizeof(secret)));
	assert_true(SSL_SESSION_set_cipher(session, cipher));
	assert_true(SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION));
	return session;
}

static int use_psk(
	SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *len, SSL_SESSION **session)
{
	*id = (const unsigned char *)"peer";
	*len = 4;
	*session = psk(sk_SSL_CIPHER_value(SSL_get_ciphers(ssl), 0));
	return 1;
}

static int find_psk(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **session)
{
	*session = psk(sk_SSL_CIPHER_value(SSL_get_ciphers(ssl), 0));
	return 1;
}

static void take_secret(const SSL *ssl, const char *line)
{
	uint8_t *secret = NULL;
	const char *hex = strrchr(line, ' ') + 1;

	if (strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) == 0)
		secret = client_secret;
	if (strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) == 0)
		secret = server_secret;
	if (!secret)
		return;
	assert_int_equal(strlen(hex), 2 * SECRET_BYTES);
	for (size_t i = 0; i < SECRET_BYTES; i++) {
		char digits[] = {hex[2 * i], hex[2 * i + 1], 0};

		secret[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
}

/* HKDF-Expand-Label of RFC 8446 section 7.1, without a context. */
static void expand(const uint8_t *secret, const char *label, uint8_t *out, size_t len)
{
	/* The length, then label and context, each with its own length in front. */
	char info[32] = {0, (char)len, (char)(6 + strlen(label))};
	size_t info_len = 3 + (size_t)snprintf(info + 3, sizeof(info) - 3, "tls13 %s", label) + 1;
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *hkdf = EVP_KDF_CTX_new(kdf);
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA384", 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret, SECRET_BYTES),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, info_len),
		OSSL_PARAM_construct_end(),
	};

	assert_int_equal(EVP_KDF_derive(hkdf, out, len, params), 1);
	EVP_KDF_CTX_free(hkdf);
	EVP_KDF_free(kdf);
}

static struct direction_key key_of(const uint8_t *secret)
{
	struct direction_key key;

	expand(secret, "key", key.key, sizeof(key.key));
	expand(secret, "iv", key.iv, sizeof(key.iv));
	return key;
}

/* Both sides with memory between them. From the end of the handshake on we are the client. The
 * server pads its records to a multiple of so many bytes. */
static int begin_padded_to(size_t block)
{
	BIO *up = BIO_new(BIO_s_mem()), *down = BIO_new(BIO_s_mem());
	struct direction_key key;

	ctx = SSL_CTX_new(TLS_method());
	assert_true(SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION));
	assert_true(SSL_CTX_set_ciphersuites(ctx, "TLS_AES_256_GCM_SHA384"));
	SSL_CTX_set_psk_use_session_callback(ctx, use_psk);
	SSL_CTX_set_psk_find_session_callback(ctx, find_psk);
	SSL_CTX_set_keylog_callback(ctx, take_secret);
	SSL_CTX_set_num_tickets(ctx, 0);
	client = SSL_new(ctx);
	server = SSL_new(ctx);
	SSL_set_connect_state(client);
	SSL_set_accept_state(server);
	assert_true(SSL_set_block_padding(server, block));
	BIO_up_ref(up);
	BIO_up_ref(down);
	SSL_set_bio(client, down, up);
	SSL_set_bio(server, up, down);
	for (int turn = 0; turn < 3; turn++) {
		SSL_do_handshake(client);
		SSL_do_handshake(server);
	}
	assert_true(SSL_is_init_finished(client) && SSL_is_init_finished(server));
	assert_int_equal(BIO_ctrl_pending(up) + BIO_ctrl_pending(down), 0);
	ERR_clear_error();

	fill(plain, sizeof(plain), 5);
	key = key_of(client_secret);
	assert_int_equal(record_out_init(&to_server, &key), 0);
	key = key_of(server_secret);
	assert_int_equal(record_in_init(&from_server, &key, buffer, sizeof(buffer)), 0);
	return 0;
}

static int begin(void **state)
{
	return begin_padded_to(1);
}

static int begin_padded(void **state)
{
	return begin_padded_to(512);
}

static int end(void **state)
{
	record_out_fini(&to_server);
	record_in_fini(&from_server);
	SSL_free(client);
	SSL_free(server);
	SSL_CTX_free(ctx);
	return 0;
}

/* ---- both ways ------------------------------------------------------------------------------- */

static void send_records(size_t at, size_t len)
{
	const struct iovec iov = {.iov_base = plain + at, .iov_len = len};
	size_t taken;
	ssize_t n = record_out_seal(&to_server, &iov, 1, stream, sizeof(stream), &taken);

	assert_int_equal(taken, len);
	assert_int_equal(BIO_write(SSL_get_rbio(server), stream, (int)n), n);
}

/* All that the server has sent since the last call. */
static size_t sent_by_server(void)
{
	int n = BIO_read(SSL_get_wbio(server), stream, sizeof(stream));

	return n > 0 ? (size_t)n : 0;
}

static void libssl__reads_our_records(void **state)
{
	static const size_t lens[] = {1, 32, RECORD_CONTENT_MAX, 60000, 1};
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lens); i++, at += lens[i - 1]) {
		size_t got = 0;

		send_records(at, lens[i]);
		while (got < lens[i]) {
			int n = SSL_read(server, opened + got, (int)(lens[i] - got));

			assert_true(n > 0);
			got += (size_t)n;
		}
		assert_memory_equal(opened, plain + at, lens[i]);
	}
}

static void we__read_libssls_records(void **state)
{
	static const enum record_memory memories[] = {RECORD_SHARED, RECORD_PRIVATE};

	for (size_t i = 0; i < ARRAY_SIZE(memories); i++) {
		size_t len, got;
		int status;

		assert_int_equal(SSL_write(server, plain, LARGE), LARGE);
		len = sent_by_server();
		got = receive(&from_server, stream, len, 20000, opened, sizeof(opened), memories[i],
			&status);
		assert_int_equal(status, 0);
		assert_int_equal(got, LARGE);
		assert_memory_equal(opened, plain, LARGE);
	}
}

static void we__read_libssls_padding(void **state)
{
	static const enum record_memory memories[] = {RECORD_SHARED, RECORD_PRIVATE};

	for (size_t i = 0; i < ARRAY_SIZE(memories); i++) {
		size_t len, got;
		int status;

		assert_int_equal(SSL_write(server, plain, 100), 100);
		assert_int_equal(SSL_write(server, plain + 100, 1000), 1000);
		len = sent_by_server();
		assert_true(len >= 512 + 1024);
		got = receive(&from_server, stream, len, 700, opened, sizeof(opened), memories[i],
			&status);
		assert_int_equal(status, 0);
		assert_int_equal(got, 1100);
		assert_memory_equal(opened, plain, 1100);
	}
}

/* ---- no data --------------------------------------------------------------------------------- */

static void demand_end(int want)
{
	size_t len = sent_by_server();
	int status;

	assert_true(len > 0);
	assert_int_equal(receive(&from_server, stream, len, len, opened, sizeof(opened),
				 RECORD_PRIVATE, &status),
		0);
	assert_int_equal(status, want);
}

static void key_update__ends_the_channel(void **state)
{
	assert_true(SSL_key_update(server, SSL_KEY_UPDATE_NOT_REQUESTED));
	assert_int_equal(SSL_do_handshake(server), 1);
	demand_end(-EPROTO);
}

static void alert__ends_the_channel(void **state)
{
	assert_int_equal(SSL_shutdown(server), 0); /* close_notify */
	demand_end(-EPROTO);
}

static void ticket__ends_the_channel(void **state)
{
	assert_true(SSL_new_session_ticket(server));
	assert_int_equal(SSL_do_handshake(server), 1);
	demand_end(-EPROTO);
}

#define peer_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		peer_test(libssl__reads_our_records),
		peer_test(we__read_libssls_records),
		cmocka_unit_test_setup_teardown(we__read_libssls_padding, begin_padded, end),
		peer_test(key_update__ends_the_channel),
		peer_test(alert__ends_the_channel),
		peer_test(ticket__ends_the_channel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
