/* cpu_latency.h - keeps this machine's CPUs awake: a CPU that sleeps deeply takes long to be woken, for
 * each request of a program that waits for one after the other.
 *
 * The kernel lets no CPU sleep deeper than in the microseconds that anybody has written to
 * /dev/cpu_dma_latency, for as long as that is open. All CPUs, and all programs: it costs power.
 */
#ifndef RMEMFS_DAEMON_MOUNT_CPU_LATENCY_H
#define RMEMFS_DAEMON_MOUNT_CPU_LATENCY_H

/* A descriptor that allows for no latency until it is closed. -1 where that can't be had, which is
 * logged: all goes on, if slower. */
int cpu_latency_hold(void);

#endif
