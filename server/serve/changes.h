/* changes.h - what a reload has changed. Each change is a line of the log, and those that asked for
 * the reload get all of these lines as the answer:
 *
 *     {"changes":[{"export":"b","text":"export 'b' is added, with 64MiB"}],"unlisted":0}
 *
 * The answer is one message. It leaves out what has no room, and tells how many these are.
 *
 * OWNERSHIP  Zeros are no changes; changes_fini() frees them, and makes zeros.
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SERVE_CHANGES_H
#define RMEMFS_SERVER_SERVE_CHANGES_H

#include <jansson.h>
#include <stddef.h>

struct changes {
	json_t *list; /* NULL: empty */
	size_t bytes; /* of its text, about */
	unsigned unlisted;
};

/* export NULL: it is of none. */
void changes_tell(struct changes *c, const char *export, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The text of the answer, which the caller frees. NULL: out of memory. */
char *changes_text(const struct changes *c);
void changes_fini(struct changes *c);

#endif
