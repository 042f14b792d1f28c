/* service.c - see service.h. */
#include "common/base/service.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/printable.h"
#include "common/base/util.h"

enum {
	STATUS_MS = 1000, /* between two lines of status */
	RETRY_MS = 1000,  /* when there was no room, or a thread stands still */
	SIGNS = 4,        /* of life, in the time within which the manager wants one */
	BUSY_MS = 10,     /* between two tries of what can't wait */
	EXTEND_S = 60,
	TEXT_BYTES = 1024,
};

/* Things to say, as bits. */
enum topic {
	TOPIC_STATE = 1,
	TOPIC_STATUS = 2,
	TOPIC_ERROR = 4,
	TOPIC_TIME = 8,
	TOPIC_LIFE = 16,
};

static struct service {
	pthread_mutex_t lock;
	int fd; /* -1: there is no manager */
	struct sockaddr_un address;
	socklen_t address_len;
	int64_t life_ms; /* between two signs of life; 0: none are wanted */
	/* Read without the lock. */
	_Atomic int64_t due_ms; /* INT64_MAX: nothing is */

	/* Under the lock. */
	unsigned unsaid; /* topics */
	char state[64];
	char text[TEXT_BYTES];
	int error;
	int64_t text_ms;  /* when a text was said last */
	int64_t retry_ms; /* nothing is said before, since there was no room */
	int64_t sign_ms;  /* when a sign of life is due */
} service = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .due_ms = INT64_MAX};

/* ---- opening --------------------------------------------------------------------------------- */

/* The path of a socket, or behind '@' the name of an abstract one. */
static bool take_address(const char *name)
{
	struct sockaddr_un *un = &service.address;
	size_t len = name ? strlen(name) : 0;

	if (len < 2 || len >= sizeof(un->sun_path) || (name[0] != '/' && name[0] != '@'))
		return false;
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, name, len + 1);
	if (name[0] == '@')
		un->sun_path[0] = '\0';
	service.address_len =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] == '/'));
	return true;
}

bool service_open(void)
{
	uint64_t limit_us = 0;

	if (service.fd >= 0 || !take_address(getenv("NOTIFY_SOCKET")))
		return service_is_open();
	service.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (service.fd < 0)
		return false;
	service.text_ms = -STATUS_MS;
	if (sd_watchdog_enabled(0, &limit_us) > 0) {
		service.life_ms = (int64_t)max_u64(limit_us / 1000 / SIGNS, 1);
		atomic_store(&service.due_ms, 0);
	}
	return true;
}

void service_close(void)
{
	if (service.fd >= 0)
		close(service.fd);
	service.fd = -1;
	service.unsaid = 0;
	service.text[0] = '\0';
	service.life_ms = service.retry_ms = service.sign_ms = 0;
	atomic_store(&service.due_ms, INT64_MAX);
}

bool service_is_open(void)
{
	return service.fd >= 0;
}

/* ---- saying ---------------------------------------------------------------------------------- */

struct message {
	char text[TEXT_BYTES + 256];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct message *m, const char *format, ...)
{
	va_list args;

	if (m->len)
		m->text[m->len++] = '\n';
	va_start(args, format);
	m->len += (size_t)vsnprintf(m->text + m->len, sizeof(m->text) - m->len, format, args);
	va_end(args);
}

static void compose_locked(struct message *m)
{
	unsigned topics = service.unsaid;

	if (topics & TOPIC_STATE)
		add(m, "%s", service.state);
	if (topics & TOPIC_STATUS)
		add(m, "STATUS=%s", service.text);
	if (topics & TOPIC_ERROR)
		add(m, "ERRNO=%d", -service.error);
	if (topics & TOPIC_TIME)
		add(m, "EXTEND_TIMEOUT_USEC=%d000000", EXTEND_S);
	if (topics & TOPIC_LIFE)
		add(m, "WATCHDOG=1");
}

/* A line of status alone waits for its second; everything else takes it along. */
static int64_t unsaid_due_locked(void)
{
	if (!service.unsaid)
		return INT64_MAX;
	if (service.unsaid == TOPIC_STATUS && service.text_ms + STATUS_MS > service.retry_ms)
		return service.text_ms + STATUS_MS;
	return service.retry_ms;
}

static void set_due_locked(void)
{
	int64_t due = unsaid_due_locked();

	if (service.life_ms && service.sign_ms < due)
		due = service.sign_ms;
	atomic_store(&service.due_ms, due);
}

/* The manager may have gone, or be too busy to read: both may pass. */
static void say_due_locked(int64_t now)
{
	struct message m = {.len = 0};

	if (now < unsaid_due_locked())
		return;
	compose_locked(&m);
	if (sendto(service.fd, m.text, m.len, MSG_DONTWAIT | MSG_NOSIGNAL,
		    (const struct sockaddr *)&service.address, service.address_len) < 0) {
		service.retry_ms = now + RETRY_MS;
		return;
	}
	if (service.unsaid & TOPIC_STATUS)
		service.text_ms = now;
	if (service.unsaid & TOPIC_LIFE)
		service.sign_ms = now + service.life_ms;
	service.unsaid = 0;
}

static void say_locked(unsigned topics)
{
	service.unsaid |= topics;
	say_due_locked(now_ms());
	set_due_locked();
}

/* False: it is the same as before. */
__attribute__((format(printf, 1, 0))) static bool take_text_locked(const char *format, va_list args)
{
	char text[TEXT_BYTES];

	vsnprintf(text, sizeof(text), format, args);
	printable_clean_string(text);
	if (strcmp(text, service.text) == 0)
		return false;
	memcpy(service.text, text, sizeof(text));
	return true;
}

/* ---- what callers say ------------------------------------------------------------------------ */

static void say_state_locked(const char *state)
{
	snprintf(service.state, sizeof(service.state), "%s", state);
	say_locked(TOPIC_STATE);
}

static void say_state(const char *state)
{
	if (!service_is_open())
		return;
	pthread_mutex_lock(&service.lock);
	say_state_locked(state);
	pthread_mutex_unlock(&service.lock);
}

void service_ready(void)
{
	say_state("READY=1");
}

/* The socket is not connected, so that poll(2) can't tell when the manager has room. */
bool service_main_pid(int pid, int limit_ms)
{
	int64_t until = now_ms() + limit_ms;
	bool said;

	if (!service_is_open())
		return true;
	pthread_mutex_lock(&service.lock);
	snprintf(service.state, sizeof(service.state), "MAINPID=%d", pid);
	service.unsaid |= TOPIC_STATE;
	do {
		service.retry_ms = 0;
		say_due_locked(now_ms());
		said = !service.unsaid;
	} while (!said && now_ms() < until && poll(NULL, 0, BUSY_MS) == 0);
	set_due_locked();
	pthread_mutex_unlock(&service.lock);
	return said;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static bool send_fds(const char *text, const int *fds, unsigned n)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(SERVICE_FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)text, strlen(text)};
	struct msghdr msg = {
		.msg_name = &service.address,
		.msg_namelen = service.address_len,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};

	if (n) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(n * sizeof(int))};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, n * sizeof(int));
	}
	return sendmsg(service.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static bool tell_fds(const char *text, const int *fds, unsigned n, int limit_ms)
{
	int64_t until = now_ms() + limit_ms;
	bool said;

	if (!service_is_open() || n > SERVICE_FDS_MAX)
		return false;
	do {
		said = send_fds(text, fds, n);
	} while (!said && now_ms() < until && poll(NULL, 0, BUSY_MS) == 0);
	return said;
}

bool service_store(const char *name, const int *fds, unsigned n, int limit_ms)
{
	char text[128];

	snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%.64s", name);
	return tell_fds(text, fds, n, limit_ms);
}

bool service_drop(const char *name, int limit_ms)
{
	char text[128];

	snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%.64s", name);
	return tell_fds(text, NULL, 0, limit_ms);
}

/* The manager closes its end when it comes to this message. */
bool service_await(int limit_ms)
{
	int ends[2];
	struct pollfd pfd;
	bool done;

	if (!service_is_open() || pipe2(ends, O_CLOEXEC) < 0)
		return false;
	done = tell_fds("BARRIER=1", &ends[1], 1, limit_ms);
	close(ends[1]);
	pfd = (struct pollfd){.fd = ends[0]};
	done = done && poll(&pfd, 1, limit_ms) == 1;
	close(ends[0]);
	return done;
}

void service_reloading(void)
{
	char state[sizeof(service.state)];

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIi64,
		clock_ns(CLOCK_MONOTONIC) / 1000);
	say_state(state);
}

void service_stopping(const char *format, ...)
{
	va_list args;

	if (!service_is_open())
		return;
	pthread_mutex_lock(&service.lock);
	va_start(args, format);
	if (take_text_locked(format, args))
		service.unsaid |= TOPIC_STATUS;
	va_end(args);
	say_state_locked("STOPPING=1");
	pthread_mutex_unlock(&service.lock);
}

void service_status(const char *format, ...)
{
	va_list args;

	if (!service_is_open())
		return;
	pthread_mutex_lock(&service.lock);
	va_start(args, format);
	if (take_text_locked(format, args))
		say_locked(TOPIC_STATUS);
	va_end(args);
	pthread_mutex_unlock(&service.lock);
}

void service_progress(const char *format, ...)
{
	unsigned topics = TOPIC_TIME | (service.life_ms ? TOPIC_LIFE : 0);
	va_list args;

	if (!service_is_open())
		return;
	pthread_mutex_lock(&service.lock);
	va_start(args, format);
	if (take_text_locked(format, args))
		topics |= TOPIC_STATUS;
	say_locked(topics);
	va_end(args);
	pthread_mutex_unlock(&service.lock);
}

void service_failed(int err, const char *why)
{
	if (!service_is_open())
		return;
	pthread_mutex_lock(&service.lock);
	service.error = err;
	snprintf(service.text, sizeof(service.text), "%s", why);
	printable_clean_string(service.text);
	say_locked(TOPIC_STATUS | TOPIC_ERROR);
	pthread_mutex_unlock(&service.lock);
}

/* ---- time ------------------------------------------------------------------------------------ */

int64_t service_limit_ms(void)
{
	return service.life_ms * SIGNS;
}

int64_t service_tick(int64_t now, bool well)
{
	int64_t due = atomic_load_explicit(&service.due_ms, memory_order_relaxed);

	if (now >= due) {
		pthread_mutex_lock(&service.lock);
		if (service.life_ms && now >= service.sign_ms) {
			if (well)
				service.unsaid |= TOPIC_LIFE;
			service.sign_ms = now + RETRY_MS;
		}
		say_due_locked(now);
		set_due_locked();
		due = atomic_load(&service.due_ms);
		pthread_mutex_unlock(&service.lock);
	}
	return due == INT64_MAX ? -1 : due;
}
