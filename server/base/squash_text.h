/* squash_text.h - how the configuration, the log and the status name a squash.
 *
 * THREADS    Pure functions.
 */
#ifndef RMEMFS_SERVER_BASE_SQUASH_TEXT_H
#define RMEMFS_SERVER_BASE_SQUASH_TEXT_H

#include "common/base/word.h"
#include "common/rpc/squash.h"

/* "none", "root", "all", with their enum squash_kind. */
extern const struct word squash_text_words[];
/* The word for its kind. */
const char *squash_text_kind(const struct squash *squash);

/* "root counts as 65534:65534", "all users count as 65534:65534"; "" for SQUASH_NONE. Writes to buf
 * and returns it. */
enum { SQUASH_TEXT_BYTES = 48 };
const char *squash_text_note(const struct squash *squash, char buf[SQUASH_TEXT_BYTES]);

#endif
