/* record.h - the bytes of one direction of a tcp channel as TLS 1.3 records, in user space.
 *
 * A record is what RFC 8446 section 5.2 says, with TLS_AES_256_GCM_SHA384 and numbers from 0:
 *
 *     23 3 3 LENGTH          5 bytes in clear; LENGTH, big-endian, is of all that follows
 *     content, 23, zeros     encrypted: 16 KiB of content at most, its type, and padding
 *     tag                    16 bytes
 *
 * The kernel's TLS sends and takes the same (setsockopt(2) SOL_TLS with TLS_TX or TLS_RX). So
 * either end of a connection may leave it to the kernel, for each direction by itself.
 *
 * Only application data is sent. An alert or a handshake message, KeyUpdate too, ends the channel.
 * A stream may be cut between records: the frames inside tell whether the peer had finished.
 *
 * OWNERSHIP  The caller owns all buffers. A buffer of record_in stays until record_in_fini().
 * THREADS    One thread at a time, for each struct.
 * COST       Nothing is allocated after init. One core (EPYC, OpenSSL 3.0) seals 4.0 GB/s in
 *            records of 16 KiB. It opens 3.7 GB/s into private memory, and 3.2 into shared.
 * ERRORS     0 or -errno. An error stays: every later call returns it.
 *            -EBADMSG      the peer's bytes are forged, changed, doubled, or no records
 *            -EPROTO       a true record that no peer of ours sends
 *            -EKEYEXPIRED  the key has sealed as much as it may, and no new one came
 *            -EIO, -ENOMEM see aead.h
 */
#ifndef RMEMFS_COMMON_AUTH_RECORD_H
#define RMEMFS_COMMON_AUTH_RECORD_H

#include <sys/types.h>
#include <sys/uio.h>

#include "common/auth/aead.h"

enum {
	RECORD_CONTENT_MAX = 1 << 14,
	RECORD_HEADER_BYTES = 5,
	RECORD_OVERHEAD = RECORD_HEADER_BYTES + 1 + AEAD_TAG_BYTES,
	RECORD_BYTES_MAX = RECORD_CONTENT_MAX + RECORD_OVERHEAD,
	RECORD_EMPTY_MAX = 32, /* records without content in a row */
};

/* ---- out ------------------------------------------------------------------------------------- */

struct record_out {
	struct aead aead;
	uint64_t records; /* sealed so far: the next one's number */
};

int record_out_init(struct record_out *r, const struct direction_key *key);
void record_out_fini(struct record_out *r);

/* Seals bytes of the vectors into out, in records that are full but for the last. Returns the bytes
 * in out, and in taken the plain ones. A record is not cut to fit into the room, and none goes on
 * in the next call: so the caller says where records begin. The room is best a multiple of
 * RECORD_BYTES_MAX.
 *
 * All that is in out must be sent, in this order. The vectors' memory is read once and may change
 * meanwhile. */
ssize_t record_out_seal(struct record_out *r, const struct iovec *iov, int niov, void *out,
	size_t room, size_t *taken);

/* The channel needs new keys soon; see aead.h. */
static inline bool record_out_worn(const struct record_out *r)
{
	return aead_worn(&r->aead);
}

/* ---- in -------------------------------------------------------------------------------------- */

struct record_in {
	struct aead aead;
	uint64_t records; /* opened so far: the next one's number */
	unsigned empty;   /* of the last records */
	int error;
	uint8_t *buf; /* the caller's: [plain bytes] .. [bytes that are still sealed] */
	size_t room;
	size_t plain, nplain; /* opened, and not taken yet */
	size_t at, end;       /* came, and are still sealed */
};

/* The buffer has RECORD_BYTES_MAX bytes or more. Four times that saves system calls. */
int record_in_init(struct record_in *r, const struct direction_key *key, void *buf, size_t room);
void record_in_fini(struct record_in *r);

/* The next bytes of the stream belong here, and the caller then says how many came. The room is 0
 * only while record_in_ready(). Opened bytes that nobody has taken keep their place. */
void *record_in_space(struct record_in *r, size_t *room);
void record_in_fed(struct record_in *r, size_t bytes);

enum record_memory {
	/* Somebody may see this memory whenever it is. Only proven bytes are copied to it. */
	RECORD_SHARED,
	/* Nobody looks at this memory if the channel ends. A record that fits is opened into it,
	 * which saves the copy. All of the memory may change, also when the call fails. */
	RECORD_PRIVATE,
};

/* Puts as many plain bytes into the vectors as are there: the bytes, or 0 if a record's rest must
 * come first, or -errno. An error that lies behind good bytes is for the next call. */
ssize_t record_in_take(
	struct record_in *r, const struct iovec *iov, int niov, enum record_memory memory);

/* record_in_take() has something to give, an error perhaps, before more bytes come. A caller that
 * sleeps on the socket must ask this before. */
bool record_in_ready(const struct record_in *r);

static inline bool record_in_worn(const struct record_in *r)
{
	return aead_worn(&r->aead);
}

/* ---- by the kernel --------------------------------------------------------------------------- */

struct tls12_crypto_info_aes_gcm_256; /* linux/tls.h */

/* Fills the struct that setsockopt(2) takes as TLS_TX or TLS_RX, for the direction's first record
 * and all behind it. The caller cleanses it by explicit_bzero(3).
 *
 * A socket that receives into shared memory must not have TLS_RX_EXPECT_NO_PAD: the kernel would
 * open records there before it has proven them. */
void record_kernel_info(
	const struct direction_key *key, struct tls12_crypto_info_aes_gcm_256 *info);

#endif
