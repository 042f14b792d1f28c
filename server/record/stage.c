/* stage.c - see stage.h. */
#include "server/record/stage.h"

#include <errno.h>

#include "common/base/util.h"
#include "common/base/types.h"
#include "common/rpc/wire.h"

enum { ROOM_PATH = 8, ROOM_PIECE = 3 };

static struct store_key key_of(uint64_t session, uint32_t stage, uint32_t offset)
{
	return STORE_KEY(session, (uint64_t)stage << STAGE_SHIFT | offset);
}

static bool stage_is_of(const struct store_key *key, uint64_t session, uint32_t stage)
{
	return key->hi == session && key->lo >> STAGE_SHIFT == stage;
}

int stage_len(struct store *s, uint64_t session, uint32_t stage, uint32_t *len)
{
	struct store_key last = key_of(session, stage, UINT32_MAX), key;
	struct store_val val;
	int err = store_seek_back(s, STORE_STAGE, last, &key, &val);

	*len = 0;
	if (err)
		return err == -ENOENT ? 0 : err;
	if (!stage_is_of(&key, session, stage))
		return 0;
	if (!range_within((uint32_t)key.lo, val.len, XATTR_VALUE_MAX))
		return store_damaged(s, STORE_STAGE, key);
	*len = (uint32_t)key.lo + (uint32_t)val.len;
	return 0;
}

int stage_count(struct store *s, uint64_t session, unsigned *n)
{
	struct store_key key;
	int err = store_seek(s, STORE_STAGE, STORE_KEY(session), &key, NULL);

	for (*n = 0; !err && key.hi == session; ++*n) {
		struct store_key last =
			key_of(session, (uint32_t)(key.lo >> STAGE_SHIFT), UINT32_MAX);

		err = store_seek(s, STORE_STAGE, last, &key, NULL);
	}
	return err == -ENOENT ? 0 : err;
}

int stage_read(struct store *s, uint64_t session, uint32_t stage, void *buf, uint32_t len)
{
	struct wire_out w;

	wire_out_init(&w, buf, len);
	while (wire_out_len(&w) < len) {
		struct store_key key = key_of(session, stage, (uint32_t)wire_out_len(&w));
		struct store_val val;
		int err = store_get(s, STORE_STAGE, key, &val);

		if (err == -ENOENT || (!err && (!val.len || val.len > wire_out_room(&w))))
			return store_damaged(s, STORE_STAGE, key);
		if (err)
			return err;
		wire_put(&w, val.data, val.len);
	}
	return 0;
}

uint64_t stage_room(uint32_t len)
{
	/* The piece that is there and gets longer is one more. */
	return ROOM_PATH + ROOM_PIECE * (div_round_up(len, STAGE_PIECE_BYTES) + 1);
}

/* All pieces but the last are whole, so that a stage is few records however it came. */
static int add_piece(
	struct store *s, struct store_key key, uint32_t have, const void *data, uint32_t len)
{
	uint8_t piece[STAGE_PIECE_BYTES];
	struct store_val val;

	if (have) {
		int err = store_get(s, STORE_STAGE, key, &val);

		if (err == -ENOENT || (!err && val.len != have))
			return store_damaged(s, STORE_STAGE, key);
		if (err)
			return err;
		memcpy(piece, val.data, have);
	}
	memcpy(piece + have, data, len);
	return store_append(s, STORE_STAGE, key, piece, have + len);
}

int stage_add(struct store *s, uint64_t session, uint32_t stage, uint32_t offset, const void *data,
	uint32_t len)
{
	for (uint32_t at = 0; at < len;) {
		uint32_t have = (offset + at) % STAGE_PIECE_BYTES;
		uint32_t bytes = (uint32_t)min_u64(STAGE_PIECE_BYTES - have, len - at);
		int err = add_piece(s, key_of(session, stage, offset + at - have), have,
			(const char *)data + at, bytes);

		if (err)
			return err;
		at += bytes;
	}
	return 0;
}

/* Drops up to nrecords records from `from` to `end`. */
static int stage_drop_before(
	struct store *s, struct store_key from, struct store_key end, unsigned nrecords, bool *done)
{
	struct store_key key;
	int err;

	for (err = store_seek(s, STORE_STAGE, from, &key, NULL);
		!err && key.hi == end.hi && key.lo <= end.lo && nrecords;
		err = store_seek(s, STORE_STAGE, from, &key, NULL)) {
		err = store_del(s, STORE_STAGE, key);
		if (err)
			return err;
		nrecords--;
	}
	if (err && err != -ENOENT)
		return err;
	*done = err == -ENOENT || key.hi != end.hi || key.lo > end.lo;
	return 0;
}

int stage_drop(struct store *s, uint64_t session, uint32_t stage)
{
	bool done;

	return stage_drop_before(s, key_of(session, stage, 0), key_of(session, stage, UINT32_MAX),
		UINT32_MAX, &done);
}

int stage_drain(struct store *s, uint64_t session, unsigned nrecords, bool *done)
{
	return stage_drop_before(
		s, STORE_KEY(session), STORE_KEY(session, UINT64_MAX), nrecords, done);
}
