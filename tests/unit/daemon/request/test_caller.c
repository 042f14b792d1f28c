/* test_caller.c - the owners and groups whose inodes a process may change: this process, and one in
 * a user namespace. Also whether a process is ending, where that can be seen and where it can't. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/request/caller.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/request/request.h"
#include "tests/unit/emulated.h"

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

/* begin runs in the child and changes its own identity. */
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

/* Not by unshare(2): under the sanitizer a child of fork(2) has a second thread. */
static pid_t start_in_namespace(void)
{
	int ready;
	pid_t pid;

	skip_if_emulated();
	ready = eventfd(0, EFD_CLOEXEC);
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0);

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
	/* Nor for a process that can't be seen. */
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

/* ---- signals --------------------------------------------------------------------------------- */

/* No process has this number. */
enum { NOBODY = INT32_MAX };

static void state__of_a_thread_that_goes_on(void **state)
{
	assert_int_equal(caller_state((uint32_t)getpid()), CALLER_LIVES);
	assert_int_equal(caller_state((uint32_t)gettid()), CALLER_LIVES);
}

static void state__of_one_that_has_ended(void **state)
{
	pid_t pid = fork();
	siginfo_t info;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(caller_state((uint32_t)pid), CALLER_DYING);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(caller_state((uint32_t)pid), CALLER_DYING);
	assert_int_equal(caller_state(NOBODY), CALLER_DYING);
}

/* It has no memory, but no signal ends it: NFS's server, a loop device. */
static void state__of_a_kernel_thread(void **state)
{
	enum { KTHREADD = 2 };
	char name[16] = "";
	FILE *f = fopen("/proc/2/comm", "re");

	if (f) {
		assert_non_null(fgets(name, sizeof(name), f));
		fclose(f);
	}
	if (strcmp(name, "kthreadd\n") != 0)
		skip(); /* a PID namespace without kernel threads */
	assert_int_equal(caller_state(KTHREADD), CALLER_LIVES);
}

/* ---- requests that outlive their thread ------------------------------------------------------ */

static const struct io_thread idle_thread = {.priv = &(struct io_thread_private){.now = 0},
	.shared = &(struct request_shared){.interrupt_wait_ms = 30000}};

static bool ends(uint32_t pid, uint32_t process)
{
	return caller_ends_wait(&idle_thread, (struct caller){pid, process}, false, 0);
}

struct short_thread {
	uint32_t pid, process;
};

static void *run_shortly(void *arg)
{
	struct short_thread *t = arg;

	t->pid = (uint32_t)gettid();
	caller_note_process(&t->process, t->pid);
	return NULL;
}

/* pthread_join(3) returns before the kernel has forgotten the thread. */
static void await_end(uint32_t tid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", tid);
	while (access(path, F_OK) == 0)
		sched_yield();
}

static struct short_thread end_a_thread(void)
{
	struct short_thread t = {0};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run_shortly, &t), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	await_end(t.pid);
	return t;
}

static void wait__outlives_its_thread(void **state)
{
	struct short_thread t = end_a_thread();

	assert_int_equal(t.process, getpid());
	assert_false(ends(t.pid, t.process));
	assert_true(ends(t.pid, 0));
}

static void *stay(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
	pause();
	return NULL;
}

/* The child's first thread has ended, and the other one goes on. */
static _Noreturn void end_first_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, stay, NULL);
	pthread_exit(NULL);
}

static void await_zombie(pid_t pid)
{
	char path[32], stat[256];
	const char *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	do {
		sched_yield();
		f = fopen(path, "re");
		assert_non_null(f);
		assert_non_null(fgets(stat, sizeof(stat), f));
		fclose(f);
		end = strrchr(stat, ')');
	} while (!end || end[2] != 'Z');
}

static void wait__outlives_the_first_thread__and_ends_with_the_process(void **state)
{
	uint32_t process = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		end_first_thread();
	caller_note_process(&process, (uint32_t)pid);
	assert_int_equal(process, pid);
	await_zombie(pid);
	assert_false(ends((uint32_t)pid, process));
	assert_int_equal(kill(pid, SIGKILL), 0);
	while (!ends((uint32_t)pid, process))
		sched_yield();
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(ends((uint32_t)pid, process));
}

static void process__is_noted_once(void **state)
{
	uint32_t process = 0;

	caller_note_process(&process, NOBODY);
	assert_int_equal(process, CALLER_NO_PROCESS);
	caller_note_process(&process, (uint32_t)getpid());
	assert_int_equal(process, CALLER_NO_PROCESS);
	process = 0;
	caller_note_process(&process, 0);
	assert_int_equal(process, CALLER_NO_PROCESS);
}

static void state__of_another_pid_namespaces(void **state)
{
	assert_int_equal(caller_state(0), CALLER_UNSEEN);
}

/* The child ends with the result of see() as its status. */
static void assert_sees(bool (*see)(void), int namespaces)
{
	pid_t pid;
	int status;

	skip_if_emulated();
	pid = (pid_t)syscall(SYS_clone, namespaces | SIGCHLD, NULL, NULL, NULL, 0);
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(see() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static bool hide_others(void)
{
	return !mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("proc", "/proc", "proc", 0, "hidepid=2") && plain();
}

static bool sees_itself_only(void)
{
	return hide_others() && caller_state((uint32_t)getpid()) == CALLER_LIVES &&
	       caller_state((uint32_t)getppid()) == CALLER_UNSEEN &&
	       caller_state(NOBODY) == CALLER_DYING;
}

static void state__of_one_that_proc_hides(void **state)
{
	need_root();
	assert_sees(sees_itself_only, CLONE_NEWNS);
}

/* /proc is that of another namespace, where 1 is another process, which has all capabilities. */
static bool does_not_see_itself(void)
{
	const struct request req = request_by(ALICE, ALICE, getpid());

	return req.pid == 1 && caller_state(1) == CALLER_UNSEEN &&
	       caller_state(NOBODY) == CALLER_DYING && !caller_is_capable(&req, CAP_FOWNER);
}

static void state__where_proc_is_another_pid_namespaces(void **state)
{
	need_root();
	assert_sees(does_not_see_itself, CLONE_NEWPID);
}

/* ---- requests that say no ids ---------------------------------------------------------------- */

static struct request without_ids(pid_t pid)
{
	return request_by(REQUEST_NO_ID, REQUEST_NO_ID, pid);
}

static void no_ids__are_those_that_proc_shows(void **state)
{
	struct request req;
	pid_t pid;

	need_root();
	req = without_ids(getpid());
	assert_true(caller_is_seen(&req));
	assert_int_equal(caller_root(&req), CALLER_IS_ROOT);
	assert_false(caller_rights(&req, owners_do, BOB).bound);
	assert_range(caller_groups(&req, STAFF), 0, UINT32_MAX);
	pid = start_plain();
	req = without_ids(pid);
	assert_true(caller_is_seen(&req));
	assert_int_equal(caller_root(&req), CALLER_IS_NOT_ROOT);
	assert_false(caller_is_capable(&req, CAP_SYS_ADMIN));
	assert_range(owners_of(&req, owners_do, ALICE), ALICE, ALICE);
	assert_range(owners_of(&req, owners_do, BOB), ALICE, ALICE);
	assert_range(caller_groups(&req, ALICE), ALICE, ALICE);
	assert_range(caller_groups(&req, STAFF), STAFF, STAFF);
	assert_range(caller_groups(&req, BOB), 1, 0);
	end(pid);
}

static void no_ids__of_a_user_namespace(void **state)
{
	struct request req;
	pid_t pid;

	need_root();
	pid = start_in_namespace();
	put_map(pid, "uid_map");
	put_map(pid, "gid_map");
	req = without_ids(pid);
	assert_false(caller_is_in_our_user_namespace(&req));
	/* It was root before, and is not in its own range. */
	assert_int_equal(caller_root(&req), CALLER_IS_ROOT);
	end(pid);
	req = without_ids(getpid());
	assert_true(caller_is_in_our_user_namespace(&req));
}

/* A caller of another PID namespace, or the kernel, whose threads act for others. */
static void no_ids__of_one_that_is_not_seen(void **state)
{
	const pid_t unseen[] = {0, 2};

	for (unsigned i = 0; i < 2; i++) {
		const struct request req = without_ids(unseen[i]);

		if (unseen[i] && kill(unseen[i], 0) == 0 && getpgid(unseen[i]) != 0)
			continue;
		assert_false(caller_is_seen(&req));
		assert_int_equal(caller_root(&req), CALLER_MAY_BE_ROOT);
		assert_false(caller_is_capable(&req, CAP_SYS_ADMIN));
		assert_range(owners_of(&req, owners_do, BOB), 1, 0);
		assert_range(caller_groups(&req, STAFF), 1, 0);
	}
}

/* ---- squashed -------------------------------------------------------------------------------- */

/* This process has all capabilities, if root runs it, but its request is another user's. */
static void squashed__has_its_ids_alone(void **state)
{
	struct request req = request_by(ALICE, STAFF, getpid());

	req.squashed = true;
	assert_false(caller_is_seen(&req));
	assert_false(caller_is_capable(&req, CAP_FOWNER));
	assert_int_equal(caller_root(&req), CALLER_IS_NOT_ROOT);
	assert_range(owners_of(&req, owners_do, BOB), ALICE, ALICE);
	assert_range(caller_groups(&req, STAFF), STAFF, STAFF);
	assert_range(caller_groups(&req, BOB), 1, 0);
	assert_range(caller_groups(&req, getgid()), 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners__of_root_are_all),
		cmocka_unit_test(owners__without_capabilities_are_himself),
		cmocka_unit_test(owners__with_capabilities_are_all),
		cmocka_unit_test(owners__of_a_user_namespace),
		cmocka_unit_test(state__of_a_thread_that_goes_on),
		cmocka_unit_test(state__of_one_that_has_ended),
		cmocka_unit_test(state__of_a_kernel_thread),
		cmocka_unit_test(wait__outlives_its_thread),
		cmocka_unit_test(wait__outlives_the_first_thread__and_ends_with_the_process),
		cmocka_unit_test(process__is_noted_once),
		cmocka_unit_test(state__of_another_pid_namespaces),
		cmocka_unit_test(state__of_one_that_proc_hides),
		cmocka_unit_test(state__where_proc_is_another_pid_namespaces),
		cmocka_unit_test(no_ids__are_those_that_proc_shows),
		cmocka_unit_test(no_ids__of_a_user_namespace),
		cmocka_unit_test(no_ids__of_one_that_is_not_seen),
		cmocka_unit_test(squashed__has_its_ids_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
