#include "daemon/remote/remote_view.h"

#include <stdio.h>

#include "daemon/remote/remote_private.h"

void remote_look(const struct io_thread *thread, struct remote_view *view)
{
	const struct remote *r = thread->remote;

	*view = (struct remote_view){
		.connected = remote_connected(thread),
		.silent_ms = r->mute_ms,
		.works = (uint64_t)r->io[IO_READ].nworks + r->io[IO_WRITE].nworks,
	};
	for (unsigned i = 0; i < r->nslots; i++)
		view->rpcs += r->slots[i].call && r->slots[i].left;
}

void session_look(struct session *s, struct session_view *view)
{
	*view = (struct session_view){
		.id = atomic_load(&s->id),
		.lost = session_lost(s),
		.read_only = session_is_read_only(s),
		.squashed = session_squash(s).kind != SQUASH_NONE,
	};
	pthread_mutex_lock(&s->lock);
	view->nlosses = s->nlosses;
	view->down_ms = s->ndown ? s->down_ms : 0;
	snprintf(view->why, sizeof(view->why), "%s", s->down_why);
	snprintf(view->again_why, sizeof(view->again_why), "%s", s->again_why);
	snprintf(view->no_verbs, sizeof(view->no_verbs), "%s", s->no_verbs);
	pthread_mutex_unlock(&s->lock);
}
