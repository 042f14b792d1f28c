/* name_cache.h - names that this mount knows, where others write, too: which inode each is of, or
 * that there is none.
 *
 * A name is known under the lease of its directory that it was learned under, by that lease's
 * number: so nothing has to be looked for when the lease goes, since no other has the same. Names
 * that were learned without a lease only tell that somebody has looked at them.
 *
 * What an answer says of a name is only taken if none of our own changes of it was on its way since
 * the question was sent: another client may have seen the change by then, and have told of it.
 *
 * The table has a fixed size; what was not learned for the longest time makes room. Instead of
 * names it has 128 bits of a keyed hash, so that none is taken for another one.
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
	int64_t learned_ms; /* of any one clock */
};

/* -ENOMEM, -EIO: the system gives no random numbers. */
int name_cache_init(struct name_cache *c);
void name_cache_fini(struct name_cache *c);

struct name_key name_key_of(const struct name_cache *c, uint64_t dir, const char *name);

bool name_cache_find(struct name_cache *c, struct name_key key, struct known_name *out);

/* Before a question of the name is sent: for name_cache_learn(). 0: a change is on its way. */
uint64_t name_cache_ask(struct name_cache *c, struct name_key key);
/* The answer to it. */
void name_cache_learn(
	struct name_cache *c, struct name_key key, uint64_t asked, const struct known_name *name);

/* Around each request that may change the name, from before it is sent: it is not known meanwhile.
 * changed: what begin returned; name: what it is now, NULL: not known. */
uint64_t name_cache_change_begin(struct name_cache *c, struct name_key key);
void name_cache_change_end(
	struct name_cache *c, struct name_key key, uint64_t changed, const struct known_name *name);

#endif
