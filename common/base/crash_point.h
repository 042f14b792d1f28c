/* crash_point.h - named places at which a test makes the process die as by kill -9, or stand still.
 *
 * In a build with RMEMFS_CRASH_POINTS (the presets dev, asan, tsan) the environment variable
 * RMEMFS_CRASH_AT=NAME[:N] kills the process at the N-th passage of CRASH_POINT("NAME"), the first
 * if N is not given; with RMEMFS_CRASH_BY=TERM it is told to end there, with STOP it stands still
 * until SIGCONT. In any other build a crash point is nothing. kill.bats, power.bats, resize.bats
 * and shared_fence.bats use each of these, and hold this list against the code:
 *
 *     memdir.locked  memdir.write  memdir.written     the memory directory's lock, and its files
 *     region.made  region.sized  region.allocated     a region's file
 *     region.removed                                  one that no export needs any more
 *     region.register                                 a device gets to know a region
 *     store.allocated  store.tables  store.loaded  store.opened
 *     shrink.claimed  shrink.copied  shrink.moved     pages leave regions that are to go
 *     shrink.dropped                                  the store has forgotten these
 *     restore.planned  restore.begun  restore.batch  restore.records  restore.stored
 *     restore.filled  restore.done  restore.ended     a snapshot comes back
 *     attach.before  attach.stored                    a session begins
 *     session.ending  session.drained                 it ends; a step of giving back what it had
 *     commit.before  commit.after                     a batch's transaction
 *     reply.none  reply.sent                          after it, before the first or between replies
 *     name.changed                                    a directory's entry was put or taken
 *     grant                                           pages are lent
 *     scrub.before  scrub.half  scrub.zeroed  scrub.taken
 *     reap.step  cut.hidden                           a long file is freed, or cut
 *     zero.before  zero.after                         bytes in the middle of a page
 *     copy.before  copy.after                         a step's bytes of a copy
 *     fallocate.step                                  a step that allocates, zeroes or punches
 *     xattr.staged  xattr.set                         a long value: a part of it, and its end
 *     snapshot.marked                                 clients wait still
 *     snapshot.half  snapshot.written                 the records are written, all is
 *     snapshot.renamed                                it has its name
 *     set.written  set.named  set.whole  stop.published       the set of a stop
 *     landing.arrived                                 the client's: a payload is in granted pages
 *     write.post                                      the client's: a WRITE is about to go out
 *
 * THREADS  Any.
 */
#ifndef RMEMFS_COMMON_BASE_CRASH_POINT_H
#define RMEMFS_COMMON_BASE_CRASH_POINT_H

#ifdef RMEMFS_CRASH_POINTS
void crash_point_pass(const char *name);
#define CRASH_POINT(name) crash_point_pass(name)
#else
#define CRASH_POINT(name) ((void)0)
#endif

#endif
