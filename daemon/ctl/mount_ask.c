#include "daemon/ctl/mount_ask.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mount_socket.h"
#include "common/base/util.h"
#include "daemon/ctl/json.h"

enum { ANSWER_BYTES_MAX = 16 << 20 };

/* ---- finding a mount ------------------------------------------------------------------------- */

struct wanted {
	const char *dir;
	struct mount *mount;
	char *text;
};

/* The last one listed is the topmost. */
static bool take_if_wanted(const struct mount *mount, void *arg)
{
	struct wanted *w = arg;

	if (strcmp(mount->dir, w->dir) != 0)
		return true;
	free(w->text);
	w->text = mountinfo_copy(mount, w->mount);
	return true;
}

static char *find(const char *dir, struct mount *mount)
{
	struct wanted w = {dir, mount, NULL};

	mountinfo_each("/proc/self/mountinfo", take_if_wanted, &w);
	if (w.text && strcmp(mount->type, MOUNT_TYPE_OURS) == 0)
		return w.text;
	free(w.text);
	return NULL;
}

/* The path without links and dots, but for a link at its end: realpath(3) of all of it would ask
 * the mount itself. */
static char *above_resolved(const char *dir)
{
	autofree char *copy = strdup(dir), *copy2 = strdup(dir);
	autofree char *above = copy ? realpath(dirname(copy), NULL) : NULL;
	char *resolved;

	if (!above || !copy2 ||
		asprintf(&resolved, "%s/%s", strcmp(above, "/") ? above : "", basename(copy2)) < 0)
		return NULL;
	return resolved;
}

/* A link at the end is read, and not followed further than to the mount. */
static char *link_resolved(const char *path)
{
	autofree char *joined = NULL;
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	const char *name = strrchr(path, '/');

	if (n < 0 || !name)
		return NULL;
	target[n] = '\0';
	if (*target == '/')
		return above_resolved(target);
	if (asprintf(&joined, "%.*s/%s", (int)(name - path), path, target) < 0)
		return NULL;
	return above_resolved(joined);
}

char *ctl_find_mount(const char *dir, struct mount *mount)
{
	autofree char *resolved = NULL, *behind = NULL;
	char *text = find(dir, mount);

	if (text)
		return text;
	resolved = above_resolved(dir);
	text = resolved ? find(resolved, mount) : NULL;
	if (text || !resolved)
		return text;
	behind = link_resolved(resolved);
	return behind ? find(behind, mount) : NULL;
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

static int exchange(const char *path, const char *question, unsigned limit_ms, char **text)
{
	char line[MOUNT_QUESTION_BYTES + 1];
	size_t len = (size_t)snprintf(line, sizeof(line), "%s\n", question);
	int fd, err;

	if (len > MOUNT_QUESTION_BYTES)
		return -EINVAL;
	fd = ask_connect(path, limit_ms);
	if (fd < 0)
		return fd;
	err = send(fd, line, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -errno;
	if (!err)
		err = read_all(fd, limit_ms, text);
	close(fd);
	return err;
}

static void explain(const struct mount *mount, const char *path, int err, char *why, size_t whylen)
{
	switch (err) {
	case -ENOENT:
	case -ECONNREFUSED:
		snprintf(why, whylen,
			"its daemon does not listen at %s: it has ended (umount -l %s), or runs in "
			"another container, or is an earlier version",
			path, mount->dir);
		break;
	case -EACCES:
	case -EPERM:
		snprintf(why, whylen,
			"its daemon's socket %s is for root%s: run rmemfsctl as such a user", path,
			mount->uid ? " and the user that mounted it"
				   : " and the group rmemfs-monitor");
		break;
	case -ETIMEDOUT:
		snprintf(why, whylen,
			"its daemon does not answer in time: it is stopped, or this machine gives "
			"it no CPU: look at it by 'ps -C rmemfs -o pid,stat,wchan'");
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
	int err = mount_socket_path(mount->uid, mount->minor, path);

	*answer = NULL;
	if (err) {
		snprintf(why, whylen,
			"XDG_RUNTIME_DIR does not say where the sockets of this user's mounts are");
		return err;
	}
	err = exchange(path, question, limit_ms, &text);
	if (err) {
		explain(mount, path, err, why, whylen);
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

struct listing {
	json_t *list;
	unsigned limit_ms;
};

static bool add_mount(const struct mount *mount, void *arg)
{
	const struct listing *l = arg;
	json_t *answer, *entry;
	char why[512] = "";
	int err;

	if (strcmp(mount->type, MOUNT_TYPE_OURS) != 0)
		return true;
	err = ctl_ask_mount(mount, "status", l->limit_ms, &answer, why, sizeof(why));
	entry = json_object();
	json_object_set_new(entry, "mountpoint", path_text(mount->dir));
	json_object_set_new(entry, "source", path_text(mount->source));
	json_object_set_new(entry, "connection", json_integer(mount->minor));
	json_object_set_new(entry, "allowed", json_boolean(err != -EACCES && err != -EPERM));
	json_object_set_new(entry, "answer", answer ? answer : json_null());
	json_object_set_new(entry, "error", answer ? json_null() : path_text(why));
	json_array_append_new(l->list, entry);
	return true;
}

int ctl_list_mounts(unsigned limit_ms, json_t **list)
{
	struct listing l = {json_array(), limit_ms};
	int err;

	*list = l.list;
	if (!l.list)
		return -ENOMEM;
	err = mountinfo_each("/proc/self/mountinfo", add_mount, &l);
	if (err)
		json_decref(*list);
	return err;
}
