/* session_codec.c - see session_codec.h. */
#include "server/meta/session_codec.h"

#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "common/rpc/wire_version.h"

enum { RECORD_BYTES_MAX = 1 + 2 + 4 + OWNER_BYTES + 8 + 2 + sizeof(struct meta_session) };

static void put_holder(struct wire_out *w, const struct meta_session *s)
{
	uint8_t len = (uint8_t)strnlen(s->holder, sizeof(s->holder) - 1);

	wire_put_u8(w, len);
	wire_put(w, s->holder, len);
	wire_put(w, s->token, TOKEN_BYTES);
}

static void get_holder(struct wire_in *r, struct meta_session *s)
{
	uint8_t len = wire_get_u8(r);

	r->truncated |= len >= sizeof(s->holder);
	if (r->truncated)
		return;
	wire_get(r, s->holder, len);
	wire_get(r, s->token, TOKEN_BYTES);
}

static bool has_lent(const struct meta_session *s)
{
	for (unsigned i = 0; i < LENT_WINDOWS; i++)
		if (s->lent[i].left)
			return true;
	return false;
}

static void put_lent(struct wire_out *w, const struct meta_session *s)
{
	for (unsigned i = 0; i < LENT_WINDOWS; i++) {
		wire_put_u64(w, s->lent[i].first);
		wire_put_u64(w, s->lent[i].left);
	}
}

static void get_lent(struct wire_in *r, struct meta_session *s)
{
	for (unsigned i = 0; i < LENT_WINDOWS; i++) {
		s->lent[i].first = wire_get_u64(r);
		s->lent[i].left = wire_get_u64(r);
	}
}

int session_codec_put(struct meta *m, const struct session_record *rec)
{
	const struct meta_session *s = &rec->session;
	uint8_t state = rec->state & (uint8_t)~SESSION_LENT, buf[RECORD_BYTES_MAX];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	state |= SESSION_HELD | SESSION_VERSION | (has_lent(s) ? SESSION_LENT : 0);
	wire_put_u8(&w, state);
	wire_put_u16(&w, rec->export_id);
	wire_put_u32(&w, s->flags);
	wire_put(&w, s->owner, OWNER_BYTES);
	wire_put_u64(&w, s->instance);
	wire_put_u16(&w, s->nchannels);
	put_holder(&w, s);
	wire_put_u16(&w, s->wire_version);
	if (state & SESSION_LENT)
		put_lent(&w, s);
	wire_put(&w, s->client, strnlen(s->client, sizeof(s->client) - 1));
	return store_put(m->store, STORE_SESSION, STORE_KEY(s->id), buf, wire_out_len(&w));
}

int session_codec_get(struct meta *m, struct store_key key, const struct store_val *val,
	struct session_record *rec)
{
	struct meta_session *s = &rec->session;
	struct wire_in r;

	*rec = (struct session_record){.session = {.id = key.hi}};
	wire_in_init(&r, val->data, val->len);
	rec->state = wire_get_u8(&r);
	rec->export_id = wire_get_u16(&r);
	s->flags = wire_get_u32(&r);
	wire_get(&r, s->owner, OWNER_BYTES);
	s->instance = wire_get_u64(&r);
	s->nchannels = wire_get_u16(&r);
	if (rec->state & SESSION_HELD)
		get_holder(&r, s);
	s->wire_version = rec->state & SESSION_VERSION ? wire_get_u16(&r) : RMEMFS_WIRE_FIRST;
	if (rec->state & SESSION_LENT)
		get_lent(&r, s);
	if (r.truncated || wire_in_left(&r) >= sizeof(s->client))
		return store_damaged(m->store, STORE_SESSION, key);
	wire_get(&r, s->client, wire_in_left(&r));
	return 0;
}

int session_codec_next(struct meta *m, uint64_t *id, struct session_record *rec)
{
	struct store_key key;
	struct store_val val;
	int err = store_seek(m->store, STORE_SESSION, STORE_KEY(*id), &key, &val);

	if (!err)
		err = session_codec_get(m, key, &val, rec);
	if (!err)
		*id = key.hi + 1;
	return err;
}

int meta_session_decode(struct meta *m, struct store_key key, const struct store_val *val,
	struct meta_session *session, uint16_t *export_id)
{
	struct session_record rec;
	int err = session_codec_get(m, key, val, &rec);

	*session = rec.session;
	*export_id = rec.export_id;
	return err;
}

bool meta_session_has_ended(const struct store_val *val)
{
	return *(const uint8_t *)val->data & SESSION_ENDED;
}
