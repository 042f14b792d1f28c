/* session_handover.c - see session_handover.h. */
#include "daemon/remote/session_handover.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/remote/paths.h"
#include "daemon/remote/remote_private.h"

/* ---- telling --------------------------------------------------------------------------------- */

static void describe_slots(const struct remote *r, struct slots_state *state)
{
	assert(slots_are_idle(r));
	*state = (struct slots_state){.nslots = r->nslots, .nreserved = r->nreserved};
	for (unsigned i = 0; i < r->nslots; i++)
		state->seq[i] = r->slots[i].seq;
}

int session_describe_facts(struct session *s, struct session_state *state)
{
	*state = (struct session_state){
		.id = s->id,
		.instance = s->instance,
		.incarnation = s->incarnation,
		.npages = s->info.npages,
		.lease_ms = s->info.lease_ms,
		.owner_number = s->owner.number,
		.nchannels = s->nchannels,
		.exclusive = s->exclusive,
		.sharing = session_is_sharing(s),
		.converts = s->converts,
		.read_only = atomic_load(&s->read_only),
		.limits = s->limits,
		.root = s->info.root,
	};
	memcpy(state->store_id, s->store_id, sizeof(state->store_id));
	memcpy(state->token, s->token, sizeof(state->token));
	memcpy(state->owner, s->owner.id, sizeof(state->owner));
	session_totals(s, &state->counters);
	return atomic_load(&s->owner.fd);
}

int session_describe(struct session *s, struct io_thread *first, struct session_state *state)
{
	int fd = session_describe_facts(s, state);

	for (unsigned i = 0; i < s->nchannels; i++)
		describe_slots(first[i].remote, &state->slots[i]);
	return fd;
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Thread 0 may have attached its channel already. */
void session_record(struct session *s, struct io_thread *first, struct record *record)
{
	s->record = record;
	for (unsigned i = 0; i < s->nchannels; i++) {
		struct remote *r = first[i].remote;

		r->record = record ? record_thread(record, i) : NULL;
		if (r->nslots)
			slots_record(r);
	}
}

void session_adopt_slots(const struct record *record, struct session_state *state)
{
	for (unsigned i = 0; i < state->nchannels && i < IO_THREADS_MAX; i++) {
		const struct record_thread *from = record_thread(record, i);
		struct slots_state *to = &state->slots[i];

		*to = (struct slots_state){.nslots = from->nslots, .nreserved = from->nreserved};
		for (unsigned k = 0; k < to->nslots && k < SLOTS_MAX; k++)
			to->seq[k] = atomic_load(&from->slots[k].seq);
	}
}

int session_replay(struct session *s, struct io_thread *first)
{
	struct rpc_call *call;
	int err = 0;

	for (unsigned i = 0; i < s->nchannels; i++) {
		for (unsigned k = 0; !err && k < first[i].remote->nslots; k++) {
			err = replay_take(&first[i], k, &call);
			if (!err && call)
				slots_resume(first[i].remote, k, call);
		}
	}
	return err;
}

bool session_is_whole(struct session *s)
{
	for (unsigned i = 0; i < s->nchannels; i++)
		if (!atomic_load(&s->threads[i].ready))
			return false;
	return replays_are_done(&s->replays);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static bool are_slots(const struct slots_state *slots)
{
	return slots->nslots <= SLOTS_MAX &&
	       (slots->nslots ? slots->nreserved < slots->nslots : !slots->nreserved);
}

static bool makes_sense(const struct session_state *state)
{
	for (unsigned i = 0; i < IO_THREADS_MAX; i++)
		if (!are_slots(&state->slots[i]))
			return false;
	return state->id && state->lease_ms && state->nchannels &&
	       state->nchannels <= IO_THREADS_MAX && state->limits.max_sge_read &&
	       state->limits.max_sge_write && state->limits.max_work_bytes;
}

static void adopt_slots(struct remote *r, const struct slots_state *state)
{
	r->nslots = state->nslots;
	r->nreserved = state->nreserved;
	r->free_slots = state->nslots >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << state->nslots) - 1;
	for (unsigned i = 0; i < state->nslots; i++)
		r->slots[i] = (struct slot){.seq = state->seq[i]};
	slots_record(r);
}

static void adopt_facts(struct session *s, const struct session_state *state)
{
	s->id = state->id;
	s->instance = state->instance;
	s->incarnation = state->incarnation;
	s->info = (struct session_info){
		.npages = state->npages, .lease_ms = state->lease_ms, .root = state->root};
	s->limits = state->limits;
	paths_limit(s, &s->limits);
	s->earlier = state->counters;
	atomic_store(&s->read_only, state->read_only);
	atomic_store(&s->sharing, state->sharing);
	memcpy(s->store_id, state->store_id, sizeof(s->store_id));
	memcpy(s->token, state->token, sizeof(s->token));
	memcpy(s->owner.id, state->owner, sizeof(s->owner.id));
	s->owner.number = state->owner_number;
}

int session_adopt(struct session *s, struct io_thread *first, const struct session_state *state,
	int owner_fd, char *why, size_t whylen)
{
	if (!makes_sense(state)) {
		snprintf(why, whylen, "the session's description makes no sense");
		return -EINVAL;
	}
	if (state->nchannels != s->nchannels || state->exclusive != s->exclusive ||
		state->converts != s->converts ||
		(!s->converts && state->sharing != session_is_sharing(s))) {
		snprintf(why, whylen,
			"io_threads, exclusive, share or cache=exclusive are not as the mount has "
			"them: change them back, or unmount and mount again");
		return -EINVAL;
	}
	adopt_facts(s, state);
	atomic_store(&s->owner.fd, owner_fd);
	for (unsigned i = 0; i < s->nchannels; i++)
		adopt_slots(first[i].remote, &state->slots[i]);
	return 0;
}
