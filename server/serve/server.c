/* server.c - builds the parts in the order that their rules demand, and runs them in one loop. */
#include "server/session/context.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "common/base/clock.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/service.h"
#include "common/base/util.h"
#include "server/access/access_report.h"
#include "server/access/authenticator.h"
#include "server/session/auth.h"
#include "server/session/conn.h"
#include "server/serve/control.h"
#include "server/serve/dispatch.h"
#include "server/session/peers.h"
#include "server/session/permit.h"
#include "server/session/places.h"
#include "server/serve/ports.h"
#include "server/serve/reload.h"
#include "server/serve/removals.h"
#include "server/recall/recall.h"
#include "server/session/session.h"
#include "server/snapshot/snapshot.h"
#include "server/serve/start.h"
#include "server/serve/stop.h"
#include "common/transport/kinds.h"

enum {
	EVENTS = 64,
	EVENTS_MAX = 1024, /* of one port, before its requests are run */
	GOODBYE_MS = 2000, /* time for the last replies to go out */
};

/* ---- descriptors of the loop ----------------------------------------------------------------- */

static int server_watch(struct server *s, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Those that end the server, and SIGHUP. */
static sigset_t signals_to_read(void)
{
	sigset_t set = signals_to_end();

	sigaddset(&set, SIGHUP);
	return set;
}

static int open_signals(struct server *s)
{
	sigset_t set = signals_to_read();

	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? -errno : server_watch(s, s->signal_fd);
}

static int watch_all(struct server *s)
{
	int err;

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	err = open_signals(s);
	if (!err)
		err = server_watch(s, meta_scrub_fd(s->meta));
	if (!err)
		err = server_watch(s, snapshot_fd(s));
	if (!err)
		err = server_watch(s, authenticator_fd(s->authenticator));
	if (!err)
		err = server_watch(s, reload_fd(s));
	for (unsigned i = 0; !err && i < s->nports; i++)
		err = server_watch(s, evq_fd(s->ports[i].q));
	if (!err)
		err = peers_restore(s);
	if (err)
		log_error("can't watch for events: %s", errno_text(err));
	return err;
}

/* ---- start and end --------------------------------------------------------------------------- */

static int open_meta(struct server *s)
{
	autofree struct meta_export *exports = calloc(s->exports->n, sizeof(*exports));
	struct meta_config config = {
		.dir = s->dir.store,
		.store_bytes = server_config_store_bytes(s->config),
		.exports = exports,
		.nexports = s->exports->n,
	};
	char why[512] = "";
	int err;

	if (!exports)
		return -ENOMEM;
	for (unsigned i = 0; i < s->exports->n; i++)
		start_describe(s->config, s->exports->v[i], &exports[i]);
	err = meta_open(&config, &s->meta, why, sizeof(why));
	if (err) {
		log_error("%s", why[0] ? why : errno_text(err));
		memdir_tell_remedy(&s->dir, err);
	}
	return err;
}

/* The loop reads signals from a descriptor. They are blocked also in the threads that start from
 * here on. */
static void block_signals(void)
{
	sigset_t set = signals_to_read();

	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Clients decide how many channels there are. The usual limit of 1024 is kept low for the sake of
 * select(2), which the server does not use. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void announce(struct server *s)
{
	uint32_t nregions = exports_nregions(s->exports);
	char names[1024];
	size_t at = 0;

	for (unsigned i = 0; i < s->nports && at < sizeof(names); i++)
		at += (size_t)snprintf(
			names + at, sizeof(names) - at, "%s%s", i ? ", " : "", s->ports[i].name);
	log_notice("ready: %u export%s, %u region%s, listening on %s", s->exports->n,
		s->exports->n == 1 ? "" : "s", nregions, nregions == 1 ? "" : "s", names);
	service_ready();
	control_tell_status(s);
}

static void init_lists(struct server *s)
{
	list_init(&s->sessions);
	list_init(&s->peers);
	list_init(&s->conns);
	list_init(&s->unattached);
	list_init(&s->visitors);
	list_init(&s->turns);
	list_init(&s->ready);
	list_init(&s->parked);
	list_init(&s->waiting);
	list_init(&s->auth_waiting);
	list_init(&s->strangers.waiting);
	list_init(&s->clients.waiting);
	list_init(&s->stalled);
}

static int open_store(struct server *s)
{
	int err = open_meta(s);

	if (err) {
		exports_discard_new(s->exports);
		return err;
	}
	CRASH_POINT("store.opened");
	err = exports_drop_surplus(s->exports, &s->dir);
	if (err)
		return err;
	err = memdir_bind_store(&s->dir, meta_store_id(s->meta), META_STORE_ID_BYTES);
	if (err)
		memdir_tell_remedy(&s->dir, err);
	return err;
}

static int start_meta(struct server *s)
{
	struct start_plan plan = {0};
	int err = start_plan_restore(s, &plan);

	if (err)
		exports_discard_new(s->exports);
	else
		err = open_store(s);
	if (!err)
		err = start_restore(s, &plan);
	start_plan_fini(&plan);
	if (err)
		return err;
	for (unsigned i = 0; i < s->exports->n; i++)
		s->exports->v[i]->reuse_allowed = meta_is_new(s->meta);
	return sessions_restore(s);
}

/* For a start that fails after it has made the memory. The next start finds the memory there, and
 * saves the time; but that may use another directory. */
static void tell_left(const struct server *s)
{
	if (s->meta && meta_is_new(s->meta))
		log_info("the memory that was made stays in %s for the next start: rm -r %s gives "
			 "it back",
			s->dir.path, s->dir.path);
}

/* Reads the keys, and is ready for handshakes. */
static int open_access(struct server *s)
{
	struct access_table *table;
	char why[512];
	int err = access_table_new(s->config, NULL, &table, why, sizeof(why));

	if (!err) {
		access_report_warn(table, s->config);
		access_current_init(&s->access, table);
		snprintf(why, sizeof(why), "out of memory");
		err = key_uses_renew(&s->key_uses, table, now_ms());
	}
	if (!err)
		err = authenticator_new(&s->access, &s->authenticator, why, sizeof(why));
	if (err)
		log_error("%s", why);
	return err;
}

/* Their clients are not let in either. */
static int drop_removed(struct server *s, struct server_config *config)
{
	struct access_table *table = NULL;
	char why[640] = "";
	int err = removals_start(config, &s->dir, false, why, sizeof(why));

	if (!err && config->marks.n)
		err = access_table_new(config, NULL, &table, why, sizeof(why));
	if (!err && table && permit_renew(s, table) < 0)
		err = -ENOMEM;
	if (err)
		log_error("%s", why[0] ? why : errno_text(err));
	return err;
}

int server_new(struct server_config *config, struct server **out)
{
	struct server *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->config = config;
	s->events = &control_events;
	s->epoll_fd = s->signal_fd = s->dir.lock_fd = -1;
	/* Sessions outlive a server, and know the last one's numbers. */
	s->incarnation = s->nasks = (uint64_t)realtime_ns();
	s->lease_ms = (uint32_t)(config->lease_time * 1000);
	s->lease_limit = (uint32_t)config->lease_limit;
	s->peer_timeout_ms = (uint32_t)(config->peer_timeout * 1000);
	s->reclaim = true;
	cpu_wait_init(&s->cpu);
	init_lists(s);
	block_signals();
	raise_descriptor_limit();
	err = open_access(s);
	if (!err)
		err = start_open_sets(s);
	if (!err)
		err = stop_new(s);
	if (!err)
		err = reload_new(s);
	if (!err)
		err = memdir_open(config->memory_dir, &s->dir);
	if (!err)
		err = drop_removed(s, config);
	if (!err)
		err = exports_new(config, &s->dir, &s->exports);
	if (!err)
		err = start_meta(s);
	if (!err)
		err = recalls_new(s);
	if (!err)
		err = snapshot_init(s);
	if (!err)
		err = ports_open(s);
	if (!err)
		err = watch_all(s);
	if (err) {
		tell_left(s);
		server_delete(s);
		return err;
	}
	s->start_ms = now_ms();
	sessions_expect(s);
	memdir_warn_of_logout(&s->dir);
	announce(s);
	*out = s;
	return 0;
}

/* Channels that are being fenced (shm: their process lives) have the regions and their transport
 * until this process ends, which is now. */
static void server_leave(struct server *s)
{
	/* Volatile, so that leak checkers see that everything is still reachable. */
	static struct server *volatile left;

	left = s;
	meta_close(left->meta);
}

void server_delete(struct server *s)
{
	conns_delete(s);
	reload_delete(s);
	authenticator_delete(s->authenticator);
	snapshot_end(s);
	if (s->nconns) {
		server_leave(s);
		return;
	}
	ports_close(s);
	sessions_delete(s);
	recalls_delete(s);
	peers_delete(s);
	if (s->meta)
		meta_close(s->meta);
	exports_delete(s->exports);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	start_close_sets(s);
	stop_delete(s);
	cpu_wait_fini(&s->cpu);
	access_current_fini(&s->access);
	key_uses_fini(&s->key_uses);
	/* The process keeps the lock: see memdir.h. */
	free(s);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int poll_some(struct port *port)
{
	struct event events[EVENTS];
	int n = evq_poll(port->q, events, EVENTS);

	if (n < 0)
		log_error("%s: the event queue is broken: %s", port->name, errno_text(n));
	for (int i = 0; i < n; i++) {
		if (events[i].type == EV_INCOMING)
			places_incoming(port, events[i].channel);
		else
			conn_event(channel_user(events[i].channel), &events[i]);
	}
	return n;
}

/* Reads from all clients that have sent something before the next turn is chosen. */
static int poll_port(struct port *port)
{
	int total = 0, n;

	do {
		n = poll_some(port);
		if (n < 0)
			return n;
		total += n;
	} while (n == EVENTS && total < EVENTS_MAX);
	return total;
}

/* Returns the number of events, or -errno. */
static int poll_ports(struct server *s)
{
	int total = 0;

	for (unsigned i = 0; i < s->nports; i++) {
		int n = poll_port(&s->ports[i]);

		if (n < 0)
			return n;
		total += n;
	}
	client_session_retry_stalled(s);
	return total;
}

/* Does everything that needs no waiting. 1: something was done; 0: nothing is left; or -errno. */
static int work(struct server *s)
{
	int events = poll_ports(s);
	bool more;

	if (events < 0)
		return events;
	more = dispatch_run(s);
	return events || more;
}

static void read_signals(struct server *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) {
		log_notice("SIGHUP: reloading");
		reload_begin(s);
		return;
	}
	log_notice("SIG%s: stopping", sigabbrev_np((int)info.ssi_signo));
	service_stopping("stopping");
	if (s->leaving)
		stop_cancel(s);
	else if (s->config->snapshot_on_stop && info.ssi_signo != SIGINT)
		stop_begin(s);
	else
		s->stopping = true;
	reload_stop(s);
}

static int sleep_until_event(struct server *s, int timeout_ms)
{
	struct epoll_event events[EVENTS];
	int busy, n;

	for (unsigned i = 0; i < s->nports; i++) {
		int err = evq_arm(s->ports[i].q);

		if (err)
			return err;
	}
	/* An event that came before the queues were armed would wake nobody. */
	busy = work(s);
	if (busy < 0)
		return busy;
	n = epoll_wait(s->epoll_fd, events, EVENTS, busy ? 0 : timeout_ms);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == s->signal_fd)
			read_signals(s);
		else if (events[i].data.fd == meta_scrub_fd(s->meta))
			s->reclaim = true;
		else if (events[i].data.fd == snapshot_fd(s))
			snapshot_event(s);
		else if (events[i].data.fd == authenticator_fd(s->authenticator))
			auth_event(s);
		else if (events[i].data.fd == reload_fd(s))
			reload_event(s);
		else
			peers_event(s, events[i].data.fd);
	}
	return 0;
}

/* Refuses new work, lets what was answered go out, and closes every channel in order. */
static int say_goodbye(struct server *s)
{
	int64_t until = now_ms() + GOODBYE_MS;

	places_close(s);
	for (unsigned i = 0; i < s->nports; i++) {
		listener_delete(s->ports[i].listener);
		s->ports[i].listener = NULL;
	}
	while (dispatch_pending(s))
		dispatch_run(s);
	conns_disconnect(s);
	while (conns_open(s) && now_ms() < until) {
		int err = sleep_until_event(s, (int)max_i64(1, until - now_ms()));

		if (err)
			return err;
	}
	return 0;
}

/* -1: never. */
static int server_sooner(int timeout_ms, int other_ms)
{
	return timeout_ms < 0 || other_ms < timeout_ms ? other_ms : timeout_ms;
}

int server_run(struct server *s)
{
	int err;

	while (!s->stopping) {
		int timeout_ms;

		err = work(s);
		if (err < 0)
			return err;
		timeout_ms = control_tick(s);
		if (s->leaving)
			timeout_ms = server_sooner(timeout_ms, stop_step(s));
		err = sleep_until_event(s, timeout_ms);
		if (err)
			return err;
	}
	err = say_goodbye(s);
	return err ? err : stop_error(s);
}
