/* redact.h - takes secrets out of a text that is to leave the machine.
 *
 * Files of keys are never part of such a text. But a user may have written a key where none
 * belongs: in a configuration, on a command line, and so into a log. */
#ifndef RMEMFS_DAEMON_CTL_SURVEY_REDACT_H
#define RMEMFS_DAEMON_CTL_SURVEY_REDACT_H

#include <stddef.h>

/* Overwrites, in place: all of a line behind the word that a key begins with (auth_key.h), and each
 * word of base64 that is as long as a secret. */
void redact_text(char *text, size_t len);

#endif
