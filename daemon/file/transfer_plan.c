#include "daemon/file/transfer_plan.h"

#include <assert.h>

#include "common/base/util.h"

void transfer_plan_init(
	struct plan *plan, struct data_buffer *buf, const struct plan_limits *limits)
{
	assert(limits->max_sge && limits->merge_pages && limits->max_work_bytes >= PAGE_BYTES);
	*plan = (struct plan){.buf = buf, .limits = *limits};
}

static struct work *last_work(struct plan *plan)
{
	return plan->nworks ? &plan->buf->works[plan->nworks - 1] : NULL;
}

static struct sge *last_sge(struct plan *plan)
{
	return &plan->buf->sges[plan->nsges - 1];
}

/* Whether the last work ends where the piece begins, and may take len more bytes. */
static bool continues_work(struct plan *plan, uint32_t region, uint64_t offset, uint32_t len)
{
	const struct work *work = last_work(plan);

	return work && work->region == region && work->offset + plan->work_bytes == offset &&
	       len <= plan->limits.max_work_bytes - plan->work_bytes;
}

/* Whether the last SGE ends where the piece begins. A piece that begins within a page goes on with
 * a page that is counted already. */
static bool continues_sge(struct plan *plan, uint64_t offset, const uint8_t *addr)
{
	const struct sge *sge = last_sge(plan);
	bool new_page = offset % PAGE_BYTES == 0;

	return (uint8_t *)sge->addr + sge->len == addr &&
	       plan->sge_pages + new_page <= plan->limits.merge_pages;
}

static void begin_work(struct plan *plan, uint32_t region, uint64_t offset)
{
	assert(plan->nworks < ARRAY_SIZE(plan->buf->works));
	plan->buf->works[plan->nworks++] = (struct work){
		.sge = &plan->buf->sges[plan->nsges],
		.region = region,
		.offset = offset,
	};
	plan->work_bytes = 0;
}

static void begin_sge(struct plan *plan, uint8_t *addr)
{
	assert(plan->nsges < ARRAY_SIZE(plan->buf->sges));
	plan->buf->sges[plan->nsges++] = (struct sge){.addr = addr, .buffer = plan->buf->mem};
	last_work(plan)->nsge++;
	plan->sge_pages = 0;
}

/* A piece of one page at most. */
static void add_page(struct plan *plan, uint32_t region, uint64_t offset, uint32_t at, uint32_t len)
{
	uint8_t *addr = plan->buf->data + at;

	if (!continues_work(plan, region, offset, len)) {
		begin_work(plan, region, offset);
		begin_sge(plan, addr);
	} else if (!continues_sge(plan, offset, addr)) {
		if (last_work(plan)->nsge == plan->limits.max_sge)
			begin_work(plan, region, offset);
		begin_sge(plan, addr);
	}
	if (offset % PAGE_BYTES == 0 || !plan->sge_pages)
		plan->sge_pages++;
	last_sge(plan)->len += len;
	plan->work_bytes += len;
}

void transfer_plan_add(
	struct plan *plan, uint32_t region, uint64_t offset, uint32_t at, uint32_t len)
{
	assert(range_within(at, len, IO_BYTES_MAX));
	while (len) {
		uint32_t in_page = PAGE_BYTES - (uint32_t)(offset % PAGE_BYTES);
		uint32_t piece = len < in_page ? len : in_page;

		add_page(plan, region, offset, at, piece);
		offset += piece;
		at += piece;
		len -= piece;
	}
}
