/* replay.h - requests of a daemon that was killed, which must not be done twice.
 *
 * The dead daemon had sent an RPC for a request of the kernel, and the kernel sends the request
 * again. Nobody knows whether the server has executed the RPC. So the successor sends the same
 * message again in the same slot, as after a lost connection: the server executes it, or answers
 * from its stored reply. The answer is kept, until the kernel's request comes again and starts the
 * same RPC. Then it is the RPC's answer, and nothing is sent.
 *
 *     replay_take       for each slot of the record whose message is whole, before threads run
 *     replays_are_done  all are answered: before the kernel is asked to send again
 *     replay_answers    when an RPC starts for a request that came again
 *
 * THREADS    One lock; taken for requests that came again only. A replay's call is its channel's
 *            thread's.
 */
#ifndef RMEMFS_DAEMON_REMOTE_REPLAY_H
#define RMEMFS_DAEMON_REMOTE_REPLAY_H

#include <pthread.h>
#include <stdbool.h>

#include "common/base/list.h"
#include "common/rpc/rpc.h"

struct io_thread;
struct remote;
struct rpc_call;

struct replays {
	pthread_mutex_t lock;
	struct list all; /* struct replay */
	unsigned nleft;  /* not answered yet */
};

void replays_init(struct replays *rs);
void replays_fini(struct replays *rs);

/* Whether doing the request twice gives another result than doing it once. */
bool replay_is_for(const struct rpc_request *req);

/* The call of the slot's recorded message, which is to have the slot (slots_resume()). NULL: there
 * is no message, or it is not whole. -ENOMEM. */
int replay_take(struct io_thread *thread, unsigned slot, struct rpc_call **call);
bool replays_are_done(struct replays *rs);

/* True: call->done() follows, with the answer to this call's predecessor. */
bool replay_answers(struct io_thread *thread, struct rpc_call *call);

#endif
