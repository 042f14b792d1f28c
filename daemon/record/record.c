/* record.c - see record.h. Free entries are a stack, linked by their first words. This process alone
 * knows it: a successor makes its own. */
#include "daemon/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/nodump.h"
#include "common/base/util.h"
#include "common/rpc/wire_version.h"

static const uint64_t magic = UINT64_C(0x64726f6365726d72);

struct layout {
	struct record_head head;
	_Alignas(4096) struct record_inode inodes[RECORD_INODES];
	_Alignas(4096) struct record_handle handles[RECORD_HANDLES];
	_Alignas(4096) struct record_lock locks[RECORD_LOCKS];
	_Alignas(4096) struct record_thread threads[RECORD_THREADS];
};

/* The entries of one kind. The stack's top is its entry's index + 1, below a count of changes. */
struct pool {
	uint8_t *entries;
	size_t entry_bytes;
	uint32_t max;
	atomic_uint *nused;
	_Atomic uint64_t top;
	void *adopted;
};

struct record {
	int fd;
	struct layout *at;
	struct pool inodes, handles, locks;
};

/* ---- making ---------------------------------------------------------------------------------- */

static int record_map(int fd, struct record **out)
{
	struct record *r = calloc(1, sizeof(*r));
	void *at;

	if (!r)
		return -ENOMEM;
	at = mmap(NULL, sizeof(struct layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		free(r);
		return -errno;
	}
	nodump_exclude(at, sizeof(struct layout));
	r->fd = fd;
	r->at = at;
	r->inodes = (struct pool){.entries = (uint8_t *)r->at->inodes,
		.entry_bytes = sizeof(struct record_inode),
		.max = RECORD_INODES,
		.nused = &r->at->head.ninodes};
	r->handles = (struct pool){.entries = (uint8_t *)r->at->handles,
		.entry_bytes = sizeof(struct record_handle),
		.max = RECORD_HANDLES,
		.nused = &r->at->head.nhandles};
	r->locks = (struct pool){.entries = (uint8_t *)r->at->locks,
		.entry_bytes = sizeof(struct record_lock),
		.max = RECORD_LOCKS,
		.nused = &r->at->head.nlocks};
	*out = r;
	return 0;
}

int record_new(struct record **out)
{
	autoclose int fd = memfd_create("rmemfs-record", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct record_head *head;
	int err;

	if (fd < 0 || fchmod(fd, 0600) < 0 || ftruncate(fd, sizeof(struct layout)) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	err = record_map(fd, out);
	if (err)
		return err;
	steal_fd(&fd);
	head = record_head(*out);
	head->version = RECORD_VERSION;
	head->wire_version = wire_version();
	head->bytes = sizeof(struct layout);
	atomic_store(&head->alone, 1);
	head->magic = magic;
	return 0;
}

/* Only a sealed one can't become shorter than its mapping. */
static int check_file(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPROTO;
	return st.st_size == (off_t)sizeof(struct layout) ? 0 : -EPROTONOSUPPORT;
}

static int check_head(const struct record_head *head)
{
	if (head->magic != magic)
		return -EPROTO;
	if (head->version != RECORD_VERSION || head->bytes != sizeof(struct layout) ||
		head->wire_version != wire_version())
		return -EPROTONOSUPPORT;
	if (head->ninodes > RECORD_INODES || head->nhandles > RECORD_HANDLES ||
		head->nlocks > RECORD_LOCKS || head->state_bytes > sizeof(head->state) ||
		!head->io_threads || head->io_threads > RECORD_THREADS ||
		head->place[sizeof(head->place) - 1] || head->asked[sizeof(head->asked) - 1])
		return -EPROTO;
	return 0;
}

int record_open(int fd, struct record **out)
{
	autoclose int own = fd;
	int err = check_file(own);

	if (!err)
		err = record_map(own, out);
	if (err)
		return err;
	steal_fd(&own);
	err = check_head(record_head(*out));
	if (err)
		record_delete(steal_ptr(out));
	return err;
}

void record_delete(struct record *r)
{
	if (!r)
		return;
	munmap(r->at, sizeof(*r->at));
	close(r->fd);
	free(r);
}

int record_fd(const struct record *r)
{
	return r->fd;
}

struct record_head *record_head(const struct record *r)
{
	return &r->at->head;
}

struct record_thread *record_thread(const struct record *r, unsigned index)
{
	return &r->at->threads[index];
}

uint64_t record_nrequests(const struct record *r)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < RECORD_THREADS; i++)
		for (unsigned k = 0; k < r->at->threads[i].nslots && k < RECORD_SLOTS; k++)
			n += atomic_load(&r->at->threads[i].slots[k].seq);
	return n;
}

bool record_is_whole(const struct record *r)
{
	return !atomic_load(&r->at->head.nmissing);
}

bool record_can_go_on(const struct record_head *head)
{
	return atomic_load(&head->lives) == RECORD_LIVES && atomic_load(&head->alone);
}

void record_set_alone(struct record *r, bool alone)
{
	if (r)
		atomic_store(&r->at->head.alone, alone);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Its first word. */
static _Atomic uint64_t *word_of(const struct pool *pool, uint32_t index)
{
	return (_Atomic uint64_t *)(void *)(pool->entries + index * pool->entry_bytes);
}

/* Beside another thread that takes the same entry the word may be anything; then the top has
 * changed. */
static void *pool_pop(struct pool *pool)
{
	uint64_t top = atomic_load(&pool->top), next;

	do {
		if (!(uint32_t)top)
			return NULL;
		next = atomic_load(word_of(pool, (uint32_t)top - 1));
		next = ((top >> 32) + 1) << 32 | (uint32_t)next;
	} while (!atomic_compare_exchange_weak(&pool->top, &top, next));
	return word_of(pool, (uint32_t)top - 1);
}

static void pool_push(struct pool *pool, void *entry)
{
	uint32_t index = (uint32_t)((size_t)((uint8_t *)entry - pool->entries) / pool->entry_bytes);
	uint64_t top = atomic_load(&pool->top), next;

	do {
		atomic_store(word_of(pool, index), (uint32_t)top);
		next = ((top >> 32) + 1) << 32 | (index + 1);
	} while (!atomic_compare_exchange_weak(&pool->top, &top, next));
}

static void *pool_take(struct pool *pool)
{
	void *entry = pool->adopted ? pool->adopted : pool_pop(pool);
	unsigned n = atomic_load(pool->nused);

	while (!entry && n < pool->max)
		if (atomic_compare_exchange_weak(pool->nused, &n, n + 1))
			entry = word_of(pool, n);
	return entry;
}

struct record_inode *record_inode_new(struct record *r, uint64_t ino)
{
	struct record_inode *entry = r ? pool_take(&r->inodes) : NULL;

	if (r && !entry)
		atomic_fetch_add(&r->at->head.nmissing, 1);
	if (!entry || entry == r->inodes.adopted)
		return entry;
	atomic_store(&entry->marks, 0);
	entry->type = 0;
	atomic_store(&entry->ino, ino);
	return entry;
}

struct record_handle *record_handle_new(struct record *r)
{
	struct record_handle *entry = r ? pool_take(&r->handles) : NULL;

	if (r && !entry)
		atomic_fetch_add(&r->at->head.nmissing, 1);
	return entry;
}

struct record_lock *record_lock_new(struct record *r)
{
	struct record_lock *entry = r ? pool_take(&r->locks) : NULL;

	if (r && !entry)
		atomic_fetch_add(&r->at->head.nmissing, 1);
	return entry;
}

void record_lock_counts(struct record_lock *entry)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&entry->counts, 1, memory_order_release);
}

void record_lock_end(struct record *r, struct record_lock *entry)
{
	if (r && !entry)
		atomic_fetch_sub(&r->at->head.nmissing, 1);
	if (!r || !entry)
		return;
	atomic_store(&entry->counts, 0);
	pool_push(&r->locks, entry);
}

void record_inode_end(struct record *r, struct record_inode *entry)
{
	if (r && !entry)
		atomic_fetch_sub(&r->at->head.nmissing, 1);
	if (!r || !entry)
		return;
	atomic_store(&entry->nlookup, 0);
	pool_push(&r->inodes, entry);
}

void record_handle_end(struct record *r, struct record_handle *entry)
{
	if (r && !entry)
		atomic_fetch_sub(&r->at->head.nmissing, 1);
	if (!r || !entry)
		return;
	atomic_store(&entry->flags, 0);
	pool_push(&r->handles, entry);
}

/* ---- a successor ----------------------------------------------------------------------------- */

int record_each_inode(
	struct record *r, bool adopts, int (*fn)(struct record_inode *entry, void *arg), void *arg)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < atomic_load(r->inodes.nused); i++) {
		struct record_inode *entry = &r->at->inodes[i];

		if (!atomic_load(&entry->nlookup))
			continue;
		r->inodes.adopted = adopts ? entry : NULL;
		err = fn(entry, arg);
	}
	r->inodes.adopted = NULL;
	return err;
}

int record_each_handle(
	struct record *r, bool adopts, int (*fn)(struct record_handle *entry, void *arg), void *arg)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < atomic_load(r->handles.nused); i++) {
		struct record_handle *entry = &r->at->handles[i];

		if (!(atomic_load(&entry->flags) & HANDLE_COUNTS))
			continue;
		r->handles.adopted = adopts ? entry : NULL;
		err = fn(entry, arg);
	}
	r->handles.adopted = NULL;
	return err;
}

int record_each_lock(
	struct record *r, int (*fn)(const struct record_lock *entry, void *arg), void *arg)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < atomic_load(r->locks.nused); i++)
		if (atomic_load(&r->at->locks[i].counts))
			err = fn(&r->at->locks[i], arg);
	return err;
}

void record_forget_locks(struct record *r)
{
	for (uint32_t i = 0; i < atomic_load(r->locks.nused); i++)
		atomic_store(&r->at->locks[i].counts, 0);
	atomic_store(&r->locks.top, 0);
	atomic_store(r->locks.nused, 0);
}

void record_sweep(struct record *r)
{
	for (uint32_t i = 0; i < atomic_load(r->inodes.nused); i++)
		if (!atomic_load(&r->at->inodes[i].nlookup))
			pool_push(&r->inodes, &r->at->inodes[i]);
	for (uint32_t i = 0; i < atomic_load(r->handles.nused); i++)
		if (!(atomic_load(&r->at->handles[i].flags) & HANDLE_COUNTS))
			pool_push(&r->handles, &r->at->handles[i]);
}

/* ---- slots ----------------------------------------------------------------------------------- */

void record_slot_begin(struct record_slot *slot, uint64_t seq)
{
	atomic_store(&slot->len, 0);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&slot->seq, seq, memory_order_release);
}

void record_slot_message(struct record_slot *slot, uint64_t by, const void *message, size_t len)
{
	if (len > sizeof(slot->message))
		return;
	memcpy(slot->message, message, len);
	slot->by = by;
	atomic_store_explicit(&slot->len, (uint32_t)len, memory_order_release);
}
