/* internal.h - the shm transport's own structs; only the files of this folder include it.
 *
 * shm.c is the table, link.c passes frames over the socket both ways, server.c publishes
 * regions and fences, client.c maps them and copies.
 *
 * A frame is one packet of a SOCK_SEQPACKET socket. The server sends a region's descriptor in a
 * REGION frame when it publishes the region, so it arrives before any message that names its key.
 * The client maps it at receipt. READ and WRITE are copies within channel_post; only their EV_DONE
 * is queued.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_SHM_INTERNAL_H
#define RMEMFS_COMMON_TRANSPORT_SHM_INTERNAL_H

#include "common/base/cut_guard.h"
#include "common/transport/sock/channel.h"
#include "common/transport/sock/listen.h"

/* The data of a key's frame (a sock_msg without message). */
struct shm_key {
	const struct region *region;
	int fd; /* the descriptor to pass; it belongs to the region */
};

struct shm_mapping {
	void *addr; /* NULL: no such key */
	struct cut_guard *guard;
	uint64_t len;
	uint32_t rkey;
	uint32_t access;
};

struct shm_done {
	void *cookie;
	int status;
	uint32_t nworks;
};

struct shm_channel {
	struct sock_channel sock;
	struct list out; /* messages and keys not sent yet */
	bool bye_due, bye_sent;
	/* server */
	struct sock_pool keys;      /* every published key, in order; none returns */
	struct sock_source process; /* watches pidfd while fencing */
	int pidfd;
	/* client */
	struct shm_mapping *mappings; /* [config.max_regions], in the order of receipt */
	struct cut_guard *guards;     /* [config.max_regions], of the mappings */
	uint32_t nmappings;
	struct shm_mapping *by_index; /* [config.max_regions], copies, by channel_set_key */
	struct shm_done *done;        /* ring of nwork: no batch is empty, so it never overflows */
	uint32_t done_first, ndone;
	uint32_t nworks; /* in done */
};

static inline struct shm_channel *shm_channel_of(struct channel *ch)
{
	return container_of(ch, struct shm_channel, sock.base);
}

extern const struct channel_limits shm_limits;

/* Initialises the fields of both sides; the sock part is initialised already. */
void shm_channel_init(struct shm_channel *ch);
/* Makes the socket's buffer large enough for a whole message. */
void shm_link_make_room(int fd, uint32_t msg_bytes);
/* Limits msg_bytes to the longest message that fits one packet. 0 or -errno. */
int shm_link_clip(uint32_t *msg_bytes);
/* Queues a frame's message behind those waiting, and sends as much as the socket takes. */
void shm_link_send(struct shm_channel *ch, struct sock_msg *msg);
/* Sends what is waiting. */
void shm_link_flush(struct shm_channel *ch);
/* Sends BYE at once, since the channel has failed. */
void shm_link_bye(struct shm_channel *ch, int status);
/* Takes one frame. 1: msg is a MESSAGE or REGION (then *fd is a descriptor that the caller owns, or
 * -1). 0: no frame, or no buffer free; the channel fails by itself when the peer has finished. */
int shm_link_recv(struct shm_channel *ch, struct sock_msg **msg, int *fd);

int shm_admit(struct sock_guest *guest, struct sock_channel **out);
int shm_accept(struct channel *base);
void shm_reject(struct channel *base);
int shm_publish(struct channel *base, struct region *r, unsigned access, struct region_key *key);
int shm_fence(struct channel *base);
void shm_fence_at_once(struct channel *base);
void shm_server_fini(struct shm_channel *ch);

int shm_connect(struct evq *q, const struct transport_address *address, struct channel **out);
int shm_set_key(struct channel *base, uint32_t index, const struct region_key *key);
int shm_post(struct channel *base, enum io_dir dir, const struct work *works, uint32_t nworks,
	void *cookie);
void *shm_mapped(
	struct channel *base, enum io_dir dir, uint32_t region, uint64_t offset, uint32_t len);
void shm_client_fini(struct shm_channel *ch);

#endif
