/* fullness.c - see fullness.h. */
#include "server/admin/fullness.h"

#include <stdio.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "common/conf/conf.h"
#include "server/session/context.h"

enum { LOOK_MS = 1000, LEAVE_PERCENT = 2 };

static const unsigned levels[] = {95, 90, 80};

/* Something of an export that can become full. */
struct filling {
	const char *what; /* "memory" */
	const char *reason;
	const char *remedy;
	bool is_bytes;
	uint64_t used, total;
};

/* Rounded up. */
static uint64_t part(uint64_t total, unsigned percent)
{
	return total / 100 * percent + (total % 100 * percent + 99) / 100;
}

unsigned fullness_level(unsigned before, uint64_t used, uint64_t total)
{
	if (!total)
		return 0;
	for (unsigned i = 0; i < ARRAY_SIZE(levels); i++) {
		unsigned leave = before >= levels[i] ? LEAVE_PERCENT : 0;

		if (used >= part(total, levels[i] - leave))
			return levels[i];
	}
	return 0;
}

static void amount_format(const struct filling *f, uint64_t amount, char *buf, size_t len)
{
	if (f->is_bytes)
		size_format(amount, buf, len);
	else
		snprintf(buf, len, "%llu", (unsigned long long)amount);
}

/* The lowest level that is not reached. */
static unsigned level_above(unsigned level)
{
	unsigned above = level;

	for (unsigned i = 0; i < ARRAY_SIZE(levels) && levels[i] > level; i++)
		above = levels[i];
	return above;
}

static void fullness_tell(
	const struct export *export, const struct filling *f, unsigned before, unsigned level)
{
	const struct log_fields fields = {
		.event = "fullness", .export = export->name, .reason = f->reason};
	enum log_level severity = level > 80 ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE;
	char used[32], total[32];

	amount_format(f, f->used, used, sizeof(used));
	amount_format(f, f->total, total, sizeof(total));
	if (level > before)
		log_event(severity, &fields, "export '%s': %u %% of its %s are used, %s of %s: %s",
			export->name, level, f->what, used, total, f->remedy);
	else
		log_event(LOG_LEVEL_NOTICE, &fields,
			"export '%s': less than %u %% of its %s are used again, %s of %s",
			export->name, level_above(level), f->what, used, total);
}

static void fullness_judge(const struct export *export, const struct filling *f, unsigned *level)
{
	unsigned before = *level;

	*level = fullness_level(before, f->used, f->total);
	if (*level != before)
		fullness_tell(export, f, before, *level);
}

static void fullness_look(struct server *s, struct export *export)
{
	struct export_levels *told = &export->levels_told;
	struct meta_usage u = {0};
	struct filling f;

	meta_usage(s->meta, export->index, &u);
	f = (struct filling){
		.what = "memory",
		.reason = "memory",
		.remedy = "remove files, or give the export a larger size",
		.is_bytes = true,
		.used = (u.npages - u.free_pages - u.granted_pages - u.dirty_pages) * PAGE_BYTES,
		.total = u.npages * PAGE_BYTES,
	};
	fullness_judge(export, &f, &told->memory);
	f = (struct filling){
		.what = "memory for metadata",
		.reason = "metadata",
		.remedy = "remove files, or raise metadata or metadata_reserve",
		.is_bytes = true,
		.used = u.share_used_bytes,
		.total = u.share_used_bytes + u.share_left_bytes,
	};
	fullness_judge(export, &f, &told->metadata);
	f = (struct filling){
		.what = "inodes",
		.reason = "inodes",
		.remedy = "remove files, or raise inodes",
		.used = u.inodes,
		.total = u.max_inodes == UINT64_MAX ? 0 : u.max_inodes,
	};
	fullness_judge(export, &f, &told->inodes);
}

int64_t fullness_tick(struct server *s, int64_t now)
{
	uint64_t version = meta_version(s->meta);

	if (s->fullness.looked && s->fullness.version == version)
		return -1;
	if (now < s->fullness.next_ms)
		return s->fullness.next_ms;
	for (unsigned i = 0; i < s->exports->n; i++)
		fullness_look(s, s->exports->v[i]);
	s->fullness.looked = true;
	s->fullness.version = version;
	s->fullness.next_ms = now + LOOK_MS;
	return -1;
}
