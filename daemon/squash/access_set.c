/* access_set.c - see access_set.h. */
#include "daemon/squash/access_set.h"

#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>

#include "common/rpc/wire.h"

enum { ACCESS_ALL = ACCESS_READ | ACCESS_WRITE | ACCESS_EXECUTE, ENTRY_BYTES = 8 };

/* All accesses that these permissions are enough for. */
static access_set set_of(unsigned permissions)
{
	access_set set = 0;

	for (unsigned access = 0; access <= ACCESS_ALL; access++)
		if (!(access & ~permissions))
			set |= (access_set)(1U << access);
	return set;
}

/* The mode has the owner's permissions also where there is a list. Without permissions for the
 * group class the kernel does not look at the list, and goes by the mode. */
bool access_set_is_by_list(const struct attr *attr, uint32_t uid)
{
	return attr->flags & ATTR_ACL && uid != attr->uid && attr->mode & S_IRWXG;
}

access_set access_set_of_mode(const struct attr *attr, uint32_t uid, uint32_t gid)
{
	if (uid == attr->uid)
		return set_of(attr->mode >> 6 & ACCESS_ALL);
	return set_of((gid == attr->gid ? attr->mode >> 3 : attr->mode) & ACCESS_ALL);
}

/* The entries that matter for one user who is not the owner. */
struct matches {
	bool named;        /* there is one for the user */
	bool grouped;      /* there is one for the user's group, or several */
	access_set user;   /* of the named entry */
	access_set groups; /* accesses that one of the group's entries allows as a whole */
	access_set other;
	unsigned mask; /* permissions */
};

static void match(
	struct matches *m, const struct attr *attr, struct wire_in *r, uint32_t uid, uint32_t gid)
{
	uint16_t tag = wire_get_u16(r), permissions = wire_get_u16(r);
	uint32_t id = wire_get_u32(r);
	access_set set = set_of(permissions);

	switch (tag) {
	case ACL_USER:
		if (id != uid)
			return;
		m->named = true;
		m->user = set;
		return;
	case ACL_GROUP_OBJ:
	case ACL_GROUP:
		if (gid != (tag == ACL_GROUP ? id : attr->gid))
			return;
		m->grouped = true;
		m->groups |= set;
		return;
	case ACL_MASK:
		m->mask = permissions;
		return;
	case ACL_OTHER:
		m->other = set;
		return;
	default:
		return;
	}
}

int access_set_of_list(const struct attr *attr, const void *list, size_t len, uint32_t uid,
	uint32_t gid, access_set *set)
{
	struct matches m = {.mask = ACCESS_ALL};
	struct wire_in r;

	*set = 0;
	wire_in_init(&r, list, len);
	if (wire_get_u32(&r) != POSIX_ACL_XATTR_VERSION || r.truncated ||
		wire_in_left(&r) % ENTRY_BYTES)
		return -EIO;
	while (wire_in_left(&r))
		match(&m, attr, &r, uid, gid);
	if (m.named)
		*set = m.user & set_of(m.mask);
	else if (m.grouped)
		*set = m.groups & set_of(m.mask);
	else
		*set = m.other;
	return 0;
}
