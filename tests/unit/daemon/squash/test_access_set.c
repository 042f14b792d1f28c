/* Modes and access control lists allow one user this: by a table, and as the kernel answers for the
 * same files on a tmpfs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/xattr.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "daemon/squash/access_set.h"

enum { ANON = 65534, ALICE = 41001, STAFF = 41003, LIST_BYTES = 256, ACCESSES = 8 };

struct list {
	uint8_t bytes[LIST_BYTES];
	struct wire_out out;
};

static void list_begin(struct list *list)
{
	wire_out_init(&list->out, list->bytes, sizeof(list->bytes));
	wire_put_u32(&list->out, POSIX_ACL_XATTR_VERSION);
}

static void list_add(struct list *list, unsigned tag, unsigned permissions, uint32_t id)
{
	wire_put_u16(&list->out, (uint16_t)tag);
	wire_put_u16(&list->out, (uint16_t)permissions);
	wire_put_u32(&list->out, id);
}

/* A list of these permissions; none: there is no such entry. */
struct wanted {
	int named, group, named_group, mask, other;
};
enum { NONE = -1 };

static void list_make(struct list *list, const struct wanted *w)
{
	list_begin(list);
	list_add(list, ACL_USER_OBJ, 6, (uint32_t)ACL_UNDEFINED_ID);
	if (w->named != NONE)
		list_add(list, ACL_USER, (unsigned)w->named, ANON);
	list_add(list, ACL_USER, 7, ANON + 1);
	list_add(list, ACL_GROUP_OBJ, (unsigned)w->group, (uint32_t)ACL_UNDEFINED_ID);
	if (w->named_group != NONE)
		list_add(list, ACL_GROUP, (unsigned)w->named_group, ANON);
	list_add(list, ACL_GROUP, 7, ANON + 1);
	list_add(list, ACL_MASK, (unsigned)w->mask, (uint32_t)ACL_UNDEFINED_ID);
	list_add(list, ACL_OTHER, (unsigned)w->other, (uint32_t)ACL_UNDEFINED_ID);
}

static access_set allowed(const struct attr *attr, const void *list, size_t len)
{
	access_set set = access_set_of_mode(attr, ANON, ANON);

	if (access_set_is_by_list(attr, ANON))
		assert_int_equal(access_set_of_list(attr, list, len, ANON, ANON, &set), 0);
	return set;
}

/* ---- by the table ---------------------------------------------------------------------------- */

static void of_mode__takes_the_first_class_that_fits(void **state)
{
	static const struct {
		uint32_t mode, uid, gid;
		unsigned permissions;
	} cases[] = {
		{0754, ANON, ANON, 7},
		{0754, ALICE, ANON, 5},
		{0754, ALICE, STAFF, 4},
		{0077, ANON, ANON, 0}, /* the owner has no more than the owner's */
		{0707, ALICE, ANON, 0},
		{0600, ALICE, STAFF, 0},
		{06001, ALICE, STAFF, 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct attr attr = {
			.mode = cases[i].mode, .uid = cases[i].uid, .gid = cases[i].gid};
		access_set set = access_set_of_mode(&attr, ANON, ANON);

		for (unsigned access = 0; access < ACCESSES; access++)
			assert_int_equal(
				access_set_has(set, access), (access & ~cases[i].permissions) == 0);
	}
}

static void is_by_list__for_others_than_the_owner(void **state)
{
	struct attr attr = {.mode = 0640, .uid = ALICE, .flags = ATTR_ACL};

	assert_true(access_set_is_by_list(&attr, ANON));
	assert_false(access_set_is_by_list(&attr, ALICE));
	attr.mode = 0604;
	assert_false(access_set_is_by_list(&attr, ANON));
	attr.mode = 0640;
	attr.flags = ATTR_DEFAULT_ACL | ATTR_XATTRS;
	assert_false(access_set_is_by_list(&attr, ANON));
}

static void of_list__one_entry_of_the_group_allows_all_or_none_does(void **state)
{
	struct attr attr = {.mode = 0660, .uid = ALICE, .gid = ANON, .flags = ATTR_ACL};
	struct list list;
	access_set set;

	list_make(&list, &(struct wanted){NONE, ACCESS_READ, ACCESS_WRITE, 7, 7});
	set = allowed(&attr, list.bytes, wire_out_len(&list.out));
	assert_true(access_set_has(set, ACCESS_READ));
	assert_true(access_set_has(set, ACCESS_WRITE));
	assert_false(access_set_has(set, ACCESS_READ | ACCESS_WRITE));
	assert_false(access_set_has(set, ACCESS_EXECUTE));
}

static void of_list__that_makes_no_sense_allows_nothing(void **state)
{
	struct attr attr = {.mode = 0666, .uid = ALICE, .gid = ANON, .flags = ATTR_ACL};
	access_set set = 0xff;
	struct list list;
	size_t len;

	list_make(&list, &(struct wanted){7, 7, 7, 7, 7});
	len = wire_out_len(&list.out);
	for (size_t bad = 0; bad < len; bad++) {
		if (bad >= 4 && (bad - 4) % 8 == 0)
			continue;
		set = 0xff;
		assert_int_equal(
			access_set_of_list(&attr, list.bytes, bad, ANON, ANON, &set), -EIO);
		assert_int_equal(set, 0);
	}
	list.bytes[0]++;
	assert_int_equal(access_set_of_list(&attr, list.bytes, len, ANON, ANON, &set), -EIO);
	assert_int_equal(set, 0);
}

/* ---- by the kernel --------------------------------------------------------------------------- */

struct file {
	char dir[64], path[80];
};

/* Only the effective ids change, and so faccessat(2) can answer for them. */
static access_set ask_kernel(const struct file *file)
{
	access_set set = 0;

	assert_int_equal(setegid(ANON), 0);
	assert_int_equal(seteuid(ANON), 0);
	for (unsigned access = 0; access < ACCESSES; access++)
		if (!faccessat(AT_FDCWD, file->path, (int)access, AT_EACCESS))
			set |= (access_set)(1U << access);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(setegid(0), 0);
	return set;
}

static void compare(const struct file *file)
{
	uint8_t list[LIST_BYTES];
	ssize_t len = getxattr(file->path, XATTR_NAME_POSIX_ACL_ACCESS, list, sizeof(list));
	struct stat st;
	struct attr attr;

	assert_int_equal(stat(file->path, &st), 0);
	attr = (struct attr){
		.mode = st.st_mode,
		.uid = st.st_uid,
		.gid = st.st_gid,
		.flags = len > 0 ? ATTR_ACL : 0,
	};
	assert_int_equal(allowed(&attr, list, len > 0 ? (size_t)len : 0), ask_kernel(file));
}

static bool makes_file(struct file *file)
{
	int fd;

	if (geteuid() != 0 || setgroups(0, NULL)) {
		print_message("only root becomes another user\n");
		return false;
	}
	snprintf(file->dir, sizeof(file->dir), "/dev/shm/rmemfs-access.XXXXXX");
	assert_non_null(mkdtemp(file->dir));
	assert_int_equal(chmod(file->dir, 0755), 0);
	snprintf(file->path, sizeof(file->path), "%s/file", file->dir);
	fd = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	return true;
}

static void remove_file(const struct file *file)
{
	unlink(file->path);
	rmdir(file->dir);
}

static const struct {
	uint32_t uid, gid;
} owners[] = {{ANON, ANON}, {ANON, STAFF}, {ALICE, ANON}, {ALICE, STAFF}};

static void of_mode__is_the_kernels_answer(void **state)
{
	struct file file;

	if (!makes_file(&file))
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
		assert_int_equal(chown(file.path, owners[i].uid, owners[i].gid), 0);
		for (unsigned mode = 0; mode <= 0777; mode++) {
			assert_int_equal(chmod(file.path, mode), 0);
			compare(&file);
		}
	}
	remove_file(&file);
}

/* Each entry has each of some permissions, or is not there. */
static void compare_lists(const struct file *file)
{
	static const int some[] = {NONE, 0, ACCESS_READ, ACCESS_WRITE | ACCESS_EXECUTE, 7};
	struct list list;

	for (unsigned n = 0; n < 5 * 5 * 5 * 5 * 5; n++) {
		struct wanted w = {some[n % 5], some[n / 5 % 5], some[n / 25 % 5],
			some[n / 125 % 5], some[n / 625]};

		if (w.group == NONE || w.mask == NONE || w.other == NONE)
			continue;
		list_make(&list, &w);
		assert_int_equal(setxattr(file->path, XATTR_NAME_POSIX_ACL_ACCESS, list.bytes,
					 wire_out_len(&list.out), 0),
			0);
		compare(file);
	}
}

static void of_list__is_the_kernels_answer(void **state)
{
	struct list list;
	struct file file;

	if (!makes_file(&file))
		skip();
	list_make(&list, &(struct wanted){7, 7, 7, 7, 7});
	if (setxattr(file.path, XATTR_NAME_POSIX_ACL_ACCESS, list.bytes, wire_out_len(&list.out),
		    0) &&
		errno == EOPNOTSUPP) {
		remove_file(&file);
		print_message("this tmpfs has no access control lists\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
		assert_int_equal(chown(file.path, owners[i].uid, owners[i].gid), 0);
		compare_lists(&file);
	}
	remove_file(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_mode__takes_the_first_class_that_fits),
		cmocka_unit_test(is_by_list__for_others_than_the_owner),
		cmocka_unit_test(of_list__one_entry_of_the_group_allows_all_or_none_does),
		cmocka_unit_test(of_list__that_makes_no_sense_allows_nothing),
		cmocka_unit_test(of_mode__is_the_kernels_answer),
		cmocka_unit_test(of_list__is_the_kernels_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
