#include "daemon/file/inode.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/file/unmade.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"

/* ---- the table ------------------------------------------------------------------------------- */

enum { SHARDS = 256, SHARD_BUCKETS = 256 };

struct inode_shard {
	pthread_mutex_t lock;
	struct list buckets[SHARD_BUCKETS];
};

int inode_table_init(struct inode_table *t, const struct inode_hooks *hooks)
{
	int r;

	*t = (struct inode_table){.hooks = hooks, .shards = calloc(SHARDS, sizeof(*t->shards))};
	if (!t->shards)
		return -ENOMEM;
	r = dir_names_sets_init(&t->names);
	if (r) {
		free(t->shards);
		return r;
	}
	for (unsigned s = 0; s < SHARDS; s++) {
		pthread_mutex_init(&t->shards[s].lock, NULL);
		for (unsigned b = 0; b < SHARD_BUCKETS; b++)
			list_init(&t->shards[s].buckets[b]);
	}
	return 0;
}

static void inode_delete(struct inode *inode)
{
	struct list *link;

	inode->fs->inodes->hooks->fini(inode);
	while ((link = list_pop(&inode->handles)))
		free(list_entry(link, struct handle, link));
	place_fini(&inode->place);
	extent_map_fini(&inode->map);
	dir_names_forget(&inode->names, &inode->fs->inodes->names);
	free(inode->commit.tail);
	unmade_delete(inode->fs->unmade, inode->unmade);
	record_inode_end(inode->fs->record, inode->note);
	pthread_mutex_destroy(&inode->lock);
	free(inode);
}

void inode_table_fini(struct inode_table *t)
{
	struct list *link;

	for (unsigned s = 0; t->shards && s < SHARDS; s++) {
		for (unsigned b = 0; b < SHARD_BUCKETS; b++)
			while ((link = list_pop(&t->shards[s].buckets[b])))
				inode_delete(list_entry(link, struct inode, hash));
		pthread_mutex_destroy(&t->shards[s].lock);
	}
	free(t->shards);
}

static struct inode_shard *shard_of(struct fs *fs, uint64_t ino)
{
	return &fs->inodes->shards[ino % SHARDS];
}

static struct list *inode_bucket_of(struct inode_shard *shard, uint64_t ino)
{
	return &shard->buckets[ino / SHARDS % SHARD_BUCKETS];
}

static struct inode *inode_find_locked(struct inode_shard *shard, uint64_t ino)
{
	list_for_each (pos, inode_bucket_of(shard, ino)) {
		struct inode *inode = list_entry(pos, struct inode, hash);

		if (inode->ino == ino)
			return inode_ref(inode);
	}
	return NULL;
}

/* The parts of the folders above lie behind it. */
enum { INODE_BYTES = (sizeof(struct inode) + 15) & ~(size_t)15 };

static struct inode *inode_new(struct fs *fs, uint64_t ino)
{
	const struct inode_hooks *hooks = fs->inodes->hooks;
	struct inode *inode = calloc(1, INODE_BYTES + hooks->parts_bytes);

	if (!inode)
		return NULL;
	inode->fs = fs;
	inode->ino = ino;
	inode->changed_at = __atomic_load_n(&fs->inodes->forgotten, __ATOMIC_RELAXED);
	inode->refs = 1;
	pthread_mutex_init(&inode->lock, NULL);
	extent_map_init(&inode->map);
	list_init(&inode->fetchers);
	list_init(&inode->handles);
	gate_init(&inode->gate);
	commit_init(&inode->commit);
	access_time_init(&inode->access);
	hooks->init(inode, (char *)inode + INODE_BYTES);
	inode->note = record_inode_new(fs->record, ino);
	return inode;
}

struct inode *inode_get(struct fs *fs, uint64_t ino)
{
	struct inode_shard *shard = shard_of(fs, ino);
	struct inode *inode;

	pthread_mutex_lock(&shard->lock);
	inode = inode_find_locked(shard, ino);
	if (!inode) {
		inode = inode_new(fs, ino);
		if (inode)
			list_add_tail(inode_bucket_of(shard, ino), &inode->hash);
	}
	pthread_mutex_unlock(&shard->lock);
	return inode;
}

struct inode *inode_find(struct fs *fs, uint64_t ino)
{
	struct inode_shard *shard = shard_of(fs, ino);
	struct inode *inode;

	pthread_mutex_lock(&shard->lock);
	inode = inode_find_locked(shard, ino);
	pthread_mutex_unlock(&shard->lock);
	return inode;
}

struct inode *inode_ref(struct inode *inode)
{
	__atomic_add_fetch(&inode->refs, 1, __ATOMIC_RELAXED);
	return inode;
}

bool inode_try_ref(struct inode *inode)
{
	uint64_t refs = __atomic_load_n(&inode->refs, __ATOMIC_RELAXED);

	while (refs)
		if (__atomic_compare_exchange_n(&inode->refs, &refs, refs + 1, false,
			    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	return false;
}

void inode_return_unused_locked(struct inode *inode)
{
	window_return(&inode->window, inode->fs->grants);
	quota_allowance_return_locked(inode->fs, &inode->share, &inode->attr);
}

void inode_put(struct inode *inode)
{
	struct inode_shard *shard = shard_of(inode->fs, inode->ino);
	uint64_t refs = __atomic_load_n(&inode->refs, __ATOMIC_RELAXED);
	bool last;

	while (refs > 1)
		if (__atomic_compare_exchange_n(&inode->refs, &refs, refs - 1, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return;
	pthread_mutex_lock(&shard->lock);
	last = !__atomic_sub_fetch(&inode->refs, 1, __ATOMIC_ACQ_REL);
	if (last) {
		if (inode->changed)
			__atomic_store_n(&inode->fs->inodes->forgotten, inode_next_epoch(inode->fs),
				__ATOMIC_RELAXED);
		inode->fs->inodes->hooks->forgotten(inode);
		list_del(&inode->hash);
	}
	pthread_mutex_unlock(&shard->lock);
	if (!last)
		return;
	inode_return_unused_locked(inode);
	inode_delete(inode);
}

void inode_each(struct fs *fs, void (*fn)(struct inode *inode, void *arg), void *arg)
{
	for (unsigned s = 0; s < SHARDS; s++) {
		struct inode_shard *shard = &fs->inodes->shards[s];

		pthread_mutex_lock(&shard->lock);
		for (unsigned b = 0; b < SHARD_BUCKETS; b++)
			list_for_each (pos, &shard->buckets[b])
				fn(list_entry(pos, struct inode, hash), arg);
		pthread_mutex_unlock(&shard->lock);
	}
}

static void return_unused(struct inode *inode, void *arg)
{
	const int64_t *since_ms = arg;

	pthread_mutex_lock(&inode->lock);
	if (inode->filled_ms < *since_ms)
		inode_return_unused_locked(inode);
	pthread_mutex_unlock(&inode->lock);
}

void inodes_return_unused(struct fs *fs, int64_t since_ms)
{
	inode_each(fs, return_unused, &since_ms);
}

/* ---- what the kernel knows ------------------------------------------------------------------- */

uint64_t inode_node(const struct inode *inode)
{
	return inode->ino;
}

struct inode *inode_of_node(struct fs *fs, uint64_t node)
{
	return node == ROOT_INO ? inode_ref(fs->root) : inode_find(fs, node);
}

void inode_remember(struct inode *inode)
{
	if (inode->note)
		atomic_fetch_add_explicit(&inode->note->nlookup, 1, memory_order_acq_rel);
	if (!__atomic_fetch_add(&inode->nlookup, 1, __ATOMIC_ACQ_REL))
		inode_ref(inode);
}

void inode_forget(struct inode *inode, uint64_t n)
{
	uint64_t had = __atomic_fetch_sub(&inode->nlookup, n, __ATOMIC_ACQ_REL);

	assert(had >= n);
	if (inode->note)
		atomic_fetch_sub_explicit(&inode->note->nlookup, n, memory_order_acq_rel);
	if (had == n && n) {
		inode->fs->inodes->hooks->kernel_forgets(inode);
		inode_put(inode);
	}
}

/* ---- attributes ------------------------------------------------------------------------------ */

uint64_t inode_epoch(struct fs *fs)
{
	return __atomic_load_n(&fs->inodes->epoch, __ATOMIC_RELAXED);
}

uint64_t inode_next_epoch(struct fs *fs)
{
	return __atomic_add_fetch(&fs->inodes->epoch, 1, __ATOMIC_RELAXED);
}

/* A mode and owners that were set here and are not committed are newer than any reply. */
static void keep_set_locked(const struct inode *inode, struct attr *attr)
{
	uint32_t set = commit_sets_locked(&inode->commit);

	if (set & SET_MODE)
		attr->mode = inode->attr.mode;
	if (set & SET_UID)
		attr->uid = inode->attr.uid;
	if (set & SET_GID)
		attr->gid = inode->attr.gid;
}

/* Only we change a file's size and pages, so a reply's may be older. */
static bool is_ours_locked(const struct inode *inode)
{
	return !inode->fs->sharing || inode->lease_type != LEASE_NONE;
}

/* The same for its mtime. Others may set it while we only read. */
static bool is_mtime_ours_locked(const struct inode *inode)
{
	return !inode->fs->sharing || inode->lease_type == LEASE_EXCLUSIVE;
}

/* Others write beside us: the later mtime counts. */
static bool is_mtime_later_locked(const struct inode *inode, const struct attr *attr)
{
	return inode->lease_type == LEASE_OVERWRITE && inode->commit.times_dirty &&
	       inode->attr.mtime > attr->mtime;
}

/* Only we change it, and tell the server later; but others may have changed it before we were
 * alone again. */
static bool is_atime_ours_locked(const struct inode *inode)
{
	const struct fs *fs = inode->fs;

	return inode->access.dirty || (inode->attr.ino && !fs->sharing &&
					      (inode->attr_valid || !atomic_load(&fs->has_shared)));
}

static struct attr merge_locked(const struct inode *inode, const struct attr *attr)
{
	const struct attr *own = &inode->attr;
	struct attr merged = *attr;

	if (is_atime_ours_locked(inode))
		merged.atime = own->atime;
	if (!inode->sized || !is_ours_locked(inode))
		return merged;
	merged.size = own->size;
	merged.npages = own->npages;
	if (is_mtime_ours_locked(inode) || is_mtime_later_locked(inode, attr))
		merged.mtime = own->mtime;
	if (own->ctime > attr->ctime)
		merged.ctime = own->ctime;
	keep_set_locked(inode, &merged);
	return merged;
}

void inode_set_type(struct inode *inode, uint32_t type)
{
	inode->type = type;
	if (inode->note)
		inode->note->type = type;
}

static void take_attr_locked(struct inode *inode, const struct attr *attr)
{
	inode->attr = merge_locked(inode, attr);
	inode->attr_valid = true;
	__atomic_store_n(&inode->has_caps, attr->flags & ATTR_CAPS, __ATOMIC_RELAXED);
	if (!inode->type)
		inode_set_type(inode, attr->mode & S_IFMT);
	if (!inode_is_regular(inode) || !is_ours_locked(inode) || inode->sized)
		return;
	inode->sized = true;
	if (!attr->npages)
		extent_map_learned_all(&inode->map);
}

/* Whether a killed daemon's record has told of it: its type, and nothing else is known. */
static bool is_bare_locked(const struct inode *inode)
{
	return inode->type && !inode->attr.ino;
}

/* A file that was made without a name was found by one, so it has got it. The LINK's answer is
 * still to come. */
static void find_name_locked(struct inode *inode, const struct attr *attr)
{
	if (!inode->nameless || !attr->nlink)
		return;
	inode->orphan = inode->nameless = false;
	inode_mark_locked(inode, 0, MARK_ORPHAN | MARK_NAMELESS);
}

/* Whether an answer that was asked for at that epoch, under the present lease, is as new as can be.
 */
static bool is_newest_locked(const struct inode *inode, uint64_t epoch)
{
	return inode->lease_type >= LEASE_SHARED && !inode->nchanging && inode->changed_at <= epoch;
}

static bool learn_shared_locked(struct inode *inode, const struct attr *attr, uint64_t epoch)
{
	bool newest = is_newest_locked(inode, epoch);

	if (epoch < inode->unleased)
		return false;
	if (newest || !inode->sure)
		take_attr_locked(inode, attr);
	inode->sure |= newest;
	return true;
}

/* It was here all the time, so no change of it was forgotten. Only a file's size has to be right:
 * an answer may be older than a change that is on its way. */
static bool learn_bare_locked(struct inode *inode, const struct attr *attr)
{
	if (!inode->nchanging || !inode_is_regular(inode))
		take_attr_locked(inode, attr);
	return true;
}

/* Also by names in it: of the attributes the server's answers may tell older ones. */
static bool is_changed_here_locked(const struct inode *inode, const struct attr *attr)
{
	return inode->nsets || inode->queued || atomic_load(&inode->ninside) ||
	       (S_ISDIR(attr->mode) && unmade_any_in(inode->fs->unmade, inode->ino));
}

static bool learn_locked(struct inode *inode, const struct attr *attr, uint64_t epoch)
{
	if (inode->fs->sharing)
		return learn_shared_locked(inode, attr, epoch);
	if (is_bare_locked(inode))
		return learn_bare_locked(inode, attr);
	if (inode->orphan)
		return false;
	if (inode->attr_valid)
		return true;
	if (!inode->sized && epoch != inode_epoch(inode->fs))
		return false;
	if (!inode->nchanging && !is_changed_here_locked(inode, attr))
		take_attr_locked(inode, attr);
	return true;
}

static void inode_show_locked(const struct inode *inode, struct attr *attr)
{
	attr->npages += inode->map.uncommitted;
	if (inode->growing)
		attr->size = min_u64(attr->size, inode->size_before);
}

/* The kernel gets the attributes that are known, or else those of the answer. */
static void see_locked(const struct inode *inode, const struct attr *attr, struct attr *seen)
{
	bool known = inode->attr.ino && (inode->attr_valid || is_changed_here_locked(inode, attr));

	*seen = known ? inode->attr : merge_locked(inode, attr);
	inode_show_locked(inode, seen);
}

bool inode_learn(struct inode *inode, const struct attr *attr, uint64_t epoch, struct attr *seen)
{
	bool ok;

	pthread_mutex_lock(&inode->lock);
	ok = learn_locked(inode, attr, epoch);
	if (seen)
		see_locked(inode, attr, seen);
	pthread_mutex_unlock(&inode->lock);
	return ok;
}

/* Extents that can't be put in are fetched when they are needed. */
static void learn_extents_locked(struct inode *inode, const struct rpc_entry_reply *entry)
{
	unsigned i;

	for (i = 0; i < entry->nhead; i++)
		if (extent_map_learn(&inode->map, &entry->head[i]))
			break;
	if (i == entry->nextents)
		extent_map_learned_all(&inode->map);
}

bool inode_learn_entry(
	struct inode *inode, const struct rpc_entry_reply *entry, uint64_t epoch, struct attr *seen)
{
	bool ok, first;

	pthread_mutex_lock(&inode->lock);
	first = !inode->sized;
	find_name_locked(inode, &entry->attr);
	ok = learn_locked(inode, &entry->attr, epoch);
	if (ok && first && inode->sized)
		learn_extents_locked(inode, entry);
	if (seen)
		see_locked(inode, &entry->attr, seen);
	pthread_mutex_unlock(&inode->lock);
	return ok;
}

void inode_share_locked(struct inode *inode, bool sure)
{
	inode->unleased = inode_next_epoch(inode->fs);
	inode->sure &= sure;
	inode->was_sure &= sure;
}

void inode_unsure_locked(struct inode *inode)
{
	inode->sure = inode->was_sure = false;
}

void inode_unlease_locked(struct inode *inode)
{
	extent_map_fini(&inode->map);
	extent_map_init(&inode->map);
	inode->sized = inode->attr_valid = false;
	inode_share_locked(inode, false);
	inode_return_unused_locked(inode);
}

void inode_lease_locked(struct inode *inode, const struct attr *attr,
	const struct rpc_entry_reply *extents, uint64_t epoch)
{
	inode_unlease_locked(inode);
	inode->fs->inodes->hooks->end_is_told(inode);
	take_attr_locked(inode, attr);
	if (extents && inode->sized)
		learn_extents_locked(inode, extents);
	inode_sure_locked(inode, epoch);
}

void inode_see_others_locked(struct inode *inode, const struct attr *attr)
{
	take_attr_locked(inode, attr);
}

void inode_sure_locked(struct inode *inode, uint64_t epoch)
{
	inode->sure = is_newest_locked(inode, epoch);
}

void inode_learn_new(struct inode *inode, const struct attr *attr, uint64_t epoch)
{
	pthread_mutex_lock(&inode->lock);
	if (!inode->attr_valid && !inode->nchanging) {
		take_attr_locked(inode, attr);
		/* If the first answer was lost, the directory may have been found, filled and
		 * forgotten. */
		if (S_ISDIR(attr->mode) && !inode->changed && epoch == inode_epoch(inode->fs))
			dir_names_begin(&inode->names);
	}
	pthread_mutex_unlock(&inode->lock);
}

static void note_change_locked(struct inode *inode)
{
	struct inode_table *t = inode->fs->inodes;

	if (inode->fs->sharing)
		inode->changed_at = inode_next_epoch(inode->fs);
	if (__atomic_load_n(&t->nmoving, __ATOMIC_SEQ_CST))
		inode->changed_move = __atomic_load_n(&t->moves, __ATOMIC_SEQ_CST);
}

void inode_changed_here_locked(struct inode *inode)
{
	inode->changed = true;
	note_change_locked(inode);
}

static void change_begin_locked(struct inode *inode, uint64_t epoch)
{
	inode->changed = true;
	if (inode->nchanging++) {
		inode->doubt = true;
	} else {
		inode->change_epoch = epoch;
		inode->was_sure = inode->sure;
	}
	inode->sure = false;
	inode->fs->inodes->hooks->change_begins(inode);
	note_change_locked(inode);
}

void inode_change_begin(struct inode *inode)
{
	pthread_mutex_lock(&inode->lock);
	change_begin_locked(inode, inode_epoch(inode->fs));
	pthread_mutex_unlock(&inode->lock);
}

static void change_end_locked(struct inode *inode, const struct attr *attr)
{
	/* A lease that came since may have brought newer attributes. */
	if (inode->change_epoch < inode->unleased)
		inode->doubt = true;
	if (attr && !inode->doubt)
		take_attr_locked(inode, attr);
	else if (attr && attr->flags & ATTR_CAPS)
		__atomic_store_n(&inode->has_caps, true, __ATOMIC_RELAXED);
	assert(inode->nchanging);
	note_change_locked(inode);
	if (--inode->nchanging)
		return;
	if (inode->doubt)
		inode->attr_valid = inode->doubt = false;
	else
		inode->sure = inode->was_sure;
	inode->was_sure = false;
}

void inode_change_end(struct inode *inode, const struct attr *attr)
{
	pthread_mutex_lock(&inode->lock);
	change_end_locked(inode, attr);
	pthread_mutex_unlock(&inode->lock);
}

static void change_names_end_locked(struct inode *inode, const struct attr *attr)
{
	struct attr named;

	if (attr && inode->attr_valid && inode_is_regular(inode)) {
		named = *attr;
		named.mode = inode->attr.mode;
		named.uid = inode->attr.uid;
		named.gid = inode->attr.gid;
		attr = &named;
	}
	change_end_locked(inode, attr);
}

void inode_change_names_end(struct inode *inode, const struct attr *attr)
{
	pthread_mutex_lock(&inode->lock);
	change_names_end_locked(inode, attr);
	pthread_mutex_unlock(&inode->lock);
}

/* The kernel lets a directory be changed while it is moved. */
uint64_t inode_move_begin(struct fs *fs)
{
	uint64_t number = __atomic_add_fetch(&fs->inodes->moves, 1, __ATOMIC_SEQ_CST);

	__atomic_fetch_add(&fs->inodes->nmoving, 1, __ATOMIC_SEQ_CST);
	return number;
}

void inode_move_end(struct fs *fs)
{
	__atomic_fetch_sub(&fs->inodes->nmoving, 1, __ATOMIC_SEQ_CST);
}

void inode_changed_since(
	struct inode *inode, const struct attr *attr, uint64_t epoch, uint64_t move)
{
	pthread_mutex_lock(&inode->lock);
	/* Another change that began and ended meanwhile may be the newer one. */
	inode->doubt |= is_changed_here_locked(inode, attr) ||
			(inode->fs->sharing && inode->changed_at > epoch) ||
			(move && inode->changed_move >= move);
	change_begin_locked(inode, epoch);
	change_names_end_locked(inode, attr);
	pthread_mutex_unlock(&inode->lock);
}

/* Pages were added, or taken away, but not both: if there are as many as before, they are the same.
 */
void inode_change_pages_end(struct inode *inode, const struct attr *attr, uint64_t fpage)
{
	inode_change_end(inode, attr);
	if (!attr)
		return;
	pthread_mutex_lock(&inode->lock);
	if (inode->attr.npages != attr->npages)
		extent_map_forget(&inode->map, fpage);
	inode->attr.size = attr->size;
	inode->attr.npages = attr->npages;
	inode->attr.mtime = attr->mtime;
	inode->attr.ctime = attr->ctime;
	pthread_mutex_unlock(&inode->lock);
}

bool inode_has_doubtful_gap(struct inode *inode, uint64_t offset)
{
	uint64_t size;
	bool doubtful;

	pthread_mutex_lock(&inode->lock);
	size = inode->attr.size;
	doubtful = offset > size && extent_map_is_doubtful(&inode->map, size >> PAGE_SHIFT,
					    div_round_up(offset, PAGE_BYTES));
	pthread_mutex_unlock(&inode->lock);
	return doubtful;
}

void inode_attr_locked(const struct inode *inode, struct attr *attr)
{
	*attr = inode->attr;
	inode_show_locked(inode, attr);
}

void inode_see(struct inode *inode, const struct attr *attr, struct attr *seen)
{
	pthread_mutex_lock(&inode->lock);
	if (inode->fs->sharing) {
		*seen = merge_locked(inode, attr);
		inode_show_locked(inode, seen);
	} else {
		see_locked(inode, attr, seen);
	}
	pthread_mutex_unlock(&inode->lock);
}

bool inode_attr(struct inode *inode, struct attr *attr)
{
	bool valid;

	pthread_mutex_lock(&inode->lock);
	valid = inode->attr_valid;
	inode_attr_locked(inode, attr);
	pthread_mutex_unlock(&inode->lock);
	return valid;
}
