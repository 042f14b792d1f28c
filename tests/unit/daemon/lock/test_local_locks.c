/* The locks that a mount keeps by itself: against the kernel's own, which get the same random work;
 * and waits, which the kernel would keep asleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "daemon/file/inode.h"
#include "daemon/lock/local_locks.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/lock/lock_wait.h"
#include "daemon/op/fs_parts.h"
#include "daemon/remote/session.h"
#include "daemon/remote/session_private.h"
#include "daemon/serve/fs_block.h"
#include "daemon/serve/inode_parts.h"

enum { INO = 71, OWNERS = 4, BYTES = 24, STEPS = 20000, WAITS = 6 };

struct fixture {
	struct fs fs;
	struct fs_parts parts;
	struct session session;
	struct inode *inode, *other;
	struct local_wait waits[WAITS];
};

static struct fixture fx;
static struct local_wait *told[WAITS * 4];
static unsigned ntold;

static int setup(void **state)
{
	memset(&fx, 0, sizeof(fx));
	fs_wire(&fx.fs, &fx.parts);
	if (inode_table_init(fx.fs.inodes, &inode_parts_hooks))
		return -1;
	fx.fs.session = &fx.session;
	fx.fs.options.session.converts = true;
	locks_init(fx.fs.locks);
	local_locks_begin(&fx.fs);
	fx.inode = inode_get(&fx.fs, INO);
	fx.other = inode_get(&fx.fs, INO + 1);
	ntold = 0;
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(atomic_load(&fx.fs.locks->nlocal_waits), 0);
	assert_int_equal(atomic_load(&fx.fs.locks->nrecord_waits), 0);
	assert_true(list_empty(&fx.fs.locks->record_waits));
	inode_put(fx.inode);
	inode_put(fx.other);
	inode_table_fini(fx.fs.inodes);
	locks_fini(fx.fs.locks);
	return 0;
}

/* A process has the same last bits in each file. */
static uint64_t owner_of(unsigned process, const struct inode *inode)
{
	return (uint64_t)(process + 1 + (inode == fx.other) * 100) << LOCK_PROCESS_BITS | process;
}

static struct rpc_lock lock_of(
	struct inode *inode, unsigned owner, uint8_t type, uint64_t start, uint64_t end)
{
	return (struct rpc_lock){.ino = inode->ino,
		.owner = owner_of(owner, inode),
		.start = start,
		.end = end,
		.pid = owner + 10,
		.kind = LOCK_KIND_POSIX,
		.type = type};
}

static int set_in(struct inode *inode, unsigned owner, uint8_t type, uint64_t start, uint64_t end)
{
	struct rpc_lock lock = lock_of(inode, owner, type, start, end);

	return local_locks_set(inode, &lock);
}

static int set(unsigned owner, uint8_t type, uint64_t start, uint64_t end)
{
	return set_in(fx.inode, owner, type, start, end);
}

static int set_whole(unsigned owner, uint8_t type)
{
	struct rpc_lock lock = lock_of(fx.inode, owner, type, 0, 0);

	lock.kind = LOCK_KIND_FLOCK;
	return local_locks_set(fx.inode, &lock);
}

static void free_all(void)
{
	pthread_mutex_lock(&fx.inode->lock);
	for (unsigned i = 0; i < OWNERS; i++) {
		local_locks_free_locked(fx.inode, owner_of(i, fx.inode), LOCK_KIND_POSIX);
		local_locks_free_locked(fx.inode, owner_of(i, fx.inode), LOCK_KIND_FLOCK);
	}
	pthread_mutex_unlock(&fx.inode->lock);
	assert_int_equal(atomic_load(&fx.fs.locks->nlocal), 0);
}

/* ---- against the kernel ---------------------------------------------------------------------- */

/* Each owner is an open file of one and the same memory file: they have locks as processes do. */
static int kernel[OWNERS];

static void open_files(void)
{
	int fd = memfd_create("locks", MFD_CLOEXEC);
	char path[64];

	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (unsigned i = 0; i < OWNERS; i++) {
		kernel[i] = open(path, O_RDWR | O_CLOEXEC);
		assert_true(kernel[i] >= 0);
	}
	close(fd);
}

static const short kernel_types[] = {
	[LOCK_FREE] = F_UNLCK, [LOCK_SHARED] = F_RDLCK, [LOCK_EXCLUSIVE] = F_WRLCK};

static struct flock flock_of(const struct rpc_lock *lock)
{
	return (struct flock){.l_type = kernel_types[lock->type],
		.l_whence = SEEK_SET,
		.l_start = (off_t)lock->start,
		.l_len = lock->end == LOCK_END_MAX ? 0 : (off_t)(lock->end - lock->start + 1)};
}

static int set_kernel(unsigned owner, const struct rpc_lock *lock)
{
	struct flock want = flock_of(lock);

	return fcntl(kernel[owner], F_OFD_SETLK, &want) ? -errno : 0;
}

/* Whether each byte is had by another, and as what: with several holders either may be found. */
static void assert_same_bytes(void)
{
	for (unsigned owner = 0; owner < OWNERS; owner++) {
		for (uint64_t byte = 0; byte < BYTES + 2; byte++) {
			for (unsigned type = LOCK_SHARED; type <= LOCK_EXCLUSIVE; type++) {
				struct rpc_lock want = lock_of(fx.inode, owner, type, byte, byte);
				struct flock other = flock_of(&want);
				struct rpc_getlk_reply found;

				assert_int_equal(fcntl(kernel[owner], F_OFD_GETLK, &other), 0);
				local_locks_find(fx.inode, &want, &found);
				assert_int_equal(kernel_types[found.type], other.l_type);
			}
		}
	}
}

static struct rpc_lock random_lock(unsigned owner)
{
	uint64_t start = (uint64_t)rand() % BYTES, len = (uint64_t)rand() % 8;
	uint64_t end = len ? start + len - 1 : LOCK_END_MAX;

	return lock_of(fx.inode, owner, (uint8_t)(rand() % 3), start, end);
}

static void set__random__as_the_kernel_does(void **state)
{
	unsigned seed = (unsigned)time(NULL), ngranted = 0, nrefused = 0;

	print_message("seed %u\n", seed);
	srand(seed);
	open_files();
	for (unsigned i = 0; i < STEPS; i++) {
		unsigned owner = (unsigned)rand() % OWNERS;
		struct rpc_lock lock = random_lock(owner);
		int err = set_kernel(owner, &lock);

		assert_int_equal(local_locks_set(fx.inode, &lock), err);
		ngranted += !err && lock.type;
		nrefused += err == -EAGAIN;
		if (i % 50 == 0)
			assert_same_bytes();
	}
	assert_same_bytes();
	assert_true(ngranted > STEPS / 20 && nrefused > STEPS / 20);
	for (unsigned i = 0; i < OWNERS; i++)
		close(kernel[i]);
	free_all();
}

/* ---- locks ----------------------------------------------------------------------------------- */

static void find__tells_who_has_it(void **state)
{
	struct rpc_lock want = lock_of(fx.inode, 1, LOCK_SHARED, 0, LOCK_END_MAX);
	struct rpc_getlk_reply found;

	local_locks_find(fx.inode, &want, &found);
	assert_int_equal(found.type, LOCK_FREE);
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 5, 9), 0);
	local_locks_find(fx.inode, &want, &found);
	assert_int_equal(found.type, LOCK_EXCLUSIVE);
	assert_int_equal(found.pid, 10);
	assert_int_equal(found.start, 5);
	assert_int_equal(found.end, 9);
	free_all();
}

static void set__whole_and_records__are_nothing_to_each_other(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, LOCK_END_MAX), 0);
	assert_int_equal(set_whole(1, LOCK_EXCLUSIVE), 0);
	assert_int_equal(set_whole(2, LOCK_SHARED), -EAGAIN);
	assert_int_equal(set(2, LOCK_SHARED, 0, 0), -EAGAIN);
	free_all();
}

/* As flock(2) does: a conversion that fails has given up the old lock. */
static void set__whole__refused__gives_up_its_own(void **state)
{
	assert_int_equal(set_whole(0, LOCK_SHARED), 0);
	assert_int_equal(set_whole(1, LOCK_SHARED), 0);
	assert_int_equal(set_whole(0, LOCK_EXCLUSIVE), -EAGAIN);
	assert_int_equal(set_whole(1, LOCK_EXCLUSIVE), 0);
	free_all();
}

static void set__too_many__is_refused(void **state)
{
	for (uint64_t i = 0; i < LOCKS_MAX; i++)
		assert_int_equal(set(0, LOCK_EXCLUSIVE, 2 * i, 2 * i), 0);
	assert_int_equal(set(1, LOCK_EXCLUSIVE, 2 * LOCKS_MAX, 2 * LOCKS_MAX), -ENOLCK);
	assert_int_equal(set(0, LOCK_FREE, 0, 0), 0);
	assert_int_equal(set(1, LOCK_EXCLUSIVE, 0, 0), 0);
	free_all();
}

static void set__too_many_of_the_mount__is_refused(void **state)
{
	atomic_store(&fx.fs.locks->nlocal, SESSION_LOCKS_MAX - 1);
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 20, 29), -ENOLCK);
	/* An owner that has reached the limit must be able to unlock. */
	assert_int_equal(set(0, LOCK_FREE, 5, 5), 0);
	assert_int_equal(set(0, LOCK_FREE, 0, LOCK_END_MAX), 0);
	assert_int_equal(atomic_load(&fx.fs.locks->nlocal), SESSION_LOCKS_MAX - 1);
	atomic_store(&fx.fs.locks->nlocal, 0);
}

/* ---- waits ----------------------------------------------------------------------------------- */

static void tell(struct local_wait *wait)
{
	told[ntold++] = wait;
}

static void begin(unsigned i, struct inode *inode, const struct rpc_lock *lock)
{
	local_locks_wait_init(&fx.waits[i], inode, lock, tell);
}

static int wait_in(unsigned i, struct inode *inode, unsigned owner, uint8_t type, uint64_t at)
{
	struct rpc_lock lock = lock_of(inode, owner, type, at, at);

	begin(i, inode, &lock);
	return local_locks_wait(&fx.waits[i]);
}

static int wait_at(unsigned i, unsigned owner, uint8_t type, uint64_t at)
{
	return wait_in(i, fx.inode, owner, type, at);
}

static int comes_again(unsigned i)
{
	return local_locks_wait(&fx.waits[i]);
}

static void assert_told(unsigned n, ...)
{
	va_list args;

	assert_int_equal(ntold, n);
	va_start(args, n);
	for (unsigned i = 0; i < n; i++)
		assert_ptr_equal(told[i], &fx.waits[va_arg(args, unsigned)]);
	va_end(args);
	ntold = 0;
}

static void wait__free__is_had_at_once(void **state)
{
	assert_int_equal(wait_at(0, 0, LOCK_EXCLUSIVE, 1), 0);
	assert_int_equal(set(1, LOCK_SHARED, 1, 1), -EAGAIN);
	assert_told(0);
	free_all();
}

static void wait__is_told_when_it_may_be_had(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(wait_at(0, 1, LOCK_EXCLUSIVE, 5), -EINPROGRESS);
	assert_int_equal(set(0, LOCK_FREE, 0, 4), 0);
	assert_told(0);
	assert_int_equal(set(0, LOCK_FREE, 5, 5), 0);
	assert_told(1, 0U);
	assert_int_equal(comes_again(0), 0);
	assert_false(local_locks_has_wait(&fx.waits[0]));
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 5, 5), -EAGAIN);
	free_all();
}

static void wait__in_the_order_of_coming(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	for (unsigned i = 1; i < OWNERS; i++)
		assert_int_equal(wait_at(i, i, LOCK_EXCLUSIVE, 5), -EINPROGRESS);
	for (unsigned i = 1; i < OWNERS; i++) {
		pthread_mutex_lock(&fx.inode->lock);
		local_locks_free_locked(fx.inode, owner_of(i - 1, fx.inode), LOCK_KIND_POSIX);
		pthread_mutex_unlock(&fx.inode->lock);
		assert_told(1, i);
		assert_int_equal(comes_again(i), 0);
	}
	free_all();
}

/* Readers that come again and again don't keep a writer out, but only for a while. */
static void wait__behind_an_earlier_one__for_a_while(void **state)
{
	assert_int_equal(set(0, LOCK_SHARED, 0, 9), 0);
	assert_int_equal(wait_at(0, 1, LOCK_EXCLUSIVE, 5), -EINPROGRESS);
	assert_int_equal(wait_at(1, 2, LOCK_SHARED, 5), -EINPROGRESS);
	assert_int_equal(set(3, LOCK_SHARED, 5, 5), 0);
	assert_told(0);
	fx.waits[1].came_ms -= LOCK_PATIENCE_MS;
	fx.inode->locks->local->look_ms = 0;
	local_locks_tick(fx.inode);
	assert_told(1, 1U);
	assert_int_equal(comes_again(1), 0);
	assert_true(local_locks_leave(&fx.waits[0]));
	free_all();
}

/* The earlier one may be waiting for it. */
static void wait__of_who_has_some__is_behind_nobody(void **state)
{
	assert_int_equal(set(0, LOCK_SHARED, 5, 5), 0);
	assert_int_equal(wait_at(0, 1, LOCK_EXCLUSIVE, 5), -EINPROGRESS);
	assert_int_equal(wait_at(1, 0, LOCK_SHARED, 5), 0);
	assert_true(local_locks_leave(&fx.waits[0]));
	free_all();
}

static void wait__taken_back__lets_others_come(void **state)
{
	assert_int_equal(set(0, LOCK_SHARED, 0, 9), 0);
	assert_int_equal(wait_at(0, 1, LOCK_EXCLUSIVE, 5), -EINPROGRESS);
	assert_int_equal(wait_at(1, 2, LOCK_SHARED, 5), -EINPROGRESS);
	assert_true(local_locks_leave(&fx.waits[0]));
	assert_false(local_locks_leave(&fx.waits[0]));
	assert_told(1, 1U);
	assert_int_equal(comes_again(1), 0);
	free_all();
}

static void wait__overtaken__waits_on_in_its_place(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 5, 5), 0);
	assert_int_equal(wait_at(0, 1, LOCK_EXCLUSIVE, 5), -EINPROGRESS);
	assert_int_equal(set(0, LOCK_FREE, 5, 5), 0);
	assert_told(1, 0U);
	assert_int_equal(set(2, LOCK_EXCLUSIVE, 5, 5), 0);
	assert_int_equal(comes_again(0), -EINPROGRESS);
	assert_int_equal(wait_at(1, 3, LOCK_EXCLUSIVE, 5), -EINPROGRESS);
	assert_int_equal(set(2, LOCK_FREE, 5, 5), 0);
	assert_told(1, 0U);
	assert_int_equal(comes_again(0), 0);
	assert_true(local_locks_leave(&fx.waits[1]));
	free_all();
}

static void wait__whole__gives_up_its_own(void **state)
{
	struct rpc_lock lock = lock_of(fx.inode, 0, LOCK_EXCLUSIVE, 0, 0);

	lock.kind = LOCK_KIND_FLOCK;
	assert_int_equal(set_whole(0, LOCK_SHARED), 0);
	assert_int_equal(set_whole(1, LOCK_SHARED), 0);
	begin(0, fx.inode, &lock);
	assert_int_equal(local_locks_wait(&fx.waits[0]), -EINPROGRESS);
	assert_int_equal(set_whole(1, LOCK_EXCLUSIVE), 0);
	assert_told(0);
	assert_int_equal(set_whole(1, LOCK_FREE), 0);
	assert_told(1, 0U);
	assert_int_equal(comes_again(0), 0);
	free_all();
}

static void wait__too_many__is_refused(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 5, 5), 0);
	atomic_store(&fx.fs.locks->nlocal_waits, LOCK_WAITS_MAX);
	assert_int_equal(wait_at(0, 1, LOCK_EXCLUSIVE, 5), -ENOLCK);
	atomic_store(&fx.fs.locks->nlocal_waits, 0);
	free_all();
}

/* ---- circles --------------------------------------------------------------------------------- */

static void circle__over_two_files__is_found(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 0), 0);
	assert_int_equal(set_in(fx.other, 1, LOCK_EXCLUSIVE, 0, 0), 0);
	assert_int_equal(wait_in(0, fx.other, 0, LOCK_EXCLUSIVE, 0), -EINPROGRESS);
	assert_int_equal(wait_in(1, fx.inode, 1, LOCK_EXCLUSIVE, 0), -EDEADLK);
	assert_false(local_locks_has_wait(&fx.waits[1]));
	assert_int_equal(set_in(fx.other, 1, LOCK_FREE, 0, 0), 0);
	assert_told(1, 0U);
	assert_int_equal(comes_again(0), 0);
	assert_int_equal(set_in(fx.other, 0, LOCK_FREE, 0, 0), 0);
	free_all();
}

static void circle__of_three__is_found(void **state)
{
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(set(i, LOCK_EXCLUSIVE, i, i), 0);
	assert_int_equal(wait_at(0, 0, LOCK_EXCLUSIVE, 1), -EINPROGRESS);
	assert_int_equal(wait_at(1, 1, LOCK_EXCLUSIVE, 2), -EINPROGRESS);
	assert_int_equal(wait_at(2, 3, LOCK_EXCLUSIVE, 0), -EINPROGRESS);
	assert_int_equal(wait_at(3, 2, LOCK_EXCLUSIVE, 0), -EDEADLK);
	for (unsigned i = 0; i < 3; i++)
		assert_true(local_locks_leave(&fx.waits[i]));
	free_all();
}

/* Threads of one process: the lock that closes the circle is had, and one that waits is refused. */
static void circle__closed_by_another_thread__wakes_who_waits(void **state)
{
	assert_int_equal(set(1, LOCK_EXCLUSIVE, 1, 1), 0);
	assert_int_equal(wait_at(0, 0, LOCK_EXCLUSIVE, 1), -EINPROGRESS);
	assert_int_equal(set(2, LOCK_EXCLUSIVE, 2, 2), 0);
	assert_int_equal(wait_at(1, 1, LOCK_EXCLUSIVE, 2), -EINPROGRESS);
	assert_int_equal(set(3, LOCK_SHARED, 3, 3), 0);
	assert_int_equal(wait_at(2, 2, LOCK_EXCLUSIVE, 3), -EINPROGRESS);
	assert_told(0);
	/* 0 joins 3 at 3: now 2 waits for 0, too, and 0 for 1, and 1 for 2. */
	assert_int_equal(set(0, LOCK_SHARED, 3, 3), 0);
	assert_told(1, 0U);
	assert_int_equal(comes_again(0), -EDEADLK);
	assert_true(local_locks_leave(&fx.waits[1]));
	assert_true(local_locks_leave(&fx.waits[2]));
	free_all();
}

/* ---- the server learns of them --------------------------------------------------------------- */

static void stand__grants_nothing__then_all_leave(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 5, 5), 0);
	assert_int_equal(wait_at(0, 1, LOCK_EXCLUSIVE, 5), -EINPROGRESS);
	assert_int_equal(set(0, LOCK_FREE, 5, 5), 0);
	assert_told(1, 0U);
	pthread_mutex_lock(&fx.inode->lock);
	local_locks_stand_locked(fx.inode);
	pthread_mutex_unlock(&fx.inode->lock);
	assert_int_equal(comes_again(0), -EINPROGRESS);
	local_locks_end(&fx.fs);
	assert_int_equal(comes_again(0), -EINPROGRESS);
	local_locks_leave_all(fx.inode);
	assert_told(1, 0U);
	assert_int_equal(comes_again(0), -EREMOTE);
	assert_int_equal(atomic_load(&fx.fs.locks->nlocal), 0);
}

static void begin__of_a_mount_that_shares_or_reads__keeps_none(void **state)
{
	assert_true(local_locks_are_kept(&fx.fs));
	atomic_store(&fx.session.read_only, true);
	local_locks_begin(&fx.fs);
	assert_false(local_locks_are_kept(&fx.fs));
	atomic_store(&fx.session.read_only, false);
	fx.fs.sharing = true;
	local_locks_begin(&fx.fs);
	assert_false(local_locks_are_kept(&fx.fs));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(set__random__as_the_kernel_does),
		T(find__tells_who_has_it),
		T(set__whole_and_records__are_nothing_to_each_other),
		T(set__whole__refused__gives_up_its_own),
		T(set__too_many__is_refused),
		T(set__too_many_of_the_mount__is_refused),
		T(wait__free__is_had_at_once),
		T(wait__is_told_when_it_may_be_had),
		T(wait__in_the_order_of_coming),
		T(wait__behind_an_earlier_one__for_a_while),
		T(wait__of_who_has_some__is_behind_nobody),
		T(wait__taken_back__lets_others_come),
		T(wait__overtaken__waits_on_in_its_place),
		T(wait__whole__gives_up_its_own),
		T(wait__too_many__is_refused),
		T(circle__over_two_files__is_found),
		T(circle__of_three__is_found),
		T(circle__closed_by_another_thread__wakes_who_waits),
		T(stand__grants_nothing__then_all_leave),
		T(begin__of_a_mount_that_shares_or_reads__keeps_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
