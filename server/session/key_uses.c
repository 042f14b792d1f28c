#include "server/session/key_uses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_uses(const void *a, const void *b)
{
	const struct key_use *x = a, *y = b;

	return strcmp(x->proof.id, y->proof.id);
}

struct key_use *key_uses_find(const struct key_uses *uses, const struct access_proof *proof)
{
	struct key_use wanted = {.proof = *proof}, *found = NULL;

	if (uses->n)
		found = bsearch(&wanted, uses->v, uses->n, sizeof(wanted), compare_uses);
	return found && memcmp(found->proof.fingerprint, proof->fingerprint,
				sizeof(proof->fingerprint)) == 0
		       ? found
		       : NULL;
}

/* A key may be in several files; the table has it by id. */
int key_uses_renew(struct key_uses *uses, const struct access_table *table, int64_t now)
{
	struct key_uses renewed = {calloc(table->nkeys + 1, sizeof(*renewed.v)), 0};

	if (!renewed.v)
		return -ENOMEM;
	for (size_t i = 0; i < table->nkeys; i++) {
		const struct access_proof *proof = &table->keys[i].proof;
		const struct key_use *before = key_uses_find(uses, proof);

		if (i && strcmp(proof->id, table->keys[i - 1].proof.id) == 0)
			continue;
		renewed.v[renewed.n++] =
			before ? *before
			       : (struct key_use){.proof = *proof, .known_ms = now, .used_ms = now};
	}
	key_uses_fini(uses);
	*uses = renewed;
	return 0;
}

void key_uses_fini(struct key_uses *uses)
{
	free(uses->v);
	*uses = (struct key_uses){0};
}

void key_uses_begin(struct key_uses *uses, const struct access_proof *proof, int64_t now)
{
	struct key_use *use = key_uses_find(uses, proof);

	if (!use)
		return;
	use->count++;
	use->used_ms = now;
}

void key_uses_end(struct key_uses *uses, const struct access_proof *proof, int64_t now)
{
	struct key_use *use = key_uses_find(uses, proof);

	if (use)
		use->used_ms = now;
}
