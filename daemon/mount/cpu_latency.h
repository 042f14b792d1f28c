/* cpu_latency.h - keeps this machine's CPUs awake. A CPU that sleeps deeply takes long to wake, for
 * each request of a program that waits for one after the other.
 *
 * A program writes a number of microseconds to /dev/cpu_dma_latency. While it keeps that open, the
 * kernel lets no CPU sleep so deeply that waking takes longer. This holds for all CPUs and all
 * programs, and costs power.
 */
#ifndef RMEMFS_DAEMON_MOUNT_CPU_LATENCY_H
#define RMEMFS_DAEMON_MOUNT_CPU_LATENCY_H

/* Returns a descriptor that allows no latency until it is closed. -1: not possible, which is
 * logged; all works, but slower. */
int cpu_latency_hold(void);

#endif
