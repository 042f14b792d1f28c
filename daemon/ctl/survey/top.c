#include "daemon/ctl/survey/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/base/util.h"
#include "common/conf/conf.h"
#include "common/transport/address.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/mount_ask.h"
#include "daemon/ctl/print_mount.h"
#include "daemon/ctl/survey/top_rates.h"

enum { MOUNT_MS = 1000, SERVER_MS = 3000, INTERVAL_MS = 1000 };

/* ---- samples --------------------------------------------------------------------------------- */

struct sample {
	int64_t at_ms;
	json_t *mounts;
	json_t *server; /* NULL: none is here, or it has not answered */
	char why[256];  /* it has not answered; "": none is here */
};

static json_t *ask_server(char *why, size_t whylen)
{
	autofree char *text = NULL;
	int64_t round_trip_ns;
	struct stat st;

	*why = '\0';
	if (stat(RMEMFS_DEFAULT_SOCKET, &st) != 0 ||
		ctl_fetch_status(
			RMEMFS_DEFAULT_SOCKET, NULL, SERVER_MS, &text, &round_trip_ns, why, whylen))
		return NULL;
	return ctl_json_read(text);
}

/* False: the reason is logged. */
static bool take(struct sample *s)
{
	int err;

	s->at_ms = now_ms();
	err = ctl_list_own_mounts(MOUNT_MS, &s->mounts);
	if (err) {
		log_error("the mounts can't be listed: /proc/self/mountinfo: %s", errno_text(err));
		return false;
	}
	s->server = ask_server(s->why, sizeof(s->why));
	ctl_json_clean(s->mounts);
	if (s->server)
		ctl_json_clean(s->server);
	return true;
}

static void drop(struct sample *s)
{
	json_decref(s->mounts);
	json_decref(s->server);
	*s = (struct sample){0};
}

static json_t *compare(const struct sample *before, const struct sample *now)
{
	int64_t ms = now->at_ms - before->at_ms;

	return json_pack("{s:s, s:I, s:o, s:o}", "version", RMEMFS_VERSION, "interval_ms",
		(json_int_t)ms, "mounts", top_rates_mounts(before->mounts, now->mounts, ms),
		"sessions",
		now->server ? top_rates_sessions(before->server, now->server, ms) : json_null());
}

/* ---- for people ------------------------------------------------------------------------------ */

enum { CELL_CHARS = 64, NAME_BYTES = 1024, NAME_CHARS_LEAST = 12, CUT_CHARS = 2 };

struct screen {
	bool terminal;
	int columns, rows; /* rows that are left */
};

static struct screen look_at_screen(void)
{
	struct screen s = {isatty(STDOUT_FILENO), 80, 1000000};
	struct winsize size;

	if (s.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col) {
		s.columns = size.ws_col;
		s.rows = size.ws_row - 1;
	}
	return s;
}

static const char *count_text(const json_t *object, const char *key, char buf[CELL_CHARS])
{
	if (json_is_null(json_object_get(object, key)))
		return "-";
	snprintf(buf, CELL_CHARS, "%" PRIu64, ctl_json_number(object, key));
	return buf;
}

static const char *bytes_text(const json_t *object, const char *key, char buf[CELL_CHARS])
{
	if (!ctl_json_number(object, key))
		return "-";
	size_format(ctl_json_number(object, key), buf, CELL_CHARS);
	return buf;
}

/* A member in units of that many ns. */
static const char *time_text(
	const json_t *object, const char *key, uint64_t unit, char buf[CTL_TIME_CHARS])
{
	uint64_t n = ctl_json_number(object, key);

	return n ? ctl_time_text(n * unit, buf) : "-";
}

/* The last characters of a name, by which mounts differ. */
static const char *name_text(const json_t *object, const char *key, int width, char buf[NAME_BYTES])
{
	const char *text = ctl_json_text(object, key);
	size_t len = strlen(text), room = (size_t)min_u64(NAME_BYTES - 1, (uint64_t)width);
	const char *at = len > room ? text + len - room + CUT_CHARS : text;

	/* Not within a character. */
	while ((*at & 0xc0) == 0x80)
		at++;
	printable_copy(buf, NAME_BYTES, at, strlen(at));
	if (at == text)
		return buf;
	memmove(buf + CUT_CHARS, buf, strlen(buf) + 1);
	memcpy(buf, "..", CUT_CHARS);
	return buf;
}

/* Of the column of names, beside others that have so many characters. A file has room for all. */
static int width_beside(const struct screen *s, int others, const json_t *list, const char *key)
{
	size_t longest = 0, i;
	const json_t *row;

	if (s->terminal)
		return (int)max_i64(s->columns - others, NAME_CHARS_LEAST);
	json_array_foreach(list, i, row) longest =
		max_u64(longest, strlen(ctl_json_text(row, key)));
	return (int)min_u64(NAME_BYTES - 8, max_u64(longest, NAME_CHARS_LEAST));
}

static void put_mount(const json_t *mount, int width)
{
	char name[NAME_BYTES], ops[CELL_CHARS], in[CELL_CHARS], out[CELL_CHARS];
	char oldest[CTL_TIME_CHARS], p50[CTL_TIME_CHARS], p99[CTL_TIME_CHARS];
	const char *state = ctl_json_text(mount, "state");

	printf("%-*s %-12s %8s %8s %8s %8s %8s %8s\n", width,
		name_text(mount, "mountpoint", width, name), *state ? state : "no answer",
		time_text(mount, "oldest_request_ms", 1000000, oldest),
		count_text(mount, "operations", ops), bytes_text(mount, "read_bytes", in),
		bytes_text(mount, "write_bytes", out), time_text(mount, "p50_ns", 1, p50),
		time_text(mount, "p99_ns", 1, p99));
}

static void put_session(const json_t *session, int width)
{
	char id[CELL_CHARS], name[NAME_BYTES], reads[CELL_CHARS], writes[CELL_CHARS];
	char in[CELL_CHARS], out[CELL_CHARS], rpcs[CELL_CHARS], silent[CTL_TIME_CHARS];

	printf("%7s %-*s %8s %8s %8s %8s %8s %8s\n", count_text(session, "id", id), width,
		name_text(session, "client", width, name), count_text(session, "reads", reads),
		count_text(session, "writes", writes), bytes_text(session, "read_bytes", in),
		bytes_text(session, "write_bytes", out), count_text(session, "rpcs", rpcs),
		time_text(session, "silent_ms", 1000000, silent));
}

static uint64_t work_of(const json_t *object)
{
	return ctl_json_number(object, "operations") + ctl_json_number(object, "reads") +
	       ctl_json_number(object, "writes") + ctl_json_number(object, "rpcs");
}

static int more_work(const void *a, const void *b)
{
	uint64_t x = work_of(*(json_t *const *)a), y = work_of(*(json_t *const *)b);

	return (x < y) - (x > y);
}

/* The busiest first, as many as there are rows. */
static void put_rows(
	const json_t *list, int width, struct screen *s, void (*put)(const json_t *row, int width))
{
	size_t n = json_array_size(list), i;
	autofree const json_t **rows = calloc(n + 1, sizeof(*rows));
	const json_t *row;

	if (!rows)
		return;
	json_array_foreach(list, i, row) rows[i] = row;
	qsort(rows, n, sizeof(*rows), more_work);
	for (i = 0; i < n && s->rows > 1; i++, s->rows--)
		put(rows[i], width);
	if (i < n) {
		printf("and %zu more\n", n - i);
		s->rows--;
	}
}

static void put_text(const json_t *rates, const char *why)
{
	struct screen s = look_at_screen();
	const json_t *mounts = json_object_get(rates, "mounts");
	const json_t *sessions = json_object_get(rates, "sessions");
	int width = width_beside(&s, 68, mounts, "mountpoint");

	printf("%-*s %-12s %8s %8s %8s %8s %8s %8s\n", width, "mount", "state", "oldest", "ops/s",
		"read/s", "write/s", "p50", "p99");
	s.rows -= 3;
	put_rows(mounts, width, &s, put_mount);
	if (*why)
		printf("\nthe server: %s\n", why);
	if (!json_is_array(sessions))
		return;
	width = width_beside(&s, 63, sessions, "client");
	printf("\n%7s %-*s %8s %8s %8s %8s %8s %8s\n", "session", width, "client", "READs/s",
		"WRITEs/s", "read/s", "write/s", "RPCs/s", "silent");
	put_rows(sessions, width, &s, put_session);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* False: nothing more can be printed. */
static bool put(const struct sample *before, const struct sample *now, bool once, bool json)
{
	json_t *rates = compare(before, now);
	bool printed = true;

	if (json) {
		printed = rates && ctl_json_print(rates) == 0;
	} else {
		/* The cursor goes to the top, and the rest of the screen becomes empty. */
		if (!once)
			printf("\033[H\033[J");
		put_text(rates, now->why);
	}
	json_decref(rates);
	return fflush(stdout) == 0 && printed;
}

static void wait_until(int64_t at_ms)
{
	int64_t ms = max_i64(at_ms - now_ms(), 0);
	struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

int top_run(bool once, bool json)
{
	struct sample before = {0}, now = {0};
	bool goes_on = take(&before);

	once = once || !isatty(STDOUT_FILENO);
	while (goes_on) {
		wait_until(before.at_ms + INTERVAL_MS);
		goes_on = take(&now) && put(&before, &now, once, json);
		drop(&before);
		before = now;
		now = (struct sample){0};
		if (once)
			break;
	}
	drop(&before);
	return goes_on ? EXIT_SUCCESS : EXIT_FAILURE;
}
