/* answer.h - checks of what a server has answered: its version, the exports that the key may see,
 * and how long the steps took. */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_ANSWER_H
#define RMEMFS_DAEMON_CTL_DOCTOR_ANSWER_H

#include "daemon/ctl/doctor/doctor.h"

/* Reads a status; a text that is none leaves `answered` false. */
void answer_note(const char *text, struct doctor_seen *seen);

/* `key`: a key was proven, or this is the server's own machine. */
void answer_judge_exports(const struct doctor_seen *seen, bool key, struct report *r);
/* How long the steps of one transport took. */
void answer_judge_latency(enum transport_kind kind, const struct doctor_try *try, struct report *r);

void answer_check_exports(struct doctor *d);
void answer_check_memory_dir(struct doctor *d);
void answer_check_latency(struct doctor *d);
/* Both say that they measure nothing, and why. */
void answer_check_bandwidth(struct doctor *d);
void answer_check_clock(struct doctor *d);

#endif
