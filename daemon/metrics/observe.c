#include "daemon/metrics/observe.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/transport/address.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/configured.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/mount_ask.h"

enum { MOUNT_MS = 1000, SERVER_MS = 2000, SERVICES_MS = 1000, SAME_WARNING_MS = 60000 };

static void ask_server(struct observation *seen, const char *socket)
{
	static struct log_ratelimit limit;
	autofree char *text = NULL;
	int64_t round_trip_ns;

	seen->server_err = ctl_fetch_status(socket, NULL, SERVER_MS, &text, &round_trip_ns,
		seen->server_why, sizeof(seen->server_why));
	if (!seen->server_err)
		seen->server = ctl_json_read(text);
	else if (log_ratelimit_ok(&limit, SAME_WARNING_MS))
		log_warning("%s: %s", socket, seen->server_why);
}

static void forget(struct observation *seen)
{
	json_decref(seen->mounts);
	json_decref(seen->server);
	json_decref(seen->missing);
	*seen = (struct observation){0};
}

static void ask(struct observer *o)
{
	const char *socket = o->socket ? o->socket : RMEMFS_DEFAULT_SOCKET;
	struct observation *seen = &o->seen;
	struct stat st;

	forget(seen);
	seen->mounts_err = ctl_list_own_mounts(MOUNT_MS, &seen->mounts);
	if (seen->mounts_err)
		seen->mounts = json_array();
	seen->server_there = o->socket || stat(socket, &st) == 0;
	if (seen->server_there)
		ask_server(seen, socket);
	seen->missing_err = configured_list(SERVICES_MS, &seen->missing);
	seen->at_ms = now_ms();
}

void observe(struct observer *o, int64_t max_age_ms,
	void (*use)(const struct observation *seen, void *arg), void *arg)
{
	pthread_mutex_lock(&o->lock);
	if (!o->seen.at_ms || now_ms() - o->seen.at_ms >= max_age_ms)
		ask(o);
	use(&o->seen, arg);
	pthread_mutex_unlock(&o->lock);
}

void observe_end(struct observer *o)
{
	forget(&o->seen);
}
