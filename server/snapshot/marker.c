/* marker.c - see marker.h. */
#include "server/snapshot/marker.h"

#include <errno.h>

#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "server/record/inode.h"
#include "server/record/inode_record.h"
#include "server/meta/meta_internal.h"
#include "server/space/protect.h"

const enum store_table marker_tables[] = {
	STORE_INODE,
	STORE_SYMLINK,
	STORE_EXTENT,
	STORE_DIRENT,
	STORE_XATTR,
	STORE_XVALUE,
};
const unsigned marker_ntables = ARRAY_SIZE(marker_tables);

enum { RECORD_BYTES_MAX = 32768, REAP_CUT_BYTES = 8 };

struct marker {
	struct store_view *view;
	const struct volume *v;
	struct marker_facts facts;
	uint16_t export_id;

	/* The walk. */
	unsigned table; /* index into marker_tables */
	struct store_key at;
	/* The inode that the last record belongs to. */
	uint64_t key;
	bool lives;
	uint64_t cut;
	uint8_t record[RECORD_BYTES_MAX];
};

/* ---- making ---------------------------------------------------------------------------------- */

static void take_facts(struct marker *mk, const struct meta *m, const struct volume *v)
{
	memcpy(mk->facts.name, v->name, sizeof(mk->facts.name));
	memcpy(mk->facts.store_id, m->store_id, sizeof(mk->facts.store_id));
	mk->facts.hash = m->hash;
	mk->facts.npages = v->space.npages;
	mk->facts.region_pages = v->space.region_pages;
	mk->facts.next_ino = v->now.next_ino;
}

static void begin_table(struct marker *mk, unsigned table)
{
	mk->table = table;
	mk->at = STORE_KEY((uint64_t)mk->export_id << INO_BITS);
}

int marker_new(struct meta *m, unsigned export_index, uint64_t aside_bytes, int wake_fd,
	struct marker **out)
{
	struct volume *v = m->volumes[export_index];
	struct marker *mk = calloc(1, sizeof(*mk));
	int err;

	if (!mk)
		return -ENOMEM;
	mk->export_id = v->id;
	mk->v = v;
	take_facts(mk, m, v);
	begin_table(mk, 0);
	err = protect_begin(v->protect, aside_bytes, wake_fd);
	if (!err)
		err = store_view_open(m->store, &mk->view);
	if (err) {
		marker_delete(mk);
		return err;
	}
	*out = mk;
	return 0;
}

void marker_delete(struct marker *mk)
{
	if (!mk)
		return;
	protect_end(mk->v->protect);
	store_view_close(mk->view);
	free(mk);
}

const struct marker_facts *marker_facts(const struct marker *mk)
{
	return &mk->facts;
}

struct protect *marker_pages(const struct marker *mk)
{
	return mk->v->protect;
}

bool marker_memory_is_lost(const struct marker *mk)
{
	return volume_is_lost(mk->v);
}

/* ---- the walk -------------------------------------------------------------------------------- */

static int get(struct marker *mk, enum store_table table, uint64_t hi, uint8_t *buf, size_t buflen,
	size_t *len)
{
	struct store_key found;
	int err = store_view_seek(mk->view, table, STORE_KEY(hi), &found, buf, buflen, len);

	return !err && found.hi != hi ? -ENOENT : err;
}

/* Finds out which part of the inode is visible. */
static int look_at_inode(struct marker *mk, uint64_t key)
{
	uint8_t buf[512];
	struct inode_glance glance;
	struct wire_in r;
	size_t len;
	int err = get(mk, STORE_INODE, key, buf, sizeof(buf), &len);

	if (err)
		return err == -ENOENT ? -EBADMSG : err;
	glance = inode_record_glance(&(struct store_val){buf, len});
	mk->key = key;
	mk->cut = NO_CUT;
	mk->lives = !(glance.flags & INODE_DEAD) && glance.nlink;
	if (!(glance.flags & INODE_REAPING))
		return 0;
	err = get(mk, STORE_REAP, key, buf, sizeof(buf), &len);
	wire_in_init(&r, buf, len);
	if (!err)
		mk->cut = wire_get_u64(&r);
	return err == -ENOENT ? -EBADMSG : err;
}

static int is_visible(
	struct marker *mk, enum store_table table, struct store_key key, bool *visible)
{
	int err = mk->key == key.hi ? 0 : look_at_inode(mk, key.hi);

	*visible = mk->lives && (table != STORE_EXTENT || key.lo < mk->cut);
	return err;
}

static struct store_key after(enum store_table table, struct store_key key)
{
	if (table < STORE_PAIRS || key.lo == UINT64_MAX)
		return STORE_KEY(key.hi + 1);
	return STORE_KEY(key.hi, key.lo + 1);
}

int marker_next(struct marker *mk, struct marker_record *rec)
{
	while (mk->table < marker_ntables) {
		enum store_table table = marker_tables[mk->table];
		struct store_key key;
		bool visible;
		int err = store_view_seek(
			mk->view, table, mk->at, &key, mk->record, sizeof(mk->record), &rec->len);

		if (err == -ENOENT || (!err && key.hi >> INO_BITS != mk->export_id)) {
			begin_table(mk, mk->table + 1);
			continue;
		}
		if (!err)
			err = is_visible(mk, table, key, &visible);
		if (err)
			return err;
		mk->at = after(table, key);
		if (!visible)
			continue;
		rec->table = table;
		rec->ino = ino_of_key(key.hi);
		rec->lo = key.lo;
		rec->data = mk->record;
		return 0;
	}
	return -ENOENT;
}

void marker_records_done(struct marker *mk)
{
	store_view_drop(mk->view);
}
