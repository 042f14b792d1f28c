/* samples.c - a message of each kind. */
#include "tests/unit/common/rpc/samples.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/log.h"

static uint8_t tail_bytes[SAMPLE_TAIL_BYTES];

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

static struct attr attr_of(uint64_t ino)
{
	return (struct attr){
		.ino = ino,
		.size = ino << 40,
		.npages = 7,
		.atime = -1,
		.mtime = INT64_MAX,
		.ctime = INT64_MIN,
		.btime = 4,
		.mode = 0100644,
		.nlink = 2,
		.uid = UINT32_MAX,
		.gid = 1000,
		.rdev = 0x801,
		.generation = 9,
		.flags = ATTR_FLAGS_ALL,
	};
}

struct extent extent_of(uint64_t fpage)
{
	return (struct extent){.fpage = fpage, .npages = 3, .page = 5, .target = 0, .region = 2};
}

struct rpc_tail extents_tail(void)
{
	struct wire_out w;

	wire_out_init(&w, tail_bytes, sizeof(tail_bytes));
	for (unsigned i = 0; i < 4; i++)
		rpc_put_extent(&w, &(struct extent){.fpage = i, .npages = 1, .page = i});
	return (struct rpc_tail){tail_bytes, (uint32_t)wire_out_len(&w)};
}

/* Whether its reply lends inode numbers. */
static bool lends(enum rpc_op op)
{
	return op == RPC_CREATE || op == RPC_MKDIR || op == RPC_SYMLINK || op == RPC_LINK;
}

/* As long as all tails here. */
static struct rpc_tail names_tail(void)
{
	struct wire_out w;

	wire_out_init(&w, tail_bytes, sizeof(tail_bytes));
	rpc_put_name_change(&w, &(struct rpc_name_change){1, 9, -7, true, str("a")});
	rpc_put_name_change(&w, &(struct rpc_name_change){UINT64_MAX, 8, 0, false, str("..seven"),
					NAME_MKDIR, 01755, 022, 5, 6});
	return (struct rpc_tail){tail_bytes, (uint32_t)wire_out_len(&w)};
}

/* Two files, and so longer than the other tails. */
static struct rpc_tail makings_tail(void)
{
	static uint8_t bytes[512];
	struct rpc_commit commit = {5, COMMIT_SIZE | COMMIT_MTIME, 4097, -5, -6, -7, 0640, 8, 9, 0,
		LEASE_NONE, extents_tail()};
	struct wire_out w;

	wire_out_init(&w, bytes, sizeof(bytes));
	rpc_put_making(
		&w, &(struct rpc_making){{1, -8, 0100644, 022, 10, 11, str("made")}, commit});
	commit.ino = 6;
	commit.tail = (struct rpc_tail){0};
	rpc_put_making(
		&w, &(struct rpc_making){{2, 0, 0100600, 0, 0, UINT32_MAX, str("empty")}, commit});
	return (struct rpc_tail){bytes, (uint32_t)wire_out_len(&w)};
}

static struct rights rights_of(uint32_t owner)
{
	return (struct rights){true, {owner, owner}, {owner + 1, UINT32_MAX}};
}

struct rpc_request request_of(unsigned op)
{
	bool slotted = rpc_op_info(op)->slotted;
	struct rpc_request q = {.op = (uint16_t)op, .slot = slotted ? 3 : RPC_NO_SLOT};

	q.seq = op == RPC_AUTH ? 0 : 77;
	switch ((enum rpc_op)op) {
	case RPC_ATTACH:
		q.attach = (struct rpc_attach){.owner = "0123456789abcde",
			.instance = 5,
			.session = 6,
			.store_id = (const uint8_t *)"fedcba987654321",
			.ended = 4,
			.born = 1700000000000000001,
			.channel = 1,
			.nchannels = 2,
			.flags = ATTACH_READ_ONLY | ATTACH_EXCLUSIVE,
			.wait_ms = 5000,
			.export_name = str("default"),
			.token = (const uint8_t *)"a token of bytes",
			.client = str("host:/mnt/rmem (pid 311)")};
		break;
	case RPC_AUTH:
		q.auth = (struct rpc_auth){2, extents_tail()};
		break;
	case RPC_REGIONS:
		q.regions.first = 8;
		break;
	case RPC_PING:
		q.ping = (struct rpc_counters){1, 2, 3, 4, 5, 6};
		break;
	case RPC_BYE:
		q.bye = (struct rpc_bye){{1, 2, 3, 4, 5, 6}, true};
		break;
	case RPC_CANCEL:
		q.cancel = (struct rpc_cancel){17, 1ull << 40};
		break;
	case RPC_STATUS:
		q.status.offset = 4096;
		break;
	case RPC_WHO:
		q.who = (struct rpc_who){4096, str("default"), str("/a/file")};
		break;
	case RPC_LOOKUP:
	case RPC_UNLINK:
	case RPC_RMDIR:
		q.name = (struct rpc_name_request){
			1, str("name"), LOOK_LEASE | LOOK_LEASE_DIR, {77, true}};
		break;
	case RPC_GETATTR:
	case RPC_READLINK:
		q.ino = (struct rpc_ino_request){44, LOOK_LEASE};
		break;
	case RPC_READDIR:
		q.readdir = (struct rpc_readdir){1, UINT64_MAX, 8192, true};
		break;
	case RPC_EXTENTS:
		q.extents = (struct rpc_extents){9, 1ull << 40};
		break;
	case RPC_SETATTR:
		q.setattr = (struct rpc_setattr){
			3, SET_MODE | SET_CTIME, 0644, 1, 2, INT64_MAX, -1, 2, 3, rights_of(4)};
		break;
	case RPC_CREATE:
	case RPC_MKNOD:
	case RPC_MKDIR:
	case RPC_SYMLINK:
		q.create = (struct rpc_create){.parent = 1,
			.mode = 0100600,
			.umask = 022,
			.uid = 1,
			.gid = 2,
			.rdev = 3,
			.want_pages = 256,
			.exclusive = true,
			.numbers = lends(op) ? NUMBERS_MORE : NUMBERS_NONE,
			.name = str("n"),
			.target = op == RPC_SYMLINK ? str("../a/target") : (struct rpc_str){0}};
		break;
	case RPC_LINK:
		q.link = (struct rpc_link){4, 1, str("again"), NUMBERS_MORE};
		break;
	case RPC_RENAME:
		q.rename = (struct rpc_rename){
			1, 2, RENAME_EXCHANGE, str("old"), str("new"), 3, 4, {5, true}, {6, false}};
		break;
	case RPC_COMMIT:
		q.commit = (struct rpc_commit){5, COMMIT_SIZE | COMMIT_MTIME, 4097, -5, -6, -7,
			0100640, 8, 9, 77, LEASE_SHARED, extents_tail()};
		break;
	case RPC_MAKE:
		q.makes = (struct rpc_makes){NUMBERS_ANEW, makings_tail()};
		break;
	case RPC_NAMES:
		q.names = (struct rpc_names){names_tail(), NUMBERS_MORE};
		break;
	case RPC_GRANT:
		q.grant = (struct rpc_grant){256, true};
		break;
	case RPC_RETURN:
		q.ret = (struct rpc_return){RETURN_GRANTS, extents_tail(), 5};
		break;
	case RPC_SNAPSHOT:
		q.snapshot = (struct rpc_snapshot){SNAPSHOT_START, str("default"), str("/srv/s")};
		break;
	case RPC_GETXATTR:
		q.getxattr = (struct rpc_getxattr){3, 12000, 7, str("user.a/b")};
		break;
	case RPC_LISTXATTR:
		q.listxattr = (struct rpc_listxattr){3, UINT64_MAX};
		break;
	case RPC_FROZEN:
		q.frozen.snapshot = 1ull << 50;
		break;
	case RPC_UNPROTECT:
		q.unprotect.tail = extents_tail();
		break;
	case RPC_TMPFILE:
		q.create = (struct rpc_create){.parent = 1,
			.mode = 0100600,
			.umask = 077,
			.uid = 1,
			.gid = 2,
			.want_pages = 256};
		break;
	case RPC_SETXATTR:
		q.setxattr = (struct rpc_setxattr){3, SETXATTR_CREATE, 0, sizeof(tail_bytes),
			rights_of(1000), str("user.name"), extents_tail()};
		break;
	case RPC_REMOVEXATTR:
		q.removexattr = (struct rpc_removexattr){3, str("trusted.x"), rights_of(1)};
		break;
	case RPC_STAGE:
		q.stage = (struct rpc_stage){9, 12000, extents_tail()};
		break;
	case RPC_FALLOCATE:
		q.fallocate = (struct rpc_fallocate){3, 1, 4096, INT64_MAX - 4096};
		break;
	case RPC_COPY:
		q.copy = (struct rpc_copy){3, 1ull << 33, 4, 5, 1ull << 32};
		break;
	case RPC_LEASE:
		q.lease = (struct rpc_lease){44, LEASE_EXCLUSIVE, LEASE_PIN};
		break;
	case RPC_LOCK:
		q.lock = (struct rpc_lock){
			44, 1ull << 60, 7, 5, LOCK_END_MAX, 4711, LOCK_KIND_FLOCK, LOCK_FREE};
		break;
	case RPC_CONVERT:
		q.convert = (struct rpc_convert){CONVERT_FORGOT};
		break;
	case RPC_GETLK:
		q.lock = (struct rpc_lock){
			44, 1ull << 60, 0, 5, 5, 4711, LOCK_KIND_POSIX, LOCK_SHARED};
		break;
	case RPC_QUOTA:
		q.quota = (struct rpc_quota){QUOTA_GROUP, UINT32_MAX, 4096, true};
		break;
	case RPC_EVICT:
		q.evict.session = 1ull << 60;
		break;
	case RPC_LOG:
		q.log.level = LOG_LEVEL_NOTICE;
		break;
	case RPC_STATFS:
	case RPC_RELOAD:
	case RPC_TRIAL:
	case RPC_OP_MAX:
		break;
	}
	return q;
}

static void fill_entry(struct rpc_entry_reply *entry)
{
	*entry = (struct rpc_entry_reply){.attr = attr_of(3),
		.parent = attr_of(1),
		.lease = {LEASE_EXCLUSIVE, 10000, UINT64_MAX},
		.created = true,
		.nextents = 9,
		.trial = 0x12345678,
		.nhead = INLINE_EXTENTS,
		.ngrant = GRANT_EXTENTS};
	for (unsigned i = 0; i < INLINE_EXTENTS; i++)
		entry->head[i] = extent_of(i);
	for (unsigned i = 0; i < GRANT_EXTENTS; i++)
		entry->grant[i] = extent_of(100 + i);
}

struct rpc_reply reply_of(unsigned op)
{
	bool slotted = rpc_op_info(op)->slotted;
	struct rpc_reply p = {.op = (uint16_t)op, .slot = slotted ? 3 : RPC_NO_SLOT};

	p.seq = op == RPC_AUTH ? 0 : 77;
	switch ((enum rpc_op)op) {
	case RPC_ATTACH:
		p.attach = (struct rpc_attach_reply){.session = 1,
			.token = "a token of bytes",
			.store_id = "sixteen bytes..",
			.incarnation = 2,
			.resumed = true,
			.nslots = 16,
			.nreserved = 2,
			.lease_ms = 10000,
			.lease_limit = 65536,
			.peer_timeout_ms = 5000,
			.server_time = -3,
			.nregions = 4,
			.npages = 5,
			.quotas = true,
			.snapshot = 6,
			.squash = {SQUASH_ROOT, 65533, 65532},
			.root = attr_of(1)};
		break;
	case RPC_AUTH:
		p.auth = (struct rpc_auth_reply){extents_tail()};
		break;
	case RPC_REGIONS:
		p.regions = (struct rpc_regions_reply){1, 9, extents_tail()};
		break;
	case RPC_PING:
		p.ping = (struct rpc_ping_reply){INT64_MAX, 7, true, 6, 5, extents_tail()};
		break;
	case RPC_STATUS:
	case RPC_WHO:
	case RPC_RELOAD:
		p.status_text = (struct rpc_status_reply){99, extents_tail()};
		break;
	case RPC_LOOKUP:
	case RPC_CREATE:
	case RPC_TMPFILE:
	case RPC_MKNOD:
	case RPC_MKDIR:
	case RPC_SYMLINK:
	case RPC_LINK:
	case RPC_LEASE:
		fill_entry(&p.entry);
		if (lends(op))
			p.entry.lent = (struct rpc_lent){70, 3};
		break;
	case RPC_GETATTR:
	case RPC_SETATTR:
	case RPC_COMMIT:
	case RPC_SETXATTR:
	case RPC_REMOVEXATTR:
		p.attr = (struct rpc_attr_reply){attr_of(8), {LEASE_SHARED, 9, 10}};
		break;
	case RPC_MAKE:
		p.makes = (struct rpc_makes_reply){
			3, {0, -EEXIST, -EINVAL}, {1ull << 40, NUMBERS_LENT}, {5, EIO, {0}}};
		break;
	case RPC_UNLINK:
	case RPC_RMDIR:
		p.remove = (struct rpc_remove_reply){attr_of(8), attr_of(1), 77};
		break;
	case RPC_NAMES:
		p.names = (struct rpc_names_reply){300, 70000, {71, 4}};
		break;
	case RPC_RENAME:
		p.rename =
			(struct rpc_rename_reply){attr_of(1), attr_of(2), attr_of(3), attr_of(4)};
		break;
	case RPC_READLINK:
		p.readlink.target = str("/some/where");
		break;
	case RPC_READDIR:
		p.readdir = (struct rpc_readdir_reply){1, true, extents_tail()};
		break;
	case RPC_EXTENTS:
		p.extents = (struct rpc_extents_reply){true, extents_tail()};
		break;
	case RPC_STATFS:
		p.statfs = (struct rpc_statfs_reply){1, 2, 3, 4};
		break;
	case RPC_GRANT:
		p.grant = (struct rpc_grant_reply){2, {extent_of(1), extent_of(2)}, 9};
		break;
	case RPC_SNAPSHOT:
		p.snapshot = (struct rpc_snapshot_reply){SNAPSHOT_FAILED, 1, 2, 3, str("why")};
		break;
	case RPC_GETXATTR:
		p.getxattr = (struct rpc_getxattr_reply){65536, 5, extents_tail()};
		break;
	case RPC_LISTXATTR:
		p.listxattr = (struct rpc_listxattr_reply){true, extents_tail()};
		break;
	case RPC_FALLOCATE:
	case RPC_COPY:
		p.progress = (struct rpc_progress_reply){attr_of(4), 1ull << 32};
		break;
	case RPC_QUOTA:
		p.quota.npages = QUOTA_UNLIMITED;
		break;
	case RPC_GETLK:
		p.getlk = (struct rpc_getlk_reply){LOCK_EXCLUSIVE, 4711, 5, LOCK_END_MAX};
		break;
	case RPC_BYE:
	case RPC_CANCEL:
	case RPC_EVICT:
	case RPC_LOG:
	case RPC_RETURN:
	case RPC_STAGE:
	case RPC_FROZEN:
	case RPC_UNPROTECT:
	case RPC_LOCK:
	case RPC_CONVERT:
	case RPC_TRIAL:
	case RPC_OP_MAX:
		break;
	}
	return p;
}
