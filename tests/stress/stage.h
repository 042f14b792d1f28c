/* stage.h - who plays. A file holds the word for it, which the test writes; before each round the
 * referee reads it. When that is so, the word is in FILE.now.
 *
 *     first     all but the visitor's players, whose processes have ended
 *     all       the visitor's, too: its filesystem is mounted
 *     rest      nobody: no process of a player is left
 *     end       nobody any more: the run is over
 *
 * ERRORS     The functions return 0 or -errno.
 */
#ifndef RMEMFS_TESTS_STAGE_H
#define RMEMFS_TESTS_STAGE_H

enum stage { STAGE_FIRST, STAGE_ALL, STAGE_REST, STAGE_END };

/* Leaves *stage alone if the file has no such word. */
int stage_read(const char *path, enum stage *stage);
int stage_tell(const char *path, enum stage stage);

#endif
