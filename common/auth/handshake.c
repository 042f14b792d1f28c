/* handshake.c - see handshake.h. Each flight passes two checks before its handshake goes on: its
 * records must have the one shape that our own peers send, and OpenSSL must be where this flight
 * leads. */
#include "common/auth/handshake.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include "common/base/printable.h"

enum { WHY_BYTES = 160 };

struct handshake_context {
	SSL_CTX *ssl;
	uint8_t decoy[AUTH_KEY_BYTES]; /* the secret of ids that nobody has */
};

struct handshake {
	const struct handshake_context *context;
	enum handshake_role role;
	enum handshake_state state;
	enum handshake_reason reason;
	unsigned nflights;    /* of the peer, that were taken; a client's begin counts, too */
	SSL *ssl;             /* NULL once it is refused */
	SSL_SESSION *session; /* client: the key, as OpenSSL wants it */
	handshake_find *find; /* server */
	void *user;           /* server: for find() */
	bool is_offered;      /* server: the client has named a key */
	bool is_known;        /* server: and find() knows it */
	char key_id[AUTH_KEY_ID_MAX + 1]; /* printable */
	char why[WHY_BYTES];
};

static const char cipher_name[] = "TLS_AES_256_GCM_SHA384";
static const unsigned char cipher_id[] = {0x13, 0x02};
/* handshake_keys() fills the whole struct at once. */
static_assert(sizeof(struct channel_keys) == 2 * (CHANNEL_KEY_BYTES + CHANNEL_IV_BYTES),
	"keys and IVs without gaps");
static const char export_label[] = "EXPORTER-rmemfs-1 channel";

/* ---- the keys, as OpenSSL wants them --------------------------------------------------------- */

/* The cipher decides the hash that the PSK is used with. */
static SSL_SESSION *make_session(SSL *ssl, const uint8_t secret[AUTH_KEY_BYTES])
{
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, cipher_id);
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && cipher && SSL_SESSION_set1_master_key(session, secret, AUTH_KEY_BYTES) &&
		SSL_SESSION_set_cipher(session, cipher) &&
		SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

/* Client. OpenSSL asks again in certain cases, and takes a reference each time. */
static int use_session(
	SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *len, SSL_SESSION **out)
{
	struct handshake *h = SSL_get_app_data(ssl);

	SSL_SESSION_up_ref(h->session);
	*id = (const unsigned char *)h->key_id;
	*len = strlen(h->key_id);
	*out = h->session;
	return 1;
}

/* Server. A cleaned id is either the same as the client's or has a '?', which no id has. */
static int find_session(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **out)
{
	struct handshake *h = SSL_get_app_data(ssl);
	uint8_t secret[AUTH_KEY_BYTES];

	printable_copy(h->key_id, sizeof(h->key_id), (const char *)id, len);
	h->is_offered = true;
	h->is_known = len <= AUTH_KEY_ID_MAX && h->find(h->user, h->key_id, secret);
	if (!h->is_known)
		memcpy(secret, h->context->decoy, sizeof(secret));
	*out = make_session(ssl, secret);
	OPENSSL_cleanse(secret, sizeof(secret));
	return *out != NULL;
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Replaces everything that openssl.cnf may have set for TLS. Returns the setting that OpenSSL
 * refuses. */
static const char *configure(SSL_CTX *ssl, bool is_server)
{
	SSL_CTX_clear_options(ssl, SSL_CTX_get_options(ssl));
	SSL_CTX_set_options(
		ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	/* X25519 has the 128 bits of this level. */
	SSL_CTX_set_security_level(ssl, 3);
	if (!SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) ||
		!SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION))
		return "TLS 1.3";
	if (!SSL_CTX_set_ciphersuites(ssl, cipher_name))
		return cipher_name;
	if (!SSL_CTX_set1_groups_list(ssl, "X25519"))
		return "X25519";
	if (!SSL_CTX_set_num_tickets(ssl, 0) || !SSL_CTX_set_max_early_data(ssl, 0) ||
		!SSL_CTX_set_recv_max_early_data(ssl, 0) || !SSL_CTX_set_block_padding(ssl, 0))
		return "a setting";
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	/* A client trusts no authority, so no certificate would do. */
	SSL_CTX_set_verify(ssl, is_server ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_max_cert_list(ssl, HANDSHAKE_FLIGHT_MAX);
	/* A handshake that waits has no buffers for records. */
	SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
	return NULL;
}

static const char *openssl_reason(void)
{
	return ERR_reason_error_string(ERR_peek_error());
}

static const char *make_context(enum handshake_role role, struct handshake_context *c)
{
	bool is_server = role == HANDSHAKE_SERVER;

	c->ssl = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
	if (!c->ssl)
		return "a context";
	if (RAND_priv_bytes(c->decoy, sizeof(c->decoy)) != 1)
		return "random bytes";
	if (is_server)
		SSL_CTX_set_psk_find_session_callback(c->ssl, find_session);
	else
		SSL_CTX_set_psk_use_session_callback(c->ssl, use_session);
	return configure(c->ssl, is_server);
}

int handshake_context_new(
	enum handshake_role role, struct handshake_context **out, char *why, size_t size)
{
	struct handshake_context *c = OPENSSL_zalloc(sizeof(*c));
	const char *refused, *reason;

	ERR_clear_error();
	if (!c) {
		snprintf(why, size, "no memory");
		return -ENOMEM;
	}
	refused = make_context(role, c);
	reason = openssl_reason();
	if (refused)
		snprintf(why, size, "OpenSSL refuses %s: %s; see openssl.cnf", refused,
			reason ? reason : "no reason given");
	ERR_clear_error();
	if (refused) {
		handshake_context_delete(c);
		return -ENOTSUP;
	}
	*out = c;
	return 0;
}

void handshake_context_delete(struct handshake_context *context)
{
	if (!context)
		return;
	SSL_CTX_free(context->ssl);
	OPENSSL_clear_free(context, sizeof(*context));
}

/* ---- handshakes ------------------------------------------------------------------------------ */

static void end_ssl(struct handshake *h)
{
	SSL_free(h->ssl);
	SSL_SESSION_free(h->session);
	h->ssl = NULL;
	h->session = NULL;
}

void handshake_delete(struct handshake *h)
{
	if (!h)
		return;
	end_ssl(h);
	OPENSSL_clear_free(h, sizeof(*h));
	ERR_clear_error();
}

static int give_bios(SSL *ssl)
{
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

	if (!in || !out) {
		BIO_free(in);
		BIO_free(out);
		return -ENOMEM;
	}
	SSL_set_bio(ssl, in, out);
	return 0;
}

static struct handshake *make_handshake(
	const struct handshake_context *context, enum handshake_role role)
{
	struct handshake *h = OPENSSL_zalloc(sizeof(*h));

	ERR_clear_error();
	if (!h)
		return NULL;
	h->context = context;
	h->role = role;
	h->ssl = SSL_new(context->ssl);
	if (!h->ssl || give_bios(h->ssl) != 0 || !SSL_set_app_data(h->ssl, h)) {
		handshake_delete(h);
		return NULL;
	}
	return h;
}

int handshake_client_new(
	struct handshake_context *context, const struct auth_key *key, struct handshake **out)
{
	struct handshake *h = make_handshake(context, HANDSHAKE_CLIENT);

	if (!h)
		return -ENOMEM;
	h->session = make_session(h->ssl, key->secret);
	if (!h->session) {
		handshake_delete(h);
		return -ENOMEM;
	}
	snprintf(h->key_id, sizeof(h->key_id), "%s", key->id);
	SSL_set_connect_state(h->ssl);
	*out = h;
	return 0;
}

int handshake_server_new(
	struct handshake_context *context, handshake_find *find, void *user, struct handshake **out)
{
	struct handshake *h = make_handshake(context, HANDSHAKE_SERVER);

	if (!h)
		return -ENOMEM;
	h->find = find;
	h->user = user;
	SSL_set_accept_state(h->ssl);
	*out = h;
	return 0;
}

/* ---- the shape of flights (RFC 8446, sections 4 and 5.1) ------------------------------------- */

enum { RECORD_HEADER = 5, RECORD_HANDSHAKE = 22, RECORD_PROTECTED = 23 };
enum { MESSAGE_HEADER = 4, MESSAGE_CLIENT_HELLO = 1, MESSAGE_SERVER_HELLO = 2 };
enum { VERSION_FIRST = 0x0301, VERSION_LATER = 0x0303 };

/* The length of the first record, with its header; 0 if it is another kind or not whole. The peers'
 * Finished do not cover the header of a record in clear, so it must have its one version. */
static size_t record_len(const uint8_t *in, size_t len, uint8_t type, uint16_t version)
{
	size_t whole;

	if (len < RECORD_HEADER || in[0] != type || (in[1] << 8 | in[2]) != version)
		return 0;
	whole = RECORD_HEADER + (size_t)(in[3] << 8 | in[4]);
	return whole <= len ? whole : 0;
}

/* The same for a record in clear that one message fills. */
static size_t hello_len(const uint8_t *in, size_t len, uint8_t message, uint16_t version)
{
	size_t whole = record_len(in, len, RECORD_HANDSHAKE, version);
	const uint8_t *m;

	if (whole < RECORD_HEADER + MESSAGE_HEADER)
		return 0;
	m = in + RECORD_HEADER;
	if (m[0] != message)
		return 0;
	if ((size_t)(m[1] << 16 | m[2] << 8 | m[3]) != whole - RECORD_HEADER - MESSAGE_HEADER)
		return 0;
	return whole;
}

/* Whether protected records fill it, at least one. */
static bool is_protected(const uint8_t *in, size_t len)
{
	size_t at = 0, n;

	do {
		n = record_len(in + at, len - at, RECORD_PROTECTED, VERSION_LATER);
		at += n;
	} while (n && at < len);
	return n && at == len;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Gives OpenSSL these bytes, and lets it go on: SSL_ERROR_NONE when its handshake is complete,
 * SSL_ERROR_WANT_READ when it needs more. */
static int feed(struct handshake *h, const void *in, size_t len)
{
	BIO *bio = SSL_get_rbio(h->ssl);

	if (len && BIO_write(bio, in, (int)len) != (int)len)
		return SSL_ERROR_SYSCALL;
	return SSL_get_error(h->ssl, SSL_do_handshake(h->ssl));
}

static bool is_consumed(const struct handshake *h)
{
	return BIO_ctrl_pending(SSL_get_rbio(h->ssl)) == 0 && !SSL_has_pending(h->ssl);
}

/* Holds from the server's hello on. A handshake by certificate, one without X25519, and a
 * HelloRetryRequest end here. */
static bool is_as_demanded(SSL *ssl)
{
	const SSL_CIPHER *cipher = SSL_get_current_cipher(ssl);

	return SSL_session_reused(ssl) && SSL_version(ssl) == TLS1_3_VERSION && cipher &&
	       SSL_CIPHER_get_protocol_id(cipher) == (cipher_id[0] << 8 | cipher_id[1]) &&
	       SSL_get_negotiated_group(ssl) == NID_X25519;
}

static enum handshake_reason client_begin(struct handshake *h, const uint8_t *in, size_t len)
{
	if (len)
		return HANDSHAKE_NOT_DUE;
	return feed(h, NULL, 0) == SSL_ERROR_WANT_READ ? HANDSHAKE_NOT_REFUSED : HANDSHAKE_FAILED;
}

/* The server's hello goes first. A server that would go on by a certificate is refused before
 * OpenSSL sees that. */
static enum handshake_reason client_answer(struct handshake *h, const uint8_t *in, size_t len)
{
	size_t hello = hello_len(in, len, MESSAGE_SERVER_HELLO, VERSION_LATER);

	if (!hello || !is_protected(in + hello, len - hello))
		return HANDSHAKE_MALFORMED;
	if (feed(h, in, hello) != SSL_ERROR_WANT_READ || !is_as_demanded(h->ssl))
		return HANDSHAKE_NOT_PROVEN;
	if (feed(h, in + hello, len - hello) != SSL_ERROR_NONE || !is_as_demanded(h->ssl))
		return HANDSHAKE_NOT_PROVEN;
	return is_consumed(h) ? HANDSHAKE_NOT_REFUSED : HANDSHAKE_MALFORMED;
}

static enum handshake_reason server_begin(struct handshake *h, const uint8_t *in, size_t len)
{
	if (!len || hello_len(in, len, MESSAGE_CLIENT_HELLO, VERSION_FIRST) != len)
		return HANDSHAKE_MALFORMED;
	if (feed(h, in, len) == SSL_ERROR_WANT_READ && is_as_demanded(h->ssl) && h->is_known)
		return is_consumed(h) ? HANDSHAKE_NOT_REFUSED : HANDSHAKE_MALFORMED;
	if (!h->is_offered)
		return HANDSHAKE_NO_KEY;
	if (!h->is_known)
		return HANDSHAKE_UNKNOWN_KEY;
	if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_BINDER_DOES_NOT_VERIFY)
		return HANDSHAKE_OTHER_BYTES;
	return HANDSHAKE_NO_KEY;
}

static enum handshake_reason server_end(struct handshake *h, const uint8_t *in, size_t len)
{
	if (!len || record_len(in, len, RECORD_PROTECTED, VERSION_LATER) != len)
		return HANDSHAKE_MALFORMED;
	if (feed(h, in, len) != SSL_ERROR_NONE || !is_as_demanded(h->ssl))
		return HANDSHAKE_NOT_PROVEN;
	return is_consumed(h) ? HANDSHAKE_NOT_REFUSED : HANDSHAKE_MALFORMED;
}

enum { NSTEPS = 2 };
typedef enum handshake_reason take_flight(struct handshake *h, const uint8_t *in, size_t len);

static take_flight *const steps[][NSTEPS] = {
	[HANDSHAKE_CLIENT] = {client_begin, client_answer},
	[HANDSHAKE_SERVER] = {server_begin, server_end},
};

/* The key's id stands between the two parts, if there is a second one. */
static const struct {
	const char *before, *after;
} reason_texts[HANDSHAKE_NREASONS] = {
	[HANDSHAKE_NOT_REFUSED] = {""},
	[HANDSHAKE_NO_KEY] = {"no key is offered by TLS 1.3 with X25519"},
	[HANDSHAKE_UNKNOWN_KEY] = {"no key ", " here"},
	[HANDSHAKE_OTHER_BYTES] = {"its key ", " has other bytes than ours"},
	[HANDSHAKE_NOT_PROVEN] = {"the peer does not prove that it has key ", ""},
	[HANDSHAKE_MALFORMED] = {"a handshake's message is malformed"},
	[HANDSHAKE_TOO_LONG] = {"a handshake's message is too long"},
	[HANDSHAKE_NOT_DUE] = {"a handshake's message comes when none is due"},
	[HANDSHAKE_FAILED] = {"the handshake failed on this machine"},
};

static void refuse(struct handshake *h, enum handshake_reason reason)
{
	const char *detail = openssl_reason(), *after = reason_texts[reason].after;

	/* Of these OpenSSL knows no more than that. */
	if (reason == HANDSHAKE_UNKNOWN_KEY || reason == HANDSHAKE_OTHER_BYTES)
		detail = NULL;
	snprintf(h->why, sizeof(h->why), "%s%s%s%s%s%s", reason_texts[reason].before,
		after ? h->key_id : "", after ? after : "", detail ? " (" : "",
		detail ? detail : "", detail ? ")" : "");
	h->reason = reason;
	h->state = HANDSHAKE_REFUSED;
	end_ssl(h);
}

static enum handshake_reason take(struct handshake *h, const uint8_t *in, size_t len)
{
	enum handshake_reason reason;

	if (h->nflights == NSTEPS)
		return HANDSHAKE_NOT_DUE;
	if (len > HANDSHAKE_FLIGHT_MAX)
		return HANDSHAKE_TOO_LONG;
	reason = steps[h->role][h->nflights](h, in, len);
	if (reason && ERR_GET_REASON(ERR_peek_error()) == ERR_R_MALLOC_FAILURE)
		return HANDSHAKE_FAILED;
	return reason;
}

static enum handshake_reason give(struct handshake *h, void *out, size_t outmax, size_t *outlen)
{
	BIO *bio = SSL_get_wbio(h->ssl);
	size_t len = BIO_ctrl_pending(bio);

	if (!len)
		return HANDSHAKE_NOT_REFUSED;
	if (len > outmax || BIO_read(bio, out, (int)len) != (int)len)
		return HANDSHAKE_FAILED;
	*outlen = len;
	return HANDSHAKE_NOT_REFUSED;
}

enum handshake_state handshake_step(
	struct handshake *h, const void *in, size_t inlen, void *out, size_t outmax, size_t *outlen)
{
	enum handshake_reason reason;

	*outlen = 0;
	if (h->state == HANDSHAKE_REFUSED)
		return HANDSHAKE_REFUSED;
	ERR_clear_error();
	reason = take(h, in, inlen);
	if (!reason)
		reason = give(h, out, outmax, outlen);
	if (reason)
		refuse(h, reason);
	else if (++h->nflights == NSTEPS)
		h->state = HANDSHAKE_DONE;
	ERR_clear_error();
	return h->state;
}

/* ---- results --------------------------------------------------------------------------------- */

const char *handshake_key_id(const struct handshake *h)
{
	return h->role == HANDSHAKE_SERVER && h->state == HANDSHAKE_DONE ? h->key_id : NULL;
}

const char *handshake_offered_id(const struct handshake *h)
{
	return h->role == HANDSHAKE_SERVER ? h->key_id : "";
}

enum handshake_reason handshake_reason(const struct handshake *h)
{
	return h->reason;
}

const char *handshake_refusal(const struct handshake *h)
{
	return h->why;
}

int handshake_export(
	const struct handshake *h, const uint8_t *context, size_t len, uint8_t *out, size_t outlen)
{
	int ok;

	if (h->state != HANDSHAKE_DONE)
		return -ENOTCONN;
	ok = SSL_export_keying_material(
		h->ssl, out, outlen, export_label, strlen(export_label), context, len, 1);
	ERR_clear_error();
	return ok == 1 ? 0 : -EIO;
}

int handshake_keys(const struct handshake *h, const uint8_t client_hello[HANDSHAKE_HELLO_BYTES],
	const uint8_t server_hello[HANDSHAKE_HELLO_BYTES], uint8_t kind, struct channel_keys *out)
{
	uint8_t bound[2 * HANDSHAKE_HELLO_BYTES + 1], context[EVP_MAX_MD_SIZE];
	unsigned len;

	memcpy(bound, client_hello, HANDSHAKE_HELLO_BYTES);
	memcpy(bound + HANDSHAKE_HELLO_BYTES, server_hello, HANDSHAKE_HELLO_BYTES);
	bound[2 * HANDSHAKE_HELLO_BYTES] = kind;
	if (EVP_Digest(bound, sizeof(bound), context, &len, EVP_sha256(), NULL) != 1) {
		ERR_clear_error();
		return -EIO;
	}
	return handshake_export(h, context, len, (uint8_t *)out, sizeof(*out));
}
