/* snapshot.c - see snapshot.h. Each question has a connection of its own: the snapshot goes on
 * without us. */
#include "daemon/ctl/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/rpc/rpc.h"
#include "common/base/util.h"
#include "daemon/ctl/client.h"

enum { TIMEOUT_MS = 10000, POLL_MS = 100 };

struct asking {
	const char *where, *export_name;
	char dir[4096];
	bool terminal;
	int64_t began_ms;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static void snapshot_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static int snapshot_ask(
	const struct asking *a, enum rpc_snapshot_command command, struct ctl_snapshot_state *state)
{
	char why[256];
	int err = ctl_ask_snapshot(a->where, TIMEOUT_MS, command, a->export_name,
		command == SNAPSHOT_START ? a->dir : "", state, why, sizeof(why));

	if (err)
		log_error("%s: %s", a->where, why);
	return err;
}

/* The server needs an absolute path. */
static int make_absolute(struct asking *a, const char *dir)
{
	char cwd[2048] = "";

	if (dir[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	return (size_t)snprintf(a->dir, sizeof(a->dir), "%s%s%s", cwd, cwd[0] ? "/" : "", dir) <
			       sizeof(a->dir)
		       ? 0
		       : -ENAMETOOLONG;
}

static double mib(uint64_t pages)
{
	return (double)(pages << PAGE_SHIFT) / (1 << 20);
}

static void show_progress(const struct asking *a, const struct ctl_snapshot_state *state)
{
	double seconds = (double)(now_ms() - a->began_ms) / 1000;

	if (!a->terminal)
		return;
	if (state->state == SNAPSHOT_FREEZING)
		printf("\rwaiting for the clients ...");
	else
		printf("\r%.0f of %.0f MiB, %.0f MiB/s, pause %.1f ms  ", mib(state->done),
			mib(state->total), mib(state->done) / (seconds + .001),
			(double)state->pause_ns / 1e6);
	fflush(stdout);
}

static void show_end(const struct asking *a, const struct ctl_snapshot_state *state)
{
	double seconds = (double)(now_ms() - a->began_ms) / 1000;

	if (a->terminal)
		printf("\n");
	printf("snapshot of '%s' in %s: %.0f MiB in %.1f s (%.0f MiB/s), pause %.3f ms\n",
		a->export_name, a->dir, mib(state->done), seconds,
		mib(state->done) / (seconds + .001), (double)state->pause_ns / 1e6);
}

/* The server tells of an export's last snapshot, which need not be ours any more. */
static bool snapshot_is_ours(const struct asking *a, const struct ctl_snapshot_state *state)
{
	return strncmp(state->text, a->dir, RPC_TEXT_MAX) == 0;
}

static const char *snapshot_reason(const struct ctl_snapshot_state *state)
{
	switch (state->state) {
	case SNAPSHOT_FAILED:
		return state->text;
	case SNAPSHOT_NONE:
		return "the server knows nothing of it";
	default:
		return "another one has taken its place: see the server's log";
	}
}

/* Follows the snapshot until it has ended. Returns the exit status. */
static int follow(const struct asking *a)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
	struct ctl_snapshot_state state;

	for (;;) {
		bool cancel = interrupted;

		if (snapshot_ask(a, cancel ? SNAPSHOT_CANCEL : SNAPSHOT_POLL, &state))
			return EXIT_FAILURE;
		if (state.state == SNAPSHOT_DONE && snapshot_is_ours(a, &state)) {
			show_end(a, &state);
			return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		}
		if (state.state != SNAPSHOT_FREEZING && state.state != SNAPSHOT_COPYING)
			break;
		if (!snapshot_is_ours(a, &state))
			break;
		show_progress(a, &state);
		nanosleep(&pause, NULL);
	}
	if (a->terminal)
		printf("\n");
	log_error("snapshot of '%s' in %s failed: %s", a->export_name, a->dir,
		snapshot_reason(&state));
	return EXIT_FAILURE;
}

int ctl_snapshot(const char *where, const char *export_name, const char *dir)
{
	struct asking a = {.where = where,
		.export_name = export_name,
		.terminal = isatty(STDOUT_FILENO),
		.began_ms = now_ms()};
	struct ctl_snapshot_state state;
	int err = make_absolute(&a, dir);

	if (err) {
		log_error("%s: %s", dir, errno_text(err));
		return EXIT_FAILURE;
	}
	snapshot_catch_signals();
	return snapshot_ask(&a, SNAPSHOT_START, &state) ? EXIT_FAILURE : follow(&a);
}
