/* kernel_names.h - which inode a name was of when the kernel was last told, where others write, too.
 *
 * The kernel takes a name away from the inode that LOOKUP has told it of, and in a directory that
 * it believes removed nothing can be made any more. It asks just before, in the same thread and
 * under the parent's lock, but that keeps no other client out: they may have moved that directory
 * away, and the name be another one's, or none's. So RMDIR and RENAME carry what it was told, and
 * the server refuses with ESTALE to take anything else's name while that directory goes on; the
 * kernel then looks again, once, and comes again. Of all else the kernel's count of links is wrong
 * until it asks next, and nothing is lost. But in a sticky directory it has looked whose file it
 * is: who may remove his own only takes the name from that one, or is refused.
 *
 * Who is refused twice is told EBUSY: programs know that of such names, and not ESTALE.
 *
 * It is known by thread: each asks for the one or two names last that it is going to change. The
 * table is bounded. What is not in it any more, or was asked for by a thread that has no number
 * here (of another PID namespace), is not expected of the server.
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
	/* Names in between after which one that was refused is not expected again: those of a path.
	 */
	SHOWN_REFUSED_NAMES = 64,
};

struct shown_set;
struct kernel_names {
	struct shown_set *sets;
	pthread_mutex_t locks[SHOWN_LOCKS];
};

struct shown_name {
	uint64_t ino;   /* 0: there was none */
	bool directory; /* that inode */
	/* The last change of the name was; counts down what else is asked for. */
	uint8_t refused;
};

/* -ENOMEM */
int kernel_names_init(struct kernel_names *s);
void kernel_names_fini(struct kernel_names *s);

/* A LOOKUP of that thread (0: of one without a number) is answered so. */
void kernel_names_note(
	struct kernel_names *s, uint32_t thread, struct name_key key, uint64_t ino, bool directory);
/* A change of the name by that thread begins. False: it is not known what it was told. */
bool kernel_names_find(
	struct kernel_names *s, uint32_t thread, struct name_key key, struct shown_name *out);
/* It was refused, for the name is of another inode, and will come again; or what came has ended. */
void kernel_names_set_refused(
	struct kernel_names *s, uint32_t thread, struct name_key key, bool refused);

#endif
