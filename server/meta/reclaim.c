/* reclaim.c - pages on their way back to free: reaped, taken from ended sessions, scrubbed. */
#include "server/meta/removal.h"

#include <errno.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "server/space/protect.h"
#include "server/record/reaper.h"

/* Extents that a step frees: reserve / STEP_SHARE, at most STEP_MAX, so that it fits into the
 * reserve; STEP_MIN where little of that is left. */
enum { STEP_SHARE = 16, STEP_MAX = 128, STEP_MIN = 32 };

/* After so many changes the store can use pages that were given up before them. */
enum { FULL_TRIES = 2 };

/* While a snapshot has no room aside, the dirty pages of its export wait, but not those of
 * others. Lost memory can't be zeroed. */
static bool may_scrub(const struct volume *v)
{
	return space_has_dirty(&v->space) && !volume_is_lost(v) && protect_has_room(v->protect);
}

static bool removal_is_due(const struct meta *m)
{
	return m->now.removed && retry_is_due(&m->removal_retry);
}

static bool meta_reclaim_is_full(const struct meta *m)
{
	return m->full_at && m->full_at == store_version(m->store);
}

bool meta_may_reclaim(const struct meta *m, const struct retry *retry)
{
	return retry_is_due(retry) && !meta_reclaim_is_full(m);
}

bool meta_has_reclaim(const struct meta *m)
{
	bool scrubs = retry_is_due(&m->scrub_retry);
	bool room = scrubs && scrub_room(m->scrub) > 0;

	if (meta_reclaim_is_full(m))
		return false;
	if (removal_is_due(m) || (m->now.nending && retry_is_due(&m->drain_retry)))
		return true;
	/* Nothing else tells again of finished jobs that there was no room for. */
	if (scrubs && (m->ndone || scrub_has_finished(m->scrub)))
		return true;
	for (unsigned i = 0; i < m->nvolumes; i++) {
		const struct volume *v = m->volumes[i];

		if ((v->now.reap_files && retry_is_due(&v->reap_retry)) || (room && may_scrub(v)))
			return true;
	}
	return false;
}

static int take_job(struct meta *m, const struct scrub_job *job, uint64_t *freed)
{
	struct space *sp = &m->volumes[job->export_index]->space;

	volume_charge(m->volumes[job->export_index]);
	if (job->refused || volume_is_lost(m->volumes[job->export_index]))
		return space_still_dirty(sp, job->run);
	*freed += job->run.npages;
	return space_scrubbed(sp, job->run);
}

static int take_scrubbed(struct meta *m, bool *more, uint64_t *freed)
{
	while (m->ndone < SCRUB_JOBS && scrub_take(m->scrub, &m->done[m->ndone]))
		m->ndone++;
	*more |= m->ndone == SCRUB_JOBS;
	for (; m->nused < m->ndone; m->nused++) {
		int err = take_job(m, &m->done[m->nused], freed);

		if (err)
			return err;
		CRASH_POINT("scrub.taken");
	}
	return 0;
}

static int reap(struct meta *m, unsigned nextents, bool *more, uint64_t *freed)
{
	for (unsigned i = 0; i < m->nvolumes; i++) {
		struct volume *v = m->volumes[i];
		uint64_t finished = 0;
		bool left = false;
		bool due = v->now.reap_files && retry_is_due(&v->reap_retry);
		int err;

		if (!v->id)
			continue;
		volume_charge(v);
		err = due ? reaper_step(v, nextents, &left, &finished) : 0;
		if (err)
			return err;
		if (due)
			CRASH_POINT("reap.step");
		*more |= left;
		/* A file that was cut short can grow again: also worth another try. */
		*freed += finished;
	}
	return 0;
}

static void choose_dirty(struct meta *m, unsigned index, unsigned room)
{
	struct volume *v = m->volumes[index];
	struct page_run run;

	if (!may_scrub(v))
		return;
	while (m->ntodo < room && space_next_dirty(&v->space, SCRUB_JOB_PAGES, &run))
		m->todo[m->ntodo++] = (struct scrub_job){
			.protect = v->protect,
			.export_index = index,
			.run = run,
			.addr = (char *)v->bases[run.region] + (size_t)run.page * PAGE_BYTES,
			.len = (size_t)run.npages * PAGE_BYTES,
		};
}

static int drain(struct meta *m, bool *more)
{
	bool left = false;
	int err;

	if (!m->now.nending || !retry_is_due(&m->drain_retry))
		return 0;
	err = retry_note(&m->drain_retry, meta_drain_session(m, &left));
	CRASH_POINT("session.drained");
	*more |= left;
	return err;
}

static int room_for(struct meta *m, unsigned nextents)
{
	return meta_room(m, ROOM_PAGES + ROOM_PAGES_PER_REAPED * nextents, false);
}

/* Earlier transactions may have given up pages that only a later one can use: so a tiny change is
 * committed. */
static int no_room(struct meta *m, bool *more)
{
	if (m->full_tries++ < FULL_TRIES) {
		*more = true;
		return meta_save_super(m);
	}
	m->full_at = store_version(m->store);
	m->full_tries = 0;
	return -ENOSPC;
}

static int give_back(struct meta *m, unsigned nextents, bool *more, uint64_t *freed)
{
	int err = 0;

	if (retry_is_due(&m->scrub_retry))
		err = retry_note(&m->scrub_retry, take_scrubbed(m, more, freed));
	if (!err)
		err = reap(m, nextents, more, freed);
	if (!err)
		err = drain(m, more);
	*more |= removal_is_due(m);
	return err;
}

int meta_reclaim(struct meta *m, bool *more, uint64_t *freed)
{
	unsigned nextents = (unsigned)min_u64(m->reserve / STEP_SHARE, STEP_MAX);
	int err;

	*more = false;
	*freed = 0;
	scrub_clear(m->scrub);
	err = room_for(m, nextents);
	if (err == -ENOSPC && nextents > STEP_MIN) {
		nextents = STEP_MIN;
		err = room_for(m, nextents);
	}
	if (err)
		return err == -ENOSPC ? no_room(m, more) : err;
	m->full_tries = 0;
	m->reclaiming = true;
	m->removals_turn = !m->removals_turn && removal_is_due(m);
	if (m->removals_turn)
		err = retry_note(&m->removal_retry, removal_step(m, nextents, more));
	else
		err = give_back(m, nextents, more, freed);
	if (err)
		return err;
	for (unsigned i = 0, room = scrub_room(m->scrub); i < m->nvolumes; i++)
		choose_dirty(m, i, room);
	return 0;
}

int meta_scrub_fd(const struct meta *m)
{
	return scrub_fd(m->scrub);
}

void meta_allow_reuse(struct meta *m, unsigned export_index)
{
	m->volumes[export_index]->space.reuse = true;
	scrub_kick(m->scrub);
}
