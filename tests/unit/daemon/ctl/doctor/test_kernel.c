/* Judgements of modules, /dev/fuse and fusermount3. */
#include "tests/unit/daemon/ctl/doctor/judged.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/ctl/doctor/kernel.h"

/* ---- modules --------------------------------------------------------------------------------- */

static void modules__all(void **state)
{
	struct kernel_modules modules = {.fuse = true, .tls = true};

	kernel_judge_modules(&modules, judge_anew());
	assert_judged(VERDICT_OK, "fuse and tls are loaded", NULL);
	modules.rdma = modules.verbs = modules.cm = true;
	kernel_judge_modules(&modules, judge_anew());
	assert_judged(VERDICT_OK, "rdma_ucm", NULL);
}

static void modules__missing(void **state)
{
	struct kernel_modules modules = {.rdma = true};

	kernel_judge_modules(&modules, judge_anew());
	assert_int_equal(judged.n, 4);
	assert_among(VERDICT_FAILURE, "fuse", "modprobe fuse");
	assert_among(VERDICT_WARNING, "tls", "modprobe tls");
	assert_among(VERDICT_FAILURE, "ib_uverbs", "modprobe ib_uverbs");
	assert_among(VERDICT_FAILURE, "rdma_ucm", "modprobe rdma_ucm");
}

static void modules__that_the_kernel_was_built_without(void **state)
{
	struct kernel_modules modules = {.fuse = true, .no_tls = true};

	kernel_judge_modules(&modules, judge_anew());
	assert_judged(VERDICT_NOTE, "this kernel has no module tls", NULL);
	modules.no_tls = false;
	kernel_judge_modules(&modules, judge_anew());
	assert_judged(VERDICT_WARNING, "tls is not loaded", "modules-load.d/rmemfs.conf does it");
	modules.tls = modules.no_tls = true; /* built in */
	kernel_judge_modules(&modules, judge_anew());
	assert_judged(VERDICT_OK, "fuse and tls are loaded", NULL);
}

static void modules__of_rdma_are_for_devices(void **state)
{
	struct kernel_modules modules = {.fuse = true, .tls = true, .rdma = false};

	kernel_judge_modules(&modules, judge_anew());
	assert_judged(VERDICT_OK, "are loaded", NULL);
}

/* ---- /dev/fuse ------------------------------------------------------------------------------- */

static void fuse__open(void **state)
{
	struct kernel_fuse fuse = {.there = true, .mode = 020666};

	kernel_judge_fuse(&fuse, judge_anew());
	assert_judged(VERDICT_OK, "all users can mount", NULL);
	fuse.mode = 020600;
	kernel_judge_fuse(&fuse, judge_anew());
	assert_judged(VERDICT_OK, "not all users can", NULL);
}

static void fuse__closed(void **state)
{
	struct kernel_fuse fuse = {.err = -ENOENT};

	kernel_judge_fuse(&fuse, judge_anew());
	assert_judged(VERDICT_FAILURE, "No such file", "modprobe fuse");
	fuse = (struct kernel_fuse){.err = -EACCES, .there = true, .mode = 020600, .user = 1000};
	kernel_judge_fuse(&fuse, judge_anew());
	assert_judged(VERDICT_FAILURE, "Permission denied", "chmod 666 /dev/fuse");
	assert_has(judged.findings[0].cause, "0600");
	fuse.err = -EPERM;
	kernel_judge_fuse(&fuse, judge_anew());
	assert_judged(VERDICT_FAILURE, "not permitted", "DeviceAllow=/dev/fuse rw");
}

/* ---- fusermount3 ----------------------------------------------------------------------------- */

static void fusermount__matters_to_users(void **state)
{
	struct kernel_fusermount fusermount = {.user = 1000};

	kernel_judge_fusermount(&fusermount, judge_anew());
	assert_judged(VERDICT_FAILURE, "not installed", "apt-get install fuse3");
	fusermount.user = 0;
	kernel_judge_fusermount(&fusermount, judge_anew());
	assert_judged(VERDICT_NOTE, "not installed", "apt-get install fuse3");
	snprintf(fusermount.path, sizeof(fusermount.path), "/usr/bin/fusermount3");
	fusermount.user = 1000;
	kernel_judge_fusermount(&fusermount, judge_anew());
	assert_judged(VERDICT_FAILURE, "not set-user-id", "chmod 4755 /usr/bin/fusermount3");
	fusermount.set_user_id = true;
	kernel_judge_fusermount(&fusermount, judge_anew());
	assert_judged(VERDICT_OK, "may not use allow_other", NULL);
	fusermount.allow_other = true;
	kernel_judge_fusermount(&fusermount, judge_anew());
	assert_judged(VERDICT_OK, "may use allow_other", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules__all),
		cmocka_unit_test(modules__missing),
		cmocka_unit_test(modules__that_the_kernel_was_built_without),
		cmocka_unit_test(modules__of_rdma_are_for_devices),
		cmocka_unit_test(fuse__open),
		cmocka_unit_test(fuse__closed),
		cmocka_unit_test(fusermount__matters_to_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
