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
#include "daemon/mount/daemon.h"
#include "daemon/mount/exit_status.h"
#include "daemon/mount/give_over.h"
#include "daemon/mount/mountpoint.h"
#include "daemon/mount/options.h"
#include "daemon/mount/revival.h"
#include "daemon/mount/service_report.h"
#include "daemon/mount/take_over.h"

enum {
	RESOLVE_AGAIN_MS = 500,
	LOOK_MS = 1000,         /* nothing wakes main for what threads and session do */
	TAKER_MS = 60000,       /* for a new daemon to prepare itself */
	UNMOUNT_GRACE_MS = 100, /* for the kernel to end the connection, unless files are open */
};

/* ---- building -------------------------------------------------------------------------------- */

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

/* Nothing here needs an answer from the mount: no thread runs yet. */
static int finish_mount(struct daemon *d, const struct options *options)
{
	int err = main_set_flags(d, options);

	if (err)
		return err;
	mountpoint_set_readahead(
		d->fs_options.session.mountpoint, (unsigned)(options->config.readahead >> 10));
	daemon_keep_awake(d, options);
	daemon_watch(d);
	return 0;
}

/* The threads start last, so a program that gets an answer finds the mount as it will stay. */
static int mount_and_start(struct daemon *d, const struct options *options)
{
	const struct fuse_wishes wishes = {
		.write_back = d->fs_options.cache == CACHE_EXCLUSIVE,
		.sharing = d->fs_options.session.sharing || d->fs_options.session.converts,
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
	revival_consider(d, options);
	err = finish_mount(d, options);
	if (err)
		goto err_mounted;
	err = io_threads_start(d->threads, d->port, d->why, sizeof(d->why));
	if (err)
		goto err_started;
	revival_keep(d, options->mountpoint_text);
	daemon_can_be_asked(d, options);
	return 0;

err_started:
	io_threads_stop(d->threads);
	io_threads_join(d->threads);
err_mounted:
	daemon_let_sleep(d);
	fuse_port_unmount(d->port);
	return err;
}

/* From the server's address to the mount. */
static int build(struct daemon *d, const struct options *options)
{
	int err = daemon_open(d, options);

	if (err)
		return err;
	revival_prepare(d, options, service_is_open());
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
	daemon_close(d);
	revival_forget(d);
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
	int err = daemon_prepare(d);

	if (err)
		return err;
	/* build() runs again, too, if another transport leads to the server now. */
	d->fs_options.session.connect_until_ms =
		now_ms() + d->fs_options.session.connect_timeout_ms;
	while (takes_tcp_instead(d, err = build(d, options)) || may_try_again(d, err))
		if (err == -EAGAIN)
			wait_for_name(d);
	if (err)
		daemon_leave(d);
	return err;
}

/* ---- running --------------------------------------------------------------------------------- */

/* A set-user-id program is as good as the server that it comes from. */
static void warn_of_rights(struct daemon *d, const struct options *options)
{
	bool rights = options->suid == PERMISSION_GIVEN || options->dev == PERMISSION_GIVEN;

	if (rights && !options->config.key && fs_transport_kind(d->fs) != TRANSPORT_SHM)
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
	revival_end(d);
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

enum { FD_ENDED, FD_SIGNAL, FD_OFFER, FD_TAKER, NFDS };

/* A new daemon that does not get ready within its time keeps no other one away. */
static void look_at_handover(struct daemon *d, const struct pollfd fds[NFDS])
{
	if (d->taker >= 0 && fds[FD_TAKER].revents)
		give_over_finish(d);
	else if (d->taker >= 0 && now_ms() >= d->taker_until_ms)
		give_over_refuse(d, "the new daemon did not get ready in time");
	if (!(fds[FD_OFFER].revents & POLLIN))
		return;
	give_over_begin(d);
	d->taker_until_ms = now_ms() + TAKER_MS;
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
	struct pollfd fds[NFDS] = {
		[FD_ENDED] = {.fd = io_threads_ended_fd(d->threads), .events = POLLIN},
		[FD_SIGNAL] = {.fd = d->signal_fd, .events = POLLIN},
		[FD_OFFER] = {.fd = d->control ? control_offer_fd(d->control) : -1,
			.events = POLLIN},
		[FD_TAKER] = {.events = POLLIN},
	};

	while (!(fds[FD_ENDED].revents & POLLIN)) {
		if (!d->told_stopping)
			service_report_tick(&report);
		fds[FD_TAKER].fd = d->taker;
		if (poll(fds, NFDS, d->taker < 0 ? timeout_ms : LOOK_MS) < 0)
			continue;
		if (fds[FD_SIGNAL].revents & POLLIN)
			read_signal(d);
		look_at_handover(d, fds);
		if (may_exit)
			leave_if_lost(d);
	}
	give_over_refuse(d, "the mount has ended");
}

static void main_finish(struct daemon *d)
{
	tell_stopping(d);
	io_threads_join(d->threads);
	control_stop(d->control);
	fs_stop_telling(d->fs, d->port);
	daemon_close(d);
	revival_forget(d);
	control_delete(d->control);
	fuse_port_delete(d->port);
	daemon_leave(d);
	daemon_let_sleep(d);
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

/* The next start mounts anew: nothing is undone here, and the session is its owner's. */
static int main_revive(struct daemon *d, struct options *options, struct found *found)
{
	int err = revival_run(d, options, found);

	if (err) {
		log_complaint("rmemfs", d->why);
		service_failed(err, d->why);
		_exit(MOUNT_AGAIN);
	}
	tell_ready(d, options);
	wait_for_end(d);
	main_finish(d);
	return d->lost ? MOUNT_AGAIN : MOUNT_DONE;
}

/* ---- taking a mount over --------------------------------------------------------------------- */

/* Nothing is undone: the mount, its connection and the session are the other daemon's. */
_Noreturn static void leave_to_other(struct take_over *take, struct daemon *d)
{
	take_over_give_up(take, d->why);
	background_failed(d->report, d->why);
	_exit(MOUNT_FAILED);
}

static int run_take_over(const char *mountpoint)
{
	static struct take_over take;
	static struct options options;
	struct daemon d;

	daemon_init(&d, 0, NULL);
	log_init("rmemfs", LOG_LEVEL_INFO);
	d.report = background_fork();
	if (d.report < 0) {
		log_error("cannot fork: %s", errno_text(d.report));
		return MOUNT_SYSTEM;
	}
	if (take_over_ask(&take, mountpoint, &d, &options))
		leave_to_other(&take, &d);
	background_leave_files_on(d.connection);
	log_set_level(options.config.log_level);
	if (take_over_run(&take, &d, &options))
		leave_to_other(&take, &d);
	background_leave(true);
	sandbox_enter_mount();
	log_info("%s goes on here, over %s%s, and was taken over from process %d",
		d.fs_options.session.mountpoint, fs_server(d.fs), fs_protection_note(d.fs),
		take.old_pid);
	take_over_service(&take, &d, &options);
	background_ready(d.report);
	wait_for_end(&d);
	main_finish(&d);
	options_fini(&options);
	return d.lost ? MOUNT_AGAIN : MOUNT_DONE;
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

static int run_options(struct options *options, int argc, char **argv)
{
	struct found found;
	struct daemon d;
	int err;

	daemon_init(&d, argc, argv);
	log_init("rmemfs", options->config.log_level);
	/* In the background this process is no service, whatever its caller is. */
	if (options->foreground)
		service_open();
	revival_find(&found, options);
	if (found.record)
		return main_revive(&d, options, &found);
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
	daemon_set_options(&d.fs_options, options);
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
	char why[DAEMON_WHY_BYTES] = "out of memory";
	int status = MOUNT_DONE, err;

	background_hold_standard_fds();
	auth_memory_init();
	if (argc == 3 && strcmp(argv[1], "--take-over") == 0)
		return run_take_over(argv[2]);
	err = options_parse(argc, argv, CLIENT_CONFIG_PATH, &options, why, sizeof(why));
	if (err) {
		log_complaint("rmemfs", why);
		status = err == -ENOMEM ? MOUNT_SYSTEM : MOUNT_USAGE;
	} else if (options.help) {
		fputs(options_help, stdout);
	} else if (options.version) {
		printf("rmemfs %s (wire protocol %u)\n", RMEMFS_VERSION, wire_version());
	} else {
		status = run_options(&options, argc, argv);
	}
	options_fini(&options);
	return status;
}
