/* log.h - writes one line per event to standard error.
 *
 * Where standard error leads to the journal, a line begins with "<N>", which journald reads as the
 * level. Elsewhere it begins with program, time and the level's name. log_init() finds the journal
 * by JOURNAL_STREAM, which systemd sets; a program can also say so itself (log_set_journal).
 * Callers write no newline. Characters that a line must not show become '?' (printable.h), since
 * peers choose names.
 *
 * THREADS    Any. A line is one write(2).
 */
#ifndef RMEMFS_COMMON_BASE_LOG_H
#define RMEMFS_COMMON_BASE_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/word.h"

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_NOTICE,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};

/* program: the name that lines begin with; the caller keeps the string alive. Before, the level is
 * INFO. */
void log_init(const char *program, enum log_level level);
/* For a command that ends when its work is done. Outside the journal its lines have neither time
 * nor level, since the user waits for the command. */
void log_init_command(const char *program, enum log_level level);
/* Any thread. */
void log_set_level(enum log_level level);
/* Whether standard error leads to the journal from now on; log_init() has found out itself
 * before. */
void log_set_journal(bool journal);
bool log_is_journal(void);
/* "error", "warning", "notice", "info", "debug". */
extern const struct word log_level_words[];
const char *log_level_name(enum log_level level);
bool log_enabled(enum log_level level);

/* The thread that writes a line calls the watcher with the line's text; NULL: no watcher. Any
 * thread may set it. The watcher must not log. */
typedef void log_watcher(enum log_level level, const char *text);
void log_set_watcher(log_watcher *watcher);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An event that an admin may want to find, or to be told of: who got in, or was refused. In the
 * journal its line has these fields beside the text, as RMEMFS_EVENT, RMEMFS_EXPORT and so on;
 * elsewhere it is a line as any other. NULL and 0: the event has no such field. */
struct log_fields {
	const char *event; /* "attach", "resume", "end", "close", "refuse", "reload", "fullness" */
	const char *export;
	const char *holder; /* the name of the client, as the server knows it */
	const char *key;
	const char *peer;
	const char *reason;
	uint64_t session;
};
void log_event(enum log_level level, const struct log_fields *fields, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Tells the user why a program does not start: "PROGRAM: TEXT" without a time, or a line of level
 * error in the journal. Needs no log_init. */
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

/* Rate limit of one call site: one line per interval, and up to burst lines at once after a quiet
 * time. The next line says how many were suppressed. */
struct log_ratelimit {
	unsigned burst;    /* 0 is 1 */
	long long next_ms; /* the next line is due then; a burst comes earlier */
	unsigned suppressed;
};
bool log_ratelimit_ok(struct log_ratelimit *limit, long long interval_ms);

/* For a caller that tries again and again: writes the line if it differs from the last one of this
 * place. Any thread. */
struct log_change {
	pthread_mutex_t lock; /* PTHREAD_MUTEX_INITIALIZER */
	char last[256];
};
void log_if_changed(struct log_change *change, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* It has gone well: the next line is written. */
void log_change_forget(struct log_change *change);

/* The text of an errno given as -errno or errno. Thread-safe, as strerrordesc_np(3). */
const char *errno_text(int error);

#endif
