/* give_over.c - see give_over.h. */
#include "daemon/mount/give_over.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <systemd/sd-login.h>
#include <unistd.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/service.h"
#include "common/base/util.h"
#include "daemon/admin/control.h"
#include "daemon/barrier/conversion.h"
#include "daemon/fuse/port.h"
#include "daemon/handover/describe.h"
#include "daemon/handover/offer.h"
#include "daemon/handover/talk.h"
#include "daemon/mount/exit_status.h"
#include "daemon/mount/revival.h"
#include "daemon/op/fs_parts.h"
#include "daemon/record/record.h"
#include "daemon/remote/scout.h"
#include "daemon/remote/session_handover.h"
#include "daemon/serve/pause.h"
#include "daemon/serve/threads.h"

enum {
	STAND_MS = 1500, /* until the mount stands */
	TAKE_MS = 3000,  /* until the new daemon has the session, and its threads run */
	SERVE_MS = 5000, /* between GO and SERVES, which is one message */
	LEAVE_MS = 500,  /* for a new daemon that failed, to tell why and end */
};

/* ---- the offer ------------------------------------------------------------------------------- */

static void fill_offer(const struct daemon *d, struct offer *offer, const char *unit)
{
	const char *notify = service_is_open() ? getenv("NOTIFY_SOCKET") : NULL;

	offer->version = RMEMFS_VERSION;
	offer->argc = (unsigned)d->argc;
	for (int i = 0; i < d->argc; i++)
		offer->argv[i] = d->argv[i];
	offer->mountpoint = d->fs_options.session.mountpoint;
	offer->connection = d->connection;
	offer->io_threads = d->fs_options.session.io_threads;
	offer->read_only = session_is_read_only(d->fs->session);
	offer->address = *session_address(d->fs->session);
	scout_describe(d->fs->session, &offer->verbs);
	offer->notify = notify ? notify : "";
	offer->unit = unit;
	offer->limit_ms = (uint64_t)service_limit_ms();
}

static int send_offer(const struct daemon *d)
{
	autofree struct offer *offer = calloc(1, sizeof(*offer));
	autofree uint8_t *data = malloc(OFFER_BYTES_MAX);
	autofree char *unit = NULL;
	size_t len;
	int err;

	if (!offer || !data)
		return -ENOMEM;
	if (!service_is_open() || sd_pid_get_unit(0, &unit) < 0)
		unit = NULL;
	fill_offer(d, offer, unit ? unit : "");
	err = offer_put(offer, data, OFFER_BYTES_MAX, &len);
	return err ? err : talk_send(d->taker, TALK_OFFER, data, (uint32_t)len, NULL, 0);
}

void give_over_refuse(struct daemon *d, const char *why)
{
	if (d->taker < 0)
		return;
	talk_send_failed(d->taker, why);
	close(steal_fd(&d->taker));
	control_end_offer(d->control);
}

void give_over_begin(struct daemon *d)
{
	char why[128];
	int err;

	d->taker = control_take_offer(d->control);
	if (d->taker < 0)
		return;
	fcntl(d->taker, F_SETFL, fcntl(d->taker, F_GETFL) & ~O_NONBLOCK);
	if (d->told_stopping) {
		give_over_refuse(d, "the mount is ending");
		return;
	}
	if (conversion_is_under_way(d->fs)) {
		give_over_refuse(d,
			"the mount begins to share its export, which takes some seconds: try "
			"again");
		return;
	}
	err = d->argc > OFFER_ARGS_MAX ? -E2BIG : send_offer(d);
	CRASH_POINT("give.offered");
	if (!err)
		return;
	snprintf(why, sizeof(why), "the daemon can't tell of its mount: %s", errno_text(err));
	give_over_refuse(d, why);
}

/* ---- the mount's state ----------------------------------------------------------------------- */

static int write_all(int fd, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int send_state(struct daemon *d)
{
	autofree uint8_t *data = NULL;
	autoclose int memory = memfd_create("rmemfs-handover", MFD_CLOEXEC);
	int fds[TALK_FDS_MAX] = {fuse_port_fd(d->port), memory};
	unsigned nfds = 2 + d->fs_options.session.io_threads;
	uint8_t kept = d->kept;
	size_t len;
	int err = memory < 0 ? -errno : 0;

	io_threads_devices(d->threads, &fds[2]);
	if (!err)
		err = describe_mount(d->fs, io_threads_thread(d->threads, 0), &data, &len,
			&fds[nfds], d->why, sizeof(d->why));
	if (memory < 0)
		snprintf(d->why, sizeof(d->why), "the mount's state can't be told: %s",
			errno_text(err));
	if (err)
		return err;
	err = write_all(memory, data, len);
	if (!err)
		err = talk_send(d->taker, TALK_STATE, &kept, 1, fds, nfds + (fds[nfds] >= 0));
	if (err)
		snprintf(d->why, sizeof(d->why), "the mount's state can't be told: %s",
			errno_text(err));
	return err;
}

/* ---- the new daemon -------------------------------------------------------------------------- */

struct taker {
	int pid, pidfd;
};

/* READY has its pid, and a descriptor that stands for it. */
static int take_ready(struct daemon *d, struct taker *taker)
{
	struct talk_message m;
	int32_t pid;
	int err = talk_receive(d->taker, TALK_SEND_MS, &m);

	if (err || m.kind != TALK_READY || m.len != sizeof(pid) || m.nfds != 1) {
		snprintf(d->why, sizeof(d->why), "%s",
			err == -ETIMEDOUT       ? "it did not get ready in time"
			: err                   ? "it has ended"
			: m.kind == TALK_FAILED ? (const char *)m.data
						: "it is of another version of rmemfs");
		talk_fini(&m);
		return err ? err : -EPROTO;
	}
	memcpy(&pid, m.data, sizeof(pid));
	*taker = (struct taker){.pid = pid, .pidfd = steal_fd(&m.fds[0])};
	talk_fini(&m);
	return 0;
}

/* -EPROTO with its reason, or -ETIMEDOUT, or -ECONNRESET. */
static int await(struct daemon *d, enum talk_kind kind, int limit_ms)
{
	struct talk_message m;
	int err = talk_receive(d->taker, limit_ms, &m);

	if (err) {
		snprintf(d->why, sizeof(d->why), "the new daemon %s",
			err == -ETIMEDOUT ? "did not take the mount in time" : "has ended");
		return err;
	}
	if (m.kind != kind) {
		snprintf(d->why, sizeof(d->why), "the new daemon: %.512s",
			m.kind == TALK_FAILED ? (const char *)m.data : "an unexpected message");
		err = -EPROTO;
	}
	talk_fini(&m);
	return err;
}

/* It may be stopped, and must not go on later. Over shm the server also waits for its end before
 * this process gets the session back. */
static void end_taker(const struct taker *taker)
{
	struct pollfd pfd = {.fd = taker->pidfd, .events = POLLIN};

	if (poll(&pfd, 1, LEAVE_MS) == 1)
		return;
	if (pidfd_send_signal(taker->pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
		log_warning("the daemon that was to take the mount over (process %d) can't be "
			    "killed: %s",
			taker->pid, errno_text(errno));
}

/* From GO on the mount is the new daemon's, unless it ends without SERVES. This process does not
 * abort the connection any more when it is killed. */
static int let_go(struct daemon *d, const struct taker *taker)
{
	int err;

	bool kept = d->kept;

	revival_end(d);
	connection_guard_watch(&d->survivor, 0, NULL);
	CRASH_POINT("give.went");
	err = talk_send(d->taker, TALK_GO, NULL, 0, NULL, 0);
	if (!err)
		err = await(d, TALK_SERVES, SERVE_MS);
	if (err == -ETIMEDOUT) {
		/* If SERVES is on its way, it comes before the stream's end. */
		end_taker(taker);
		err = await(d, TALK_SERVES, -1);
	}
	if (err)
		connection_guard_watch(&d->survivor, d->connection, control_socket_id(d->control));
	if (err && kept)
		revival_keep(d, record_head(d->record)->asked);
	return err;
}

/* Somebody has asked this process to end meanwhile, and means the mount. */
static bool is_told_to_end(const struct daemon *d)
{
	struct pollfd pfd = {.fd = d->signal_fd, .events = POLLIN};

	return d->told_stopping || poll(&pfd, 1, 0) == 1;
}

static int check_is_wanted(struct daemon *d)
{
	if (!is_told_to_end(d))
		return 0;
	snprintf(d->why, sizeof(d->why), "the mount is ending");
	return -ECANCELED;
}

static void pass_signal_on(const struct daemon *d, const struct taker *taker)
{
	if (is_told_to_end(d) && pidfd_send_signal(taker->pidfd, SIGTERM, NULL, 0) < 0)
		log_warning("process %d can't be told to unmount %s: %s", taker->pid,
			d->fs_options.session.mountpoint, errno_text(errno));
}

/* All is the new daemon's: what this one has is only given back to the system. */
_Noreturn static void end_process(struct daemon *d, const struct taker *taker)
{
	CRASH_POINT("give.gone");
	log_info("%s goes on in process %d", d->fs_options.session.mountpoint, taker->pid);
	if (!service_main_pid(taker->pid, LEAVE_MS))
		log_warning("the service manager does not listen: it does not know of process %d",
			taker->pid);
	pass_signal_on(d, taker);
	connection_guard_stop(&d->survivor);
	_exit(MOUNT_DONE);
}

static int hand_over(struct daemon *d, const struct taker *taker)
{
	struct io_thread *threads = io_threads_thread(d->threads, 0);
	int err = pause_begin(d->fs, threads, d->why, sizeof(d->why));
	bool told = false;

	if (err)
		return err;
	err = pause_await(d->fs, STAND_MS, d->why, sizeof(d->why));
	CRASH_POINT("give.standing");
	if (!err) {
		err = send_state(d);
		told = !err;
	}
	CRASH_POINT("give.told");
	if (!err)
		err = await(d, TALK_TAKEN, TAKE_MS);
	if (!err)
		err = check_is_wanted(d);
	if (!err)
		err = let_go(d, taker);
	if (!err)
		end_process(d, taker);
	give_over_refuse(d, d->why);
	if (told)
		end_taker(taker);
	pause_end(d->fs, threads);
	return err;
}

void give_over_finish(struct daemon *d)
{
	struct taker taker = {.pidfd = -1};
	int err = take_ready(d, &taker);

	if (!err)
		err = check_is_wanted(d);
	if (!err)
		err = hand_over(d, &taker);
	if (err)
		log_notice("%s stays with this process, and was not taken over: %s",
			d->fs_options.session.mountpoint, d->why);
	give_over_refuse(d, d->why);
	if (taker.pidfd >= 0)
		close(taker.pidfd);
}
