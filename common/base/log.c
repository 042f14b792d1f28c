#include "common/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/journal.h"
#include "common/base/printable.h"
#include "common/base/util.h"

/* A longer message is cut: one line is one write, and so never mixed with another thread's. */
enum { LINE_BYTES = 2048 };

const struct word log_level_words[] = {
	{"error", LOG_LEVEL_ERROR},
	{"warning", LOG_LEVEL_WARNING},
	{"notice", LOG_LEVEL_NOTICE},
	{"info", LOG_LEVEL_INFO},
	{"debug", LOG_LEVEL_DEBUG},
	{0},
};

/* log_init() sets these before threads start. journal also changes later, where the stream itself
 * is replaced. */
static struct {
	const char *program;
	enum log_level level;
	bool command;
	bool journal;
	log_watcher *watcher;
} state = {.program = "rmemfs", .level = LOG_LEVEL_INFO};

/* systemd sets JOURNAL_STREAM to "device:inode" of the stream it gave us. A child whose standard
 * error goes elsewhere inherits the variable but not the stream. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	if (!stream || sscanf(stream, "%llu:%llu", &dev, &ino) != 2 ||
		fstat(STDERR_FILENO, &st) < 0)
		return false;
	return st.st_dev == dev && st.st_ino == ino;
}

void log_set_journal(bool journal)
{
	__atomic_store_n(&state.journal, journal, __ATOMIC_RELAXED);
}

bool log_is_journal(void)
{
	return __atomic_load_n(&state.journal, __ATOMIC_RELAXED);
}

void log_set_level(enum log_level level)
{
	__atomic_store_n(&state.level, level, __ATOMIC_RELAXED);
}

void log_set_watcher(log_watcher *watcher)
{
	__atomic_store_n(&state.watcher, watcher, __ATOMIC_RELEASE);
}

static void init(const char *program, enum log_level level, bool command)
{
	state.program = program;
	state.level = level;
	state.command = command;
	log_set_journal(stderr_is_journal());
}

void log_init(const char *program, enum log_level level)
{
	init(program, level, false);
}

void log_init_command(const char *program, enum log_level level)
{
	init(program, level, true);
}

bool log_enabled(enum log_level level)
{
	return level <= __atomic_load_n(&state.level, __ATOMIC_RELAXED);
}

const char *log_level_name(enum log_level level)
{
	for (const struct word *word = log_level_words; word->text; word++)
		if (word->value == (int)level)
			return word->text;
	return "?";
}

static size_t format_prefix(char *buf, size_t len, enum log_level level)
{
	struct timespec now;
	char at[CLOCK_TEXT_BYTES];

	if (__atomic_load_n(&state.journal, __ATOMIC_RELAXED))
		return (size_t)snprintf(buf, len, "<%d>", level);
	if (state.command)
		return (size_t)snprintf(buf, len, "%.64s: ", state.program);
	clock_gettime(CLOCK_REALTIME, &now);
	clock_format(now.tv_sec, (int)(now.tv_nsec / 1000000), at);
	return (size_t)snprintf(
		buf, len, "%.64s %s %s: ", state.program, at, log_level_name(level));
}

static void write_line(const char *line, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDERR_FILENO, line, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		line += n;
		len -= (size_t)n;
	}
}

/* The text begins after `prefix` bytes, and there is room for one byte behind it. */
static void put_out(enum log_level level, const struct log_fields *fields, char *line,
	size_t prefix, size_t len)
{
	log_watcher *watcher = __atomic_load_n(&state.watcher, __ATOMIC_ACQUIRE);

	line[len] = '\0';
	if (watcher)
		watcher(level, line + prefix);
	if (fields && __atomic_load_n(&state.journal, __ATOMIC_RELAXED) &&
		journal_send(state.program, level, line + prefix, fields) == 0)
		return;
	line[len] = '\n';
	write_line(line, len + 1);
}

__attribute__((format(printf, 3, 0))) static void log_text(
	enum log_level level, const struct log_fields *fields, const char *format, va_list args)
{
	int saved_errno = errno;
	char line[LINE_BYTES];
	size_t prefix, len;
	int n;

	if (!log_enabled(level))
		return;
	prefix = format_prefix(line, sizeof(line), level);
	/* The callee's view of errno is the caller's, so that %m works. */
	errno = saved_errno;
	n = vsnprintf(line + prefix, sizeof(line) - prefix, format, args);
	if (n >= 0) {
		len = min_u64(prefix + (size_t)n, sizeof(line) - 1);
		/* Names and texts come from peers: they must not forge lines. */
		len = prefix + printable_clean(line + prefix, len - prefix);
		put_out(level, fields, line, prefix, len);
	}
	errno = saved_errno;
}

void log_line(enum log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_text(level, NULL, format, args);
	va_end(args);
}

void log_event(enum log_level level, const struct log_fields *fields, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_text(level, fields, format, args);
	va_end(args);
}

void log_complaint(const char *program, const char *text)
{
	char line[LINE_BYTES];
	int n = stderr_is_journal()
			? snprintf(line, sizeof(line) - 1, "<%d>%s", LOG_LEVEL_ERROR, text)
			: snprintf(line, sizeof(line) - 1, "%s: %s", program, text);
	size_t len = min_u64((uint64_t)n, sizeof(line) - 2);

	len = printable_clean(line, len);
	line[len] = '\n';
	write_line(line, len + 1);
}

bool log_ratelimit_ok(struct log_ratelimit *limit, long long interval_ms)
{
	long long now = now_ms();
	long long ahead = limit->burst > 1 ? (limit->burst - 1) * interval_ms : 0;
	long long next = __atomic_load_n(&limit->next_ms, __ATOMIC_RELAXED);
	long long then = (now > next ? now : next) + interval_ms;
	unsigned suppressed;

	/* If several threads find the interval over, one of them gets through. */
	if (now < next - ahead || !__atomic_compare_exchange_n(&limit->next_ms, &next, then, false,
					  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&limit->suppressed, 1, __ATOMIC_RELAXED);
		return false;
	}
	suppressed = __atomic_exchange_n(&limit->suppressed, 0, __ATOMIC_RELAXED);
	if (suppressed)
		log_notice("%u line%s like the next %s kept back", suppressed,
			suppressed == 1 ? "" : "s", suppressed == 1 ? "was" : "were");
	return true;
}

void log_if_changed(struct log_change *change, enum log_level level, const char *format, ...)
{
	char text[sizeof(change->last)];
	va_list args;
	bool changed;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pthread_mutex_lock(&change->lock);
	changed = strcmp(text, change->last) != 0;
	memcpy(change->last, text, sizeof(text));
	pthread_mutex_unlock(&change->lock);
	if (changed)
		log_line(level, "%s", text);
}

void log_change_forget(struct log_change *change)
{
	pthread_mutex_lock(&change->lock);
	change->last[0] = '\0';
	pthread_mutex_unlock(&change->lock);
}

const char *errno_text(int error)
{
	const char *text = strerrordesc_np(error < 0 ? -error : error);

	return text ? text : "unknown error";
}
