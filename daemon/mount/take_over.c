/* take_over.c - see take_over.h. */
#include "daemon/mount/take_over.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-login.h>
#include <unistd.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/mount_socket.h"
#include "common/base/mountinfo.h"
#include "common/base/service.h"
#include "common/base/util.h"
#include "daemon/fuse/port.h"
#include "daemon/mount/revival.h"
#include "daemon/handover/describe.h"
#include "daemon/handover/state.h"
#include "daemon/handover/talk.h"
#include "daemon/op/fs_parts.h"
#include "daemon/serve/fs.h"
#include "daemon/serve/pause.h"
#include "daemon/serve/threads.h"

enum {
	OFFER_MS = 5000,
	STATE_MS = 10000, /* the other daemon has limits of its own */
	OLD_ENDS_MS = 2000,
	GUARD_MS = 200, /* for the other one's guard to end the connection */
	STATE_BYTES_MAX = INT32_MAX,
};

/* ---- asking ---------------------------------------------------------------------------------- */

/* The daemon is believed: files that its command line names are opened with our rights. */
static bool is_ours(uid_t uid, char *why, size_t whylen)
{
	if (uid == geteuid())
		return true;
	snprintf(why, whylen, "the mount's daemon is of user %u: upgrade the mount as that user",
		(unsigned)uid);
	return false;
}

static int connect_to(struct take_over *t, const char *path, char *why, size_t whylen)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);

	strcpy(address.sun_path, path);
	t->talk = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (t->talk < 0 || connect(t->talk, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		getsockopt(t->talk, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
		(t->old = pidfd_open(cred.pid, 0)) < 0) {
		int err = -errno;

		snprintf(why, whylen, "the mount's daemon can't be asked at %s: %s", path,
			errno_text(err));
		return err;
	}
	t->old_pid = cred.pid;
	return is_ours(cred.uid, why, whylen) ? 0 : -EPERM;
}

static bool find_mount(const char *mountpoint, struct mount *mount)
{
	autofree char *line = mountinfo_find(mountpoint, mount);
	bool ours = line && strcmp(mount->type, MOUNT_TYPE_OURS) == 0;

	mount->dir = mount->type = mount->source = NULL;
	return ours;
}

static int find_daemon(struct take_over *t, const char *mountpoint, char *why, size_t whylen)
{
	char path[MOUNT_SOCKET_BYTES];
	struct mount mount;
	int err;

	if (!find_mount(mountpoint, &mount)) {
		snprintf(why, whylen, "%s: no rmemfs is mounted there", mountpoint);
		return -ENOENT;
	}
	if (!is_ours(mount.uid, why, whylen))
		return -EPERM;
	t->connection = mount.minor;
	err = mount_socket_path(mount.uid, mount.minor, path);
	if (err) {
		snprintf(why, whylen, "%s: its daemon's socket can't be named: %s", mountpoint,
			errno_text(err));
		return err;
	}
	return connect_to(t, path, why, whylen);
}

static int receive_offer(struct take_over *t, char *why, size_t whylen)
{
	struct talk_message m;
	int err =
		send(t->talk, TALK_QUESTION, strlen(TALK_QUESTION), MSG_NOSIGNAL) < 0 ? -errno : 0;

	if (!err)
		err = talk_receive(t->talk, OFFER_MS, &m);
	if (err) {
		snprintf(why, whylen, "its daemon does not answer: %s", errno_text(err));
		return err;
	}
	if (m.kind == TALK_FAILED) {
		snprintf(why, whylen, "its daemon refuses: %s", (const char *)m.data);
		err = -EPERM;
	} else if (m.kind == TALK_OFFER) {
		err = offer_get(m.data, m.len, &t->offer);
	} else {
		err = -EPROTO;
	}
	if (err == -EPROTONOSUPPORT)
		snprintf(why, whylen,
			"its daemon is rmemfs %.32s, which can't hand over to rmemfs " RMEMFS_VERSION
			": unmount, and mount again",
			t->offer.version);
	else if (err == -EPROTO)
		snprintf(why, whylen, "its daemon's answer is malformed");
	talk_fini(&m);
	return err;
}

/* The mount that was asked for has to be the one that the daemon tells of. */
static int check_mount(const struct take_over *t, char *why, size_t whylen)
{
	struct mount mount;

	if (t->offer.connection == t->connection && find_mount(t->offer.mountpoint, &mount) &&
		mount.minor == t->connection)
		return 0;
	snprintf(why, whylen, "its daemon has another mount, or one that is covered: at %s",
		t->offer.mountpoint);
	return -EINVAL;
}

/* A daemon of a unit belongs into the unit: its limits hold there, and no session's end ends it. */
static int check_unit(const struct take_over *t, char *why, size_t whylen)
{
	autofree char *unit = NULL;

	if (!t->offer.unit[0])
		return 0;
	if (sd_pid_get_unit(0, &unit) >= 0 && strcmp(unit, t->offer.unit) == 0)
		return 0;
	snprintf(why, whylen, "the mount belongs to a unit of systemd: run systemctl reload %s",
		t->offer.unit);
	return -EINVAL;
}

int take_over_ask(
	struct take_over *t, const char *mountpoint, struct daemon *d, struct options *options)
{
	int err;

	t->talk = t->old = -1;
	err = find_daemon(t, mountpoint, d->why, sizeof(d->why));
	if (!err)
		err = receive_offer(t, d->why, sizeof(d->why));
	if (!err)
		err = check_mount(t, d->why, sizeof(d->why));
	if (!err)
		err = check_unit(t, d->why, sizeof(d->why));
	if (err)
		return err;
	d->argc = (int)t->offer.argc;
	d->argv = (char *const *)t->offer.argv;
	err = options_parse((int)t->offer.argc, (char **)t->offer.argv, CLIENT_CONFIG_PATH, options,
		d->why, sizeof(d->why));
	if (err)
		return err;
	options->read_only = t->offer.read_only;
	options->config.io_threads = t->offer.io_threads;
	daemon_set_options(&d->fs_options, options);
	snprintf(d->fs_options.session.mountpoint, sizeof(d->fs_options.session.mountpoint), "%s",
		t->offer.mountpoint);
	d->fs_options.session.taken = &t->offer.address;
	d->fs_options.session.verbs = &t->offer.verbs;
	d->connection = t->offer.connection;
	return 0;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static int say_ready(struct take_over *t)
{
	int32_t pid = getpid();
	autoclose int self = pidfd_open(pid, 0);

	return self < 0 ? -errno : talk_send(t->talk, TALK_READY, &pid, sizeof(pid), &self, 1);
}

static int read_state(int fd, uint8_t **data, size_t *len)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || st.st_size > STATE_BYTES_MAX)
		return -EPROTO;
	*len = (size_t)st.st_size;
	*data = malloc(*len);
	if (!*data)
		return -ENOMEM;
	for (size_t at = 0; at < *len;) {
		ssize_t n = pread(fd, *data + at, *len - at, (off_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -EPROTO;
		at += (size_t)n;
	}
	return 0;
}

/* So many descriptors STATE has, and mostly one more: the owner's name. */
static unsigned state_fds(const struct daemon *d)
{
	return 2 + d->fs_options.session.io_threads;
}

/* Takes the descriptors out of the message: the kernel's connection, the description, the threads'
 * devices, and the owner's name. */
static int adopt(struct daemon *d, struct talk_message *m)
{
	autofree uint8_t *data = NULL;
	int owner = m->nfds > state_fds(d) ? steal_fd(&m->fds[state_fds(d)]) : -1;
	size_t len = 0;
	int err = read_state(m->fds[1], &data, &len);

	if (!err)
		err = io_threads_take_devices(d->threads, &m->fds[2]);
	if (err) {
		snprintf(d->why, sizeof(d->why), "the description of the mount can't be read: %s",
			errno_text(err));
		return err;
	}
	err = describe_adopt(
		d->fs, io_threads_thread(d->threads, 0), data, len, owner, d->why, sizeof(d->why));
	if (!err)
		err = fuse_port_adopt(
			steal_fd(&m->fds[0]), d->fs_options.session.mountpoint, &d->port);
	return err;
}

static int receive_state(struct take_over *t, struct daemon *d)
{
	struct talk_message m;
	int err = talk_receive(t->talk, STATE_MS, &m);

	if (err) {
		snprintf(d->why, sizeof(d->why), "the mount's daemon does not go on: %s",
			errno_text(err));
		return err;
	}
	CRASH_POINT("take.told");
	if (m.kind == TALK_STATE && m.nfds >= state_fds(d)) {
		t->kept = m.len && m.data[0];
		err = adopt(d, &m);
	} else {
		snprintf(d->why, sizeof(d->why), "its daemon refuses: %.*s", (int)m.len,
			(const char *)m.data);
		err = -EPERM;
	}
	talk_fini(&m);
	return err;
}

static bool old_has_ended(const struct take_over *t, int limit_ms)
{
	struct pollfd pfd = {.fd = t->old, .events = POLLIN};

	return poll(&pfd, 1, limit_ms) == 1;
}

/* The stream has ended without GO. That alone does not say that the other daemon has. If it was
 * killed before its guard stood down, the mount has gone with it, or belongs to the next daemon of
 * its service. */
static int look_at_old(struct take_over *t, struct daemon *d)
{
	if (!old_has_ended(t, OLD_ENDS_MS)) {
		snprintf(d->why, sizeof(d->why), "its daemon lives, but says nothing");
		return -EPROTO;
	}
	if (t->kept || fuse_port_disconnected(d->port, GUARD_MS)) {
		snprintf(d->why, sizeof(d->why), "its daemon was killed, and the mount with it");
		return -ENOTCONN;
	}
	return 0;
}

static int await_go(struct take_over *t, struct daemon *d)
{
	struct talk_message m;
	int err;

	talk_send(t->talk, TALK_TAKEN, NULL, 0, NULL, 0);
	err = talk_receive(t->talk, -1, &m);
	if (err)
		return look_at_old(t, d);
	if (m.kind != TALK_GO) {
		snprintf(d->why, sizeof(d->why), "its daemon refuses: %.*s", (int)m.len,
			(const char *)m.data);
		err = -EPERM;
	}
	talk_fini(&m);
	return err;
}

/* Up to GO nothing is told to the kernel, and to the server only that channels attach. */
int take_over_run(struct take_over *t, struct daemon *d, const struct options *options)
{
	int err = daemon_prepare(d);

	if (!err)
		err = daemon_open(d, options);
	if (err)
		return err;
	revival_prepare(d, options, t->offer.notify[0] && t->offer.unit[0]);
	CRASH_POINT("take.ready");
	err = say_ready(t);
	if (err) {
		snprintf(d->why, sizeof(d->why), "its daemon has ended: %s", errno_text(err));
		return err;
	}
	err = receive_state(t, d);
	if (err)
		return err;
	CRASH_POINT("take.adopted");
	pause_begin_standing(d->fs);
	err = fs_connect(d->fs, d->why, sizeof(d->why));
	if (!err)
		err = io_threads_start(d->threads, d->port, d->why, sizeof(d->why));
	CRASH_POINT("take.connected");
	if (!err)
		err = await_go(t, d);
	CRASH_POINT("take.serving");
	if (err)
		return err;
	/* Before the first request: the other daemon would go on otherwise. */
	talk_send(t->talk, TALK_SERVES, NULL, 0, NULL, 0);
	daemon_watch(d);
	pause_end(d->fs, io_threads_thread(d->threads, 0));
	daemon_keep_awake(d, options);
	daemon_can_be_asked(d, options);
	return 0;
}

void take_over_give_up(struct take_over *t, const char *why)
{
	if (t->talk >= 0)
		talk_send_failed(t->talk, why);
}

/* ---- the service manager --------------------------------------------------------------------- */

/* The manager takes notes of the main process alone, and warns of others. */
void take_over_service(struct take_over *t, struct daemon *d, const struct options *options)
{
	char text[32];

	old_has_ended(t, OLD_ENDS_MS);
	if (t->offer.notify[0] && t->offer.unit[0]) {
		setenv("NOTIFY_SOCKET", t->offer.notify, 1);
		snprintf(text, sizeof(text), "%d", (int)getpid());
		setenv("WATCHDOG_PID", text, 1);
		snprintf(text, sizeof(text), "%" PRIu64 "000", t->offer.limit_ms);
		if (t->offer.limit_ms)
			setenv("WATCHDOG_USEC", text, 1);
		service_open();
		revival_consider(d, options);
		revival_keep(d, options->mountpoint_text);
	}
	close(steal_fd(&t->talk));
	close(steal_fd(&t->old));
}
