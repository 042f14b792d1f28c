/* json.h - a server's answer, which is JSON, made safe to show. Any program that listens there may
 * have written it, and other users choose the names in it (printable.h). */
#ifndef RMEMFS_DAEMON_CTL_JSON_H
#define RMEMFS_DAEMON_CTL_JSON_H

#include <jansson.h>

/* NULL: the text is no object of JSON. The caller drops the reference. */
json_t *ctl_json_read(const char *text);
/* Makes all strings and names of members in it printable, to be shown as text. */
void ctl_json_clean(json_t *root);
/* Prints it as one line of JSON that has the same value; characters that are not to be shown are
 * escaped. -ENOMEM. */
int ctl_json_print(const json_t *root);

#endif
