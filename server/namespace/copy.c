/* copy.c - COPY: bytes from file to file, memory to memory.
 *
 * A step does one of two things. Where the destination lacks pages for the copy, the step gives it
 * pages, as many as there is room for, and copies nothing. Free pages must be zero whenever this
 * process dies, so no page is written to before it is in a file. Where the destination has the
 * pages, this thread copies at most a mebibyte.
 *
 * A hole over a hole stays one; a hole over pages makes zeros of them.
 */
#include <errno.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "server/record/extents.h"
#include "server/namespace/ns.h"

enum { STEP_BYTES = 1 << 20, STEP_PIECES = 64 };

struct copy {
	struct ns_call *c;
	const struct rpc_copy *req;
	struct stored_inode own_src, dst;
	struct stored_inode *src; /* own_src or, within one file, dst */
};

/* So many bytes are either mapped or a hole, in each of both files; NULL: a hole. */
struct piece {
	const uint8_t *from, *to;
	uint64_t len;
};

static int ns_copy_load(struct copy *copy)
{
	int err = inode_load(copy->c->v, copy->req->dst, &copy->dst);

	copy->src = &copy->dst;
	if (err || copy->req->src == copy->req->dst)
		return err;
	copy->src = &copy->own_src;
	return inode_load(copy->c->v, copy->req->src, &copy->own_src);
}

static int ns_copy_check(const struct copy *copy)
{
	const struct rpc_copy *req = copy->req;
	uint64_t a = req->src_offset, b = req->dst_offset;

	if (inode_is_dir(copy->src) || inode_is_dir(&copy->dst))
		return -EISDIR;
	if (!S_ISREG(copy->src->attr.mode) || !S_ISREG(copy->dst.attr.mode))
		return -EINVAL;
	if (req->src == req->dst && a < b + req->len && b < a + req->len)
		return -EINVAL;
	return range_within(a, req->len, copy->src->attr.size) ? 0 : -EINVAL;
}

static int ns_copy_look(struct copy *copy, uint64_t pos, struct piece *p)
{
	const struct rpc_copy *req = copy->req;
	uint64_t len;
	int err = ns_bytes_at(copy->c, copy->src, req->src_offset + pos, &p->from, &p->len);

	if (!err)
		err = ns_bytes_at(copy->c, &copy->dst, req->dst_offset + pos, &p->to, &len);
	if (!err)
		p->len = min_u64(min_u64(p->len, len), req->len - pos);
	return err;
}

/* Takes pages for a piece that the destination has none for; p->len: as far as they go. */
static int ns_copy_fill(struct copy *copy, uint64_t pos, struct piece *p)
{
	uint64_t at = copy->req->dst_offset + pos;
	uint64_t end = div_round_up(at + p->len, PAGE_BYTES);
	int err = ns_fill_hole(copy->c, &copy->dst, at >> PAGE_SHIFT, &end);

	if (!err)
		p->len = min_u64(p->len, (end << PAGE_SHIFT) - at);
	return err;
}

/* *ready: so many bytes can be copied. *filled: only once this step's new pages are committed. */
static int ns_copy_prepare(struct copy *copy, uint64_t *ready, bool *filled)
{
	struct piece p;
	int err = 0;

	*ready = 0;
	*filled = false;
	for (unsigned n = 0; n < STEP_PIECES && *ready < copy->req->len; n++) {
		err = ns_copy_look(copy, *ready, &p);
		if (!err && p.from && !p.to) {
			err = ns_copy_fill(copy, *ready, &p);
			*filled = *filled || !err;
		}
		if (err)
			break;
		*ready += p.len;
	}
	/* If pages have run out, a later step reports that. */
	return *ready ? 0 : err;
}

static int copy_bytes(struct copy *copy, uint64_t len)
{
	uint64_t pos = 0, at = copy->req->dst_offset;
	struct piece p;
	int err = 0;

	for (; !err && pos < len; pos += p.len) {
		err = ns_copy_look(copy, pos, &p);
		if (err)
			break;
		p.len = min_u64(p.len, len - pos);
		err = p.from ? ns_write(copy->c, &copy->dst, at + pos, p.from, p.len)
			     : ns_zero(copy->c, &copy->dst, at + pos, at + pos + p.len);
	}
	return err;
}

/* Zeroes from the file's end to the begin of the copy, and lets the file reach so far. Where that
 * is much, nothing is copied in this step. */
static int ns_copy_grow(struct copy *copy, uint64_t *len)
{
	uint64_t *size = &copy->dst.attr.size;
	int err = 0;

	if (*len && copy->req->dst_offset > *size)
		err = ns_zero_growth(copy->c, &copy->dst, copy->req->dst_offset, size);
	if (copy->req->dst_offset > *size)
		*len = 0;
	return err;
}

int ns_copy(struct ns_call *c)
{
	struct copy copy = {.c = c, .req = &c->req->copy};
	uint64_t done;
	bool filled;
	int err = ns_copy_load(&copy);

	if (!err)
		err = ns_copy_check(&copy);
	if (!err)
		err = ns_check_lease(c, &copy.dst, LEASE_EXCLUSIVE);
	if (!err)
		err = ns_check_lease(c, copy.src, LEASE_SHARED);
	if (!err)
		err = ns_may_change_bytes(c);
	if (!err)
		err = ns_room(c, ROOM_PAGES + ROOM_PAGES_PER_EXTENT * 2 * STEP_PIECES, true);
	if (!err)
		err = ns_copy_prepare(&copy, &done, &filled);
	if (err)
		return err;
	done = filled ? 0 : min_u64(done, STEP_BYTES);
	err = ns_copy_grow(&copy, &done);
	CRASH_POINT("copy.before");
	if (!err)
		err = copy_bytes(&copy, done);
	CRASH_POINT("copy.after");
	/* Nothing has changed in the store yet. */
	if (!err && done && volume_is_lost(c->v))
		err = -EIO;
	if (done) {
		copy.dst.attr.size = max_u64(copy.dst.attr.size, copy.req->dst_offset + done);
		ns_modified(c, &copy.dst.attr);
	}
	c->rep->progress.attr = copy.dst.attr;
	c->rep->progress.done = done;
	return err ? err : inode_save(c->v, &copy.dst);
}
