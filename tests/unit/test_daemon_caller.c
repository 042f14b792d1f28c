/* test_daemon_caller.c - which owners' and groups' inodes a process may change: this one, and one
 * in a user namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/caller.h"
#include "daemon/request.h"

enum { ALICE = 41001, BOB = 41002, STAFF = 41003, BASE = 100000, COUNT = 1000 };

static const uint64_t owners_do = 1ULL << CAP_FOWNER | 1ULL << CAP_CHOWN;

#define assert_range(range, from, to)             \
	do {                                      \
		struct id_range r_ = (range);     \
		assert_int_equal(r_.first, from); \
		assert_int_equal(r_.last, to);    \
	} while (0)

static struct request request_by(uint32_t uid, uint32_t gid, pid_t pid)
{
	return (struct request){.uid = uid, .gid = gid, .pid = (uint32_t)pid};
}

static void need_root(void)
{
	if (geteuid() != 0) {
		print_message("only root makes processes of others\n");
		skip();
	}
}

/* ---- processes ------------------------------------------------------------------------------- */

static bool plain(void)
{
	static const gid_t groups[] = {STAFF};

	return !setgroups(1, groups) && !setresgid(ALICE, ALICE, ALICE) &&
	       !setresuid(ALICE, ALICE, ALICE);
}

static void end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* begin, in the child: what it does to itself. */
static void go_on(int ready, bool (*begin)(void))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	eventfd_write(ready, !begin || begin() ? 1 : 2);
	for (;;)
		pause();
}

static void until_ready(int ready)
{
	eventfd_t n;

	assert_int_equal(eventfd_read(ready, &n), 0);
	assert_int_equal(n, 1);
	close(ready);
}

static pid_t start_plain(void)
{
	int ready = eventfd(0, EFD_CLOEXEC);
	pid_t pid = fork();

	assert_true(ready >= 0 && pid >= 0);
	if (pid == 0)
		go_on(ready, plain);
	until_ready(ready);
	return pid;
}

/* Not by unshare(2): a child of fork(2) has a thread of the sanitizer's. */
static pid_t start_in_namespace(void)
{
	int ready = eventfd(0, EFD_CLOEXEC);
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0);

	assert_true(ready >= 0 && pid >= 0);
	if (pid == 0)
		go_on(ready, NULL);
	until_ready(ready);
	return pid;
}

static void put_map(pid_t pid, const char *name)
{
	char path[64], text[64];
	int fd, len;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	len = snprintf(text, sizeof(text), "0 %d 1\n1 %d %d\n", ALICE, BASE, COUNT);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, (size_t)len), len);
	close(fd);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static struct id_range owners_of(const struct request *req, uint64_t capabilities, uint32_t known)
{
	struct rights rights = caller_rights(req, capabilities, known);

	assert_true(rights.bound);
	assert_range(rights.groups, 1, 0);
	return rights.owners;
}

static void owners__of_root_are_all(void **state)
{
	const struct request req = request_by(0, 0, 0);

	assert_false(caller_rights(&req, owners_do, BOB).bound);
	assert_range(caller_groups(&req, STAFF), 0, UINT32_MAX);
}

static void owners__without_capabilities_are_himself(void **state)
{
	struct request req;
	pid_t pid;

	need_root();
	pid = start_plain();
	req = request_by(ALICE, ALICE, pid);
	assert_range(owners_of(&req, owners_do, ALICE), ALICE, ALICE);
	assert_range(owners_of(&req, owners_do, BOB), ALICE, ALICE);
	assert_range(caller_groups(&req, ALICE), ALICE, ALICE);
	assert_range(caller_groups(&req, STAFF), STAFF, STAFF);
	assert_range(caller_groups(&req, BOB), 1, 0);
	end(pid);
	/* Nor of one that can't be seen. */
	req = request_by(ALICE, ALICE, 0);
	assert_range(owners_of(&req, owners_do, BOB), ALICE, ALICE);
	assert_range(caller_groups(&req, STAFF), 1, 0);
}

static void owners__with_capabilities_are_all(void **state)
{
	const struct request req = request_by(ALICE, ALICE, getpid());

	need_root();
	assert_range(owners_of(&req, owners_do, BOB), 0, UINT32_MAX - 1);
	assert_range(owners_of(&req, 1ULL << 63 | owners_do, BOB), ALICE, ALICE);
	assert_range(caller_groups(&req, STAFF), 0, UINT32_MAX - 1);
}

static void owners__of_a_user_namespace(void **state)
{
	struct request req;
	pid_t pid;

	need_root();
	pid = start_in_namespace();
	put_map(pid, "uid_map");
	put_map(pid, "gid_map");
	req = request_by(ALICE, ALICE, pid);
	assert_range(owners_of(&req, owners_do, BASE), BASE, BASE + COUNT - 1);
	assert_range(owners_of(&req, owners_do, BASE + COUNT - 1), BASE, BASE + COUNT - 1);
	assert_range(owners_of(&req, owners_do, BASE + COUNT), ALICE, ALICE);
	assert_range(owners_of(&req, owners_do, 0), ALICE, ALICE);
	assert_range(caller_groups(&req, BASE + 1), BASE, BASE + COUNT - 1);
	assert_range(caller_groups(&req, STAFF), 1, 0);
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners__of_root_are_all),
		cmocka_unit_test(owners__without_capabilities_are_himself),
		cmocka_unit_test(owners__with_capabilities_are_all),
		cmocka_unit_test(owners__of_a_user_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
