/* The sampler's thread looks by itself. Reasons, in which a peer may name anything, are for details
 * alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "daemon/metrics/sampler.h"

#define NOWHERE "/nonexistent/server.sock"

enum { LIMIT_MS = 10000, LOOK_US = 2000 };

struct seen {
	unsigned n; /* samples */
	bool unanswered, explained;
};

static void look(const struct sample *last, void *arg)
{
	struct seen *seen = arg;

	*seen = (struct seen){.n = last->history->n};
	for (unsigned i = 0; i < last->findings->report.n; i++) {
		const struct finding *f = &last->findings->report.findings[i];

		seen->unanswered |= strcmp(f->found, "this machine's server: no answer") == 0;
		seen->explained |= strstr(f->cause, "no server listens there") != NULL;
	}
}

/* Until there are so many samples. */
static struct seen watch(unsigned n, bool details)
{
	struct observer observer = OBSERVER_INIT(NOWHERE);
	struct sampler *s = sampler_start(&observer, 1, details);
	int64_t until = now_ms() + LIMIT_MS;
	struct seen seen;

	assert_non_null(s);
	for (sampler_look(s, look, &seen); seen.n < n && now_ms() < until;
		sampler_look(s, look, &seen))
		usleep(LOOK_US);
	assert_true(sampler_stop(s));
	observe_end(&observer);
	assert_true(seen.n >= n);
	return seen;
}

static void samples__of_a_server_that_is_not_there(void **state)
{
	struct seen seen = watch(2, false);

	assert_true(seen.unanswered);
	assert_false(seen.explained);
}

static void samples__with_details(void **state)
{
	struct seen seen = watch(1, true);

	assert_true(seen.unanswered);
	assert_true(seen.explained);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples__of_a_server_that_is_not_there),
		cmocka_unit_test(samples__with_details),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
