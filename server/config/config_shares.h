/* config_shares.h - each export's share of the memory for metadata.
 *
 * An export's key `metadata` sets its share. The exports without that key have the rest in common:
 * each SHARE_MIN, and of what is left its part by size. An export that is alone, without the key,
 * is not limited.
 *
 * ERRORS  0, or -EINVAL with a line in why: the shares are more than there is, or leave too little.
 */
#ifndef RMEMFS_SERVER_CONFIG_CONFIG_SHARES_H
#define RMEMFS_SERVER_CONFIG_CONFIG_SHARES_H

#include <stddef.h>

struct server_config;

/* Less than this has no room for the changes that one request may make: beside the part of the
 * reserve that comes of it some 500 pages have to be left. */
#define SHARE_MIN (4ull << 20)

/* The least of metadata_reserve; 2 MiB of it are kept back (meta/open.c). */
#define METADATA_MIN (4ull << 20)

/* Sets each export's share. */
int config_shares_set(struct server_config *config, char *why, size_t whylen);

#endif
