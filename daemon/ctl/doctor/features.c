/* features.c - see features.h. It and daemon/fuse/ alone know the kernel's FUSE protocol. */
#include "daemon/ctl/doctor/features.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"

#ifndef FUSE_DIRECT_IO_ALLOW_MMAP /* 7.39, Linux 6.6 */
#define FUSE_DIRECT_IO_ALLOW_MMAP (1ULL << 36)
#endif
#ifndef FUSE_ALLOW_IDMAP /* 7.40, Linux 6.12 */
#define FUSE_ALLOW_IDMAP (1ULL << 40)
#endif

/* As the daemon demands and uses them (daemon/fuse/init.c). */
enum { MINOR_MIN = 23, MINOR_PARALLEL = 38, MINOR_MAPS = 40 };

static const struct {
	uint64_t flag;
	uint32_t minor; /* it counts from this version of the kernel's protocol on */
	const char *without;
} features_used[] = {
	{FUSE_MAX_PAGES, 0,
		"requests are of 128 KiB at most, so large reads and writes are slower"},
	{FUSE_HANDLE_KILLPRIV_V2, 0, "each write of a program asks for an attribute first"},
	{FUSE_EXPLICIT_INVAL_DATA, 0, "the kernel forgets pages more often than it must"},
	{FUSE_POSIX_ACL, 0, "there are no access control lists"},
	{0, MINOR_PARALLEL, "direct writes of one file go one after another"},
	{FUSE_DIRECT_IO_ALLOW_MMAP, MINOR_MAPS,
		"MAP_SHARED fails while other mounts are there (ENODEV)"},
	{FUSE_ALLOW_IDMAP, 0, "mounts can't map ids"},
};

static bool offers(const struct features_offer *f, size_t i)
{
	uint64_t flag = features_used[i].flag;

	return (f->flags & flag) == flag && f->minor >= features_used[i].minor;
}

static void judge_refusal(const struct features_offer *f, struct report *r)
{
	if (f->err == -EPERM || f->err == -EACCES)
		report_found(
			r, VERDICT_NOTE, "the kernel's features of FUSE are not seen without root");
	else
		report_found(r, VERDICT_NOTE, "the kernel's features of FUSE are not seen: %s",
			errno_text(f->err));
}

void features_judge(const struct features_offer *f, struct report *r)
{
	unsigned missing = 0;

	if (f->err) {
		judge_refusal(f, r);
		return;
	}
	if (f->major != FUSE_KERNEL_VERSION || f->minor < MINOR_MIN) {
		report_found(r, VERDICT_FAILURE,
			"the kernel speaks version %u.%u of FUSE's protocol", f->major, f->minor);
		report_cause(r, "a mount needs %d.%d", FUSE_KERNEL_VERSION, MINOR_MIN);
		report_remedy(r, "boot a newer kernel");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(features_used); i++) {
		if (offers(f, i))
			continue;
		missing++;
		report_found(r, VERDICT_NOTE, "with this kernel %s", features_used[i].without);
	}
	if (!missing)
		report_found(r, VERDICT_OK,
			"the kernel has all features of FUSE that a mount uses (protocol %u.%u)",
			f->major, f->minor);
}

/* Begins a filesystem that is mounted nowhere and has no directory entry: the kernel sends INIT as
 * to any other. It goes with the descriptors. */
static int begin_filesystem(int device)
{
	autoclose int config = fsopen("fuse", FSOPEN_CLOEXEC);
	char fd[16];

	snprintf(fd, sizeof(fd), "%d", device);
	if (config < 0 ||
		fsconfig(config, FSCONFIG_SET_STRING, "source", "rmemfsctl-doctor", 0) < 0 ||
		fsconfig(config, FSCONFIG_SET_STRING, "fd", fd, 0) < 0 ||
		fsconfig(config, FSCONFIG_SET_STRING, "rootmode", "40000", 0) < 0 ||
		fsconfig(config, FSCONFIG_SET_STRING, "user_id", "0", 0) < 0 ||
		fsconfig(config, FSCONFIG_SET_STRING, "group_id", "0", 0) < 0 ||
		fsconfig(config, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return steal_fd(&config);
}

static int read_offer(int device, struct features_offer *f)
{
	struct {
		struct fuse_in_header header;
		struct fuse_init_in in;
		uint8_t more[FUSE_MIN_READ_BUFFER];
	} message = {0};
	struct pollfd pfd = {.fd = device, .events = POLLIN};
	ssize_t n;

	if (poll(&pfd, 1, 1000) <= 0)
		return -ETIMEDOUT;
	n = read(device, &message, sizeof(message));
	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(message.header) + offsetof(struct fuse_init_in, flags2) ||
		message.header.opcode != FUSE_INIT)
		return -EPROTO;
	f->major = message.in.major;
	f->minor = message.in.minor;
	f->flags = message.in.flags;
	if (f->flags & FUSE_INIT_EXT)
		f->flags |= (uint64_t)message.in.flags2 << 32;
	return 0;
}

void features_check(struct doctor *d)
{
	autoclose int device = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	autoclose int filesystem = device < 0 ? -1 : begin_filesystem(device);
	struct features_offer features = {0};

	if (device < 0)
		features.err = -errno;
	else
		features.err = filesystem < 0 ? filesystem : read_offer(device, &features);
	features_judge(&features, &d->report);
}
