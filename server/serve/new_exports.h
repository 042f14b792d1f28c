/* new_exports.h - exports that a reload adds or makes larger: a thread allocates and registers their
 * memory, which takes seconds, while all are served. It also frees the memory of those that are
 * removed.
 *
 *     new_exports_plan -> new_exports_begin -> MADE -> [server.exports takes them]
 *                                           |       -> new_exports_settle -> ENDED
 *                                           `-> (it failed) ---------------> ENDED
 *     ENDED -> new_exports_end
 *
 * Until the caller has put them into server.exports nobody knows of them. The thread waits for
 * new_exports_settle(), and takes back all that it has made and nobody has taken: files, mappings,
 * registrations, the store's growth. To free memory takes long, too. So it does the same for the
 * exports in gone, which nobody knows any more.
 *
 * OWNERSHIP  The caller has the struct; it and the configuration outlive the thread.
 * THREADS    The metadata thread calls these. The thread touches the new exports, the transports
 *            (region_register) and the store's file beyond its map; from MADE until
 *            new_exports_settle() it touches nothing.
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_SERVER_SERVE_NEW_EXPORTS_H
#define RMEMFS_SERVER_SERVE_NEW_EXPORTS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "server/base/task.h"
#include "server/session/context.h"
#include "server/store/store.h"

enum new_exports_state {
	NEW_EXPORTS_IDLE, /* there is no thread */
	NEW_EXPORTS_MAKING,
	NEW_EXPORTS_MADE,
	NEW_EXPORTS_ENDED,
};

struct new_exports {
	const struct server *server;
	const struct server_config *config;
	struct exports exports; /* not served yet */
	struct exports growths; /* of served ones: export_growth.h */
	struct exports gone;    /* not served any more: the thread has them from the settling on */
	struct store_growth growth;
	int fd; /* an eventfd: readable when the state has changed */
	_Atomic(enum new_exports_state) state;
	pthread_t thread;
	sem_t settled;
	struct task task;
	int err; /* of the thread */
};

/* The caller has set server, config and fd. Plans one more; changes nothing. */
int new_exports_plan(
	struct new_exports *new, const struct export_config *export, char *why, size_t whylen);
/* Plans more regions for one that is served, which its configuration has larger. */
int new_exports_plan_growth(struct new_exports *new, struct export *served,
	const struct export_config *export, char *why, size_t whylen);
/* Starts the thread. */
int new_exports_begin(struct new_exports *new, char *why, size_t whylen);
/* The server stops: the thread is to end soon, with -ECANCELED. */
void new_exports_cancel(struct new_exports *new);
/* After MADE. The caller has emptied exports and growths and used growth, or wants them taken back;
 * gone has what was removed. */
void new_exports_settle(struct new_exports *new);
/* After ENDED: 0, or the reason why nothing was made. */
int new_exports_end(struct new_exports *new, char *why, size_t whylen);
/* Frees all, in any state. Cancels the thread and waits for it. */
void new_exports_drop(struct new_exports *new);

#endif
