/* scout.c - see scout.h. */
#include "daemon/remote/scout.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/remote/paths.h"

enum {
	LOOK_MS = 60000,   /* for verbs, while nothing happens */
	SOON_MS = 1000,    /* after a loss */
	TRY_MS = 2000,     /* for the server's answer */
	SLICE_MS = 100,    /* then it looks whether it is to stop */
	MISSING_MS = 1000, /* channels over verbs may be down for so long */
	STUCK_MS = 15000,  /* verbs connects, and yet there is no channel */
	LOSSES_MAX = 4,    /* seconds of UNSTEADY_MS in which a channel over verbs was lost */
	UNSTEADY_MS = 60000,
	PENALTY_MIN_MS = 60000,
	PENALTY_MAX_MS = 3600000,
};

static bool is_to_end(const struct session *s)
{
	return atomic_load(&s->scout.stopping) || atomic_load(&s->lost);
}

/* ---- whether the server answers -------------------------------------------------------------- */

static int closed_status(const struct event *ev)
{
	return ev->status ? ev->status : -ECONNRESET;
}

static int await_answer(const struct session *s, struct evq *q)
{
	int64_t until_ms = now_ms() + TRY_MS;
	struct pollfd pfd = {.fd = evq_fd(q), .events = POLLIN};
	struct event ev;
	int n;

	while (now_ms() < until_ms && !is_to_end(s)) {
		n = evq_poll(q, &ev, 1);
		if (n == 0) {
			n = evq_arm(q);
			n = n ? n : evq_poll(q, &ev, 1);
			if (n == 0)
				poll(&pfd, 1, SLICE_MS);
		}
		if (n < 0)
			return n;
		if (n && ev.type == EV_OPEN)
			return 0;
		if (n && ev.type == EV_CLOSED)
			return closed_status(&ev);
	}
	return -ETIMEDOUT;
}

/* It connects, and asks nothing. -EOPNOTSUPP: its channels could not take over what is planned for
 * others. */
static int try_path(const struct session *s, const struct session_path *path)
{
	struct channel *ch;
	struct evq *q;
	int err;

	err = evq_new(path->transport, &q);
	if (err)
		return err;
	err = channel_connect(q, &path->address, &ch);
	if (!err) {
		err = await_answer(s, q);
		if (!err && !paths_limits_suffice(s, channel_limits(ch)))
			err = -EOPNOTSUPP;
		channel_disconnect(ch);
		channel_delete(ch);
	}
	evq_delete(q);
	return err;
}

/* ---- on tcp ---------------------------------------------------------------------------------- */

static void say_unanswered(int err, char *why, size_t whylen)
{
	if (err == -ECONNREFUSED)
		snprintf(why, whylen,
			"the server does not listen on verbs: see 'listen' in its server.conf");
	else if (err == -EOPNOTSUPP)
		snprintf(why, whylen,
			"verbs takes less in one transfer than this mount has planned: to use it, "
			"umount, and mount again");
	else
		snprintf(why, whylen,
			"the server does not answer over verbs: %s: see 'rmemfsctl doctor'",
			errno_text(err));
}

static int find_verbs(struct session *s, char *why, size_t whylen)
{
	int err = paths_try_verbs(s, why, whylen);

	if (err)
		return err;
	err = try_path(s, &s->paths[TRANSPORT_VERBS]);
	if (err) {
		say_unanswered(err, why, whylen);
		return err;
	}
	return paths_register_verbs(s, why, whylen);
}

/* Whether the export has refused verbs, for good. */
static bool is_refused(struct session *s)
{
	bool refused;

	pthread_mutex_lock(&s->lock);
	refused = s->verbs_refused;
	pthread_mutex_unlock(&s->lock);
	return refused;
}

static int look_for_verbs(struct session *s)
{
	char why[sizeof(s->no_verbs)] = "";

	if (now_ms() < atomic_load(&s->scout.again_ms) || is_refused(s))
		return LOOK_MS;
	if (find_verbs(s, why, sizeof(why)) == 0 && !is_to_end(s)) {
		paths_move(s, TRANSPORT_VERBS, "");
		return SOON_MS;
	}
	paths_close_verbs(s);
	if (!is_to_end(s))
		paths_say_no_verbs(s, why);
	return LOOK_MS;
}

/* ---- on verbs -------------------------------------------------------------------------------- */

/* Not while the mount ends. */
static bool lacks_channels(const struct session *s)
{
	if (atomic_load(&s->nrunning) < s->nchannels)
		return false;
	for (unsigned i = 0; i < s->nchannels; i++)
		if (!atomic_load(&s->threads[i].ready))
			return true;
	return false;
}

static void leave_verbs(struct session *s, const char *why)
{
	paths_move(s, TRANSPORT_TCP, why);
	s->scout.bad_ms = 0;
}

/* At once again the same would follow. */
static void leave_bad_verbs(struct session *s, const char *why)
{
	struct scout *scout = &s->scout;

	uint64_t wait_ms =
		min_u64(max_u64(PENALTY_MIN_MS, 2 * (uint64_t)atomic_load(&scout->penalty_ms)),
			PENALTY_MAX_MS);

	atomic_store(&scout->penalty_ms, (int64_t)wait_ms);
	atomic_store(&scout->again_ms, now_ms() + (int64_t)wait_ms);
	leave_verbs(s, why);
}

/* A path that carries small messages, and loses large ones, makes a channel ready again and again:
 * each transfer ends it. Channels that are lost at once count as one. */
static bool is_unsteady(struct session *s, int64_t now)
{
	struct scout *scout = &s->scout;
	unsigned nlosses = atomic_load(&scout->nlosses);

	if (nlosses != scout->nseen) {
		scout->nseen = nlosses;
		if (now - scout->unsteady_ms > UNSTEADY_MS) {
			scout->unsteady_ms = now;
			scout->nunsteady = 0;
		}
		scout->nunsteady++;
	}
	return scout->nunsteady >= LOSSES_MAX && now - scout->unsteady_ms <= UNSTEADY_MS;
}

static void leave_unsteady_verbs(struct session *s)
{
	char why[sizeof(s->no_verbs)];

	pthread_mutex_lock(&s->lock);
	snprintf(why, sizeof(why),
		"connections over verbs do not last: %.*s: does the network carry the MTU that "
		"'ibv_devinfo' shows?",
		(int)sizeof(s->down_why), s->down_why);
	pthread_mutex_unlock(&s->lock);
	s->scout.nunsteady = 0;
	leave_bad_verbs(s, why);
}

/* tcp is tried first. If the server is just coming up, it listens on verbs a moment later. */
static void look_for_a_way(struct session *s, int64_t missing_ms)
{
	char why[sizeof(s->no_verbs)];
	int err;

	if (try_path(s, &s->paths[TRANSPORT_TCP]) != 0)
		return;
	err = try_path(s, &s->paths[TRANSPORT_VERBS]);
	if (is_to_end(s) || !lacks_channels(s))
		return;
	if (err) {
		say_unanswered(err, why, sizeof(why));
		leave_verbs(s, why);
	} else if (missing_ms >= STUCK_MS) {
		leave_bad_verbs(
			s, "over verbs the server connects, but gives no session: see its log");
	}
}

static int look_after_verbs(struct session *s)
{
	struct scout *scout = &s->scout;
	int64_t now = now_ms();

	if (is_refused(s)) {
		char why[sizeof(s->no_verbs)];

		pthread_mutex_lock(&s->lock);
		snprintf(why, sizeof(why), "%s", s->no_verbs);
		pthread_mutex_unlock(&s->lock);
		leave_verbs(s, why);
		return LOOK_MS;
	}
	if (is_unsteady(s, now) && try_path(s, &s->paths[TRANSPORT_TCP]) == 0 && !is_to_end(s)) {
		leave_unsteady_verbs(s);
		return LOOK_MS;
	}
	if (!lacks_channels(s)) {
		scout->bad_ms = 0;
		return LOOK_MS;
	}
	if (!scout->bad_ms)
		scout->bad_ms = now;
	else if (now - scout->bad_ms >= MISSING_MS)
		look_for_a_way(s, now - scout->bad_ms);
	return SOON_MS;
}

/* ---- another process ------------------------------------------------------------------------- */

void scout_describe(struct session *s, struct session_verbs *verbs)
{
	int64_t left_ms = atomic_load(&s->scout.again_ms) - now_ms();

	*verbs = (struct session_verbs){
		.penalty_ms = (uint32_t)atomic_load(&s->scout.penalty_ms),
		.again_ms = (uint32_t)max_i64(left_ms, 0),
	};
	pthread_mutex_lock(&s->lock);
	verbs->refused = s->verbs_refused;
	snprintf(verbs->why, sizeof(verbs->why), "%s", s->no_verbs);
	pthread_mutex_unlock(&s->lock);
}

/* That process may say anything; waits are bounded as our own. */
void scout_take(struct session *s, const struct session_verbs *verbs)
{
	uint32_t again_ms = (uint32_t)min_u64(verbs->again_ms, PENALTY_MAX_MS);

	if (!s->moves)
		return;
	s->verbs_refused = verbs->refused;
	snprintf(s->no_verbs, sizeof(s->no_verbs), "%s", verbs->why);
	atomic_init(&s->scout.penalty_ms, (int64_t)min_u64(verbs->penalty_ms, PENALTY_MAX_MS));
	atomic_init(&s->scout.again_ms, again_ms ? now_ms() + again_ms : 0);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Returns when to look again. */
static int look(struct session *s)
{
	if (atomic_load(&s->path) == &s->paths[TRANSPORT_VERBS])
		return look_after_verbs(s);
	/* Threads leave it one by one. */
	paths_close_verbs(s);
	return look_for_verbs(s);
}

/* Of several losses the first one says when: others may go on without an end. */
static void *scout_run(void *arg)
{
	struct session *s = arg;
	struct pollfd pfd = {.fd = s->scout.event_fd, .events = POLLIN};
	int64_t look_ms = now_ms() + SOON_MS, now;
	eventfd_t n;

	/* Memory that it asks for must not wait for writes of this mount. */
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	while (!is_to_end(s)) {
		now = now_ms();
		if (now >= look_ms) {
			now = look(s);
			look_ms = now_ms() + now;
		} else if (poll(&pfd, 1, (int)(look_ms - now)) > 0) {
			eventfd_read(s->scout.event_fd, &n);
			look_ms = min_i64(look_ms, now_ms() + SOON_MS);
		}
	}
	return NULL;
}

void scout_start(struct session *s)
{
	struct scout *scout = &s->scout;
	sigset_t all, old;
	int err;

	if (!s->moves || scout->started)
		return;
	scout->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = scout->event_fd < 0 ? errno : pthread_create(&scout->thread, NULL, scout_run, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		log_warning("server %s: the mount keeps its transport: no thread: %s", s->server,
			errno_text(err));
		if (scout->event_fd >= 0)
			close(scout->event_fd);
		return;
	}
	pthread_setname_np(scout->thread, "rmemfs-scout");
	atomic_store(&scout->started, true);
}

void scout_stop(struct session *s)
{
	struct scout *scout = &s->scout;

	if (!atomic_load(&scout->started))
		return;
	atomic_store(&scout->stopping, true);
	eventfd_write(scout->event_fd, 1);
	pthread_join(scout->thread, NULL);
	atomic_store(&scout->started, false);
	close(scout->event_fd);
}

void scout_look_now(struct session *s)
{
	if (atomic_load(&s->scout.started))
		eventfd_write(s->scout.event_fd, 1);
}

void scout_channel_lost(struct session *s)
{
	atomic_fetch_add(&s->scout.nlosses, 1);
	scout_look_now(s);
}
