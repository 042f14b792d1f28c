/* messages.c - see messages.h. */
#include "common/transport/tcp/messages.h"

#include <assert.h>
#include <errno.h>

#include "common/transport/sock/channel.h"

static_assert(SOCK_SEAL_BYTES == (int)SEALED_OVERHEAD, "buffers have room for the seal");

int tcp_messages_begin(struct tcp_messages *m, unsigned directions, const struct direction_key *out,
	const struct direction_key *in)
{
	int err = 0;

	if (directions & PROTECT_OUT) {
		err = sealed_out_init(&m->out, out);
		m->seals_out = !err;
	}
	if (!err && directions & PROTECT_IN) {
		err = sealed_in_init(&m->in, in);
		m->seals_in = !err;
	}
	return err;
}

void tcp_messages_fini(struct tcp_messages *m)
{
	if (m->seals_out)
		sealed_out_fini(&m->out);
	if (m->seals_in)
		sealed_in_fini(&m->in);
	m->seals_out = m->seals_in = false;
}

int tcp_messages_seal(struct tcp_messages *m, void *data, uint32_t *len, const uint32_t *imm)
{
	int err;

	if (!m->seals_out)
		return 0;
	err = sealed_seal(&m->out, data, *len, imm);
	if (!err)
		*len += SEALED_OVERHEAD;
	return err;
}

/* A socket repeats nothing. */
int tcp_messages_open(struct tcp_messages *m, struct event *event, uint32_t max)
{
	int err;

	if (!m->seals_in)
		return event->len > max ? -EPROTO : 0;
	err = sealed_open(&m->in, (void *)event->data, event->len,
		event->has_imm ? &event->imm : NULL, &event->len);
	return err == -EALREADY ? -EBADMSG : err;
}

bool tcp_messages_worn(const struct tcp_messages *m)
{
	return (m->seals_out && sealed_out_worn(&m->out)) ||
	       (m->seals_in && sealed_in_worn(&m->in));
}
