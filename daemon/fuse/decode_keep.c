/* decode_keep.c - what a request keeps of its message. */
#include <assert.h>
#include <linux/fuse.h>
#include <string.h>

#include "daemon/fuse/decode.h"

static const char *moved(const char *name, const void *from, const void *to)
{
	return name ? (const char *)to + (name - (const char *)from) : NULL;
}

void fuse_decode_keep(struct request *req, const void *msg, size_t len)
{
	/* The longest is SYMLINK's, whose strings were measured. */
	static_assert(REQUEST_HEAD_BYTES >= sizeof(struct fuse_in_header) + NAME_BYTES_MAX + 1 +
						    SYMLINK_BYTES_MAX + 1,
		"grow REQUEST_HEAD_BYTES");
	const struct fuse_in_header *h = msg;
	size_t kept = len - (size_t)h->total_extlen * 8;

	if (!req->args.name)
		return;
	assert(kept <= sizeof(req->head));
	memcpy(req->head, msg, kept);
	req->args.name = moved(req->args.name, msg, req->head);
	req->args.name2 = moved(req->args.name2, msg, req->head);
}
