/* log.h - one line an event, to standard error.
 *
 * Where standard error leads to the journal, lines begin with the "<N>" that journald reads as the
 * level; elsewhere with program, time and the level's name. It does so under systemd, which says so
 * by JOURNAL_STREAM, and where a program has made it so (log_set_journal). Callers write no
 * newline. What a line must not show is made '?' (printable.h), whatever peers have named.
 *
 * THREADS    Any. A line is one write(2).
 */
#ifndef RMEMFS_COMMON_BASE_LOG_H
#define RMEMFS_COMMON_BASE_LOG_H

#include <stdbool.h>

#include "common/base/word.h"

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_NOTICE,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};

/* program: the name that lines begin with; kept. The level is INFO before. */
void log_init(const char *program, enum log_level level);
/* For a command that ends when it has done what it was given: its lines are for who waits for that,
 * and have neither time nor level, but in the journal. */
void log_init_command(const char *program, enum log_level level);
/* Whether standard error leads to the journal from now on, which log_init found out before. */
void log_set_journal(bool journal);
/* "error", "warning", "notice", "info", "debug". */
extern const struct word log_level_words[];
bool log_enabled(enum log_level level);

/* Called with the text of each line that is written from now on, by the thread that writes it;
 * NULL: nobody is. Any thread may set it. It must not log. */
typedef void log_watcher(enum log_level level, const char *text);
void log_set_watcher(log_watcher *watcher);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Why a program does not start, for the one who started it: "PROGRAM: TEXT" without a time, or an
 * error's line in the journal. Needs no log_init. */
void log_complaint(const char *program, const char *text);

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)  log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                          \
	do {                                                    \
		if (log_enabled(LOG_LEVEL_DEBUG))               \
			log_line(LOG_LEVEL_DEBUG, __VA_ARGS__); \
	} while (0)

/* Rate limit: one line per interval from one call site, and up to burst at once after a quiet time;
 * the next one says how many were kept back. */
struct log_ratelimit {
	unsigned burst;    /* 0 is 1 */
	long long next_ms; /* when the next line is on time; a burst is ahead of it */
	unsigned suppressed;
};
bool log_ratelimit_ok(struct log_ratelimit *limit, long long interval_ms);

/* The text of an errno given as -errno or errno. Thread-safe, as strerrordesc_np(3). */
const char *errno_text(int error);

#endif
