#include "server/meta/lent_numbers.h"

int lent_numbers_load(struct meta *m, uint64_t session, struct session_record *rec)
{
	struct store_val val;
	int err = store_get(m->store, STORE_SESSION, STORE_KEY(session), &val);

	return err ? err : session_codec_get(m, STORE_KEY(session), &val, rec);
}

/* The window that has it, and its bit there; -1: none. */
static int window_of(const struct session_record *rec, uint64_t ino, uint64_t *bit)
{
	for (int i = 0; i < LENT_WINDOWS; i++) {
		const struct lent_window *w = &rec->session.lent[i];

		if (ino < w->first || ino - w->first >= NUMBERS_LENT)
			continue;
		*bit = (uint64_t)1 << (ino - w->first);
		if (w->left & *bit)
			return i;
	}
	return -1;
}

bool lent_numbers_has(const struct session_record *rec, uint64_t ino)
{
	uint64_t bit;

	return window_of(rec, ino, &bit) >= 0;
}

void lent_numbers_take(struct session_record *rec, uint64_t ino)
{
	uint64_t bit;
	int i = window_of(rec, ino, &bit);

	if (i >= 0)
		rec->session.lent[i].left &= ~bit;
}

static struct lent_window *used_up(struct session_record *rec)
{
	for (unsigned i = 0; i < LENT_WINDOWS; i++)
		if (!rec->session.lent[i].left)
			return &rec->session.lent[i];
	return NULL;
}

bool lent_numbers_lend(
	struct session_record *rec, bool anew, struct volume *v, struct rpc_lent *lent)
{
	struct lent_window *w;

	for (unsigned i = 0; anew && i < LENT_WINDOWS; i++)
		rec->session.lent[i] = (struct lent_window){0};
	w = used_up(rec);
	if (!w)
		return false;
	*w = (struct lent_window){.first = v->now.next_ino, .left = UINT64_MAX};
	v->now.next_ino += NUMBERS_LENT;
	*lent = (struct rpc_lent){.first = w->first, .n = NUMBERS_LENT};
	return true;
}
