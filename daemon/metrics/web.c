#include "daemon/metrics/web.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"

enum { BACKLOG = 16 };

struct web {
	struct MHD_Daemon *daemon;
	const struct web_page *pages;
	char *socket; /* a Unix socket's path, to be removed */
};

/* ---- answers --------------------------------------------------------------------------------- */

/* A browser takes an answer for nothing but its type, loads what the policy permits, keeps no copy,
 * and tells no other site of it. */
static void add_headers(struct MHD_Response *response, const char *type, const char *policy)
{
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, "Content-Security-Policy",
		policy ? policy : "default-src 'none'; frame-ancestors 'none'");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
}

static enum MHD_Result answer_text(struct MHD_Connection *to, unsigned status, const char *text)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	add_headers(response, "text/plain; charset=utf-8", NULL);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(to, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_page(struct MHD_Connection *to, const struct web_page *page)
{
	struct MHD_Response *response;
	enum MHD_Result result;
	size_t len;
	char *text = page->make(page->arg, &len);

	if (!text)
		return answer_text(to, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
	response = MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(text);
		return MHD_NO;
	}
	add_headers(response, page->type, page->policy);
	result = MHD_queue_response(to, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return result;
}

/* microhttpd drops the body of an answer to HEAD. */
static enum MHD_Result answer(void *arg, struct MHD_Connection *to, const char *url,
	const char *method, const char *version, const char *data, size_t *len, void **state)
{
	const struct web *web = arg;

	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_text(to, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
	for (const struct web_page *page = web->pages; page->path; page++)
		if (strcmp(url, page->path) == 0)
			return answer_page(to, page);
	return answer_text(to, MHD_HTTP_NOT_FOUND, "there are / and /metrics\n");
}

/* ---- where it listens ------------------------------------------------------------------------ */

static int listen_unix(struct web *web, const char *path, char *why, size_t whylen)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	mode_t mask;
	int err;

	if (*path != '/' || strlen(path) >= sizeof(address.sun_path)) {
		snprintf(why, whylen, "unix:%s: must be a path from /, of %zu bytes at most", path,
			sizeof(address.sun_path) - 1);
		return -EINVAL;
	}
	strcpy(address.sun_path, path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 &&
		errno == ECONNREFUSED)
		unlink(path); /* of a program that was killed */
	close(fd);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	mask = umask(0177);
	err = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(mask);
	if (!err) {
		web->socket = strdup(path);
		err = listen(fd, BACKLOG) < 0 ? -errno : 0;
	}
	if (!err)
		return steal_fd(&fd);
	snprintf(why, whylen, "unix:%s: %s%s", path, errno_text(err),
		err == -EADDRINUSE ? ": another program listens there, or it is no socket" : "");
	return err;
}

static int listen_at(const struct addrinfo *at)
{
	autoclose int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return steal_fd(&fd);
}

/* "HOST:PORT", "[::1]:9470" */
static int listen_tcp(const char *where, char *why, size_t whylen)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	autofree char *host = strdup(where);
	struct addrinfo *list;
	char *port = host ? strrchr(host, ':') : NULL, *name = host;
	size_t len;
	int err;

	if (!port || !port[1]) {
		snprintf(why, whylen, "%s: must be HOST:PORT, [ADDRESS]:PORT or unix:/PATH", where);
		return -EINVAL;
	}
	*port++ = '\0';
	len = strlen(name);
	if (len > 1 && name[0] == '[' && name[len - 1] == ']') {
		name[len - 1] = '\0';
		name++;
	}
	err = getaddrinfo(*name ? name : NULL, port, &hints, &list);
	if (err) {
		snprintf(why, whylen, "%s: %s: name an address of this machine", where,
			gai_strerror(err));
		return -EINVAL;
	}
	err = listen_at(list);
	freeaddrinfo(list);
	if (err < 0)
		snprintf(why, whylen, "%s: %s: name a free port of an address of this machine",
			where, errno_text(err));
	return err;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct web *web_start(const char *where, const struct web_page *pages, char *why, size_t whylen)
{
	static const char unix_word[] = "unix:";
	struct web *web = calloc(1, sizeof(*web));
	int fd;

	if (!web) {
		snprintf(why, whylen, "%s", errno_text(ENOMEM));
		return NULL;
	}
	web->pages = pages;
	if (strncmp(where, unix_word, strlen(unix_word)) == 0)
		fd = listen_unix(web, where + strlen(unix_word), why, whylen);
	else
		fd = listen_tcp(where, why, whylen);
	if (fd < 0) {
		web_stop(web);
		return NULL;
	}
	web->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, 0, NULL,
		NULL, answer, web, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)WEB_PEERS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)WEB_IDLE_S,
		MHD_OPTION_END);
	if (!web->daemon) {
		snprintf(why, whylen, "%s: the HTTP server can't be started", where);
		close(fd);
		web_stop(web);
		return NULL;
	}
	return web;
}

void web_stop(struct web *web)
{
	if (web->daemon)
		MHD_stop_daemon(web->daemon);
	if (web->socket)
		unlink(web->socket);
	free(web->socket);
	free(web);
}
