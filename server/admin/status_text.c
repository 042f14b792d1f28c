/* status_text.c - see status_text.h. */
#include "server/admin/status_text.h"

#include <errno.h>

#include "common/base/util.h"
#include "server/session/conn.h"

json_t *status_text_string(const char *text)
{
	json_t *string = json_string(text);
	autofree char *ascii = string ? NULL : strdup(text);

	for (char *c = ascii; c && *c; c++)
		if (*c & 0x80)
			*c = '?';
	return ascii ? json_string(ascii) : string;
}

int status_text_take(struct conn *c, json_t *root)
{
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	if (!text)
		return -ENOMEM;
	free(c->status_text);
	c->status_text = text;
	c->status_len = (uint32_t)strlen(text);
	return 0;
}

void status_text_put(struct client_request *req, uint32_t offset)
{
	struct conn *c = req->conn;
	uint64_t room = RPC_MSG_BYTES - rpc_reply_tail_at(req->rpc.op, channel_version(c->channel));
	struct rpc_reply rep = {0};

	if (offset > c->status_len) {
		client_request_refuse(
			req, -EINVAL, "the text has only %u bytes now: ask again", c->status_len);
		return;
	}
	rep.status_text.total = c->status_len;
	rep.status_text.tail.data = (const uint8_t *)c->status_text + offset;
	rep.status_text.tail.len = (uint32_t)min_u64(room, c->status_len - offset);
	client_request_answer(req, &rep);
}
