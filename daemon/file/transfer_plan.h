/* transfer_plan.h - from "these bytes of the buffer lie there in the remote memory" to works.
 *
 * The caller walks a file's extents in order and adds one piece after the other, but no holes. A
 * piece is cut into SGEs at the file's page boundaries, every merge_pages pages. It is cut into
 * works at the ends of extents and regions and at the channel's limits. Pieces that adjoin remotely
 * share a work. If they adjoin in the buffer, too, they share an SGE, as far as they may.
 *
 * THREADS    Pure functions on the caller's struct.
 */
#ifndef RMEMFS_DAEMON_FILE_TRANSFER_PLAN_H
#define RMEMFS_DAEMON_FILE_TRANSFER_PLAN_H

#include <stdint.h>

#include "daemon/request/request.h"

struct plan_limits {
	uint32_t max_sge;        /* SGEs in a work */
	uint32_t max_work_bytes; /* a multiple of PAGE_BYTES */
	uint32_t merge_pages;    /* pages that may share an SGE; 1: page-sized SGEs */
};

struct plan {
	struct data_buffer *buf;
	struct plan_limits limits;
	uint32_t nsges, nworks;
	uint32_t work_bytes; /* of the last work */
	uint32_t sge_pages;  /* begun by the last SGE */
};

void transfer_plan_init(
	struct plan *plan, struct data_buffer *buf, const struct plan_limits *limits);

/* Bytes [at, at + len) of the buffer lie at offset in the region. at + len is at most
 * IO_BYTES_MAX; at of each call is behind the last one's bytes. */
void transfer_plan_add(
	struct plan *plan, uint32_t region, uint64_t offset, uint32_t at, uint32_t len);

#endif
