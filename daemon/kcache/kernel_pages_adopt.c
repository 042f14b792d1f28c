/* kernel_pages_adopt.c - what the kernel has cached moves along to another daemon: kernel_pages.h. */
#include <errno.h>
#include <string.h>

#include "daemon/file/inode.h"
#include "daemon/kcache/kernel_pages.h"

bool kernel_pages_keep_still_locked(const struct inode *inode)
{
	const struct cached_pages *p = inode->cached->pages;

	return !p || (!p->running && p->behind == CACHED_NOTHING && !p->nends && !p->nsent_back);
}

static bool are_ranges(const struct cached_pages *p)
{
	if (p->nranges > CACHED_RANGES || !p->step)
		return false;
	for (unsigned i = 0; i < p->nranges; i++) {
		struct cached_range r = p->ranges[i];

		if (r.from >= r.to || r.to > (uint64_t)INT64_MAX + 1 ||
			(r.from | r.to) % PAGE_BYTES)
			return false;
	}
	return true;
}

int kernel_pages_adopt_locked(struct inode *inode, const struct cached_pages *kept)
{
	struct cached_pages *p;

	if (!are_ranges(kept))
		return -EINVAL;
	if (!kernel_pages_make_locked(inode))
		return -ENOMEM;
	p = inode->cached->pages;
	memcpy(p->ranges, kept->ranges, sizeof(p->ranges));
	memcpy(p->lookers, kept->lookers, sizeof(p->lookers));
	p->nranges = kept->nranges;
	p->step = kept->step;
	/* One of before did not note it while it was alone. */
	p->mapped = kept->mapped || kept->nranges;
	p->to_raise = kept->to_raise;
	p->endless = kept->endless;
	p->raised = kept->raised;
	p->was_raised = kept->was_raised;
	p->told_before = kept->told_before;
	return 0;
}
