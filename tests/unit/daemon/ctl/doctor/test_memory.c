/* Judgements of memory: the limit on locked memory, the tmpfs, huge pages, NUMA nodes. */
#include "tests/unit/daemon/ctl/doctor/judged.h"

#include <errno.h>

#include "daemon/ctl/doctor/memory.h"

#define MIB (UINT64_C(1) << 20)

/* ---- locked memory --------------------------------------------------------------------------- */

static void lock__of_this_limit(uint64_t hard, unsigned ndevices)
{
	const struct memory_lock lock = {.hard = hard, .ndevices = ndevices, .mount = 76 * MIB};

	memory_judge_lock(&lock, judge_anew());
}

static void lock__without_a_limit(void **state)
{
	lock__of_this_limit(UINT64_MAX, 1);
	assert_judged(VERDICT_OK, "no limit", NULL);
}

static void lock__enough_for_a_mount(void **state)
{
	lock__of_this_limit(76 * MIB, 1);
	assert_judged(VERDICT_NOTE, "up to 76MiB", NULL);
}

static void lock__too_little(void **state)
{
	lock__of_this_limit(76 * MIB - 1, 1);
	assert_judged(VERDICT_FAILURE, "can be locked (RLIMIT_MEMLOCK)", "ulimit -l unlimited");
	lock__of_this_limit(64 << 10, 1);
	assert_judged(VERDICT_FAILURE, "only 64KiB", "LimitMEMLOCK=infinity");
	assert_has(judged.findings[0].cause, "76MiB");
}

static void lock__too_little_matters_less_without_a_device(void **state)
{
	lock__of_this_limit(64 << 10, 0);
	assert_judged(VERDICT_WARNING, "only 64KiB", "ulimit -l unlimited");
	assert_has(judged.findings[0].cause, "swapped out");
}

static void lock__capabilities_count(void **state)
{
	struct memory_lock lock = {.hard = 64 << 10, .ndevices = 1, .mount = 76 * MIB};

	lock.exempt = true;
	memory_judge_lock(&lock, judge_anew());
	assert_judged(VERDICT_OK, "CAP_IPC_LOCK", NULL);
	lock.exempt = false;
	lock.may_raise = true;
	memory_judge_lock(&lock, judge_anew());
	assert_judged(VERDICT_OK, "no limit", NULL);
}

/* ---- room ------------------------------------------------------------------------------------ */

static struct memory_room room_of(uint64_t bytes, uint64_t free, uint64_t available)
{
	return (struct memory_room){.dir = "/dev/shm",
		.in_memory = true,
		.bytes = bytes,
		.free = free,
		.available = available};
}

static void room__there(void **state)
{
	struct memory_room room = room_of(1024 * MIB, 80 * MIB, 900 * MIB);

	memory_judge_room(&room, judge_anew());
	assert_judged(VERDICT_OK, "/dev/shm has 80MiB free of 1GiB", NULL);
}

static void room__too_little(void **state)
{
	struct memory_room room = room_of(1024 * MIB, 79 * MIB, 900 * MIB);

	memory_judge_room(&room, judge_anew());
	assert_judged(VERDICT_WARNING, "79MiB", "mount -o remount,size=SIZE /dev/shm");
}

static void room__more_than_memory(void **state)
{
	struct memory_room room = room_of(1024 * MIB, 1024 * MIB, 900 * MIB);

	memory_judge_room(&room, judge_anew());
	assert_judged(VERDICT_NOTE, "only 900MiB of memory", NULL);
}

static void room__of_no_memory(void **state)
{
	struct memory_room room = {.dir = "/dev/shm", .err = -ENOENT};

	memory_judge_room(&room, judge_anew());
	assert_judged(VERDICT_WARNING, "No such file", "mount -t tmpfs");
	room.err = 0;
	memory_judge_room(&room, judge_anew());
	assert_judged(VERDICT_WARNING, "not on a filesystem in memory", "mount -t tmpfs");
}

/* ---- huge pages ------------------------------------------------------------------------------ */

static void huge__words(void **state)
{
	struct memory_huge huge = {.enabled = "madvise", .shmem = "never"};

	memory_judge_huge(&huge, judge_anew());
	assert_judged(VERDICT_OK, "on tmpfs: never", NULL);
	strcpy(huge.shmem, "deny");
	memory_judge_huge(&huge, judge_anew());
	assert_judged(VERDICT_WARNING, "denies", "shmem_enabled");
	strcpy(huge.shmem, "never");
	strcpy(huge.enabled, "never");
	memory_judge_huge(&huge, judge_anew());
	assert_judged(VERDICT_NOTE, "are off", "transparent_hugepage/enabled");
	huge.enabled[0] = '\0';
	memory_judge_huge(&huge, judge_anew());
	assert_judged(VERDICT_NOTE, "no transparent huge pages", NULL);
}

static void huge__pools_that_are_used(void **state)
{
	struct memory_huge huge = {.enabled = "always",
		.shmem = "advise",
		.npools = 2,
		.pools = {{2 * MIB, 512, 12}, {1024 * MIB, 0, 0}}};

	memory_judge_huge(&huge, judge_anew());
	assert_int_equal(judged.n, 2);
	assert_among(VERDICT_OK, "12 of 512 reserved huge pages of 2MiB", NULL);
}

/* ---- NUMA ------------------------------------------------------------------------------------ */

static void nodes__and_devices(void **state)
{
	struct memory_nodes nodes = {
		.online = "0", .n = 1, .ndevices = 1, .devices = {{"rxe0", -1}}};

	memory_judge_nodes(&nodes, judge_anew());
	assert_judged(VERDICT_OK, "one NUMA node", NULL);
	strcpy(nodes.online, "0-1");
	nodes.n = 2;
	nodes.ndevices = 2;
	strcpy(nodes.devices[1].name, "mlx5_0");
	nodes.devices[1].node = 1;
	memory_judge_nodes(&nodes, judge_anew());
	assert_int_equal(judged.n, 3);
	assert_among(VERDICT_OK, "2 NUMA nodes: 0-1", NULL);
	assert_among(VERDICT_NOTE, "rxe0 is not known", NULL);
	assert_among(VERDICT_NOTE, "mlx5_0 is at node 1", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock__without_a_limit),
		cmocka_unit_test(lock__enough_for_a_mount),
		cmocka_unit_test(lock__too_little),
		cmocka_unit_test(lock__too_little_matters_less_without_a_device),
		cmocka_unit_test(lock__capabilities_count),
		cmocka_unit_test(room__there),
		cmocka_unit_test(room__too_little),
		cmocka_unit_test(room__more_than_memory),
		cmocka_unit_test(room__of_no_memory),
		cmocka_unit_test(huge__words),
		cmocka_unit_test(huge__pools_that_are_used),
		cmocka_unit_test(nodes__and_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
