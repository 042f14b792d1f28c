#include "server/admin/keys.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "server/admin/status_text.h"
#include "server/session/conn.h"

/* Channels that have proven the keys of these uses. NULL: no memory. */
static unsigned *count_channels(const struct server *s)
{
	unsigned *n = calloc(s->key_uses.n + 1, sizeof(*n));

	list_for_each (pos, &s->conns) {
		const struct conn *c = list_entry(pos, struct conn, all);
		const struct key_use *use =
			c->has_proof ? key_uses_find(&s->key_uses, &c->proof) : NULL;

		if (n && use)
			n[use - s->key_uses.v]++;
	}
	return n;
}

/* The first that has it. */
static const char *file_of(const struct access_table *table, const char *id)
{
	for (size_t i = 0; i < table->nfiles; i++)
		if (auth_key_file_find(&table->files[i].keys, id, strlen(id)))
			return table->files[i].path;
	return "";
}

static json_t *describe_use(
	const struct key_use *use, unsigned channels, const char *file, int64_t now)
{
	return json_pack("{s:s s:o s:i s:I s:I s:I}", "key", use->proof.id, "file",
		file ? status_text_string(file) : json_null(), "channels", (int)channels, "count",
		(json_int_t)use->count, "unused_ms",
		(json_int_t)(channels ? 0 : now - use->used_ms), "known_ms",
		(json_int_t)(now - use->known_ms));
}

json_t *keys_describe(struct server *s, bool files)
{
	autofree unsigned *channels = count_channels(s);
	struct access_table *table;
	json_t *list = channels ? json_array() : NULL;
	int64_t now = now_ms();

	if (!list)
		return NULL;
	table = access_current_get(&s->access);
	for (size_t i = 0; i < s->key_uses.n; i++) {
		const struct key_use *use = &s->key_uses.v[i];

		json_array_append_new(
			list, describe_use(use, channels[i],
				      files ? file_of(table, use->proof.id) : NULL, now));
	}
	access_table_put(table);
	return list;
}
