/* observe.h - asks this machine's mounts and its server, for the metrics and for the status page.
 *
 * An observation is used for as long as the caller says, so that any number of peers costs the
 * daemons one question in that time.
 *
 * THREADS    Any. One asks at a time, and others wait for what it learns: a second for each mount,
 *            two for the server and one for systemd at most.
 */
#ifndef RMEMFS_DAEMON_METRICS_OBSERVE_H
#define RMEMFS_DAEMON_METRICS_OBSERVE_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct observation {
	int64_t at_ms;     /* now_ms(), when all had been asked; 0: nobody was */
	json_t *mounts;    /* ctl_list_own_mounts()' list; empty after an error */
	int mounts_err;    /* -errno of the list */
	bool server_there; /* there should be one */
	json_t *server;    /* its status; NULL: there is none, or it has not answered */
	int server_err;    /* 0 without a status: the answer was malformed */
	char server_why[256];
	json_t *missing; /* configured_list()'s list; NULL: no memory */
	int missing_err;
};

struct observer {
	pthread_mutex_t lock;
	const char *socket; /* the server's; NULL: the default one, if it is there */
	struct observation seen;
};

#define OBSERVER_INIT(path)                                         \
	{                                                           \
		.lock = PTHREAD_MUTEX_INITIALIZER, .socket = (path) \
	}

/* Calls use() with an observation that is not older than max_age_ms. It lives until use() returns.
 * use() must not wait for anything. */
void observe(struct observer *o, int64_t max_age_ms,
	void (*use)(const struct observation *seen, void *arg), void *arg);
void observe_end(struct observer *o);

#endif
