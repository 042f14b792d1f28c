/* peers.c - a folder of names, and a pidfd for each that lives. */
#include "server/session/peers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "server/session/context.h"

enum { PEER_PATH_BYTES = 1300 };

struct peer {
	struct list link; /* server.peers */
	uint64_t session, start;
	int pid, fd;
};

/* When the process began, in clock ticks since the boot; 0: there is none. The kernel may use a pid
 * again, but not with the same start time. */
static uint64_t start_time(int pid)
{
	char path[64], stat[1024], *after_name;
	uint64_t start = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	/* The process's name may hold anything; the 20th field after it is the time. */
	after_name = fgets(stat, sizeof(stat), f) ? strrchr(stat, ')') : NULL;
	if (after_name)
		sscanf(after_name + 1,
			" %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			"%*s %" SCNu64,
			&start);
	fclose(f);
	return start;
}

static void peer_path(char *path, const struct server *s, uint64_t session, int pid, uint64_t start)
{
	snprintf(path, PEER_PATH_BYTES, "%s/%" PRIu64 "-%d-%" PRIu64, s->dir.peers, session, pid,
		start);
}

int peers_note(struct server *s, uint64_t session, int pid)
{
	char path[PEER_PATH_BYTES];
	int fd, err;

	peer_path(path, s, session, pid, start_time(pid));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0) {
		err = -errno;
		log_error("can't make %s: %s", path, errno_text(err));
		return err;
	}
	close(fd);
	return 0;
}

/* Finds the file by the beginning of its name: the process is gone, and so is its start time. */
void peers_forget(struct server *s, uint64_t session, int pid)
{
	DIR *d = opendir(s->dir.peers);
	struct dirent *entry;
	char prefix[64];
	int len = snprintf(prefix, sizeof(prefix), "%" PRIu64 "-%d-", session, pid);

	if (!d)
		return;
	while ((entry = readdir(d)))
		if (strncmp(entry->d_name, prefix, (size_t)len) == 0)
			unlinkat(dirfd(d), entry->d_name, 0);
	closedir(d);
}

/* ---- of earlier runs ------------------------------------------------------------------------- */

/* 1: the process lives and is watched; 0: it is gone. */
static int watch_peer(struct server *s, uint64_t session, int pid, uint64_t start)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct peer *peer;
	int fd = pidfd_open(pid, 0);

	if (fd < 0)
		return errno == ESRCH || errno == EINVAL ? 0 : -errno;
	/* Read after the descriptor was opened: if the time is right, the descriptor is of this
	 * process. */
	if (start_time(pid) != start) {
		close(fd);
		return 0;
	}
	peer = calloc(1, sizeof(*peer));
	event.data.fd = fd;
	if (!peer || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		close(fd);
		free(peer);
		return -ENOMEM;
	}
	peer->session = session;
	peer->start = start;
	peer->pid = pid;
	peer->fd = fd;
	list_add_tail(&s->peers, &peer->link);
	return 1;
}

static int peers_restore_one(struct server *s, int dir, const char *name)
{
	uint64_t session, start;
	int pid, lives = 0;

	if (sscanf(name, "%" SCNu64 "-%d-%" SCNu64, &session, &pid, &start) == 3)
		lives = watch_peer(s, session, pid, start);
	if (lives < 0)
		return lives;
	if (lives)
		log_info("process %d still has memory of session %" PRIu64 " mapped", pid, session);
	else
		unlinkat(dir, name, 0);
	return 0;
}

int peers_restore(struct server *s)
{
	DIR *d = opendir(s->dir.peers);
	struct dirent *entry;
	int err = 0;

	if (!d)
		return -errno;
	while (!err && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			err = peers_restore_one(s, dirfd(d), entry->d_name);
	closedir(d);
	if (err)
		log_error("can't watch the processes in %s: %s", s->dir.peers, errno_text(err));
	return err;
}

static void peer_delete(struct peer *peer)
{
	list_del(&peer->link);
	close(peer->fd);
	free(peer);
}

void peers_delete(struct server *s)
{
	list_for_each_safe (pos, &s->peers)
		peer_delete(list_entry(pos, struct peer, link));
}

static void peer_gone(struct server *s, struct peer *peer)
{
	uint64_t session = peer->session;

	peers_forget(s, session, peer->pid);
	peer_delete(peer);
	s->events->process_gone(s, session);
	s->events->retry_attaches(s);
}

/* The next tick tries the ATTACHes that wait: the caller is handling an ATTACH itself. */
void peers_unmapped(struct server *s, uint64_t session, int pid)
{
	bool any = false;

	list_for_each_safe (pos, &s->peers) {
		struct peer *peer = list_entry(pos, struct peer, link);

		if (peer->session != session || peer->pid != pid)
			continue;
		peer_delete(peer);
		any = true;
	}
	if (!any)
		return;
	peers_forget(s, session, pid);
	s->events->process_gone(s, session);
}

bool peers_left(const struct server *s, uint64_t session)
{
	list_for_each (pos, &s->peers)
		if (list_entry(pos, struct peer, link)->session == session)
			return true;
	return false;
}

void peers_each(const struct server *s, uint64_t session, void (*fn)(int pid, void *arg), void *arg)
{
	list_for_each (pos, &s->peers) {
		const struct peer *peer = list_entry(pos, struct peer, link);

		if (peer->session == session)
			fn(peer->pid, arg);
	}
}

void peers_event(struct server *s, int fd)
{
	list_for_each (pos, &s->peers) {
		struct peer *peer = list_entry(pos, struct peer, link);

		if (peer->fd != fd)
			continue;
		peer_gone(s, peer);
		return;
	}
}
