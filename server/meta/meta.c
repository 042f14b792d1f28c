/* meta.c - batches, and questions to the store outside operations. */
#include "server/meta/meta.h"

#include <errno.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "server/record/inode.h"
#include "server/record/lease.h"
#include "server/meta/meta_internal.h"
#include "server/meta/share.h"
#include "server/record/quota.h"

/* ---- batches --------------------------------------------------------------------------------- */

int meta_begin(struct meta *m)
{
	int err = store_begin(m->store);

	if (err)
		return err;
	m->saved = m->now;
	for (unsigned i = 0; i < m->nvolumes; i++) {
		struct volume *v = m->volumes[i];

		v->saved = v->now;
		space_begin(&v->space);
	}
	return 0;
}

static void roll_back(struct meta *m)
{
	m->now = m->saved;
	for (unsigned i = 0; i < m->nvolumes; i++) {
		struct volume *v = m->volumes[i];

		v->now = v->saved;
		holders_abort(&v->holders);
		space_abort(&v->space);
	}
	m->nused = 0;
	m->ntodo = 0;
	m->ending_session = 0;
	if (m->reclaiming && meta_has_reclaim(m))
		scrub_kick(m->scrub);
	m->reclaiming = false;
}

/* After a commit scrubbed pages are free, and pages that became dirty can be scrubbed. */
static void meta_settle(struct meta *m)
{
	m->ndone -= m->nused;
	memmove(m->done, m->done + m->nused, m->ndone * sizeof(m->done[0]));
	m->nused = 0;
	for (unsigned i = 0; i < m->ntodo; i++)
		scrub_post(m->scrub, &m->todo[i]);
	m->ntodo = 0;
	m->reclaiming = false;
	for (unsigned i = 0; i < m->nvolumes; i++) {
		holders_commit(&m->volumes[i]->holders);
		space_commit(&m->volumes[i]->space);
	}
	if (meta_has_reclaim(m))
		scrub_kick(m->scrub);
}

static int save_counts(struct meta *m)
{
	int err = store_failed(m->store);

	if (!err && m->now.lease_number != m->saved.lease_number)
		err = meta_save_super(m);

	for (unsigned i = 0; !err && i < m->nvolumes; i++) {
		const struct volume *v = m->volumes[i];

		if (v->now.next_ino != v->saved.next_ino || v->now.inodes != v->saved.inodes)
			err = meta_save_volume(m, v);
	}
	return err;
}

static int commit_store(struct meta *m)
{
	int err;

	CRASH_POINT("commit.before");
	err = store_commit(m->store);
	CRASH_POINT("commit.after");
	return err;
}

int meta_commit(struct meta *m)
{
	int err = save_counts(m);

	if (err)
		store_abort(m->store);
	else
		err = commit_store(m);
	if (err)
		roll_back(m);
	else
		meta_settle(m);
	return err;
}

void meta_abort(struct meta *m)
{
	if (!store_in_transaction(m->store))
		return;
	store_abort(m->store);
	roll_back(m);
}

/* ---- questions ------------------------------------------------------------------------------ */

struct meta_wait meta_wait(const struct meta *m)
{
	return m->wait;
}

bool meta_lacks_pages(const struct meta *m)
{
	return m->lacks_pages;
}

int meta_leases(struct meta *m, unsigned export_index, uint64_t ino,
	void (*fn)(const struct lease_record *record, void *arg), void *arg)
{
	struct volume *v = m->volumes[export_index];
	uint64_t key = inode_key(v, ino), from = 0;
	struct lease_record record;
	int err = store_begin_read(m->store);

	if (err)
		return err;
	while (!(err = lease_next(v, key, from, &record)) && record.key == key) {
		fn(&record, arg);
		from = record.session + 1;
	}
	store_abort(m->store);
	return err == -ENOENT ? 0 : err;
}

int meta_locks(struct meta *m, unsigned export_index, uint64_t ino,
	bool (*fn)(const struct lock *lock, void *arg), void *arg)
{
	struct volume *v = m->volumes[export_index];
	int err = store_begin_read(m->store);

	if (err)
		return err;
	err = lock_each(v, inode_key(v, ino), fn, arg);
	store_abort(m->store);
	return err;
}

void meta_lock_waits(const struct meta *m, unsigned export_index, uint64_t ino,
	void (*fn)(const struct lock_waiter *wait, void *arg), void *arg)
{
	lock_waits_each(&m->lock_waits, inode_key(m->volumes[export_index], ino), fn, arg);
}

void meta_locks_waited(const struct meta *m, unsigned export_index,
	void (*fn)(const struct lock_waited *waited, void *arg), void *arg)
{
	lock_waits_each_inode(&m->lock_waits, m->volumes[export_index], fn, arg);
}

struct space_grantee meta_granted(const struct meta *m, unsigned export_index, uint64_t session)
{
	return space_granted_to(&m->volumes[export_index]->space, session);
}

struct holder_counts meta_holder(const struct meta *m, unsigned export_index, uint64_t session)
{
	return holders_of(&m->volumes[export_index]->holders, session);
}

uint64_t meta_leases_ended(const struct meta *m)
{
	return m->now.leases_ended;
}

uint64_t meta_lock_holder(struct meta *m)
{
	uint64_t session = m->lock_holder;

	m->lock_holder = 0;
	return session;
}

bool meta_locks_due(const struct meta *m, int64_t *next_ms)
{
	return lock_waits_due(&m->lock_waits, next_ms);
}

int meta_locks_look(struct meta *m, void (*tell)(uint64_t session, void *arg), void *arg)
{
	int err = store_begin_read(m->store);

	if (err)
		return err;
	err = lock_waits_look(&m->lock_waits, tell, arg);
	store_abort(m->store);
	return err;
}

bool meta_locks_told(struct meta *m, uint64_t session,
	bool (*fn)(uint64_t ino, uint64_t number, void *arg), void *arg)
{
	return lock_waits_told(&m->lock_waits, session, fn, arg);
}

void meta_locks_untold(struct meta *m, uint64_t session)
{
	lock_waits_untold(&m->lock_waits, session);
}

int meta_locks_wanted(struct meta *m, uint64_t session, bool *wanted)
{
	int err = store_begin_read(m->store);

	*wanted = false;
	if (err)
		return err;
	err = lock_waits_for(&m->lock_waits, session, wanted);
	store_abort(m->store);
	return err;
}

unsigned meta_locks_waiting(const struct meta *m)
{
	return m->lock_waits.n;
}

int meta_root(struct meta *m, unsigned export_index, struct attr *attr)
{
	bool own = !store_in_transaction(m->store);
	struct stored_inode root;
	int err = own ? store_begin_read(m->store) : 0;

	if (err)
		return err;
	err = inode_load(m->volumes[export_index], ROOT_INO, &root);
	if (!err)
		*attr = root.attr;
	if (own)
		store_abort(m->store);
	return err;
}

uint64_t meta_version(const struct meta *m)
{
	return store_version(m->store);
}

void meta_usage(struct meta *m, unsigned export_index, struct meta_usage *usage)
{
	const struct volume *v = m->volumes[export_index];
	struct store_usage store;

	store_usage(m->store, &store);
	*usage = (struct meta_usage){
		.npages = v->space.npages,
		.free_pages = v->space.now.free,
		.granted_pages = v->space.now.granted,
		.dirty_pages = v->space.now.dirty + v->now.reap_pages,
		.inodes = v->now.inodes,
		.max_inodes = v->max_inodes,
		.store_bytes = store.npages * PAGE_BYTES,
		.store_used_bytes = store.used_pages * PAGE_BYTES,
		.share_bytes = v->share.pages * PAGE_BYTES,
		.share_used_bytes = share_used(v) * PAGE_BYTES,
		.share_left_bytes = share_left(m, v) * PAGE_BYTES,
		.transactions = store_version(m->store),
		.offset_bits = dirent_cookie_bits(&m->hash),
		.layouts = v->now.leases.layouts,
		.shared = v->now.leases.shared,
		.exclusive = v->now.leases.exclusive,
		.pins = v->now.leases.pins,
		.locks = v->now.leases.locks,
		.lock_waits = v->lock_waits,
	};
}

bool meta_has_quotas(const struct meta *m, unsigned export_index)
{
	return quota_on(m->volumes[export_index]);
}

int meta_quotas(struct meta *m, unsigned export_index,
	void (*fn)(const struct quota_entry *entry, void *arg), void *arg)
{
	int err = store_begin_read(m->store);

	if (err)
		return err;
	err = quota_each(m->volumes[export_index], fn, arg);
	store_abort(m->store);
	return err;
}
