/* remote_private.h - the parts of a thread's end of the session, and what they ask of each other.
 *
 *     remote.c          the frame: set-up, events and ticks handed to the parts, stop
 *     connect.c         the channel's life: connect, attach, fetch keys, ping, drop, back-off
 *     rpc.c             slots, sequence numbers, replay
 *     io.c              batches within the channel's depth, repetition
 *     region_table.c    the keys of the channel
 *     remote_channel.c  what the others do with the channel: send, give it up, count
 *
 * Each calls only those below it; rpc.c and io.c do not call each other.
 *
 * THREADS    All of it belongs to the I/O thread.
 */
#ifndef RMEMFS_DAEMON_REMOTE_REMOTE_PRIVATE_H
#define RMEMFS_DAEMON_REMOTE_REMOTE_PRIVATE_H

#include <stdatomic.h>

#include "daemon/remote/remote.h"
#include "common/proof/key_proof.h"
#include "daemon/record/record.h"
#include "daemon/remote/replay.h"
#include "daemon/remote/session_private.h"

enum {
	/* Slots of a sharing mount's channel that are only for calls that others may wait for. */
	SLOTS_NESTED = 5,
	/* Of these, the slots for calls that may wait themselves: for pages, and for a second
	 * lease. */
	SLOTS_PAGES = 1,
	SLOTS_SECOND = 2,
	BATCHES_MAX = 256,
};

enum remote_state {
	REMOTE_DOWN,       /* no channel; connects when connect_ms has come */
	REMOTE_CONNECTING, /* until EV_OPEN */
	REMOTE_PROVING,    /* AUTH sent: the handshake for the mount's key */
	REMOTE_ATTACHING,  /* ATTACH sent; its answer says that the channel before is fenced */
	REMOTE_FETCHING,   /* the region table */
	REMOTE_READY,
	REMOTE_DROPPING, /* the channel is to go at the next tick or its EV_CLOSED */
	REMOTE_OVER,     /* session lost */
	REMOTE_AT_REST, /* no channel, until connection_resume(): another process has the session */
};

/* A slot belongs to the session and survives channels. */
struct slot {
	struct rpc_call *call; /* sent and not answered, or to be sent again */
	uint64_t seq;          /* of the last request */
	bool left;             /* that request was sent at least once */
};

/* The works that are posted at once; the cookie of their EV_DONE. */
struct io_batch {
	struct io_call *call;
	uint32_t nworks;
	struct io_batch *next_free;
};

/* Of prove_key.h. */
struct proving {
	struct key_proof proof;
	unsigned at;              /* the key of the file that is tried next, or was last */
	unsigned nkeys, nrefused; /* in the file; in a row, without a channel that was attached */
};

/* The transfers of one direction, which have limits of their own. */
struct io_queue {
	struct list waiting; /* works left to post; in order */
	struct list posted;  /* EV_DONEs left to come */
	uint32_t nworks;     /* outstanding */
};

struct remote {
	struct io_thread *thread;
	struct session *session;
	struct session_path *path; /* of its event queue: paths_enter() */
	struct channel *ch;
	enum remote_state state;

	/* Connection. */
	int64_t connect_ms; /* DOWN: when to connect */
	unsigned backoff_ms;
	int64_t deadline_ms; /* CONNECTING to FETCHING: the deadline of the step */
	struct proving proving;
	int64_t ready_ms;          /* since when it is ready; 0: this channel never was */
	bool missed;               /* remote_disconnected() */
	bool down;                 /* session_channel_down() was told */
	bool refused;              /* this channel: the key, or the right to attach */
	int64_t attach_ns;         /* when ATTACH was sent */
	uint32_t attach_wait_ms;   /* the wait that ATTACH asked for */
	int64_t attach_ms;         /* ATTACHING: when it is sent again; 0: it is on its way */
	uint64_t server;           /* the incarnation that answered ATTACH last */
	uint32_t next_region;      /* the channel has keys to those before it: region_table.c */
	bool asks_regions;         /* a REGIONS is on its way */
	uint64_t regions_asked;    /* REGIONS sent */
	uint64_t regions_answered; /* of these, up to the last one whose answer had all keys */
	int64_t ping_ns;           /* when the PING on the way was sent; 0: none is */
	uint64_t npings;           /* the number of PINGs sent */
	int64_t next_ping_ms;
	bool rung;  /* by the server; no PING was sent since */
	bool heard; /* a sign of life came since the last tick */
	/* How long no channel has had a sign of life; how long the PING on this one is unanswered.
	 * Counts only time in which this thread ran: see measure_silence(). The same of REGIONS. */
	int64_t mute_ms, unanswered_ms, regions_ms;
	int64_t ticked_ms;
	char reason[SESSION_WHY_BYTES]; /* DROPPING: why */
	unsigned keys;                  /* session.keys when ATTACH was sent */

	/* Stop. */
	bool stopping, stopped;
	bool last; /* of all threads: it sends BYE */
	bool bye_sent;
	int64_t stop_ms; /* when it gives up */

	/* RPCs. */
	unsigned nslots, nreserved; /* 0: not known yet */
	struct slot slots[SLOTS_MAX];
	uint64_t free_slots, unsent_slots; /* bit masks; unsent: to be sent (again) */
	uint64_t unwanted_slots;           /* the same: to be taken back, until they are answered */
	uint64_t cancel_slots;             /* of these: CANCEL is to be sent */
	bool cancelling;                   /* a CANCEL is on its way */
	struct list rpc_waiting, rpc_waiting_nested, rpc_waiting_pages, rpc_waiting_second,
		rpc_waiting_reserved;
	struct list rpc_refused;  /* can't be coded; ended by the next tick */
	struct list rpc_replayed; /* struct replay, whose call has its answer: by the next tick */
	struct record_thread *record; /* NULL: nothing is recorded */
	unsigned next_slot;           /* with a record slots are used in turn */

	/* I/O. */
	struct io_queue io[2]; /* by enum io_dir */
	uint32_t nfailed;      /* works of this channel that ended in error */
	struct io_batch batches[BATCHES_MAX];
	struct io_batch *free_batches;
	struct list io_refused; /* broken by nature; ended by the next tick */

	/* Counters: past ones of channels that are gone, and the sums. */
	struct channel_counters past;
	uint64_t nrpcs;
	uint64_t coded_bytes; /* of messages that the codec made or understood to the last byte */
};

/* ---- connect.c ---------------------------------------------------------------------------------
 */

void connection_event(struct remote *r, const struct event *ev);
/* The answer to a message that has no slot. */
void connection_reply(struct remote *r, const struct rpc_reply *rep);
/* The server's RPC_RING. */
void connection_rung(struct remote *r);
void connection_tick(struct remote *r, int64_t now);
/* Deletes the channel; another one is connected as soon as possible. */
void connection_take_down(struct remote *r, int64_t now);
/* Ends the channel without a successor. */
void connection_end(struct remote *r);
/* The same until it is resumed. Nothing is on its way. */
void connection_rest(struct remote *r);
void connection_resume(struct remote *r, int64_t now);
void connection_bye(struct remote *r);

/* ---- rpc.c -------------------------------------------------------------------------------------
 */

void slots_init(struct remote *r);
/* Sets the slots that the attached channel has. They must be the same as before, else -EPROTO. */
int slots_set(struct remote *r, unsigned nslots, unsigned nreserved);
/* Tells the record of the slots that there are. */
void slots_record(struct remote *r);
void slots_channel_lost(struct remote *r);
/* Sends requests again that were sent before, then waiting ones, as far as possible. */
void slots_pump(struct remote *r);
/* The answer to CANCEL. False: none was on its way. */
bool slots_cancelled(struct remote *r);
/* A reply in a slot. */
void slots_reply(struct remote *r, const struct rpc_reply *rep);
void slots_tick(struct remote *r);
/* Ends all calls with -ESTALE. */
void slots_fail_all(struct remote *r);
/* Another session begins: the slots' first requests are to come. */
void slots_begin_anew(struct remote *r);
bool slots_are_idle(const struct remote *r);

/* The call has the slot, as if it had been sent in it before. */
void slots_resume(struct remote *r, unsigned i, struct rpc_call *call);

/* ---- replay.c ----------------------------------------------------------------------------------
 */

/* Ends the calls that replay_answers() took. */
void replay_deliver(struct remote *r);

/* ---- io.c --------------------------------------------------------------------------------------
 */

void transfers_init(struct remote *r);
void transfers_pump(struct remote *r);
void transfers_done(struct remote *r, const struct event *ev);
/* After the channel was deleted: all that was posted is to be posted again. */
void transfers_channel_lost(struct remote *r);
void transfers_tick(struct remote *r);
void transfers_fail_all(struct remote *r);
bool transfers_are_idle(const struct remote *r);

/* ---- region_table.c -------------------------------------------------------------------------- */

/* The next channel has no keys yet. */
void region_table_reset(struct remote *r);
/* Sends REGIONS for those from next_region on. */
void region_table_ask(struct remote *r);
/* Takes the keys of an answer. 1: these were the last ones; 0: the rest is to be asked for; -errno:
 * the channel is given up, or closed. */
int region_table_answered(struct remote *r, const struct rpc_reply *rep);
/* A transfer names a region that the ready channel has no key to, since the export has grown: asks
 * for it. *answer: 0 at first, and then as the call before left it. False: the server was asked
 * since the first call, and has no such region. */
bool region_table_want(struct remote *r, uint64_t *answer);

/* ---- remote_channel.c ------------------------------------------------------------------------ */

/* Codes and sends a request. -EAGAIN: no send buffer now. -EPROTO, -EMSGSIZE: it can't be coded. */
int remote_channel_send(struct remote *r, const struct rpc_request *req);
/* The same for the call of a slot that has sent nothing yet: the message is recorded, if `note` is
 * not NULL. */
int remote_channel_send_recorded(
	struct remote *r, const struct rpc_request *req, struct record_slot *note, uint64_t by);
/* Gives the channel up, and keeps why for the log; nothing is sent on it any more. A later tick or
 * event deletes it, since events of it may be in the caller's hands. */
void remote_channel_drop(struct remote *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The session's rights have changed since, or its transport: we or the server replace the channel.
 */
bool remote_channel_has_old_keys(const struct remote *r);
/* A soft mount's server has been away for so long that calls are taken back. None is sent before it
 * has given a sign of life. False when the session is lost: then calls end with -ESTALE. */
bool remote_channel_is_away(const struct remote *r);
/* Counts what the channel did, which is about to be deleted. */
void remote_channel_keep_counters(struct remote *r);
/* Tells the session the counts of this thread. */
void remote_channel_publish_counters(struct remote *r);

/* Whether other clients may be at the export, now or later. */
static inline bool remote_may_share(const struct remote *r)
{
	return r->session->converts || session_is_sharing(r->session);
}

#endif
