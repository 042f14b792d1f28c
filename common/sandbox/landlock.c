#include "common/sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/util.h"

/* As in the kernel's include/uapi/linux/landlock.h. The header of Debian 12 knows version 2. A
 * kernel takes a longer struct than its own, if the rest of it is zero. */
struct ruleset {
	uint64_t fs, net, scoped;
};

struct __attribute__((packed)) path_rule {
	uint64_t rights;
	int32_t dir;
};

struct net_rule {
	uint64_t rights, port;
};

enum {
	RULE_PATH_BENEATH = 1,
	RULE_NET_PORT = 2,
	BIND_TCP = 1 << 0,
	CONNECT_TCP = 1 << 1,
	SCOPE_SIGNAL = 1 << 1,
	VERSION_RENAMES = 2,
	VERSION_NET = 4,
	VERSION_SCOPE = 6,
	PORT_DNS = 53,
};

unsigned landlock_version(void)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return version < 0 ? 0 : (unsigned)version;
}

/* Any ruleset forbids renames from one directory to another, unless it allows them. */
static int allow_renames(int rules)
{
	autoclose int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct path_rule rule = {LANDLOCK_ACCESS_FS_REFER, root};

	if (root < 0)
		return -errno;
	return syscall(SYS_landlock_add_rule, rules, RULE_PATH_BENEATH, &rule, 0) ? -errno : 0;
}

static int allow_port(int rules, uint64_t right, uint64_t port)
{
	const struct net_rule rule = {right, port};

	return syscall(SYS_landlock_add_rule, rules, RULE_NET_PORT, &rule, 0) ? -errno : 0;
}

/* Names are resolved again by a reload. */
static int allow_ports(int rules, const uint16_t *ports, size_t nports)
{
	int err = allow_port(rules, CONNECT_TCP, PORT_DNS);

	for (size_t i = 0; !err && i < nports; i++)
		err = allow_port(rules, BIND_TCP, ports[i]);
	return err;
}

int landlock_enter(unsigned version, const uint16_t *ports, size_t nports)
{
	const struct ruleset set = {
		.fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
		      LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_REFER,
		.net = version >= VERSION_NET ? BIND_TCP | CONNECT_TCP : 0,
		.scoped = version >= VERSION_SCOPE ? SCOPE_SIGNAL : 0,
	};
	autoclose int rules = -1;
	int err;

	if (version < VERSION_RENAMES)
		return -ENOSYS;
	rules = (int)syscall(SYS_landlock_create_ruleset, &set, sizeof(set), 0);
	err = rules < 0 ? -errno : allow_renames(rules);
	if (!err && set.net)
		err = allow_ports(rules, ports, nports);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	if (!err && syscall(SYS_landlock_restrict_self, rules, 0))
		err = -errno;
	return err;
}
