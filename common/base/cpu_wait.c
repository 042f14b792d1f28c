/* cpu_wait.c - see cpu_wait.h. */
#include "common/base/cpu_wait.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/util.h"

enum { TELL_MS = 60000, TELL_SAMPLES = 3, NS_PER_MS = 1000000, PATH_BYTES = 1024 };

/* ---- files of the kernel --------------------------------------------------------------------- */

/* At most len - 1 bytes; "" if there are none. */
static void read_text(int fd, char *buf, size_t len)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, len - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
}

static void read_file(const char *path, char *buf, size_t len)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

	read_text(fd, buf, len);
}

/* "RUN WAIT SLICES", in ns. */
static bool read_wait(const struct cpu_wait *w, int64_t *ms)
{
	char text[96];
	uint64_t run, wait;

	read_text(w->fd, text, sizeof(text));
	if (sscanf(text, "%" SCNu64 " %" SCNu64, &run, &wait) != 2)
		return false;
	*ms = (int64_t)(wait / NS_PER_MS);
	return true;
}

/* The periods in which this group, or one above it, had used up its quota. */
static uint64_t count_throttled(const char *root, const char *group)
{
	char path[PATH_BYTES], text[1024];
	uint64_t sum = 0;

	for (size_t len = strlen(group);; len--) {
		const char *at;

		if (len && group[len] != '/' && group[len])
			continue;
		snprintf(path, sizeof(path), "%s%.*s/cpu.stat", root, (int)len, group);
		read_file(path, text, sizeof(text));
		at = strstr(text, "nr_throttled ");
		if (at)
			sum += strtoull(at + strlen("nr_throttled "), NULL, 10);
		if (!len)
			return sum;
	}
}

/* Lines of /proc/self/cgroup: "0::/system.slice/x" (version 2), "4:cpu,cpuacct:/x" (version 1). */
static uint64_t read_throttled(void)
{
	char text[4096], *line, *rest = text;
	uint64_t sum = 0;

	read_file("/proc/self/cgroup", text, sizeof(text));
	while ((line = strsep(&rest, "\n"))) {
		char *controllers = strchr(line, ':'), *group;
		char root[64] = "/sys/fs/cgroup";

		group = controllers ? strchr(++controllers, ':') : NULL;
		if (!group)
			continue;
		*group++ = '\0';
		if (*controllers && strncmp(controllers, "cpu", 3) != 0)
			continue;
		if (*controllers)
			snprintf(root, sizeof(root), "/sys/fs/cgroup/%.40s", controllers);
		sum += count_throttled(root, group);
	}
	return sum;
}

/* ---- samples --------------------------------------------------------------------------------- */

void cpu_wait_init(struct cpu_wait *w)
{
	*w = (struct cpu_wait){0};
	w->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void cpu_wait_fini(struct cpu_wait *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

bool cpu_wait_late(struct cpu_wait *w, int64_t late_ms, int64_t now)
{
	w->late_ms = max_i64(w->late_ms, late_ms);
	if (late_ms < CPU_WAIT_PAUSE_MS)
		return false;
	w->npauses++;
	recent_add(&w->pauses, now);
	w->longest_pause_ms = max_i64(w->longest_pause_ms, late_ms);
	return true;
}

/* Counts of two samples tell whether the quota was used up in between. */
static void look_at_quota(struct cpu_wait *w, int64_t now)
{
	struct cpu_wait_view view;
	uint64_t throttled;

	cpu_wait_look(w, now, &view);
	if (!view.starved) {
		w->nstarved = 0;
		return;
	}
	throttled = read_throttled();
	if (w->nstarved++ && throttled > w->throttled)
		w->throttled_at_ms = now;
	w->throttled = throttled;
}

bool cpu_wait_tick(struct cpu_wait *w, int64_t now)
{
	struct cpu_wait_sample *sample = &w->v[w->next];

	if (now < w->next_ms)
		return false;
	*sample = (struct cpu_wait_sample){.at_ms = now, .late_ms = w->late_ms};
	read_wait(w, &sample->wait_ms);
	w->next = (w->next + 1) % CPU_WAIT_SAMPLES;
	w->n = w->n < CPU_WAIT_SAMPLES ? w->n + 1 : w->n;
	w->late_ms = 0;
	w->next_ms = now + CPU_WAIT_SAMPLE_MS;
	look_at_quota(w, now);
	return true;
}

/* ---- looks ----------------------------------------------------------------------------------- */

/* The i-th sample, from the last one back. */
static const struct cpu_wait_sample *sample_back(const struct cpu_wait *w, unsigned i)
{
	return &w->v[(w->next + CPU_WAIT_SAMPLES - 1 - i) % CPU_WAIT_SAMPLES];
}

/* The oldest within the time that a look tells of, or the last one. */
static unsigned first_of_span(const struct cpu_wait *w, int64_t now)
{
	unsigned i = 0;

	while (i + 1 < w->n &&
		now - sample_back(w, i + 1)->at_ms <= CPU_WAIT_SAMPLES * CPU_WAIT_SAMPLE_MS)
		i++;
	return i;
}

void cpu_wait_look(const struct cpu_wait *w, int64_t now, struct cpu_wait_view *view)
{
	const struct cpu_wait_sample *first;
	unsigned i;

	*view = (struct cpu_wait_view){.late_ms = w->late_ms,
		.npauses = w->npauses,
		.recent_pauses = recent_count(&w->pauses, now),
		.longest_pause_ms = w->longest_pause_ms};
	view->known = w->fd >= 0 && read_wait(w, &view->total_wait_ms);
	if (!w->n)
		return;
	i = first_of_span(w, now);
	first = sample_back(w, i);
	view->span_ms = now - first->at_ms;
	for (unsigned k = 0; k < i; k++)
		view->late_ms = max_i64(view->late_ms, sample_back(w, k)->late_ms);
	/* The counts were read a moment after the times. */
	if (view->known)
		view->wait_ms =
			min_i64(view->span_ms, max_i64(0, view->total_wait_ms - first->wait_ms));
	view->throttled = w->throttled_at_ms && now - w->throttled_at_ms <= view->span_ms;
	view->starved = view->late_ms >= CPU_WAIT_PAUSE_MS ||
			(view->span_ms >= CPU_WAIT_LEAST_MS &&
				view->wait_ms * 100 >= view->span_ms * CPU_WAIT_PERCENT);
}

const char *cpu_wait_text(const struct cpu_wait_view *view, char buf[CPU_WAIT_TEXT_BYTES])
{
	int64_t span_ms = max_i64(1, view->span_ms);
	char wait[96] = "", late[96] = "";

	if (view->known)
		snprintf(wait, sizeof(wait),
			"waited %" PRId64 " %% of the last %" PRId64 " s for a CPU",
			view->wait_ms * 100 / span_ms, (span_ms + 500) / 1000);
	if (!view->known || view->late_ms >= CPU_WAIT_PAUSE_MS)
		snprintf(late, sizeof(late), "%sran up to %" PRId64 ".%" PRId64 " s late",
			*wait ? ", and " : "", view->late_ms / 1000, view->late_ms % 1000 / 100);
	snprintf(buf, CPU_WAIT_TEXT_BYTES, "%s%s%s", wait, late,
		view->throttled ? "; its control group is throttled: see CPUQuota=" : "");
	return buf;
}

bool cpu_wait_is_to_be_told(struct cpu_wait *w, int64_t now, struct cpu_wait_view *view)
{
	cpu_wait_look(w, now, view);
	if (w->nstarved < TELL_SAMPLES || now < w->tell_ms)
		return false;
	w->tell_ms = now + TELL_MS;
	return true;
}
