#include "daemon/lease/local_answer.h"

#include <errno.h>

#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/kcache/kernel_attr.h"
#include "daemon/lease/keep.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_names.h"
#include "daemon/lease/lease.h"
#include "daemon/file/op_inode.h"

/* AGAIN_MS: a caller that asks twice within this time may ask again. ATIME_MS: access times may be
 * late by this, where other clients read. */
enum { AGAIN_MS = 5000, ATIME_MS = 60000 };

/* No lease has such a number. */
static const uint64_t ALONE = UINT64_C(1) << 63;

int local_answer_init(struct local_answers *looks)
{
	int err = kernel_names_init(&looks->shown);

	atomic_init(&looks->nblind, 0);
	atomic_init(&looks->alone, ALONE);
	return err ? err : name_cache_init(&looks->names);
}

void local_answer_fini(struct local_answers *looks)
{
	name_cache_fini(&looks->names);
	kernel_names_fini(&looks->shown);
}

void local_answer_forget_alone(struct local_answers *looks)
{
	atomic_fetch_add(&looks->alone, 1);
}

static struct local_answers *looks_of(const struct request *req)
{
	return req->thread->fs->looks;
}

static bool is_sharing(const struct request *req)
{
	return req->thread->fs->sharing;
}

/* It is alone, and notes names for changes that it makes by itself. */
static bool keeps_names(const struct request *req)
{
	return fs_keeps_names(req->thread->fs);
}

static bool may_tell(const struct request *req)
{
	return is_sharing(req) && op_may_tell(req);
}

static uint64_t lease_number(struct inode *inode)
{
	uint64_t number;

	pthread_mutex_lock(&inode->lock);
	number = lease_known_locked(inode);
	pthread_mutex_unlock(&inode->lock);
	return number;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* With LEASE_EXCLUSIVE all readers are here. */
static bool is_atime_late_locked(const struct request *req, const struct inode *inode)
{
	return inode->lease_type != LEASE_EXCLUSIVE &&
	       io_thread_now(req->thread) - inode->looked_ms > ATIME_MS;
}

static bool attr_here(struct request *req, struct inode *inode, struct attr *attr)
{
	bool known;

	pthread_mutex_lock(&inode->lock);
	known = lease_known_locked(inode) && inode->sure && !is_atime_late_locked(req, inode);
	if (known) {
		inode_attr_locked(inode, attr);
		op_of(req)->attr_ms = kernel_attr_attr_locked(inode, req);
	}
	pthread_mutex_unlock(&inode->lock);
	return known && !atomic_load(&looks_of(req)->nblind);
}

bool local_answer_at_here(struct request *req, struct inode *inode, struct attr *attr)
{
	return may_tell(req) && attr_here(req, inode, attr);
}

static void local_answer_begin(struct request *req, struct look_up *look)
{
	op_of(req)->attr_ms = 0;
	*look = (struct look_up){
		.epoch = inode_epoch(req->thread->fs),
		.notes = lease_notes(req->thread->fs),
	};
}

uint8_t local_answer_at_begin(struct request *req, struct inode *inode, struct look_up *look)
{
	int64_t now = io_thread_now(req->thread);
	bool again;

	local_answer_begin(req, look);
	if (!is_sharing(req))
		return 0;
	pthread_mutex_lock(&inode->lock);
	again = inode->looked_ms && now - inode->looked_ms < AGAIN_MS &&
		lease_lacks_locked(inode, now);
	inode->looked_ms = now;
	pthread_mutex_unlock(&inode->lock);
	look->look = again ? LOOK_LEASE : 0;
	return look->look;
}

bool local_answer_at_end(struct request *req, struct inode *inode, const struct look_up *look,
	const struct rpc_attr_reply *rep)
{
	const struct lease_look got = {.lease = &rep->lease,
		.attr = &rep->attr,
		.epoch = look->epoch,
		.notes = look->notes};

	return look->look && lease_looked(inode, req->thread, &got);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool name_here(
	struct request *req, struct inode *dir, struct name_key key, struct known_name *name)
{
	uint64_t number = lease_number(dir);

	return number && name_cache_find(&looks_of(req)->names, key, name) && name->lease == number;
}

/* The kernel's entries last for the session's lease time. */
static struct inode *up_here_alone(struct request *req, struct inode *dir, struct attr *attr)
{
	uint64_t ino = local_answer_name_of(req, dir, req->args.name);
	struct inode *child = ino ? inode_find(req->thread->fs, ino) : NULL;

	if (child && (!inode_attr(child, attr) || !attr->nlink ||
			     local_answer_name_of(req, dir, req->args.name) != ino)) {
		inode_put(child);
		return NULL;
	}
	return child;
}

/* The name is looked up twice: if it is still the inode's, it was when the attributes were read. */
struct inode *local_answer_up_here(
	struct request *req, struct inode *dir, struct attr *attr, bool *missing)
{
	struct name_key key;
	struct known_name name, again;
	struct inode *child;

	*missing = false;
	if (keeps_names(req))
		return op_may_tell(req) ? up_here_alone(req, dir, attr) : NULL;
	if (!may_tell(req))
		return NULL;
	key = name_key_of(&looks_of(req)->names, dir->ino, req->args.name);
	if (!name_here(req, dir, key, &name))
		return NULL;
	*missing = !name.ino;
	child = name.ino ? inode_find(req->thread->fs, name.ino) : NULL;
	if (child && (!attr_here(req, child, attr) || !name_here(req, dir, key, &again) ||
			     again.ino != name.ino)) {
		inode_put(child);
		return NULL;
	}
	return child;
}

uint8_t local_answer_up_begin(
	struct request *req, struct inode *dir, bool dots, struct look_up *look)
{
	struct name_cache *names = &looks_of(req)->names;
	int64_t now = io_thread_now(req->thread);
	struct known_name name;
	bool lacks;

	local_answer_begin(req, look);
	if (dots || (!is_sharing(req) && !keeps_names(req)))
		return 0;
	look->key = name_key_of(names, dir->ino, req->args.name);
	look->asked = name_cache_ask(names, look->key);
	if (!is_sharing(req))
		return 0;
	pthread_mutex_lock(&dir->lock);
	look->dir_lease = lease_known_locked(dir);
	lacks = lease_lacks_locked(dir, now);
	pthread_mutex_unlock(&dir->lock);
	if (!name_cache_find(names, look->key, &name) || now - name.learned_ms > AGAIN_MS)
		return 0;
	look->look = (uint8_t)(LOOK_LEASE | (lacks ? LOOK_LEASE_DIR : 0));
	return look->look;
}

/* The directory's lease, if it was the same when the answer was made; 0: there was none. */
static uint64_t lease_over(
	const struct look_up *look, struct inode *dir, const struct rpc_entry_reply *entry)
{
	uint64_t number = lease_number(dir);

	return number && (number == look->dir_lease ||
				 (entry && number == entry->parent_lease.number))
		       ? number
		       : 0;
}

bool local_answer_up_end(struct request *req, struct inode *dir, struct inode *child,
	const struct look_up *look, const struct rpc_entry_reply *entry)
{
	struct known_name name = {.learned_ms = io_thread_now(req->thread)};
	struct lease_look got = {.epoch = look->epoch, .notes = look->notes};
	bool leased = false;

	if (!look->key.b)
		return false;
	if (!is_sharing(req)) {
		name.ino = child ? child->ino : 0;
		name.lease = atomic_load(&looks_of(req)->alone);
		name_cache_learn(&looks_of(req)->names, look->key, look->asked, &name);
		return false;
	}
	if (entry && entry->parent.ino) {
		got.lease = &entry->parent_lease;
		got.attr = &entry->parent;
		lease_looked(dir, req->thread, &got);
	}
	if (child) {
		got.lease = &entry->lease;
		got.attr = &entry->attr;
		got.entry = entry;
		leased = look->look && lease_looked(child, req->thread, &got);
		pthread_mutex_lock(&child->lock);
		child->looked_ms = name.learned_ms;
		pthread_mutex_unlock(&child->lock);
		name.ino = child->ino;
	}
	name.lease = lease_over(look, dir, entry);
	name_cache_learn(&looks_of(req)->names, look->key, look->asked, &name);
	return leased;
}

void local_answer_up_shown(
	struct request *req, struct inode *dir, const struct inode *child, const struct attr *attr)
{
	struct local_answers *looks = looks_of(req);

	if (is_sharing(req))
		kernel_names_note(&looks->shown, req->pid,
			name_key_of(&looks->names, dir->ino, req->args.name),
			child ? child->ino : 0, child && S_ISDIR(attr->mode));
}

/* A change that began before the list was asked for, and has not ended, is noted at the name. */
void local_answer_listed(struct request *req, struct inode *dir, const struct names_list *list,
	const char *name, size_t len, uint64_t ino)
{
	struct name_cache *names = &looks_of(req)->names;
	struct known_name known = {.ino = ino,
		.lease = atomic_load(&looks_of(req)->alone),
		.learned_ms = io_thread_now(req->thread)};
	char text[NAME_BYTES_MAX + 1];
	struct name_key key;
	uint64_t asked;

	if (!keeps_names(req) || len > NAME_BYTES_MAX)
		return;
	memcpy(text, name, len);
	text[len] = '\0';
	key = name_key_of(names, dir->ino, text);
	asked = name_cache_ask(names, key);
	if (inode_names_list_is_new(dir, list))
		name_cache_learn(names, key, asked, &known);
}

/* ---- names of a mount that is alone and changes some by itself ------------------------------- */

static bool find_alone(
	struct request *req, struct inode *dir, const char *name, struct known_name *known)
{
	struct local_answers *looks = looks_of(req);

	return name_cache_find(&looks->names, name_key_of(&looks->names, dir->ino, name), known) &&
	       known->lease == atomic_load(&looks->alone);
}

uint64_t local_answer_name_of(struct request *req, struct inode *dir, const char *name)
{
	struct known_name known;

	return find_alone(req, dir, name, &known) ? known.ino : 0;
}

bool local_answer_lacks_name(struct request *req, struct inode *dir, const char *name)
{
	struct known_name known;

	return fs_knows_names(req->thread->fs) && find_alone(req, dir, name, &known) && !known.ino;
}

static void set_name(struct inode *dir, const char *name, const struct known_name *known)
{
	struct name_cache *names = &dir->fs->looks->names;
	struct name_key key = name_key_of(names, dir->ino, name);

	inode_names_count(dir);
	name_cache_change_end(names, key, name_cache_change_begin(names, key), known);
}

void local_answer_name_is(struct request *req, struct inode *dir, const char *name, uint64_t ino)
{
	const struct known_name known = {.ino = ino,
		.lease = atomic_load(&looks_of(req)->alone),
		.learned_ms = io_thread_now(req->thread)};

	set_name(dir, name, &known);
}

void local_answer_forget_name(struct inode *dir, const char *name)
{
	set_name(dir, name, NULL);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* An inode that loses its name changes, too. If that inode is not known here, no attributes are
 * answered locally until the change has ended. */
static void find_child(struct request *req, struct inode *dir, struct look_change *change)
{
	struct known_name name;
	bool known = name_here(req, dir, change->key, &name);

	if (known && name.ino)
		change->child = inode_find(req->thread->fs, name.ino);
	change->blind = !known || (name.ino && !change->child);
	if (change->child)
		inode_change_begin(change->child);
	if (change->blind)
		atomic_fetch_add(&looks_of(req)->nblind, 1);
}

/* The kernel has checked the file's owner. A caller that is not known does not count as root. */
static bool may_take_own_only(const struct request *req, struct inode *dir)
{
	struct attr attr;

	inode_attr(dir, &attr);
	return attr.mode & S_ISVTX && req->uid && req->uid != attr.uid;
}

static void expect(
	struct request *req, struct inode *dir, enum look_taking taking, struct look_change *change)
{
	struct shown_name shown;

	if (!kernel_names_find(&looks_of(req)->shown, req->pid, change->key, &shown))
		return;
	change->again = shown.refused;
	change->expected.exactly = may_take_own_only(req, dir);
	if (change->expected.exactly || (taking == LOOK_ENDS && shown.directory))
		change->expected.ino = shown.ino ? shown.ino : NAME_OF_NONE;
}

void local_answer_change_begin(struct request *req, struct inode *dir, const char *name,
	enum look_taking taking, struct look_change *change)
{
	struct name_cache *names = &looks_of(req)->names;

	*change = (struct look_change){.epoch = inode_epoch(req->thread->fs)};
	if (!is_sharing(req) && !keeps_names(req))
		return;
	change->key = name_key_of(names, dir->ino, name);
	if (!is_sharing(req)) {
		change->dir = dir;
		inode_names_count(dir);
	} else {
		change->dir_lease = lease_number(dir);
	}
	if (taking && is_sharing(req)) {
		expect(req, dir, taking, change);
		find_child(req, dir, change);
	}
	change->changed = name_cache_change_begin(names, change->key);
}

int local_answer_change_status(struct request *req, const struct look_change *change, int status)
{
	bool refused = status == -ESTALE && change->expected.ino != NAME_OF_ANY;
	bool comes_again = refused && !change->again;

	/* The end of the session is no refusal, and an operation that begins anew is the same
	 * change. */
	if (op_ends_with_session(req, status))
		return status;
	if (comes_again != change->again)
		kernel_names_set_refused(&looks_of(req)->shown, req->pid, change->key, comes_again);
	return refused && !comes_again ? -EBUSY : status;
}

static void local_answer_end(
	struct request *req, struct look_change *change, const struct known_name *name)
{
	if (!change->changed)
		return;
	if (change->blind)
		atomic_fetch_sub(&looks_of(req)->nblind, 1);
	if (change->dir)
		inode_names_count(change->dir);
	name_cache_change_end(&looks_of(req)->names, change->key, change->changed, name);
	change->changed = 0;
}

void local_answer_change_end(
	struct request *req, struct inode *dir, struct look_change *change, uint64_t ino)
{
	struct known_name name = {.ino = ino, .learned_ms = io_thread_now(req->thread)};

	if (change->dir)
		name.lease = atomic_load(&looks_of(req)->alone);
	else if (change->changed && change->dir_lease == lease_number(dir))
		name.lease = change->dir_lease;
	local_answer_end(req, change, &name);
}

void local_answer_change_end_unknown(struct request *req, struct look_change *change)
{
	local_answer_end(req, change, NULL);
}

void local_answer_change_child(
	struct request *req, struct look_change *change, const struct attr *attr)
{
	struct inode *child = steal_ptr(&change->child);

	if (child) {
		inode_change_names_end(child, attr && attr->ino == child->ino ? attr : NULL);
		inode_put(child);
	}
}
