/* state.c - see state.h. Each put has its get beside it. */
#include "daemon/handover/state.h"

#include <errno.h>

#include "daemon/op/fs_options.h"

static const uint64_t magic = UINT64_C(0x746e756f6d6d7268);

/* ---- small ones ------------------------------------------------------------------------------ */

void state_put_flags(struct wire_out *w, const bool *const *flags, unsigned n)
{
	uint32_t bits = 0;

	for (unsigned i = 0; i < n; i++)
		bits |= (uint32_t)*flags[i] << i;
	wire_put_u32(w, bits);
}

void state_get_flags(struct wire_in *r, bool *const *flags, unsigned n)
{
	uint32_t bits = wire_get_u32(r);

	r->truncated |= bits >> n != 0;
	for (unsigned i = 0; i < n; i++)
		*flags[i] = bits >> i & 1;
}

static void put_attr(struct wire_out *w, const struct attr *a)
{
	wire_put_u64(w, a->ino);
	wire_put_u64(w, a->size);
	wire_put_u64(w, a->npages);
	wire_put_u64(w, (uint64_t)a->atime);
	wire_put_u64(w, (uint64_t)a->mtime);
	wire_put_u64(w, (uint64_t)a->ctime);
	wire_put_u64(w, (uint64_t)a->btime);
	wire_put_u32(w, a->mode);
	wire_put_u32(w, a->nlink);
	wire_put_u32(w, a->uid);
	wire_put_u32(w, a->gid);
	wire_put_u32(w, a->rdev);
	wire_put_u32(w, a->generation);
	wire_put_u32(w, a->flags);
}

static void get_attr(struct wire_in *r, struct attr *a)
{
	a->ino = wire_get_u64(r);
	a->size = wire_get_u64(r);
	a->npages = wire_get_u64(r);
	a->atime = (int64_t)wire_get_u64(r);
	a->mtime = (int64_t)wire_get_u64(r);
	a->ctime = (int64_t)wire_get_u64(r);
	a->btime = (int64_t)wire_get_u64(r);
	a->mode = wire_get_u32(r);
	a->nlink = wire_get_u32(r);
	a->uid = wire_get_u32(r);
	a->gid = wire_get_u32(r);
	a->rdev = wire_get_u32(r);
	a->generation = wire_get_u32(r);
	a->flags = wire_get_u32(r);
	r->truncated |= a->size > INT64_MAX || (a->flags & ~(uint32_t)ATTR_FLAGS_ALL);
}

/* ---- the session ----------------------------------------------------------------------------- */

static void put_counters(struct wire_out *w, const struct rpc_counters *c)
{
	wire_put_u64(w, c->reads);
	wire_put_u64(w, c->writes);
	wire_put_u64(w, c->read_bytes);
	wire_put_u64(w, c->write_bytes);
	wire_put_u64(w, c->rpcs);
	wire_put_u64(w, c->rpc_data_bytes);
}

static void get_counters(struct wire_in *r, struct rpc_counters *c)
{
	c->reads = wire_get_u64(r);
	c->writes = wire_get_u64(r);
	c->read_bytes = wire_get_u64(r);
	c->write_bytes = wire_get_u64(r);
	c->rpcs = wire_get_u64(r);
	c->rpc_data_bytes = wire_get_u64(r);
}

static void put_slots(struct wire_out *w, const struct slots_state *slots)
{
	wire_put_u32(w, slots->nslots);
	wire_put_u32(w, slots->nreserved);
	for (unsigned i = 0; i < SLOTS_MAX; i++)
		wire_put_u64(w, slots->seq[i]);
}

static void get_slots(struct wire_in *r, struct slots_state *slots)
{
	slots->nslots = wire_get_u32(r);
	slots->nreserved = wire_get_u32(r);
	r->truncated |= slots->nslots > SLOTS_MAX;
	for (unsigned i = 0; i < SLOTS_MAX; i++)
		slots->seq[i] = wire_get_u64(r);
}

static void put_session(struct wire_out *w, const struct session_state *s)
{
	const bool *const flags[] = {&s->exclusive, &s->sharing, &s->converts, &s->read_only};

	wire_put_u64(w, s->id);
	wire_put_u64(w, s->instance);
	wire_put_u64(w, s->incarnation);
	wire_put_u64(w, s->npages);
	wire_put_u32(w, s->lease_ms);
	wire_put(w, s->store_id, sizeof(s->store_id));
	wire_put(w, s->token, sizeof(s->token));
	wire_put(w, s->owner, sizeof(s->owner));
	wire_put_u32(w, s->owner_number);
	wire_put_u32(w, s->nchannels);
	state_put_flags(w, flags, 4);
	wire_put_u32(w, s->limits.max_sge_read);
	wire_put_u32(w, s->limits.max_sge_write);
	wire_put_u32(w, s->limits.max_work_bytes);
	put_counters(w, &s->counters);
	put_attr(w, &s->root);
	for (unsigned i = 0; i < IO_THREADS_MAX; i++)
		put_slots(w, &s->slots[i]);
}

static void get_session(struct wire_in *r, struct session_state *s)
{
	bool *const flags[] = {&s->exclusive, &s->sharing, &s->converts, &s->read_only};

	s->id = wire_get_u64(r);
	s->instance = wire_get_u64(r);
	s->incarnation = wire_get_u64(r);
	s->npages = wire_get_u64(r);
	s->lease_ms = wire_get_u32(r);
	wire_get(r, s->store_id, sizeof(s->store_id));
	wire_get(r, s->token, sizeof(s->token));
	wire_get(r, s->owner, sizeof(s->owner));
	s->owner_number = wire_get_u32(r);
	s->nchannels = wire_get_u32(r);
	state_get_flags(r, flags, 4);
	s->limits.max_sge_read = wire_get_u32(r);
	s->limits.max_sge_write = wire_get_u32(r);
	s->limits.max_work_bytes = wire_get_u32(r);
	get_counters(r, &s->counters);
	get_attr(r, &s->root);
	for (unsigned i = 0; i < IO_THREADS_MAX; i++)
		get_slots(r, &s->slots[i]);
}

enum {
	ATTR_BYTES = 7 * 8 + 7 * 4,
	SLOTS_BYTES = 8 + 8 * SLOTS_MAX,
	SESSION_BYTES = 4 * 8 + 4 + 3 * 16 + 2 * 4 + 4 + 3 * 4 + 6 * 8 + ATTR_BYTES +
			IO_THREADS_MAX * SLOTS_BYTES,
	MOUNT_BYTES = STATE_HEAD_BYTES + SESSION_BYTES + 4 + 2 + 4 + 2 * 4,
};

/* ---- the mount ------------------------------------------------------------------------------- */

size_t state_bytes(uint64_t ninodes, uint64_t nhandles)
{
	return MOUNT_BYTES + ninodes * STATE_INODE_BYTES + nhandles * STATE_HANDLE_BYTES;
}

void state_put(struct wire_out *w, const struct mount_state *state)
{
	const struct fs_features *f = &state->features;
	const bool *const features[] = {&f->direct_io_allow_mmap, &f->parallel_direct_writes,
		&f->handle_killpriv_v2, &f->evictions_seen, &f->writeback, &f->resend};
	const bool *const flags[] = {&state->nodiratime, &state->revived};

	wire_put_u64(w, magic);
	wire_put_u32(w, HANDOVER_VERSION);
	wire_put_u32(w, 0);
	wire_put_u64(w, state->ninodes);
	wire_put_u64(w, state->nhandles);
	wire_put_u64(w, state->sharing_bytes);
	put_session(w, &state->session);
	state_put_flags(w, features, 6);
	wire_put_u8(w, state->cache);
	wire_put_u8(w, state->access);
	state_put_flags(w, flags, 2);
	wire_put_u32(w, state->told.ttl_ms);
	wire_put_u32(w, state->told.left_ms);
}

/* Before the numbers are multiplied. */
static bool is_length(const struct mount_state *state, size_t left)
{
	return state->ninodes <= left / STATE_INODE_BYTES &&
	       state->nhandles <= left / STATE_HANDLE_BYTES && state->sharing_bytes <= left &&
	       left == state_bytes(state->ninodes, state->nhandles) - STATE_HEAD_BYTES +
			       state->sharing_bytes;
}

int state_get(struct wire_in *r, struct mount_state *state)
{
	struct fs_features *f = &state->features;
	bool *const features[] = {&f->direct_io_allow_mmap, &f->parallel_direct_writes,
		&f->handle_killpriv_v2, &f->evictions_seen, &f->writeback, &f->resend};
	bool *const flags[] = {&state->nodiratime, &state->revived};
	bool ours = wire_get_u64(r) == magic;
	uint32_t version = wire_get_u32(r);

	if (!ours || r->truncated)
		return -EPROTO;
	if (version != HANDOVER_VERSION)
		return -EPROTONOSUPPORT;
	r->truncated |= wire_get_u32(r) != 0;
	state->ninodes = wire_get_u64(r);
	state->nhandles = wire_get_u64(r);
	state->sharing_bytes = wire_get_u64(r);
	if (r->truncated || !is_length(state, wire_in_left(r)))
		return -EPROTO;
	get_session(r, &state->session);
	state_get_flags(r, features, 6);
	state->cache = wire_get_u8(r);
	state->access = wire_get_u8(r);
	state_get_flags(r, flags, 2);
	state->told.ttl_ms = wire_get_u32(r);
	state->told.left_ms = wire_get_u32(r);
	r->truncated |= state->cache > CACHE_EXCLUSIVE || state->access > ACCESS_NEVER;
	return r->truncated ? -EPROTO : 0;
}

/* ---- inodes and handles ---------------------------------------------------------------------- */

void state_put_inode(struct wire_out *w, const struct inode_state *i)
{
	const bool *const flags[] = {&i->attr_valid, &i->sized, &i->changed, &i->stale, &i->orphan,
		&i->nameless, &i->caps, &i->told, &i->returned};

	wire_put_u64(w, i->ino);
	wire_put_u64(w, i->nlookup);
	wire_put_u32(w, i->type);
	put_attr(w, &i->attr);
	state_put_flags(w, flags, 9);
	wire_put_u32(w, i->nopen);
	wire_put_u32(w, (uint32_t)i->error);
	wire_put_u32(w, (uint32_t)i->page_error);
	wire_put_u32(w, (uint32_t)i->names_error);
	wire_put_u64(w, i->nfailures);
	wire_put_u64(w, i->npage_failures);
	wire_put_u64(w, i->read_from);
	wire_put_u64(w, i->read_to);
	wire_put_u32(w, i->nhandles);
}

/* 0 or -errno. */
static int32_t get_error(struct wire_in *r)
{
	int32_t error = (int32_t)wire_get_u32(r);

	r->truncated |= error > 0 || error < -4095;
	return error;
}

int state_get_inode(struct wire_in *r, struct inode_state *i)
{
	bool *const flags[] = {&i->attr_valid, &i->sized, &i->changed, &i->stale, &i->orphan,
		&i->nameless, &i->caps, &i->told, &i->returned};

	i->ino = wire_get_u64(r);
	i->nlookup = wire_get_u64(r);
	i->type = wire_get_u32(r);
	get_attr(r, &i->attr);
	state_get_flags(r, flags, 9);
	i->nopen = wire_get_u32(r);
	i->error = get_error(r);
	i->page_error = get_error(r);
	i->names_error = get_error(r);
	i->nfailures = wire_get_u64(r);
	i->npage_failures = wire_get_u64(r);
	i->read_from = wire_get_u64(r);
	i->read_to = wire_get_u64(r);
	i->nhandles = wire_get_u32(r);
	return r->truncated ? -EPROTO : 0;
}

void state_put_handle(struct wire_out *w, const struct handle_state *h)
{
	const bool *const flags[] = {&h->writes, &h->appends, &h->flushed, &h->appended, &h->stores,
		&h->stale, &h->unlocked};

	wire_put_u64(w, h->number);
	wire_put_u64(w, h->told);
	wire_put_u64(w, h->told_pages);
	wire_put_u32(w, h->kind);
	state_put_flags(w, flags, 7);
}

int state_get_handle(struct wire_in *r, struct handle_state *h)
{
	bool *const flags[] = {&h->writes, &h->appends, &h->flushed, &h->appended, &h->stores,
		&h->stale, &h->unlocked};
	uint32_t kind;

	h->number = wire_get_u64(r);
	h->told = wire_get_u64(r);
	h->told_pages = wire_get_u64(r);
	kind = wire_get_u32(r);
	r->truncated |= kind > UINT8_MAX;
	h->kind = (uint8_t)kind;
	state_get_flags(r, flags, 7);
	return r->truncated ? -EPROTO : 0;
}
