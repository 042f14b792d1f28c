#include "daemon/serve/slow.h"

#include <stdio.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_path.h"
#include "daemon/op/op.h"
#include "daemon/remote/remote.h"
#include "daemon/request/counters.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/serve/fs.h"

enum { LOOK_MS = 1000, SLOW_MS = 1000, LOG_MS = 10000, LOG_BURST = 6 };

/* The requests of one look that have not been told of before. */
struct untold {
	int64_t now_ns;
	struct request *oldest;
	unsigned n;
};

static int64_t waited_ms(const struct request *req, int64_t now_ns)
{
	return (now_ns - req->read_ns) / 1000000;
}

/* They come in the order in which they were read. */
static void slow_find(struct request *req, void *arg)
{
	struct untold *untold = arg;

	if (req->replied || req->slow_seen || waited_ms(req, untold->now_ns) < SLOW_MS)
		return;
	req->slow_seen = true;
	untold->n++;
	if (!untold->oldest)
		untold->oldest = req;
}

static void slow_tell(const struct untold *untold)
{
	struct request *req = untold->oldest;
	const struct op *op = op_of(req);
	long long ms = (long long)waited_ms(req, untold->now_ns);
	char rpc[96] = "", more[48] = "", text[PATH_INODE_BYTES];
	struct inode *inode;

	if (op->wait == OP_AT_RPC)
		snprintf(rpc, sizeof(rpc), " (%s)%s", rpc_op_info(op->call.req.op)->name,
			rpc_may_wait_for_mounts(req->thread, &op->call)
				? ", perhaps for another mount that has the file"
				: "");
	if (untold->n > 1)
		snprintf(more, sizeof(more), "; %u more wait%s", untold->n - 1,
			untold->n == 2 ? "s" : "");
	/* An operation that waits for a lease has no inode yet. */
	inode = op->inode ? inode_ref(op->inode) : inode_of_node(req->thread->fs, req->node);
	req->trace.ino = inode ? inode->ino : req->node;
	snprintf(text, sizeof(text), "inode %llu", (unsigned long long)req->node);
	log_notice(
		"%s of %s, asked by process %u, has not been answered for %lld.%lld s: it waits for %s%s%s",
		request_op_name(req->op), inode ? path_name_inode(inode, text) : text, req->pid,
		ms / 1000, ms % 1000 / 100, op_wait_name(op->wait), rpc, more);
	req->slow_told = true;
	if (inode)
		inode_put(inode);
}

static bool is_connected(const struct io_thread *thread)
{
	int64_t since_ms;

	return fs_health(thread->fs, &since_ms) == SESSION_CONNECTED;
}

void slow_tick(struct io_thread *thread, int64_t now)
{
	static struct log_ratelimit limit = {.burst = LOG_BURST};
	struct io_thread_private *priv = thread->priv;
	struct untold untold = {.now_ns = priv->now_ns};

	if (now < priv->slow_look_ms)
		return;
	priv->slow_look_ms = now + LOOK_MS;
	if (list_empty(&priv->used_requests) || !is_connected(thread))
		return;
	request_each(thread, slow_find, &untold);
	if (untold.n && log_ratelimit_ok(&limit, LOG_MS))
		slow_tell(&untold);
}
