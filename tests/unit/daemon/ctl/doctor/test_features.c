/* Judgements of the kernel's features of FUSE. */
#include "tests/unit/daemon/ctl/doctor/judged.h"

#include <errno.h>
#include <linux/fuse.h>

#include "daemon/ctl/doctor/features.h"

static struct features_offer all_features(void)
{
	return (struct features_offer){
		.major = FUSE_KERNEL_VERSION, .minor = 43, .flags = UINT64_MAX};
}

static void judge__all(void **state)
{
	struct features_offer f = all_features();

	features_judge(&f, judge_anew());
	assert_judged(VERDICT_OK, "all features", NULL);
}

/* Linux 6.1 of Debian 12: protocol 7.37. */
static void judge__of_an_older_kernel(void **state)
{
	struct features_offer f = all_features();

	f.minor = 37;
	f.flags = UINT32_MAX;
	features_judge(&f, judge_anew());
	assert_int_equal(judged.n, 3);
	assert_among(VERDICT_NOTE, "one after another", NULL);
	assert_among(VERDICT_NOTE, "MAP_SHARED", NULL);
	assert_among(VERDICT_NOTE, "can't map ids", NULL);
}

/* The flag alone does not do: stores are written back since 7.40 only. */
static void judge__flag_of_a_kernel_that_is_too_old(void **state)
{
	struct features_offer f = all_features();

	f.minor = 39;
	features_judge(&f, judge_anew());
	assert_judged(VERDICT_NOTE, "MAP_SHARED", NULL);
}

static void judge__too_old(void **state)
{
	struct features_offer f = all_features();

	f.minor = 22;
	features_judge(&f, judge_anew());
	assert_judged(VERDICT_FAILURE, "version 7.22", "newer kernel");
}

static void judge__not_seen(void **state)
{
	struct features_offer f = {.err = -EPERM};

	features_judge(&f, judge_anew());
	assert_judged(VERDICT_NOTE, "without root", NULL);
	f.err = -ENOENT;
	features_judge(&f, judge_anew());
	assert_judged(VERDICT_NOTE, "No such file", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judge__all),
		cmocka_unit_test(judge__of_an_older_kernel),
		cmocka_unit_test(judge__flag_of_a_kernel_that_is_too_old),
		cmocka_unit_test(judge__too_old),
		cmocka_unit_test(judge__not_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
