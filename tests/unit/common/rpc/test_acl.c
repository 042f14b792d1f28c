/* test_acl.c - valid lists, and how lists and modes change each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/posix_acl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "common/rpc/acl.h"

/* Makes a list from a short form: "u::rwx,u:5:r--,g::r-x,m::rw-,o::---". 'x' is no valid tag. */
static struct acl parse(const char *text)
{
	static const char tags[] = "ugmo";
	static const uint16_t own[] = {ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_MASK, ACL_OTHER};
	struct acl acl = {0};

	while (*text) {
		struct acl_entry *e = &acl.entries[acl.n++];
		const char *tag = strchr(tags, *text), *perms = strchr(text + 2, ':') + 1;

		*e = (struct acl_entry){.tag = tag ? own[tag - tags] : 0x40, .id = UINT32_MAX};
		if (text[2] != ':') {
			e->tag = (uint16_t)(e->tag << 1);
			e->id = (uint32_t)strtoul(text + 2, NULL, 10);
		}
		e->perm = (uint16_t)((perms[0] == 'r') << 2 | (perms[1] == 'w') << 1 |
				     (perms[2] == 'x'));
		text = perms[3] ? perms + 4 : perms + 3;
	}
	return acl;
}

static void assert_same(const struct acl *a, const char *text)
{
	struct acl want = parse(text);

	assert_int_equal(a->n, want.n);
	for (unsigned i = 0; i < a->n; i++) {
		assert_int_equal(a->entries[i].tag, want.entries[i].tag);
		assert_int_equal(a->entries[i].perm, want.entries[i].perm);
		assert_int_equal(a->entries[i].id, want.entries[i].id);
	}
}

/* ---- valid lists ----------------------------------------------------------------------------- */

static void decode__tells_valid_lists_from_others(void **state)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = {
		{"u::rwx,g::r-x,o::r--", 0},
		{"u::rwx,g::r-x,m::rwx,o::r--", 0},
		{"u::rwx,u:1:r--,g::r-x,m::rwx,o::r--", 0},
		{"u::rwx,u:2:r--,u:1:rw-,g::r-x,g:1:---,g:0:rwx,m::---,o::---", 0},
		/* A user or group is named, and there is no mask. */
		{"u::rwx,u:1:r--,g::r-x,o::r--", -EINVAL},
		{"u::rwx,g::r-x,g:7:r--,o::r--", -EINVAL},
		/* An entry is missing, or is there twice. */
		{"g::r-x,o::r--", -EINVAL},
		{"u::rwx,o::r--", -EINVAL},
		{"u::rwx,g::r-x", -EINVAL},
		{"u::rwx,g::r-x,m::rwx", -EINVAL},
		{"u::rwx,u::rwx,g::r-x,o::r--", -EINVAL},
		{"u::rwx,g::r-x,g::r-x,o::r--", -EINVAL},
		{"u::rwx,g::r-x,m::rwx,m::rwx,o::r--", -EINVAL},
		{"u::rwx,g::r-x,o::r--,o::r--", -EINVAL},
		{"u::rwx,u:1:r--,u:1:r--,g::r-x,m::rwx,o::r--", -EINVAL},
		{"u::rwx,u:1:r--,u:2:r--,u:1:rw-,g::r-x,m::rwx,o::r--", -EINVAL},
		{"u::rwx,g::r-x,g:3:r--,g:3:r--,m::rwx,o::r--", -EINVAL},
		/* The order is wrong. */
		{"g::r-x,u::rwx,o::r--", -EINVAL},
		{"u::rwx,o::r--,g::r-x", -EINVAL},
		{"u::rwx,g::r-x,u:1:r--,m::rwx,o::r--", -EINVAL},
		{"u::rwx,m::rwx,g::r-x,o::r--", -EINVAL},
		{"u::rwx,g::r-x,m::rwx,g:1:r--,o::r--", -EINVAL},
		/* The kind of an entry is unknown; the named id is none. */
		{"u::rwx,g::r-x,x::r--,o::r--", -EINVAL},
		{"u::rwx,u:4294967295:r--,g::r-x,m::rwx,o::r--", -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct acl acl = parse(cases[i].text), back;
		uint8_t buf[ACL_BYTES_MAX];
		size_t len = acl_encode(&acl, buf);

		if (acl_decode(&back, buf, len) != cases[i].err)
			print_error("%s\n", cases[i].text);
		assert_int_equal(acl_decode(&back, buf, len), cases[i].err);
		if (!cases[i].err)
			assert_same(&back, cases[i].text);
	}
}

static void decode__no_entries_is_no_list(void **state)
{
	static const uint8_t header[] = {2, 0, 0, 0};
	struct acl acl;

	assert_int_equal(acl_decode(&acl, NULL, 0), 0);
	assert_int_equal(acl.n, 0);
	assert_int_equal(acl_decode(&acl, header, sizeof(header)), 0);
	assert_int_equal(acl.n, 0);
}

static void decode__malformed(void **state)
{
	struct acl acl = parse("u::rwx,g::r-x,o::r--"), back;
	uint8_t buf[ACL_BYTES_MAX + ACL_ENTRY_BYTES] = {2};
	size_t len = acl_encode(&acl, buf);

	for (size_t cut = 1; cut < len; cut++)
		assert_int_equal(acl_decode(&back, buf, cut), cut == 4 ? 0 : -EINVAL);
	buf[6] = 8; /* permissions */
	assert_int_equal(acl_decode(&back, buf, len), -EINVAL);
	buf[6] = 7;
	assert_int_equal(acl_decode(&back, buf, len), 0);
	buf[0] = 1;
	assert_int_equal(acl_decode(&back, buf, len), -EOPNOTSUPP);
	buf[0] = 2;
	assert_int_equal(acl_decode(&back, buf, sizeof(buf)), -E2BIG);
}

static void decode__as_many_as_there_may_be(void **state)
{
	static struct acl acl, back;
	uint8_t buf[ACL_BYTES_MAX];

	acl.entries[acl.n++] = (struct acl_entry){ACL_USER_OBJ, 7, UINT32_MAX};
	while (acl.n < ACL_ENTRIES_MAX - 3) {
		acl.entries[acl.n] = (struct acl_entry){ACL_USER, 7, acl.n};
		acl.n++;
	}
	acl.entries[acl.n++] = (struct acl_entry){ACL_GROUP_OBJ, 7, UINT32_MAX};
	acl.entries[acl.n++] = (struct acl_entry){ACL_MASK, 7, UINT32_MAX};
	acl.entries[acl.n++] = (struct acl_entry){ACL_OTHER, 7, UINT32_MAX};
	assert_int_equal(acl_encode(&acl, buf), ACL_BYTES_MAX);
	assert_int_equal(acl_decode(&back, buf, ACL_BYTES_MAX), 0);
	assert_memory_equal(&acl, &back, sizeof(acl));
}

/* ---- lists and modes ------------------------------------------------------------------------- */

static void to_mode__takes_the_mask_for_the_group(void **state)
{
	static const struct {
		const char *text;
		uint32_t mode, want;
		bool is_mode;
	} cases[] = {
		{"u::rwx,g::r-x,o::r--", S_IFREG | 0600, S_IFREG | 0754, true},
		{"u::---,g::---,o::---", S_IFREG | 07777, S_IFREG | 07000, true},
		{"u::rw-,g::r-x,m::-w-,o::--x", S_IFREG | 0777, S_IFREG | 0621, false},
		{"u::rw-,u:1:rwx,g::r-x,m::rwx,o::---", S_IFDIR | 02700, S_IFDIR | 02670, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct acl acl = parse(cases[i].text);

		assert_int_equal(acl_to_mode(&acl, cases[i].mode), cases[i].want);
		assert_int_equal(acl_is_mode(&acl), cases[i].is_mode);
	}
}

static void set_mode__rewrites_the_mask_or_the_group(void **state)
{
	static const struct {
		const char *text;
		uint32_t mode;
		const char *want;
	} cases[] = {
		{"u::rwx,g::rwx,o::rwx", 0641, "u::rw-,g::r--,o::--x"},
		{"u::rwx,g::rwx,m::rwx,o::rwx", 0641, "u::rw-,g::rwx,m::r--,o::--x"},
		{"u::---,u:1:rwx,g::r-x,g:2:-w-,m::---,o::---", 07777,
			"u::rwx,u:1:rwx,g::r-x,g:2:-w-,m::rwx,o::rwx"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct acl acl = parse(cases[i].text);

		acl_set_mode(&acl, cases[i].mode);
		assert_same(&acl, cases[i].want);
		assert_int_equal(acl_to_mode(&acl, cases[i].mode), cases[i].mode);
	}
}

/* acl(5), "object creation and default ACLs": the rights that both grant. */
static void inherit__grants_what_list_and_mode_do(void **state)
{
	static const struct {
		const char *text;
		uint32_t mode, want_mode;
		const char *want;
	} cases[] = {
		{"u::rwx,g::r-x,o::r--", S_IFREG | 0666, S_IFREG | 0644, "u::rw-,g::r--,o::r--"},
		{"u::rwx,g::r-x,o::---", S_IFDIR | 02777, S_IFDIR | 02750, "u::rwx,g::r-x,o::---"},
		{"u::rwx,u:1:rwx,g::r-x,m::rwx,o::r-x", S_IFREG | 0640, S_IFREG | 0640,
			"u::rw-,u:1:rwx,g::r-x,m::r--,o::---"},
		{"u::r--,g::rwx,g:4:-w-,m::-w-,o::rwx", S_IFREG | 0777, S_IFREG | 0427,
			"u::r--,g::rwx,g:4:-w-,m::-w-,o::rwx"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct acl acl = parse(cases[i].text);

		assert_int_equal(acl_inherit(&acl, cases[i].mode), cases[i].want_mode);
		assert_same(&acl, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decode__tells_valid_lists_from_others),
		cmocka_unit_test(decode__no_entries_is_no_list),
		cmocka_unit_test(decode__malformed),
		cmocka_unit_test(decode__as_many_as_there_may_be),
		cmocka_unit_test(to_mode__takes_the_mask_for_the_group),
		cmocka_unit_test(set_mode__rewrites_the_mask_or_the_group),
		cmocka_unit_test(inherit__grants_what_list_and_mode_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
