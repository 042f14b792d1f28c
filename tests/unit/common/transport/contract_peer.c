/* contract_peer.c - the other process: see contract.h. */
#include "tests/unit/common/transport/contract.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "common/base/log.h"
#include "common/transport/kinds.h"

enum { CTL_FD = 10, ADDRESS_FD = 11, MEMORY_FD = 12 };

extern char **environ;

/* ---- the test's side ------------------------------------------------------------------------- */

/* The address travels as a file, since an argument would have to be parsed. */
static int address_file(const struct transport_address *address)
{
	int fd = memfd_create("address", 0);

	assert_true(fd >= 0);
	if (address)
		assert_int_equal(
			pwrite(fd, address, sizeof(*address), 0), (ssize_t)sizeof(*address));
	return fd;
}

/* Moves the descriptor away from the numbers that the peer uses. */
static int move_up(int fd)
{
	int up = fcntl(fd, F_DUPFD_CLOEXEC, 100);

	assert_true(up >= 0);
	close(fd);
	return up;
}

void peer_start(struct peer *peer, enum peer_role role, const int *memory,
	const struct transport_address *address)
{
	char role_text[8];
	const char *argv[] = {
		"contract-peer", transport_kind_name(contract_kind), "--peer", role_text, NULL};
	posix_spawn_file_actions_t actions;
	int file = address_file(address), ctl[2];

	snprintf(role_text, sizeof(role_text), "%d", role);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ctl), 0);
	posix_spawn_file_actions_init(&actions);
	ctl[1] = move_up(ctl[1]);
	posix_spawn_file_actions_adddup2(&actions, ctl[1], CTL_FD);
	file = move_up(file);
	posix_spawn_file_actions_adddup2(&actions, file, ADDRESS_FD);
	for (int i = 0; i < NREGIONS; i++)
		posix_spawn_file_actions_adddup2(&actions, memory[i], MEMORY_FD + i);
	assert_int_equal(
		posix_spawn(&peer->pid, "/proc/self/exe", &actions, NULL, (char **)argv, environ),
		0);
	posix_spawn_file_actions_destroy(&actions);
	close(ctl[1]);
	close(file);
	peer->ctl = ctl[0];
}

struct peer_note peer_expect(struct peer *peer, enum peer_op op)
{
	struct pollfd pfd = {.fd = peer->ctl, .events = POLLIN};
	struct peer_note note;

	if (poll(&pfd, 1, WAIT_MS) != 1)
		fail_msg("the peer says nothing, expected %d", op);
	assert_int_equal(recv(peer->ctl, &note, sizeof(note), 0), (ssize_t)sizeof(note));
	assert_int_equal(note.op, op);
	return note;
}

void peer_tell(struct peer *peer, enum peer_op op)
{
	struct peer_note note = {.op = op};

	assert_int_equal(send(peer->ctl, &note, sizeof(note), MSG_NOSIGNAL), (ssize_t)sizeof(note));
}

void peer_stop(struct peer *peer)
{
	int status;

	peer_tell(peer, PEER_EXIT);
	assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
	assert_int_equal(status, 0);
	close(peer->ctl);
	peer->ctl = -1;
}

void peer_kill(struct peer *peer)
{
	assert_int_equal(kill(peer->pid, SIGKILL), 0);
	assert_int_equal(waitpid(peer->pid, NULL, 0), peer->pid);
	close(peer->ctl);
	peer->ctl = -1;
}

void peer_freeze(struct peer *peer)
{
	int status;

	assert_int_equal(kill(peer->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(peer->pid, &status, WUNTRACED), peer->pid);
	assert_true(WIFSTOPPED(status));
}

/* ---- the peer: common ------------------------------------------------------------------------ */

/* Nothing here may use cmocka. The peer asserts by itself, and its exit status tells the test. */
struct self {
	enum peer_role role;
	struct memory memory[NREGIONS];
	struct transport_address address;
	struct transport *t;
	struct evq *q;
	bool exiting;
	/* server */
	struct region *regions[NREGIONS];
	struct listener *l;
	struct channel *channels[16];
	unsigned nfencing;
	const void *held[64];
	unsigned nheld;
	struct channel *holder;
	/* client */
	uint8_t *buf;
	struct buffer *buffer;
	struct channel *ch;
	bool writing;
	uint64_t nposted, ndone;
};

static void note(struct peer_note what)
{
	/* The test may have ended already. */
	(void)!send(CTL_FD, &what, sizeof(what), MSG_NOSIGNAL);
}

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "contract-peer: %s\n", what);
	_exit(3);
}

/* ---- the peer as a server -------------------------------------------------------------------- */

static void server_start(struct self *self)
{
	for (int i = 0; i < NREGIONS; i++) {
		struct memory *memory = &self->memory[i];

		must(!region_register(self->t, memory->fd, memory->rofd, memory->addr, REGION_BYTES,
			     &self->regions[i]),
			"region_register");
	}
	must(!transport_listen(self->q, &self->address, &self->l), "transport_listen");
	note((struct peer_note){.op = PEER_READY, .address = *listener_address(self->l)});
}

static void server_publish(struct self *self, struct channel *ch)
{
	struct region_key *keys = channel_send_buffer(ch);

	/* The client may be gone already: EV_CLOSED came with EV_OPEN, or will come soon. */
	if (!keys)
		return;
	for (int i = 0; i < NREGIONS; i++) {
		unsigned access = i == 1 ? REGION_READ : REGION_READ | REGION_WRITE;
		int err = channel_publish(ch, self->regions[i], access, &keys[i]);

		must(!err || err == -ENOTCONN, "channel_publish");
		if (err) {
			channel_send_cancel(ch, keys);
			return;
		}
	}
	must(!channel_send(ch, keys, NREGIONS * sizeof(*keys), 0, 0), "channel_send");
}

static void server_answer(struct channel *ch, struct ask ask)
{
	void *buf = channel_send_buffer(ch);

	must(buf, "channel_send_buffer");
	memcpy(buf, &ask, sizeof(ask));
	must(!channel_send(ch, buf, sizeof(ask), 0, 0), "channel_send");
}

static void server_echo(const struct event *event)
{
	void *buf = channel_send_buffer(event->channel);

	must(buf, "channel_send_buffer");
	memcpy(buf, event->data, event->len);
	must(!channel_send(
		     event->channel, buf, event->len, event->has_imm ? SEND_IMM : 0, event->imm),
		"channel_send");
}

static bool all_bytes(const uint8_t *at, uint64_t len, uint8_t byte)
{
	for (uint64_t i = 0; i < len; i++)
		if (at[i] != byte)
			return false;
	return true;
}

static void server_flood(struct channel *ch, struct ask ask)
{
	for (ask.value = 0; ask.value < ask.count; ask.value++)
		server_answer(ch, ask);
}

static void server_message(struct self *self, const struct event *event)
{
	struct ask ask = {.op = ASK_ECHO};
	struct channel_keys keys;

	if (event->len >= sizeof(ask))
		memcpy(&ask, event->data, sizeof(ask));
	switch (ask.op) {
	case ASK_COMPARE:
		ask.value =
			all_bytes(self->memory[ask.region].addr + ask.offset, ask.count, ask.byte);
		server_answer(event->channel, ask);
		break;
	case ASK_FLOOD:
		server_flood(event->channel, ask);
		break;
	case ASK_HOLD:
		self->holder = event->channel;
		self->held[self->nheld++] = event->data;
		return;
	case ASK_HANG_UP:
		channel_disconnect(event->channel);
		break;
	case ASK_NALLOCS:
		ask.value = (uint64_t)nallocs();
		server_answer(event->channel, ask);
		break;
	case ASK_PROTECT:
		keys = contract_keys(ask.value);
		ask.count =
			(uint64_t)-channel_protect(event->channel, PROTECT_IN | PROTECT_OUT, &keys);
		server_answer(event->channel, ask);
		break;
	default:
		server_echo(event);
	}
	channel_recv_done(event->channel, event->data);
}

static void server_release(struct self *self)
{
	for (unsigned i = 0; i < self->nheld; i++) {
		struct ask ask;

		memcpy(&ask, self->held[i], sizeof(ask));
		channel_recv_done(self->holder, self->held[i]);
		server_answer(self->holder, ask);
	}
	self->nheld = 0;
}

/* The slot of a channel; for NULL a free one. */
static struct channel **server_slot(struct self *self, const struct channel *ch)
{
	for (size_t i = 0; i < ARRAY_SIZE(self->channels); i++)
		if (self->channels[i] == ch)
			return &self->channels[i];
	must(false, "too many channels");
	return NULL;
}

static void server_incoming(struct self *self, struct channel *ch)
{
	if (self->role == ROLE_REJECTING_SERVER) {
		channel_reject(ch);
		return;
	}
	must(!channel_accept(ch), "channel_accept");
	*server_slot(self, NULL) = ch;
}

static void server_closed(struct self *self, const struct event *event)
{
	note((struct peer_note){.op = PEER_CLOSED, .status = event->status});
	/* On shm the fence ends only with the client's process, so it may never end. */
	must(!channel_fence(event->channel), "channel_fence");
	self->nfencing++;
}

static void server_fenced(struct self *self, const struct event *event)
{
	*server_slot(self, event->channel) = NULL;
	self->nfencing--;
	channel_delete(event->channel);
	note((struct peer_note){.op = PEER_FENCED});
}

static void server_event(struct self *self, const struct event *event)
{
	switch (event->type) {
	case EV_INCOMING:
		server_incoming(self, event->channel);
		break;
	case EV_OPEN:
		server_publish(self, event->channel);
		break;
	case EV_RECV:
		server_message(self, event);
		break;
	case EV_CLOSED:
		server_closed(self, event);
		break;
	case EV_FENCED:
		server_fenced(self, event);
		break;
	case EV_DONE:
		must(false, "EV_DONE at a server");
	}
}

/* ---- the peer as a client -------------------------------------------------------------------- */

static void client_start(struct self *self)
{
	self->buf = mmap(
		NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(self->buf != MAP_FAILED, "mmap");
	memset(self->buf, 0xcc, BUFFER_BYTES);
	must(!buffer_register(self->t, self->buf, BUFFER_BYTES, &self->buffer), "buffer_register");
	must(!channel_connect(self->q, &self->address, &self->ch), "channel_connect");
}

/* Keeps the channel full of WRITEs all over region 0. */
static void client_write(struct self *self)
{
	struct sge sge = {.addr = self->buf, .len = 1 << 20, .buffer = self->buffer};
	struct work work = {.sge = &sge, .nsge = 1};
	int err = 0;

	while (self->writing && !err) {
		work.offset = self->nposted % (REGION_BYTES / sge.len) * sge.len;
		err = channel_post(self->ch, IO_WRITE, &work, 1, NULL);
		if (!err)
			self->nposted++;
	}
	must(!err || err == -EAGAIN || err == -ENOTCONN, "channel_post");
}

static void client_hang_up(struct self *self)
{
	self->writing = false;
	channel_disconnect(self->ch);
}

static void client_keys(struct self *self, const struct event *event)
{
	const struct region_key *keys = event->data;

	for (uint32_t i = 0; i < NREGIONS; i++)
		must(!channel_set_key(self->ch, i, &keys[i]), "channel_set_key");
	channel_recv_done(self->ch, event->data);
	self->writing = true;
}

static void client_event(struct self *self, const struct event *event)
{
	switch (event->type) {
	case EV_OPEN:
		note((struct peer_note){.op = PEER_OPEN});
		break;
	case EV_RECV:
		client_keys(self, event);
		break;
	case EV_DONE:
		if (!self->ndone++)
			note((struct peer_note){.op = PEER_WROTE});
		break;
	case EV_CLOSED:
		self->writing = false;
		must(self->ndone == self->nposted, "one EV_DONE for each batch");
		note((struct peer_note){.op = PEER_CLOSED, .status = event->status});
		break;
	default:
		must(false, "unexpected event");
	}
}

/* ---- the peer's main ------------------------------------------------------------------------- */

static void take_control(struct self *self)
{
	struct peer_note told;

	if (recv(CTL_FD, &told, sizeof(told), MSG_DONTWAIT) != sizeof(told))
		self->exiting = true;
	else if (told.op == PEER_EXIT)
		self->exiting = true;
	else if (told.op == PEER_RELEASE && self->role == ROLE_CLIENT)
		client_hang_up(self);
	else if (told.op == PEER_RELEASE)
		server_release(self);
}

/* Posts first: nothing else announces events that posting causes at once. */
static int step(struct self *self)
{
	struct event events[8];
	int n;

	client_write(self);
	n = evq_poll(self->q, events, ARRAY_SIZE(events));
	must(n >= 0, "evq_poll");
	for (int i = 0; i < n; i++) {
		if (self->role == ROLE_CLIENT)
			client_event(self, &events[i]);
		else
			server_event(self, &events[i]);
	}
	return n;
}

static void run(struct self *self)
{
	struct pollfd pfds[2] = {
		{.fd = CTL_FD, .events = POLLIN},
		{.fd = evq_fd(self->q), .events = POLLIN},
	};

	while (!self->exiting) {
		int n = step(self);

		if (!n) {
			must(!evq_arm(self->q), "evq_arm");
			n = step(self);
		}
		must(poll(pfds, n ? 1 : 2, n ? 0 : -1) >= 0, "poll");
		if (pfds[0].revents)
			take_control(self);
	}
}

static void unwind(struct self *self)
{
	/* A channel in a fence can't be deleted; this process ends anyway. */
	if (self->nfencing)
		_exit(0);
	for (size_t i = 0; i < ARRAY_SIZE(self->channels); i++)
		channel_delete(self->channels[i]);
	channel_delete(self->ch);
	listener_delete(self->l);
	evq_delete(self->q);
	buffer_deregister(self->buffer);
	for (int i = 0; i < NREGIONS; i++)
		region_deregister(self->regions[i]);
	transport_close(self->t);
}

int peer_main(char **argv)
{
	struct transport_config config = contract_config();
	struct self self = {.role = (enum peer_role)atoi(argv[3])};

	log_init("contract-peer", LOG_LEVEL_WARNING);
	if (self.role == ROLE_CLIENT)
		must(pread(ADDRESS_FD, &self.address, sizeof(self.address), 0) ==
				sizeof(self.address),
			"address");
	else
		self.address = contract_address();
	for (int i = 0; i < NREGIONS; i++)
		memory_map(&self.memory[i], MEMORY_FD + i);
	must(!transport_open(&self.address, &config, WAIT_MS, &self.t), "transport_open");
	must(!evq_new(self.t, &self.q), "evq_new");
	if (self.role == ROLE_CLIENT)
		client_start(&self);
	else
		server_start(&self);
	run(&self);
	unwind(&self);
	return 0;
}
