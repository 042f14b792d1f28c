/* fence_off.c - see fence_off.h. */
#include "common/transport/fence_off.h"

#ifdef RMEMFS_CRASH_POINTS

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/list.h"

/* Not listed among the variables for users. */
#define VARIABLE "RMEMFS_FENCE"

struct unfenced {
	struct list link;
	struct channel *channel;
	bool told;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list all = {&all, &all};

bool fence_off_takes(struct channel *ch)
{
	const char *text = getenv(VARIABLE);
	struct unfenced *u;

	if (!text || strcmp(text, "off") != 0)
		return false;
	u = calloc(1, sizeof(*u));
	if (!u)
		return false;
	u->channel = ch;
	pthread_mutex_lock(&lock);
	list_add_tail(&all, &u->link);
	pthread_mutex_unlock(&lock);
	return true;
}

int fence_off_poll(const struct evq *q, struct event *events, int max)
{
	int n = 0;

	pthread_mutex_lock(&lock);
	list_for_each (pos, &all) {
		struct unfenced *u = list_entry(pos, struct unfenced, link);

		if (n == max)
			break;
		if (u->told || u->channel->q != q)
			continue;
		u->told = true;
		events[n++] = (struct event){.type = EV_FENCED, .channel = u->channel};
	}
	pthread_mutex_unlock(&lock);
	return n;
}

bool fence_off_keeps(const struct channel *ch)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	list_for_each (pos, &all)
		found |= list_entry(pos, struct unfenced, link)->channel == ch;
	pthread_mutex_unlock(&lock);
	return found;
}

void fence_off_end(const struct evq *q)
{
	pthread_mutex_lock(&lock);
	list_for_each_safe (pos, &all) {
		struct unfenced *u = list_entry(pos, struct unfenced, link);

		if (u->channel->q != q)
			continue;
		list_del(&u->link);
		u->channel->transport->ops->delete (u->channel);
		free(u);
	}
	pthread_mutex_unlock(&lock);
}

#endif
