/* attach_refusal.c - see attach_refusal.h. */
#include "server/session/attach_refusal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/session/in_the_way.h"
#include "server/session/session.h"

/* Names the mount option that keeps the two apart: one asks for the export alone, or they differ in
 * their use. */
static const char *why_alone(const struct client_request *req, const struct client_session *holder)
{
	uint32_t wanted = req->rpc.attach.flags, had = holder->stored.flags;

	if (had & ATTACH_EXCLUSIVE)
		return ", for itself alone (exclusive, or cache=exclusive); unmount it there";
	if (wanted & ATTACH_EXCLUSIVE)
		return "; exclusive, or cache=exclusive, needs an export that no other mount uses";
	if (wanted & ATTACH_SHARED && holder->not_now_ms)
		return ", has files open for writing that it can't share (Linux before 6.9): close "
		       "them, or mount it with -o share";
	if (wanted & ATTACH_SHARED && holder->convert_ms)
		return "; it is about to share the export";
	if (had & wanted & ATTACH_SHARED)
		return "";
	/* By the server, this client's former one for example; or it is being unmounted. */
	if (holder->ending || holder->said_bye)
		return "";
	if (had & ATTACH_MAY_SHARE && wanted & ATTACH_MAY_SHARE)
		return "; it is about to share the export";
	return "; one of the two can't share it: unmount it there";
}

/* The holder's connection. A client names its process, by which shm knows its peers. */
static void describe_way(const struct client_session *holder, char *text, size_t len)
{
	int64_t left_ms = client_session_expires_in_ms(holder);
	const struct channel *ch;
	char pid[32];

	if (list_empty(&holder->conns) && left_ms > 0) {
		snprintf(text, len, "which has no connection now, and has to make room in %lld s",
			(long long)(left_ms + 999) / 1000);
		return;
	}
	if (list_empty(&holder->conns)) {
		snprintf(text, len, "which has no connection now");
		return;
	}
	ch = list_entry(holder->conns.next, struct conn, link)->channel;
	snprintf(pid, sizeof(pid), "(pid %d)", channel_peer_pid(ch));
	if (strstr(holder->stored.client, pid))
		snprintf(text, len, "over shm");
	else
		snprintf(text, len, "over %s", channel_peer(ch));
}

void attach_refuse_busy(struct client_request *req, const struct client_session *holder, unsigned n)
{
	char others[32] = "", where[160];
	autofree char *text = NULL;

	if (n > 1)
		snprintf(others, sizeof(others), " and %u more", n - 1);
	describe_way(holder, where, sizeof(where));
	if (asprintf(&text, "export '%s' is in use by %s%s %s%s%s", holder->export->name,
		    holder->stored.client, list_empty(&holder->conns) ? "," : "", where, others,
		    why_alone(req, holder)) < 0) {
		text = NULL;
		client_request_refuse(req, -EBUSY, "the export is in use");
		return;
	}
	/* The log has the steps of a conversion, and that it takes long. */
	client_request_deny(req, -EBUSY, holder->convert_ms ? NULL : text, text);
}
