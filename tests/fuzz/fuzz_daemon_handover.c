/* fuzz_daemon_handover.c - any bytes as what one daemon of a mount tells the next: as an offer, and as
 * changes of a right description. Bytes that decode are encoded again, and are the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/handover/offer.h"
#include "daemon/handover/state.h"
#include "common/base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { INODES = 3, HANDLES_EACH = 2, HANDLES = INODES * HANDLES_EACH, CHANGE_BYTES = 4 };

static uint8_t right[1 << 17], changed[1 << 17], again[1 << 17];

static void demand(bool truth)
{
	if (!truth)
		abort();
}

/* ---- the offer ------------------------------------------------------------------------------- */

static bool lies_in(const struct offer *offer, const char *text)
{
	return text >= offer->text && text < offer->text + sizeof(offer->text) &&
	       memchr(text, '\0', (size_t)(offer->text + sizeof(offer->text) - text));
}

static void try_offer(const uint8_t *data, size_t len)
{
	static struct offer offer;
	size_t out;

	if (offer_get(data, len, &offer))
		return;
	demand(offer.argc > 0 && offer.argc <= OFFER_ARGS_MAX && !offer.argv[offer.argc]);
	for (unsigned i = 0; i < offer.argc; i++)
		demand(lies_in(&offer, offer.argv[i]));
	demand(lies_in(&offer, offer.mountpoint) && lies_in(&offer, offer.notify));
	demand(offer_put(&offer, again, sizeof(again), &out) == 0 && out == len);
}

/* ---- the description ------------------------------------------------------------------------- */

static size_t describe(void)
{
	static const struct mount_state state = {.ninodes = INODES, .nhandles = HANDLES};
	struct wire_out w;

	wire_out_init(&w, right, sizeof(right));
	state_put(&w, &state);
	for (uint64_t i = 1; i <= INODES; i++) {
		state_put_inode(&w, &(struct inode_state){.ino = i, .nhandles = HANDLES_EACH});
		for (unsigned h = 0; h < HANDLES_EACH; h++)
			state_put_handle(&w, &(struct handle_state){.number = i * 16 + h});
	}
	demand(!w.overflow && wire_out_len(&w) == state_bytes(INODES, HANDLES));
	return wire_out_len(&w);
}

/* The inodes and handles behind a head that is right. */
static bool copy_rest(struct wire_in *r, struct wire_out *w, const struct mount_state *state)
{
	struct inode_state inode;
	struct handle_state handle;

	for (uint64_t i = 0; i < state->ninodes; i++) {
		if (state_get_inode(r, &inode))
			return false;
		state_put_inode(w, &inode);
		for (unsigned h = 0; h < HANDLES_EACH; h++) {
			if (state_get_handle(r, &handle))
				return false;
			state_put_handle(w, &handle);
		}
	}
	return true;
}

static void try_state(const uint8_t *data, size_t len)
{
	static struct mount_state state;
	struct wire_out w;
	struct wire_in r;

	wire_in_init(&r, data, len);
	wire_out_init(&w, again, sizeof(again));
	if (state_get(&r, &state))
		return;
	demand(len == state_bytes(state.ninodes, state.nhandles));
	state_put(&w, &state);
	/* With other numbers of the same length the places differ. */
	if (state.ninodes == INODES && copy_rest(&r, &w, &state))
		demand(!w.overflow && wire_out_len(&w) == len && memcmp(again, data, len) == 0);
}

/* Each change: a place of two bytes, the least significant one first, a byte for it, and one that
 * may cut the description. */
static void try_changes(const uint8_t *data, size_t len)
{
	size_t bytes = describe(), cut = bytes;

	memcpy(changed, right, bytes);
	for (; len >= CHANGE_BYTES; data += CHANGE_BYTES, len -= CHANGE_BYTES) {
		size_t at = (data[0] | (size_t)data[1] << 8) % bytes;

		changed[at] = data[2];
		if (data[3] == 0xff)
			cut = at;
	}
	try_state(changed, cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (!len)
		return 0;
	if (*data & 1)
		try_offer(data + 1, len - 1);
	else
		try_changes(data + 1, len - 1);
	return 0;
}
