/* core.c - the parts of the metadata core that its other files share: room in the store, and
 * writing the records of the superblock and the exports.
 */
#include "server/meta/share.h"

#include <string.h>

#include "common/rpc/wire.h"
#include "server/store/store_format.h"

enum {
	SUPER_BYTES = STORE_MAGIC_BYTES + 4 + STORE_ID_BYTES + NAMEHASH_KEY_BYTES + 8 + 8,
	VOLUME_BYTES_MAX = 44 + EXPORT_NAME_MAX,
};

/* Store pages that growth must leave alone. */
static uint64_t kept(const struct meta *m, const struct volume *but)
{
	uint64_t granted = 0;

	for (unsigned i = 0; i < m->nvolumes; i++)
		granted += m->volumes[i] == but ? 0 : m->volumes[i]->space.now.granted;
	return share_reserves(m) + granted / PAGES_PER_STORE_PAGE;
}

int meta_room(struct meta *m, uint64_t npages, bool grows)
{
	return store_room(m->store, npages, grows ? kept(m, NULL) : 0);
}

bool meta_has_spare_room(const struct meta *m, uint64_t npages)
{
	return store_has_room(m->store, npages, kept(m, NULL));
}

bool meta_has_room_but_for_grants(const struct meta *m, const struct volume *v, uint64_t npages)
{
	return store_has_room(m->store, npages, kept(m, v));
}

int meta_save_super(struct meta *m)
{
	uint8_t buf[SUPER_BYTES];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put(&w, STORE_MAGIC, STORE_MAGIC_BYTES);
	wire_put_u32(
		&w, m->hash.bits == DIRENT_HASH_BITS_WIDE ? STORE_VERSION_WIDE : STORE_VERSION);
	wire_put(&w, m->store_id, STORE_ID_BYTES);
	wire_put(&w, m->hash.key, NAMEHASH_KEY_BYTES);
	wire_put_u64(&w, m->now.next_session);
	wire_put_u64(&w, m->now.lease_number);
	return store_put(m->store, STORE_META, STORE_KEY(0), buf, sizeof(buf));
}

int meta_save_volume(struct meta *m, const struct volume *v)
{
	uint8_t buf[VOLUME_BYTES_MAX];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u64(&w, v->space.npages);
	wire_put_u32(&w, v->space.nregions);
	wire_put_u64(&w, v->space.region_pages);
	wire_put_u64(&w, v->now.next_ino);
	wire_put_u64(&w, v->now.inodes);
	wire_put(&w, v->name, strlen(v->name));
	return store_put(m->store, STORE_META, STORE_KEY(v->id), buf, wire_out_len(&w));
}
