/* crash_point.h - named places at which a test makes the process die as by kill -9, or stop.
 *
 * In a build with RMEMFS_CRASH_POINTS (the presets dev, asan, tsan) the environment variable
 * RMEMFS_CRASH_AT=NAME[:N] kills the process at the N-th passage of CRASH_POINT("NAME"), the first
 * if N is not given. With RMEMFS_CRASH_BY=TERM the process gets SIGTERM there instead, with STOP
 * SIGSTOP, so that it stands still until SIGCONT. In any other build a crash point does nothing.
 * kill.bats, power.bats, resize.bats, exports.bats, shared_fence.bats, alone_shares.bats,
 * alone_locks.bats, names_removed.bats, upgrade.bats and revive.bats use each of these points;
 * kill.bats holds this list against the code, and client_crashes.bats uses all of the client's:
 *
 *     memdir.locked  memdir.write  memdir.written     the memory directory's lock, and its files
 *     region.made  region.sized  region.allocated     a region's file
 *     region.removed                                  a region that no export needs was removed
 *     region.register                                 a device is about to register a region
 *     store.allocated  store.tables  store.loaded  store.opened
 *     shrink.claimed  shrink.copied  shrink.moved     pages leave regions
 *     shrink.dropped                                  the store has forgotten these regions
 *     restore.planned  restore.begun  restore.batch  restore.records  restore.stored
 *     restore.filled  restore.done  restore.ended     a snapshot is restored
 *     exports.registered  store.growing  store.added  reload.stored      exports come or grow
 *     removal.step                                    records of a removed export were deleted
 *     remove.marked  remove.told  remove.unlinked     rmemfsctl: an export is removed
 *     resize.written  resize.told                     rmemfsctl: an export becomes larger
 *     attach.before  attach.stored                    a session begins
 *     convert.stored                                  a session that was alone shares
 *     lock.stored                                     a lock was had, or given up
 *     session.ending  session.drained                 it ends; a step of taking back what it had
 *     commit.before  commit.after                     a batch's transaction
 *     reply.none  reply.sent                          after it, before the first or between replies
 *     name.changed                                    a directory's entry was added or removed
 *     grant                                           pages are lent
 *     scrub.before  scrub.half  scrub.zeroed  scrub.taken
 *     reap.step  cut.hidden                           a step of freeing a long file; a file was cut
 *     zero.before  zero.after                         bytes in the middle of a page
 *     copy.before  copy.after                         the bytes of one step of a copy
 *     fallocate.step                                  a step that allocates, zeroes or punches
 *     xattr.staged  xattr.set                         a part of a long value was stored; it was set
 *     snapshot.marked                                 clients still wait
 *     snapshot.half  snapshot.written                 half of it; all of it is written
 *     snapshot.renamed                                the snapshot has its name
 *     set.written  set.named  set.whole  stop.published       the snapshot set that a stop writes
 *     landing.arrived                                 client: a payload is in granted pages
 *     write.post                                      client: a WRITE is about to be posted
 *     write.acknowledged                              client: its caller was told; no byte has left
 *     rpc.sent  rpc.answered                          client: of an RPC that must not be done twice
 *     names.before  names.answered                client: NAMES is sent; was answered
 *     open.recorded                                   client: the kernel does not know the handle
 *     give.offered  give.standing  give.told  give.went  give.gone
 *                                                     a daemon hands its mount over
 *     take.ready  take.told  take.adopted  take.connected  take.serving
 *                                                     another one takes it over
 *     revive.opened  revive.adopted  revive.connected  revive.settled  revive.resent
 *                                                     the successor of one that was killed
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
