/* daemon.c - see daemon.h. */
#include "daemon/mount/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/sandbox/sandbox.h"
#include "daemon/admin/control.h"
#include "daemon/mount/cpu_latency.h"
#include "daemon/mount/mountpoint.h"
#include "daemon/serve/fs.h"
#include "daemon/serve/threads.h"

void daemon_init(struct daemon *d, int argc, char *const *argv)
{
	*d = (struct daemon){.argc = argc,
		.argv = argv,
		.signal_fd = -1,
		.report = -1,
		.latency_fd = -1,
		.taker = -1};
}

/* ---- options --------------------------------------------------------------------------------- */

/* With sync or dirsync a name that was made has to be at the server. */
static enum names_mode names_of(const struct options *options)
{
	bool waits = options->sync || options->dirsync;

	return waits ? NAMES_REMOTE : (enum names_mode)options->config.names;
}

static bool is_exclusive(const struct client_config *config)
{
	return !config->share && (config->exclusive || config->cache == CACHE_EXCLUSIVE);
}

void daemon_set_options(struct fs_options *fs, const struct options *options)
{
	const struct client_config *config = &options->config;
	struct session_options *session = &fs->session;

	session->source = options->source;
	session->auto_transport = config->transport == TRANSPORT_AUTO;
	if (!session->auto_transport)
		session->transport = (enum transport_kind)config->transport;
	session->port = (unsigned)config->port;
	session->key_file = config->key;
	session->protection = config->protection;
	session->read_only = options->read_only;
	session->sharing = config->share;
	session->exit_when_lost = config->exit_when_lost;
	session->converts = !config->share && !is_exclusive(config);
	session->exclusive = is_exclusive(config);
	fs->cache = config->share ? CACHE_NONE : (enum cache_mode)config->cache;
	fs->ack = (enum ack_mode)config->ack;
	fs->names = names_of(options);
	fs->access = options->access;
	fs->nodiratime = options->nodiratime;
	session->connect_timeout_ms = (unsigned)config->connect_timeout * 1000;
	session->peer_timeout_ms = (unsigned)config->peer_timeout * 1000;
	session->soft_ms = config->soft ? (unsigned)config->timeo * 1000 : 0;
	fs->interrupt_wait_ms = (unsigned)config->interrupt_wait * 1000;
	fs->debug_io = config->debug_io;
	session->io_threads = (unsigned)config->io_threads;
	fs->buffers = (unsigned)config->buffers;
	fs->merge_pages = (unsigned)config->merge_pages;
	/* No other process may know it: a peer that names it and the owner ends the session. */
	if (getrandom(&session->instance, sizeof(session->instance), 0) !=
		sizeof(session->instance))
		session->instance = (uint64_t)realtime_ns();
}

/* ---- rights and signals ---------------------------------------------------------------------- */

/* Registered memory counts against this limit. */
static void raise_memlock_limit(void)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	if (setrlimit(RLIMIT_MEMLOCK, &limit) == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &limit);
}

/* All threads inherit the mask, so that signals come by the descriptor alone. */
static int catch_signals(struct daemon *d)
{
	signal(SIGPIPE, SIG_IGN);
	/* Daemons reload at it, and a mount has nothing to reload. A terminal that goes away ends
	 * no mount. */
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&d->signals);
	sigaddset(&d->signals, SIGTERM);
	sigaddset(&d->signals, SIGINT);
	sigprocmask(SIG_BLOCK, &d->signals, NULL);
	d->signal_fd = signalfd(-1, &d->signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->signal_fd < 0) {
		snprintf(d->why, sizeof(d->why), "cannot wait for signals: %s", errno_text(errno));
		return -errno;
	}
	return 0;
}

int daemon_prepare(struct daemon *d)
{
	int err = catch_signals(d);

	if (err)
		return err;
	sandbox_drop_capabilities();
	raise_memlock_limit();
	connection_guard_start(&d->survivor);
	return 0;
}

void daemon_leave(struct daemon *d)
{
	connection_guard_stop(&d->survivor);
	close(steal_fd(&d->signal_fd));
}

/* ---- the filesystem and its threads ---------------------------------------------------------- */

int daemon_open(struct daemon *d, const struct options *options)
{
	const struct client_config *config = &options->config;
	const struct spinning spinning = {
		(unsigned)config->spin_us, (unsigned)config->spin_readers};
	int err;

	err = fs_open(&d->fs_options, &d->fs, d->why, sizeof(d->why));
	if (err)
		return err;
	err = io_threads_new(
		d->fs_options.session.io_threads, d->fs_options.buffers, &spinning, &d->threads);
	if (err) {
		snprintf(d->why, sizeof(d->why), "cannot set up the I/O threads: %s",
			errno_text(err));
		fs_close(d->fs);
		return err;
	}
	err = io_threads_attach(d->threads, d->fs, d->why, sizeof(d->why));
	if (err) {
		fs_close(d->fs);
		io_threads_delete(d->threads);
	}
	return err;
}

void daemon_close(struct daemon *d)
{
	io_threads_detach(d->threads);
	fs_close(d->fs);
	io_threads_delete(d->threads);
}

/* ---- beside the mount ------------------------------------------------------------------------ */

/* Without the guard all is well, as long as nobody kills the daemon. */
void daemon_watch(struct daemon *d)
{
	int err = mountpoint_connection(d->fs_options.session.mountpoint, &d->connection);

	if (!err)
		err = connection_guard_watch(&d->survivor, d->connection, NULL);
	if (err)
		log_info("%s: should this process be killed, umount -f may be needed: the kernel's "
			 "connection cannot be aborted: %s",
			d->fs_options.session.mountpoint, errno_text(err));
}

void daemon_keep_awake(struct daemon *d, const struct options *options)
{
	if (options->config.low_latency)
		d->latency_fd = cpu_latency_hold();
}

void daemon_let_sleep(struct daemon *d)
{
	if (d->latency_fd >= 0)
		close(d->latency_fd);
	d->latency_fd = -1;
}

void daemon_can_be_asked(struct daemon *d, const struct options *options)
{
	const struct mount_facts facts = {
		.fs = d->fs,
		.first = io_threads_thread(d->threads, 0),
		.source = options->source_text,
		.connection = d->connection,
		.mounted_s = realtime_ns() / 1000000000,
		.mounted_ms = now_ms(),
	};

	if (d->connection)
		d->control = control_start(&facts);
	if (d->control)
		connection_guard_watch(&d->survivor, d->connection, control_socket_id(d->control));
}
