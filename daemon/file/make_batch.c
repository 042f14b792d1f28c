#include "daemon/file/make_batch.h"

#include <errno.h>

#include "common/base/util.h"
#include "daemon/op/fs_parts.h"

/* The room that a file may need. */
enum {
	ELEMENT_BYTES_MAX =
		RPC_MAKING_BYTES + NAME_BYTES_MAX + MAKE_BATCH_EXTENTS * RPC_EXTENT_BYTES
};

static_assert((MAKES_MAX - 1) * (RPC_MAKING_BYTES + NAME_BYTES_MAX + RPC_EXTENT_BYTES) +
			      ELEMENT_BYTES_MAX <=
		      MAKE_BATCH_TAIL_BYTES,
	"small files fill a message");
static_assert(ALONG_BYTES_MAX + ELEMENT_BYTES_MAX <= MAKE_BATCH_TAIL_BYTES,
	"a file has room behind names");

static void run_behind(struct thread_call *call);
static void run_kick(struct thread_call *call);

void make_batch_init(struct make_batch *b, struct io_thread *thread, const struct make_hooks *hooks)
{
	b->thread = thread;
	b->hooks = hooks;
	b->nholds = 0;
	b->is_behind = b->kicked = false;
	b->behind = (struct name_behind){.call = {.run = run_behind}};
	b->kick = (struct thread_call){.run = run_kick};
	list_init(&b->behind.link);
	list_init(&b->behind.call.link);
	list_init(&b->kick.link);
	list_init(&b->waiting);
	for (unsigned i = 0; i < MAKE_BATCH_MESSAGES; i++) {
		b->messages[i].batch = b;
		b->messages[i].n = 0;
	}
}

static struct make_message *idle_message(struct make_batch *b)
{
	for (unsigned i = 0; i < MAKE_BATCH_MESSAGES; i++)
		if (!b->messages[i].n)
			return &b->messages[i];
	return NULL;
}

static bool any_is_idle(const struct make_batch *b)
{
	for (unsigned i = 0; i < MAKE_BATCH_MESSAGES; i++)
		if (!b->messages[i].n)
			return true;
	return false;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void make_answered(struct rpc_call *call, const struct rpc_reply *rep);

static void put_one(struct make_message *m, struct wire_out *w, struct make_entry *entry,
	const struct rpc_making *making)
{
	rpc_put_making(w, making);
	m->entries[m->n++] = entry;
}

static void send_message(
	struct make_batch *b, struct make_message *m, const struct wire_out *w, size_t names_bytes)
{
	m->names = names_bytes;
	m->rpc = (struct rpc_call){.done = make_answered};
	m->rpc.req.op = RPC_MAKE;
	m->rpc.req.makes = (struct rpc_makes){
		.numbers = b->hooks->ask_numbers(b->thread),
		.tail = {.data = m->tail, .len = (uint32_t)wire_out_len(w)},
		.names_bytes = (uint16_t)names_bytes,
	};
	rpc_start(b->thread, &m->rpc);
}

static bool may_take_next(
	const struct make_batch *b, const struct make_message *m, const struct wire_out *w)
{
	if (list_empty(&b->waiting) || m->n == MAKES_MAX || wire_out_room(w) < ELEMENT_BYTES_MAX)
		return false;
	return !m->n || !list_entry(b->waiting.next, struct make_entry, link)->alone;
}

static void fill_message(struct make_batch *b, struct make_message *m, struct wire_out *w)
{
	while (may_take_next(b, m, w)) {
		struct list *link = list_pop(&b->waiting);
		struct make_entry *entry = list_entry(link, struct make_entry, link);
		struct rpc_making making;
		bool alone = entry->alone;
		enum make_fill fill = b->hooks->fill(entry, &making);

		if (fill == FILL_TAKEN)
			put_one(m, w, entry, &making);
		else if (fill == FILL_LATER)
			list_add_head(&b->waiting, link);
		if (fill == FILL_LATER || (alone && m->n))
			return;
	}
}

/* False: the files have to wait for names. */
static bool send_next(struct make_batch *b, struct make_message *m)
{
	size_t names_bytes;
	struct wire_out w;

	wire_out_init(&w, m->tail, sizeof(m->tail));
	if (b->hooks->names_before(b->thread, &b->behind, &w) == ALONG_BEHIND) {
		b->is_behind = true;
		return false;
	}
	names_bytes = wire_out_len(&w);
	fill_message(b, m, &w);
	if (m->n)
		send_message(b, m, &w, names_bytes);
	else if (names_bytes)
		b->hooks->names_back(b->thread);
	return true;
}

static void send_waiting(struct make_batch *b)
{
	struct make_message *m;

	while (!b->nholds && !b->is_behind && !list_empty(&b->waiting) && (m = idle_message(b)))
		if (!send_next(b, m))
			return;
}

static void run_behind(struct thread_call *call)
{
	struct make_batch *b = container_of(call, struct make_batch, behind.call);

	b->is_behind = false;
	send_waiting(b);
}

static void run_kick(struct thread_call *call)
{
	struct make_batch *b = container_of(call, struct make_batch, kick);

	b->kicked = false;
	send_waiting(b);
}

static void end_one(struct make_message *m, unsigned i, int status)
{
	m->entries[i]->alone = false;
	m->batch->hooks->answered(m->entries[i], status);
}

static void repeat_one(struct make_message *m, unsigned i, bool alone)
{
	m->entries[i]->alone = alone;
	m->batch->hooks->again(m->entries[i]);
}

/* Together they were refused. One of them may be the reason, and the others are not to suffer. */
static bool must_go_alone(const struct make_message *m, int status)
{
	struct session *session = m->batch->thread->fs->session;

	return status && m->n + m->names > 1 && !session_lost(session) &&
	       !session_has_ended(session);
}

/* The reply of an honest server tells of each, and it has looked at the first one. */
static void tell_one(
	struct make_message *m, const struct rpc_reply *rep, bool looked_at, unsigned i)
{
	if (!rep->status && !looked_at)
		repeat_one(m, i, false);
	else if (must_go_alone(m, rep->status))
		repeat_one(m, i, true);
	else if (rep->status)
		end_one(m, i, rep->status);
	else if (i >= rep->makes.n)
		end_one(m, i, -EPROTO);
	else if (i && rep->makes.status[i] == -EAGAIN)
		repeat_one(m, i, false);
	else
		end_one(m, i, rep->makes.status[i]);
}

/* Those that are added meanwhile wait: the message is idle when all of its files have been told. */
static void make_answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	static const struct rpc_lent none;
	struct make_message *m = container_of(call, struct make_message, rpc);
	struct make_batch *b = m->batch;
	bool looked_at = true;

	make_batch_hold(b);
	if (m->names)
		looked_at = b->hooks->names_answered(b->thread, rep->status, &rep->makes.names);
	/* Else it has waited in vain, and goes on as one that waits again. */
	if (m->names && looked_at && !rep->status)
		b->behind.again = false;
	if (m->rpc.req.makes.numbers)
		b->hooks->numbers_came(b->thread, rep->status ? &none : &rep->makes.lent);
	for (unsigned i = 0; i < m->n; i++)
		tell_one(m, rep, looked_at, i);
	m->n = 0;
	make_batch_let_go(b);
}

/* ---- files ----------------------------------------------------------------------------------- */

bool make_batch_waits(const struct make_batch *b)
{
	return b->nholds || b->is_behind || !any_is_idle(b);
}

void make_batch_add(struct make_batch *b, struct make_entry *entry)
{
	list_add_tail(&b->waiting, &entry->link);
	if (b->nholds || b->is_behind || b->kicked || !any_is_idle(b))
		return;
	b->kicked = true;
	io_thread_call(b->thread, &b->kick);
}

void make_batch_send_one(
	struct make_batch *b, struct make_entry *entry, const struct rpc_making *making)
{
	struct make_message *m = idle_message(b);
	struct wire_out w;

	wire_out_init(&w, m->tail, sizeof(m->tail));
	put_one(m, &w, entry, making);
	send_message(b, m, &w, 0);
}

void make_batch_hold(struct make_batch *b)
{
	b->nholds++;
}

void make_batch_let_go(struct make_batch *b)
{
	b->nholds--;
	send_waiting(b);
}
