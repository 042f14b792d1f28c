/* sealed.c - see sealed.h. */
#include "common/auth/sealed.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* The tag proves this beside the message. */
struct additional {
	uint32_t len, has_imm, imm; /* little-endian */
};

static struct additional additional_of(uint32_t len, const uint32_t *imm)
{
	return (struct additional){
		.len = htole32(len),
		.has_imm = htole32(imm != NULL),
		.imm = htole32(imm ? *imm : 0),
	};
}

int sealed_out_init(struct sealed_out *s, const struct direction_key *key)
{
	s->next = 0;
	return aead_init(&s->aead, key, AEAD_SEAL);
}

void sealed_out_fini(struct sealed_out *s)
{
	aead_fini(&s->aead);
}

int sealed_seal(struct sealed_out *s, void *message, uint32_t len, const uint32_t *imm)
{
	struct additional additional = additional_of(len, imm);
	uint8_t *end = (uint8_t *)message + len;
	uint64_t counter = htole64(s->next);
	int err;

	aead_begin(&s->aead, s->next, &additional, sizeof(additional));
	aead_update(&s->aead, message, message, len);
	err = aead_seal(&s->aead, end + SEALED_COUNTER_BYTES);
	if (err)
		return err;
	memcpy(end, &counter, sizeof(counter));
	s->next++;
	return 0;
}

int sealed_in_init(struct sealed_in *s, const struct direction_key *key)
{
	s->next = 0;
	s->error = 0;
	return aead_init(&s->aead, key, AEAD_OPEN);
}

void sealed_in_fini(struct sealed_in *s)
{
	aead_fini(&s->aead);
}

/* It is the next one, or one of the last. For a counter that skips the difference is huge. */
static bool may_come(const struct sealed_in *s, uint64_t counter)
{
	return s->next - counter <= SEALED_WINDOW;
}

static int open_message(
	struct sealed_in *s, void *message, uint32_t len, const uint32_t *imm, uint64_t *counter)
{
	struct additional additional = additional_of(len, imm);
	uint8_t *end = (uint8_t *)message + len;

	memcpy(counter, end, sizeof(*counter));
	*counter = le64toh(*counter);
	if (!may_come(s, *counter))
		return -EBADMSG;
	aead_begin(&s->aead, *counter, &additional, sizeof(additional));
	aead_update(&s->aead, message, message, len);
	return aead_open(&s->aead, end + SEALED_COUNTER_BYTES);
}

int sealed_open(
	struct sealed_in *s, void *message, uint32_t len, const uint32_t *imm, uint32_t *plain_len)
{
	uint64_t counter = 0;

	if (s->error)
		return s->error;
	if (len < SEALED_OVERHEAD)
		s->error = -EBADMSG;
	else
		s->error = open_message(s, message, len - SEALED_OVERHEAD, imm, &counter);
	if (s->error)
		return s->error;
	/* A repetition is dropped only now: a forged one would have ended the channel. */
	if (counter < s->next)
		return -EALREADY;
	s->next++;
	*plain_len = len - SEALED_OVERHEAD;
	return 0;
}
