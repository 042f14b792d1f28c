#include "daemon/owner.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"

/* FNV-1a of 128 bits: owners are told apart by it, not authenticated. */
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

/* False: the file says nothing. */
static bool add_file(struct fnv *f, const char *path)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	if (n < 32)
		return false;
	fnv_add(f, text, (size_t)n);
	return true;
}

/* The host name counts too, since containers made from one image share its machine-id, and a live
 * mount must never be taken for the remains of ours. */
void owner_id(const char *mountpoint, uint8_t out[OWNER_BYTES])
{
	char host[256] = "";
	struct fnv f;

	fnv_init(&f);
	gethostname(host, sizeof(host) - 1);
	fnv_add(&f, host, strlen(host) + 1);
	if (!add_file(&f, "/etc/machine-id"))
		add_file(&f, "/proc/sys/kernel/random/boot_id");
	fnv_add(&f, mountpoint, strlen(mountpoint) + 1);
	memcpy(out, &f.state, OWNER_BYTES);
}
