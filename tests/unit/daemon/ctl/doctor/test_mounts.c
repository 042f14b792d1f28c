/* Judgements of mounts and their daemons. */
#include "tests/unit/daemon/ctl/doctor/judged.h"

#include <stdio.h>

#include "daemon/ctl/doctor/mounts.h"

enum { HERE = 100, THERE = 200 };

static struct mounts_seen seen;

static void nothing_seen(void)
{
	memset(&seen, 0, sizeof(seen));
	seen.root = true;
}

static struct mounts_place *add_place(unsigned connection, const char *dir, ino_t namespace)
{
	struct mounts_place *place = &seen.places[seen.nplaces++];

	*place = (struct mounts_place){.connection = connection,
		.namespace = namespace,
		.own = namespace == HERE,
		.pid = (int)namespace + 1,
		.source = "h:/e",
		.process = "container"};
	snprintf(place->dir, sizeof(place->dir), "%s", dir);
	return place;
}

static struct mounts_daemon *add_daemon(int connection, const char *dir)
{
	struct mounts_daemon *daemon = &seen.daemons[seen.ndaemons++];

	*daemon = (struct mounts_daemon){
		.pid = 811, .connection = connection, .namespace = HERE, .process = "rmemfs"};
	snprintf(daemon->dir, sizeof(daemon->dir), "%s", dir);
	return daemon;
}

/* ---- here ------------------------------------------------------------------------------------ */

static void here__nothing(void **state)
{
	nothing_seen();
	add_place(7, "/mnt", THERE);
	mounts_judge_here(&seen, judge_anew());
	assert_judged(VERDICT_OK, "nothing is mounted", NULL);
}

static void here__served(void **state)
{
	nothing_seen();
	add_place(7, "/mnt", HERE);
	add_daemon(7, "");
	mounts_judge_here(&seen, judge_anew());
	assert_judged(VERDICT_OK, "/mnt (h:/e): served by process 811, no request waits", NULL);
	seen.places[0].waiting = 3;
	mounts_judge_here(&seen, judge_anew());
	assert_judged(VERDICT_OK, "served by process 811, 3 requests wait", NULL);
	seen.places[0].waiting = -1;
	mounts_judge_here(&seen, judge_anew());
	assert_judged(VERDICT_OK, "waiting requests are not seen", NULL);
	/* The kernel does not tell the connection, but the command line names the place. */
	seen.ndaemons = 0;
	add_daemon(-1, "/mnt");
	mounts_judge_here(&seen, judge_anew());
	assert_judged(VERDICT_OK, "served by process 811", NULL);
}

/* A daemon that ends has the number of its connection a little longer than its mount had it. */
static void here__two_with_one_number(void **state)
{
	nothing_seen();
	add_place(7, "/mnt", HERE);
	add_daemon(7, "/old")->pid = 4711;
	add_daemon(7, "/mnt");
	mounts_judge_here(&seen, judge_anew());
	assert_judged(VERDICT_OK, "served by process 811", NULL);
	mounts_judge_elsewhere(&seen, judge_anew());
	assert_judged(VERDICT_WARNING, "process 4711 (rmemfs) serves a mount", "lsof");
}

static void here__without_a_daemon(void **state)
{
	nothing_seen();
	add_place(7, "/mnt", HERE);
	add_daemon(8, "/mnt"); /* of an earlier mount there, or a later one */
	mounts_judge_here(&seen, judge_anew());
	assert_judged(VERDICT_FAILURE, "/mnt (h:/e) has no daemon", "umount /mnt");
	seen.partial = true;
	mounts_judge_here(&seen, judge_anew());
	assert_judged(VERDICT_WARNING, "has no daemon", "umount /mnt");
	assert_has(judged.findings[0].cause, "outside of this container");
}

static void here__mount_point_for_a_shell(void **state)
{
	nothing_seen();
	add_place(7, "/home/x/$(x)", HERE);
	mounts_judge_here(&seen, judge_anew());
	assert_judged(
		VERDICT_FAILURE, "/home/x/$(x) (h:/e) has no daemon", "umount '/home/x/$(x)' (");
}

/* A daemon that may be of any mount. */
static void here__daemon_that_is_not_known(void **state)
{
	nothing_seen();
	add_place(7, "/mnt", HERE);
	add_daemon(-1, "");
	mounts_judge_here(&seen, judge_anew());
	assert_judged(VERDICT_NOTE, "its daemon is not seen", NULL);
	seen.root = false;
	mounts_judge_here(&seen, judge_anew());
	assert_judged(VERDICT_NOTE, "not seen without root", NULL);
}

static void here__stopped_daemon(void **state)
{
	nothing_seen();
	add_place(7, "/mnt", HERE);
	add_daemon(7, "")->stopped = true;
	mounts_judge_here(&seen, judge_anew());
	assert_judged(VERDICT_FAILURE, "process 811, is stopped", "kill -CONT 811");
}

/* ---- elsewhere ------------------------------------------------------------------------------- */

static void elsewhere__nothing(void **state)
{
	nothing_seen();
	add_place(7, "/mnt", HERE);
	add_daemon(7, "");
	mounts_judge_elsewhere(&seen, judge_anew());
	assert_judged(VERDICT_OK, "no other mount namespace", NULL);
}

/* A container's own mount, whose daemon is in it. */
static void elsewhere__at_home(void **state)
{
	nothing_seen();
	add_place(7, "/mnt", THERE);
	add_daemon(7, "")->namespace = THERE;
	mounts_judge_elsewhere(&seen, judge_anew());
	assert_judged(VERDICT_OK, "no other mount namespace", NULL);
}

static void elsewhere__kept_by_a_copy(void **state)
{
	nothing_seen();
	add_place(7, "/mnt", THERE);
	add_daemon(7, "");
	mounts_judge_elsewhere(&seen, judge_anew());
	assert_judged(VERDICT_WARNING, "process 201 (container) still has it",
		"nsenter -t 201 -m umount -l /mnt");
	assert_has(judged.findings[0].cause, "process 811");
}

static void elsewhere__copy_of_a_mount(void **state)
{
	struct mounts_place *copy;

	nothing_seen();
	add_place(7, "/mnt", HERE);
	copy = add_place(7, "/mnt", THERE);
	add_daemon(7, "");
	mounts_judge_elsewhere(&seen, judge_anew());
	assert_judged(VERDICT_NOTE, "has a copy", "nsenter -t 201");
	/* An unmount reaches it. */
	copy->spreads = true;
	mounts_judge_elsewhere(&seen, judge_anew());
	assert_judged(VERDICT_OK, "no other mount namespace", NULL);
}

static void elsewhere__open_files(void **state)
{
	nothing_seen();
	add_daemon(7, "");
	mounts_judge_elsewhere(&seen, judge_anew());
	assert_judged(VERDICT_WARNING, "serves a mount that no namespace has", "device 0,7");
	seen.blind = 2;
	seen.root = false;
	mounts_judge_elsewhere(&seen, judge_anew());
	assert_judged(VERDICT_NOTE, "of 2 other processes are not seen without root", NULL);
}

/* Its own place may be one that is not seen. */
static void elsewhere__daemon_in_an_unknown_place(void **state)
{
	nothing_seen();
	add_place(7, "/mnt", THERE);
	add_daemon(7, "")->namespace = 0;
	mounts_judge_elsewhere(&seen, judge_anew());
	assert_judged(VERDICT_OK, "no other mount namespace", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(here__nothing),
		cmocka_unit_test(here__served),
		cmocka_unit_test(here__two_with_one_number),
		cmocka_unit_test(here__without_a_daemon),
		cmocka_unit_test(here__mount_point_for_a_shell),
		cmocka_unit_test(here__daemon_that_is_not_known),
		cmocka_unit_test(here__stopped_daemon),
		cmocka_unit_test(elsewhere__nothing),
		cmocka_unit_test(elsewhere__at_home),
		cmocka_unit_test(elsewhere__kept_by_a_copy),
		cmocka_unit_test(elsewhere__copy_of_a_mount),
		cmocka_unit_test(elsewhere__open_files),
		cmocka_unit_test(elsewhere__daemon_in_an_unknown_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
