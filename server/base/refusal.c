/* refusal.c - see refusal.h. */
#include "server/base/refusal.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/base/log.h"
#include "common/base/service.h"

/* With a lock, since the workers of regions.c log, too. */
static struct {
	pthread_mutex_t lock;
	char why[1024]; /* empty: nothing has failed */
	bool followed;  /* the log has later lines */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void see_line(enum log_level level, const char *text)
{
	pthread_mutex_lock(&seen.lock);
	if (seen.why[0])
		seen.followed = true;
	else if (level == LOG_LEVEL_ERROR)
		snprintf(seen.why, sizeof(seen.why), "%s", text);
	pthread_mutex_unlock(&seen.lock);
}

void refusal_watch(void)
{
	log_set_watcher(see_line);
}

enum server_status refusal_status(int err)
{
	switch (-err) {
	case EINVAL:
	case EPERM:
	case EACCES:
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case EBUSY:
	case EEXIST:
	case ELOOP:
	case ENAMETOOLONG:
	case EFBIG: /* more than exists, by the plan. ENOSPC and ENOMEM of a moment may pass */
	case EROFS:
	case EXDEV:
	case EBADMSG:
	case EPROTONOSUPPORT:
	case EOPNOTSUPP:
		return SERVER_REFUSED;
	default:
		return SERVER_FAILED;
	}
}

void refusal_tell_systemd(int err, const char *why)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s: %s",
		refusal_status(err) == SERVER_REFUSED ? "refused" : "failed", why);
	service_failed(err, text);
}

enum server_status refusal_end(int err)
{
	log_set_watcher(NULL);
	if (!err || err == -EINTR) /* asked to end */
		return SERVER_DONE;
	if (!seen.why[0])
		log_error("the start failed: %s", errno_text(err));
	else if (seen.followed)
		log_error("not started: %s", seen.why);
	refusal_tell_systemd(err, seen.why[0] ? seen.why : errno_text(err));
	return refusal_status(err);
}
