/* check.h - the referee's judgement of one round. Each function compares the history with the state
 * before the round. If no order of the operations explains it, the function ends the program by
 * violation(). It keeps the state after the round for the next one.
 */
#ifndef RMEMFS_TESTS_CHECK_H
#define RMEMFS_TESTS_CHECK_H

#include "tests/stress/history.h"

/* Call it before the others: notes which events are LENIENT. */
void check_note_lenient(struct history *h);

/* The files that all write. Each byte is a register. The bytes of a cell are read and written as
 * one, unless a copy is interrupted in it. Each size is an object: writes and allocations make it
 * grow, truncations set it, reads and stats tell it. */
void check_data(struct history *h);

/* Modification times never go back. They are no older than the last write that was answered before
 * the question, less slack_ms for the clock's grain. */
void check_mtimes(struct history *h, int64_t slack_ms);

/* The logs: every record is there once and whole, in the order of time, and nothing else is ever
 * seen. Every size that was seen is one that the log had at some moment of the question. at: a
 * folder to read them in. */
void check_logs(struct history *h, int at);
/* The logs have been emptied. */
void check_logs_emptied(struct history *h);

/* The file that is replaced whole: it is never missing, never partial, never an old version. */
void check_conf(struct history *h);
/* Files that are open while their names come and go. */
void check_held(struct history *h);
/* Names, links and folders, all as one object. */
void check_names(struct history *h);

/* Number of searches that were given up. */
extern unsigned check_undecided;

#endif
