/* journal.h - entries of systemd's journal with fields (systemd.journal-fields(7)).
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_COMMON_BASE_JOURNAL_H
#define RMEMFS_COMMON_BASE_JOURNAL_H

#include "common/base/log.h"

/* program: the entry's identifier, for journalctl -t. The text is printable. 0 or -errno; -ENOENT:
 * no journal takes entries. */
int journal_send(const char *program, enum log_level level, const char *text,
	const struct log_fields *fields);

#endif
