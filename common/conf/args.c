#include "common/conf/args.h"

#include <stdio.h>
#include <string.h>

#include "common/base/util.h"
#include "common/base/word.h"

/* Length of a long option as the user wrote it, without its value. */
static size_t written_len(const char *arg)
{
	return strcspn(arg, "=");
}

/* getopt_long() returns a long option's value; a short option returns the same value. */
static bool is_flag(const struct option *options, int value)
{
	for (; options->name; options++)
		if (options->val == value)
			return options->has_arg == no_argument;
	return false;
}

static void explain_unknown(const char *arg, const struct option *options, char *why, size_t whylen)
{
	autofree char *name = strndup(arg + 2, written_len(arg + 2));
	struct word_guess guess = {.unknown = name ? name : ""};

	for (; options->name; options++)
		word_guess_offer(&guess, options->name);
	if (guess.nearest)
		snprintf(why, whylen, "option '--%s': unknown; did you mean '--%s'?", guess.unknown,
			guess.nearest);
	else
		snprintf(why, whylen, "option '--%s': unknown; see --help", guess.unknown);
}

void args_explain(char **argv, int result, const struct option *options, char *why, size_t whylen)
{
	const char *arg = argv[optind - 1];
	bool is_long = strncmp(arg, "--", 2) == 0;

	if (result == ':') {
		/* The option without its value was the last argument. */
		if (is_long)
			snprintf(why, whylen, "option '%s': needs a value", arg);
		else
			snprintf(why, whylen, "option '-%c': needs a value", optopt);
	} else if (!optopt) {
		/* Unknown, or an abbreviation of more than one option. */
		explain_unknown(arg, options, why, whylen);
	} else if (is_long && is_flag(options, optopt)) {
		snprintf(why, whylen, "option '%.*s': takes no value", (int)written_len(arg), arg);
	} else {
		snprintf(why, whylen, "option '-%c': unknown; see --help", optopt);
	}
}
