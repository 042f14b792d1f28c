/* squash.h - the ids by which a client's users count, where its export squashes them.
 *
 * The server tells a mount its squash in ATTACH's answer. The server applies it to the owners that
 * requests name. The daemon applies it to its callers, before it checks what they may.
 *
 * THREADS    Pure functions.
 * SOURCE     exports(5): root_squash, all_squash, anonuid, anongid.
 */
#ifndef RMEMFS_COMMON_RPC_SQUASH_H
#define RMEMFS_COMMON_RPC_SQUASH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum squash_kind {
	SQUASH_NONE, /* ids are taken as they are; anonuid and anongid have no meaning */
	SQUASH_ROOT, /* id 0 becomes the anonymous one */
	SQUASH_ALL,  /* each id does */
	SQUASH_KINDS,
};

struct squash {
	uint8_t kind;              /* enum squash_kind */
	uint32_t anonuid, anongid; /* neither is 0 where kind is not SQUASH_NONE */
};

static inline bool squash_has(const struct squash *squash, uint32_t id)
{
	return squash->kind == SQUASH_ALL || (squash->kind == SQUASH_ROOT && id == 0);
}

/* Anybody may make a whiteout (rename(2)), which nobody can open. */
static inline bool squash_forbids_node(uint32_t mode, uint32_t rdev)
{
	return S_ISBLK(mode) || (S_ISCHR(mode) && rdev != 0);
}

static inline uint32_t squash_uid(const struct squash *squash, uint32_t uid)
{
	return squash_has(squash, uid) ? squash->anonuid : uid;
}

static inline uint32_t squash_gid(const struct squash *squash, uint32_t gid)
{
	return squash_has(squash, gid) ? squash->anongid : gid;
}

#endif
