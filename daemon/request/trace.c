#include "daemon/request/trace.h"

#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "daemon/request/counters.h"

void trace_begin(struct request *req, uint64_t ino)
{
	req->trace.ino = ino;
	req->trace.begun_ns = clock_ns(CLOCK_MONOTONIC);
}

void trace_end(const struct request *req, int error, size_t len)
{
	long long us = (clock_ns(CLOCK_MONOTONIC) - req->trace.begun_ns) / 1000;
	char result[64];

	if (error)
		snprintf(result, sizeof(result), "%s", errno_text(error));
	else
		snprintf(result, sizeof(result), "%zu bytes answered", len);
	log_debug("%s inode %llu offset %llu length %u: %s%s in %lld us", request_op_name(req->op),
		(unsigned long long)req->trace.ino, (unsigned long long)req->args.offset,
		req->args.size, result, req->replied ? ", given up before," : "", us);
}

void trace_slow(const struct request *req, int error, int64_t ns)
{
	long long ms = (long long)(ns / 1000000);

	log_notice("%s of inode %llu, asked by process %u, was answered after %lld.%lld s%s%s",
		request_op_name(req->op), (unsigned long long)req->trace.ino, req->pid, ms / 1000,
		ms % 1000 / 100, error ? ": " : "", error ? errno_text(error) : "");
}
