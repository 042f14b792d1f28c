/* sharing_options.c - see sharing_options.h. */
#include "daemon/mount/sharing_options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "daemon/file/cache_policy.h"
#include "daemon/mount/options.h"

/* If the file says share, the mount may still say noshare. */
static int check_cache(const struct options *options, was_given_fn *given, const char *path,
	char *why, size_t whylen)
{
	const struct client_config *config = &options->config;

	if (!config->share || config->cache == CACHE_NONE || !given(options, "cache"))
		return 0;
	if (given(options, "share"))
		snprintf(why, whylen,
			"option 'cache': beside share only none, as what others write can't be "
			"cached; or leave 'cache' out");
	else
		snprintf(why, whylen,
			"option 'cache': only none, as %s says share, and what others write can't "
			"be cached; or noshare, or leave 'cache' out",
			path);
	return -EINVAL;
}

/* The same for exclusive. */
static int check_exclusive(const struct options *options, was_given_fn *given, const char *path,
	char *why, size_t whylen)
{
	const struct client_config *config = &options->config;
	bool asked = given(options, "exclusive");

	if (!config->exclusive || !config->share)
		return 0;
	if (asked == given(options, "share"))
		snprintf(why, whylen,
			"exclusive and share: one keeps other mounts out, the other lets them in: "
			"leave one of them out");
	else
		snprintf(why, whylen,
			"option '%s': %s says %s: give no%s as well, or leave '%s' out",
			asked ? "exclusive" : "share", path, asked ? "share" : "exclusive",
			asked ? "share" : "exclusive", asked ? "exclusive" : "share");
	return -EINVAL;
}

int sharing_options_check(const struct options *options, was_given_fn *given, const char *path,
	char *why, size_t whylen)
{
	int err = check_exclusive(options, given, path, why, whylen);

	return err ? err : check_cache(options, given, path, why, whylen);
}
