/* session_handover.h - a session goes on in another process of this machine.
 *
 * The server knows a session by its number, its token and its owner, and each request by its slot
 * and number. A process that has all of them resumes the session by ATTACH, as the same process
 * does after a lost connection. Neither leases nor pages nor locks change at the server.
 *
 *     the process that has it                      the one that takes it
 *     remote_rest() in each thread
 *     session_describe                      ->     session_new with session_options.taken
 *                                                  session_adopt, remote_connect
 *     remote_resume(), if the other one fails      (sends no RPC in a slot before it is certain)
 *
 * While no thread has a call, a slot's number is all that is to know of it.
 *
 * OWNERSHIP  Without an error session_adopt() takes owner_fd, which holds the owner's name in the
 * kernel. THREADS    session_describe() in any thread while all threads rest. session_adopt() while
 * no thread runs.
 */
#ifndef RMEMFS_DAEMON_REMOTE_SESSION_HANDOVER_H
#define RMEMFS_DAEMON_REMOTE_SESSION_HANDOVER_H

#include "daemon/remote/session_private.h"

struct session_state {
	uint64_t id, instance, incarnation, npages;
	uint32_t lease_ms;
	uint8_t store_id[16], token[TOKEN_BYTES], owner[OWNER_BYTES];
	uint32_t owner_number;
	uint32_t nchannels;
	bool exclusive, sharing, converts, read_only;
	struct io_limits limits;
	struct rpc_counters counters;
	struct attr root;
	struct slots_state {
		uint32_t nslots, nreserved; /* 0: the channel was never attached */
		uint64_t seq[SLOTS_MAX];    /* of the last requests */
	} slots[IO_THREADS_MAX];
};

/* first: the threads, [nchannels]. Returns a descriptor that holds the owner's name, which stays
 * the session's; -1: it has none. */
int session_describe(struct session *s, struct io_thread *first, struct session_state *state);
/* The same without the slots, while the threads may run. */
int session_describe_facts(struct session *s, struct session_state *state);
/* owner_fd: -1, or a descriptor as session_describe() returns. -EINVAL: the state makes no sense,
 * or is of a mount with other options; why gets one line. */
int session_adopt(struct session *s, struct io_thread *first, const struct session_state *state,
	int owner_fd, char *why, size_t whylen);

/* ---- a successor that is not told, but finds a record (record/record.h) ------------------------
 */

/* Slots and rights are recorded from now on; NULL: not any more. While no thread runs. */
void session_record(struct session *s, struct io_thread *first, struct record *record);
/* Before session_adopt(): the numbers that the slots had last. */
void session_adopt_slots(const struct record *record, struct session_state *state);
/* After session_record() of an adopted session: recorded messages go out again. -ENOMEM. */
int session_replay(struct session *s, struct io_thread *first);
/* All channels are attached, so those of the dead process are fenced; and all messages that went
 * out again are answered. Any thread. */
bool session_is_whole(struct session *s);

#endif
