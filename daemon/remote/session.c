/* session.c - facts that all threads share: who we are, what the server granted us and for how
 * long, and what is logged of it. connect.c makes the connections. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/auth/auth_key_file.h"
#include "common/auth/handshake.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/service.h"
#include "common/base/util.h"
#include "daemon/remote/paths.h"
#include "daemon/remote/pick_transport.h"
#include "daemon/remote/scout.h"
#include "daemon/remote/client_id.h"
#include "daemon/remote/session_private.h"

enum {
	COMPLAIN_MS = 30000, /* between two log lines about one loss */
	CLOCK_DRIFT_PPM = 100,
	BRIEF_WAIT_MS = 300, /* waits so long for an export in use before a line is logged */
	LOOK_AGAIN_MS = 1000,
	PING_MAX_MS = 1000,
};

/* ---- making it ------------------------------------------------------------------------------- */

static void describe_client(struct session *s, const char *mountpoint)
{
	char host[64] = "?";

	gethostname(host, sizeof(host) - 1);
	snprintf(
		s->client, sizeof(s->client), "%s:%.64s (pid %d)", host, mountpoint, (int)getpid());
}

/* The file is read for each connection, but a mistake in it is told before the first one. */
static int take_key_file(struct session *s, const char *path, char *why, size_t whylen)
{
	struct auth_key_file file = {0};
	int err;

	if (!path)
		return 0;
	err = auth_key_file_read(path, &file, why, whylen);
	auth_key_file_free(&file);
	if (err)
		return err;
	err = handshake_context_new(HANDSHAKE_CLIENT, &s->handshakes, why, whylen);
	if (err)
		return err;
	s->key_file = strdup(path);
	if (s->key_file)
		return 0;
	handshake_context_delete(s->handshakes);
	snprintf(why, whylen, "out of memory");
	return -ENOMEM;
}

int session_new(const struct session_options *options, const struct session_events *events,
	struct session **out, char *why, size_t whylen)
{
	struct transport_config config;
	struct session *s;
	int err;

	assert(options->peer_timeout_ms);
	assert(options->io_threads >= 1 && options->io_threads <= IO_THREADS_MAX);
	s = calloc(1, sizeof(*s));
	if (!s) {
		snprintf(why, whylen, "out of memory");
		return -ENOMEM;
	}
	transport_config_default(&config);
	config.io_threads = 0;
	config.nrecv = SLOTS_MAX + UNSLOTTED_MAX + RPC_RINGS;
	pthread_mutex_init(&s->lock, NULL);
	replays_init(&s->replays);
	err = paths_open(s, options, &config, why, whylen);
	if (err)
		goto err_session;
	err = take_key_file(s, options->key_file, why, whylen);
	if (err)
		goto err_paths;
	memcpy(s->export_name, options->source.export_name, sizeof(s->export_name));
	s->chosen = options->auto_transport && options->source.host[0] != '/';
	s->may_be_here = pick_transport_may_be_here(options, session_address(s));
	s->wanted = options->protection;
	s->nchannels = options->io_threads;
	atomic_init(&s->read_only, options->read_only);
	s->exclusive = options->exclusive;
	s->events = events;
	atomic_init(&s->sharing, options->sharing);
	s->converts = options->converts;
	s->exit_when_lost = options->exit_when_lost;
	s->connect_timeout_ms = options->connect_timeout_ms;
	s->connect_until_ms = options->connect_until_ms;
	s->peer_timeout_ms = options->peer_timeout_ms;
	s->soft_ms = options->soft_ms;
	s->instance = options->instance ? options->instance : (uint64_t)realtime_ns();
	snprintf(s->mountpoint, sizeof(s->mountpoint), "%s", options->mountpoint);
	if (options->verbs)
		scout_take(s, options->verbs);
	if (options->taken)
		atomic_init(&s->owner.fd, -1);
	else
		client_id_take(&s->owner, s->mountpoint);
	describe_client(s, options->mountpoint);
	*out = s;
	return 0;

err_paths:
	paths_close(s);
err_session:
	pthread_mutex_destroy(&s->lock);
	free(s);
	return err;
}

void session_delete(struct session *s)
{
	if (!s)
		return;
	replays_fini(&s->replays);
	client_id_release(&s->owner);
	handshake_context_delete(s->handshakes);
	free(s->key_file);
	paths_close(s);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void session_leave_place(struct session *s)
{
	client_id_release(&s->owner);
}

const struct transport_address *session_address(const struct session *s)
{
	return &atomic_load(&s->path)->address;
}

const char *session_protection_note(const struct session *s)
{
	return channel_protection_note((enum channel_protection)atomic_load(&s->protection));
}

const char *session_protection(const struct session *s)
{
	return channel_protection_name((enum channel_protection)atomic_load(&s->protection));
}

const char *session_server(const struct session *s)
{
	return s->server;
}

/* ---- ATTACH ---------------------------------------------------------------------------------- */

static struct rpc_str text(const char *s)
{
	return (struct rpc_str){.s = s, .len = (uint16_t)strlen(s)};
}

/* A client whose owner does not have number 1 asks anew now and then: client_id_take_lower() may
 * have found a lower number meanwhile, with which it need not wait. */
static uint32_t wait_ms(const struct session *s)
{
	int64_t left_ms = max_i64(0, s->connect_until_ms - now_ms());

	if (s->id)
		return 0;
	if (!s->connecting)
		return s->connect_timeout_ms;
	if (!s->waits)
		return (uint32_t)min_u64(BRIEF_WAIT_MS, (uint64_t)left_ms);
	return (uint32_t)min_u64(
		s->owner.number == 1 ? UINT32_MAX : LOOK_AGAIN_MS, (uint64_t)left_ms);
}

bool session_waits(struct session *s, const char *why)
{
	int64_t left_ms = s->connect_until_ms - now_ms();

	if (!s->connecting || left_ms <= 0)
		return false;
	if (!s->waits)
		log_notice("server %s: %s; waiting for that, for %lld s at most", s->server, why,
			(long long)(left_ms + 999) / 1000);
	s->waits = true;
	service_status("waiting: server %s: %s", s->server, why);
	client_id_take_lower(&s->owner, s->mountpoint);
	return true;
}

void session_attach_request(struct session *s, unsigned channel, struct rpc_attach *attach)
{
	*attach = (struct rpc_attach){
		.instance = s->instance,
		.session = s->id,
		.store_id = s->store_id,
		.token = s->token,
		.ended = s->id ? 0 : s->ended_id,
		.born = s->id ? 0 : s->info.root.btime,
		.channel = (uint16_t)channel,
		.nchannels = (uint16_t)s->nchannels,
		.flags = (atomic_load(&s->read_only) ? ATTACH_READ_ONLY : 0) |
			 (s->exclusive ? ATTACH_EXCLUSIVE : 0) | (s->sharing ? ATTACH_SHARED : 0) |
			 (s->converts ? ATTACH_CONVERTS : 0),
		.wait_ms = wait_ms(s),
		.export_name = text(s->export_name),
		.client = text(s->client),
	};
	memcpy(attach->owner, s->owner.id, sizeof(attach->owner));
}

void session_set_read_only(struct session *s, bool read_only)
{
	atomic_store(&s->read_only, read_only);
	if (s->record)
		atomic_store(&record_head(s->record)->read_only, read_only);
	atomic_fetch_add(&s->keys, 1);
	log_info("server %s: the session %s", s->server,
		read_only ? "becomes read-only" : "is to write from now on");
}

/* Whether a channel had these keys. */
static bool had_keys(const struct session *s, unsigned keys)
{
	for (unsigned i = 0; i < s->nchannels; i++)
		if (atomic_load(&s->threads[i].keys_ready) == keys)
			return true;
	return false;
}

void session_may_not_write(struct session *s, unsigned keys, const char *why)
{
	pthread_mutex_lock(&s->lock);
	if (atomic_load(&s->keys) == keys && !atomic_load(&s->read_only) && !had_keys(s, keys)) {
		atomic_store(&s->read_only, true);
		if (s->record)
			atomic_store(&record_head(s->record)->read_only, true);
		atomic_fetch_add(&s->keys, 1);
		log_notice("server %s: the session stays read-only: %s", s->server, why);
	}
	pthread_mutex_unlock(&s->lock);
}

bool session_is_read_only(const struct session *s)
{
	return atomic_load(&s->read_only);
}

bool session_has_keys(const struct session *s)
{
	unsigned keys = atomic_load(&s->keys);

	for (unsigned i = 0; i < s->nchannels; i++)
		if (atomic_load(&s->threads[i].keys_ready) != keys)
			return false;
	return true;
}

static void first_attach(struct session *s, const struct rpc_attach_reply *reply,
	const struct channel_limits *limits)
{
	memcpy(s->store_id, reply->store_id, sizeof(s->store_id));
	memcpy(s->token, reply->token, sizeof(s->token));
	s->incarnation = reply->incarnation;
	s->info = (struct session_info){
		.npages = reply->npages,
		.lease_ms = reply->lease_ms,
		.root = reply->root,
	};
	s->limits = (struct io_limits){
		.max_sge_read = limits->max_sge_read,
		.max_sge_write = limits->max_sge_write,
		.max_work_bytes = limits->max_work_bytes,
	};
	paths_limit(s, &s->limits);
	s->id = reply->session;
}

/* The answer to a channel that joins or resumes the session, or begins another one in its place. */
static int session_attach_again(struct session *s, const struct rpc_attach_reply *reply,
	const struct channel_limits *limits, char *why, size_t whylen)
{
	if ((s->id && reply->session != s->id) ||
		memcmp(reply->store_id, s->store_id, sizeof(s->store_id)) != 0) {
		snprintf(why, whylen, "the server's memory was lost, this is another store");
		session_lose(s, why);
		return -ESTALE;
	}
	if (!paths_limits_suffice(s, limits)) {
		snprintf(why, whylen, "the connection grants less than the first one did");
		return -EPROTO;
	}
	pthread_mutex_lock(&s->lock);
	s->restarted |= reply->incarnation != s->incarnation;
	s->incarnation = reply->incarnation;
	pthread_mutex_unlock(&s->lock);
	if (!s->id)
		memcpy(s->token, reply->token, sizeof(s->token));
	s->id = reply->session;
	return 0;
}

/* ---- squash ---------------------------------------------------------------------------------- */

static uint64_t ids_of(const struct squash *squash)
{
	return (uint64_t)squash->anonuid << 32 | squash->anongid;
}

struct squash session_squash(const struct session *s)
{
	struct squash squash = {
		.kind = atomic_load_explicit(&s->squash_kind, memory_order_acquire)};
	uint64_t ids;

	if (squash.kind == SQUASH_NONE)
		return squash;
	ids = atomic_load_explicit(&s->squash_ids, memory_order_relaxed);
	squash.anonuid = (uint32_t)(ids >> 32);
	squash.anongid = (uint32_t)ids;
	return squash;
}

static void log_squash(const struct session *s, const struct squash *squash)
{
	if (squash->kind == SQUASH_NONE)
		log_notice("server %s: users of this mount are not squashed any more", s->server);
	else
		log_notice(
			squash->kind == SQUASH_ROOT
				? "server %s: root of this mount counts as user %u, group %u"
				: "server %s: each user of this mount counts as user %u, group %u",
			s->server, squash->anonuid, squash->anongid);
}

static void take_squash(struct session *s, const struct squash *squash)
{
	struct squash before;

	pthread_mutex_lock(&s->lock);
	before = session_squash(s);
	if (before.kind != squash->kind ||
		(squash->kind != SQUASH_NONE && ids_of(&before) != ids_of(squash))) {
		atomic_store_explicit(&s->squash_ids, ids_of(squash), memory_order_relaxed);
		atomic_store_explicit(&s->squash_kind, squash->kind, memory_order_release);
		log_squash(s, squash);
	}
	pthread_mutex_unlock(&s->lock);
}

int session_attached(struct session *s, const struct rpc_attach_reply *reply,
	const struct channel_limits *limits, char *why, size_t whylen)
{
	if (!reply->session || !reply->lease_ms) {
		snprintf(why, whylen, "the server's answer to ATTACH makes no sense");
		return -EPROTO;
	}
	if (reply->nregions > s->config.max_regions) {
		snprintf(why, whylen, "the export has %u regions, more than the %u we can reach",
			reply->nregions, s->config.max_regions);
		if (s->id)
			session_lose(s, why);
		return -E2BIG;
	}
	atomic_store(&s->nregions, reply->nregions);
	atomic_store_explicit(&s->lease_ms, reply->lease_ms, memory_order_relaxed);
	atomic_store_explicit(&s->lease_limit, reply->lease_limit, memory_order_relaxed);
	atomic_store_explicit(
		&s->quotas, reply->quotas ? reply->incarnation : 0, memory_order_relaxed);
	atomic_store_explicit(&s->server_timeout_ms, reply->peer_timeout_ms, memory_order_relaxed);
	if (s->id || s->ended_id) {
		int err = session_attach_again(s, reply, limits, why, whylen);

		if (err)
			return err;
	} else {
		first_attach(s, reply, limits);
	}
	take_squash(s, &reply->squash);
	return 0;
}

/* ---- the server's clock and the lease -------------------------------------------------------- */

/* Takes a sample of the offset if it is as good as ours, which the clocks' drift has aged. It also
 * takes one that proves ours wrong: then the server's clock was set. */
static void clock_sample(struct session *s, int64_t sent_ns, int64_t now_ns, int64_t server_time)
{
	int64_t error = (now_ns - sent_ns) / 2;
	int64_t offset = server_time - (sent_ns + error);
	int64_t old = atomic_load_explicit(&s->clock_offset_ns, memory_order_relaxed);
	int64_t aged =
		s->clock_error_ns + (now_ns - s->clock_sampled_ns) / 1000000 * CLOCK_DRIFT_PPM;

	if (s->clock_sampled_ns && error > aged && llabs(offset - old) <= error + aged)
		return;
	atomic_store_explicit(&s->clock_offset_ns, offset, memory_order_relaxed);
	s->clock_error_ns = error;
	s->clock_sampled_ns = now_ns;
}

void session_renew(struct session *s, int64_t sent_ns, int64_t server_time)
{
	int64_t sent_ms = sent_ns / 1000000;

	pthread_mutex_lock(&s->lock);
	clock_sample(s, sent_ns, clock_ns(CLOCK_BOOTTIME), server_time);
	if (sent_ms > atomic_load_explicit(&s->renewed_ms, memory_order_relaxed))
		atomic_store_explicit(&s->renewed_ms, sent_ms, memory_order_relaxed);
	pthread_mutex_unlock(&s->lock);
}

uint32_t session_ping_ms(const struct session *s)
{
	uint32_t lease_ms = atomic_load_explicit(&s->lease_ms, memory_order_relaxed);
	uint32_t server_ms = atomic_load_explicit(&s->server_timeout_ms, memory_order_relaxed);
	uint64_t silence_ms = s->peer_timeout_ms;

	if (server_ms)
		silence_ms = min_u64(silence_ms, server_ms);
	if (s->soft_ms)
		silence_ms = min_u64(silence_ms, s->soft_ms);
	return (uint32_t)min_u64(min_u64(silence_ms / 4, lease_ms / 3), PING_MAX_MS);
}

const struct session_info *session_info(const struct session *s)
{
	return &s->info;
}

int64_t session_time(const struct session *s)
{
	return clock_ns(CLOCK_BOOTTIME) +
	       atomic_load_explicit(&s->clock_offset_ns, memory_order_relaxed);
}

uint32_t session_lease_limit(const struct session *s)
{
	return atomic_load_explicit(&s->lease_limit, memory_order_relaxed);
}

uint32_t session_ttl_ms(const struct session *s)
{
	int64_t end = atomic_load_explicit(&s->renewed_ms, memory_order_relaxed) +
		      atomic_load_explicit(&s->lease_ms, memory_order_relaxed);
	int64_t left = end - now_ms();

	return left <= 0 || session_lost(s) || session_has_ended(s) ? 0 : (uint32_t)left;
}

uint32_t session_lease_ms(const struct session *s)
{
	return atomic_load_explicit(&s->lease_ms, memory_order_relaxed);
}

void session_leaves_unsafe(struct session *s)
{
	atomic_store(&s->unsafe, true);
}

uint64_t session_quotas(const struct session *s)
{
	return atomic_load_explicit(&s->quotas, memory_order_relaxed);
}

bool session_lost(const struct session *s)
{
	return atomic_load_explicit(&s->lost, memory_order_acquire);
}

/* ---- another one ----------------------------------------------------------------------------- */

void session_end(struct session *s, const char *why)
{
	if (atomic_exchange(&s->ended, true))
		return;
	log_warning("server %s: session lost: %s; another one is begun: open files fail once "
		    "with EIO, locked files until they are closed",
		s->server, why);
	pthread_mutex_lock(&s->lock);
	s->snapshot = s->freezing = s->thawed = 0;
	pthread_mutex_unlock(&s->lock);
}

bool session_has_ended(const struct session *s)
{
	return atomic_load_explicit(&s->ended, memory_order_acquire);
}

static uint64_t count_of(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void count_all(const struct session *s, struct rpc_counters *sum)
{
	*sum = (struct rpc_counters){0};
	for (unsigned i = 0; i < s->nchannels; i++) {
		const struct session_thread *t = &s->threads[i];

		sum->reads += count_of(&t->reads);
		sum->writes += count_of(&t->writes);
		sum->read_bytes += count_of(&t->read_bytes);
		sum->write_bytes += count_of(&t->write_bytes);
		sum->rpcs += count_of(&t->rpcs);
		sum->rpc_data_bytes += count_of(&t->rpc_data_bytes);
	}
}

void session_begin_anew(struct session *s)
{
	/* The record tells a successor of the session that has ended. */
	if (s->record)
		atomic_store(&record_head(s->record)->lives, RECORD_OUTDATED);
	count_all(s, &s->before);
	s->earlier = (struct rpc_counters){0};
	s->ended_id = s->id;
	s->id = 0;
	atomic_store_explicit(&s->ended, false, memory_order_release);
}

bool session_is_made(const struct session *s)
{
	return s->id != 0;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

/* Replies on several channels may overtake each other. So "no snapshot" is believed only of an
 * answer that was asked for after we had learned of the snapshot. */
void session_told_snapshot(struct session *s, uint64_t snapshot, bool frozen, int64_t sent_ns)
{
	if ((!snapshot && !session_snapshot(s)) || session_has_ended(s))
		return;
	pthread_mutex_lock(&s->lock);
	if (snapshot && snapshot >= s->snapshot) {
		if (snapshot != s->snapshot)
			s->snapshot_ns = clock_ns(CLOCK_BOOTTIME);
		s->snapshot = snapshot;
		if (frozen && snapshot != s->thawed)
			s->freezing = snapshot;
	} else if (!snapshot && sent_ns > s->snapshot_ns) {
		s->snapshot = s->freezing = 0;
	}
	pthread_mutex_unlock(&s->lock);
}

uint64_t session_snapshot(const struct session *s)
{
	return atomic_load_explicit(&s->snapshot, memory_order_acquire);
}

uint64_t session_freezing(const struct session *s)
{
	return atomic_load_explicit(&s->freezing, memory_order_acquire);
}

void session_thaw(struct session *s, uint64_t snapshot)
{
	pthread_mutex_lock(&s->lock);
	s->thawed = snapshot;
	if (s->freezing == snapshot)
		s->freezing = 0;
	pthread_mutex_unlock(&s->lock);
}

uint32_t session_nregions(const struct session *s)
{
	return atomic_load(&s->nregions);
}

void session_has_regions(struct session *s, uint32_t nregions)
{
	uint32_t had = atomic_load(&s->nregions);

	while (had < nregions && !atomic_compare_exchange_weak(&s->nregions, &had, nregions))
		;
}

uint64_t session_region_pages(const struct session *s)
{
	return atomic_load(&s->region_bytes) >> PAGE_SHIFT;
}

/* ---- what people are told -------------------------------------------------------------------- */

void session_lost_region(struct session *s, uint32_t region)
{
	if (!atomic_exchange(&s->loss_told, true))
		log_error("server %s: bytes of region %u are lost there: reads and writes of them "
			  "give EIO; the server's log names the file",
			s->server, region);
}

void session_lose(struct session *s, const char *why)
{
	if (!atomic_exchange(&s->lost, true))
		log_error("server %s: session lost: %s; %s", s->server, why,
			s->exit_when_lost ? "the mount ends, as exit_when_lost says"
					  : "every operation fails now, unmount and mount again");
}

void session_connect_failed(struct session *s, int err, const char *format, ...)
{
	va_list args;

	if (!s->connecting || s->connect_error)
		return;
	va_start(args, format);
	vsnprintf(s->connect_why, sizeof(s->connect_why), format, args);
	va_end(args);
	s->connect_error = err;
}

void session_tell_waiting(struct session *s, const char *why)
{
	if (!s->told_waiting)
		log_notice("%s; trying for %u s", why, (s->connect_timeout_ms + 999) / 1000);
	s->told_waiting = true;
	service_status("connecting: %s", why);
}

void session_channel_down(struct session *s, const char *why)
{
	pthread_mutex_lock(&s->lock);
	if (s->ndown++ == 0) {
		log_warning("server %s: connection lost: %s; reconnecting", s->server, why);
		s->nlosses++;
		snprintf(s->down_why, sizeof(s->down_why), "%s", why);
		s->down_ms = now_ms();
		s->complain_ms = s->down_ms + COMPLAIN_MS;
		s->restarted = s->refusal_told = false;
		s->again_why[0] = '\0';
	}
	pthread_mutex_unlock(&s->lock);
	scout_channel_lost(s);
}

void session_channel_back(struct session *s)
{
	int64_t pause;

	pthread_mutex_lock(&s->lock);
	if (--s->ndown == 0) {
		s->again_why[0] = '\0';
		pause = now_ms() - s->down_ms;
		log_notice("server %s: connected again after %lld.%lld s%s", s->server,
			(long long)pause / 1000, (long long)pause % 1000 / 100,
			s->restarted ? ", the server was restarted" : "");
	}
	pthread_mutex_unlock(&s->lock);
	scout_look_now(s);
}

enum session_health session_health(struct session *s, int64_t *since_ms)
{
	bool away;

	pthread_mutex_lock(&s->lock);
	away = s->ndown;
	*since_ms = s->down_ms;
	pthread_mutex_unlock(&s->lock);
	if (session_lost(s))
		return SESSION_LOST;
	return away ? SESSION_AWAY : SESSION_CONNECTED;
}

void session_complain(struct session *s, const char *why, bool refused)
{
	int64_t now = now_ms();

	pthread_mutex_lock(&s->lock);
	if (s->ndown)
		snprintf(s->again_why, sizeof(s->again_why), "%s", why);
	if (!s->complain_ms)
		s->complain_ms = now + COMPLAIN_MS;
	if (now >= s->complain_ms || (refused && !s->refusal_told)) {
		s->refusal_told |= refused;
		log_warning("server %s: still not connected: %s", s->server, why);
		s->complain_ms = now + COMPLAIN_MS;
	}
	pthread_mutex_unlock(&s->lock);
}

void session_totals(struct session *s, struct rpc_counters *totals)
{
	count_all(s, totals);
	rpc_counters_subtract(totals, &s->before);
	rpc_counters_add(totals, &s->earlier);
}
