/* memory.c - registered memory, and the keys by which one channel's peer reaches it.
 *
 * A region's registration carries no remote right: any queue pair of the protection domain could
 * use it. A peer gets the key of a type 2 window over the whole region, bound to its channel's
 * queue pair and worthless on any other. On devices without such windows each channel registers the
 * region once more, in a protection domain of its own. */
#include "common/transport/verbs/internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#include "common/conf/conf.h"
#include "common/base/util.h"

static void log_refused(const struct verbs_transport *t, const char *what, uint64_t len, int err)
{
	static struct log_ratelimit peers;
	struct rlimit limit = {0};
	char size[32], memlock[32] = "unlimited";

	if (!log_ratelimit_ok(&peers, VERBS_LOG_MS))
		return;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur != RLIM_INFINITY)
		size_format(limit.rlim_cur, memlock, sizeof(memlock));
	size_format(len, size, sizeof(size));
	log_error("verbs: %s can't register %s for %s: %s; RLIMIT_MEMLOCK is %s: set "
		  "LimitMEMLOCK=infinity or ulimit -l unlimited",
		t->base.device, size, what, errno_text(err), memlock);
}

struct ibv_mr *verbs_mr_new(struct verbs_transport *t, struct ibv_pd *pd, void *addr, uint64_t len,
	int access, const char *what, int *err)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, len, access);

	if (mr)
		return mr;
	*err = errno ? -errno : -ENOMEM;
	if (what)
		log_refused(t, what, len, *err);
	return NULL;
}

int verbs_buffer_register(struct transport *base, void *addr, size_t len, struct buffer **out)
{
	struct verbs_transport *t = verbs_transport(base);
	struct verbs_buffer *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->mr = verbs_mr_new(t, t->pd, addr, len, IBV_ACCESS_LOCAL_WRITE, "I/O buffers", &err);
	if (!b->mr) {
		free(b);
		return err;
	}
	*out = &b->base;
	return 0;
}

void verbs_buffer_deregister(struct buffer *base)
{
	struct verbs_buffer *b = container_of(base, struct verbs_buffer, base);

	ibv_dereg_mr(b->mr);
	free(b);
}

int verbs_region_register(
	struct transport *base, int fd, int rofd, void *addr, uint64_t len, struct region **out)
{
	struct verbs_transport *t = verbs_transport(base);
	struct verbs_region *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	if (t->windows) {
		r->mr = verbs_mr_new(t, t->pd, addr, len,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, NULL, &err);
		if (!r->mr) {
			free(r);
			return err;
		}
	}
	*out = &r->base;
	return 0;
}

void verbs_region_deregister(struct region *base)
{
	struct verbs_region *r = container_of(base, struct verbs_region, base);
	int err = r->mr ? ibv_dereg_mr(r->mr) : 0;

	if (err)
		log_error("verbs: a region of %llu bytes stays registered: %s",
			(unsigned long long)base->len, errno_text(err));
	free(r);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static int remote_access(unsigned access)
{
	return (access & REGION_READ ? IBV_ACCESS_REMOTE_READ : 0) |
	       (access & REGION_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0);
}

static int publish_window(
	struct verbs_channel *ch, struct verbs_grant *grant, unsigned access, uint32_t *rkey)
{
	struct verbs_region *r = container_of(grant->region, struct verbs_region, base);
	static struct log_ratelimit limit;
	struct ibv_mw *mw = ibv_alloc_mw(r->mr->pd, IBV_MW_TYPE_2);
	int err;

	if (!mw) {
		err = errno ? -errno : -ENOMEM;
		if (log_ratelimit_ok(&limit, VERBS_LOG_MS))
			log_error(
				"verbs: %s has no memory window left for %s: %s; it has %d for all "
				"channels and regions: use fewer, larger regions",
				ch->base.transport->device, ch->base.peer, errno_text(err),
				verbs_transport(ch->base.transport)->device.max_mw);
		return err;
	}
	err = verbs_bind_post(ch, mw, r->mr, (uintptr_t)grant->region->addr, grant->region->len,
		(unsigned)remote_access(access));
	if (err) {
		ibv_dealloc_mw(mw);
		return err;
	}
	grant->mw = mw;
	*rkey = mw->rkey;
	return 0;
}

static int publish_mr(
	struct verbs_channel *ch, struct verbs_grant *grant, unsigned access, uint32_t *rkey)
{
	int err;

	grant->mr = verbs_mr_new(verbs_transport(ch->base.transport), ch->pd, grant->region->addr,
		grant->region->len, IBV_ACCESS_LOCAL_WRITE | remote_access(access),
		"a channel's region", &err);
	if (!grant->mr)
		return err;
	*rkey = grant->mr->rkey;
	return 0;
}

int verbs_publish(struct channel *base, struct region *r, unsigned access, struct region_key *key)
{
	struct verbs_channel *ch = verbs_channel(base);
	struct verbs_grant *grant = &ch->grants[ch->ngrants];
	uint32_t rkey = 0;
	int err;

	if (!verbs_channel_up(ch))
		return -ENOTCONN;
	for (uint32_t i = 0; i < ch->ngrants; i++)
		if (ch->grants[i].region == r)
			return -EEXIST;
	if (ch->ngrants == base->transport->config.max_regions)
		return -ENOSPC;
	*grant = (struct verbs_grant){.region = r};
	err = ch->pd ? publish_mr(ch, grant, access, &rkey)
		     : publish_window(ch, grant, access, &rkey);
	if (err)
		return err;
	ch->ngrants++;
	verbs_transport(base->transport)->nkeys++;
	*key = (struct region_key){
		.addr = (uintptr_t)r->addr, .len = r->len, .rkey = rkey, .access = access};
	return 0;
}

uint64_t verbs_keys_left(const struct transport *base)
{
	const struct verbs_transport *t = container_of(base, struct verbs_transport, base);
	int max = t->windows ? t->device.max_mw : t->device.max_mr;

	return max > 0 && (uint64_t)max > t->nkeys ? (uint64_t)max - t->nkeys : 0;
}

int verbs_windows_free(struct verbs_channel *ch)
{
	struct verbs_transport *t = verbs_transport(ch->base.transport);

	for (uint32_t i = 0; i < ch->ngrants; i++) {
		struct verbs_grant *grant = &ch->grants[i];
		int err = grant->mw ? ibv_dealloc_mw(grant->mw) : 0;

		if (err) {
			log_error("%s: a memory window cannot be freed: %s", ch->base.peer,
				errno_text(err));
			return -err;
		}
		t->nkeys -= grant->mw != NULL;
		grant->mw = NULL;
	}
	return 0;
}

void verbs_grants_free(struct verbs_channel *ch)
{
	struct verbs_transport *t = verbs_transport(ch->base.transport);

	for (uint32_t i = 0; i < ch->ngrants; i++)
		if (ch->grants[i].mr) {
			ibv_dereg_mr(ch->grants[i].mr);
			t->nkeys--;
		}
	ch->ngrants = 0;
}
