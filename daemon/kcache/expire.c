#include "daemon/kcache/expire.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/file/inode.h"

/* Two parents, or a parent and the file; the inode that CREATE has found; those that RENAME
 * moved. */
enum { NODES_MAX = 3 + OP_CHILDREN_MAX, NAMES_MAX = 2 };

/* The changes of one operation; the kernel is told of one after the other. */
struct expiry {
	struct list link; /* expiries.all */
	struct notifier_job job;
	struct fs *fs;
	uint64_t nodes[NODES_MAX];
	unsigned nnodes;
	struct {
		uint64_t parent;
		char name[NAME_BYTES_MAX + 1];
	} names[NAMES_MAX];
	unsigned nnames;
};

void expiries_init(struct expiries *x)
{
	pthread_mutex_init(&x->lock, NULL);
	list_init(&x->all);
}

void expiries_fini(struct expiries *x)
{
	struct list *link;

	while ((link = list_pop(&x->all)))
		free(list_entry(link, struct expiry, link));
	pthread_mutex_destroy(&x->lock);
}

/* ---- what has changed ------------------------------------------------------------------------ */

static void add_node(struct expiry *x, uint64_t node)
{
	for (unsigned i = 0; i < x->nnodes; i++)
		if (x->nodes[i] == node)
			return;
	if (node)
		x->nodes[x->nnodes++] = node;
}

static void add_name(struct expiry *x, uint64_t parent, const char *name)
{
	x->names[x->nnames].parent = parent;
	snprintf(x->names[x->nnames].name, sizeof(x->names->name), "%s", name);
	x->nnames++;
}

static void add_names(struct expiry *x, const struct request *req)
{
	switch (req->op) {
	case OP_RENAME:
		add_name(x, req->args.node2, req->args.name2);
		add_name(x, req->node, req->args.name);
		break;
	case OP_CREATE:
	case OP_MKNOD:
	case OP_MKDIR:
	case OP_SYMLINK:
	case OP_LINK:
	case OP_UNLINK:
	case OP_RMDIR:
		add_name(x, req->node, req->args.name);
		break;
	default:
		break;
	}
}

static void add_nodes(struct expiry *x, struct request *req)
{
	const struct op *op = op_of(req);

	add_node(x, req->node);
	add_node(x, req->args.node2);
	add_node(x, inode_node(op->inode));
	for (unsigned i = 0; i < OP_CHILDREN_MAX; i++)
		add_node(x, op->children[i]);
}

/* ---- telling the kernel ---------------------------------------------------------------------- */

static void expire_end(struct expiry *x)
{
	struct expiries *all = x->fs->expiries;

	pthread_mutex_lock(&all->lock);
	list_del(&x->link);
	pthread_mutex_unlock(&all->lock);
	free(x);
}

/* Attributes come first: they wait for nothing. */
static void tell_next(struct notifier_job *job)
{
	struct expiry *x = container_of(job, struct expiry, job);

	if (x->nnodes) {
		job->node = x->nodes[--x->nnodes];
		job->off = -1;
		notifier_add(&x->fs->notifier, job);
	} else if (x->nnames) {
		x->nnames--;
		job->node = x->names[x->nnames].parent;
		job->name = x->names[x->nnames].name;
		notifier_add(&x->fs->expirer, job);
	} else {
		expire_end(x);
	}
}

void expire_changed(struct request *req)
{
	static struct log_ratelimit limit;
	struct fs *fs = req->thread->fs;
	struct expiry *x = calloc(1, sizeof(*x));

	if (!x) {
		if (log_ratelimit_ok(&limit, 1000))
			log_error(
				"out of memory: the kernel is not told what an operation that "
				"was given up has changed, and may show it as it was for a while");
		return;
	}
	x->fs = fs;
	x->job = (struct notifier_job){.port = req->thread->port, .done = tell_next};
	add_names(x, req);
	add_nodes(x, req);
	pthread_mutex_lock(&fs->expiries->lock);
	list_add_tail(&fs->expiries->all, &x->link);
	pthread_mutex_unlock(&fs->expiries->lock);
	tell_next(&x->job);
}

/* ---- attributes, by an operation ------------------------------------------------------------ */

static void expire_job_done(struct notifier_job *job)
{
	struct op *op = container_of(job, struct op, job);

	op->expired(request_of_state(op), 0);
}

static void expire_attr(struct request *req, struct notifier *notifier,
	void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);

	op->job = (struct notifier_job){
		.port = req->thread->port,
		.node = inode_node(op->inode),
		.off = -1,
		.thread = req->thread,
		.done = expire_job_done,
	};
	op->expired = then;
	notifier_add(notifier, &op->job);
}

void op_expire_attr(struct request *req, void (*then)(struct request *req, int status))
{
	expire_attr(req, &req->thread->fs->notifier, then);
}

void op_expire_attr_behind_drops(struct request *req, void (*then)(struct request *req, int status))
{
	expire_attr(req, &req->thread->fs->giver, then);
}
