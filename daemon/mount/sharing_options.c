/* sharing_options.c - see sharing_options.h. */
#include "daemon/mount/sharing_options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "daemon/file/cache_policy.h"
#include "daemon/mount/options.h"

/* Is the cache mode one that goes beside `share` or `share_later`? */
static bool goes_beside(const struct client_config *config)
{
	return config->cache == CACHE_NONE || (!config->share && config->cache == CACHE_SHARED);
}

/* If the file says share, the mount may still say noshare. */
static int check_cache(const struct options *options, was_given_fn *given, const char *path,
	char *why, size_t whylen)
{
	const struct client_config *config = &options->config;
	const char *share = config->share ? "share" : "share_later";
	const char *modes = config->share ? "none" : "shared or none";

	if (!(config->share || config->share_later) || goes_beside(config) ||
		!given(options, "cache"))
		return 0;
	if (given(options, share))
		snprintf(why, whylen,
			"option 'cache': beside %s only %s, as what others write can't be "
			"cached; or leave 'cache' out",
			share, modes);
	else
		snprintf(why, whylen,
			"option 'cache': only %s, as %s says %s, and what others write can't be "
			"cached; or no%s, or leave 'cache' out",
			modes, path, share, share);
	return -EINVAL;
}

/* The same for exclusive. */
static int check_exclusive(const struct options *options, was_given_fn *given, const char *path,
	char *why, size_t whylen)
{
	const struct client_config *config = &options->config;
	const char *share = config->share ? "share" : "share_later";
	bool asked = given(options, "exclusive");

	if (!config->exclusive || !(config->share || config->share_later))
		return 0;
	if (asked == given(options, share))
		snprintf(why, whylen,
			"exclusive and %s: one keeps other mounts out, the other lets them in: leave "
			"one of them out",
			share);
	else
		snprintf(why, whylen,
			"option '%s': %s says %s: give no%s as well, or leave '%s' out",
			asked ? "exclusive" : share, path, asked ? share : "exclusive",
			asked ? share : "exclusive", asked ? "exclusive" : share);
	return -EINVAL;
}

int sharing_options_check(const struct options *options, was_given_fn *given, const char *path,
	char *why, size_t whylen)
{
	int err = check_exclusive(options, given, path, why, whylen);

	return err ? err : check_cache(options, given, path, why, whylen);
}
