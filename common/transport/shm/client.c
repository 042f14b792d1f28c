/* client.c - the client's side of a shm channel. It maps published regions, and copies bytes or
 * tells where they are mapped. */
#include "common/transport/shm/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/util.h"

/* ---- events ---------------------------------------------------------------------------------- */

static int map_region(int fd, const struct sock_frame *frame, struct shm_mapping *mapping,
	struct cut_guard *guard)
{
	int prot = PROT_READ | (frame->arg & REGION_WRITE ? PROT_WRITE : 0);
	struct stat st;
	void *addr;
	int err;

	if (fd < 0 || !frame->len || frame->len > SIZE_MAX)
		return -EPROTO;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* An access beyond the file's end would be a SIGBUS, and find zeros. */
	if (st.st_size < 0 || (uint64_t)st.st_size < frame->len)
		return -EPROTO;
	err = map_file(fd, frame->len, prot, &addr);
	if (err)
		return err;
	/* The server waits for the end of this process, so no child may inherit the mapping. */
	err = madvise(addr, frame->len, MADV_DONTFORK) < 0 ? -errno : 0;
	if (!err)
		err = cut_guard_add(guard, fd, addr, frame->len, NULL);
	if (err) {
		munmap(addr, frame->len);
		return err;
	}
	*mapping = (struct shm_mapping){
		.addr = addr,
		.guard = guard,
		.len = frame->len,
		.rkey = frame->rkey,
		.access = frame->arg,
	};
	return 0;
}

static void take_region(struct shm_channel *ch, struct sock_msg *msg, int fd)
{
	int err = -EPROTO;

	if (ch->nmappings < ch->sock.base.transport->config.max_regions)
		err = map_region(
			fd, &msg->frame, &ch->mappings[ch->nmappings], &ch->guards[ch->nmappings]);
	if (err) {
		log_error("%s: a region of %llu bytes can't be mapped: %s", ch->sock.base.peer,
			(unsigned long long)msg->frame.len, errno_text(err));
		shm_link_bye(ch, -EPROTO);
		sock_channel_fail(&ch->sock, err);
	} else {
		ch->nmappings++;
	}
	if (fd >= 0)
		close(fd);
	sock_pool_put(&ch->sock.recv, msg);
}

static void greet(struct shm_channel *ch)
{
	int ret = sock_channel_greet(&ch->sock);

	if (ret == 1) {
		ret = sock_channel_buffers(&ch->sock);
		if (!ret)
			ch->sock.phase = SOCK_ACCEPTED;
	}
	if (ret < 0)
		sock_channel_fail(&ch->sock, ret);
}

static int take_done(struct shm_channel *ch, struct event *events, int max)
{
	uint32_t cap = ch->sock.base.transport->config.nwork;
	int n = 0;

	while (n < max && ch->ndone) {
		struct shm_done *done = &ch->done[ch->done_first];

		events[n] = sock_event(&ch->sock, EV_DONE, done->status);
		events[n++].cookie = done->cookie;
		ch->nworks -= done->nworks;
		ch->done_first = (ch->done_first + 1) % cap;
		ch->ndone--;
	}
	return n;
}

static int take_messages(struct shm_channel *ch, struct event *events, int max)
{
	struct sock_msg *msg;
	int n = 0, fd;

	/* Read the socket only when epoll has found something: a READ should cost no system
	 * call. */
	while (n < max && ch->sock.phase == SOCK_OPEN && ch->sock.source.ready) {
		if (!shm_link_recv(ch, &msg, &fd))
			ch->sock.source.ready = false;
		else if (msg->frame.type == FRAME_REGION)
			take_region(ch, msg, fd);
		else
			events[n++] = sock_event_message(&ch->sock, msg);
	}
	return n;
}

static int client_poll(struct sock_source *s, struct event *events, int max)
{
	struct shm_channel *ch = container_of(s, struct shm_channel, sock.source);
	struct sock_channel *sock = &ch->sock;
	int n = 0;

	if (sock->phase == SOCK_GREETING)
		greet(ch);
	if (sock->phase == SOCK_ACCEPTED) {
		sock->phase = SOCK_OPEN;
		events[n++] = sock_event(sock, EV_OPEN, 0);
	}
	if (sock->phase == SOCK_OPEN && sock->blocked)
		shm_link_flush(ch);
	/* Messages first: else a caller that posts as fast as it polls would never get to them. */
	n += take_messages(ch, events + n, max - n);
	n += take_done(ch, events + n, max - n);
	if (n < max && sock->phase == SOCK_FAILED && !ch->ndone) {
		sock->phase = SOCK_OVER;
		events[n++] = sock_event_closed(sock);
	}
	if (n == max && sock->phase != SOCK_OVER)
		sock_source_pend(s);
	return n;
}

/* ---- connecting ------------------------------------------------------------------------------ */

static int client_alloc(struct shm_channel *ch, const struct transport_config *config)
{
	ch->mappings = calloc(config->max_regions, sizeof(*ch->mappings));
	ch->guards = calloc(config->max_regions, sizeof(*ch->guards));
	ch->by_index = calloc(config->max_regions, sizeof(*ch->by_index));
	ch->done = calloc(config->nwork, sizeof(*ch->done));
	return ch->mappings && ch->guards && ch->by_index && ch->done ? 0 : -ENOMEM;
}

int shm_connect(struct evq *base, const struct transport_address *address, struct channel **out)
{
	struct sock_evq *q = container_of(base, struct sock_evq, base);
	struct shm_channel *ch = calloc(1, sizeof(*ch));
	int err;

	if (!ch)
		return -ENOMEM;
	shm_channel_init(ch);
	err = sock_channel_init(&ch->sock, q, false, &shm_limits, client_poll);
	if (err)
		goto err_free;
	err = client_alloc(ch, &base->transport->config);
	if (!err)
		err = sock_channel_connect(&ch->sock, address);
	if (err)
		goto err_fini;
	if (ch->sock.phase == SOCK_GREETING)
		shm_link_make_room(ch->sock.fd, base->transport->config.msg_bytes);
	*out = &ch->sock.base;
	return 0;

err_fini:
	shm_client_fini(ch);
	sock_channel_fini(&ch->sock);
err_free:
	free(ch);
	return err;
}

void shm_client_fini(struct shm_channel *ch)
{
	for (uint32_t i = 0; i < ch->nmappings; i++) {
		cut_guard_remove(&ch->guards[i]);
		munmap(ch->mappings[i].addr, ch->mappings[i].len);
	}
	free(ch->mappings);
	free(ch->guards);
	free(ch->by_index);
	free(ch->done);
}

/* ---- copying --------------------------------------------------------------------------------- */

/* Accepts any key: one that was never published is found out at its first use, as on the other
 * transports. */
int shm_set_key(struct channel *base, uint32_t index, const struct region_key *key)
{
	struct shm_channel *ch = shm_channel_of(base);

	ch->by_index[index] = (struct shm_mapping){0};
	for (uint32_t i = 0; i < ch->nmappings; i++)
		if (ch->mappings[i].rkey == key->rkey)
			ch->by_index[index] = ch->mappings[i];
	return 0;
}

static void copy_work(const struct work *work, enum io_dir dir, uint8_t *remote)
{
	for (uint32_t i = 0; i < work->nsge; i++) {
		const struct sge *sge = &work->sge[i];

		if (dir == IO_READ)
			memcpy(sge->addr, remote, sge->len);
		else
			memcpy(remote, sge->addr, sge->len);
		remote += sge->len;
	}
}

/* NULL: no such key was published, its region is shorter, or has lost bytes. */
static uint8_t *reach(
	struct shm_channel *ch, enum io_dir dir, uint32_t region, uint64_t offset, uint64_t bytes)
{
	const struct shm_mapping *mapping = &ch->by_index[region];
	uint64_t at = ch->sock.base.keys[region].addr + offset;
	unsigned access = dir == IO_READ ? REGION_READ : REGION_WRITE;

	if (!mapping->addr || cut_guard_is_struck(mapping->guard) || !(mapping->access & access) ||
		!range_within(at, bytes, mapping->len))
		return NULL;
	return (uint8_t *)mapping->addr + at;
}

static int run_work(struct shm_channel *ch, enum io_dir dir, const struct work *work)
{
	uint64_t bytes = work_bytes(work);
	uint8_t *remote = reach(ch, dir, work->region, work->offset, bytes);

	if (!remote)
		return -EACCES;
	copy_work(work, dir, remote);
	if (cut_guard_is_struck(ch->by_index[work->region].guard))
		return -EFAULT;
	channel_count_mapped(&ch->sock.base, dir, bytes);
	return 0;
}

void *shm_mapped(
	struct channel *base, enum io_dir dir, uint32_t region, uint64_t offset, uint32_t len)
{
	struct shm_channel *ch = shm_channel_of(base);

	return ch->sock.phase == SOCK_OPEN ? reach(ch, dir, region, offset, len) : NULL;
}

int shm_post(struct channel *base, enum io_dir dir, const struct work *works, uint32_t nworks,
	void *cookie)
{
	struct shm_channel *ch = shm_channel_of(base);
	uint32_t cap = base->transport->config.nwork;
	int err = 0;

	if (ch->sock.phase != SOCK_OPEN)
		return -ENOTCONN;
	if (nworks > base->limits.max_works_read - ch->nworks)
		return -EAGAIN;
	for (uint32_t i = 0; i < nworks && !err; i++)
		err = run_work(ch, dir, &works[i]);
	ch->done[(ch->done_first + ch->ndone) % cap] =
		(struct shm_done){.cookie = cookie, .status = err, .nworks = nworks};
	ch->ndone++;
	ch->nworks += nworks;
	if (err) {
		shm_link_bye(ch, err);
		sock_channel_fail(&ch->sock, err);
	}
	sock_source_pend(&ch->sock.source);
	return 0;
}
