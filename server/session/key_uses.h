/* key_uses.h - when each key of the table in force was used last, so that those that nobody needs
 * any more are found.
 *
 * A use is a channel that has proven the key, for a mount or a question, until it ends. A key that
 * is replaced by another of the same id begins anew. All of it is of this run of the server.
 *
 * OWNERSHIP  Zeros are an empty list. Texts are copied, and no secrets.
 * THREADS    The metadata thread.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_SERVER_SESSION_KEY_USES_H
#define RMEMFS_SERVER_SESSION_KEY_USES_H

#include <stddef.h>
#include <stdint.h>

#include "server/access/access_table.h"

struct key_use {
	struct access_proof proof;
	int64_t known_ms; /* since when the server has it */
	int64_t used_ms;  /* when it was proven last, or the last such channel ended */
	uint64_t count;   /* how often it was proven; 0: used_ms is known_ms */
};

struct key_uses {
	struct key_use *v; /* by id, each once */
	size_t n;
};

/* The table is about to come in force. Keys that it has no more are forgotten. -ENOMEM: all is as
 * before. */
int key_uses_renew(struct key_uses *uses, const struct access_table *table, int64_t now);
void key_uses_fini(struct key_uses *uses);

/* A channel has proven the key, or one that has it ends. Keys that are not known any more are
 * ignored. */
void key_uses_begin(struct key_uses *uses, const struct access_proof *proof, int64_t now);
void key_uses_end(struct key_uses *uses, const struct access_proof *proof, int64_t now);

/* NULL: it is not known. */
struct key_use *key_uses_find(const struct key_uses *uses, const struct access_proof *proof);

#endif
