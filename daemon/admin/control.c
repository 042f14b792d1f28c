#include "daemon/admin/control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mount_socket.h"
#include "common/base/util.h"
#include "daemon/admin/look.h"
#include "daemon/op/fs_parts.h"

enum { AGAIN_MS = 100, BIND_TRIES = 10 };
enum { FD_STOP, FD_LISTEN, FD_PEERS, NFDS = FD_PEERS + CONTROL_PEERS };

struct control_peer {
	int fd;          /* -1: free */
	bool may_change; /* root, or the daemon's user */
	int64_t until_ms;
	char question[MOUNT_QUESTION_BYTES];
	size_t asked;
	char *answer; /* NULL: the question is not whole yet */
	size_t len, sent;
};

struct control {
	struct mount_facts facts;
	struct looks *looks;
	pthread_t thread;
	int listen_fd, stop_fd;
	bool stopping;     /* atomic */
	int64_t accept_ms; /* no peer is taken before: this process has no descriptor left */
	char path[MOUNT_SOCKET_BYTES];
	struct socket_id id; /* of path, as we have made it */
	int offer_fd;        /* control_offer_fd() */
	int offered;         /* atomic: a stream for main; -1: none */
	bool offering;       /* atomic: main has not ended with the last one */
	struct control_peer peers[CONTROL_PEERS];
};

static const char handover_question[] = "handover";

/* ---- answers --------------------------------------------------------------------------------- */

static char *control_error(const char *text)
{
	char *answer;

	return asprintf(&answer, "{\"error\":\"%s\"}", text) < 0 ? NULL : answer;
}

static char *set_level(struct fs *fs, const struct control_peer *peer, const char *word)
{
	int level;

	if (!peer->may_change)
		return control_error("only root and the user of the mount's daemon may do this");
	if (!word_find(log_level_words, word, &level))
		return control_error("there is no such level");
	log_set_level((enum log_level)level);
	atomic_store(&fs->tracing, level == LOG_LEVEL_DEBUG);
	log_notice("log level: %s, as an admin wants", word);
	return strdup("{}");
}

/* True: the stream is main's. */
static bool offer(struct control *c, struct control_peer *peer)
{
	bool none = false;

	if (!peer->may_change || !__atomic_compare_exchange_n(&c->offering, &none, true, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&c->offered, peer->fd, __ATOMIC_RELEASE);
	eventfd_write(c->offer_fd, 1);
	*peer = (struct control_peer){.fd = -1};
	return true;
}

static char *refuse_offer(const struct control_peer *peer)
{
	return control_error(peer->may_change
				     ? "another upgrade of this mount is under way"
				     : "only root and the user of the mount's daemon may do this");
}

static char *answer_to(const struct control *c, const struct control_peer *peer)
{
	static const char log_command[] = "log ";

	if (strcmp(peer->question, "status") == 0)
		return report_text(&c->facts, c->looks, CONTROL_LOOK_MS);
	if (strcmp(peer->question, handover_question) == 0)
		return refuse_offer(peer);
	if (strncmp(peer->question, log_command, strlen(log_command)) == 0)
		return set_level(c->facts.fs, peer, peer->question + strlen(log_command));
	return control_error("this version of rmemfs does not know the question");
}

/* ---- peers ----------------------------------------------------------------------------------- */

static void peer_close(struct control_peer *peer)
{
	close(peer->fd);
	free(peer->answer);
	*peer = (struct control_peer){.fd = -1};
}

static bool is_owner(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       (cred.uid == 0 || cred.uid == geteuid());
}

static struct control_peer *free_peer(struct control *c)
{
	for (unsigned i = 0; i < CONTROL_PEERS; i++)
		if (c->peers[i].fd < 0)
			return &c->peers[i];
	return NULL;
}

static void peer_accept(struct control *c)
{
	struct control_peer *peer = free_peer(c);
	int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		c->accept_ms = now_ms() + AGAIN_MS;
		return;
	}
	*peer = (struct control_peer){
		.fd = fd, .may_change = is_owner(fd), .until_ms = now_ms() + CONTROL_PEER_MS};
}

/* False: it has gone, or its question is too long. */
static bool peer_read(struct control *c, struct control_peer *peer)
{
	size_t room = sizeof(peer->question) - peer->asked;
	ssize_t n = recv(peer->fd, peer->question + peer->asked, room, 0);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	end = memchr(peer->question + peer->asked, '\n', (size_t)n);
	peer->asked += (size_t)n;
	if (!end)
		return peer->asked < sizeof(peer->question);
	*end = '\0';
	if (strcmp(peer->question, handover_question) == 0 && offer(c, peer))
		return true;
	peer->answer = answer_to(c, peer);
	peer->len = peer->answer ? strlen(peer->answer) : 0;
	return peer->answer;
}

/* False: all is sent, or it has gone. */
static bool peer_write(struct control_peer *peer)
{
	ssize_t n = send(peer->fd, peer->answer + peer->sent, peer->len - peer->sent, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	peer->sent += (size_t)n;
	return peer->sent < peer->len;
}

static void peer_serve(struct control *c, struct control_peer *peer, short ready)
{
	bool stays = true;

	if (ready && !peer->answer)
		stays = peer_read(c, peer);
	if (peer->fd < 0)
		return;
	if (stays && peer->answer)
		stays = peer_write(peer);
	if (!stays || now_ms() >= peer->until_ms)
		peer_close(peer);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Returns the time until a peer is to be closed, or may be taken again, in ms; -1: none is. */
static int watch(struct control *c, struct pollfd fds[NFDS])
{
	bool pauses = now_ms() < c->accept_ms;
	int64_t next = pauses ? c->accept_ms : INT64_MAX;

	fds[FD_STOP] = (struct pollfd){.fd = c->stop_fd, .events = POLLIN};
	fds[FD_LISTEN] = (struct pollfd){
		.fd = free_peer(c) && !pauses ? c->listen_fd : -1, .events = POLLIN};
	for (unsigned i = 0; i < CONTROL_PEERS; i++) {
		const struct control_peer *peer = &c->peers[i];

		fds[FD_PEERS + i] =
			(struct pollfd){.fd = peer->fd, .events = peer->answer ? POLLOUT : POLLIN};
		if (peer->fd >= 0)
			next = min_i64(next, peer->until_ms);
	}
	return next == INT64_MAX ? -1 : (int)max_i64(0, next - now_ms());
}

static bool is_stopping(const struct control *c)
{
	return __atomic_load_n(&c->stopping, __ATOMIC_RELAXED);
}

static void *control_main(void *arg)
{
	struct control *c = arg;
	struct pollfd fds[NFDS];

	pthread_setname_np(pthread_self(), "rmemfs-control");
	for (;;) {
		int timeout = watch(c, fds);

		if (poll(fds, NFDS, timeout) < 0)
			continue;
		if (fds[FD_STOP].revents)
			return NULL;
		for (unsigned i = 0; i < CONTROL_PEERS; i++)
			if (c->peers[i].fd >= 0 && !is_stopping(c))
				peer_serve(c, &c->peers[i], fds[FD_PEERS + i].revents);
		if (fds[FD_LISTEN].revents)
			peer_accept(c);
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

/* A socket in a folder of a group is the group's. The folder is made if it is not there. Nobody
 * else may write there: /run is root's, and XDG_RUNTIME_DIR its user's. */
static int control_mode(const char *folder, mode_t *mode)
{
	struct stat st;

	if (mkdir(folder, geteuid() == 0 ? 0755 : 0700) < 0 && errno != EEXIST)
		return -errno;
	if (lstat(folder, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH) || !S_ISDIR(st.st_mode))
		return -EPERM;
	*mode = st.st_mode & S_ISGID ? 0660 : 0600;
	return 0;
}

/* The folder may go meanwhile, with the last socket of another mount. */
static int bind_in(struct control *c, const char *folder, mode_t *mode)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int err;

	strcpy(address.sun_path, c->path);
	for (unsigned i = 0; i < BIND_TRIES; i++) {
		err = control_mode(folder, mode);
		if (err)
			return err;
		unlink(c->path);
		if (bind(c->listen_fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			return 0;
		err = -errno;
		if (err != -ENOENT)
			break;
	}
	return err;
}

/* The kernel gives a number to one mount at a time. So a file with ours was left by a daemon that
 * was killed, or belongs to one whose mount has gone and which is about to end. */
static int control_bind(struct control *c)
{
	char folder[MOUNT_SOCKET_BYTES];
	mode_t mode = 0600;
	int err = mount_socket_folder(geteuid(), folder);

	if (!err)
		err = mount_socket_path(geteuid(), c->facts.connection, c->path);
	if (err)
		return err;
	c->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listen_fd < 0)
		return -errno;
	err = bind_in(c, folder, &mode);
	if (err)
		return err;
	if (chmod(c->path, mode) < 0 || listen(c->listen_fd, CONTROL_PEERS) < 0)
		return -errno;
	return mount_socket_id(c->path, &c->id);
}

/* The last one removes the folder, unless the package has made it. */
static void remove_folder(void)
{
	char folder[MOUNT_SOCKET_BYTES];
	struct stat st;

	if (mount_socket_folder(geteuid(), folder) == 0 && lstat(folder, &st) == 0 &&
		!(st.st_mode & S_ISGID))
		rmdir(folder);
}

static void control_close(struct control *c)
{
	for (unsigned i = 0; i < CONTROL_PEERS; i++)
		if (c->peers[i].fd >= 0)
			peer_close(&c->peers[i]);
	if (c->listen_fd >= 0)
		close(steal_fd(&c->listen_fd));
	mount_socket_remove(c->path, &c->id);
	remove_folder();
	if (c->stop_fd >= 0)
		close(steal_fd(&c->stop_fd));
	if (c->offer_fd >= 0)
		close(steal_fd(&c->offer_fd));
	if (c->offered >= 0)
		close(steal_fd(&c->offered));
}

void control_delete(struct control *c)
{
	if (!c)
		return;
	looks_delete(c->looks);
	free(c);
}

static int control_begin(struct control *c)
{
	int err;

	c->stop_fd = eventfd(0, EFD_CLOEXEC);
	c->offer_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->stop_fd < 0 || c->offer_fd < 0)
		return -errno;
	err = looks_new(c->facts.first, &c->looks);
	if (!err)
		err = control_bind(c);
	if (!err)
		err = -pthread_create(&c->thread, NULL, control_main, c);
	return err;
}

struct control *control_start(const struct mount_facts *facts)
{
	struct control *c = calloc(1, sizeof(*c));
	int err = -ENOMEM;

	if (c) {
		c->facts = *facts;
		c->listen_fd = c->stop_fd = c->offer_fd = c->offered = -1;
		for (unsigned i = 0; i < CONTROL_PEERS; i++)
			c->peers[i].fd = -1;
		err = control_begin(c);
	}
	if (!err)
		return c;
	if (c)
		control_close(c);
	control_delete(c);
	if (err == -ENOENT)
		log_info("rmemfsctl can't ask this mount: XDG_RUNTIME_DIR names no folder for its "
			 "socket");
	else
		log_warning("rmemfsctl can't ask this mount: its socket can't be made: %s",
			errno_text(err));
	return NULL;
}

const struct socket_id *control_socket_id(const struct control *c)
{
	return &c->id;
}

int control_offer_fd(const struct control *c)
{
	return c->offer_fd;
}

int control_take_offer(struct control *c)
{
	eventfd_t n;

	eventfd_read(c->offer_fd, &n);
	return __atomic_exchange_n(&c->offered, -1, __ATOMIC_ACQ_REL);
}

void control_end_offer(struct control *c)
{
	__atomic_store_n(&c->offering, false, __ATOMIC_RELEASE);
}

void control_stop(struct control *c)
{
	if (!c)
		return;
	__atomic_store_n(&c->stopping, true, __ATOMIC_RELAXED);
	eventfd_write(c->stop_fd, 1);
	pthread_join(c->thread, NULL);
	control_close(c);
}
