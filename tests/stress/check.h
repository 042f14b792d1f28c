/* check.h - the referee's judgement of one round: each function compares the history with what was
 * there before, ends the program by violation() if no order of the operations explains it, and
 * keeps what there is now for the next round.
 */
#ifndef RMEMFS_TESTS_CHECK_H
#define RMEMFS_TESTS_CHECK_H

#include "tests/stress/history.h"

/* Before the others: notes what is LENIENT. */
void check_note_lenient(struct history *h);

/* The files that all write: each byte is a register, and those of a cell are read and written as
 * one but where a copy is interrupted in it; each size an object that writes and allocations make
 * grow, truncations set, and reads and stats tell. */
void check_data(struct history *h);

/* Times of last modification never go back, and are no older than the last write that had been
 * answered before the question, less slack_ms for the clock's grain. */
void check_mtimes(struct history *h, int64_t slack_ms);

/* The logs: every record there once and whole, in the order of time; nothing else is ever seen, and
 * no size that the log had not at some moment of the question. at: a folder to read them in. */
void check_logs(struct history *h, int at);
/* That the logs have been emptied. */
void check_logs_emptied(struct history *h);

/* The file that is replaced whole: never missing, never in part, never an old one. */
void check_conf(struct history *h);
/* Files that are open while their names come and go. */
void check_held(struct history *h);
/* Names, links and folders, all as one object. */
void check_names(struct history *h);

/* Searches that were given up. */
extern unsigned check_undecided;

#endif
