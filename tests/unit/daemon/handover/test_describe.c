/* A mount's description, and a mount that is made of it. Two filesystems without a server: one that
 * has inodes and handles, and one that takes them. */
#include "daemon/kcache/kernel_pages.h"
#include "daemon/kcache/stale_pages.h"
#include "tests/unit/daemon/handover_sides.h"

static struct inode *file;
static struct handle *reader, *appender;

static void make_inodes(void)
{
	struct inode *orphan = add_inode(ORPHAN_INO, S_IFREG | 0600, 1), *returned, *dir;

	fs_of(&old)->root = add_inode(ROOT_INO, S_IFDIR | 0755, 0);
	file = add_inode(FILE_INO, S_IFREG | 0644, 3);
	file->sized = file->changed = true;
	reader = open_file(file, O_RDONLY, OPENED_CACHED);
	appender = open_file(file, O_WRONLY | O_APPEND, OPENED_CACHED);
	file->commit.nfailures = 2;
	file->commit.error = -ENOSPC;
	reader->told = 1;
	appender->told = 2;
	commit_pages_failed(file, -EDQUOT);
	appender->told_pages = 1;
	file->drop->read_to = 4096;
	orphan->orphan = orphan->sized = true;
	open_file(orphan, O_RDWR, OPENED_DIRECT);
	dir = add_inode(DIR_INO, S_IFDIR | 0700, 2);
	dir->nopen = 3;
	dir->names_error = -EIO;
	add_inode(FIFO_INO, S_IFIFO | 0600, 1);
	returned = add_inode(RETURNED_INO, S_IFREG | 0600, 1);
	returned->orphan = returned->returned = true;
}

static int setup(void **state)
{
	if (side_init(&old) || side_init(&new))
		return -1;
	make_session(&old.session);
	make_inodes();
	data = NULL;
	return 0;
}

static int teardown(void **state)
{
	free(data);
	side_fini(&old);
	side_fini(&new);
	return 0;
}

static struct handle *handle_by(uint64_t number)
{
	struct request req = {.op = OP_READ, .args = {.fh = number, .has_fh = true}};

	inherited_translate(fs_of(&new)->inherited, &req);
	assert_int_not_equal(req.args.fh, number);
	return handle_of(&req);
}

static void adopt__a_file_with_its_handles(void **state)
{
	struct inode *inode;
	struct handle *h;

	assert_int_equal(describe(), 0);
	assert_int_equal(adopt(data, len), 0);
	inode = taken(FILE_INO);
	assert_int_equal(inode->nlookup, 3);
	assert_int_equal(inode->refs, 1);
	assert_int_equal(inode->type, S_IFREG);
	assert_int_equal(inode->attr.size, 5000);
	assert_true(inode->attr_valid && inode->sized && inode->changed);
	assert_int_equal(inode->nopen, 2);
	assert_int_equal(inode->nopen_cached, 2);
	assert_int_equal(inode->nwriters, 1);
	assert_int_equal(inode->cached->nappenders, 1);
	assert_int_equal(inode->drop->read_to, 4096);
	/* Extents are to be asked for. */
	assert_int_equal(inode->map.known_end, 0);
	h = handle_by(handle_number(reader));
	assert_ptr_equal(h->inode, inode);
	assert_false(h->writes);
	assert_int_equal(commit_tell(inode, h), -ENOSPC);
	assert_int_equal(commit_tell_pages(inode, h, OP_FLUSH), -EDQUOT);
	h = handle_by(handle_number(appender));
	assert_true(h->writes && h->appends);
	assert_int_equal(h->kind, OPENED_CACHED);
	assert_int_equal(commit_tell(inode, h), 0);
	assert_int_equal(commit_tell_pages(inode, h, OP_FLUSH), 0);
}

static void adopt__directories_orphans_and_others(void **state)
{
	assert_int_equal(describe(), 0);
	assert_int_equal(adopt(data, len), 0);
	assert_ptr_equal(fs_of(&new)->root, taken(ROOT_INO));
	assert_int_equal(taken(DIR_INO)->nopen, 3);
	assert_int_equal(taken(DIR_INO)->names_error, -EIO);
	assert_int_equal(taken(FIFO_INO)->type, S_IFIFO);
	assert_true(taken(ORPHAN_INO)->orphan);
	assert_non_null(taken(ORPHAN_INO)->commit.ended);
	assert_false(taken(ORPHAN_INO)->returned);
	/* The kernel knows it still: by an open with O_PATH, or its FORGET is in the queue. */
	assert_true(taken(RETURNED_INO)->orphan && taken(RETURNED_INO)->returned);
}

static void adopt__the_session(void **state)
{
	assert_int_equal(describe(), 0);
	assert_int_equal(adopt(data, len), 0);
	assert_false(fs_of(&new)->revived);
	assert_int_equal(new.session.id, 9);
	assert_int_equal(new.session.instance, 10);
	assert_memory_equal(new.session.token, old.session.token, TOKEN_BYTES);
	assert_memory_equal(new.session.owner.id, old.session.owner.id, OWNER_BYTES);
	assert_memory_equal(new.session.store_id, old.session.store_id, 16);
	assert_int_equal(new.session.info.npages, 1000);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(new.remotes[i].nslots, 32);
		assert_int_equal(new.remotes[i].free_slots, UINT32_MAX);
		assert_int_equal(new.remotes[i].slots[31].seq, 100 * i + 31);
	}
}

static void adopt__that_it_was_revived(void **state)
{
	fs_of(&old)->revived = true;
	assert_int_equal(describe(), 0);
	assert_int_equal(adopt(data, len), 0);
	assert_true(fs_of(&new)->revived);
}

/* A mount goes from one daemon to the next any number of times, with the numbers of the first. */
static void describe__what_was_adopted__is_the_same(void **state)
{
	uint8_t *again;
	size_t n;
	int owner;

	assert_int_equal(describe(), 0);
	assert_int_equal(adopt(data, len), 0);
	assert_int_equal(
		describe_mount(fs_of(&new), threads_of(&new), &again, &n, &owner, why, sizeof(why)),
		0);
	assert_int_equal(n, len);
	assert_memory_equal(again, data, len);
	free(again);
}

static void describe__an_inode_that_the_kernel_forgot__is_left_out(void **state)
{
	struct inode *inode = add_inode(99, S_IFREG, 0);
	size_t before;

	assert_int_equal(describe(), 0);
	before = len;
	inode_put(inode);
	assert_int_equal(describe(), 0);
	assert_int_equal(len, before);
}

static void describe__what_is_not_committed__is_refused(void **state)
{
	file->commit.changes++;
	assert_int_equal(describe(), -EBUSY);
	assert_non_null(strstr(why, "inode 71"));
	file->commit.changes--;
	file->map.uncommitted = 1;
	assert_int_equal(describe(), -EBUSY);
	file->map.uncommitted = 0;
	file->nchanging = 1;
	assert_int_equal(describe(), -EBUSY);
	file->nchanging = 0;
	assert_int_equal(describe(), 0);
}

static void adopt__cut_or_longer__is_refused(void **state)
{
	size_t step;

	assert_int_equal(describe(), 0);
	for (size_t n = 0; n < len; n += step) {
		uint8_t *copy = malloc(n + 1); /* of that length, for asan */

		memcpy(copy, data, n);
		assert_int_equal(adopt(copy, n), -EPROTO);
		free(copy);
		step = n < STATE_HEAD_BYTES || len - n < 400 ? 1 : 97;
	}
	data = realloc(data, len + 1);
	assert_int_equal(adopt(data, len + 1), -EPROTO);
}

static void adopt__of_another_version__is_refused(void **state)
{
	assert_int_equal(describe(), 0);
	data[8]++;
	assert_int_equal(adopt(data, len), -EPROTONOSUPPORT);
	assert_non_null(strstr(why, "another version"));
}

static void adopt__of_a_mount_with_other_options__is_refused(void **state)
{
	assert_int_equal(describe(), 0);
	fs_of(&new)->options.cache = CACHE_SHARED;
	assert_int_equal(adopt(data, len), -EINVAL);
	assert_non_null(strstr(why, "'cache'"));
	fs_of(&new)->options.cache = CACHE_NONE;
	fs_of(&new)->options.session.read_only = true;
	assert_int_equal(adopt(data, len), -EAGAIN);
}

/* Where the inode begins in the description. */
static uint8_t *inode_at(uint64_t ino)
{
	uint64_t le = htole64(ino);
	uint8_t *at = memmem(data + len - 4 * STATE_HANDLE_BYTES - 6 * STATE_INODE_BYTES,
		4 * STATE_HANDLE_BYTES + 6 * STATE_INODE_BYTES, &le, sizeof(le));

	assert_non_null(at);
	return at;
}

static void refuses(size_t offset, uint64_t ino, uint8_t value)
{
	assert_int_equal(side_init(&new), 0);
	assert_int_equal(describe(), 0);
	inode_at(ino)[offset] = value;
	assert_int_not_equal(adopt(data, len), 0);
	side_fini(&new);
}

static void adopt__inodes_that_make_no_sense__is_refused(void **state)
{
	enum {
		LOOKUPS = 8,
		TYPE = 16,
		FLAGS = 104,
		NOPEN = 108,
		NAMES_ERROR = 120,
		NHANDLES = 156,
		KIND = 24
	};

	side_fini(&new);
	refuses(0, FILE_INO, ORPHAN_INO);               /* twice */
	refuses(0, FILE_INO, 0);                        /* no inode */
	refuses(LOOKUPS, FILE_INO, 0);                  /* unknown to the kernel */
	refuses(TYPE, FILE_INO, 1);                     /* no type */
	refuses(FLAGS + 1, FILE_INO, 2);                /* a flag that is none */
	refuses(FLAGS + 1, FILE_INO, 1);                /* returned, and no orphan */
	refuses(FLAGS, FILE_INO, 1 << 5);               /* without a name, and no orphan */
	refuses(NOPEN, FILE_INO, 3);                    /* another number of handles */
	refuses(NAMES_ERROR, FILE_INO, 1);              /* no -errno */
	refuses(NHANDLES, FILE_INO, 3);                 /* another one's handles */
	refuses(NHANDLES, DIR_INO, 1);                  /* of a directory */
	refuses(STATE_INODE_BYTES + KIND, FILE_INO, 7); /* of its first handle */
	assert_int_equal(side_init(&new), 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(adopt__a_file_with_its_handles),
		CASE(adopt__directories_orphans_and_others),
		CASE(adopt__the_session),
		CASE(adopt__that_it_was_revived),
		CASE(describe__what_was_adopted__is_the_same),
		CASE(describe__an_inode_that_the_kernel_forgot__is_left_out),
		CASE(describe__what_is_not_committed__is_refused),
		CASE(adopt__cut_or_longer__is_refused),
		CASE(adopt__of_another_version__is_refused),
		CASE(adopt__of_a_mount_with_other_options__is_refused),
		CASE(adopt__inodes_that_make_no_sense__is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
