/* web.h - answers GET over HTTP with a text that is made for each request (libmicrohttpd).
 *
 * One thread answers, one request at a time. At most WEB_PEERS are connected, and one that is idle
 * for WEB_IDLE_S is closed. Peers that send a byte now and then may keep others away: on a machine
 * with users that are not trusted it has to listen at a Unix socket.
 */
#ifndef RMEMFS_DAEMON_METRICS_WEB_H
#define RMEMFS_DAEMON_METRICS_WEB_H

#include <stddef.h>

enum { WEB_PEERS = 64, WEB_IDLE_S = 10 };

struct web;

/* A page: its path, its type, and its text, malloced; NULL: it can't be made now. policy: its
 * Content-Security-Policy; NULL: nothing may come along. */
struct web_page {
	const char *path, *type, *policy;
	char *(*make)(void *arg, size_t *len);
	void *arg;
};

/* where: HOST:PORT, [ADDRESS]:PORT, or unix:/PATH, which is made for the user alone. The pages end
 * with a NULL path, and live as long as the result. NULL: the reason is in why. */
struct web *web_start(const char *where, const struct web_page *pages, char *why, size_t whylen);
void web_stop(struct web *web);

#endif
