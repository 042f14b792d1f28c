/* contract_fixture.c - see contract.h. */
#include "tests/unit/common/transport/contract.h"
#include "common/transport/kinds.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/un.h>

enum transport_kind contract_kind;
uint32_t contract_msg_bytes = MSG_BYTES;
bool contract_protected, contract_messages_only;

struct transport_config contract_config(void)
{
	struct transport_config config;

	transport_config_default(&config);
	config.msg_bytes = contract_msg_bytes;
	config.nrecv = NRECV;
	config.nsend = NSEND;
	config.nwork = NWORK;
	config.max_regions = 8;
	config.io_threads = 2;
	return config;
}

static struct transport_address inet_address(const char *text)
{
	struct transport_address address = {
		.kind = contract_kind,
		.addrlen = sizeof(struct sockaddr_in),
	};
	struct sockaddr_in *in = (struct sockaddr_in *)&address.addr;

	in->sin_family = AF_INET;
	assert_int_equal(inet_pton(AF_INET, text, &in->sin_addr), 1);
	return address;
}

static struct transport_address unix_address(void)
{
	struct transport_address address = {
		.kind = TRANSPORT_SHM,
		.addrlen = sizeof(struct sockaddr_un),
	};
	struct sockaddr_un *un = (struct sockaddr_un *)&address.addr;

	un->sun_family = AF_UNIX;
	snprintf(un->sun_path, sizeof(un->sun_path), "%s/socket", getenv("RMEMFS_CONTRACT_DIR"));
	return address;
}

struct transport_address contract_address(void)
{
	const char *text = getenv("RMEMFS_TEST_ADDRESS");

	if (contract_kind == TRANSPORT_SHM)
		return unix_address();
	if (contract_kind == TRANSPORT_TCP)
		return inet_address("127.0.0.1");
	return inet_address(text ? text : "10.9.0.1");
}

/* ---- memory ---------------------------------------------------------------------------------- */

void memory_map(struct memory *memory, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	memory->fd = fd;
	memory->rofd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(memory->rofd >= 0);
	memory->addr = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(memory->addr, MAP_FAILED);
}

void memory_create(struct memory *memory)
{
	int low = memfd_create("region", MFD_CLOEXEC);
	/* Above the numbers that peer_start gives to descriptors. */
	int fd = fcntl(low, F_DUPFD_CLOEXEC, 100);

	close(low);
	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, REGION_BYTES), 0);
	memory_map(memory, fd);
}

void memory_free(struct memory *memory)
{
	munmap(memory->addr, REGION_BYTES);
	close(memory->fd);
	close(memory->rofd);
}

void fill_pattern(uint8_t *at, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + (i >> 16) * 31 + seed * 101);
}

void assert_pattern(const uint8_t *at, size_t len, unsigned seed)
{
	uint8_t *want = malloc(len);
	bool same;

	assert_non_null(want);
	fill_pattern(want, len, seed);
	same = memcmp(at, want, len) == 0;
	free(want);
	if (!same)
		fail_msg("%zu bytes differ from pattern %u", len, seed);
}

/* ---- events ---------------------------------------------------------------------------------- */

struct event next_event(struct evq *q)
{
	struct pollfd pfd = {.fd = evq_fd(q), .events = POLLIN};
	struct event event;
	int n = evq_poll(q, &event, 1);

	while (n == 0) {
		assert_int_equal(evq_arm(q), 0);
		n = evq_poll(q, &event, 1);
		if (n)
			break;
		if (poll(&pfd, 1, WAIT_MS) != 1)
			fail_msg("no event within %d ms", WAIT_MS);
		n = evq_poll(q, &event, 1);
	}
	assert_int_equal(n, 1);
	return event;
}

struct event expect_event(struct evq *q, enum event_type type, int status)
{
	struct event event = next_event(q);

	assert_int_equal(event.type, type);
	assert_int_equal(event.status, status);
	return event;
}

void expect_silence(struct evq *q, int ms)
{
	struct pollfd pfd = {.fd = evq_fd(q), .events = POLLIN};
	struct event event;

	assert_int_equal(evq_arm(q), 0);
	assert_int_equal(evq_poll(q, &event, 1), 0);
	if (poll(&pfd, 1, ms) > 0)
		assert_int_equal(evq_poll(q, &event, 1), 0);
}

/* ---- fixtures -------------------------------------------------------------------------------- */

static struct fixture *fixture_new(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->peer.ctl = -1;
	f->address = contract_address();
	for (int i = 0; i < NREGIONS; i++)
		memory_create(&f->memory[i]);
	return f;
}

static void fixture_open(struct fixture *f)
{
	struct transport_config config = contract_config();

	assert_int_equal(transport_open(&f->address, &config, WAIT_MS, &f->t), 0);
	assert_int_equal(evq_new(f->t, &f->q), 0);
}

static void fixture_buffer(struct fixture *f)
{
	f->buf = mmap(
		NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(f->buf, MAP_FAILED);
	assert_int_equal(buffer_register(f->t, f->buf, BUFFER_BYTES, &f->buffer), 0);
}

int setup_client(void **state)
{
	struct fixture *f = fixture_new();

	fixture_open(f);
	fixture_buffer(f);
	*state = f;
	return 0;
}

int setup_channel(void **state)
{
	struct fixture *f = fixture_new();
	int memory[NREGIONS];

	for (int i = 0; i < NREGIONS; i++)
		memory[i] = f->memory[i].fd;
	peer_start(&f->peer, ROLE_SERVER, memory, NULL);
	f->address = peer_expect(&f->peer, PEER_READY).address;
	fixture_open(f);
	fixture_buffer(f);
	f->ch = connect_channel(f);
	take_keys(f, f->ch, f->keys);
	if (contract_protected)
		protect_channel(f, f->ch);
	*state = f;
	return 0;
}

int setup_server(void **state)
{
	struct fixture *f = fixture_new();

	fixture_open(f);
	for (int i = 0; i < NREGIONS; i++) {
		struct memory *memory = &f->memory[i];

		assert_int_equal(region_register(f->t, memory->fd, memory->rofd, memory->addr,
					 REGION_BYTES, &f->regions[i]),
			0);
	}
	assert_int_equal(transport_listen(f->q, &f->address, &f->l), 0);
	f->address = *listener_address(f->l);
	*state = f;
	return 0;
}

int teardown(void **state)
{
	struct fixture *f = *state;

	channel_delete(f->ch);
	listener_delete(f->l);
	evq_delete(f->q);
	buffer_deregister(f->buffer);
	for (int i = 0; i < NREGIONS; i++)
		region_deregister(f->regions[i]);
	transport_close(f->t);
	if (f->peer.ctl >= 0)
		peer_stop(&f->peer);
	for (int i = 0; i < NREGIONS; i++)
		memory_free(&f->memory[i]);
	if (f->buf)
		munmap(f->buf, BUFFER_BYTES);
	free(f);
	return 0;
}

/* ---- channels -------------------------------------------------------------------------------- */

struct channel *connect_channel(struct fixture *f)
{
	struct channel *ch;

	assert_int_equal(channel_connect(f->q, &f->address, &ch), 0);
	if (contract_messages_only)
		channel_ask_messages_only(ch);
	assert_ptr_equal(expect_event(f->q, EV_OPEN, 0).channel, ch);
	return ch;
}

void take_keys(struct fixture *f, struct channel *ch, struct region_key keys[NREGIONS])
{
	struct event event = expect_event(f->q, EV_RECV, 0);

	assert_ptr_equal(event.channel, ch);
	assert_int_equal(event.len, NREGIONS * sizeof(*keys));
	memcpy(keys, event.data, event.len);
	channel_recv_done(ch, event.data);
	for (uint32_t i = 0; i < NREGIONS; i++)
		assert_int_equal(channel_set_key(ch, i, &keys[i]), 0);
}

void begin_protection(struct channel *ch, uint64_t server_number, uint64_t number)
{
	struct channel_keys keys = contract_keys(number);

	send_ask(ch, (struct ask){.op = ASK_PROTECT, .value = server_number});
	assert_int_equal(channel_protect(ch, PROTECT_IN, &keys), 0);
}

void protect_channel(struct fixture *f, struct channel *ch)
{
	struct channel_keys keys = contract_keys(7);

	begin_protection(ch, 7, 7);
	assert_int_equal(expect_ask(f->q).count, 0);
	assert_int_equal(channel_protect(ch, PROTECT_OUT, &keys), 0);
}

void publish_all(struct channel *ch, struct region *const regions[NREGIONS])
{
	struct region_key keys[NREGIONS];

	for (int i = 0; i < NREGIONS; i++) {
		unsigned access = i == 1 ? REGION_READ : REGION_READ | REGION_WRITE;

		assert_int_equal(channel_publish(ch, regions[i], access, &keys[i]), 0);
	}
	send_message(ch, keys, sizeof(keys), 0, 0);
}

struct channel *accept_channel(struct fixture *f)
{
	struct channel *ch = expect_event(f->q, EV_INCOMING, 0).channel;

	assert_int_equal(channel_accept(ch), 0);
	assert_ptr_equal(expect_event(f->q, EV_OPEN, 0).channel, ch);
	publish_all(ch, f->regions);
	return ch;
}

void fence_delete(struct fixture *f, struct channel *ch)
{
	assert_int_equal(channel_fence(ch), 0);
	assert_ptr_equal(expect_event(f->q, EV_FENCED, 0).channel, ch);
	channel_delete(ch);
}

void send_message(struct channel *ch, const void *data, uint32_t len, unsigned flags, uint32_t imm)
{
	void *buf = channel_send_buffer(ch);

	assert_non_null(buf);
	if (len)
		memcpy(buf, data, len);
	assert_int_equal(channel_send(ch, buf, len, flags, imm), 0);
}

void send_ask(struct channel *ch, struct ask ask)
{
	send_message(ch, &ask, sizeof(ask), 0, 0);
}

struct ask expect_ask(struct evq *q)
{
	struct event event = expect_event(q, EV_RECV, 0);
	struct ask ask;

	assert_true(event.len >= sizeof(ask));
	memcpy(&ask, event.data, sizeof(ask));
	channel_recv_done(event.channel, event.data);
	return ask;
}

struct sge sge_at(const struct fixture *f, uint64_t at, uint32_t len)
{
	return (struct sge){.addr = f->buf + at, .len = len, .buffer = f->buffer};
}

int post_one(struct fixture *f, enum io_dir dir, uint64_t at, uint32_t len, uint32_t region,
	uint64_t offset, void *cookie)
{
	struct sge sge = sge_at(f, at, len);
	struct work work = {.sge = &sge, .nsge = 1, .region = region, .offset = offset};

	return channel_post(f->ch, dir, &work, 1, cookie);
}

void do_one(struct fixture *f, enum io_dir dir, uint64_t at, uint32_t len, uint32_t region,
	uint64_t offset)
{
	assert_int_equal(post_one(f, dir, at, len, region, offset, f), 0);
	assert_ptr_equal(expect_event(f->q, EV_DONE, 0).cookie, f);
}
