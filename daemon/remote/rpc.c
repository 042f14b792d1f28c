/* rpc.c - RPCs in the slots that the server gave to this channel.
 *
 * A slot carries one call at a time, with the slot's next sequence number. Slots and numbers belong
 * to the session. When the channel is lost they stay as they are. The calls in them go out again
 * unchanged on the next channel, before anything new. If the server had executed a call, it answers
 * from its stored reply. So each call is done once, however often it is sent.
 *
 * A call that nobody wants any more is taken back if it waits at the server for another client. It
 * may begin to wait at any time, on another channel, too. So the ticks repeat CANCEL until the call
 * is answered.
 */
#include <assert.h>
#include <errno.h>

#include "common/base/crash_point.h"
#include "daemon/remote/remote_private.h"

static uint64_t mask_below(unsigned n)
{
	return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}

/* The last nreserved slots; only COMMIT, MAKE, NAMES and RETURN may take them. */
static uint64_t reserved_mask(const struct remote *r)
{
	return mask_below(r->nslots) & ~mask_below(r->nslots - r->nreserved);
}

/* The number of kept slots, which come before the reserved ones. Calls that wait for other clients
 * take none of them: a holder of a lease that these wait for must get on. */
static unsigned nkept(const struct remote *r)
{
	unsigned n = remote_may_share(r) ? SLOTS_NESTED : 0;

	return r->nreserved + n < r->nslots ? n : 0;
}

/* All slots that are neither, and n of the kept ones from the i'th on. Each kind of call that has a
 * lease and may wait has kept slots of its own; some more are for calls that never wait. */
static uint64_t open_mask(const struct remote *r, unsigned i, unsigned n)
{
	unsigned nopen = r->nslots - r->nreserved - nkept(r);
	uint64_t kept = mask_below(nopen + i + n) & ~mask_below(nopen + i);

	return (mask_below(nopen) | kept) & ~reserved_mask(r);
}

/* Signs of life are answered each second. */
enum { HEARD_MS = 1000 };

/* Whether it may wait until another client has given something back. Other calls may take the kept
 * slots. */
static bool may_wait_for_others(const struct rpc_call *call)
{
	switch (call->req.op) {
	case RPC_LOOKUP:
	case RPC_GETATTR:
	case RPC_SETATTR:
	case RPC_CREATE:
	case RPC_MKNOD:
	case RPC_MKDIR:
	case RPC_SYMLINK:
	case RPC_LINK:
	case RPC_UNLINK:
	case RPC_RMDIR:
	case RPC_RENAME:
	case RPC_SETXATTR:
	case RPC_REMOVEXATTR:
		return true;
	case RPC_LEASE:
		return !(call->req.lease.flags & LEASE_IF_FREE);
	default:
		return false;
	}
}

/* Whether it may wait until others have returned pages, or some were scrubbed. It has its file as
 * LEASE_EXCLUSIVE. GRANT may wait, too, but there is one at a time. */
static bool may_wait_for_pages(const struct rpc_call *call)
{
	return call->req.op == RPC_FALLOCATE || call->req.op == RPC_COPY;
}

/* Whether its operation has another lease already: it may wait, too. */
static bool is_second_lease(const struct rpc_call *call)
{
	return call->nested && call->req.op == RPC_LEASE && may_wait_for_others(call);
}

static bool may_use_reserved(const struct rpc_call *call)
{
	return call->req.op == RPC_COMMIT || call->req.op == RPC_MAKE ||
	       call->req.op == RPC_NAMES || call->req.op == RPC_RETURN;
}

void slots_init(struct remote *r)
{
	list_init(&r->rpc_waiting);
	list_init(&r->rpc_waiting_nested);
	list_init(&r->rpc_waiting_pages);
	list_init(&r->rpc_waiting_second);
	list_init(&r->rpc_waiting_reserved);
	list_init(&r->rpc_refused);
	list_init(&r->rpc_replayed);
}

void slots_record(struct remote *r)
{
	static_assert((unsigned)RECORD_SLOTS >= SLOTS_MAX, "grow RECORD_SLOTS");
	static_assert((unsigned)RECORD_THREADS >= IO_THREADS_MAX, "grow RECORD_THREADS");

	if (!r->record)
		return;
	r->record->nslots = r->nslots;
	r->record->nreserved = r->nreserved;
	for (unsigned i = 0; i < r->nslots; i++)
		atomic_store(&r->record->slots[i].seq, r->slots[i].seq);
}

int slots_set(struct remote *r, unsigned nslots, unsigned nreserved)
{
	unsigned first = r->thread->index * nslots;

	if (r->nslots)
		return nslots == r->nslots && nreserved == r->nreserved ? 0 : -EPROTO;
	if (nslots < 1 || nslots > SLOTS_MAX || nreserved >= nslots ||
		first + nslots > RPC_NO_SLOT ||
		nslots + UNSLOTTED_MAX > channel_limits(r->ch)->peer_nrecv)
		return -EPROTO;
	r->nslots = nslots;
	r->nreserved = nreserved;
	r->free_slots = mask_below(nslots);
	slots_record(r);
	return 0;
}

void slots_channel_lost(struct remote *r)
{
	r->unsent_slots = mask_below(r->nslots) & ~r->free_slots;
	r->cancel_slots = 0;
	r->cancelling = false;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* A slot keeps the reply of its last request, here and at the server. Used in turn it keeps that
 * until the request that waits for it has been answered. */
static unsigned slot_pick(struct remote *r, uint64_t usable)
{
	uint64_t behind = usable & ~mask_below(r->next_slot);
	unsigned i = (unsigned)__builtin_ctzll(behind ? behind : usable);

	if (r->record)
		r->next_slot = i + 1;
	return i;
}

static void slot_take(struct remote *r, unsigned i, struct rpc_call *call)
{
	struct slot *slot = &r->slots[i];

	slot->call = call;
	slot->left = false;
	call->req.slot = (uint16_t)(r->thread->index * r->nslots + i);
	call->req.seq = ++slot->seq;
	if (r->record)
		record_slot_begin(&r->record->slots[i], slot->seq);
	call->sent = true;
	r->free_slots &= ~((uint64_t)1 << i);
	r->unsent_slots |= (uint64_t)1 << i;
	r->nrpcs++;
}

static struct rpc_call *slot_release(struct remote *r, unsigned i)
{
	struct rpc_call *call = r->slots[i].call;

	r->slots[i].call = NULL;
	r->free_slots |= (uint64_t)1 << i;
	r->unsent_slots &= ~((uint64_t)1 << i);
	r->unwanted_slots &= ~((uint64_t)1 << i);
	r->cancel_slots &= ~((uint64_t)1 << i);
	return call;
}

/* The number of a request that never left is used again, so that the server sees all numbers in
 * turn. */
static void slot_refuse(struct remote *r, unsigned i, int err)
{
	struct rpc_call *call = slot_release(r, i);

	if (!r->slots[i].left) {
		r->slots[i].seq--;
		r->nrpcs--;
	}
	call->status = err;
	list_add_tail(&r->rpc_refused, &call->link);
}

/* The record's slot, for a first request that must not be done twice. */
static struct record_slot *slot_note(const struct remote *r, unsigned i)
{
	const struct slot *slot = &r->slots[i];

	return r->record && !slot->left && slot->call->by && replay_is_for(&slot->call->req)
		       ? &r->record->slots[i]
		       : NULL;
}

/* False: no more can be sent now. */
static bool slots_send_unsent(struct remote *r)
{
	while (r->unsent_slots) {
		unsigned i = (unsigned)__builtin_ctzll(r->unsent_slots);
		const struct rpc_call *call = r->slots[i].call;
		struct record_slot *note = slot_note(r, i);
		int err = remote_channel_send_recorded(r, &call->req, note, call->by);

		if (err == -EPROTO || err == -EMSGSIZE) {
			slot_refuse(r, i, err);
			continue;
		}
		if (err)
			return false;
		r->slots[i].left = true;
		r->unsent_slots &= ~((uint64_t)1 << i);
		if (note)
			CRASH_POINT("rpc.sent");
	}
	return true;
}

/* False: no more can be sent now. */
static bool slots_fill_from(struct remote *r, struct list *waiting, uint64_t usable)
{
	while (!list_empty(waiting) && (r->free_slots & usable)) {
		struct list *node = list_pop(waiting);

		slot_take(r, slot_pick(r, r->free_slots & usable),
			list_entry(node, struct rpc_call, link));
		if (!slots_send_unsent(r))
			return false;
	}
	return true;
}

void slots_pump(struct remote *r)
{
	uint64_t reserved = reserved_mask(r);

	if (r->state != REMOTE_READY || remote_channel_is_away(r) || !slots_send_unsent(r))
		return;
	if (!slots_fill_from(r, &r->rpc_waiting_reserved, reserved) ||
		!slots_fill_from(r, &r->rpc_waiting_reserved, ~reserved))
		return;
	if (!slots_fill_from(r, &r->rpc_waiting_nested, ~reserved) ||
		!slots_fill_from(r, &r->rpc_waiting_pages, open_mask(r, 0, SLOTS_PAGES)) ||
		!slots_fill_from(
			r, &r->rpc_waiting_second, open_mask(r, SLOTS_PAGES, SLOTS_SECOND)))
		return;
	slots_fill_from(r, &r->rpc_waiting, open_mask(r, 0, 0));
}

void rpc_start(struct io_thread *thread, struct rpc_call *call)
{
	struct remote *r = thread->remote;

	struct list *waiting = &r->rpc_waiting;

	assert(rpc_op_info(call->req.op)->slotted);
	call->sent = false;
	if (may_use_reserved(call))
		waiting = &r->rpc_waiting_reserved;
	else if (may_wait_for_pages(call))
		waiting = &r->rpc_waiting_pages;
	else if (is_second_lease(call))
		waiting = &r->rpc_waiting_second;
	else if (call->nested || !may_wait_for_others(call))
		waiting = &r->rpc_waiting_nested;
	list_add_tail(waiting, &call->link);
	slots_pump(r);
}

bool rpc_may_wait_for_mounts(const struct io_thread *thread, const struct rpc_call *call)
{
	const struct remote *r = thread->remote;

	return r->session->sharing && may_wait_for_others(call) && r->state == REMOTE_READY &&
	       r->mute_ms < HEARD_MS;
}

bool rpc_cancel(struct io_thread *thread, struct rpc_call *call)
{
	if (call->sent)
		return false;
	list_del(&call->link);
	return true;
}

void slots_resume(struct remote *r, unsigned i, struct rpc_call *call)
{
	r->slots[i].call = call;
	r->slots[i].left = true;
	call->sent = true;
	r->free_slots &= ~((uint64_t)1 << i);
	r->unsent_slots |= (uint64_t)1 << i;
}

/* ---- taking back what was sent --------------------------------------------------------------- */

/* One CANCEL at a time, so that the server always has room for it. */
static void cancel_next(struct remote *r)
{
	struct rpc_request req = {.op = RPC_CANCEL, .slot = RPC_NO_SLOT};
	unsigned i = (unsigned)__builtin_ctzll(r->cancel_slots | (uint64_t)1 << 63);

	if (!r->cancel_slots || r->cancelling || r->state != REMOTE_READY)
		return;
	req.cancel.slot = r->slots[i].call->req.slot;
	req.cancel.seq = r->slots[i].seq;
	if (remote_channel_send(r, &req) != 0)
		return;
	r->cancel_slots &= ~((uint64_t)1 << i);
	r->cancelling = true;
}

static void cancel_unwanted(struct remote *r)
{
	r->cancel_slots = r->unwanted_slots & ~r->unsent_slots;
	cancel_next(r);
}

void rpc_withdraw(struct io_thread *thread, struct rpc_call *call)
{
	struct remote *r = thread->remote;
	unsigned i = call->req.slot - thread->index * r->nslots;

	assert(call->sent && i < r->nslots);
	if (r->slots[i].call != call)
		return; /* it could not be sent, and is answered so */
	if (r->unwanted_slots >> i & 1)
		return;
	r->unwanted_slots |= (uint64_t)1 << i;
	if (!(r->unsent_slots >> i & 1))
		r->cancel_slots |= (uint64_t)1 << i;
	cancel_next(r);
}

bool slots_cancelled(struct remote *r)
{
	bool was = r->cancelling;

	r->cancelling = false;
	cancel_next(r);
	return was;
}

/* ---- replies --------------------------------------------------------------------------------- */

void slots_reply(struct remote *r, const struct rpc_reply *rep)
{
	unsigned i = rep->slot - r->thread->index * r->nslots;
	struct rpc_call *call = i < r->nslots ? r->slots[i].call : NULL;

	if (!call || (r->unsent_slots >> i & 1) || rep->seq != call->req.seq ||
		rep->op != call->req.op) {
		remote_channel_drop(r, "unexpected reply to %s in slot %u",
			rpc_op_info(rep->op)->name, rep->slot);
		return;
	}
	slot_release(r, i);
	/* It has changed nothing, so the request may be done anew. */
	if (rep->status && r->record)
		record_slot_begin(&r->record->slots[i], rep->seq);
	if (call->by && replay_is_for(&call->req))
		CRASH_POINT("rpc.answered");
	call->done(call, rep);
	slots_pump(r);
}

static void call_end(struct rpc_call *call, int status)
{
	struct rpc_reply rep = {
		.op = call->req.op,
		.slot = call->req.slot,
		.seq = call->req.seq,
		.status = status,
	};

	call->done(call, &rep);
}

void slots_tick(struct remote *r)
{
	struct list refused;
	struct list *node;

	list_init(&refused);
	list_splice_tail(&refused, &r->rpc_refused);
	while ((node = list_pop(&refused)) != NULL) {
		struct rpc_call *call = list_entry(node, struct rpc_call, link);

		call_end(call, call->status);
	}
	replay_deliver(r);
	slots_pump(r);
	cancel_unwanted(r);
}

void slots_begin_anew(struct remote *r)
{
	for (unsigned i = 0; i < r->nslots; i++)
		r->slots[i] = (struct slot){0};
}

bool slots_are_idle(const struct remote *r)
{
	return r->free_slots == mask_below(r->nslots) && list_empty(&r->rpc_waiting) &&
	       list_empty(&r->rpc_waiting_nested) && list_empty(&r->rpc_waiting_pages) &&
	       list_empty(&r->rpc_waiting_second) && list_empty(&r->rpc_waiting_reserved) &&
	       list_empty(&r->rpc_refused) && list_empty(&r->rpc_replayed);
}

/* Calls that done() starts meanwhile wait for the next time. */
void slots_fail_all(struct remote *r)
{
	struct list failed;
	struct list *node;

	list_init(&failed);
	replay_deliver(r);
	for (unsigned i = 0; i < r->nslots; i++)
		if (r->slots[i].call)
			list_add_tail(&failed, &slot_release(r, i)->link);
	list_splice_tail(&failed, &r->rpc_waiting_reserved);
	list_splice_tail(&failed, &r->rpc_waiting_nested);
	list_splice_tail(&failed, &r->rpc_waiting_pages);
	list_splice_tail(&failed, &r->rpc_waiting_second);
	list_splice_tail(&failed, &r->rpc_waiting);
	list_splice_tail(&failed, &r->rpc_refused);
	while ((node = list_pop(&failed)) != NULL)
		call_end(list_entry(node, struct rpc_call, link), -ESTALE);
}
