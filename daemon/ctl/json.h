/* json.h - a server's answer, which is JSON, made safe to show. Any program that listens there may
 * have written it, and other users choose the names in it (printable.h). */
#ifndef RMEMFS_DAEMON_CTL_JSON_H
#define RMEMFS_DAEMON_CTL_JSON_H

#include <jansson.h>
#include <stdint.h>

/* NULL: the text is no object of JSON. The caller drops the reference. */
json_t *ctl_json_read(const char *text);
/* A member of an object, "" or 0 where there is none of that kind, or a negative number. The text
 * is the object's. */
const char *ctl_json_text(const json_t *object, const char *key);
uint64_t ctl_json_number(const json_t *object, const char *key);
/* Makes all strings and names of members in it printable, to be shown as text. */
void ctl_json_clean(json_t *root);
/* Prints it as one line of JSON that has the same value; characters that are not to be shown are
 * escaped. -ENOMEM. */
int ctl_json_print(const json_t *root);

#endif
