/* check_leases.c - leases and pins of sessions: no two of the leases exclude each other. */
#include "server/check/check_internal.h"

#include <errno.h>
#include <inttypes.h>

#include "server/record/lease.h"

static int check_inode_of(struct check *c, const struct lease_record *r, bool ended)
{
	uint64_t ino = ino_of_key(r->key);
	struct stored_inode i;
	int err = inode_load(c->v, ino, &i);

	if (err == -ESTALE)
		check_problem(c,
			"session %" PRIu64 " has a lease of inode %" PRIu64 ", which is not there",
			r->session, ino);
	if (err)
		return err == -ESTALE || err == -EBADMSG ? 0 : err;
	if (r->type != LEASE_NONE && r->type != LEASE_SHARED && !S_ISREG(i.attr.mode))
		check_problem(c,
			"session %" PRIu64 " has more than a shared lease of inode %" PRIu64
			", which is no regular file",
			r->session, ino);
	if (!r->pinned && !i.attr.nlink && !ended)
		check_problem(c,
			"session %" PRIu64 " has a lease of inode %" PRIu64
			", which has no name, and does not keep it",
			r->session, ino);
	return r->pinned && !i.attr.nlink ? check_list_add(&c->kept, ino) : 0;
}

static void check_values(struct check *c, const struct lease_record *r)
{
	uint64_t ino = ino_of_key(r->key);

	if (r->type == LEASE_NONE && !r->pinned)
		check_problem(c,
			"the record of inode %" PRIu64 " and session %" PRIu64 " says nothing", ino,
			r->session);
	if (!r->number || r->number > c->m->now.lease_number)
		check_problem(c,
			"the lease of inode %" PRIu64 " for session %" PRIu64
			" has a number that was not given out",
			ino, r->session);
	if (c->lease.key != r->key) {
		c->lease = *r;
		c->lease_types = 0;
	}
	if (lease_conflicts(r->type, c->lease_types))
		check_problem(c,
			"inode %" PRIu64 " is leased to session %" PRIu64 " and to session %" PRIu64
			", who can't both have what they have",
			ino, c->lease.session, r->session);
	c->lease_types |= lease_bit(r->type);
}

static int check_leases_record(struct check *c, struct store_key key, const struct store_val *val)
{
	struct lease_record r;
	bool ended;
	int err = lease_decode(c->v, key, val, &r);

	if (err)
		return err;
	c->leases.records++;
	c->leases.layouts += r.type == LEASE_LAYOUT || r.type == LEASE_OVERWRITE;
	c->leases.shared += r.type == LEASE_SHARED;
	c->leases.exclusive += r.type == LEASE_EXCLUSIVE;
	c->leases.pins += r.pinned;
	check_values(c, &r);
	err = check_holder(c, ino_of_key(r.key), "leased to", r.session,
		r.type != LEASE_NONE ? ATTACH_SHARED : 0, &ended);
	return err ? err : check_inode_of(c, &r, ended);
}

int check_leases(struct check *c)
{
	const struct lease_counts *now = &c->v->now.leases, *found = &c->leases;
	int err = check_each_of_volume(c, STORE_LEASE, check_leases_record);

	if (err || c->m->inspected)
		return err;
	if (now->records != found->records || now->layouts != found->layouts ||
		now->shared != found->shared || now->exclusive != found->exclusive ||
		now->pins != found->pins)
		check_problem(c,
			"%" PRIu64 " records of leases are counted, and %" PRIu64
			" were found, or they say something else",
			now->records, found->records);
	return 0;
}
