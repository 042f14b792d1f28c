/* crash_point.h - named places at which a test makes the process die as by kill -9.
 *
 * In a build with RMEMFS_CRASH_POINTS (the presets dev, asan, tsan) the environment variable
 * RMEMFS_CRASH_AT=NAME[:N] kills the process at the N-th passage of CRASH_POINT("NAME"), the first
 * if N is not given. In any other build a crash point is nothing.
 *
 * THREADS  Any.
 */
#ifndef RMEMFS_COMMON_CRASH_POINT_H
#define RMEMFS_COMMON_CRASH_POINT_H

#ifdef RMEMFS_CRASH_POINTS
void crash_point_pass(const char *name);
#define CRASH_POINT(name) crash_point_pass(name)
#else
#define CRASH_POINT(name) ((void)0)
#endif

#endif
