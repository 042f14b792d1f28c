/* sampler.h - looks at mounts and server again and again, in a thread of its own, and keeps what the
 * status page shows: the last answers, what is wrong with them, and the rates of the last minutes.
 *
 * So a peer that asks for the page costs the daemons nothing, and waits for nobody.
 *
 * THREADS    The sampler's thread asks and writes. Any thread may look.
 */
#ifndef RMEMFS_DAEMON_METRICS_SAMPLER_H
#define RMEMFS_DAEMON_METRICS_SAMPLER_H

#include <stdbool.h>

#include "daemon/ctl/survey/health_findings.h"
#include "daemon/metrics/history.h"
#include "daemon/metrics/observe.h"

enum { SAMPLER_S = 5, SAMPLER_MAX_S = 60 };

/* The tracks of all mounts together, and of all exports. */
#define SAMPLER_MOUNTS  "mounts"
#define SAMPLER_EXPORTS "exports"

/* The last look. Without details no text in it names a place or a person (nameless.h). */
struct sample {
	int64_t at_ms;  /* now_ms(); 0: there was none yet */
	int64_t at_s;   /* since 1970 */
	json_t *mounts; /* ctl_list_own_mounts()' list, printable */
	json_t *server; /* its status, printable; NULL: it has not answered, or there is none */
	bool server_there;
	struct health_findings *findings; /* sorted */
	struct history *history;
};

struct sampler;

/* Starts the thread. The observer outlives it. NULL: no memory, or no thread. */
struct sampler *sampler_start(struct observer *observer, unsigned interval_s, bool details);
/* False: the thread still waits for a daemon. Then the program must end at once, by _exit(2). */
bool sampler_stop(struct sampler *s);

/* Calls use() with the last look, which lives until it returns. */
void sampler_look(struct sampler *s, void (*use)(const struct sample *last, void *arg), void *arg);

/* Writes the name of the track of a mount, or of an export, to name, and returns it. */
const char *sampler_mount_track(const json_t *mount, char name[HISTORY_NAME_BYTES]);
const char *sampler_export_track(const json_t *export, char name[HISTORY_NAME_BYTES]);

#endif
