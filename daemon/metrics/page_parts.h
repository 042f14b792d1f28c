/* page_parts.h - sections of the status page; page.c puts them together. */
#ifndef RMEMFS_DAEMON_METRICS_PAGE_PARTS_H
#define RMEMFS_DAEMON_METRICS_PAGE_PARTS_H

#include <stdio.h>

#include "daemon/metrics/draw.h"
#include "daemon/metrics/page.h"

/* Of the charts. */
static inline struct draw_time page_time(const struct page *page)
{
	return (struct draw_time){page->now_ms, page->interval_s * INT64_C(1000) * HISTORY_MOMENTS};
}

/* The rates of all mounts, and of all exports. */
void page_charts(FILE *out, const struct page *page);
/* Of a server that has answered: its exports, and all mounts of them, wherever they are. */
void page_exports(FILE *out, const struct page *page);
void page_clients(FILE *out, const struct page *page);
/* This machine's mounts. There is at least one. */
void page_mounts(FILE *out, const struct page *page);

/* The text of the style; page_policy has its hash. */
extern const char page_style[];

#endif
