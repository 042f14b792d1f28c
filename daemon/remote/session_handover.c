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

int session_describe(struct session *s, struct io_thread *first, struct session_state *state)
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
		.sharing = s->sharing,
		.read_only = atomic_load(&s->read_only),
		.limits = s->limits,
		.root = s->info.root,
	};
	memcpy(state->store_id, s->store_id, sizeof(state->store_id));
	memcpy(state->token, s->token, sizeof(state->token));
	memcpy(state->owner, s->owner.id, sizeof(state->owner));
	session_totals(s, &state->counters);
	for (unsigned i = 0; i < s->nchannels; i++)
		describe_slots(first[i].remote, &state->slots[i]);
	return atomic_load(&s->owner.fd);
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
		state->sharing != s->sharing) {
		snprintf(why, whylen,
			"io_threads, share or cache=exclusive are not as the mount has them: change "
			"them back, or unmount and mount again");
		return -EINVAL;
	}
	adopt_facts(s, state);
	atomic_store(&s->owner.fd, owner_fd);
	for (unsigned i = 0; i < s->nchannels; i++)
		adopt_slots(first[i].remote, &state->slots[i]);
	return 0;
}
