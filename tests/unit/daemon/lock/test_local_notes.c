/* The locks that a mount keeps by itself, in its record: they are the table's, and at any moment of
 * a change they are those from before, those from after, or both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/file/handle.h"
#include "daemon/file/inode.h"
#include "daemon/lock/local_locks.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/lock/lock_wait.h"
#include "daemon/op/fs_parts.h"
#include "daemon/record/record.h"
#include "daemon/remote/session_private.h"
#include "daemon/serve/fs_block.h"
#include "daemon/serve/inode_parts.h"
#include "tests/unit/emulated.h"

enum { INO = 71, OWNERS = 3, BYTES = 40, STEPS = 5000 };

struct fixture {
	struct fs fs;
	struct fs_parts parts;
	struct session session;
	struct inode *inode;
	struct handle handles[OWNERS];
};

static struct fixture fx;

static uint64_t number_of(unsigned owner)
{
	return (uint64_t)(owner + 1) << LOCK_PROCESS_BITS;
}

static uint64_t kernels_name(unsigned owner)
{
	return 0x1000 + owner;
}

/* As lock_owner_asks() makes them; the inode frees them. */
static void add_owner(unsigned i)
{
	struct lock_owner *o = calloc(1, sizeof(*o));

	assert_non_null(o);
	fx.handles[i].inode = fx.inode;
	fx.handles[i].number = 100 + i;
	o->number = number_of(i);
	o->kernel = kernels_name(i);
	o->kind = LOCK_KIND_POSIX;
	o->handle = &fx.handles[i];
	list_add_tail(&fx.inode->locks->owners, &o->link);
}

static int setup(void **state)
{
	memset(&fx, 0, sizeof(fx));
	fs_wire(&fx.fs, &fx.parts);
	if (record_new(&fx.fs.record) || inode_table_init(fx.fs.inodes, &inode_parts_hooks))
		return -1;
	fx.fs.session = &fx.session;
	fx.fs.options.session.converts = true;
	locks_init(fx.fs.locks);
	local_locks_begin(&fx.fs);
	fx.inode = inode_get(&fx.fs, INO);
	for (unsigned i = 0; i < OWNERS; i++)
		add_owner(i);
	return 0;
}

static int teardown(void **state)
{
	inode_put(fx.inode);
	inode_table_fini(fx.fs.inodes);
	locks_fini(fx.fs.locks);
	record_delete(fx.fs.record);
	return 0;
}

static int set(unsigned owner, uint8_t type, uint64_t start, uint64_t end)
{
	struct rpc_lock lock = {.ino = INO,
		.owner = number_of(owner),
		.start = start,
		.end = end,
		.pid = 7,
		.kind = LOCK_KIND_POSIX,
		.type = type};

	return local_locks_set(fx.inode, &lock);
}

/* ---- what the record has --------------------------------------------------------------------- */

/* Of each byte the strongest lock, for each owner, and how many entries have it. */
struct seen {
	uint8_t type[OWNERS][BYTES];
	unsigned n[OWNERS][BYTES];
	unsigned entries;
};

static int see(const struct record_lock *entry, void *arg)
{
	struct seen *seen = arg;
	unsigned owner = (unsigned)(entry->owner - kernels_name(0));

	assert_in_range(owner, 0, OWNERS - 1);
	assert_int_equal(atomic_load(&entry->ino), INO);
	assert_int_equal(entry->handle, 100 + owner);
	assert_int_equal(entry->pid, 7);
	assert_int_equal(entry->kind, LOCK_KIND_POSIX);
	assert_in_range(entry->type, LOCK_SHARED, LOCK_EXCLUSIVE);
	assert_true(entry->start <= entry->end);
	for (uint64_t i = entry->start; i <= entry->end && i < BYTES; i++) {
		seen->n[owner][i]++;
		if (entry->type > seen->type[owner][i])
			seen->type[owner][i] = entry->type;
	}
	seen->entries++;
	return 0;
}

static void look(struct seen *seen)
{
	*seen = (struct seen){0};
	record_each_lock(fx.fs.record, see, seen);
}

static void assert_is_table(void)
{
	const struct local_locks *t = fx.inode->locks->local;
	struct seen seen, table = {0};

	look(&seen);
	for (size_t i = 0; i < t->n; i++)
		for (uint64_t at = t->v[i].start; at <= t->v[i].end && at < BYTES; at++)
			table.type[(t->v[i].owner >> LOCK_PROCESS_BITS) - 1][at] = t->v[i].type;
	assert_int_equal(seen.entries, t->n);
	assert_memory_equal(seen.type, table.type, sizeof(table.type));
}

static void record__random__is_the_table(void **state)
{
	unsigned seed = (unsigned)time(NULL);

	print_message("seed %u\n", seed);
	srand(seed);
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t start = (uint64_t)rand() % BYTES;

		set((unsigned)rand() % OWNERS, (uint8_t)(rand() % 3), start,
			rand() % 8 ? start + (uint64_t)rand() % 9 : LOCK_END_MAX);
		assert_is_table();
	}
	/* Entries are used again. */
	assert_true(atomic_load(&record_head(fx.fs.record)->nlocks) <= 4 * BYTES);
	pthread_mutex_lock(&fx.inode->lock);
	local_locks_forget_locked(fx.inode);
	pthread_mutex_unlock(&fx.inode->lock);
	assert_is_table();
	assert_true(record_is_whole(fx.fs.record));
}

/* ---- stopped at each instruction ------------------------------------------------------------- */

static const struct change {
	uint8_t type;
	uint64_t start, end;
} changes[] = {
	{LOCK_EXCLUSIVE, 0, 29},
	{LOCK_FREE, 10, 19},
	{LOCK_SHARED, 5, 24},
	{LOCK_EXCLUSIVE, 8, 9},
	{LOCK_EXCLUSIVE, 0, 39},
	{LOCK_SHARED, 0, 39},
	{LOCK_SHARED, 0, 39},
	{LOCK_FREE, 0, 0},
	{LOCK_FREE, 0, LOCK_END_MAX},
};

enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };

/* The bytes after so many changes. */
static void model(unsigned n, uint8_t *types)
{
	memset(types, LOCK_FREE, BYTES);
	for (unsigned i = 0; i < n; i++)
		for (uint64_t at = changes[i].start; at <= changes[i].end && at < BYTES; at++)
			types[at] = changes[i].type;
}

/* Counts begins and ends of changes: odd amid one. */
static volatile unsigned *moments;

static void change_all(void)
{
	for (unsigned i = 0; i < CHANGES; i++) {
		++*moments;
		set(0, changes[i].type, changes[i].start, changes[i].end);
		++*moments;
	}
}

/* Returns whether some of both are there. */
static bool check(unsigned moment)
{
	uint8_t before[BYTES], after[BYTES];
	bool both = false;
	struct seen seen;

	model(moment / 2, before);
	model((moment + 1) / 2, after);
	look(&seen);
	for (unsigned i = 0; i < BYTES; i++) {
		uint8_t least = before[i] < after[i] ? before[i] : after[i];
		uint8_t most = before[i] < after[i] ? after[i] : before[i];

		assert_in_range(seen.type[0][i], least, most);
		both |= seen.n[0][i] > 1;
		assert_true(moment % 2 || seen.n[0][i] <= 1);
	}
	return both;
}

static void record__behind_each_instruction__has_what_was_answered(void **state)
{
	unsigned long steps = 0, nboth = 0;
	int status;
	pid_t child;

	skip_if_emulated(); /* it has no ptrace(2) */
	moments = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(moments, MAP_FAILED);
	child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		change_all();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	while (WIFSTOPPED(status)) {
		nboth += check(*moments);
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		steps++;
	}
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_int_equal(*moments, 2 * CHANGES);
	check(2 * CHANGES);
	assert_true(steps > 1000 && nboth > 0);
	munmap((void *)moments, 4096);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(record__random__is_the_table),
		T(record__behind_each_instruction__has_what_was_answered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
