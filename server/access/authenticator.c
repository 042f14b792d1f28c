/* authenticator.c - see authenticator.h. Attempts go through two lists: posted, and done. */
#include "server/access/authenticator.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/list.h"
#include "common/base/nodump.h"
#include "common/base/util.h"

enum { AUTHENTICATOR_NICE = 10 };

struct attempt {
	struct list link; /* authenticator.posted, .done, or alone */
	struct authenticator *authenticator;
	void *user;
	bool posted;    /* the caller waits for the step's end */
	bool abandoned; /* guarded by the lock: the caller has deleted it while the thread had it */

	/* The caller uses these between two steps, and else the thread does. */
	struct handshake *handshake; /* NULL: no step was run, or it is over */
	enum handshake_state state;
	size_t inlen, outlen;
	struct access_proof proof;
	struct channel_keys keys;
	char refusal[256];
	char offered[AUTH_KEY_ID_MAX + 1];
	bool offered_known;
	uint8_t kind, client_hello[HANDSHAKE_HELLO_BYTES], server_hello[HANDSHAKE_HELLO_BYTES];
	uint8_t in[HANDSHAKE_FLIGHT_MAX], out[HANDSHAKE_FLIGHT_MAX];
};

struct authenticator {
	struct handshake_context *context;
	struct access_current *access;
	pthread_t thread;
	int fd;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	bool stop;
	struct list posted, done;
	struct attempt *running;
};

/* ---- the thread ------------------------------------------------------------------------------ */

/* handshake_find. */
static bool find_key(void *user, const char *id, uint8_t secret[AUTH_KEY_BYTES])
{
	struct attempt *at = user;
	struct access_table *table = access_current_get(at->authenticator->access);
	const struct access_key *key = access_table_key(table, id, strlen(id));

	if (key) {
		memcpy(secret, key->secret->secret, AUTH_KEY_BYTES);
		at->proof = key->proof;
	}
	access_table_put(table);
	return key;
}

static void run_step(struct authenticator *a, struct attempt *at)
{
	int err = 0;

	if (!at->handshake)
		err = handshake_server_new(a->context, find_key, at, &at->handshake);
	if (err) {
		at->state = HANDSHAKE_REFUSED;
		at->outlen = 0;
		snprintf(at->refusal, sizeof(at->refusal), "the handshake can't begin: %s",
			errno_text(err));
		return;
	}
	at->state = handshake_step(
		at->handshake, at->in, at->inlen, at->out, sizeof(at->out), &at->outlen);
	if (at->state == HANDSHAKE_MORE)
		return;
	at->offered_known = handshake_reason(at->handshake) == HANDSHAKE_OTHER_BYTES;
	snprintf(at->offered, sizeof(at->offered), "%s", handshake_offered_id(at->handshake));
	snprintf(at->refusal, sizeof(at->refusal), "%s%s", handshake_refusal(at->handshake),
		at->offered_known ? ": compare 'rmemfsctl keycheck' on both machines, and "
				    "copy the server's file over the client's"
				  : "");
	if (at->state == HANDSHAKE_DONE && handshake_keys(at->handshake, at->client_hello,
						   at->server_hello, at->kind, &at->keys)) {
		at->state = HANDSHAKE_REFUSED;
		snprintf(at->refusal, sizeof(at->refusal), "the channel's keys can't be made");
	}
	handshake_delete(at->handshake);
	at->handshake = NULL;
}

static void attempt_free(struct attempt *at)
{
	handshake_delete(at->handshake);
	explicit_bzero(&at->keys, sizeof(at->keys));
	nodump_free(at);
}

static struct attempt *next_attempt(struct authenticator *a)
{
	while (!a->stop && list_empty(&a->posted))
		pthread_cond_wait(&a->wake, &a->lock);
	return a->stop ? NULL : list_entry(list_pop(&a->posted), struct attempt, link);
}

/* A client that comes waits rather than those that are there. If it can't be had, all goes on. */
static void authenticator_stand_back(void)
{
	setpriority(PRIO_PROCESS, (id_t)gettid(), AUTHENTICATOR_NICE);
}

static void *authenticator_main(void *arg)
{
	struct authenticator *a = arg;
	struct attempt *at;

	authenticator_stand_back();
	pthread_mutex_lock(&a->lock);
	while ((at = next_attempt(a))) {
		list_init(&at->link);
		a->running = at;
		pthread_mutex_unlock(&a->lock);
		run_step(a, at);
		pthread_mutex_lock(&a->lock);
		a->running = NULL;
		if (at->abandoned) {
			attempt_free(at);
			continue;
		}
		list_add_tail(&a->done, &at->link);
		eventfd_write(a->fd, 1);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* ---- its life -------------------------------------------------------------------------------- */

static int authenticator_start(struct authenticator *a, char *why, size_t whylen)
{
	int err = handshake_context_new(HANDSHAKE_SERVER, &a->context, why, whylen);

	if (err)
		return err;
	a->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	err = a->fd < 0 ? -errno : -pthread_create(&a->thread, NULL, authenticator_main, a);
	if (!err)
		return 0;
	snprintf(why, whylen, "no thread for handshakes: %s", errno_text(err));
	if (a->fd >= 0)
		close(a->fd);
	handshake_context_delete(a->context);
	return err;
}

int authenticator_new(
	struct access_current *access, struct authenticator **out, char *why, size_t whylen)
{
	struct authenticator *a = calloc(1, sizeof(*a));
	int err;

	if (!a) {
		snprintf(why, whylen, "out of memory");
		return -ENOMEM;
	}
	a->access = access;
	list_init(&a->posted);
	list_init(&a->done);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->wake, NULL);
	err = authenticator_start(a, why, whylen);
	if (!err) {
		*out = a;
		return 0;
	}
	pthread_cond_destroy(&a->wake);
	pthread_mutex_destroy(&a->lock);
	free(a);
	return err;
}

void authenticator_delete(struct authenticator *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	assert(list_empty(&a->posted) && list_empty(&a->done));
	pthread_cond_destroy(&a->wake);
	pthread_mutex_destroy(&a->lock);
	close(a->fd);
	handshake_context_delete(a->context);
	free(a);
}

int authenticator_fd(const struct authenticator *a)
{
	return a->fd;
}

void authenticator_clear(struct authenticator *a)
{
	eventfd_t n;

	eventfd_read(a->fd, &n);
}

struct attempt *authenticator_take(struct authenticator *a)
{
	struct attempt *at = NULL;

	pthread_mutex_lock(&a->lock);
	if (!list_empty(&a->done))
		at = list_entry(list_pop(&a->done), struct attempt, link);
	pthread_mutex_unlock(&a->lock);
	if (!at)
		return NULL;
	list_init(&at->link);
	at->posted = false;
	return at;
}

/* ---- attempts -------------------------------------------------------------------------------- */

int attempt_new(struct authenticator *a, const struct attempt_channel *channel, void *user,
	struct attempt **out)
{
	struct attempt *at = nodump_zalloc(sizeof(*at));

	if (!at)
		return -ENOMEM;
	list_init(&at->link);
	at->authenticator = a;
	at->user = user;
	at->kind = channel->kind;
	memcpy(at->client_hello, channel->client_hello, sizeof(at->client_hello));
	memcpy(at->server_hello, channel->server_hello, sizeof(at->server_hello));
	*out = at;
	return 0;
}

void attempt_delete(struct attempt *at)
{
	struct authenticator *a;

	if (!at)
		return;
	a = at->authenticator;
	pthread_mutex_lock(&a->lock);
	if (a->running == at) {
		at->abandoned = true;
		at = NULL;
	} else {
		list_del(&at->link);
	}
	pthread_mutex_unlock(&a->lock);
	if (at)
		attempt_free(at);
}

void *attempt_user(const struct attempt *at)
{
	return at->user;
}

void attempt_post(struct attempt *at, const void *flight, size_t len)
{
	struct authenticator *a = at->authenticator;

	assert(!at->posted && len <= sizeof(at->in));
	memcpy(at->in, flight, len);
	at->inlen = len;
	at->posted = true;
	pthread_mutex_lock(&a->lock);
	list_add_tail(&a->posted, &at->link);
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
}

bool attempt_is_posted(const struct attempt *at)
{
	return at->posted;
}

enum handshake_state attempt_state(const struct attempt *at)
{
	return at->state;
}

const void *attempt_flight(const struct attempt *at, size_t *len)
{
	*len = at->outlen;
	return at->out;
}

const struct access_proof *attempt_proof(const struct attempt *at)
{
	return &at->proof;
}

const struct channel_keys *attempt_keys(const struct attempt *at)
{
	return &at->keys;
}

const char *attempt_refusal(const struct attempt *at)
{
	return at->refusal;
}

const char *attempt_offered_id(const struct attempt *at, bool *known)
{
	*known = at->offered_known;
	return at->offered;
}
