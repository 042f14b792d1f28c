/* kernel_names.h - which inode a name was of when the kernel was last told, where others write,
 * too.
 *
 * The kernel takes a name away from the inode that LOOKUP has told it of, and in a directory that
 * it believes removed nothing can be made any more. It asks just before, in the same thread and
 * under the parent's lock, but that keeps no other client out. Another client may have moved that
 * directory away, and the name be another inode's, or nobody's. So RMDIR and RENAME carry the inode
 * that the kernel was told. While that directory goes on, the server refuses with ESTALE to take
 * the name of any other inode. The kernel then looks up again, once, and comes again. With other
 * inodes only the kernel's count of links is wrong until it asks next, and nothing is lost. But in
 * a sticky directory the kernel has checked whose file it is. A user who may remove only own files
 * takes the name from that file alone, or is refused.
 *
 * After a second refusal the caller is told EBUSY: programs expect that of such names, and not
 * ESTALE.
 *
 * Entries are kept by thread: each thread asks last for the one or two names that it is about to
 * change. The table is bounded. A name that is not in it any more is not expected of the server,
 * nor is one of a thread that has no number here (of another PID namespace).
 *
 * THREADS    Any; sets share locks that are leaves.
 */
#ifndef RMEMFS_DAEMON_KCACHE_KERNEL_NAMES_H
#define RMEMFS_DAEMON_KCACHE_KERNEL_NAMES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/kcache/name_cache.h"

enum {
	SHOWN_SETS = 1024,
	SHOWN_WAYS = 4,
	SHOWN_LOCKS = 64,
	/* After so many other names, those of a path, a refused one is not expected to come
	 * again. */
	SHOWN_REFUSED_NAMES = 64,
};

struct shown_set;
struct kernel_names {
	struct shown_set *sets;
	pthread_mutex_t locks[SHOWN_LOCKS];
};

struct shown_name {
	uint64_t ino;   /* 0: there was none */
	bool directory; /* whether that inode is one */
	/* The last change of the name was refused; other names count it down. */
	uint8_t refused;
};

/* -ENOMEM */
int kernel_names_init(struct kernel_names *s);
void kernel_names_fini(struct kernel_names *s);

/* The answer to a LOOKUP of that thread (0: of one without a number). */
void kernel_names_note(
	struct kernel_names *s, uint32_t thread, struct name_key key, uint64_t ino, bool directory);
/* The thread begins a change of the name. False: it is not known what the kernel was told. */
bool kernel_names_find(
	struct kernel_names *s, uint32_t thread, struct name_key key, struct shown_name *out);
/* The change was refused, since the name is another inode's, and will come again; or it has
 * ended. */
void kernel_names_set_refused(
	struct kernel_names *s, uint32_t thread, struct name_key key, bool refused);

/* The mount is alone from now on, and notes nothing. No request is under way. */
void kernel_names_forget(struct kernel_names *s);

/* ---- of a mount that moves to another daemon (handover/sharing.h) ---------------------------- */

struct kernel_names_kept {
	struct name_key key;
	uint32_t thread;
	struct shown_name name;
};
/* Calls fn for each entry. */
void kernel_names_each(struct kernel_names *s,
	void (*fn)(const struct kernel_names_kept *kept, void *arg), void *arg);
/* Puts an entry behind those of its set that came before it, as kernel_names_each() tells them.
 * -EINVAL: it is none, or there is no room. */
int kernel_names_adopt(struct kernel_names *s, const struct kernel_names_kept *kept);

#endif
