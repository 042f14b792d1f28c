/* test_handshake_strangers.c - peers that are OpenSSL's own, with settings other than ours, and the
 * system's configuration of OpenSSL. A peer with our settings gets in, so that each refusal is due
 * to what it does otherwise. */
#include "tests/unit/common/auth/handshake_ends.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

/* ---- peers ----------------------------------------------------------------------------------- */

static const char *stranger_id, *psk_cipher;

static SSL_SESSION *psk(SSL *ssl)
{
	const unsigned char sha384[] = {0x13, 0x02}, sha256[] = {0x13, 0x01};
	SSL_SESSION *session = SSL_SESSION_new();

	assert_true(SSL_SESSION_set1_master_key(session, keys[0].secret, AUTH_KEY_BYTES));
	assert_true(SSL_SESSION_set_cipher(
		session, SSL_CIPHER_find(ssl, psk_cipher ? sha256 : sha384)));
	assert_true(SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION));
	return session;
}

static int use_psk(
	SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *len, SSL_SESSION **out)
{
	*id = (const unsigned char *)stranger_id;
	*len = strlen(stranger_id);
	*out = psk(ssl);
	return 1;
}

static int find_psk(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **out)
{
	*out = psk(ssl);
	return 1;
}

static SSL_CTX *new_peer(bool is_server)
{
	SSL_CTX *c = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());

	assert_non_null(c);
	stranger_id = keys[0].id;
	psk_cipher = NULL;
	SSL_CTX_clear_options(c, SSL_CTX_get_options(c));
	SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION);
	SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION);
	SSL_CTX_set1_groups_list(c, "X25519");
	SSL_CTX_set_ciphersuites(c, "TLS_AES_256_GCM_SHA384");
	SSL_CTX_set_verify(c, SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_num_tickets(c, 0);
	if (is_server)
		SSL_CTX_set_psk_find_session_callback(c, find_psk);
	else
		SSL_CTX_set_psk_use_session_callback(c, use_psk);
	return c;
}

static void give_certificate(SSL_CTX *c)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();

	assert_true(ASN1_INTEGER_set(X509_get_serialNumber(x), 1));
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_NAME_add_entry_by_txt(
		X509_get_subject_name(x), "CN", MBSTRING_ASC, (const uint8_t *)"server", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	X509_set_pubkey(x, key);
	assert_true(X509_sign(x, key, EVP_sha256()));
	assert_true(SSL_CTX_use_certificate(c, x));
	assert_true(SSL_CTX_use_PrivateKey(c, key));
	X509_free(x);
	EVP_PKEY_free(key);
}

static void no_change(SSL_CTX *c)
{
}

static void without_psk(SSL_CTX *c)
{
	SSL_CTX_set_psk_find_session_callback(c, NULL);
	SSL_CTX_set_psk_use_session_callback(c, NULL);
	give_certificate(c);
}

static void with_certificate(SSL_CTX *c)
{
	give_certificate(c);
}

static void older_version(SSL_CTX *c)
{
	SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
	SSL_CTX_set_max_proto_version(c, TLS1_2_VERSION);
	give_certificate(c);
}

static void older_version_too(SSL_CTX *c)
{
	SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
}

static void other_group(SSL_CTX *c)
{
	SSL_CTX_set1_groups_list(c, "P-256");
}

/* The share is of the first, so that the server would have to ask again. */
static void other_group_first(SSL_CTX *c)
{
	SSL_CTX_set1_groups_list(c, "P-256:X25519");
}

static void other_cipher(SSL_CTX *c)
{
	SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256");
	psk_cipher = "TLS_AES_128_GCM_SHA256";
}

static void other_cipher_of_the_hash(SSL_CTX *c)
{
	SSL_CTX_set_ciphersuites(c, "TLS_CHACHA20_POLY1305_SHA256");
}

static void middlebox_records(SSL_CTX *c)
{
	SSL_CTX_set_options(c, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
}

static void psk_ke_too(SSL_CTX *c)
{
	SSL_CTX_set_options(c, SSL_OP_ALLOW_NO_DHE_KEX);
}

static void bad_id(SSL_CTX *c)
{
	stranger_id = "web1\033[2J\nkey";
}

static void long_id(SSL_CTX *c)
{
	static char id[3000];

	memset(id, 'x', sizeof(id) - 1);
	memcpy(id, keys[2].id, strlen(keys[2].id));
	stranger_id = id;
}

static SSL *new_ssl(SSL_CTX *c, bool is_server)
{
	SSL *ssl = SSL_new(c);

	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	if (is_server)
		SSL_set_accept_state(ssl);
	else
		SSL_set_connect_state(ssl);
	return ssl;
}

/* Returns whether its handshake is complete. */
static bool peer_step(SSL *ssl, const struct flight *in, struct flight *out)
{
	int n;

	assert_int_equal(BIO_write(SSL_get_rbio(ssl), in->bytes, (int)in->len), in->len);
	n = SSL_do_handshake(ssl);
	out->len = BIO_ctrl_pending(SSL_get_wbio(ssl));
	assert_true(out->len <= sizeof(out->bytes));
	if (out->len)
		BIO_read(SSL_get_wbio(ssl), out->bytes, sizeof(out->bytes));
	ERR_clear_error();
	return n == 1;
}

/* ---- strange clients ------------------------------------------------------------------------- */

static const struct client_case {
	void (*change)(SSL_CTX *c);
	enum handshake_reason reason;
	const char *why;
} client_cases[] = {
	{no_change, HANDSHAKE_NOT_REFUSED, ""},
	{with_certificate, HANDSHAKE_NOT_REFUSED, ""},
	{older_version_too, HANDSHAKE_NOT_REFUSED, ""},
	{psk_ke_too, HANDSHAKE_NOT_REFUSED, ""},
	{without_psk, HANDSHAKE_NO_KEY, "no key is offered by TLS 1.3 with X25519"},
	{older_version, HANDSHAKE_NO_KEY, "(unsupported protocol)"},
	{other_group, HANDSHAKE_NO_KEY, "(no suitable key share)"},
	{other_group_first, HANDSHAKE_NO_KEY, "no key is offered by TLS 1.3 with X25519"},
	{other_cipher, HANDSHAKE_NO_KEY, "(no shared cipher)"},
	{other_cipher_of_the_hash, HANDSHAKE_NO_KEY, "(no shared cipher)"},
	{middlebox_records, HANDSHAKE_MALFORMED, "malformed"},
	{bad_id, HANDSHAKE_UNKNOWN_KEY, "no key web1?[2J?key here"},
	{long_id, HANDSHAKE_UNKNOWN_KEY, "no key a.key_with-all-of-its-32-letters here"},
};

/* The server's side of a handshake with that client. */
static enum handshake_state serve_client(SSL *client, struct handshake *server)
{
	enum handshake_state state = HANDSHAKE_MORE;
	struct flight in = {.len = 0}, out;

	while (state == HANDSHAKE_MORE) {
		peer_step(client, &in, &out);
		state = step(server, &out, &in);
	}
	return state;
}

static void handshake_step__strange_client(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(client_cases); i++) {
		const struct client_case *c = &client_cases[i];
		SSL_CTX *ctx = new_peer(false);
		struct handshake *server = new_server();
		SSL *client;

		c->change(ctx);
		client = new_ssl(ctx, false);
		if (serve_client(client, server) !=
				(c->reason ? HANDSHAKE_REFUSED : HANDSHAKE_DONE) ||
			handshake_reason(server) != c->reason ||
			!strstr(handshake_refusal(server), c->why))
			fail_msg("client %zu: %s", i, handshake_refusal(server));
		SSL_free(client);
		handshake_delete(server);
		SSL_CTX_free(ctx);
	}
}

/* Its first flight has data behind the hello. */
static int use_early_psk(
	SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *len, SSL_SESSION **out)
{
	use_psk(ssl, md, id, len, out);
	return SSL_SESSION_set_max_early_data(*out, 100);
}

static void handshake_step__early_data(void **state)
{
	SSL_CTX *ctx = new_peer(false);
	struct handshake *server = new_server();
	struct flight in = {.len = 0}, out;
	size_t written;
	SSL *client;

	SSL_CTX_set_psk_use_session_callback(ctx, use_early_psk);
	client = new_ssl(ctx, false);
	assert_true(SSL_write_early_data(client, "data", 4, &written));
	out.len = (size_t)BIO_read(SSL_get_wbio(client), out.bytes, sizeof(out.bytes));
	assert_int_equal(step(server, &out, &in), HANDSHAKE_REFUSED);
	assert_int_equal(handshake_reason(server), HANDSHAKE_MALFORMED);
	handshake_delete(server);
	/* Without the data the rest would do; the client then waits to send it. */
	server = new_server();
	out.len = 5 + (size_t)(out.bytes[3] << 8 | out.bytes[4]);
	assert_int_equal(step(server, &out, &in), HANDSHAKE_MORE);
	peer_step(client, &in, &out);
	assert_int_equal(SSL_get_early_data_status(client), SSL_EARLY_DATA_REJECTED);
	SSL_free(client);
	handshake_delete(server);
	SSL_CTX_free(ctx);
}

/* ---- strange servers ------------------------------------------------------------------------- */

static const struct server_case {
	void (*change)(SSL_CTX *c);
	enum handshake_reason reason;
} server_cases[] = {
	{no_change, HANDSHAKE_NOT_REFUSED},
	{with_certificate, HANDSHAKE_NOT_REFUSED},
	{psk_ke_too, HANDSHAKE_NOT_REFUSED},
	{without_psk, HANDSHAKE_NOT_PROVEN},
	{older_version, HANDSHAKE_MALFORMED},
	{other_group, HANDSHAKE_MALFORMED},
	{other_cipher, HANDSHAKE_MALFORMED},
	{middlebox_records, HANDSHAKE_MALFORMED},
};

static void handshake_step__strange_server(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(server_cases); i++) {
		const struct server_case *c = &server_cases[i];
		struct handshake *client = new_client(&keys[0]);
		struct flight empty = {.len = 0}, in, out;
		SSL_CTX *ctx = new_peer(true);
		SSL *server;

		c->change(ctx);
		server = new_ssl(ctx, true);
		assert_int_equal(step(client, &empty, &out), HANDSHAKE_MORE);
		peer_step(server, &out, &in);
		assert_true(in.len > 0);
		step(client, &in, &out);
		if (handshake_reason(client) != c->reason)
			fail_msg("server %zu: %s", i, handshake_refusal(client));
		if (!c->reason)
			assert_true(peer_step(server, &out, &in));
		SSL_free(server);
		handshake_delete(client);
		SSL_CTX_free(ctx);
	}
}

/* psk_key_exchange_modes (45) has psk_dhe_ke (1) alone; supported_groups (10) X25519 (29) alone. */
static void handshake_step__client_offers_one_way(void **state)
{
	static const uint8_t modes[] = {0, 45, 0, 2, 1, 1}, groups[] = {0, 10, 0, 4, 0, 2, 0, 29};
	struct ends e;

	run_ends(&e, &keys[0], 1);
	assert_non_null(memmem(e.flights[0].bytes, e.flights[0].len, modes, sizeof(modes)));
	assert_non_null(memmem(e.flights[0].bytes, e.flights[0].len, groups, sizeof(groups)));
	delete_ends(&e);
}

/* ---- the system's configuration -------------------------------------------------------------- */

static const char hostile_conf[] = "openssl_conf = init\n"
				   "[init]\nssl_conf = ssl\n"
				   "[ssl]\nsystem_default = all\n"
				   "[all]\nMinProtocol = TLSv1\nMaxProtocol = TLSv1.2\n"
				   "CipherString = ALL@SECLEVEL=5\n"
				   "Ciphersuites = TLS_AES_128_GCM_SHA256\nGroups = P-384\n"
				   "Options = AllowNoDHEKEX,MiddleboxCompat\n"
				   "NumTickets = 4\nRecordPadding = 512\nVerifyMode = Require\n";

/* There is no provider with this property. */
static const char forbidding_conf[] = "openssl_conf = init\n"
				      "[init]\nalg_section = algorithms\n"
				      "[algorithms]\ndefault_properties = nobody=has\n";

static void our_ends(void **state)
{
	struct ends e;

	finish_ends(&e, &keys[0]);
	assert_true(e.flights[1].len < 256); /* no padding */
	delete_ends(&e);
}

/* In the child: this program again, under a configuration. */
static int child(const char *role)
{
	char why[256] = "";

	if (strcmp(role, "hostile") == 0) {
		SSL_CTX *c = SSL_CTX_new(TLS_client_method());
		const struct CMUnitTest tests[] = {
			cmocka_unit_test(our_ends),
			cmocka_unit_test(handshake_step__client_offers_one_way),
		};

		if (SSL_CTX_get_max_proto_version(c) != TLS1_2_VERSION)
			return 2; /* the configuration was not read */
		SSL_CTX_free(c);
		return cmocka_run_group_tests(tests, make_contexts, end_contexts);
	}
	if (handshake_context_new(HANDSHAKE_SERVER, &server_context, why, sizeof(why)) != -ENOTSUP)
		return 3;
	return strstr(why, "OpenSSL refuses") && strstr(why, "see openssl.cnf") ? 0 : 4;
}

static int run_child(const char *conf, const char *role)
{
	char path[] = "/tmp/rmemfs-openssl.XXXXXX";
	int fd = mkstemp(path), status;
	pid_t pid;

	assert_int_equal(write(fd, conf, strlen(conf)), strlen(conf));
	close(fd);
	pid = fork();
	if (pid == 0) {
		setenv("OPENSSL_CONF", path, 1);
		if (!freopen("/dev/null", "w", stdout))
			_exit(126);
		execl("/proc/self/exe", "test", role, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void handshake_context_new__hostile_configuration(void **state)
{
	assert_int_equal(run_child(hostile_conf, "hostile"), 0);
}

static void handshake_context_new__policy_forbids_all(void **state)
{
	assert_int_equal(run_child(forbidding_conf, "forbidden"), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handshake_step__strange_client),
		cmocka_unit_test(handshake_step__early_data),
		cmocka_unit_test(handshake_step__strange_server),
		cmocka_unit_test(handshake_step__client_offers_one_way),
		cmocka_unit_test(handshake_context_new__hostile_configuration),
		cmocka_unit_test(handshake_context_new__policy_forbids_all),
	};

	if (argc > 1)
		return child(argv[1]);
	return cmocka_run_group_tests(tests, make_contexts, end_contexts);
}
