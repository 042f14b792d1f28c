/* paths.c - see paths.h. */
#include "daemon/remote/paths.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "common/transport/kinds.h"
#include "daemon/remote/pick_transport.h"
#include "daemon/remote/remote_private.h"
#include "daemon/request/io_thread_watch.h"

enum {
	/* Works that were planned over tcp are posted over verbs after a change, so they keep to
	 * what any device can hold. Buffers are contiguous, so a work seldom has more than one. */
	ANY_DEVICE_SGES = 4,
	ANY_DEVICE_BYTES = 1 << 20,
	OPEN_MS = 1000,
};

/* ---- opening and closing --------------------------------------------------------------------- */

static struct session_path *path_of(struct session *s, enum transport_kind kind)
{
	return &s->paths[kind];
}

static void set_path(struct session_path *path, const struct transport_address *address,
	struct transport *transport)
{
	char text[sizeof(path->server) - 8];

	path->transport = transport;
	path->address = *address;
	address_format(address, text, sizeof(text));
	snprintf(path->server, sizeof(path->server), "%s %s", transport_kind_name(address->kind),
		text);
}

static void use(struct session *s, struct session_path *path)
{
	atomic_store(&s->path, path);
	atomic_store(&s->server, path->server);
}

/* verbs was found, and the way back to tcp is kept open. */
static int open_tcp_too(struct session *s, char *why, size_t whylen)
{
	struct transport_address address = atomic_load(&s->path)->address;
	struct transport *transport;
	int err;

	address.kind = TRANSPORT_TCP;
	err = transport_open(&address, &s->config, OPEN_MS, &transport);
	if (err) {
		snprintf(why, whylen, "can't open transport tcp: %s", errno_text(err));
		return err;
	}
	set_path(path_of(s, TRANSPORT_TCP), &address, transport);
	return 0;
}

int paths_open(struct session *s, const struct session_options *options,
	const struct transport_config *config, char *why, size_t whylen)
{
	struct transport_address address;
	struct transport *transport;
	char no_verbs[sizeof(s->no_verbs)] = "";
	int err;

	s->options = *options;
	s->config = *config;
	err = pick_transport(options, config, &address, &transport, no_verbs, sizeof(no_verbs));
	if (err) {
		snprintf(why, whylen, "%s", no_verbs);
		return err;
	}
	set_path(path_of(s, address.kind), &address, transport);
	use(s, path_of(s, address.kind));
	s->moves = pick_transport_may_change(options, &address);
	if (s->moves && address.kind == TRANSPORT_TCP)
		snprintf(s->no_verbs, sizeof(s->no_verbs), "%s", no_verbs);
	else if (s->moves)
		err = open_tcp_too(s, why, whylen);
	if (err)
		paths_close(s);
	return err;
}

void paths_close(struct session *s)
{
	for (unsigned kind = 0; kind < TRANSPORT_NKINDS; kind++) {
		transport_close(s->paths[kind].transport);
		s->paths[kind].transport = NULL;
	}
}

/* ---- buffers --------------------------------------------------------------------------------- */

static struct transport *first_transport(struct session *s)
{
	return s->moves ? path_of(s, TRANSPORT_TCP)->transport : atomic_load(&s->path)->transport;
}

static int remember(struct session *s, struct buffer *b)
{
	for (unsigned i = 0; i < ARRAY_SIZE(s->memory); i++)
		if (!s->memory[i]) {
			s->memory[i] = b;
			return 0;
		}
	return -ENOSPC;
}

int paths_register(struct session *s, void *addr, size_t len, struct buffer **out)
{
	struct transport *verbs = path_of(s, TRANSPORT_VERBS)->transport;
	struct buffer *b;
	int err = buffer_register(first_transport(s), addr, len, &b);

	if (err)
		return err;
	if (s->moves && verbs)
		err = buffer_register_also(b, verbs);
	if (!err)
		err = remember(s, b);
	if (err) {
		buffer_deregister_also(b);
		buffer_deregister(b);
		return err;
	}
	*out = b;
	return 0;
}

void paths_deregister(struct session *s, struct buffer *b)
{
	for (unsigned i = 0; b && i < ARRAY_SIZE(s->memory); i++)
		if (s->memory[i] == b) {
			s->memory[i] = NULL;
			buffer_deregister_also(b);
			buffer_deregister(b);
			return;
		}
}

int paths_register_verbs(struct session *s, char *why, size_t whylen)
{
	struct transport *verbs = path_of(s, TRANSPORT_VERBS)->transport;

	for (unsigned i = 0; i < ARRAY_SIZE(s->memory); i++) {
		int err = s->memory[i] ? buffer_register_also(s->memory[i], verbs) : 0;

		if (err && err != -EEXIST) {
			snprintf(why, whylen,
				"the device can't register the mount's buffers: %s: raise "
				"RLIMIT_MEMLOCK, or make io_threads or buffers smaller",
				errno_text(err));
			return err;
		}
	}
	return 0;
}

void paths_limit(const struct session *s, struct io_limits *limits)
{
	if (!s->moves)
		return;
	limits->max_sge_read = (uint32_t)min_u64(limits->max_sge_read, ANY_DEVICE_SGES);
	limits->max_sge_write = (uint32_t)min_u64(limits->max_sge_write, ANY_DEVICE_SGES);
	limits->max_work_bytes = (uint32_t)min_u64(limits->max_work_bytes, ANY_DEVICE_BYTES);
}

bool paths_limits_suffice(const struct session *s, const struct channel_limits *limits)
{
	return limits->max_sge_read >= s->limits.max_sge_read &&
	       limits->max_sge_write >= s->limits.max_sge_write &&
	       limits->max_work_bytes >= s->limits.max_work_bytes;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* While it is counted the scout does not close it. */
static struct session_path *take_path(struct session *s)
{
	struct session_path *path;

	pthread_mutex_lock(&s->lock);
	path = atomic_load(&s->path);
	path->nusers++;
	pthread_mutex_unlock(&s->lock);
	return path;
}

static void give_path(struct session *s, struct session_path *path)
{
	pthread_mutex_lock(&s->lock);
	path->nusers--;
	pthread_mutex_unlock(&s->lock);
}

void paths_leave(struct remote *r)
{
	assert(!r->ch);
	if (!r->path)
		return;
	io_thread_unwatch(r->thread, r->thread->evq);
	evq_delete(r->thread->evq);
	r->thread->evq = NULL;
	give_path(r->session, r->path);
	r->path = NULL;
}

int paths_enter(struct remote *r)
{
	struct session *s = r->session;
	struct session_path *path;
	struct evq *q;
	int err;

	assert(!r->ch);
	if (r->path == atomic_load(&s->path))
		return 0;
	path = take_path(s);
	err = evq_new(path->transport, &q);
	if (err)
		goto err_path;
	err = io_thread_watch(r->thread, q);
	if (err)
		goto err_evq;
	paths_leave(r);
	r->path = path;
	r->thread->evq = q;
	return 0;

err_evq:
	evq_delete(q);
err_path:
	give_path(s, path);
	return err;
}

bool paths_left_behind(const struct remote *r)
{
	return r->ch && r->path != atomic_load(&r->session->path);
}

void paths_refused(struct remote *r, const char *why)
{
	struct session *s = r->session;

	if (!s->moves || r->path->address.kind != TRANSPORT_VERBS)
		return;
	paths_say_no_verbs(s, why);
	pthread_mutex_lock(&s->lock);
	s->verbs_refused = true;
	pthread_mutex_unlock(&s->lock);
}

/* ---- changing -------------------------------------------------------------------------------- */

int paths_try_verbs(struct session *s, char *why, size_t whylen)
{
	struct transport_address address = path_of(s, TRANSPORT_TCP)->address;
	struct session_path *verbs = path_of(s, TRANSPORT_VERBS);
	struct transport *transport;
	int err;

	if (verbs->transport)
		return 0;
	err = pick_transport_verbs(
		&s->options, &s->config, &address, OPEN_MS, &transport, why, whylen);
	if (!err)
		set_path(verbs, &address, transport);
	return err;
}

void paths_close_verbs(struct session *s)
{
	struct session_path *verbs = path_of(s, TRANSPORT_VERBS);
	bool used;

	pthread_mutex_lock(&s->lock);
	used = atomic_load(&s->path) == verbs || verbs->nusers;
	pthread_mutex_unlock(&s->lock);
	if (used || !verbs->transport)
		return;
	for (unsigned i = 0; i < ARRAY_SIZE(s->memory); i++)
		if (s->memory[i])
			buffer_deregister_also(s->memory[i]);
	transport_close(verbs->transport);
	verbs->transport = NULL;
}

void paths_say_no_verbs(struct session *s, const char *why)
{
	pthread_mutex_lock(&s->lock);
	snprintf(s->no_verbs, sizeof(s->no_verbs), "%s", why);
	pthread_mutex_unlock(&s->lock);
}

void paths_move(struct session *s, enum transport_kind kind, const char *why)
{
	struct session_path *path = path_of(s, kind);
	const char *before = s->server;

	assert(path->transport);
	pthread_mutex_lock(&s->lock);
	use(s, path);
	pthread_mutex_unlock(&s->lock);
	if (kind == TRANSPORT_VERBS) {
		paths_say_no_verbs(s, "");
		log_notice("server %s: the mount changes to verbs, by device %s", before,
			transport_device(path->transport));
	} else {
		paths_say_no_verbs(s, why);
		log_warning("server %s: the mount changes to tcp: %s", before, why);
	}
}
