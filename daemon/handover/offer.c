/* offer.c - see offer.h. */
#include "daemon/handover/offer.h"

#include <errno.h>
#include <string.h>

#include "common/rpc/wire.h"
#include "daemon/handover/state.h"

static void put_text(struct wire_out *w, const char *text)
{
	size_t len = strlen(text);

	w->overflow |= len > UINT16_MAX;
	wire_put_u16(w, (uint16_t)len);
	wire_put(w, text, len);
}

/* Strings are copied one behind the other. */
struct texts {
	char *at, *end;
};

static const char *get_text(struct wire_in *r, struct texts *texts)
{
	uint16_t len = wire_get_u16(r);
	const char *from = wire_get_ref(r, len), *text = texts->at;

	if (!from || (size_t)(texts->end - texts->at) <= len || memchr(from, '\0', len)) {
		r->truncated = true;
		return "";
	}
	memcpy(texts->at, from, len);
	texts->at[len] = '\0';
	texts->at += len + 1;
	return text;
}

int offer_put(const struct offer *offer, uint8_t *data, size_t room, size_t *len)
{
	struct wire_out w;

	wire_out_init(&w, data, room);
	wire_put_u32(&w, HANDOVER_VERSION);
	put_text(&w, offer->version);
	wire_put_u32(&w, offer->argc);
	for (unsigned i = 0; i < offer->argc; i++)
		put_text(&w, offer->argv[i]);
	put_text(&w, offer->mountpoint);
	wire_put_u32(&w, offer->connection);
	wire_put_u32(&w, offer->io_threads);
	wire_put_u8(&w, offer->read_only);
	wire_put_u8(&w, (uint8_t)offer->address.kind);
	wire_put_u16(&w, (uint16_t)offer->address.addrlen);
	wire_put(&w, &offer->address.addr, offer->address.addrlen);
	wire_put_u8(&w, offer->verbs.refused);
	wire_put_u32(&w, offer->verbs.penalty_ms);
	wire_put_u32(&w, offer->verbs.again_ms);
	put_text(&w, offer->verbs.why);
	put_text(&w, offer->notify);
	put_text(&w, offer->unit);
	wire_put_u64(&w, offer->limit_ms);
	*len = wire_out_len(&w);
	return w.overflow || offer->argc > OFFER_ARGS_MAX ? -EMSGSIZE : 0;
}

static void get_args(struct wire_in *r, struct texts *texts, struct offer *offer)
{
	offer->argc = wire_get_u32(r);
	if (!offer->argc || offer->argc > OFFER_ARGS_MAX) {
		r->truncated = true;
		offer->argc = 0;
	}
	for (unsigned i = 0; i < offer->argc; i++)
		offer->argv[i] = get_text(r, texts);
	offer->argv[offer->argc] = NULL;
}

static void get_address(struct wire_in *r, struct transport_address *address)
{
	uint8_t kind = wire_get_u8(r);
	uint16_t len = wire_get_u16(r);

	*address = (struct transport_address){.kind = (enum transport_kind)kind, .addrlen = len};
	if (kind > TRANSPORT_SHM || len > sizeof(address->addr)) {
		r->truncated = true;
		return;
	}
	wire_get(r, &address->addr, len);
}

static void get_verbs(struct wire_in *r, struct session_verbs *verbs)
{
	struct texts texts = {verbs->why, verbs->why + sizeof(verbs->why)};

	verbs->refused = wire_get_u8(r);
	verbs->penalty_ms = wire_get_u32(r);
	verbs->again_ms = wire_get_u32(r);
	if (get_text(r, &texts) != verbs->why)
		verbs->why[0] = '\0';
}

int offer_get(const uint8_t *data, size_t len, struct offer *offer)
{
	struct texts texts = {offer->text, offer->text + sizeof(offer->text)};
	uint32_t version;
	struct wire_in r;

	wire_in_init(&r, data, len);
	version = wire_get_u32(&r);
	offer->version = get_text(&r, &texts);
	if (r.truncated)
		return -EPROTO;
	if (version != HANDOVER_VERSION)
		return -EPROTONOSUPPORT;
	get_args(&r, &texts, offer);
	offer->mountpoint = get_text(&r, &texts);
	offer->connection = wire_get_u32(&r);
	offer->io_threads = wire_get_u32(&r);
	offer->read_only = wire_get_u8(&r);
	get_address(&r, &offer->address);
	get_verbs(&r, &offer->verbs);
	offer->notify = get_text(&r, &texts);
	offer->unit = get_text(&r, &texts);
	offer->limit_ms = wire_get_u64(&r);
	if (!offer->io_threads || offer->io_threads > IO_THREADS_MAX || !offer->connection)
		r.truncated = true;
	return r.truncated || wire_in_left(&r) ? -EPROTO : 0;
}
