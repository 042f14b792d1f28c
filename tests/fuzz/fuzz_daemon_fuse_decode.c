/* Any bytes as a message from the kernel. */
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fuse/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct request req;

static void decode_forgets(const void *msg, size_t len)
{
	struct forget forget;
	uint32_t n;

	if (fuse_decode_nforgets(msg, len, &n) != 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		fuse_decode_forget(msg, i, &forget);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuse_in_header *h;
	uint64_t unique;

	if (size < sizeof(*h) || size > FUSE_MESSAGE_BYTES_MAX)
		return 0;
	h = malloc(size);
	memcpy(h, data, size);
	h->len = (uint32_t)size;
	memset(&req, 0, sizeof(req));
	if (h->opcode == FUSE_FORGET || h->opcode == FUSE_BATCH_FORGET)
		decode_forgets(h, size);
	else if (h->opcode == FUSE_INTERRUPT)
		fuse_decode_interrupt(h, size, &unique);
	else if (fuse_decode(h, size, &req) == 0 && !fuse_decode_has_payload(h->opcode))
		fuse_decode_keep(&req, h, size);
	free(h);
	return 0;
}
