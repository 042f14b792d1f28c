#include "common/sandbox/sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/sanitized.h"
#include "common/base/util.h"
#include "common/sandbox/landlock.h"
#include "common/sandbox/syscall_filter.h"

static bool is_wanted(void)
{
	const char *text = getenv("RMEMFS_SANDBOX");

	return !IS_SANITIZED && !(text && strcmp(text, "off") == 0);
}

static void filter_calls(bool may_unmount)
{
	int err = syscall_filter_enter(may_unmount);

	if (err)
		log_info("this kernel does not limit the system calls of this process: %s",
			errno_text(err));
}

void sandbox_enter_server(const uint16_t *ports, size_t nports)
{
	int err;

	if (!is_wanted())
		return;
	filter_calls(false);
	err = landlock_enter(landlock_version(), ports, nports);
	if (err)
		log_info(
			"this kernel does not limit this process by Landlock: %s", errno_text(err));
}

void sandbox_enter_mount(void)
{
	if (is_wanted() && geteuid() == 0)
		filter_calls(true);
}

/* SYS_ADMIN: to mount, and to unmount. DAC_*: the mount point, the key file and the server's socket
 * are other users'. SYS_PTRACE: callers' user namespaces. SYS_RESOURCE: limits, pipes,
 * PR_SET_IO_FLUSHER. IPC_LOCK: registered memory. NET_ADMIN: the kernel loads its TLS. */
static const uint64_t kept = 1ULL << CAP_SYS_ADMIN | 1ULL << CAP_DAC_OVERRIDE |
			     1ULL << CAP_DAC_READ_SEARCH | 1ULL << CAP_SYS_PTRACE |
			     1ULL << CAP_SYS_RESOURCE | 1ULL << CAP_IPC_LOCK |
			     1ULL << CAP_NET_ADMIN;

void sandbox_drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (geteuid() != 0 || syscall(SYS_capget, &header, data) != 0)
		return;
	/* Root of a user namespace may have less, and a unit may have taken some. */
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!(kept & 1ULL << cap) && prctl(PR_CAPBSET_READ, cap) > 0)
			prctl(PR_CAPBSET_DROP, cap);
	for (unsigned i = 0; i < ARRAY_SIZE(data); i++) {
		uint32_t mask = (uint32_t)(kept >> (32 * i));

		data[i].permitted &= mask;
		data[i].effective &= mask;
		data[i].inheritable &= mask;
	}
	if (syscall(SYS_capset, &header, data) != 0)
		log_debug("capabilities stay: %s", errno_text(errno));
}
