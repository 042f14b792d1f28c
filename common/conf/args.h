/* args.h - explains in the same words for all our programs why getopt_long(3) refuses an option.
 *
 * Call it with opterr 0 and a short option string that begins with ':' (after any '+').
 */
#ifndef RMEMFS_COMMON_CONF_ARGS_H
#define RMEMFS_COMMON_CONF_ARGS_H

#include <getopt.h>
#include <stddef.h>

/* For use after getopt_long() returned '?' or ':' as result: "option '--x': needs a value". */
void args_explain(char **argv, int result, const struct option *options, char *why, size_t whylen);

#endif
