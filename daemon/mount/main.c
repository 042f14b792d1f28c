/* main.c - rmemfs: parse, build, run, unwind.
 *
 * main starts the I/O threads (serve/threads.c) and waits for their end, or for a signal, which
 * unmounts. The threads end when the mount is gone. A child (connection_guard.h) is there in case
 * the process is killed.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/auth/auth_memory.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/service.h"
#include "common/base/util.h"
#include "common/rpc/wire_version.h"
#include "common/sandbox/sandbox.h"
#include "daemon/mount/background.h"
#include "daemon/admin/control.h"
#include "daemon/serve/fs.h"
#include "daemon/fuse/port.h"
#include "daemon/serve/threads.h"
#include "daemon/mount/cpu_latency.h"
#include "daemon/mount/exit_status.h"
#include "daemon/mount/mountpoint.h"
#include "daemon/mount/options.h"
#include "daemon/mount/service_report.h"
#include "daemon/mount/connection_guard.h"

enum {
	WHY_BYTES = 1000, /* and a line of background.c's */
	RESOLVE_AGAIN_MS = 500,
	LOOK_MS = 1000,         /* nothing wakes main for what threads and session do */
	UNMOUNT_GRACE_MS = 100, /* for the kernel to end the connection, unless files are open */
};

struct daemon {
	struct fs_options fs_options;
	struct fs *fs;
	struct io_threads *threads;
	struct fuse_port *port;
	struct survivor survivor;
	unsigned connection; /* the kernel's number; 0: not known */
	struct control *control;
	sigset_t signals;
	int signal_fd;
	int report;     /* -1: in the foreground */
	int latency_fd; /* -1: not held */
	bool told_waiting, told_stopping;
	bool lost; /* it ends since the session is lost */
	char why[WHY_BYTES];
};

/* ---- building -------------------------------------------------------------------------------- */

static void set_fs_options(struct fs_options *fs, const struct options *options)
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
	session->exclusive = !config->share && config->cache == CACHE_EXCLUSIVE;
	fs->cache = config->share ? CACHE_NONE : (enum cache_mode)config->cache;
	fs->ack = (enum ack_mode)config->ack;
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
static int main_catch_signals(struct daemon *d)
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

/* Nothing is mounted yet: a signal may simply end the process. */
static int connect_session(struct daemon *d)
{
	int err;

	service_status("connecting to server %s", fs_server(d->fs));
	sigprocmask(SIG_UNBLOCK, &d->signals, NULL);
	err = fs_connect(d->fs, d->why, sizeof(d->why));
	sigprocmask(SIG_BLOCK, &d->signals, NULL);
	return err;
}

/* Flags that libfuse does not know. Those about access times do nothing in the kernel: mount(8)
 * shows them, and gives them back with mount -o remount. */
static int main_set_flags(struct daemon *d, const struct options *options)
{
	unsigned long flags = options_flags(options);
	bool to_be_seen = flags & (MS_STRICTATIME | MS_NODIRATIME);

	if (!options->nosymfollow && (!to_be_seen || geteuid() != 0))
		return 0;
	return mountpoint_set_flags(
		d->fs_options.session.mountpoint, flags, d->why, sizeof(d->why));
}

/* Without the guard all is well, as long as nobody kills the daemon. */
static void main_watch(struct daemon *d)
{
	int err = mountpoint_connection(d->fs_options.session.mountpoint, &d->connection);

	if (!err)
		err = connection_guard_watch(&d->survivor, d->connection, NULL);
	if (err)
		log_info("%s: should this process be killed, umount -f may be needed: the kernel's "
			 "connection cannot be aborted: %s",
			d->fs_options.session.mountpoint, errno_text(err));
}

/* The CPUs may sleep again. */
static void let_sleep(struct daemon *d)
{
	if (d->latency_fd >= 0)
		close(d->latency_fd);
	d->latency_fd = -1;
}

/* Nothing here needs an answer from the mount: no thread runs yet. */
static int finish_mount(struct daemon *d, const struct options *options)
{
	int err = main_set_flags(d, options);

	if (err)
		return err;
	mountpoint_set_readahead(
		d->fs_options.session.mountpoint, (unsigned)(options->config.readahead >> 10));
	if (options->config.low_latency)
		d->latency_fd = cpu_latency_hold();
	main_watch(d);
	return 0;
}

static void main_can_be_asked(struct daemon *d, const struct options *options)
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

/* The threads start last, so a program that gets an answer finds the mount as it will stay. */
static int mount_and_start(struct daemon *d, const struct options *options)
{
	const struct fuse_wishes wishes = {
		.write_back = d->fs_options.cache == CACHE_EXCLUSIVE,
		.sharing = d->fs_options.session.sharing,
		.ids = fs_squashes(d->fs),
	};
	struct fs_features features;
	int err;

	mountpoint_drop_dead(d->fs_options.session.mountpoint);
	err = fuse_port_mount(options->source_text, d->fs_options.session.mountpoint,
		options->mount_options, &d->port, d->why, sizeof(d->why));
	if (err)
		return err;
	err = fuse_port_init(d->port, &wishes, &features, d->why, sizeof(d->why));
	if (err)
		goto err_mounted;
	fs_set_features(d->fs, &features);
	err = finish_mount(d, options);
	if (err)
		goto err_mounted;
	err = io_threads_start(d->threads, d->port, d->why, sizeof(d->why));
	if (err)
		goto err_started;
	main_can_be_asked(d, options);
	return 0;

err_started:
	io_threads_stop(d->threads);
	io_threads_join(d->threads);
err_mounted:
	let_sleep(d);
	fuse_port_unmount(d->port);
	return err;
}

/* From the server's address to the mount. */
static int build(struct daemon *d, const struct options *options)
{
	const struct client_config *config = &options->config;
	const struct spinning spinning = {
		(unsigned)config->spin_us, (unsigned)config->spin_readers};
	int err;

	err = fs_open(&d->fs_options, &d->fs, d->why, sizeof(d->why));
	if (err)
		return err;
	err = io_threads_new(
		(unsigned)config->io_threads, (unsigned)config->buffers, &spinning, &d->threads);
	if (err) {
		snprintf(d->why, sizeof(d->why), "cannot set up the I/O threads: %s",
			errno_text(err));
		fs_close(d->fs);
		return err;
	}
	err = io_threads_attach(d->threads, d->fs, d->why, sizeof(d->why));
	if (err)
		goto err_threads;
	err = connect_session(d);
	if (err)
		goto err_attached;
	err = mount_and_start(d, options);
	if (err)
		goto err_connected;
	return 0;

err_connected:
	/* Otherwise the export would be taken until the server notices. */
	fs_disconnect(d->fs);
err_attached:
	io_threads_detach(d->threads);
err_threads:
	fs_close(d->fs);
	io_threads_delete(d->threads);
	if (d->port)
		fuse_port_delete(steal_ptr(&d->port));
	return err;
}

/* The server's name can't be resolved now. Nothing is mounted yet: a signal may end the process. */
static void wait_for_name(struct daemon *d)
{
	if (!d->told_waiting)
		log_notice("%s; trying for %u s", d->why,
			d->fs_options.session.connect_timeout_ms / 1000);
	d->told_waiting = true;
	service_status("connecting: %s", d->why);
	sigprocmask(SIG_UNBLOCK, &d->signals, NULL);
	poll(NULL, 0, RESOLVE_AGAIN_MS);
	service_tick(now_ms(), true);
	sigprocmask(SIG_BLOCK, &d->signals, NULL);
}

static bool may_try_again(const struct daemon *d, int err)
{
	return (err == -ERESTART || err == -EAGAIN) &&
	       now_ms() < d->fs_options.session.connect_until_ms;
}

/* The export demands more than verbs protects. */
static bool takes_tcp_instead(struct daemon *d, int err)
{
	struct session_options *session = &d->fs_options.session;

	if (err != -EPROTONOSUPPORT || !session->auto_transport || session->without_verbs)
		return false;
	log_notice("%s: transport=auto takes tcp", d->why);
	session->without_verbs = true;
	return true;
}

static int main_start(struct daemon *d, const struct options *options)
{
	int err = main_catch_signals(d);

	if (err)
		return err;
	sandbox_drop_capabilities();
	raise_memlock_limit();
	connection_guard_start(&d->survivor);
	/* build() runs again, too, if another transport leads to the server now. */
	d->fs_options.session.connect_until_ms =
		now_ms() + d->fs_options.session.connect_timeout_ms;
	while (takes_tcp_instead(d, err = build(d, options)) || may_try_again(d, err))
		if (err == -EAGAIN)
			wait_for_name(d);
	if (err) {
		connection_guard_stop(&d->survivor);
		close(d->signal_fd);
	}
	return err;
}

/* ---- running --------------------------------------------------------------------------------- */

/* A set-user-id program is as good as the server that it comes from. */
static void warn_of_rights(struct daemon *d, const struct options *options)
{
	bool rights = options->suid == PERMISSION_GIVEN || options->dev == PERMISSION_GIVEN;

	if (rights && !options->config.key &&
		transport_kind_of(fs_transport(d->fs)) != TRANSPORT_SHM)
		log_warning("set-user-id programs and device files work that come from a server "
			    "which proves no key: mount with key=FILE, or without suid and dev");
}

static void tell_ready(struct daemon *d, const struct options *options)
{
	/* The standard error of mount(8) is its caller's, and the caller expects it to end with
	 * mount. */
	if (d->report >= 0)
		background_leave(!options->helper);
	sandbox_enter_mount();
	log_info("%s is mounted on %s over %s%s", options->source_text,
		d->fs_options.session.mountpoint, fs_server(d->fs), fs_protection_note(d->fs));
	warn_of_rights(d, options);
	/* In the background only the exit status tells the caller. */
	if (d->report >= 0)
		background_ready(d->report);
	else
		service_ready();
}

/* Once, at the first sign of the end. */
static void tell_stopping(struct daemon *d)
{
	if (d->told_stopping)
		return;
	service_stopping("unmounting %s", d->fs_options.session.mountpoint);
	d->told_stopping = true;
}

static void unmount(struct daemon *d)
{
	tell_stopping(d);
	fuse_port_unmount(d->port);
	fuse_port_disconnected(d->port, UNMOUNT_GRACE_MS);
	io_threads_stop(d->threads);
}

static void read_signal(struct daemon *d)
{
	struct signalfd_siginfo info;
	ssize_t n = read(d->signal_fd, &info, sizeof(info));

	if (n != (ssize_t)sizeof(info))
		return;
	log_info("signal %u: unmounting %s", info.ssi_signo, d->fs_options.session.mountpoint);
	unmount(d);
}

/* Unless the mount ends for another reason. The mount stays, without a daemon, until the next one
 * takes its place: programs get ENOTCONN, and write nothing into the directory below it. */
static void leave_if_lost(struct daemon *d)
{
	int64_t since_ms;

	if (d->told_stopping || fuse_port_gone(d->port) ||
		fs_health(d->fs, &since_ms) != SESSION_LOST)
		return;
	d->lost = true;
	tell_stopping(d);
	fuse_port_leave(d->port);
	io_threads_stop(d->threads);
}

static void wait_for_end(struct daemon *d)
{
	struct service_report report = {
		.fs = d->fs,
		.threads = d->threads,
		.mountpoint = d->fs_options.session.mountpoint,
		.soft = d->fs_options.session.soft_ms,
		.standing = -1,
	};
	bool may_exit = d->fs_options.session.exit_when_lost;
	int timeout_ms = service_is_open() || may_exit ? LOOK_MS : -1;
	struct pollfd fds[2] = {
		{.fd = io_threads_ended_fd(d->threads), .events = POLLIN},
		{.fd = d->signal_fd, .events = POLLIN},
	};

	while (!(fds[0].revents & POLLIN)) {
		if (!d->told_stopping)
			service_report_tick(&report);
		if (poll(fds, 2, timeout_ms) < 0)
			continue;
		if (fds[1].revents & POLLIN)
			read_signal(d);
		if (may_exit)
			leave_if_lost(d);
	}
}

static void main_finish(struct daemon *d)
{
	tell_stopping(d);
	io_threads_join(d->threads);
	control_stop(d->control);
	fs_stop_telling(d->fs, d->port);
	io_threads_detach(d->threads);
	fs_close(d->fs);
	io_threads_delete(d->threads);
	control_delete(d->control);
	fuse_port_delete(d->port);
	connection_guard_stop(&d->survivor);
	close(d->signal_fd);
	let_sleep(d);
	log_info("%s is unmounted", d->fs_options.session.mountpoint);
}

/* Whether another try may succeed: there was no server, or other clients have the export. */
static bool may_succeed_later(int err)
{
	switch (err) {
	case -EAGAIN:
	case -EBUSY:
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -ENETUNREACH:
	case -ENODEV:
	case -ERESTART:
	case -ETIMEDOUT:
	case -EUSERS:
		return true;
	default:
		return false;
	}
}

static int main_run(struct daemon *d, const struct options *options)
{
	int err = main_start(d, options);

	if (err) {
		if (d->report >= 0)
			background_failed(d->report, d->why);
		else
			log_complaint("rmemfs", d->why);
		service_failed(err, d->why);
		return may_succeed_later(err) ? MOUNT_AGAIN : MOUNT_FAILED;
	}
	tell_ready(d, options);
	wait_for_end(d);
	main_finish(d);
	return d->lost ? MOUNT_AGAIN : MOUNT_DONE;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int enter_namespace(struct daemon *d, const struct options *options)
{
	if (!options->mount_namespace)
		return 0;
	return mountpoint_enter_namespace(options->mount_namespace, d->why, sizeof(d->why));
}

static int find_place(struct daemon *d, const struct options *options)
{
	return mountpoint_resolve(options->mountpoint_text, !options->fake,
		d->fs_options.session.mountpoint, sizeof(d->fs_options.session.mountpoint), d->why,
		sizeof(d->why));
}

static int remount(struct daemon *d, const struct options *options)
{
	if (options->fake)
		return 0;
	return mountpoint_remount(options->mountpoint_text, options_flags(options),
		options_kept_flags(options), d->why, sizeof(d->why));
}

static int run_options(struct options *options)
{
	struct daemon d = {.report = -1, .latency_fd = -1};
	int err;

	log_init("rmemfs", options->config.log_level);
	/* In the background this process is no service, whatever its caller is. */
	if (options->foreground)
		service_open();
	err = enter_namespace(&d, options);
	if (!err)
		err = options->remount ? remount(&d, options) : find_place(&d, options);
	if (err) {
		log_complaint("rmemfs", d.why);
		service_failed(err, d.why);
		return MOUNT_FAILED;
	}
	if (options->fake || options->remount)
		return MOUNT_DONE;
	set_fs_options(&d.fs_options, options);
	if (!options->foreground) {
		d.report = background_fork();
		if (d.report < 0) {
			snprintf(d.why, sizeof(d.why), "cannot fork: %s", errno_text(d.report));
			log_complaint("rmemfs", d.why);
			return MOUNT_SYSTEM;
		}
	}
	return main_run(&d, options);
}

int main(int argc, char **argv)
{
	struct options options;
	char why[WHY_BYTES] = "out of memory";
	int status = MOUNT_DONE, err;

	background_hold_standard_fds();
	auth_memory_init();
	err = options_parse(argc, argv, CLIENT_CONFIG_PATH, &options, why, sizeof(why));
	if (err) {
		log_complaint("rmemfs", why);
		status = err == -ENOMEM ? MOUNT_SYSTEM : MOUNT_USAGE;
	} else if (options.help) {
		fputs(options_help, stdout);
	} else if (options.version) {
		printf("rmemfs %s (wire protocol %u)\n", RMEMFS_VERSION, wire_version());
	} else {
		status = run_options(&options);
	}
	options_fini(&options);
	return status;
}
