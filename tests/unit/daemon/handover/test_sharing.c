/* The description of a mount that shares: its part besides inodes and handles, and a mount that is
 * made of it. */
#include <linux/fuse.h>
#include <string.h>

#include "common/rpc/lease_type.h"
#include "daemon/barrier/session_renewal.h"
#include "daemon/handover/sharing.h"
#include "daemon/kcache/kernel_attr.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/keep.h"
#include "daemon/lease/lease_private.h"
#include "daemon/lease/local_answer.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/lock/lock_wait.h"
#include "daemon/serve/inode_parts.h"
#include "tests/unit/daemon/handover_sides.h"

enum { PIN_INO = 80, OWNER = 7 << LOCK_PROCESS_BITS, WAIT = 9, UNIQUE = 4242 };

static struct inode *file, *pinned;
static struct handle *storer, *late, *unlocked;

static void lease(struct inode *inode, enum lease_type type, uint64_t number)
{
	pthread_mutex_lock(&inode->lock);
	lease_set_type_locked(inode, threads_of(&old), (uint8_t)type);
	inode->lease_number = number;
	pthread_mutex_unlock(&inode->lock);
}

static void map_file(void)
{
	pthread_mutex_lock(&file->lock);
	assert_true(kernel_pages_make_locked(file));
	file->cached->pages->nranges = 2;
	file->cached->pages->ranges[0] = (struct cached_range){0, 8192};
	file->cached->pages->ranges[1] = (struct cached_range){40960, 45056};
	file->cached->pages->mapped = file->cached->pages->was_raised = true;
	file->cached->pages->lookers[1] = (struct cached_looker){17, 18};
	pthread_mutex_unlock(&file->lock);
}

static void lock_file(void)
{
	const struct lock_owner_kept has = {.number = OWNER,
		.kernel = 5,
		.handle = handle_number(storer),
		.kind = LOCK_KIND_POSIX,
		.has = true};
	const struct lock_owner_kept waits = {
		.number = 2 * OWNER, .handle = handle_number(late), .kind = LOCK_KIND_FLOCK};
	const struct lock_wait_kept wait = {.unique = UNIQUE,
		.pid = 3,
		.thread = 1,
		.lock = {.ino = FILE_INO,
			.owner = 2 * OWNER,
			.wait = WAIT,
			.end = LOCK_END_MAX,
			.pid = 3,
			.kind = LOCK_KIND_FLOCK,
			.type = LOCK_EXCLUSIVE}};

	pthread_mutex_lock(&file->lock);
	assert_int_equal(lock_owner_adopt_locked(file, &has), 0);
	assert_int_equal(lock_owner_adopt_locked(file, &waits), 0);
	pthread_mutex_unlock(&file->lock);
	assert_int_equal(lock_wait_adopt(&threads_of(&old)[1], &wait), 0);
	fs_of(&old)->locks->number = 77;
}

static struct name_key key_of(struct side *side, const char *name)
{
	return name_key_of(&fs_of(side)->looks->names, DIR_INO, name);
}

static void show_names(void)
{
	struct kernel_names *shown = &fs_of(&old)->looks->shown;

	kernel_names_note(shown, 11, key_of(&old, "first"), FILE_INO, false);
	kernel_names_note(shown, 11, key_of(&old, "second"), DIR_INO, true);
	kernel_names_note(shown, 12, key_of(&old, "gone"), 0, false);
	kernel_names_set_refused(shown, 12, key_of(&old, "gone"), true);
}

/* Messages that the old one has read in its pause. */
static void park_messages(void)
{
	struct {
		struct fuse_in_header head;
		char rest[7];
	} msg = {.head = {.len = sizeof(msg), .opcode = FUSE_LOOKUP, .unique = 31}};
	struct fuse_parked parked = {
		.interrupted = true, .since_ms = 5, .read_ns = 6, .msg = &msg, .len = sizeof(msg)};

	memcpy(msg.rest, "name", 5);
	assert_int_equal(fuse_receive_adopt_parked(&threads_of(&old)[1], &parked), 0);
	msg.head.unique = 32;
	parked.interrupted = false;
	assert_int_equal(fuse_receive_adopt_parked(&threads_of(&old)[1], &parked), 0);
	parked.len--;
	assert_int_equal(fuse_receive_adopt_parked(&threads_of(&old)[0], &parked), -EINVAL);
	fuse_receive_drop_parked(&threads_of(&old)[0]);
}

static void make_inodes(void)
{
	struct inode *dir = add_inode(DIR_INO, S_IFDIR | 0700, 2);

	fs_of(&old)->root = add_inode(ROOT_INO, S_IFDIR | 0755, 0);
	file = add_inode(FILE_INO, S_IFREG | 0644, 3);
	file->sized = file->sure = true;
	file->looked_ms = 123;
	storer = open_file(file, O_RDWR, OPENED_DIRECT);
	storer->stores = true;
	file->cached->nstorers = 1;
	late = open_file(file, O_RDONLY, OPENED_DIRECT);
	unlocked = open_file(file, O_RDONLY, OPENED_DIRECT);
	atomic_store(&unlocked->unlocked, true);
	lease(file, LEASE_EXCLUSIVE, 50);
	file->lease->returned = 49;
	file->lease->passing = true;
	*file->kernel_owner = (struct kernel_owner){true, true, false, 6, 7};
	pinned = add_inode(PIN_INO, S_IFREG | 0600, 1);
	open_file(pinned, O_RDONLY, OPENED_DIRECT);
	pinned->lease->pinned = true;
	pinned->lease_number = 51;
	lease(dir, LEASE_SHARED, 52);
	dir->told->attr = true;
	dir->told->number = 52;
}

static int setup(void **state)
{
	sides_share = true;
	if (side_init(&old) || side_init(&new))
		return -1;
	make_session(&old.session);
	old.session.sharing = true;
	/* The session of two handles was lost once. */
	fs_of(&old)->renewal->session = 4;
	make_inodes();
	atomic_store(&storer->session, 4);
	atomic_store(&late->session, 3);
	atomic_store(&unlocked->session, 4);
	map_file();
	lock_file();
	show_names();
	park_messages();
	data = NULL;
	return 0;
}

/* Waits are the locks', and have references. */
static void drop_waits(struct side *side)
{
	struct list *link;

	while ((link = list_pop(&fs_of(side)->threads[1].lock_waits)))
		;
}

static void drop_messages(struct side *side)
{
	for (unsigned i = 0; i < THREADS; i++)
		fuse_receive_drop_parked(&threads_of(side)[i]);
}

static int teardown(void **state)
{
	free(data);
	drop_waits(&old);
	drop_waits(&new);
	drop_messages(&old);
	drop_messages(&new);
	side_fini(&old);
	side_fini(&new);
	return 0;
}

static struct handle *handle_by(const struct handle *before)
{
	struct request req = {.op = OP_READ, .args = {.fh = handle_number(before), .has_fh = true}};

	inherited_translate(fs_of(&new)->inherited, &req);
	return handle_of(&req);
}

static void take_over(void)
{
	assert_int_equal(describe(), 0);
	assert_int_equal(adopt(data, len), 0);
}

static void adopt__leases_and_pins(void **state)
{
	struct inode *inode;

	take_over();
	inode = taken(FILE_INO);
	assert_int_equal(inode->lease_type, LEASE_EXCLUSIVE);
	assert_int_equal(inode->lease_number, 50);
	assert_int_equal(inode->lease->returned, 49);
	assert_true(inode->lease->passing && inode->sure && inode->sized);
	assert_false(inode->lease->pinned);
	assert_int_equal(inode->looked_ms, 123);
	inode = taken(PIN_INO);
	assert_int_equal(inode->lease_type, LEASE_NONE);
	assert_int_equal(inode->lease_number, 51);
	assert_true(inode->lease->pinned);
	assert_int_equal(taken(DIR_INO)->lease_type, LEASE_SHARED);
	assert_int_equal(fs_of(&new)->leases->nlisted, 2);
}

static void adopt__what_the_kernel_keeps(void **state)
{
	const struct cached_pages *p;
	struct inode *inode;

	take_over();
	inode = taken(FILE_INO);
	p = inode->cached->pages;
	assert_int_equal(p->nranges, 2);
	assert_int_equal(p->ranges[1].from, 40960);
	assert_int_equal(p->ranges[1].to, 45056);
	assert_true(p->mapped && p->was_raised && !p->raised && !p->running);
	assert_int_equal(p->behind, CACHED_NOTHING);
	assert_int_equal(p->lookers[1].pid, 17);
	assert_int_equal(p->lookers[1].until_ms, 18);
	assert_ptr_equal(p->inode, inode);
	assert_int_equal(inode->cached->nstorers, 1);
	assert_true(kernel_pages_hinders_locked(inode, LEASE_SHARED));
	assert_true(inode->kernel_owner->told && !inode->kernel_owner->one_gid);
	assert_int_equal(inode->kernel_owner->uid, 6);
	assert_true(taken(DIR_INO)->told->attr);
	assert_int_equal(taken(DIR_INO)->told->number, 52);
	assert_null(taken(PIN_INO)->cached->pages);
}

static void adopt__handles_of_a_lost_session(void **state)
{
	take_over();
	assert_false(session_renewal_handle_is_stale(fs_of(&new), handle_by(storer)));
	assert_true(handle_by(storer)->stores);
	assert_true(session_renewal_handle_is_stale(fs_of(&new), handle_by(late)));
	assert_false(handle_by(late)->stores);
	assert_true(atomic_load(&handle_by(unlocked)->unlocked));
	assert_false(atomic_load(&handle_by(late)->unlocked));
}

static void adopt__locks_and_waits(void **state)
{
	struct lock_owner_kept owners[3];
	struct lock_wait_kept wait;

	take_over();
	assert_int_equal(lock_owners_describe_locked(taken(FILE_INO), owners, 3), 2);
	assert_int_equal(owners[0].number, OWNER);
	assert_int_equal(owners[0].kernel, 5);
	assert_int_equal(owners[0].handle, handle_number(storer));
	assert_true(owners[0].has);
	assert_int_equal(lock_waits_describe(fs_of(&new)->locks, &wait, 1), 1);
	assert_int_equal(wait.unique, UNIQUE);
	assert_int_equal(wait.thread, 1);
	assert_int_equal(wait.lock.wait, WAIT);
	assert_int_equal(wait.lock.owner, 2 * OWNER);
	assert_int_equal(wait.lock.end, LOCK_END_MAX);
	assert_int_equal(locks_number(fs_of(&new)->locks), 78);
	/* Its owner is not forgotten before it has an answer. */
	lock_owner_answered(taken(FILE_INO), 2 * OWNER, false);
	assert_int_equal(lock_owners_describe_locked(taken(FILE_INO), owners, 3), 1);
}

static void look_at_message(const struct fuse_parked *parked, void *arg)
{
	const struct fuse_in_header *head = parked->msg;
	unsigned *n = arg;

	assert_int_equal(parked->thread, 1);
	assert_int_equal(parked->interrupted, *n == 0);
	assert_int_equal(parked->since_ms, 5);
	assert_int_equal(parked->read_ns, 6);
	assert_int_equal(parked->len, head->len);
	assert_int_equal(head->unique, 31 + *n);
	assert_string_equal((const char *)(head + 1), "name");
	++*n;
}

/* They wait for the end of the pause, in their order. */
static void adopt__messages(void **state)
{
	unsigned n = 0;

	take_over();
	fuse_receive_each_parked(&threads_of(&new)[1], look_at_message, &n);
	assert_int_equal(n, 2);
	assert_true(threads_of(&new)[1].priv->any_parked);
	assert_true(fuse_receive_parked_stay(&threads_of(&new)[1]));
	assert_true(list_empty(&threads_of(&new)[0].priv->parked));
}

static void adopt__names_that_were_shown(void **state)
{
	struct kernel_names *shown = &fs_of(&new)->looks->shown;
	struct shown_name name;

	take_over();
	assert_true(kernel_names_find(shown, 11, key_of(&new, "second"), &name));
	assert_int_equal(name.ino, DIR_INO);
	assert_true(name.directory);
	assert_true(kernel_names_find(shown, 12, key_of(&new, "gone"), &name));
	assert_int_equal(name.ino, 0);
	assert_int_equal(name.refused, SHOWN_REFUSED_NAMES);
	assert_false(kernel_names_find(shown, 12, key_of(&new, "first"), &name));
}

static void describe__what_was_adopted__is_the_same(void **state)
{
	uint8_t *again;
	size_t n;
	int owner;

	take_over();
	assert_int_equal(
		describe_mount(fs_of(&new), threads_of(&new), &again, &n, &owner, why, sizeof(why)),
		0);
	assert_int_equal(n, len);
	assert_memory_equal(again, data, len);
	free(again);
}

#define refuses_while(change, back)                   \
	do {                                          \
		change;                               \
		assert_int_equal(describe(), -EBUSY); \
		back;                                 \
	} while (0)

static void describe__something_under_way__is_refused(void **state)
{
	struct inode_lease *l = file->lease;
	struct cached_pages *p = file->cached->pages;
	struct rpc_call call = {.req.op = RPC_RETURN};

	refuses_while(l->state = LEASE_RETURNING, l->state = LEASE_IDLE);
	assert_non_null(strstr(why, "inode 71"));
	refuses_while(l->recalled = 50, l->recalled = 0);
	refuses_while(l->users[LEASE_EXCLUSIVE] = 1, l->users[LEASE_EXCLUSIVE] = 0);
	refuses_while(p->running = true, p->running = false);
	refuses_while(p->behind = 8192, p->behind = CACHED_NOTHING);
	refuses_while(file->appends->inside = true, file->appends->inside = false);
	refuses_while(file->told->thread = threads_of(&old), file->told->thread = NULL);
	/* The kernel has forgotten it, and the lease has not left yet. */
	refuses_while(file->nlookup = 0, file->nlookup = 3);
	list_init(&call.link);
	rpc_start(threads_of(&old), &call);
	refuses_while(, assert_true(rpc_cancel(threads_of(&old), &call)));
	/* An old recall is none. */
	l->recalled = 49;
	assert_int_equal(describe(), 0);
}

static void adopt__cut_or_longer__is_refused(void **state)
{
	assert_int_equal(describe(), 0);
	for (size_t n = len - 1200; n < len; n++) {
		uint8_t *copy = malloc(n); /* of that length, for asan */

		memcpy(copy, data, n);
		assert_int_equal(adopt(copy, n), -EPROTO);
		free(copy);
	}
}

/* Nothing breaks by any byte: it is refused, or only another number is believed. */
static void adopt__of_other_bytes__does_no_harm(void **state)
{
	static const uint8_t flips[] = {1, 0x80, 0xff};
	unsigned nrefused = 0;
	size_t from;

	assert_int_equal(describe(), 0);
	from = len - 1500;
	for (size_t at = from; at < len; at++) {
		for (unsigned i = 0; i < sizeof(flips); i++) {
			side_fini(&new);
			assert_int_equal(side_init(&new), 0);
			data[at] ^= flips[i];
			nrefused += adopt(data, len) != 0;
			data[at] ^= flips[i];
			drop_waits(&new);
			drop_messages(&new);
		}
	}
	assert_true(nrefused > 500);
}

static void adopt__by_a_mount_that_does_not_share__is_refused(void **state)
{
	assert_int_equal(describe(), 0);
	side_fini(&new);
	sides_share = false;
	assert_int_equal(side_init(&new), 0);
	assert_int_equal(adopt(data, len), -EINVAL);
	assert_non_null(strstr(why, "share"));
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(adopt__leases_and_pins),
		CASE(adopt__what_the_kernel_keeps),
		CASE(adopt__handles_of_a_lost_session),
		CASE(adopt__locks_and_waits),
		CASE(adopt__names_that_were_shown),
		CASE(adopt__messages),
		CASE(describe__what_was_adopted__is_the_same),
		CASE(describe__something_under_way__is_refused),
		CASE(adopt__cut_or_longer__is_refused),
		CASE(adopt__of_other_bytes__does_no_harm),
		CASE(adopt__by_a_mount_that_does_not_share__is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
