/* decode_forget.c - messages that become no request: FORGET, BATCH_FORGET and INTERRUPT. */
#include <errno.h>
#include <linux/fuse.h>

#include "daemon/fuse/decode.h"

int fuse_decode_nforgets(const void *msg, size_t len, uint32_t *n)
{
	const struct fuse_in_header *h = msg;
	const struct fuse_batch_forget_in *batch = (const void *)(h + 1);
	size_t left = len - sizeof(*h);

	if (h->opcode == FUSE_FORGET) {
		if (left != sizeof(struct fuse_forget_in))
			return -EIO;
		*n = 1;
		return 0;
	}
	if (left < sizeof(*batch) ||
		left - sizeof(*batch) != (uint64_t)batch->count * sizeof(struct fuse_forget_one))
		return -EIO;
	*n = batch->count;
	return 0;
}

void fuse_decode_forget(const void *msg, uint32_t index, struct forget *forget)
{
	const struct fuse_in_header *h = msg;
	const struct fuse_batch_forget_in *batch = (const void *)(h + 1);
	const struct fuse_forget_one *one = (const void *)(batch + 1);

	if (h->opcode == FUSE_FORGET) {
		const struct fuse_forget_in *in = (const void *)(h + 1);

		*forget = (struct forget){h->nodeid, in->nlookup};
		return;
	}
	*forget = (struct forget){one[index].nodeid, one[index].nlookup};
}

int fuse_decode_interrupt(const void *msg, size_t len, uint64_t *unique)
{
	const struct fuse_in_header *h = msg;
	const struct fuse_interrupt_in *in = (const void *)(h + 1);

	if (len != sizeof(*h) + sizeof(*in))
		return -EIO;
	*unique = in->unique;
	return 0;
}
