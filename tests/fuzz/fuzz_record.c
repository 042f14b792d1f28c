/* fuzz_record.c - any bytes as a script of a hostile network between peers that share a key: it makes,
 * changes, doubles and loses records or sealed messages, and delivers them in pieces. The receiver
 * gives what the sender sealed, in its order and from the beginning, and after an error nothing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/record.h"
#include "common/auth/sealed.h"
#include "common/base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum {
	STREAM_MAX = 1 << 18,
	MESSAGES_MAX = 512,
	MESSAGE_BYTES = 40,
};

static const struct direction_key key = {.key = {1, 2, 3}, .iv = {4, 5, 6}};

static void demand(bool truth)
{
	if (!truth)
		abort();
}

struct script {
	const uint8_t *pos, *end;
};

static unsigned next_byte(struct script *s)
{
	return s->pos < s->end ? *s->pos++ : 0;
}

static unsigned next_u16(struct script *s)
{
	unsigned high = next_byte(s);

	return high << 8 | next_byte(s);
}

/* ---- records --------------------------------------------------------------------------------- */

static uint8_t stream[STREAM_MAX], plain[STREAM_MAX], opened[STREAM_MAX], buffer[50000];

struct wire {
	struct record_out out;
	struct record_in in;
	size_t len, fed, last; /* of the stream; last: where its last record begins */
	size_t sealed, got;    /* bytes of plain */
	int error;
};

static bool has_room(const struct wire *w)
{
	return max_u64(w->len, w->sealed) + 5 * RECORD_BYTES_MAX < STREAM_MAX;
}

static void seal(struct wire *w, struct script *s)
{
	struct iovec iov = {.iov_base = plain + w->sealed, .iov_len = next_u16(s)};
	size_t taken;
	ssize_t n =
		record_out_seal(&w->out, &iov, 1, stream + w->len, sizeof(stream) - w->len, &taken);

	demand(n >= 0 && taken == iov.iov_len);
	w->last = w->len;
	w->len += (size_t)n;
	w->sealed += taken;
}

/* A record with padding or of another type, sealed by a peer that has the key. */
static void forge(struct wire *w, struct script *s)
{
	size_t content = next_u16(s) % 20000, padding = next_u16(s) % 200, inner;
	unsigned type = next_byte(s) % 4 ? 23 : next_byte(s);
	uint8_t *record = stream + w->len, *body = record + RECORD_HEADER_BYTES;

	if (!type)
		content = 0; /* its last byte would be the type */
	inner = content + 1 + padding;
	memcpy(body, plain + w->sealed, content);
	body[content] = (uint8_t)type;
	memset(body + content + 1, 0, padding);
	record[0] = 23;
	record[1] = record[2] = 3;
	record[3] = (uint8_t)((inner + AEAD_TAG_BYTES) >> 8);
	record[4] = (uint8_t)(inner + AEAD_TAG_BYTES);
	aead_begin(&w->out.aead, w->out.records++, record, RECORD_HEADER_BYTES);
	aead_update(&w->out.aead, body, body, inner);
	demand(aead_seal(&w->out.aead, body + inner) == 0);
	w->last = w->len;
	w->len += RECORD_HEADER_BYTES + inner + AEAD_TAG_BYTES;
	if (type == 23)
		w->sealed += content;
}

static void raw(struct wire *w, struct script *s)
{
	size_t n = min_u64(next_byte(s), (uint64_t)(s->end - s->pos));

	memcpy(stream + w->len, s->pos, n);
	s->pos += n;
	w->len += n;
}

static void flip(struct wire *w, struct script *s)
{
	size_t at = w->fed + next_u16(s);

	if (at < w->len)
		stream[at] ^= (uint8_t)(1 << next_byte(s) % 8);
}

static void repeat(struct wire *w)
{
	size_t n = min_u64(w->len - w->last, RECORD_BYTES_MAX);

	memcpy(stream + w->len, stream + w->last, n);
	w->last = w->len;
	w->len += n;
}

static void lose(struct wire *w)
{
	if (w->fed <= w->last)
		w->len = w->last;
}

static void feed(struct wire *w, size_t want)
{
	size_t room;
	void *space = record_in_space(&w->in, &room);

	demand(room || record_in_ready(&w->in));
	want = min_u64(want, min_u64(room, w->len - w->fed));
	memcpy(space, stream + w->fed, want);
	record_in_fed(&w->in, want);
	w->fed += want;
}

static void take(struct wire *w, size_t room, size_t first, enum record_memory memory)
{
	struct iovec iov[3] = {
		{.iov_base = opened, .iov_len = min_u64(first, room)}, {.iov_base = opened}};
	ssize_t n;

	iov[2].iov_base = opened + iov[0].iov_len;
	iov[2].iov_len = room - iov[0].iov_len;
	n = record_in_take(&w->in, iov, 3, memory);
	demand(n <= (ssize_t)room && (!w->error || n == w->error));
	if (n < 0) {
		demand(n == -EBADMSG || n == -EPROTO);
		w->error = (int)n;
	} else if ((size_t)n < room) {
		demand(!record_in_ready(&w->in) || w->in.error);
	}
	if (n > 0) {
		demand(w->got + (size_t)n <= w->sealed);
		demand(memcmp(opened, plain + w->got, (size_t)n) == 0);
		w->got += (size_t)n;
	}
}

static void record_step(struct wire *w, struct script *s)
{
	unsigned op = next_byte(s);

	if (op % 8 < 5 && !has_room(w))
		return;
	switch (op % 8) {
	case 0:
		seal(w, s);
		break;
	case 1:
		forge(w, s);
		break;
	case 2:
		repeat(w);
		break;
	case 3:
		raw(w, s);
		break;
	case 4:
		if (op & 0x80)
			lose(w);
		else
			flip(w, s);
		break;
	case 5:
		feed(w, next_u16(s));
		break;
	case 6:
		feed(w, next_byte(s));
		break;
	default:
		take(w, next_u16(s), next_u16(s), op & 0x80 ? RECORD_PRIVATE : RECORD_SHARED);
	}
}

static void try_records(struct script *s)
{
	struct wire w = {0};

	demand(record_out_init(&w.out, &key) == 0);
	demand(record_in_init(&w.in, &key, buffer, RECORD_BYTES_MAX + next_u16(s) % 30000) == 0);
	while (s->pos < s->end)
		record_step(&w, s);
	for (size_t before = SIZE_MAX; before != w.fed; take(&w, 60000, 0, RECORD_PRIVATE)) {
		before = w.fed;
		feed(&w, STREAM_MAX);
	}
	record_out_fini(&w.out);
	record_in_fini(&w.in);
}

/* ---- sealed messages ------------------------------------------------------------------------- */

struct message {
	uint8_t bytes[MESSAGE_BYTES + SEALED_OVERHEAD];
	uint32_t len, imm;
	bool has_imm;
};

static struct message messages[MESSAGES_MAX];

struct post {
	struct sealed_out out;
	struct sealed_in in;
	uint64_t opened;
	int error;
};

static void seal_message(struct post *p, struct script *s)
{
	struct message *m = &messages[p->out.next];

	m->len = next_byte(s) % (MESSAGE_BYTES + 1);
	m->imm = next_byte(s);
	m->has_imm = m->imm % 2;
	memset(m->bytes, (int)p->out.next, m->len);
	demand(sealed_seal(&p->out, m->bytes, m->len, m->has_imm ? &m->imm : NULL) == 0);
}

/* How an honest copy of message i must end. */
static int expected(const struct post *p, uint64_t i)
{
	if (p->error)
		return p->error;
	if (i == p->opened)
		return 0;
	return i < p->opened && p->opened - i <= SEALED_WINDOW ? -EALREADY : -EBADMSG;
}

static void deliver(struct post *p, struct script *s, uint64_t i, bool change)
{
	struct message m = messages[i];
	uint32_t len = m.len + SEALED_OVERHEAD, plain_len;
	int want = expected(p, i), err;

	if (change) {
		m.bytes[next_byte(s) % len] ^= (uint8_t)(1 << next_byte(s) % 8);
		want = p->error ? p->error : -EBADMSG;
	}
	err = sealed_open(&p->in, m.bytes, len, m.has_imm ? &m.imm : NULL, &plain_len);
	demand(err == want);
	if (err) {
		p->error = err == -EALREADY ? p->error : err;
		return;
	}
	demand(plain_len == m.len);
	for (uint32_t at = 0; at < plain_len; at++)
		demand(m.bytes[at] == (uint8_t)i);
	p->opened++;
}

static void deliver_raw(struct post *p, struct script *s)
{
	uint8_t bytes[256];
	uint32_t len = (uint32_t)min_u64(next_byte(s), (uint64_t)(s->end - s->pos)), plain_len;
	int err;

	memcpy(bytes, s->pos, len);
	s->pos += len;
	err = sealed_open(&p->in, bytes, len, NULL, &plain_len);
	demand(err == -EBADMSG);
	p->error = err;
}

static void try_messages(struct script *s)
{
	struct post p = {0};

	demand(sealed_out_init(&p.out, &key) == 0 && sealed_in_init(&p.in, &key) == 0);
	while (s->pos < s->end) {
		unsigned op = next_byte(s);

		if (op % 8 < 3 && p.out.next < MESSAGES_MAX)
			seal_message(&p, s);
		else if (op % 8 < 6 && p.opened < p.out.next)
			deliver(&p, s, p.opened, op > 0xf8);
		else if (op % 8 == 6 && p.out.next)
			deliver(&p, s, next_u16(s) % p.out.next, op & 0x80);
		else if (op == 0x77)
			deliver_raw(&p, s);
	}
	sealed_out_fini(&p.out);
	sealed_in_fini(&p.in);
}

static void fill_plain(void)
{
	static bool full;

	for (size_t i = 0; i < sizeof(plain) && !full; i++)
		plain[i] = (uint8_t)(i * 2654435761U >> 24);
	full = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct script s = {.pos = data, .end = data + len};

	fill_plain();
	if (next_byte(&s) % 2)
		try_records(&s);
	else
		try_messages(&s);
	return 0;
}
