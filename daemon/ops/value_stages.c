#include "daemon/ops/value_stages.h"

#include "common/base/util.h"

/* The lowest bit that was not set, or STAGES_WORD_BITS. */
static unsigned take_bit(_Atomic uint64_t *word)
{
	uint64_t was = atomic_load(word);

	while (~was)
		if (atomic_compare_exchange_weak(word, &was, was | (was + 1)))
			return (unsigned)__builtin_ctzll(~was);
	return STAGES_WORD_BITS;
}

uint32_t value_stages_take(struct value_stages *stages)
{
	for (unsigned i = 0; i < ARRAY_SIZE(stages->taken); i++) {
		unsigned bit = take_bit(&stages->taken[i]);

		if (bit < STAGES_WORD_BITS)
			return i * STAGES_WORD_BITS + bit + 1;
	}
	return 0;
}

void value_stages_give(struct value_stages *stages, uint32_t stage)
{
	unsigned bit = (stage - 1) % STAGES_WORD_BITS;

	atomic_fetch_and(&stages->taken[(stage - 1) / STAGES_WORD_BITS], ~((uint64_t)1 << bit));
}
