/* name_cache.h - names that this mount knows, where others write, too: which inode each is of, or
 * that there is none.
 *
 * A name is known under the lease of its directory that it was learned under, by that lease's
 * number. No other lease has the same, so nothing has to be looked for when the lease goes. Names
 * that were learned without a lease only tell that a caller has looked them up.
 *
 * An answer about a name is taken only if no change of it by this mount was on its way since the
 * question was sent: another client may have seen the change by then, and have told of it.
 *
 * The table has a fixed size; the least recently learned name makes room. Instead of names the
 * table has 128 bits of a keyed hash, so that none is taken for another one.
 *
 * THREADS    Any; buckets share locks that are leaves.
 */
#ifndef RMEMFS_DAEMON_KCACHE_NAME_CACHE_H
#define RMEMFS_DAEMON_KCACHE_NAME_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/namehash.h"

enum { NAME_BUCKETS = 32768, NAME_WAYS = 6, NAME_LOCKS = 256 };

struct name_bucket;
struct name_cache {
	uint8_t keys[2][NAMEHASH_KEY_BYTES];
	struct name_bucket *buckets; /* NULL: nothing is known */
	pthread_mutex_t locks[NAME_LOCKS];
};

struct name_key {
	uint64_t a, b;
};

struct known_name {
	uint64_t ino;       /* 0: there is none */
	uint64_t lease;     /* number of the directory's; 0: none */
	int64_t learned_ms; /* by any one clock */
};

/* -ENOMEM, -EIO: the system gives no random numbers. */
int name_cache_init(struct name_cache *c);
void name_cache_fini(struct name_cache *c);

struct name_key name_key_of(const struct name_cache *c, uint64_t dir, const char *name);

bool name_cache_find(struct name_cache *c, struct name_key key, struct known_name *out);

/* Before a question about the name is sent: for name_cache_learn(). 0: a change is on its way. */
uint64_t name_cache_ask(struct name_cache *c, struct name_key key);
/* The answer to it. */
void name_cache_learn(
	struct name_cache *c, struct name_key key, uint64_t asked, const struct known_name *name);

/* Around each request that may change the name, from before it is sent: the name is not known
 * meanwhile. changed: the value that begin returned; name: the inode that has it now, NULL: not
 * known. */
uint64_t name_cache_change_begin(struct name_cache *c, struct name_key key);
void name_cache_change_end(
	struct name_cache *c, struct name_key key, uint64_t changed, const struct known_name *name);

#endif
