/* acl.c - see acl.h. In the attribute: version 4; then entries of tag 2, permissions 2, id 4. */
#include "common/rpc/acl.h"

#include <assert.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>

#include "common/rpc/wire.h"

enum { PERMS_ALL = ACL_READ | ACL_WRITE | ACL_EXECUTE, PERMS_BITS = 3 };

static bool is_named(const struct acl_entry *e)
{
	return e->tag == ACL_USER || e->tag == ACL_GROUP;
}

/* Whether an entry of this tag may follow the one before it (0: it is the first). */
static bool may_follow(uint16_t before, uint16_t tag)
{
	switch (tag) {
	case ACL_USER_OBJ:
		return before == 0;
	case ACL_USER:
	case ACL_GROUP_OBJ:
		return before == ACL_USER_OBJ || before == ACL_USER;
	case ACL_GROUP:
	case ACL_MASK:
		return before == ACL_GROUP_OBJ || before == ACL_GROUP;
	case ACL_OTHER:
		return before == ACL_GROUP_OBJ || before == ACL_GROUP || before == ACL_MASK;
	default:
		return false;
	}
}

static bool is_twice(const struct acl *acl, unsigned at)
{
	const struct acl_entry *e = &acl->entries[at];

	for (unsigned i = at; i-- && acl->entries[i].tag == e->tag;) {
		if (acl->entries[i].id == e->id)
			return true;
	}
	return false;
}

static bool is_valid(const struct acl *acl)
{
	bool named = false, mask = false;
	uint16_t before = 0;

	for (unsigned i = 0; i < acl->n; i++) {
		const struct acl_entry *e = &acl->entries[i];

		if (!may_follow(before, e->tag) || e->perm > PERMS_ALL)
			return false;
		if (is_named(e) && (e->id == (uint32_t)ACL_UNDEFINED_ID || is_twice(acl, i)))
			return false;
		named = named || is_named(e);
		mask = mask || e->tag == ACL_MASK;
		before = e->tag;
	}
	return before == ACL_OTHER && (mask || !named);
}

int acl_decode(struct acl *acl, const void *data, size_t len)
{
	struct wire_in r;

	acl->n = 0;
	if (len == 0)
		return 0;
	wire_in_init(&r, data, len);
	if (wire_get_u32(&r) != POSIX_ACL_XATTR_VERSION)
		return r.truncated ? -EINVAL : -EOPNOTSUPP;
	if (wire_in_left(&r) % ACL_ENTRY_BYTES)
		return -EINVAL;
	if (wire_in_left(&r) / ACL_ENTRY_BYTES > ACL_ENTRIES_MAX)
		return -E2BIG;
	while (wire_in_left(&r)) {
		struct acl_entry *e = &acl->entries[acl->n++];

		e->tag = wire_get_u16(&r);
		e->perm = wire_get_u16(&r);
		e->id = wire_get_u32(&r);
		if (!is_named(e))
			e->id = (uint32_t)ACL_UNDEFINED_ID;
	}
	return acl->n == 0 || is_valid(acl) ? 0 : -EINVAL;
}

size_t acl_encode(const struct acl *acl, uint8_t buf[ACL_BYTES_MAX])
{
	struct wire_out w;

	wire_out_init(&w, buf, ACL_BYTES_MAX);
	wire_put_u32(&w, POSIX_ACL_XATTR_VERSION);
	for (unsigned i = 0; i < acl->n; i++) {
		wire_put_u16(&w, acl->entries[i].tag);
		wire_put_u16(&w, acl->entries[i].perm);
		wire_put_u32(&w, acl->entries[i].id);
	}
	return wire_out_len(&w);
}

/* ---- modes ----------------------------------------------------------------------------------- */

/* The entries that a mode's three classes stand for. The group class has the mask if there is one,
 * else the group's entry. */
struct classes {
	uint16_t *user, *group, *other;
};

static struct classes classes_of(struct acl *acl)
{
	struct classes classes = {0};

	for (unsigned i = 0; i < acl->n; i++) {
		struct acl_entry *e = &acl->entries[i];

		if (e->tag == ACL_USER_OBJ)
			classes.user = &e->perm;
		else if (e->tag == ACL_GROUP_OBJ || e->tag == ACL_MASK)
			classes.group = &e->perm;
		else if (e->tag == ACL_OTHER)
			classes.other = &e->perm;
	}
	assert(classes.user && classes.group && classes.other); /* or it is not valid */
	return classes;
}

static uint16_t class_of_mode(uint32_t mode, unsigned shift)
{
	return (uint16_t)(mode >> shift & PERMS_ALL);
}

static uint32_t with_permissions(uint32_t mode, const struct classes *classes)
{
	uint32_t perms = (uint32_t)*classes->user << 2 * PERMS_BITS |
			 (uint32_t)*classes->group << PERMS_BITS | *classes->other;

	return (mode & ~(uint32_t)ACCESSPERMS) | perms;
}

bool acl_is_mode(const struct acl *acl)
{
	return acl->n == 3;
}

uint32_t acl_to_mode(const struct acl *acl, uint32_t mode)
{
	struct classes classes = classes_of((struct acl *)acl);

	return with_permissions(mode, &classes);
}

void acl_set_mode(struct acl *acl, uint32_t mode)
{
	struct classes classes = classes_of(acl);

	*classes.user = class_of_mode(mode, 2 * PERMS_BITS);
	*classes.group = class_of_mode(mode, PERMS_BITS);
	*classes.other = class_of_mode(mode, 0);
}

uint32_t acl_inherit(struct acl *acl, uint32_t mode)
{
	struct classes classes = classes_of(acl);

	*classes.user &= class_of_mode(mode, 2 * PERMS_BITS);
	*classes.group &= class_of_mode(mode, PERMS_BITS);
	*classes.other &= class_of_mode(mode, 0);
	return with_permissions(mode, &classes);
}
