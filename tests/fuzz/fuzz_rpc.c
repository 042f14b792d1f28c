/* fuzz_rpc.c - any bytes as a request and as a reply, of each version. A message that decodes is
 * walked to its last element, and encodes into the same bytes again. */
#include <stdio.h>
#include <stdlib.h>

#include "common/rpc/rpc.h"
#include "common/base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static uint8_t out[1 << 17];

static void demand(bool truth)
{
	if (!truth)
		abort();
}

static void demand_same(int err, size_t out_len, const uint8_t *data, size_t len)
{
	demand(!err && out_len == len && memcmp(out, data, len) == 0);
}

static void walk_extents(const struct rpc_tail *tail)
{
	struct wire_in r = rpc_tail_reader(tail);
	struct extent e;

	while (rpc_get_extent(&r, &e))
		demand(e.npages > 0);
}

static void walk_regions(const struct rpc_tail *tail)
{
	struct wire_in r = rpc_tail_reader(tail);
	struct rpc_region region;

	while (rpc_get_region(&r, &region))
		;
}

static void walk_dirents(const struct rpc_readdir_reply *rep)
{
	struct wire_in r = rpc_tail_reader(&rep->tail);
	struct rpc_dirent d;

	while (rpc_get_dirent(&r, &d, rep->plus))
		demand(d.name.len && !memchr(d.name.s, '/', d.name.len));
}

static void walk_makings(const struct rpc_tail *tail)
{
	struct wire_in r = rpc_tail_reader(tail);
	struct rpc_making m;
	unsigned n = 0;

	for (; rpc_get_making(&r, &m); n++) {
		demand(m.make.name.len && !memchr(m.make.name.s, '/', m.make.name.len));
		demand(!m.commit.lease && m.commit.tail.len % RPC_EXTENT_BYTES == 0);
		walk_extents(&m.commit.tail);
	}
	demand(!r.truncated && n && n <= MAKES_MAX);
}

static void walk_names(const struct rpc_tail *tail)
{
	struct wire_in r = rpc_tail_reader(tail);
	struct rpc_name_change change;

	while (rpc_get_name_change(&r, &change)) {
		if (change.kind == NAME_SET) {
			demand(change.valid && !(change.valid & ~(uint32_t)NAME_SET_ALL));
			continue;
		}
		demand(change.name.len && !memchr(change.name.s, '/', change.name.len));
		demand(change.kind != NAME_MOVE ||
			(change.new_name.len &&
				!memchr(change.new_name.s, '/', change.new_name.len)));
		demand(change.kind != NAME_SYMLINK ||
			(change.target.len && change.target.len <= SYMLINK_BYTES_SHORT &&
				!memchr(change.target.s, '\0', change.target.len)));
	}
	demand(!r.truncated);
}

static void walk_makes(const struct rpc_makes *makes)
{
	struct rpc_tail names, files;

	rpc_makes_parts(makes, &names, &files);
	walk_names(&names);
	walk_makings(&files);
}

static void try_request(uint32_t version, const uint8_t *data, size_t len)
{
	struct rpc_request q;
	size_t out_len;

	if (rpc_request_decode(&q, version, data, len))
		return;
	if (q.op == RPC_COMMIT)
		walk_extents(&q.commit.tail);
	if (q.op == RPC_MAKE)
		walk_makes(&q.makes);
	if (q.op == RPC_NAMES)
		walk_names(&q.names.tail);
	demand_same(
		rpc_request_encode(&q, version, out, sizeof(out), &out_len), out_len, data, len);
}

static void try_reply(uint32_t version, const uint8_t *data, size_t len)
{
	struct rpc_reply p;
	size_t out_len;

	if (rpc_reply_decode(&p, version, data, len))
		return;
	if (!p.status && p.op == RPC_EXTENTS)
		walk_extents(&p.extents.tail);
	if (!p.status && p.op == RPC_REGIONS)
		walk_regions(&p.regions.tail);
	if (!p.status && p.op == RPC_READDIR)
		walk_dirents(&p.readdir);
	demand_same(rpc_reply_encode(&p, version, out, sizeof(out), &out_len), out_len, data, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len > sizeof(out))
		return 0;
	for (uint32_t version = RMEMFS_WIRE_FIRST; version <= RMEMFS_WIRE_NEXT; version++) {
		try_request(version, data, len);
		try_reply(version, data, len);
	}
	return 0;
}
