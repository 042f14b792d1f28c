/* inherited.h - handles that the kernel knows by numbers of the daemon before this one.
 *
 * A handle's number is its address (handle.h). A daemon that takes a mount over has handles at
 * other addresses, and the kernel goes on to use the numbers that it knows. So each request's
 * number is looked up here when the request begins. A number that is not here is an address
 * of this process. Hence no handle of this process lies at an address that is such a number.
 *
 * A mount that was never taken over has no such table, and pays one branch for each request.
 *
 * OWNERSHIP  The mount's; handles belong to their inodes (handle.h).
 * THREADS    inherited_add() before the I/O threads run. The rest: any thread, without a lock.
 */
#ifndef RMEMFS_DAEMON_FILE_INHERITED_H
#define RMEMFS_DAEMON_FILE_INHERITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct handle;
struct inherited;
struct request;

/* Room for n handles. -ENOMEM. */
int inherited_new(size_t n, struct inherited **out);
void inherited_delete(struct inherited *table);

/* A zeroed handle whose address is no number of the table: all numbers are named first. */
struct handle *inherited_alloc(const struct inherited *table);
/* The kernel knows a handle by this number, which is not 0. -EEXIST: it knows another one so. */
int inherited_name(struct inherited *table, uint64_t number);
/* This is the handle of that name, and its number is set. */
void inherited_set(struct inherited *table, uint64_t number, struct handle *handle);
/* The kernel has closed the handle. */
void inherited_remove(struct inherited *table, const struct handle *handle);

/* The request's handles are addresses from now on. An address stays as it is: it is no number.
 * False: the request came again, and its handle was closed already. */
bool inherited_translate(const struct inherited *table, struct request *req);

#endif
