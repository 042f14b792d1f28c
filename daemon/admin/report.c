#include "daemon/admin/report.h"

#include <jansson.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "daemon/admin/look.h"
#include "daemon/barrier/conversion.h"
#include "daemon/lock/local_locks.h"
#include "daemon/op/fs_parts.h"
#include "daemon/pages/grants.h"
#include "daemon/remote/session.h"
#include "daemon/request/counters.h"
#include "daemon/request/io_thread.h"

/* A server that answers is heard at each ping, several times in this time. */
enum { SILENT_MS = 3000 };

static json_t *json_u64(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* Names of files and servers need not be UTF-8. */
static json_t *json_text(const char *text)
{
	json_t *string = json_string(text);

	return string ? string : json_string("?");
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Pairs of a bound and the number below it that is not below the bound before; the last bound is
 * null. */
static json_t *describe_latency(const struct op_counters *c)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		uint64_t bound = latency_bound_ns(i);

		if (c->latency[i])
			json_array_append_new(
				array, json_pack("[o, o]",
					       bound == UINT64_MAX ? json_null() : json_u64(bound),
					       json_u64(c->latency[i])));
	}
	return array;
}

static json_t *describe_op(const struct op_counters *c)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "count", json_u64(c->n), "errors",
		json_u64(c->errors), "bytes", json_u64(c->bytes), "total_ns", json_u64(c->ns),
		"p50_ns", json_u64(latency_quantile_ns(c, 500)), "p99_ns",
		json_u64(latency_quantile_ns(c, 990)), "latency_ns", describe_latency(c));
}

static json_t *describe_ops(const struct io_thread *first)
{
	json_t *ops = json_object();

	for (int op = 0; op < OP_NOPS; op++) {
		struct op_counters sum = {0};

		for (unsigned i = 0; i < io_thread_siblings(first); i++)
			counters_sum(&sum, io_thread_counters(io_thread_sibling(first, i)),
				(enum request_op)op);
		if (sum.n)
			json_object_set_new(
				ops, request_op_name((enum request_op)op), describe_op(&sum));
	}
	return ops;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int64_t age_ms(const struct look_request *r, int64_t now_ns)
{
	return max_i64(0, now_ns - r->since_ns) / 1000000;
}

static json_t *describe_request(const struct look_request *r, unsigned thread, int64_t now_ns)
{
	json_t *request = json_pack("{s:s, s:i, s:o, s:o, s:o, s:s}", "operation",
		request_op_name(r->op), "thread", (int)thread, "inode", json_u64(r->ino), "pid",
		json_u64(r->pid), "age_ms", json_integer(age_ms(r, now_ns)), "waits_for",
		op_wait_name(r->wait));

	if (r->wait == OP_AT_RPC)
		json_object_set_new(request, "for_mounts", json_boolean(r->for_mounts));
	if (r->wait == OP_AT_RPC)
		json_object_set_new(request, "rpc", json_text(rpc_op_info(r->rpc)->name));
	return request;
}

static json_t *describe_requests(const struct look *looks, unsigned n, int64_t now_ns)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < looks[i].nlisted; k++)
			json_array_append_new(
				array, describe_request(&looks[i].requests[k], i, now_ns));
	return array;
}

/* How many callers wait, by what for: also those that are not listed. */
static json_t *describe_waiting(const struct look *looks, unsigned n)
{
	json_t *waiting = json_object();

	for (int wait = 0; wait < OP_WAITS; wait++) {
		const char *name = op_wait_name((enum op_wait)wait);
		uint64_t sum = (uint64_t)json_integer_value(json_object_get(waiting, name));

		for (unsigned i = 0; i < n; i++)
			sum += looks[i].nwaiting[wait];
		if (sum)
			json_object_set_new(waiting, name, json_u64(sum));
	}
	return waiting;
}

static int64_t oldest_ms(const struct look *looks, unsigned n, int64_t now_ns)
{
	int64_t ms = 0;

	for (unsigned i = 0; i < n; i++)
		if (looks[i].oldest_ns)
			ms = max_i64(ms, (now_ns - looks[i].oldest_ns) / 1000000);
	return ms;
}

/* ---- threads and connection ------------------------------------------------------------------ */

static json_t *describe_threads(const struct look *looks, unsigned n)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < n; i++) {
		const struct look *l = &looks[i];

		json_array_append_new(array,
			json_pack("{s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "answers",
				l->answered, "connected", l->remote.connected, "silent_ms",
				json_integer(l->remote.silent_ms), "rpcs", json_u64(l->remote.rpcs),
				"transfers", json_u64(l->remote.works), "requests",
				json_u64(l->nrequests), "lock_waits", json_u64(l->nlock_waits),
				"parked", json_u64(l->nparked)));
	}
	return array;
}

/* The worst that holds. *ms: for how long, as far as it is known. */
static const char *mount_state_name(const struct fs *fs, const struct session_view *session,
	const struct look *looks, unsigned n, int64_t *ms)
{
	unsigned connected = 0, stopped = 0;
	int64_t silent_ms = 0;

	for (unsigned i = 0; i < n; i++) {
		stopped += !looks[i].answered;
		connected += looks[i].remote.connected;
		silent_ms = max_i64(silent_ms, looks[i].remote.silent_ms);
	}
	*ms = 0;
	if (session->lost)
		return "lost";
	if (stopped)
		return "stopped";
	if (fs_is_renewing(fs) || !session->id)
		return "renewing";
	*ms = session->down_ms ? now_ms() - session->down_ms : silent_ms;
	if (session->down_ms)
		return "reconnecting";
	if (silent_ms >= SILENT_MS && connected)
		return "silent";
	*ms = 0;
	return connected ? "connected" : "connecting";
}

/* Of the thread that lacked it most. */
static json_t *describe_cpu(const struct look *looks, unsigned n)
{
	const struct cpu_wait_view *worst = &looks[0].cpu;

	for (unsigned i = 1; i < n; i++) {
		const struct cpu_wait_view *cpu = &looks[i].cpu;

		if (cpu->starved > worst->starved ||
			(cpu->starved == worst->starved && cpu->npauses > worst->npauses))
			worst = cpu;
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:o}", "span_ms",
		json_integer(worst->span_ms), "wait_ms",
		worst->known ? json_integer(worst->wait_ms) : json_null(), "total_wait_ms",
		worst->known ? json_integer(worst->total_wait_ms) : json_null(), "late_ms",
		json_integer(worst->late_ms), "throttled", (int)worst->throttled, "starved",
		(int)worst->starved, "pauses", json_u64(worst->npauses), "recent_pauses",
		json_u64(worst->recent_pauses), "longest_pause_ms",
		json_integer(worst->longest_pause_ms));
}

static json_t *describe_session(const struct session *s, const struct session_view *view)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "id", json_u64(view->id),
		"lease_ms", json_u64(session_lease_ms(s)), "losses", json_u64(view->nlosses),
		"last_loss", *view->why ? json_text(view->why) : json_null(), "last_attempt",
		*view->again_why ? json_text(view->again_why) : json_null(), "read_only",
		view->read_only, "squashed", view->squashed);
}

/* ---- all ------------------------------------------------------------------------------------- */

static const char *cache_name(enum cache_mode mode)
{
	static const char *const names[] = {
		[CACHE_NONE] = "none", [CACHE_SHARED] = "shared", [CACHE_EXCLUSIVE] = "exclusive"};

	return names[mode];
}

static const char *ack_name(enum ack_mode mode)
{
	return mode == ACK_LOCAL ? "local" : "remote";
}

static const char *names_name(enum names_mode mode)
{
	return mode == NAMES_LOCAL ? "local" : "remote";
}

/* How long ago a program was told ENOSPC; null: never. */
static json_t *describe_no_room(const struct io_thread *first)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < io_thread_siblings(first); i++)
		last = max_u64(
			last, counters_no_room_ms(io_thread_counters(io_thread_sibling(first, i))));
	return last ? json_u64((uint64_t)now_ms() - last) : json_null();
}

static json_t *describe_options(const struct fs *fs)
{
	const struct fs_options *options = &fs->options;
	const struct session_options *session = &options->session;
	bool verbs = session->auto_transport ? !session->without_verbs
					     : session->transport == TRANSPORT_VERBS;

	return json_pack("{s:b, s:b, s:s, s:s, s:s, s:o, s:o, s:b}", "share",
		(int)atomic_load(&fs->sharing), "exclusive", (int)session->exclusive, "cache",
		cache_name(options->cache), "ack", ack_name(options->ack), "names",
		names_name(options->names), "io_threads", json_u64(session->io_threads), "soft_ms",
		json_u64(session->soft_ms), "verbs", verbs);
}

/* Those that the mount answers by itself; null: the kernel has them, or the server. */
static json_t *describe_locks(const struct fs *fs)
{
	if (!local_locks_are_kept(fs))
		return json_null();
	return json_pack("{s:o, s:o}", "had", json_u64(atomic_load(&fs->locks->nlocal)), "waits",
		json_u64(atomic_load(&fs->locks->nlocal_waits)));
}

static json_t *describe_sharing(struct fs *fs)
{
	struct conversion_view view;

	conversion_look(fs, &view);
	return json_pack("{s:o, s:o, s:b, s:i}", "begun", json_u64(view.nbegun), "ended",
		json_u64(view.nended), "under_way", (int)view.under_way, "keep_out",
		(int)view.nkeep_out);
}

static void describe_mount(
	const struct mount_facts *facts, const struct session_view *session, json_t *to)
{
	struct fs *fs = facts->fs;

	json_object_set_new(to, "version", json_string(RMEMFS_VERSION));
	json_object_set_new(to, "pid", json_u64((uint64_t)getpid()));
	json_object_set_new(to, "connection", json_u64(facts->connection));
	json_object_set_new(to, "mountpoint", json_text(fs->options.session.mountpoint));
	json_object_set_new(to, "source", json_text(facts->source));
	json_object_set_new(to, "server", json_text(session_server(fs->session)));
	json_object_set_new(to, "transport",
		json_string(transport_kind_name(session_address(fs->session)->kind)));
	json_object_set_new(to, "no_verbs", json_text(session->no_verbs));
	json_object_set_new(to, "protection", json_text(session_protection(fs->session)));
	json_object_set_new(to, "wire_version", json_integer(wire_version()));
	json_object_set_new(to, "mounted", json_integer(facts->mounted_s));
	json_object_set_new(to, "mounted_ms", json_integer(now_ms() - facts->mounted_ms));
	json_object_set_new(to, "options", describe_options(fs));
	json_object_set_new(to, "sharing", describe_sharing(fs));
}

char *report_text(const struct mount_facts *facts, struct looks *looks, unsigned limit_ms)
{
	struct fs *fs = facts->fs;
	struct session_view session;
	const struct look *look;
	json_t *root = json_object();
	int64_t state_ms, now_ns;
	unsigned n;
	char *text;

	look = looks_take(looks, limit_ms, &n);
	now_ns = clock_ns(CLOCK_BOOTTIME);
	session_look(fs->session, &session);
	describe_mount(facts, &session, root);
	json_object_set_new(
		root, "state", json_string(mount_state_name(fs, &session, look, n, &state_ms)));
	json_object_set_new(root, "state_ms", json_integer(state_ms));
	json_object_set_new(root, "session", describe_session(fs->session, &session));
	json_object_set_new(root, "granted", json_u64(grants_count(fs->grants) * PAGE_BYTES));
	json_object_set_new(root, "cpu", describe_cpu(look, n));
	json_object_set_new(root, "threads", describe_threads(look, n));
	json_object_set_new(root, "oldest_request_ms", json_integer(oldest_ms(look, n, now_ns)));
	json_object_set_new(root, "no_room_ms", describe_no_room(facts->first));
	json_object_set_new(root, "locks", describe_locks(fs));
	json_object_set_new(root, "waiting", describe_waiting(look, n));
	json_object_set_new(root, "requests", describe_requests(look, n, now_ns));
	json_object_set_new(root, "operations", describe_ops(facts->first));
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return text;
}
