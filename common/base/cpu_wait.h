/* cpu_wait.h - how long a thread waits for a CPU, and how late it does what is due.
 *
 *     cpu_wait_init -> (cpu_wait_late) cpu_wait_tick, each time that the thread's loop goes round
 *     -> cpu_wait_fini
 *
 * A sample a second, while the loop goes round; a look tells of the last 10 s or so. The kernel
 * counts the waits (/proc/thread-self/schedstat). While the thread is starved, each sample also
 * asks whether its control group, or one above it, was kept from running by a quota. The loop pays
 * a comparison a round.
 *
 * THREADS  One thread's. Where the kernel tells nothing, lateness alone is known.
 */
#ifndef RMEMFS_COMMON_BASE_CPU_WAIT_H
#define RMEMFS_COMMON_BASE_CPU_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/recent.h"

enum {
	CPU_WAIT_SAMPLES = 11,
	CPU_WAIT_SAMPLE_MS = 1000,
	/* Starved: it waited for that share of at least so long, or something was as late as a
	 * pause. */
	CPU_WAIT_PERCENT = 30,
	CPU_WAIT_LEAST_MS = 3000,
	CPU_WAIT_PAUSE_MS = 1000,
	CPU_WAIT_TEXT_BYTES = 288,
};

struct cpu_wait_sample {
	int64_t at_ms;
	int64_t wait_ms; /* since the thread began */
	int64_t late_ms; /* the longest since the sample before */
};

struct cpu_wait {
	int fd; /* -1: the kernel does not tell */
	struct cpu_wait_sample v[CPU_WAIT_SAMPLES];
	unsigned n, next;
	int64_t next_ms, late_ms;
	unsigned nstarved;  /* samples, one behind the other, in which it was */
	uint64_t throttled; /* periods, at the last of them */
	int64_t throttled_at_ms;
	uint64_t npauses;
	struct recent pauses;
	int64_t longest_pause_ms;
	int64_t tell_ms; /* not before that there is a line again */
};

/* Of the calling thread, which can't be told apart from others later. */
void cpu_wait_init(struct cpu_wait *w);
void cpu_wait_fini(struct cpu_wait *w);

/* Something was due so long ago. True: it is a pause, and `w` has counted it. */
bool cpu_wait_late(struct cpu_wait *w, int64_t late_ms, int64_t now);
/* True: a second has passed, and there is another sample. */
bool cpu_wait_tick(struct cpu_wait *w, int64_t now);

struct cpu_wait_view {
	bool known;      /* wait_ms and total_wait_ms are */
	int64_t span_ms; /* the time that it tells of */
	int64_t wait_ms; /* of it */
	int64_t late_ms; /* the longest */
	bool throttled;  /* by a quota of a control group */
	bool starved;
	int64_t total_wait_ms; /* of the thread */
	uint64_t npauses;      /* it did not run though something was due */
	uint32_t recent_pauses;
	int64_t longest_pause_ms;
};

void cpu_wait_look(const struct cpu_wait *w, int64_t now, struct cpu_wait_view *view);
/* "waited 98 % of the last 10 s for a CPU; its control group is throttled: see CPUQuota=" */
const char *cpu_wait_text(const struct cpu_wait_view *view, char buf[CPU_WAIT_TEXT_BYTES]);
/* For the log: true once a minute, while the thread is starved and a quota would be known. */
bool cpu_wait_is_to_be_told(struct cpu_wait *w, int64_t now, struct cpu_wait_view *view);

#endif
