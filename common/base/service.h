/* service.h - what this process tells its service manager: systemd, or another one that sets
 * NOTIFY_SOCKET. The protocol is that of sd_notify(3).
 *
 * sd_notify(3) itself waits until the manager's queue has room: up to libsystemd 257 it sends by a
 * socket that blocks. A manager that reads nothing would stop the calling thread for ever. So this
 * module has a socket of its own, and never waits. It keeps what is to be said, not messages: if
 * there is no room now, a later call says what holds then. Only a process that ends at once can
 * leave something unsaid.
 *
 *     service_open       early in main(): before other threads, the sandbox, and user's input
 *     service_status     as often as anything changes: see there
 *     service_tick       in the process's loop, when it is due
 *
 * Without service_open(), or without a manager, all of this does nothing.
 *
 * WATCHDOG   If the manager wants signs of life (WATCHDOG_USEC, WATCHDOG_PID; WatchdogSec= of a
 *            unit), service_tick() gives four in that time, but only while the caller says that the
 *            process is well. The manager counts from READY to STOPPING alone, so start and end
 *            need none. Work that takes long after READY calls service_progress().
 * THREADS    Any. A call takes a lock of this module for one sendto(2) that does not block.
 *            service_tick() takes none before it is due.
 * SOURCE     sd_notify(3), sd_watchdog_enabled(3), systemd.service(5); unix(7) for the queue.
 */
#ifndef RMEMFS_COMMON_BASE_SERVICE_H
#define RMEMFS_COMMON_BASE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

/* True: there is a manager. */
bool service_open(void);
bool service_is_open(void);
/* Nothing is said from now on; service_open() begins anew. No other thread uses this module. */
void service_close(void);

/* Each is said at once. After service_stopping() the manager waits for the process's end; its line
 * of status goes along, since nothing may come after it. */
void service_ready(void);
void service_reloading(void);
void service_stopping(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Another process of the service takes this one's place, and is the main process from now on.
 * Blocks for limit_ms at most, for a manager that is busy. False: it was not told. */
bool service_main_pid(int pid, int limit_ms);

/* The manager keeps these descriptors, and gives them to this service's next main process under
 * that name: sd_listen_fds_with_names(3). It keeps as many as the unit says
 * (FileDescriptorStoreMax=), without an error, and does not poll them (FDPOLL=0): the kernel would
 * wake it for each request that comes to /dev/fuse. False: it was not told. */
enum { SERVICE_FDS_MAX = 32 };
bool service_store(const char *name, const int *fds, unsigned n, int limit_ms);
/* It closes all of that name. */
bool service_drop(const char *name, int limit_ms);
/* Waits until the manager has done all that it was told. False: not within limit_ms. */
bool service_await(int limit_ms);

/* A line for people, which systemctl status shows. A changed line is said once a second at most;
 * service_tick() says the last one. The same line again is not said. */
void service_status(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for work that takes long and goes on: a sign of life, and a request for a minute more
 * than the manager's limits for a start or a stop allow. So the caller must have made progress. */
void service_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A start that fails: the reason, and -errno. */
void service_failed(int err, const char *why);

/* After so long without a sign of life the manager ends this process; 0: never. */
int64_t service_limit_ms(void);
/* Says what is due. well: the threads that matter run. Returns when it is to be called next, in
 * now_ms(); -1: not before something else is to be said. */
int64_t service_tick(int64_t now, bool well);

#endif
