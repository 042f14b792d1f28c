/* A record is whole at any moment: a process that writes it is stopped behind each of its
 * instructions, and all that counts is compared with what can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/record/record.h"
#include "tests/unit/emulated.h"

static struct record *record;

static int setup(void **state)
{
	return record_new(&record);
}

static int teardown(void **state)
{
	record_delete(record);
	return 0;
}

/* ---- entries --------------------------------------------------------------------------------- */

struct seen {
	unsigned n;
	uint64_t ids[16];
};

static int see_inode(struct record_inode *entry, void *arg)
{
	struct seen *seen = arg;

	seen->ids[seen->n++] = atomic_load(&entry->ino);
	return 0;
}

static int see_handle(struct record_handle *entry, void *arg)
{
	struct seen *seen = arg;

	seen->ids[seen->n++] = atomic_load(&entry->number);
	return 0;
}

static void inode__counts_while_it_has_lookups(void **state)
{
	struct record_inode *a = record_inode_new(record, 5), *b = record_inode_new(record, 6);
	struct seen seen = {0};

	atomic_fetch_add(&b->nlookup, 2);
	record_each_inode(record, false, see_inode, &seen);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.ids[0], 6);
	atomic_store(&a->marks, MARK_AT_RISK);
	record_inode_end(record, b);
	record_inode_end(record, a);
	assert_ptr_equal(record_inode_new(record, 7), a);
	assert_int_equal(atomic_load(&a->marks), 0);
	assert_ptr_equal(record_inode_new(record, 8), b);
	seen.n = 0;
	record_each_inode(record, false, see_inode, &seen);
	assert_int_equal(seen.n, 0);
}

static void entries__that_are_missing__are_counted(void **state)
{
	struct record_handle *last = NULL;

	for (unsigned i = 0; i < RECORD_HANDLES; i++) {
		last = record_handle_new(record);
		assert_non_null(last);
	}
	assert_true(record_is_whole(record));
	assert_null(record_handle_new(record));
	assert_false(record_is_whole(record));
	record_handle_end(record, NULL);
	assert_true(record_is_whole(record));
	record_handle_end(record, last);
	assert_ptr_equal(record_handle_new(record), last);
	assert_null(record_inode_new(NULL, 1));
	record_inode_end(NULL, NULL);
}

/* ---- a successor ----------------------------------------------------------------------------- */

static int adopt_inode(struct record_inode *entry, void *arg)
{
	assert_ptr_equal(record_inode_new(record, atomic_load(&entry->ino)), entry);
	return see_inode(entry, arg);
}

static int adopt_handle(struct record_handle *entry, void *arg)
{
	assert_ptr_equal(record_handle_new(record), entry);
	return see_handle(entry, arg);
}

static void successor__goes_on_with_the_entries_that_count(void **state)
{
	struct record_inode *free_inode = record_inode_new(record, 1);
	struct record_inode *inode = record_inode_new(record, 2);
	struct record_handle *handle = record_handle_new(record), *unused;
	struct record *next;
	struct seen inodes = {0}, handles = {0};
	size_t at = (size_t)((uint8_t *)inode - (uint8_t *)free_inode);

	atomic_store(&inode->nlookup, 1);
	unused = record_handle_new(record);
	atomic_store(&handle->number, 0x40);
	atomic_store(&handle->flags, HANDLE_COUNTS);
	record_head(record)->io_threads = 2;
	assert_int_equal(record_open(fcntl(record_fd(record), F_DUPFD_CLOEXEC, 0), &next), 0);
	record_delete(record);
	record = next;
	assert_int_equal(record_each_inode(record, true, adopt_inode, &inodes), 0);
	assert_int_equal(record_each_handle(record, true, adopt_handle, &handles), 0);
	record_sweep(record);
	assert_int_equal(inodes.n, 1);
	assert_int_equal(inodes.ids[0], 2);
	assert_int_equal(handles.n, 1);
	assert_int_equal(handles.ids[0], 0x40);
	free_inode = record_inode_new(record, 3);
	inode = record_inode_new(record, 4);
	assert_int_not_equal((uint8_t *)inode - (uint8_t *)free_inode, at);
	assert_int_equal(atomic_load(&record_head(record)->ninodes), 3);
	assert_non_null(unused);
}

static void open__refuses_what_is_no_record(void **state)
{
	int fd = memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct record *other;

	assert_int_equal(record_open(fd, &other), -EPROTO);
	fd = memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	assert_int_equal(record_open(fd, &other), -EPROTONOSUPPORT);
	record_head(record)->io_threads = 1;
	record_head(record)->version++;
	assert_int_equal(record_open(dup(record_fd(record)), &other), -EPROTONOSUPPORT);
	record_head(record)->version--;
	record_head(record)->ninodes = RECORD_INODES + 1;
	assert_int_equal(record_open(dup(record_fd(record)), &other), -EPROTO);
	record_head(record)->ninodes = 0;
	memset(record_head(record)->place, 'a', RECORD_PATH_BYTES);
	assert_int_equal(record_open(dup(record_fd(record)), &other), -EPROTO);
}

static void memory__is_sealed_and_others_cannot_open_it(void **state)
{
	struct stat st;

	assert_int_equal(ftruncate(record_fd(record), 0), -1);
	assert_int_equal(fstat(record_fd(record), &st), 0);
	assert_int_equal(ftruncate(record_fd(record), st.st_size + 1), -1);
	assert_int_equal(st.st_mode & 077, 0);
}

/* ---- stopped at each instruction ------------------------------------------------------------- */

enum { ROUNDS = 3, SLOT = 1 };

static const char message[][8] = {"first", "second", "third"};

/* An inode, a handle and a request of a slot, which come and go. Each has one number in all of its
 * fields. */
static void write_all(void)
{
	for (uint64_t n = 1; n <= ROUNDS; n++) {
		struct record_inode *inode = record_inode_new(record, n);
		struct record_handle *handle = record_handle_new(record);
		struct record_slot *slot = &record_thread(record, 0)->slots[SLOT];

		inode->type = (uint32_t)n;
		atomic_fetch_add(&inode->nlookup, n);
		atomic_store(&handle->number, n);
		handle->ino = handle->opened_by = n;
		atomic_store_explicit(&handle->flags,
			HANDLE_COUNTS | (uint32_t)n << HANDLE_KIND_SHIFT, memory_order_release);
		record_slot_begin(slot, n);
		record_slot_message(slot, n, message[n - 1], sizeof(message[n - 1]));
		atomic_fetch_sub(&inode->nlookup, n);
		record_inode_end(record, inode);
		record_handle_end(record, handle);
	}
	record_slot_begin(&record_thread(record, 0)->slots[SLOT], ROUNDS + 1);
}

struct found {
	unsigned inodes, handles, messages;
};

static int check_inode(struct record_inode *entry, void *arg)
{
	struct found *found = arg;
	uint64_t n = atomic_load(&entry->ino);

	assert_in_range(n, 1, ROUNDS);
	assert_int_equal(entry->type, n);
	assert_int_equal(atomic_load(&entry->nlookup), n);
	found->inodes |= 1U << n;
	return 0;
}

static int check_handle(struct record_handle *entry, void *arg)
{
	struct found *found = arg;
	uint64_t n = atomic_load(&entry->number);

	assert_in_range(n, 1, ROUNDS);
	assert_int_equal(entry->ino, n);
	assert_int_equal(entry->opened_by, n);
	assert_int_equal(atomic_load(&entry->flags) >> HANDLE_KIND_SHIFT, n);
	found->handles |= 1U << n;
	return 0;
}

/* The number of the last request is never lower than the message's. */
static void check_slot(struct found *found, uint64_t *seq)
{
	struct record_slot *slot = &record_thread(record, 0)->slots[SLOT];
	uint64_t now = atomic_load(&slot->seq);

	assert_true(now >= *seq);
	*seq = now;
	if (!atomic_load(&slot->len))
		return;
	assert_in_range(now, 1, ROUNDS);
	assert_int_equal(slot->by, now);
	assert_memory_equal(slot->message, message[now - 1], sizeof(message[0]));
	found->messages |= 1U << now;
}

static void record__is_whole_behind_each_instruction(void **state)
{
	struct found found = {0};
	unsigned long steps = 0;
	uint64_t seq = 0;
	int status;
	pid_t child;

	skip_if_emulated(); /* it has no ptrace(2) */
	child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		write_all();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	while (WIFSTOPPED(status)) {
		record_each_inode(record, false, check_inode, &found);
		record_each_handle(record, false, check_handle, &found);
		check_slot(&found, &seq);
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		steps++;
	}
	assert_true(WIFEXITED(status));
	/* Each of them was seen. */
	assert_int_equal(found.inodes, 0xe);
	assert_int_equal(found.handles, 0xe);
	assert_int_equal(found.messages, 0xe);
	assert_true(steps > 100);
	assert_int_equal(seq, ROUNDS + 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(inode__counts_while_it_has_lookups),
		CASE(entries__that_are_missing__are_counted),
		CASE(successor__goes_on_with_the_entries_that_count),
		CASE(open__refuses_what_is_no_record),
		CASE(memory__is_sealed_and_others_cannot_open_it),
		CASE(record__is_whole_behind_each_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
