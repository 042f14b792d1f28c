/* revival.c - see revival.h. */
#include "daemon/mount/revival.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/service.h"
#include "common/base/util.h"
#include "daemon/fuse/port.h"
#include "daemon/handover/revive.h"
#include "daemon/op/fs_parts.h"
#include "daemon/record/record.h"
#include "daemon/remote/session_handover.h"
#include "daemon/serve/fs.h"
#include "daemon/serve/pause.h"
#include "daemon/serve/threads.h"

enum {
	KEEP_MS = 2000,
	DROP_MS = 500,
};

static const char name_connection[] = "rmemfs-connection", name_record[] = "rmemfs-record",
		  name_owner[] = "rmemfs-owner";

/* ---- the daemon ------------------------------------------------------------------------------ */

static bool may_revive(const struct options *options)
{
	return options->config.revive && options->foreground && !options->config.share &&
	       options->config.cache != CACHE_EXCLUSIVE && !options->mount_namespace;
}

void revival_prepare(struct daemon *d, const struct options *options, bool service)
{
	int err;

	if (!service || !may_revive(options))
		return;
	err = record_new(&d->record);
	if (err)
		log_warning("the mount can't be revived: no memory for its record: %s",
			errno_text(err));
	else
		revive_begin_record(d->fs, io_threads_thread(d->threads, 0), d->record);
}

/* A try to mount has failed: the next one has a record of its own. */
void revival_forget(struct daemon *d)
{
	record_delete(steal_ptr(&d->record));
}

void revival_consider(struct daemon *d, const struct options *options)
{
	if (!d->record || d->fs->features.resend)
		return;
	log_info("%s can't be revived: this kernel does not send requests again (Linux 6.9 does)",
		d->fs_options.session.mountpoint);
	revive_begin_record(d->fs, io_threads_thread(d->threads, 0), NULL);
	record_delete(steal_ptr(&d->record));
}

static bool describe(struct daemon *d, const char *asked, int *owner)
{
	struct record_head *head = record_head(d->record);
	int len =
		snprintf(head->place, sizeof(head->place), "%s", d->fs_options.session.mountpoint);
	int asked_len = snprintf(head->asked, sizeof(head->asked), "%s", asked);

	/* From here on it tells of the session that there is. */
	atomic_store(&head->lives, RECORD_ENDED);
	head->connection = d->connection;
	head->io_threads = d->fs_options.session.io_threads;
	head->address = *session_address(d->fs->session);
	atomic_store(&head->read_only, session_is_read_only(d->fs->session));
	*owner = revive_record(d->fs, io_threads_thread(d->threads, 0), head->state,
		sizeof(head->state), &head->state_bytes);
	return d->connection && len < (int)sizeof(head->place) &&
	       asked_len < (int)sizeof(head->asked);
}

static bool store(struct daemon *d, int owner)
{
	unsigned n = d->fs_options.session.io_threads;
	int fds[IO_THREADS_MAX + 1] = {fuse_port_fd(d->port)}, record = record_fd(d->record);

	io_threads_devices(d->threads, &fds[1]);
	return service_store(name_record, &record, 1, KEEP_MS) &&
	       (owner < 0 || service_store(name_owner, &owner, 1, KEEP_MS)) &&
	       service_store(name_connection, fds, n + 1, KEEP_MS) && service_await(KEEP_MS);
}

static void drop(void)
{
	service_drop(name_connection, DROP_MS);
	service_drop(name_owner, DROP_MS);
	service_drop(name_record, DROP_MS);
	service_await(DROP_MS);
}

/* From the guard's answer on the connection outlives this process. */
static void let_live(struct daemon *d)
{
	unsigned before = RECORD_ENDED;
	int err;

	atomic_compare_exchange_strong(&record_head(d->record)->lives, &before, RECORD_LIVES);
	err = connection_guard_keep(&d->survivor, d->connection, record_fd(d->record));
	if (!err)
		return;
	log_warning("%s can't be revived: its guard does not answer: %s",
		d->fs_options.session.mountpoint, errno_text(err));
	atomic_store(&record_head(d->record)->lives, RECORD_ENDED);
}

void revival_keep(struct daemon *d, const char *asked)
{
	int owner = -1;

	if (!d->record)
		return;
	if (!describe(d, asked, &owner) || !store(d, owner)) {
		log_warning(
			"%s can't be revived: the service manager does not keep its descriptors",
			d->fs_options.session.mountpoint);
		drop();
		return;
	}
	d->kept = true;
	let_live(d);
}

void revival_end(struct daemon *d)
{
	if (!d->kept)
		return;
	atomic_store(&record_head(d->record)->lives, RECORD_ENDED);
	drop();
	d->kept = false;
}

/* ---- what is found --------------------------------------------------------------------------- */

static void found_init(struct found *found)
{
	*found = (struct found){.owner = -1};
}

static void found_close(struct found *found)
{
	for (unsigned i = 0; i < found->nconnection; i++)
		close(found->connection[i]);
	if (found->owner >= 0)
		close(found->owner);
	record_delete(found->record);
	found_init(found);
}

/* Descriptors of other names are none of ours. */
static void take_one(struct found *found, const char *name, int fd)
{
	int err = 0;

	if (strcmp(name, name_connection) == 0 && found->nconnection <= IO_THREADS_MAX) {
		found->connection[found->nconnection++] = fd;
	} else if (strcmp(name, name_owner) == 0 && found->owner < 0) {
		found->owner = fd;
	} else if (strcmp(name, name_record) == 0 && !found->record) {
		err = record_open(fd, &found->record);
		if (err)
			log_notice("what the service manager has kept of a mount is of no use: %s",
				err == -EPROTONOSUPPORT ? "it is of another version of rmemfs"
							: errno_text(err));
	} else {
		close(fd);
	}
}

static void take_all(struct found *found)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names);

	for (int i = 0; i < n; i++)
		take_one(found, names[i], SD_LISTEN_FDS_START + i);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* A request that kills each daemon that reads it must not do so for ever. */
static bool dies_too_often(const struct record *record)
{
	struct record_head *head = record_head(record);
	uint64_t before = head->nrequests;
	int64_t now = now_ms();

	head->nrequests = record_nrequests(record);
	if (!head->died_ms || now - head->died_ms > REVIVALS_MS ||
		head->nrequests - before >= REVIVALS_REQUESTS) {
		head->died_ms = now;
		head->ndeaths = 0;
	}
	return ++head->ndeaths > REVIVALS_MAX;
}

static bool has_ended(int connection)
{
	struct pollfd pfd = {.fd = connection};

	return poll(&pfd, 1, 0) == 1 && pfd.revents & POLLERR;
}

/* NULL: the mount can go on. */
static const char *why_not(const struct found *found, const struct options *options)
{
	struct record_head *head = record_head(found->record);

	if (!may_revive(options))
		return "the options do not allow it any more";
	if (strcmp(head->asked, options->mountpoint_text) != 0)
		return "it is mounted elsewhere";
	if (!record_is_whole(found->record))
		return "it had more files open, or known, than the record has room for";
	if (found->nconnection != head->io_threads + 1 || !head->connection)
		return "the service manager has not kept all of it";
	if (has_ended(found->connection[0]))
		return "its connection has ended";
	if (dies_too_often(found->record))
		return "its daemon has been killed too often";
	return NULL;
}

static void abandon(const struct found *found)
{
	struct record_head *head = record_head(found->record);
	int err;

	atomic_store(&head->lives, RECORD_ENDED);
	err = head->connection ? connection_guard_abort(head->connection) : -ENOENT;
	if (err && err != -ENOENT)
		log_warning(
			"connection %u can't be aborted: %s", head->connection, errno_text(err));
}

void revival_find(struct found *found, const struct options *options)
{
	const char *why = NULL;
	bool lives;

	found_init(found);
	take_all(found);
	lives = found->record && record_can_go_on(record_head(found->record));
	if (lives)
		why = why_not(found, options);
	if (lives && !why)
		return;
	if (lives) {
		log_notice("the mount on %s is not revived: %s", record_head(found->record)->place,
			why);
		abandon(found);
	}
	if (found->record || found->nconnection || found->owner >= 0)
		drop();
	found_close(found);
}

/* ---- the successor --------------------------------------------------------------------------- */

static void set_options(struct daemon *d, struct options *options, const struct record_head *head)
{
	options->read_only = atomic_load(&head->read_only);
	options->config.io_threads = head->io_threads;
	daemon_set_options(&d->fs_options, options);
	snprintf(d->fs_options.session.mountpoint, sizeof(d->fs_options.session.mountpoint), "%s",
		head->place);
	d->fs_options.session.taken = &head->address;
	d->connection = head->connection;
}

/* This process' guard comes before the one of the dead daemon goes. */
static int take_guard(struct daemon *d)
{
	int err = daemon_prepare(d);

	if (err)
		return err;
	err = connection_guard_watch(&d->survivor, d->connection, NULL);
	if (err)
		log_info("%s: the kernel's connection cannot be aborted: %s",
			d->fs_options.session.mountpoint, errno_text(err));
	atomic_fetch_add(&record_head(d->record)->generation, 1);
	return 0;
}

static int adopt_connection(struct daemon *d, struct found *found)
{
	int err = fuse_port_adopt(
		steal_fd(&found->connection[0]), d->fs_options.session.mountpoint, &d->port);

	if (!err)
		err = io_threads_take_devices(d->threads, &found->connection[1]);
	if (!err && fuse_port_disconnected(d->port, 0))
		err = -ENOTCONN;
	if (err)
		snprintf(d->why, sizeof(d->why), "its connection can't be used: %s",
			errno_text(err));
	return err;
}

static int go_on(struct daemon *d, struct found *found, struct revived *revived)
{
	struct io_thread *threads;
	int err = take_guard(d);

	if (!err)
		err = daemon_open(d, found->options);
	if (err)
		return err;
	CRASH_POINT("revive.opened");
	threads = io_threads_thread(d->threads, 0);
	err = revive_adopt(d->fs, threads, d->record, steal_fd(&found->owner), revived, d->why,
		sizeof(d->why));
	if (!err)
		err = adopt_connection(d, found);
	CRASH_POINT("revive.adopted");
	if (err)
		return err;
	pause_begin_standing(d->fs);
	service_status("connecting to server %s", fs_server(d->fs));
	err = fs_connect(d->fs, d->why, sizeof(d->why));
	if (!err)
		err = io_threads_start(d->threads, d->port, d->why, sizeof(d->why));
	CRASH_POINT("revive.connected");
	if (!err)
		err = revive_settle(
			d->fs, threads, d->record, REVIVAL_SETTLE_MS, d->why, sizeof(d->why));
	CRASH_POINT("revive.settled");
	return err;
}

/* Requests that come again are read when the mount runs. */
static int serve(struct daemon *d, const struct options *options)
{
	int err = fuse_port_resend(d->port);

	if (err) {
		snprintf(d->why, sizeof(d->why), "the kernel does not send its requests again: %s",
			errno_text(err));
		return err;
	}
	CRASH_POINT("revive.resent");
	d->kept = true;
	let_live(d);
	revive_drop_lost(d->fs, d->port, d->record);
	pause_end(d->fs, io_threads_thread(d->threads, 0));
	daemon_keep_awake(d, options);
	daemon_can_be_asked(d, options);
	return 0;
}

static void tell_revived(const struct daemon *d, const struct revived *revived)
{
	log_notice("%s goes on after its daemon was killed: %llu open files stay",
		d->fs_options.session.mountpoint, (unsigned long long)revived->nhandles);
	if (revived->nlost)
		log_error("%s: what was written last to %llu files is lost: their users are told "
			  "by fsync or close",
			d->fs_options.session.mountpoint, (unsigned long long)revived->nlost);
}

int revival_run(struct daemon *d, struct options *options, struct found *found)
{
	struct revived revived;
	int err;

	d->record = found->record;
	found->options = options;
	set_options(d, options, record_head(d->record));
	err = go_on(d, found, &revived);
	if (!err)
		err = serve(d, options);
	if (!err) {
		tell_revived(d, &revived);
		return 0;
	}
	abandon(found);
	drop();
	return err;
}
