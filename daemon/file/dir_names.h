/* dir_names.h - which names a directory has, so that one that it lacks is told missing without
 * asking.
 *
 * This is known of directories that this client has made, while it remembers them: they were empty,
 * and nobody else adds names. It is also known of a directory once a list of it was read to its
 * end, if no name changed from the list's begin on. Before most names are made the kernel asks
 * whether they are there.
 *
 *     nothing is known ──first entry of a list──> listed up to a cookie ──its end──> known
 *
 * Several may read the list at once. An entry is taken that comes right behind the last one.
 *
 * Only hashes are kept, and each errs on the side of asking the server. A name is added before the
 * request that makes it is sent, and stays if that fails. A hash that was added twice is never
 * taken out: another name may still have it.
 *
 * OWNERSHIP  Embedded in the directory's inode; dir_names_forget() frees its memory.
 * THREADS    The inode's lock; struct name_sets is for all.
 * ERRORS     None: without memory, or beyond NAMES_BYTES_MAX for all directories, nothing is known.
 */
#ifndef RMEMFS_DAEMON_FILE_DIR_NAMES_H
#define RMEMFS_DAEMON_FILE_DIR_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/namehash.h"

/* Memory for all sets, enough for a million names. */
enum { NAMES_BYTES_MAX = 32 << 20 };

struct name_sets {
	uint8_t key[NAMEHASH_KEY_BYTES]; /* random: nobody can choose names that collide */
	atomic_size_t bytes;
};

struct names {
	uint64_t *slots; /* a power of two; 0: free */
	uint32_t nslots, nused;
	bool known;
	/* Not known yet, but all up to a list's cookie, since so many changes. */
	bool listed;
	uint64_t cookie, changes;
};

/* -EIO: the system gives no random numbers. */
int dir_names_sets_init(struct name_sets *sets);
uint64_t dir_names_sets_hash(const struct name_sets *sets, const char *name, size_t len);

/* The directory is empty, and each name is added from now on. Without this call, or a whole list,
 * nothing is known. */
void dir_names_begin(struct names *n);
void dir_names_forget(struct names *n, struct name_sets *sets);

void dir_names_add(struct names *n, struct name_sets *sets, uint64_t hash);
/* Its last name with this hash is gone. */
void dir_names_remove(struct names *n, uint64_t hash);

/* An entry of a list. */
struct names_entry {
	uint64_t changes; /* of the directory's names, when the list was asked for */
	uint64_t after;   /* the entry before it; 0: it is the first one */
	uint64_t cookie;
};

/* The list has a name with this hash. */
void dir_names_list(
	struct names *n, struct name_sets *sets, const struct names_entry *entry, uint64_t hash);
/* It ends after that entry: if it came whole, and all of it after the same changes, the names are
 * known. */
void dir_names_list_end(struct names *n, struct name_sets *sets, uint64_t changes, uint64_t after);

/* Whether it is known that there is no name at all. */
bool dir_names_are_none(const struct names *n);
/* Whether it is known that there is no name with this hash. */
bool dir_names_lack(const struct names *n, uint64_t hash);

#endif
