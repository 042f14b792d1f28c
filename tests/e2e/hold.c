/* hold.c - stops one thread of a process, while the others run on.
 *
 *     hold PID NAME [OPCODE]   stops the thread of that name and prints "held"; it goes on when we
 *                              end. With a FUSE opcode it prints "follows", and stops the thread
 *                              as soon as it has read such a message from the kernel, before it can
 *                              look at it. For a WRITE it prints "held OFFSET", where OFFSET is the
 *                              WRITE's, in bytes.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_named(const char *pid, const char *tid, const char *name)
{
	char path[128], line[32] = "";
	FILE *comm;

	snprintf(path, sizeof(path), "/proc/%.32s/task/%.32s/comm", pid, tid);
	comm = fopen(path, "re");
	if (!comm)
		return 0;
	if (!fgets(line, sizeof(line), comm))
		line[0] = '\0';
	fclose(comm);
	line[strcspn(line, "\n")] = '\0';
	return strcmp(line, name) == 0;
}

static pid_t find_thread(const char *pid, const char *name)
{
	const struct dirent *entry;
	pid_t found = 0;
	char path[128];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%.32s/task", pid);
	tasks = opendir(path);
	if (!tasks)
		err(1, "%s", path);
	while ((entry = readdir(tasks)) != NULL)
		if (is_named(pid, entry->d_name, name))
			found = (pid_t)atoi(entry->d_name);
	closedir(tasks);
	return found;
}

/* ---- until it has read a message ------------------------------------------------------------- */

static void copy_from(pid_t tid, uint64_t addr, void *to, size_t len)
{
	struct iovec here = {to, len}, there = {(void *)(uintptr_t)addr, len};

	if (process_vm_readv(tid, &here, 1, &there, 1, 0) != (ssize_t)len)
		err(1, "the memory of thread %d", tid);
}

/* Returns the address where the entered system call will put a message's header; 0: it reads
 * none. */
static uint64_t reads_to(pid_t tid, const struct __ptrace_syscall_info *info)
{
	struct iovec first;

	switch (info->entry.nr) {
	case SYS_read:
		return info->entry.args[2] >= sizeof(struct fuse_in_header) ? info->entry.args[1]
									    : 0;
	case SYS_readv:
		copy_from(tid, info->entry.args[1], &first, sizeof(first));
		return (uint64_t)(uintptr_t)first.iov_base;
	default:
		return 0;
	}
}

static int has_read(pid_t tid, uint64_t to, int64_t len, uint32_t opcode)
{
	struct fuse_in_header head;

	if (!to || len < (int64_t)sizeof(head))
		return 0;
	copy_from(tid, to, &head, sizeof(head));
	return head.opcode == opcode;
}

static uint64_t write_offset(pid_t tid, uint64_t message)
{
	struct fuse_write_in in;

	copy_from(tid, message + sizeof(struct fuse_in_header), &in, sizeof(in));
	return in.offset;
}

static void run_to_next_stop(pid_t tid, int signal, int *status)
{
	if (ptrace(PTRACE_SYSCALL, tid, NULL, (void *)(intptr_t)signal) ||
		waitpid(tid, status, __WALL) != tid || !WIFSTOPPED(*status))
		err(1, "thread %d is gone", tid);
}

/* Returns the address of the message that the thread has read. */
static uint64_t run_until_it_reads(pid_t tid, uint32_t opcode)
{
	struct __ptrace_syscall_info info;
	uint64_t to = 0;
	int status, signal = 0;

	if (ptrace(PTRACE_SETOPTIONS, tid, NULL, PTRACE_O_TRACESYSGOOD))
		err(1, "thread %d", tid);
	puts("follows");
	fflush(stdout);
	for (;;) {
		run_to_next_stop(tid, signal, &status);
		signal = 0;
		if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
			if (!(status >> 16)) /* no event of ptrace itself */
				signal = WSTOPSIG(status);
			continue;
		}
		if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(info), &info) <= 0)
			err(1, "the system call of thread %d", tid);
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
			to = reads_to(tid, &info);
		else if (has_read(tid, to, info.exit.rval, opcode))
			return to;
	}
}

int main(int argc, char **argv)
{
	uint32_t opcode = argc == 4 ? (uint32_t)atoi(argv[3]) : 0;
	uint64_t message = 0;
	int status;
	pid_t tid;

	if (argc != 3 && argc != 4)
		errx(2, "hold PID NAME [OPCODE]");
	tid = find_thread(argv[1], argv[2]);
	if (!tid)
		errx(1, "process %s has no thread %s", argv[1], argv[2]);
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		err(1, "thread %d can't be stopped", tid);
	if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		err(1, "thread %d did not stop", tid);
	if (opcode)
		message = run_until_it_reads(tid, opcode);
	if (opcode == FUSE_WRITE)
		printf("held %llu\n", (unsigned long long)write_offset(tid, message));
	else
		puts("held");
	fflush(stdout);
	for (;;)
		pause();
}
