/* store_verify.h - checks that the store's file is whole, before LMDB opens it.
 *
 * LMDB trusts its file: where a page was overwritten it reads and writes out of bounds. So every
 * page that it could reach is checked first against the format of LMDB 0.9. That is both meta
 * pages, every tree with its pages, nodes, keys and counts, and the list of free pages. Each page
 * must be in exactly one place. Then every record is checked against its sum, and the superblock
 * for its version.
 *
 * Some damage looks like a start or commit that was killed, and is taken for one. That is an older
 * meta page with any trees, or a newer one turned back by exactly two transactions.
 *
 * COST       One look at each page in use; memory of a bit a page.
 * THREADS    Any. Nobody may have the store open.
 * ERRORS     0 or -errno; why has a line for people: -EBADMSG damaged, -EPROTONOSUPPORT made by
 *            another version, -ENOENT no file, or one that was never written to.
 */
#ifndef RMEMFS_SERVER_STORE_STORE_VERIFY_H
#define RMEMFS_SERVER_STORE_STORE_VERIFY_H

#include <stddef.h>
#include <stdint.h>

int store_verify(const char *path, char *why, size_t whylen);

/* The same for a file's bytes; map is aligned as a page is. */
int store_verify_bytes(const void *map, uint64_t len, char *why, size_t whylen);

#endif
