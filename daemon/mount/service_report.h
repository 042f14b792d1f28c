/* service_report.h - what the daemon tells its service manager while the mount lasts (service.h).
 *
 * A line of status says whether the server answers. Signs of life prove that all I/O threads turn:
 * each one does so at least ten times a second, also when it has nothing to do, or when the server
 * is away. So main takes a thread for one that stands still if it has not turned since main looked
 * last, a second before. It then gives no sign of life until the thread turns again.
 *
 * A daemon that does not get along is killed only after all of WatchdogSec=, since each program
 * that uses the mount then loses its open files. These are no reasons:
 * - a server that does not answer: no thread waits for it but in epoll_wait(2);
 * - a suspended machine: the manager's clock (CLOCK_MONOTONIC) stands still, too, and main compares
 *   turns, not times.
 *
 * THREADS    main.
 */
#ifndef RMEMFS_DAEMON_MOUNT_SERVICE_REPORT_H
#define RMEMFS_DAEMON_MOUNT_SERVICE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

struct fs;
struct io_threads;

struct service_report {
	struct fs *fs;
	struct io_threads *threads;
	const char *mountpoint;
	bool soft;
	int standing; /* a thread that stands still, and since when; -1: none */
	int64_t standing_ms;
	bool standing_told;
};

/* Says what has changed, and what is due. To be called about once a second. */
void service_report_tick(struct service_report *r);

#endif
