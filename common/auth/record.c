/* record.c - see record.h. */
#include "common/auth/record.h"

#include <assert.h>
#include <errno.h>
#include <linux/tls.h>
#include <string.h>

#include "common/base/util.h"

enum {
	APPLICATION_DATA = 23,
	LEGACY_VERSION = 3, /* both bytes */
};

/* A place in vectors. */
struct cursor {
	const struct iovec *iov;
	int niov;
	size_t skip; /* bytes of the first vector that are done */
};

/* The next bytes that lie together, up to max of them. */
static uint8_t *cursor_next(struct cursor *c, size_t max, size_t *len)
{
	uint8_t *at;

	while (c->niov && c->skip == c->iov->iov_len) {
		c->iov++;
		c->niov--;
		c->skip = 0;
	}
	if (!c->niov) {
		*len = 0;
		return NULL;
	}
	at = (uint8_t *)c->iov->iov_base + c->skip;
	*len = min_u64(c->iov->iov_len - c->skip, max);
	c->skip += *len;
	return at;
}

/* The bytes from here on, or max if there are more. */
static size_t cursor_left(const struct cursor *c, size_t max)
{
	size_t skip = c->skip, left = 0;

	for (int i = 0; i < c->niov && left < max; i++) {
		left += c->iov[i].iov_len - skip;
		skip = 0;
	}
	return min_u64(left, max);
}

static void header_encode(uint8_t header[RECORD_HEADER_BYTES], size_t len)
{
	header[0] = APPLICATION_DATA;
	header[1] = LEGACY_VERSION;
	header[2] = LEGACY_VERSION;
	header[3] = (uint8_t)(len >> 8);
	header[4] = (uint8_t)len;
}

/* Returns the length, or 0 for what is no record of ours. */
static size_t header_decode(const uint8_t header[RECORD_HEADER_BYTES])
{
	size_t len = (size_t)header[3] << 8 | header[4];

	if (header[0] != APPLICATION_DATA || header[1] != LEGACY_VERSION ||
		header[2] != LEGACY_VERSION || len < 1 + AEAD_TAG_BYTES ||
		len > RECORD_BYTES_MAX - RECORD_HEADER_BYTES)
		return 0;
	return len;
}

/* ---- out ------------------------------------------------------------------------------------- */

int record_out_init(struct record_out *r, const struct direction_key *key)
{
	r->records = 0;
	return aead_init(&r->aead, key, AEAD_SEAL);
}

void record_out_fini(struct record_out *r)
{
	aead_fini(&r->aead);
}

static int seal_record(struct record_out *r, struct cursor *from, size_t len, uint8_t *out)
{
	static const uint8_t type = APPLICATION_DATA;
	uint8_t *body = out + RECORD_HEADER_BYTES;
	int err;

	header_encode(out, len + 1 + AEAD_TAG_BYTES);
	aead_begin(&r->aead, r->records, out, RECORD_HEADER_BYTES);
	while (len) {
		size_t n;
		const uint8_t *piece = cursor_next(from, len, &n);

		aead_update(&r->aead, body, piece, n);
		body += n;
		len -= n;
	}
	aead_update(&r->aead, body, &type, 1);
	err = aead_seal(&r->aead, body + 1);
	if (!err)
		r->records++;
	return err;
}

ssize_t record_out_seal(struct record_out *r, const struct iovec *iov, int niov, void *out,
	size_t room, size_t *taken)
{
	struct cursor from = {.iov = iov, .niov = niov};
	size_t len, put = 0;

	*taken = 0;
	while ((len = cursor_left(&from, RECORD_CONTENT_MAX)) &&
		len + RECORD_OVERHEAD <= room - put) {
		int err = seal_record(r, &from, len, (uint8_t *)out + put);

		if (err)
			return err;
		put += len + RECORD_OVERHEAD;
		*taken += len;
	}
	return (ssize_t)put;
}

/* ---- in -------------------------------------------------------------------------------------- */

int record_in_init(struct record_in *r, const struct direction_key *key, void *buf, size_t room)
{
	assert(room >= RECORD_BYTES_MAX);
	*r = (struct record_in){.buf = buf, .room = room};
	return aead_init(&r->aead, key, AEAD_OPEN);
}

void record_in_fini(struct record_in *r)
{
	aead_fini(&r->aead);
}

void *record_in_space(struct record_in *r, size_t *room)
{
	if (!r->nplain && (r->at == r->end || r->room - r->at < RECORD_BYTES_MAX)) {
		memmove(r->buf, r->buf + r->at, r->end - r->at);
		r->end -= r->at;
		r->at = 0;
	}
	*room = r->room - r->end;
	return r->buf + r->end;
}

void record_in_fed(struct record_in *r, size_t bytes)
{
	assert(bytes <= r->room - r->end);
	r->end += bytes;
}

/* The length of the record at the front, without its header, if all of it has come; else 0. A
 * header that is wrong ends the channel before anything of its record came. */
static size_t whole_record(const struct record_in *r, int *err)
{
	size_t have = r->end - r->at, len;

	*err = 0;
	if (have < RECORD_HEADER_BYTES)
		return 0;
	len = header_decode(r->buf + r->at);
	if (!len)
		*err = -EBADMSG;
	return have - RECORD_HEADER_BYTES < len ? 0 : len;
}

/* A record whose content has this length is open. */
static int record_opened(struct record_in *r, size_t content)
{
	r->records++;
	r->empty = content ? 0 : r->empty + 1;
	return r->empty > RECORD_EMPTY_MAX ? -EPROTO : 0;
}

/* Opens a record where it lies. */
static int open_in_place(struct record_in *r, const uint8_t *header, size_t len)
{
	uint8_t *body = r->buf + r->at;
	size_t inner = len - AEAD_TAG_BYTES;
	int err;

	aead_begin(&r->aead, r->records, header, RECORD_HEADER_BYTES);
	aead_update(&r->aead, body, body, inner);
	err = aead_open(&r->aead, body + inner);
	if (err)
		return err;
	/* The last byte that is not padding is the type. */
	while (inner && !body[inner - 1])
		inner--;
	if (!inner || body[inner - 1] != APPLICATION_DATA)
		return -EPROTO;
	r->plain = r->at;
	r->nplain = inner - 1;
	return record_opened(r, r->nplain);
}

/* Opens a record into the vectors. A padded one has less content than it seems: it stays sealed,
 * and *opened is false. */
static int open_into(
	struct record_in *r, const uint8_t *header, size_t len, struct cursor *to, bool *opened)
{
	const uint8_t *body = r->buf + r->at;
	size_t left = len - AEAD_TAG_BYTES - 1;
	struct cursor at = *to;
	uint8_t type;
	int err;

	aead_begin(&r->aead, r->records, header, RECORD_HEADER_BYTES);
	while (left) {
		size_t n;
		uint8_t *piece = cursor_next(&at, left, &n);

		aead_update(&r->aead, piece, body, n);
		body += n;
		left -= n;
	}
	aead_update(&r->aead, &type, body, 1);
	err = aead_open(&r->aead, body + 1);
	if (err)
		return err;
	if (!type)
		return 0;
	if (type != APPLICATION_DATA)
		return -EPROTO;
	*to = at;
	*opened = true;
	return record_opened(r, len - AEAD_TAG_BYTES - 1);
}

/* Opens the record at the front. Returns the bytes that are in the vectors already, or -errno. */
static ssize_t open_record(
	struct record_in *r, size_t len, struct cursor *to, enum record_memory memory)
{
	const uint8_t *header = r->buf + r->at;
	size_t content = len - AEAD_TAG_BYTES - 1;
	bool opened = false;
	int err = 0;

	r->at += RECORD_HEADER_BYTES;
	if (memory == RECORD_PRIVATE && content && cursor_left(to, content) == content)
		err = open_into(r, header, len, to, &opened);
	if (!err && !opened)
		err = open_in_place(r, header, len);
	r->at += len;
	if (err)
		return err;
	return opened ? (ssize_t)content : 0;
}

/* Copies opened bytes to the vectors. */
static size_t take_plain(struct record_in *r, struct cursor *to)
{
	size_t taken = 0, n;
	uint8_t *piece;

	while (r->nplain && (piece = cursor_next(to, r->nplain, &n))) {
		memcpy(piece, r->buf + r->plain, n);
		r->plain += n;
		r->nplain -= n;
		taken += n;
	}
	return taken;
}

ssize_t record_in_take(
	struct record_in *r, const struct iovec *iov, int niov, enum record_memory memory)
{
	struct cursor to = {.iov = iov, .niov = niov};
	size_t taken = take_plain(r, &to), len;

	while (!r->error && !r->nplain && cursor_left(&to, 1) &&
		(len = whole_record(r, &r->error))) {
		ssize_t into = open_record(r, len, &to, memory);

		if (into < 0)
			r->error = (int)into;
		else
			taken += (size_t)into + take_plain(r, &to);
	}
	return taken ? (ssize_t)taken : r->error;
}

bool record_in_ready(const struct record_in *r)
{
	int err;

	return r->error || r->nplain || whole_record(r, &err) || err;
}

/* ---- by the kernel --------------------------------------------------------------------------- */

void record_kernel_info(const struct direction_key *key, struct tls12_crypto_info_aes_gcm_256 *info)
{
	*info = (struct tls12_crypto_info_aes_gcm_256){
		.info = {.version = TLS_1_3_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_256},
	};
	static_assert(sizeof(info->salt) + sizeof(info->iv) == CHANNEL_IV_BYTES, "");
	memcpy(info->key, key->key, sizeof(info->key));
	/* Of the IV the kernel calls the first four bytes the salt. */
	memcpy(info->salt, key->iv, sizeof(info->salt));
	memcpy(info->iv, key->iv + sizeof(info->salt), sizeof(info->iv));
}
