/* page.h - the status page: HTML with a style and SVG in it, without scripts. The findings come
 * first, then the rates of the last minutes, exports, mounts, and clients.
 *
 * A pure function of its arguments. The page is well-formed XML.
 */
#ifndef RMEMFS_DAEMON_METRICS_PAGE_H
#define RMEMFS_DAEMON_METRICS_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/metrics/sampler.h"

#define PAGE_TYPE "text/html; charset=utf-8"

/* The Content-Security-Policy: it permits the page's own style, and nothing else. */
extern const char page_policy[];

struct page {
	const char *host;    /* this machine's name */
	int64_t now_ms;      /* now_ms() */
	unsigned interval_s; /* of the samples */
	bool still;          /* it does not ask for itself again */
	bool details;        /* with names of mount points and clients */
	const struct sample *last;
};

void page_write(FILE *out, const struct page *page);

#endif
