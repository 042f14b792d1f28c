/* replay.c - see replay.h. */
#include "daemon/remote/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/remote/remote_private.h"

struct replay {
	struct list link; /* replays.all; then remote.rpc_replayed */
	struct replays *of;
	uint64_t by;
	struct rpc_call call;     /* the dead daemon's */
	struct rpc_call *answers; /* the call of the request that came again */
	bool answered;
	size_t len; /* of the reply; 0: there is none */
	uint8_t *reply;
	uint8_t message[]; /* the call's names lie here */
};

static void replay_delete(struct replay *replay)
{
	free(replay->reply);
	free(replay);
}

void replays_init(struct replays *rs)
{
	*rs = (struct replays){0};
	list_init(&rs->all);
	pthread_mutex_init(&rs->lock, NULL);
}

void replays_fini(struct replays *rs)
{
	struct list *link;

	while ((link = list_pop(&rs->all)))
		replay_delete(list_entry(link, struct replay, link));
	pthread_mutex_destroy(&rs->lock);
}

/* The parts of a long value are used up by its first try, so its SETXATTR comes with others. */
bool replay_is_for(const struct rpc_request *req)
{
	switch (req->op) {
	case RPC_CREATE:
	case RPC_MKNOD:
	case RPC_MKDIR:
	case RPC_SYMLINK:
	case RPC_LINK:
	case RPC_UNLINK:
	case RPC_RMDIR:
	case RPC_RENAME:
	case RPC_TMPFILE:
	case RPC_REMOVEXATTR:
		return true;
	case RPC_SETXATTR:
		return !req->setxattr.stage;
	default:
		return false;
	}
}

/* ---- sending again --------------------------------------------------------------------------- */

static void replayed(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct replay *replay = container_of(call, struct replay, call);
	uint8_t reply[RPC_MSG_BYTES];
	size_t len = 0;
	int err = rpc_reply_encode(rep, wire_version(), reply, sizeof(reply), &len);

	replay->reply = err ? NULL : malloc(len);
	if (replay->reply)
		memcpy(replay->reply, reply, len);
	pthread_mutex_lock(&replay->of->lock);
	replay->len = replay->reply ? len : 0;
	replay->answered = true;
	replay->of->nleft--;
	pthread_mutex_unlock(&replay->of->lock);
}

/* The message has to be the slot's last one. */
static bool is_of_slot(const struct remote *r, unsigned slot, const struct rpc_request *req)
{
	return req->slot == r->thread->index * r->nslots + slot && req->seq == r->slots[slot].seq &&
	       replay_is_for(req);
}

int replay_take(struct io_thread *thread, unsigned slot, struct rpc_call **call)
{
	struct remote *r = thread->remote;
	const struct record_slot *note = &r->record->slots[slot];
	size_t len = atomic_load(&note->len);
	struct replay *replay;

	*call = NULL;
	if (!len || len > sizeof(note->message))
		return 0;
	replay = calloc(1, sizeof(*replay) + len);
	if (!replay)
		return -ENOMEM;
	memcpy(replay->message, note->message, len);
	if (rpc_request_decode(&replay->call.req, wire_version(), replay->message, len) ||
		!is_of_slot(r, slot, &replay->call.req)) {
		replay_delete(replay);
		return 0;
	}
	replay->of = &r->session->replays;
	replay->by = note->by;
	replay->call.by = note->by;
	replay->call.done = replayed;
	list_init(&replay->call.link);
	list_add_tail(&replay->of->all, &replay->link);
	replay->of->nleft++;
	*call = &replay->call;
	return 0;
}

bool replays_are_done(struct replays *rs)
{
	bool done;

	pthread_mutex_lock(&rs->lock);
	done = !rs->nleft;
	pthread_mutex_unlock(&rs->lock);
	return done;
}

/* ---- answering ------------------------------------------------------------------------------- */

static struct replay *find_locked(struct replays *rs, const struct rpc_call *call)
{
	list_for_each (pos, &rs->all) {
		struct replay *replay = list_entry(pos, struct replay, link);

		if (replay->answered && replay->len && replay->by == call->by &&
			replay->call.req.op == call->req.op)
			return replay;
	}
	return NULL;
}

/* The call looks as if it had been sent in a slot that is another's by now: it can't be taken back.
 */
bool replay_answers(struct io_thread *thread, struct rpc_call *call)
{
	struct remote *r = thread->remote;
	struct replays *rs = &r->session->replays;
	struct replay *replay;

	pthread_mutex_lock(&rs->lock);
	replay = find_locked(rs, call);
	if (replay)
		list_del(&replay->link);
	pthread_mutex_unlock(&rs->lock);
	if (!replay)
		return false;
	call->sent = true;
	call->req.slot = (uint16_t)(thread->index * r->nslots);
	replay->answers = call;
	list_add_tail(&r->rpc_replayed, &replay->link);
	return true;
}

/* Pages that came along went back with all that the dead daemon had. */
static void forget_grants(struct rpc_reply *rep)
{
	if (!rep->status && (rep->op == RPC_CREATE || rep->op == RPC_TMPFILE))
		rep->entry.ngrant = 0;
}

static void replay_end(struct replay *replay)
{
	struct rpc_reply rep;

	if (rpc_reply_decode(&rep, wire_version(), replay->reply, replay->len))
		rep = (struct rpc_reply){.op = replay->answers->req.op, .status = -EIO};
	forget_grants(&rep);
	replay->answers->done(replay->answers, &rep);
	replay_delete(replay);
}

void replay_deliver(struct remote *r)
{
	struct list due;
	struct list *link;

	list_init(&due);
	list_splice_tail(&due, &r->rpc_replayed);
	while ((link = list_pop(&due)))
		replay_end(list_entry(link, struct replay, link));
}
