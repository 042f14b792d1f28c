#include "daemon/ctl/doctor/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/ctl/doctor/mounts_probe.h"

enum { SETTLE_US = 500000, WAITING_CHARS = 48 };

/* ---- which daemon ---------------------------------------------------------------------------- */

/* How well a daemon fits a mount; 0: it serves another one. The kernel gives the number of a
 * connection to the next one as soon as the mount is gone, while its daemon still ends. So of two
 * daemons with one number the one whose command line and namespace fit is the present one. */
static unsigned fits(const struct mounts_daemon *daemon, const struct mounts_place *place)
{
	bool by_dir = strcmp(daemon->dir, place->dir) == 0;

	if (daemon->connection < 0 ? !by_dir : (unsigned)daemon->connection != place->connection)
		return 0;
	return 1 + 2 * by_dir + (daemon->namespace == place->namespace);
}

static const struct mounts_daemon *daemon_of(
	const struct mounts_seen *seen, const struct mounts_place *place)
{
	const struct mounts_daemon *best = NULL;
	unsigned fit = 0;

	for (unsigned i = 0; i < seen->ndaemons; i++) {
		unsigned now = fits(&seen->daemons[i], place);

		if (now <= fit)
			continue;
		fit = now;
		best = &seen->daemons[i];
	}
	return best;
}

/* A daemon of which neither the connection nor the mount point is known may be any mount's. */
static bool some_are_unknown(const struct mounts_seen *seen)
{
	for (unsigned i = 0; i < seen->ndaemons; i++)
		if (seen->daemons[i].connection < 0 && !seen->daemons[i].dir[0])
			return true;
	return false;
}

/* ---- mounts here ----------------------------------------------------------------------------- */

static void judge_without_daemon(
	const struct mounts_seen *seen, const struct mounts_place *place, struct report *r)
{
	char dir[REPORT_QUOTED_BYTES];

	report_quote(place->dir, dir);
	if (some_are_unknown(seen)) {
		report_found(r, VERDICT_NOTE, "%s (%s): its daemon is not seen%s", place->dir,
			place->source, seen->root ? "" : " without root");
		return;
	}
	report_found(r, seen->partial ? VERDICT_WARNING : VERDICT_FAILURE, "%s (%s) has no daemon",
		place->dir, place->source);
	report_cause(r, "the daemon was killed or has crashed: each access fails with ENOTCONN%s",
		seen->partial ? "; or it runs outside of this container" : "");
	report_remedy(r,
		"umount %s (umount -l %s if it is in use), then mount again; the journal "
		"has the daemon's last lines: journalctl -t rmemfs",
		dir, dir);
}

static const char *describe_waiting(const struct mounts_place *place, char buf[WAITING_CHARS])
{
	if (place->waiting < 0)
		return "waiting requests are not seen";
	if (!place->waiting)
		return "no request waits";
	snprintf(buf, WAITING_CHARS, "%lld requests wait", (long long)place->waiting);
	return buf;
}

static void judge_place(
	const struct mounts_seen *seen, const struct mounts_place *place, struct report *r)
{
	const struct mounts_daemon *daemon = daemon_of(seen, place);
	char waiting[WAITING_CHARS];

	if (!daemon) {
		judge_without_daemon(seen, place, r);
		return;
	}
	if (daemon->stopped) {
		report_found(r, VERDICT_FAILURE, "%s (%s): its daemon, process %d, is stopped",
			place->dir, place->source, daemon->pid);
		report_cause(r, "a signal or a debugger has stopped it: each access waits");
		report_remedy(r, "kill -CONT %d", daemon->pid);
		return;
	}
	report_found(r, VERDICT_OK, "%s (%s): served by process %d, %s", place->dir, place->source,
		daemon->pid, describe_waiting(place, waiting));
}

void mounts_judge_here(const struct mounts_seen *seen, struct report *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < seen->nplaces; i++) {
		if (!seen->places[i].own)
			continue;
		judge_place(seen, &seen->places[i], r);
		n++;
	}
	if (!n)
		report_found(r, VERDICT_OK, "nothing is mounted");
}

/* ---- mounts elsewhere ------------------------------------------------------------------------ */

static const struct mounts_place *place_of(
	const struct mounts_seen *seen, const struct mounts_daemon *daemon, bool at_home)
{
	for (unsigned i = 0; i < seen->nplaces; i++)
		if (daemon_of(seen, &seen->places[i]) == daemon &&
			(seen->places[i].namespace == daemon->namespace) == at_home)
			return &seen->places[i];
	return NULL;
}

/* It has a place elsewhere, and none in its daemon's namespace. */
static void tell_kept(
	const struct mounts_daemon *daemon, const struct mounts_place *place, struct report *r)
{
	char dir[REPORT_QUOTED_BYTES];

	report_found(r, VERDICT_WARNING,
		"%s (%s) was unmounted, but the mount namespace of process %d (%s) still has it",
		place->dir, place->source, place->pid, place->process);
	report_cause(r,
		"that namespace began while it was mounted, and has a copy; so the daemon, process "
		"%d, goes on, and its export stays in use",
		daemon->pid);
	report_remedy(r, "nsenter -t %d -m umount -l %s; or end process %d", place->pid,
		report_quote(place->dir, dir), place->pid);
}

/* It is mounted where its daemon is, and has a copy that no unmount reaches. */
static void tell_copied(
	const struct mounts_daemon *daemon, const struct mounts_place *place, struct report *r)
{
	char dir[REPORT_QUOTED_BYTES];

	report_found(r, VERDICT_NOTE,
		"%s (%s) has a copy in the mount namespace of process %d (%s): after an umount its "
		"daemon, process %d, would go on",
		place->dir, place->source, place->pid, place->process, daemon->pid);
	report_remedy(r, "before an umount: nsenter -t %d -m umount -l %s", place->pid,
		report_quote(place->dir, dir));
}

static bool judge_daemon(
	const struct mounts_seen *seen, const struct mounts_daemon *daemon, struct report *r)
{
	const struct mounts_place *home = place_of(seen, daemon, true);
	const struct mounts_place *copy = place_of(seen, daemon, false);

	if (!daemon->namespace || (home && (!copy || copy->spreads)))
		return false;
	if (home) {
		tell_copied(daemon, copy, r);
		return true;
	}
	if (copy) {
		tell_kept(daemon, copy, r);
		return true;
	}
	if (daemon->connection < 0 || seen->blind)
		return false;
	report_found(r, VERDICT_WARNING, "process %d (%s) serves a mount that no namespace has",
		daemon->pid, daemon->process);
	report_cause(r, "it was unmounted by umount -l, and a process still has a file of it open "
			"or works in it");
	report_remedy(r, "end that process: lsof finds it by device 0,%d", daemon->connection);
	return true;
}

void mounts_judge_elsewhere(const struct mounts_seen *seen, struct report *r)
{
	bool any = false;

	for (unsigned i = 0; i < seen->ndaemons; i++)
		any |= judge_daemon(seen, &seen->daemons[i], r);
	if (seen->blind)
		report_found(r, VERDICT_NOTE,
			"the mount namespaces of %u other processes are not seen%s", seen->blind,
			seen->root ? "" : " without root");
	else if (!any)
		report_found(r, VERDICT_OK, "no other mount namespace keeps a mount alive");
}

/* ---- the checks ------------------------------------------------------------------------------ */

/* A daemon has no mount while it begins, and while it ends. */
static bool any_without_mount(const struct mounts_seen *seen)
{
	for (unsigned i = 0; i < seen->ndaemons; i++)
		if (!place_of(seen, &seen->daemons[i], true) &&
			!place_of(seen, &seen->daemons[i], false))
			return true;
	return false;
}

/* Such a daemon, or a mount that was replaced meanwhile, is looked at once more. */
static int look(struct mounts_seen *seen)
{
	int err = mounts_probe(seen);

	if (err || !any_without_mount(seen))
		return err;
	usleep(SETTLE_US);
	return mounts_probe(seen);
}

static void mounts_check(
	struct doctor *d, void (*judge)(const struct mounts_seen *seen, struct report *r))
{
	autofree struct mounts_seen *seen = calloc(1, sizeof(*seen));
	int err = seen ? look(seen) : -ENOMEM;

	if (err)
		report_found(&d->report, VERDICT_NOTE, "not seen: /proc: %s", errno_text(err));
	else
		judge(seen, &d->report);
}

void mounts_check_here(struct doctor *d)
{
	mounts_check(d, mounts_judge_here);
}

void mounts_check_elsewhere(struct doctor *d)
{
	mounts_check(d, mounts_judge_elsewhere);
}
