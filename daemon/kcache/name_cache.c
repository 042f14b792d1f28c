#include "daemon/kcache/name_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/types.h"
#include "common/base/util.h"

struct name_entry {
	struct name_key key; /* both 0: free */
	struct known_name name;
};

struct name_bucket {
	uint64_t version;   /* counts begins and ends of changes, from 1 on */
	unsigned nchanging; /* changes on their way */
	struct name_entry entries[NAME_WAYS];
};

int name_cache_init(struct name_cache *c)
{
	*c = (struct name_cache){0};
	if (getrandom(c->keys, sizeof(c->keys), 0) != sizeof(c->keys))
		return -EIO;
	c->buckets = calloc(NAME_BUCKETS, sizeof(*c->buckets));
	if (!c->buckets)
		return -ENOMEM;
	for (unsigned i = 0; i < NAME_LOCKS; i++)
		pthread_mutex_init(&c->locks[i], NULL);
	return 0;
}

void name_cache_fini(struct name_cache *c)
{
	for (unsigned i = 0; c->buckets && i < NAME_LOCKS; i++)
		pthread_mutex_destroy(&c->locks[i]);
	free(steal_ptr(&c->buckets));
}

struct name_key name_key_of(const struct name_cache *c, uint64_t dir, const char *name)
{
	uint8_t text[sizeof(dir) + NAME_BYTES_MAX];
	size_t len = strnlen(name, NAME_BYTES_MAX);

	memcpy(text, &dir, sizeof(dir));
	memcpy(text + sizeof(dir), name, len);
	return (struct name_key){
		namehash(c->keys[0], text, sizeof(dir) + len),
		namehash(c->keys[1], text, sizeof(dir) + len) | 1,
	};
}

static struct name_bucket *name_cache_lock(struct name_cache *c, struct name_key key)
{
	uint64_t n = key.a % NAME_BUCKETS;

	pthread_mutex_lock(&c->locks[n % NAME_LOCKS]);
	return &c->buckets[n];
}

static void name_cache_unlock(struct name_cache *c, struct name_key key)
{
	pthread_mutex_unlock(&c->locks[key.a % NAME_BUCKETS % NAME_LOCKS]);
}

static struct name_entry *find(struct name_bucket *b, struct name_key key)
{
	for (unsigned i = 0; i < NAME_WAYS; i++)
		if (b->entries[i].key.a == key.a && b->entries[i].key.b == key.b)
			return &b->entries[i];
	return NULL;
}

static struct name_entry *oldest(struct name_bucket *b)
{
	struct name_entry *e = &b->entries[0];

	for (unsigned i = 1; i < NAME_WAYS; i++)
		if (b->entries[i].name.learned_ms < e->name.learned_ms)
			e = &b->entries[i];
	return e;
}

static void put(struct name_bucket *b, struct name_key key, const struct known_name *name)
{
	struct name_entry *e = find(b, key);

	if (!e)
		e = oldest(b);
	*e = (struct name_entry){key, *name};
}

bool name_cache_find(struct name_cache *c, struct name_key key, struct known_name *out)
{
	struct name_bucket *b = name_cache_lock(c, key);
	const struct name_entry *e = find(b, key);

	if (e)
		*out = e->name;
	name_cache_unlock(c, key);
	return e;
}

uint64_t name_cache_ask(struct name_cache *c, struct name_key key)
{
	struct name_bucket *b = name_cache_lock(c, key);
	uint64_t asked = b->nchanging ? 0 : b->version + 1;

	name_cache_unlock(c, key);
	return asked;
}

void name_cache_learn(
	struct name_cache *c, struct name_key key, uint64_t asked, const struct known_name *name)
{
	struct name_bucket *b = name_cache_lock(c, key);

	if (!b->nchanging && asked == b->version + 1)
		put(b, key, name);
	name_cache_unlock(c, key);
}

uint64_t name_cache_change_begin(struct name_cache *c, struct name_key key)
{
	struct name_bucket *b = name_cache_lock(c, key);
	struct name_entry *e = find(b, key);
	uint64_t changed;

	if (e)
		*e = (struct name_entry){0};
	b->nchanging++;
	changed = ++b->version;
	name_cache_unlock(c, key);
	return changed;
}

void name_cache_change_end(
	struct name_cache *c, struct name_key key, uint64_t changed, const struct known_name *name)
{
	struct name_bucket *b = name_cache_lock(c, key);
	bool alone = b->nchanging == 1 && changed == b->version;

	b->nchanging--;
	b->version++;
	if (alone && name)
		put(b, key, name);
	name_cache_unlock(c, key);
}
