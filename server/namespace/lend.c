/* lend.c - inode numbers for files and directories that a client makes by itself. */
#include "server/meta/lent_numbers.h"
#include "server/meta/share.h"
#include "server/namespace/ns.h"

/* Lent numbers may need as much, at the time when they are lent. */
enum { ROOM_PAGES_LENT = ROOM_PAGES + 2 * NUMBERS_LENT };

bool ns_may_lend(struct ns_call *c, uint8_t numbers)
{
	const struct volume *v = c->v;

	return numbers != NUMBERS_NONE && !c->ctx->shared && !c->ctx->read_only &&
	       c->ctx->squash.kind == SQUASH_NONE && !quota_on(v) && !volume_is_lost(v) &&
	       v->now.inodes + LENT_WINDOWS * NUMBERS_LENT < v->max_inodes &&
	       !share_room(v, ROOM_PAGES_LENT, true) && meta_has_spare_room(c->m, ROOM_PAGES_LENT);
}

int ns_lend(struct ns_call *c, uint8_t numbers, struct rpc_lent *lent)
{
	struct session_record lender;
	int err = lent_numbers_load(c->m, c->ctx->session, &lender);

	if (!err && lent_numbers_lend(&lender, numbers == NUMBERS_ANEW, c->v, lent))
		err = session_codec_put(c->m, &lender);
	return err;
}
