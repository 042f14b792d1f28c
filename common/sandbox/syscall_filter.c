#include "common/sandbox/syscall_filter.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "common/base/util.h"

/* In groups; by name, since not every architecture and version of libseccomp knows each. */
static const char *const forbidden[] = {
	/* other programs and processes */
	"execve",
	"execveat",
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"process_madvise",
	"kcmp",
	"pidfd_getfd",
	/* mounts and namespaces */
	"mount",
	"umount",
	"move_mount",
	"open_tree",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"mount_setattr",
	"pivot_root",
	"chroot",
	"setns",
	"unshare",
	"open_by_handle_at",
	/* other users */
	"setuid",
	"setgid",
	"setreuid",
	"setregid",
	"setresuid",
	"setresgid",
	"setfsuid",
	"setfsgid",
	"setgroups",
	"capset",
	/* the kernel, and large parts of it that are not used */
	"bpf",
	"perf_event_open",
	"userfaultfd",
	"io_uring_setup",
	"init_module",
	"finit_module",
	"delete_module",
	"kexec_load",
	"kexec_file_load",
	"reboot",
	"syslog",
	"modify_ldt",
	"iopl",
	"ioperm",
	"uselib",
	"vm86",
	"lookup_dcookie",
	"fanotify_init",
	/* keyrings */
	"add_key",
	"request_key",
	"keyctl",
	/* the machine's settings */
	"settimeofday",
	"clock_settime",
	"clock_adjtime",
	"adjtimex",
	"stime",
	"sethostname",
	"setdomainname",
	"swapon",
	"swapoff",
	"acct",
	"quotactl",
	"quotactl_fd",
	"vhangup",
	"personality",
};

static int forbid(scmp_filter_ctx filter, int error, int call)
{
	int err = call == __NR_SCMP_ERROR
			  ? 0
			  : seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), call, 0);

	/* A call that this architecture has not. */
	return err == -EDOM ? 0 : err;
}

static int forbid_if(scmp_filter_ctx filter, int call, struct scmp_arg_cmp first)
{
	return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 1, first);
}

static int forbid_names(scmp_filter_ctx filter)
{
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(forbidden); i++)
		err = forbid(filter, EPERM, seccomp_syscall_resolve_name(forbidden[i]));
	return err;
}

static int forbid_namespaces(scmp_filter_ctx filter)
{
	static const unsigned flags[] = {CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER,
		CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(flags); i++)
		err = forbid_if(
			filter, SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, flags[i], flags[i]));
	return err;
}

/* Raw and other sockets are for attacks on the network. */
static int forbid_families(scmp_filter_ctx filter)
{
	static const int allowed[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
	int err = 0, first = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(allowed); i++) {
		for (int family = first; !err && family < allowed[i]; family++)
			err = forbid_if(filter, SCMP_SYS(socket), SCMP_A0(SCMP_CMP_EQ, family));
		first = allowed[i] + 1;
	}
	return err ? err
		   : forbid_if(filter, SCMP_SYS(socket), SCMP_A0(SCMP_CMP_GE, (uint64_t)first));
}

/* Memory that was written becomes no code. Libraries that are loaded later are mapped as code at
 * once. */
static int forbid_code(scmp_filter_ctx filter)
{
	int err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(mmap), 1,
		SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_WRITE | PROT_EXEC, PROT_WRITE | PROT_EXEC));

	if (!err)
		err = forbid_if(filter, SCMP_SYS(mprotect),
			SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
	if (!err)
		err = forbid_if(filter, SCMP_SYS(pkey_mprotect),
			SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
	return err;
}

/* Input for the terminal that the program was started from. The kernel looks at 32 bits. */
static int forbid_terminal(scmp_filter_ctx filter)
{
	return forbid_if(filter, SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, TIOCSTI));
}

/* LOG needs Linux 4.14, and the filter is right without it. SSB: code of others does not run here,
 * so loads need not wait for stores. */
static int set_attributes(scmp_filter_ctx filter)
{
	int err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

	if (!err)
		err = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
	if (!err)
		seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	if (!err)
		seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	return err;
}

/* The flags of clone3(2) lie in memory, where a filter does not see them. libc asks for it with
 * each thread, and uses clone(2) when there is none: that is no refusal to be logged, so it has a
 * filter of its own. */
static int forbid_clone3(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err;

	if (!filter)
		return -ENOSYS;
	err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!err)
		err = forbid(filter, ENOSYS, SCMP_SYS(clone3));
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

int syscall_filter_enter(bool may_unmount)
{
	int err = forbid_clone3();
	scmp_filter_ctx filter;

	if (err)
		return err;
	filter = seccomp_init(SCMP_ACT_ALLOW);
	if (!filter)
		return -ENOSYS;
	err = set_attributes(filter);
	if (!err)
		err = forbid_names(filter);
	if (!err && !may_unmount)
		err = forbid(filter, EPERM, SCMP_SYS(umount2));
	if (!err)
		err = forbid_namespaces(filter);
	if (!err)
		err = forbid_families(filter);
	if (!err)
		err = forbid_code(filter);
	if (!err)
		err = forbid_terminal(filter);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}
