/* inodes.c - see inodes.h. */
#include "daemon/handover/inodes.h"

#include <errno.h>

#include "daemon/barrier/session_renewal.h"
#include "daemon/file/handle.h"
#include "daemon/file/inherited.h"
#include "daemon/file/inode_return.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/kcache/stale_pages.h"
#include "daemon/op/fs_parts.h"

/* ---- telling --------------------------------------------------------------------------------- */

bool inodes_is_to_be_described(const struct inode *inode)
{
	return inode->ino == ROOT_INO || __atomic_load_n(&inode->nlookup, __ATOMIC_ACQUIRE);
}

static void describe_handle(const struct handle *handle, struct handle_state *state)
{
	*state = (struct handle_state){
		.number = handle_number(handle),
		.kind = (uint8_t)handle->kind,
		.writes = handle->writes,
		.appends = handle->appends,
		.flushed = handle->flushed,
		.appended = atomic_load(&handle->appended),
		.told = handle->told,
		.told_pages = handle->told_pages,
		.stores = handle->stores,
		.stale = session_renewal_handle_is_stale(handle->inode->fs, handle),
		.unlocked = atomic_load(&handle->unlocked),
	};
}

uint32_t inodes_describe_handles(struct inode *inode, struct handle_state *v, uint32_t room)
{
	uint32_t n = 0;

	pthread_mutex_lock(&inode->lock);
	list_for_each (pos, &inode->handles) {
		if (n < room)
			describe_handle(list_entry(pos, struct handle, link), &v[n]);
		n++;
	}
	pthread_mutex_unlock(&inode->lock);
	return n;
}

/* An inode of which a WRITE or COMMIT was refused keeps what was written until it is closed. */
static bool is_settled_locked(const struct inode *inode)
{
	return commit_is_clean_locked(inode) && !inode->commit.running && !inode->nchanging &&
	       !inode->nlinking && !inode->growing && !inode->fetching && !inode->leaving &&
	       !inode->map.uncommitted && !inode->window.rest.npages && !inode->share.npages &&
	       gate_idle(&inode->gate) && !__atomic_load_n(&inode->nleftovers, __ATOMIC_ACQUIRE);
}

int inodes_describe(struct inode *inode, struct inode_state *state)
{
	int r = 0;

	pthread_mutex_lock(&inode->lock);
	*state = (struct inode_state){
		.ino = inode->ino,
		.nlookup = __atomic_load_n(&inode->nlookup, __ATOMIC_ACQUIRE),
		.type = inode->type,
		.attr = inode->attr,
		.attr_valid = inode->attr_valid,
		.sized = inode->sized,
		.changed = inode->changed,
		.stale = inode->stale,
		.orphan = inode->orphan,
		.nameless = inode->nameless,
		.returned = inode->returned,
		.caps = inode_has_caps(inode),
		.nopen = inode->nopen,
		.error = inode->commit.error,
		.nfailures = inode->commit.nfailures,
		.told = inode->commit.told,
		.page_error = inode->commit.page_error,
		.npage_failures = inode->commit.npage_failures,
		.names_error = inode->names_error,
		.read_from = inode->drop->read_from,
		.read_to = inode->drop->read_to,
	};
	if (!is_settled_locked(inode))
		r = -EBUSY;
	pthread_mutex_unlock(&inode->lock);
	return r;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static bool state_makes_sense(const struct inode_state *state)
{
	bool root = state->ino == ROOT_INO;

	return state->ino && (root || state->nlookup) && state->type == (state->type & S_IFMT) &&
	       state->type && (!root || S_ISDIR(state->type)) &&
	       (S_ISREG(state->type) ? state->nhandles == state->nopen : !state->nhandles) &&
	       (state->orphan || (!state->nameless && !state->returned)) &&
	       (!state->returned || !state->nhandles) && state->read_from <= state->read_to;
}

static int adopt_handle_locked(struct inode *inode, const struct handle_state *state)
{
	struct fs *fs = inode->fs;
	struct handle *handle;

	if (state->kind > OPENED_CACHED || !state->number)
		return -EINVAL;
	handle = inherited_alloc(fs->inherited);
	if (!handle)
		return -ENOMEM;
	handle->inode = inode;
	handle->kind = (enum open_kind)state->kind;
	handle->writes = state->writes;
	handle->appends = state->appends;
	handle->flushed = state->flushed;
	handle->told = state->told;
	handle->told_pages = state->told_pages;
	handle->opened_by = state->opened_by;
	atomic_store(&handle->appended, state->appended);
	handle->stores = state->stores;
	session_renewal_handle_adopted(fs, handle, state->stale);
	atomic_store(&handle->unlocked, state->unlocked);
	inode->nwriters += handle->writes;
	inode->cached->nappenders += handle->appends;
	inode->cached->nstorers += handle->stores;
	inode->nopen_cached += handle->kind == OPENED_CACHED;
	list_add_tail(&inode->handles, &handle->link);
	inherited_set(fs->inherited, state->number, handle);
	handle->note = record_handle_new(fs->record);
	handle_record(handle, state->opened_by);
	return 0;
}

static void adopt_fields_locked(struct inode *inode, const struct inode_state *state)
{
	inode_set_type(inode, state->type);
	inode->attr = state->attr;
	inode->attr_valid = state->attr_valid;
	inode->sized = state->sized;
	inode->changed = state->changed;
	inode->stale = state->stale;
	inode->orphan = state->orphan;
	inode->nameless = state->nameless;
	inode->returned = state->returned;
	if (state->orphan)
		inode->commit.ended = inode_return_settle;
	inode_mark_locked(inode,
		(state->orphan ? MARK_ORPHAN : 0) | (state->nameless ? MARK_NAMELESS : 0), 0);
	inode->nopen = state->nopen;
	inode->commit.error = state->error;
	inode->commit.nfailures = state->nfailures;
	inode->commit.told = state->told;
	inode->commit.page_error = state->page_error;
	inode->commit.npage_failures = state->npage_failures;
	inode->names_error = state->names_error;
	inode->drop->read_from = state->read_from;
	inode->drop->read_to = state->read_to;
	commit_mark_locked(inode);
	__atomic_store_n(&inode->has_caps, state->caps, __ATOMIC_RELAXED);
	if (state->sized && S_ISREG(state->type) && !state->attr.npages)
		extent_map_learned_all(&inode->map);
}

/* The kernel's lookups are one reference. The root's is the mount's own. */
static void count_lookups(struct inode *inode, uint64_t n)
{
	if (inode->note)
		atomic_store(&inode->note->nlookup, n);
	__atomic_store_n(&inode->nlookup, n, __ATOMIC_RELEASE);
	if (n)
		inode_ref(inode);
	if (inode->ino == ROOT_INO)
		inode->fs->root = inode;
	else
		inode_put(inode);
}

int inodes_adopt_handle(struct inode *inode, const struct handle_state *state)
{
	int r;

	pthread_mutex_lock(&inode->lock);
	r = inode_is_regular(inode) ? adopt_handle_locked(inode, state) : -EINVAL;
	inode->nopen += !r;
	pthread_mutex_unlock(&inode->lock);
	return r;
}

int inodes_adopt(struct fs *fs, const struct inode_state *state, const struct handle_state *handles)
{
	struct inode *inode;
	int r = 0;

	if (!state_makes_sense(state))
		return -EINVAL;
	inode = inode_find(fs, state->ino);
	if (inode) {
		inode_put(inode);
		return -EINVAL;
	}
	inode = inode_get(fs, state->ino);
	if (!inode)
		return -ENOMEM;
	pthread_mutex_lock(&inode->lock);
	adopt_fields_locked(inode, state);
	for (uint32_t i = 0; !r && i < state->nhandles; i++)
		r = adopt_handle_locked(inode, &handles[i]);
	pthread_mutex_unlock(&inode->lock);
	count_lookups(inode, state->nlookup);
	return r;
}
