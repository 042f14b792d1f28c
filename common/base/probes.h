/* probes.h - static probes, which bpftrace, perf, SystemTap and gdb can stop at (USDT).
 *
 * A probe is one nop in the program, and a note that says where it is and where its arguments are.
 * A tracer puts a breakpoint in the place of the nop while it looks. So an argument has to be there
 * anyway, in a register or in memory: a member of a struct, and never the result of a call.
 *
 * config/tracing/README.md documents the probes; tests/docs.sh compares it with the programs. The
 * build leaves the probes out if it does not find <sys/sdt.h> (systemtap-sdt-dev).
 *
 * THREADS  Any.
 */
#ifndef RMEMFS_COMMON_BASE_PROBES_H
#define RMEMFS_COMMON_BASE_PROBES_H

#ifdef RMEMFS_PROBES
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
/* PROBE(PROVIDER, NAME, ARGUMENT...): the provider is rmemfs in the daemon, rmemfs_server in the
 * server. Of an array it gets the address of the first element. */
#define PROBE(provider, ...) STAP_PROBEV(provider, __VA_ARGS__)
#else
#define PROBE(provider, ...) ((void)0)
#endif

#endif
