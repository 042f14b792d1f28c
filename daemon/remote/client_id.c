/* client_id.c - see client_id.h. */
#include "daemon/remote/client_id.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"

enum {
	NUMBERS_MAX = 64,
	ENDING_MS = 500, /* after this time a process that ends has freed its name */
	LOOK_MS = 5,
};

/* ---- the id ---------------------------------------------------------------------------------- */

/* 128-bit FNV-1a: it tells owners apart, and does not authenticate them. */
struct fnv {
	unsigned __int128 state;
};

static void fnv_init(struct fnv *f)
{
	f->state = (unsigned __int128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
}

static void fnv_add(struct fnv *f, const void *data, size_t len)
{
	const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		f->state = (f->state ^ bytes[i]) * prime;
}

/* A file that can't be read counts as an empty one. */
static void add_file(struct fnv *f, const char *path)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[64] = "";

	if (fd >= 0 && read(fd, text, sizeof(text)) < 0)
		text[0] = '\0';
	fnv_add(f, text, sizeof(text));
}

/* No two namespaces of one boot have the same cookie. */
static void add_network(struct fnv *f)
{
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) < 0)
		cookie = 0;
	fnv_add(f, &cookie, sizeof(cookie));
}

static void hash(const char *mountpoint, unsigned number, uint8_t id[OWNER_BYTES])
{
	char host[256] = "";
	struct fnv f;

	fnv_init(&f);
	add_file(&f, "/proc/sys/kernel/random/boot_id");
	add_file(&f, "/etc/machine-id");
	gethostname(host, sizeof(host) - 1);
	fnv_add(&f, host, strlen(host) + 1);
	add_network(&f);
	fnv_add(&f, mountpoint, strlen(mountpoint) + 1);
	fnv_add(&f, &number, sizeof(number));
	memcpy(id, &f.state, OWNER_BYTES);
}

/* ---- its name -------------------------------------------------------------------------------- */

static int bind_name(int fd, const uint8_t id[OWNER_BYTES])
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char *at = addr.sun_path + 1;
	int n = sprintf(at, "rmemfs-owner-");

	for (size_t i = 0; i < OWNER_BYTES; i++)
		n += sprintf(at + n, "%02x", id[i]);
	return bind(fd, (struct sockaddr *)&addr,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n))
		       ? -errno
		       : 0;
}

/* A descriptor, or -EADDRINUSE: a live process has that number. */
static int hold_name(const uint8_t id[OWNER_BYTES])
{
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err = fd < 0 ? -errno : bind_name(fd, id);

	return err ? err : steal_fd(&fd);
}

/* False: no number below `end` is free. */
static bool take_below(struct owner *owner, const char *mountpoint, unsigned end)
{
	for (unsigned number = 1; number < end; number++) {
		uint8_t id[OWNER_BYTES];
		int fd;

		hash(mountpoint, number, id);
		fd = hold_name(id);
		if (fd < 0)
			continue;
		client_id_release(owner);
		memcpy(owner->id, id, OWNER_BYTES);
		owner->number = number;
		atomic_store(&owner->fd, fd);
		return true;
	}
	return false;
}

void client_id_take(struct owner *owner, const char *mountpoint)
{
	int64_t until_ms = now_ms() + ENDING_MS;

	atomic_init(&owner->fd, -1);
	owner->number = 0;
	while (!take_below(owner, mountpoint, 2) && now_ms() < until_ms)
		poll(NULL, 0, LOOK_MS);
	if (owner->number || take_below(owner, mountpoint, NUMBERS_MAX))
		return;
	/* If this mount is killed, the next one then waits for lease_time, and no more. */
	if (getrandom(owner->id, OWNER_BYTES, 0) != OWNER_BYTES)
		hash(mountpoint, (unsigned)getpid(), owner->id);
}

bool client_id_take_lower(struct owner *owner, const char *mountpoint)
{
	return take_below(owner, mountpoint, owner->number ? owner->number : NUMBERS_MAX);
}

void client_id_release(struct owner *owner)
{
	int fd = atomic_exchange(&owner->fd, -1);

	if (fd >= 0)
		close(fd);
}
