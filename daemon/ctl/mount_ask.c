#include "daemon/ctl/mount_ask.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mount_socket.h"
#include "common/base/process_state.h"
#include "common/base/util.h"
#include "daemon/ctl/json.h"

enum { ANSWER_BYTES_MAX = 16 << 20 };

/* ---- finding a mount ------------------------------------------------------------------------- */

enum { LINKS_MAX = 40 };

/* Of ours. */
static char *find(const char *dir, struct mount *mount)
{
	char *text = mountinfo_find(dir, mount);

	if (text && strcmp(mount->type, MOUNT_TYPE_OURS) == 0)
		return text;
	free(text);
	return NULL;
}

/* A path that is resolved name by name. */
struct walk {
	char done[PATH_MAX]; /* without links and dots; "" is the root */
	char todo[PATH_MAX];
	unsigned links;
};

/* Takes the next name into done. False: there is none, or it is too long. */
static bool walk_step(struct walk *w)
{
	size_t skip = strspn(w->todo, "/"), len = strcspn(w->todo + skip, "/");
	size_t at = strlen(w->done);
	const char *name = w->todo + skip;

	if (!len || at + len + 2 > sizeof(w->done))
		return false;
	if (len == 2 && strncmp(name, "..", 2) == 0) {
		if (at)
			*strrchr(w->done, '/') = '\0';
	} else if (len != 1 || *name != '.') {
		w->done[at] = '/';
		memcpy(w->done + at + 1, name, len);
		w->done[at + 1 + len] = '\0';
	}
	memmove(w->todo, name + len, strlen(name + len) + 1);
	return true;
}

/* If the last name is a link, its target comes before the rest. False: that is too long. */
static bool walk_link(struct walk *w)
{
	char target[PATH_MAX];
	ssize_t n = *w->done ? readlink(w->done, target, sizeof(target) - 1) : -1;

	if (n < 0)
		return true;
	target[n] = '\0';
	if (++w->links > LINKS_MAX || (size_t)n + strlen(w->todo) + 2 > sizeof(w->todo))
		return false;
	memmove(w->todo + n + 1, w->todo, strlen(w->todo) + 1);
	memcpy(w->todo, target, (size_t)n);
	w->todo[n] = '/';
	if (*target == '/')
		*w->done = '\0';
	else
		*strrchr(w->done, '/') = '\0';
	return true;
}

/* A name is looked at only when it is no mount of ours, and the ones before it are none. So nothing
 * touches such a mount. realpath(3) would ask it. */
char *ctl_find_mount(const char *path, struct mount *mount)
{
	struct walk w = {.done = ""};
	char cwd[PATH_MAX], *text = NULL;
	bool bare = !strchr(path, '/') && *path != '.';
	int len;

	if (*path == '/')
		len = snprintf(w.todo, sizeof(w.todo), "%s", path);
	else if (getcwd(cwd, sizeof(cwd)))
		len = snprintf(w.todo, sizeof(w.todo), "%s/%s", cwd, path);
	else
		return NULL;
	if (len >= (int)sizeof(w.todo))
		return NULL;
	while (walk_step(&w)) {
		text = find(*w.done ? w.done : "/", mount);
		if (text || !walk_link(&w))
			break;
	}
	/* "memory.example" is a host, also where the current directory is on a mount. */
	if (text && bare && w.todo[strspn(w.todo, "/")]) {
		free(text);
		return NULL;
	}
	return text;
}

bool ctl_is_folder(const char *path)
{
	struct stat st;

	return strpbrk(path, "/.") == path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- asking its daemon ----------------------------------------------------------------------- */

static int ask_connect(const char *path, unsigned limit_ms)
{
	const struct timeval limit = {limit_ms / 1000, limit_ms % 1000 * 1000};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	strcpy(address.sun_path, path);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	err = errno == EAGAIN ? -ETIMEDOUT : -errno;
	close(fd);
	return err;
}

/* All that comes, within the time for all of it: a daemon is of this machine, but need not be
 * sane. */
static int read_all(int fd, unsigned limit_ms, char **text)
{
	int64_t until = now_ms() + limit_ms;
	size_t room = 64 << 10, len = 0;
	autofree char *buf = malloc(room);

	while (buf) {
		ssize_t n = recv(fd, buf + len, room - len - 1, 0);
		char *larger;

		if (n == 0 && !len)
			return -ECONNRESET;
		if (n == 0) {
			buf[len] = '\0';
			*text = steal_ptr(&buf);
			return 0;
		}
		if (n < 0 && errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (now_ms() >= until)
			return -ETIMEDOUT;
		len += n > 0 ? (size_t)n : 0;
		if (len + 1 < room)
			continue;
		if (room >= ANSWER_BYTES_MAX)
			return -EPROTO;
		larger = realloc(buf, room *= 2);
		if (!larger)
			return -ENOMEM;
		buf = larger;
	}
	return -ENOMEM;
}

/* The process that listens; 0: it can't be seen here. */
static int listener_of(int fd)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid <= 0)
		return 0;
	return process_state(peer.pid) ? peer.pid : 0;
}

static int exchange(
	const char *path, const char *question, unsigned limit_ms, char **text, int *pid)
{
	char line[MOUNT_QUESTION_BYTES + 1];
	size_t len = (size_t)snprintf(line, sizeof(line), "%s\n", question);
	int fd, err;

	if (len > MOUNT_QUESTION_BYTES)
		return -EINVAL;
	fd = ask_connect(path, limit_ms);
	if (fd < 0)
		return fd;
	*pid = listener_of(fd);
	err = send(fd, line, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -errno;
	if (!err)
		err = read_all(fd, limit_ms, text);
	close(fd);
	return err;
}

static void explain_silence(int pid, char *why, size_t whylen)
{
	if (process_state_is_stopped(pid))
		snprintf(why, whylen,
			"its daemon does not answer in time: it is stopped: kill -CONT %d", pid);
	else if (pid)
		snprintf(why, whylen,
			"its daemon does not answer in time: this machine gives it no CPU, or it "
			"hangs: look at it by 'ps -L -o tid,stat,wchan,comm -p %d'",
			pid);
	else
		snprintf(why, whylen,
			"its daemon does not answer in time: it is stopped, or this machine gives "
			"it no CPU: look at it by 'ps -C rmemfs -o pid,stat,wchan'");
}

static void explain(
	const struct mount *mount, const char *path, int err, int pid, char *why, size_t whylen)
{
	switch (err) {
	case -ENOENT:
	case -ECONNREFUSED:
		snprintf(why, whylen,
			"its daemon does not listen at %s. If the daemon has ended (ps -C rmemfs), "
			"umount -l %s. Else it runs in another container, is an earlier version, or "
			"could not make its socket: its log says so",
			path, mount->dir);
		break;
	case -ECONNRESET:
		snprintf(why, whylen, "its daemon has closed %s without an answer: the mount ends",
			path);
		break;
	case -EACCES:
	case -EPERM:
		snprintf(why, whylen,
			"its daemon's socket %s is for root%s: run rmemfsctl as such a user", path,
			mount->uid ? " and the user that mounted it"
				   : " and the group rmemfs-monitor");
		break;
	case -ETIMEDOUT:
		explain_silence(pid, why, whylen);
		break;
	default:
		snprintf(why, whylen, "%s: %s", path, errno_text(err));
		break;
	}
}

int ctl_ask_mount(const struct mount *mount, const char *question, unsigned limit_ms,
	json_t **answer, char *why, size_t whylen)
{
	autofree char *text = NULL;
	char path[MOUNT_SOCKET_BYTES] = "";
	const char *refusal;
	int pid = 0, err = mount_socket_path(mount->uid, mount->minor, path);

	*answer = NULL;
	if (err) {
		snprintf(why, whylen,
			"XDG_RUNTIME_DIR does not say where the sockets of this user's mounts are");
		return err == -ENOENT ? -EACCES : err;
	}
	err = exchange(path, question, limit_ms, &text, &pid);
	if (err) {
		explain(mount, path, err, pid, why, whylen);
		return err;
	}
	*answer = ctl_json_read(text);
	if (!*answer) {
		snprintf(why, whylen, "%s: its daemon's answer is malformed", path);
		return -EPROTO;
	}
	refusal = json_string_value(json_object_get(*answer, "error"));
	if (!refusal)
		return 0;
	snprintf(why, whylen, "its daemon refuses: %s", refusal);
	json_decref(*answer);
	*answer = NULL;
	return -EPERM;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* A path need not be UTF-8, as JSON must be. */
static json_t *path_text(const char *path)
{
	json_t *text = json_string(path);

	return text ? text : json_string("?");
}

json_t *ctl_describe_mount(const struct mount *mount, unsigned limit_ms)
{
	json_t *answer, *entry = json_object();
	char why[512] = "";
	int err = ctl_ask_mount(mount, "status", limit_ms, &answer, why, sizeof(why));

	json_object_set_new(entry, "mountpoint", path_text(mount->dir));
	json_object_set_new(entry, "source", path_text(mount->source));
	json_object_set_new(entry, "connection", json_integer(mount->minor));
	json_object_set_new(entry, "uid", json_integer(mount->uid));
	json_object_set_new(entry, "allowed", json_boolean(err != -EACCES && err != -EPERM));
	json_object_set_new(entry, "answer", answer ? answer : json_null());
	json_object_set_new(entry, "error", answer ? json_null() : path_text(why));
	return entry;
}

struct listing {
	json_t *list;
	unsigned limit_ms;
	bool own;
};

static bool is_listed(const json_t *list, unsigned connection)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(list, i, entry) if (json_integer_value(json_object_get(entry,
						       "connection")) == connection) return true;
	return false;
}

static bool add_mount(const struct mount *mount, void *arg)
{
	const struct listing *l = arg;

	if (strcmp(mount->type, MOUNT_TYPE_OURS) != 0)
		return true;
	if (l->own && ((mount->uid && mount->uid != geteuid()) || is_listed(l->list, mount->minor)))
		return true;
	json_array_append_new(l->list, ctl_describe_mount(mount, l->limit_ms));
	return true;
}

static int list_mounts(struct listing *l, json_t **list)
{
	int err;

	*list = l->list = json_array();
	if (!l->list)
		return -ENOMEM;
	err = mountinfo_each("/proc/self/mountinfo", add_mount, l);
	if (err)
		json_decref(*list);
	return err;
}

int ctl_list_mounts(unsigned limit_ms, json_t **list)
{
	return list_mounts(&(struct listing){.limit_ms = limit_ms}, list);
}

int ctl_list_own_mounts(unsigned limit_ms, json_t **list)
{
	return list_mounts(&(struct listing){.limit_ms = limit_ms, .own = true}, list);
}
